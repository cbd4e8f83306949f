"""`python -m bench.proofs [RECORDS]`: what proofs cost, in a store of 100,000 records by default.

Half of the records are written in commits of a thousand, the others one by one, so that the log is long, too.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import recollect
from bench.measuring import milliseconds, one_core, percentile

_ROUNDS = 500


def measured(name: str, call: Callable[[], object], rounds: int = _ROUNDS) -> None:
    times = [milliseconds(call) for _ in range(rounds)]
    print(f"{name:40} median {percentile(times, 0.5):8.3f} ms   p95 {percentile(times, 0.95):8.3f} ms")


def main(records: int) -> None:
    one_core()
    rng, half = random.Random(1), records // 2

    def some_id() -> str:
        return f"r{rng.randrange(records)}"

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.db")
        with recollect.open(path, durability="normal") as memory:
            memory.remember_all({"content": f"fact {number}", "id": f"r{number}"} for number in range(half))
            for number in range(half, records):
                memory.remember(f"fact {number}", id=f"r{number}")
            measured("first head: the log is read", memory.head, 1)
        with recollect.open(path) as memory:
            newest = memory.seq
            measured("first head of a process", memory.head, 1)
            measured("head", memory.head)
            measured("prove, present", lambda: memory.prove(some_id()))
            measured("prove, absent", lambda: memory.prove(f"no {rng.random()}"), 20)
            measured("prove, after a past commit", lambda: memory.prove(some_id(), at=rng.randrange(1, newest)))
            measured("prove_log", lambda: memory.prove_log(rng.randrange(1, newest)))
            proof, root = memory.prove("r0"), memory.root
            measured("verify", lambda: recollect.verify(proof, root))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
