"""Print what must be the same on every machine: roots, ids, hits, scores, explanations and contexts, to the bit.

python tests/engine/print_results.py > tests/golden/results.txt        after a change that is meant to change scores
"""

from __future__ import annotations

import recollect
from recollect.cli.demo import Demo
from recollect.memory.context.values import STYLES
from recollect.testing import TickingClock


def main() -> None:
    with Demo() as demo:
        print(demo._memory.head().parts["records"])
        for answer in demo.answers():
            for hit in answer.hits:
                print(hit.record.id, hit.score.hex(), hit.confidence.hex(), hit.why)
            for style in STYLES:
                print(repr(str(demo._memory.context(answer.hits.plan.question, 150, style=style))))
    memory = recollect.open(":memory:", clock=TickingClock())
    texts = ["Straße und Größe", "我喜欢喝茶", "naïve café", "ไทยแลนด์", "résumé \U0001f6dc new"]
    memory.remember_all(texts)
    memory.remember("tags", tags=["b", "a", "ü", "c"], metadata={"z": 1, "a": {"y": 2.0, "b": None}})
    print(memory.head().parts["records"], [record.id for record in memory.find(order="id")])
    for question in ("strasse cafe", "喜欢茶", "resume", "wrold sizee größse"):
        print([(hit.record.id, hit.score.hex(), str(hit.why)) for hit in memory.recall(question)])
    memory.outline.ingest_text("* Boats\n** Sails\n", "org", source="boats.org")
    memory.keyed.write("plan", b"leave at dawn")
    print(memory.root, dict(memory.head().parts), memory.head().log)


if __name__ == "__main__":
    main()
