"""Print everything that must be the same on every machine: roots, ids, hits, scores and explanations, to the bit.

python tests/print_results.py > tests/golden/results.txt        after a change that is meant to change scores
"""

from __future__ import annotations

import recollect
from recollect.demo import Demo
from recollect.testing import TickingClock


def main() -> None:
    with Demo() as demo:
        print(demo.root)
        for answer in demo.answers():
            for hit in answer.hits:
                print(hit.record.id, hit.score.hex(), hit.confidence.hex(), hit.why)
    memory = recollect.open(":memory:", clock=TickingClock())
    texts = ["Straße und Größe", "我喜欢喝茶", "naïve café", "ไทยแลนด์", "résumé \U0001f6dc new"]
    memory.remember_all(texts)
    memory.remember("tags", tags=["b", "a", "ü", "c"], metadata={"z": 1, "a": {"y": 2.0, "b": None}})
    print(memory.root, [record.id for record in memory.find(order="id")])
    for question in ("strasse cafe", "喜欢茶", "resume", "wrold sizee größse"):
        print([(hit.record.id, hit.score.hex(), str(hit.why)) for hit in memory.recall(question)])


if __name__ == "__main__":
    main()
