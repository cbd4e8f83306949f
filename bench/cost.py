"""What one warm recall and one remember cost: exact counts, and the processor time compared with another checkout.

The counts do not depend on the machine: calls of Python functions, SQL statements and frames of the WAL; a test holds
them (`tests/engine/test_cost.py`). Processor time is measured in pairs of processes, alternating, each with a store
that its own checkout has written. The other checkout need not have this file: it is run by the other one's Python.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw

import recollect

TURNS, COUNTED_TURNS, PAIRS = 20_000, 300, 20
_QUESTIONS, _WRITES, _OPENS = 150, 100, 20
_FRAME_BYTES = 4096 + 24
_NAMES = "Ana Ben Carla David Elena Felix Greta Hugo".split()
_WORDS = (
    "harbour train seat window garden recipe copper violin winter letter bridge lighthouse dentist invoice camera "
    "ticket holiday mountain kitchen bicycle concert passport umbrella coffee birthday meeting hospital library market"
).split()


def turns(count: int) -> list[dict[str, Any]]:
    """Return turns of conversations, the same ones each time."""
    rng = random.Random(7)
    begin = datetime(2025, 1, 1, tzinfo=UTC)
    out = []
    for number in range(count):
        words = " ".join(rng.sample(_WORDS, rng.randrange(4, 12)))
        out.append(
            {
                "content": f"{rng.choice(_NAMES)} said that the {words} is number {rng.randrange(2000)}.",
                "kind": "conversation",
                "role": ("user", "assistant")[number % 2],
                "speaker": rng.choice(_NAMES),
                "user": f"user {number // 2000}",
                "conversation": f"c{number // 40}",
                "time": begin + timedelta(minutes=7 * number),
            }
        )
    return out


def questions(count: int) -> list[str]:
    """Return questions about the turns."""
    rng = random.Random(8)
    pairs = (" and the ".join(rng.sample(_WORDS, 2)) for _ in range(count))
    return [f"What did {rng.choice(_NAMES)} say about the {pair}?" for pair in pairs]


def filled(path: Path, count: int) -> recollect.Memory:
    """Return a new store with turns, as a clock that stands still sees it."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    memory = recollect.open(path, clock=lambda: now, embedder="none", zone="UTC")
    memory.remember_all(turns(count))
    return memory


def counted(call: Callable[[], object], wal: str) -> dict[str, int]:
    """Return the number of calls of Python functions, SQL statements and frames in the WAL of one call."""
    calls = 0

    def on_event(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before, begun = os.path.getsize(wal), len(_statements)
    sys.setprofile(on_event)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {
        "calls": calls - 1,  # without that of the call itself
        "statements": len(_statements) - begun,
        "frames": (os.path.getsize(wal) - before) // _FRAME_BYTES,
    }


_statements: list[str] = []


def _trace(_cursor: object, sql: str, _bindings: object) -> bool:
    _statements.append(sql)
    return True


def counts() -> dict[str, dict[str, int]]:
    """Return the counts of one warm recall and of one remember, in a small store."""

    def hook(connection: apsw.Connection) -> None:
        connection.exec_trace = _trace

    apsw.connection_hooks.append(hook)
    try:
        with tempfile.TemporaryDirectory() as folder, filled(Path(folder) / "a.db", COUNTED_TURNS) as memory:
            wal = f"{folder}/a.db-wal"
            asked, more = questions(5), iter(range(100))

            def remember() -> None:
                memory.remember(f"a new sentence about the harbour {next(more)}", user="user 0")

            for _ in range(3):
                for question in asked:
                    memory.recall(question)
                remember()
            for question in asked:
                memory.recall(question)
            return {
                "recall": counted(lambda: memory.recall(asked[0]), wal),
                "remember": counted(remember, wal),
            }
    finally:
        apsw.connection_hooks.remove(hook)


def times(path: Path) -> dict[str, float]:
    """Return the processor time of one recall, remember and open, in microseconds, in a store of many turns."""

    def per_call(call: Callable[[int], object], count: int) -> float:
        begun = time.process_time()
        for number in range(count):
            call(number)
        return (time.process_time() - begun) / count * 1e6

    asked = questions(_QUESTIONS)
    with recollect.open(path, embedder="none") as memory:
        for question in asked[:20]:
            memory.recall(question)
        recall = per_call(lambda number: memory.recall(asked[number]), _QUESTIONS)
        stamp = time.time_ns()
        remember = per_call(lambda number: memory.remember(f"sentence {stamp} {number} of the harbour"), _WRITES)
    opening = per_call(lambda _: recollect.open(path, embedder="none").close(), _OPENS)
    return {"recall": recall, "remember": remember, "open": opening}


def main() -> None:
    """Answer one request: counts, or times of a store, which is written if it is missing."""
    if sys.argv[1] == "counts":
        print(json.dumps(counts()))
        return
    path = Path(sys.argv[2])
    if not path.exists():
        filled(path, TURNS).close()
        with recollect.open(path, embedder="none") as memory:  # writes the index for the processes that follow
            memory.recall(questions(1)[0])
    print(json.dumps(times(path)))


def _asked(python: str, *arguments: str) -> Any:
    return json.loads(subprocess.run([python, __file__, *arguments], capture_output=True, text=True, check=True).stdout)


def cost(other: str, pairs: int = PAIRS) -> dict[str, Any]:
    """Compare this checkout with another one.

    Args:
        other: The Python of the other checkout's environment.
        pairs: Number of pairs of processes.
    """
    own = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        stores = {own: f"{folder}/own.db", other: f"{folder}/other.db"}
        for python, path in stores.items():
            _asked(python, "times", path)  # writes the store
        runs: dict[str, list[dict[str, float]]] = {own: [], other: []}
        for number in range(pairs):
            for python in (own, other) if number % 2 else (other, own):
                runs[python].append(_asked(python, "times", stores[python]))
    found: dict[str, Any] = {"command": "cost", "pairs": pairs, "turns": TURNS, "counts": counts()}
    found["counts_before"] = _asked(other, "counts")
    for name in ("recall", "remember", "open"):
        ratios = sorted(mine[name] / its[name] for mine, its in zip(runs[own], runs[other], strict=True))
        found[name] = {
            "us": statistics.median(each[name] for each in runs[own]),
            "us_before": statistics.median(each[name] for each in runs[other]),
            "ratio": statistics.median(ratios),
            "ratio_min": ratios[0],
            "ratio_max": ratios[-1],
        }
    return found


if __name__ == "__main__":
    main()
