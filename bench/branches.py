"""`python -m bench branches`: what branches cost, in durable commits and recalls of the same run.

Creating a branch, its first write, reading one that was not written, a thousand branches beside main, and merges of
few and of many changes. A durable commit is one `remember` to main, measured around each figure.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import recollect
from bench.cost import questions, turns
from bench.measuring import versions

_ROUNDS, _BRANCHES, _WRITTEN, _RECALLS = 7, 1_000, 50, 200
_FEW, _MANY = 10, 1_000


def _seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


class _Unit:
    """A durable commit, by which other times are divided."""

    def __init__(self, memory: recollect.Memory) -> None:
        self._memory = memory
        self._number = 0

    def _write(self) -> None:
        self._number += 1
        self._memory.remember(f"a unit of measurement {self._number}")

    def seconds(self) -> float:
        """Return the median of some durable commits."""
        return statistics.median(_seconds(self._write) for _ in range(9))

    def of(self, call: Callable[[], object]) -> float:
        """Return the time of a call in durable commits, measured before and after it."""
        before = self.seconds()
        spent = _seconds(call)
        return spent / statistics.mean((before, self.seconds()))


def _used_bytes(path: Path) -> int:
    """Return the bytes of a store that is closed, without the pages that are free."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        pages, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
    return int((pages - free) * size)


def _summary(values: list[float]) -> dict[str, float]:
    return {
        "median": round(statistics.median(values), 2),
        "least": round(min(values), 2),
        "most": round(max(values), 2),
    }


def branches(records: int) -> dict[str, Any]:
    """Measure branches of a memory with this many records."""
    items, asked = turns(records), questions(_RECALLS)
    found: dict[str, Any] = {"versions": versions(), "records": records}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with recollect.open(folder / "a.db", embedder="none") as memory:
            memory.remember_all(items)
            memory.recall(asked[0])
            unit = _Unit(memory)
            found |= _creating(memory, unit, asked)
            found["merges"] = _merging(memory, unit)
        found["beside"] = _many(folder, items[: min(records, 10_000)], asked)
    return found


def _creating(memory: recollect.Memory, unit: _Unit, asked: list[str]) -> dict[str, Any]:
    created, first_reads, first_writes, following = [], [], [], []
    for number in range(_ROUNDS):
        created.append(unit.of(lambda number=number: memory.branch(f"b{number}")))  # type: ignore[misc]
        branch = memory.on(f"b{number}")
        memory.remember(f"main goes on {number}")
        present = statistics.median(_seconds(lambda each=each: memory.recall(each)) for each in asked[:20])  # type: ignore[misc]
        first_reads.append(_seconds(lambda branch=branch: branch.recall(asked[0])) / present)  # type: ignore[misc]
        first_writes.append(unit.of(lambda branch=branch: branch.remember("written first")))  # type: ignore[misc]
        following.append(unit.of(lambda branch=branch: branch.remember("written next")))  # type: ignore[misc]
    return {
        "create, in durable commits": _summary(created),
        "first recall of a branch that was not written, in recalls of main": _summary(first_reads),
        "first write, in durable commits": _summary(first_writes),
        "next write, in durable commits": _summary(following),
    }


def _merging(memory: recollect.Memory, unit: _Unit) -> dict[str, Any]:
    """Merge few and many changes: the cost goes with the changes, not with the records."""
    out = {}
    for count in (_FEW, _MANY):
        spent = []
        for number in range(3):
            branch = memory.branch(f"merged {count} {number}")
            branch.remember_all([f"a change {number} of {count}, number {each}" for each in range(count)])
            memory.remember(f"main goes on {count} {number}")
            spent.append(unit.of(lambda name=branch.branch_name: memory.merge_branch(name)))  # type: ignore[misc]
        out[f"{count} changes, in durable commits"] = _summary(spent)
    return out


def _many(folder: Path, items: list[dict[str, Any]], asked: list[str]) -> dict[str, Any]:
    """Compare main with a thousand branches beside it and without, in turns."""
    paths = {kind: folder / f"{kind}.db" for kind in ("alone", "beside")}
    for path in paths.values():
        with recollect.open(path, embedder="none") as memory:
            memory.remember_all(items)
    before = _used_bytes(paths["beside"])
    with recollect.open(paths["beside"], embedder="none") as memory:
        for number in range(_BRANCHES):
            memory.branch(f"b{number}")
    size = (_used_bytes(paths["beside"]) - before) / _BRANCHES
    pair = {kind: recollect.open(path, embedder="none") for kind, path in paths.items()}
    for memory in pair.values():
        memory.recall(asked[0])
    for number in range(_WRITTEN):
        pair["beside"].on(f"b{number}").remember("written")
    recalls: dict[str, list[float]] = {"alone": [], "beside": []}
    writes: dict[str, list[float]] = {"alone": [], "beside": []}
    for number in range(_ROUNDS):
        for kind in ("alone", "beside", "beside", "alone"):
            memory = pair[kind]
            begun = time.process_time()
            for each in asked:
                memory.recall(each)
            recalls[kind].append(time.process_time() - begun)
            begun = time.process_time()
            for fact in range(20):
                memory.remember(f"a fact {number} {fact} {len(writes[kind])}")
            writes[kind].append(time.process_time() - begun)
    recall = statistics.median(recalls["beside"]) / len(asked)
    listed = statistics.median(_seconds(pair["beside"].branches) for _ in range(9))
    for memory in pair.values():
        memory.close()

    def ratio(values: dict[str, list[float]]) -> float:
        return round(statistics.median(values["beside"]) / statistics.median(values["alone"]), 3)

    return {
        "branches": _BRANCHES,
        "of them written": _WRITTEN,
        "bytes of the store for one that is not written": round(size),
        "list all, in recalls": round(listed / recall, 1),
        "recall of main, beside them / alone": ratio(recalls),
        "write to main, beside them / alone": ratio(writes),
    }
