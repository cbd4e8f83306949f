"""What a node needs for the memories that it serves: a process of its own measures itself, for `bench.sizes`.

Its arguments are a task, the address of a store and numbers; it prints one JSON object.
"""

from __future__ import annotations

import ctypes
import gc
import json
import logging
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

import recollect
from bench.cost import questions
from bench.measuring import resident_bytes
from recollect.engine.index.keeper import KEPT_FROM
from recollect.memory import Memory
from recollect.testing.loopback import core_of

WARM, ROUNDS = 200, 5


def main() -> None:
    """Do what the arguments say."""
    logging.getLogger("recollect").setLevel(logging.ERROR)
    task, address, *numbers = sys.argv[1:]
    print(json.dumps(TASKS[task](address, *map(int, numbers))))


def index(address: str, count: int) -> dict[str, Any]:
    """Return the memory of a word index a record: after one recall, and after many, which fill its caches."""
    with recollect.open(address, "0", embedder="none") as memory:
        _warm_up(memory)
        before, out = _memory_of(memory), {}
        for asked in (1, WARM):
            for each in questions(asked):
                memory.recall(each)
            out[f"after {asked} recalls"] = _grown(memory, before, count)
        return {"process_bytes": before[1], "index a record": out}


def idle(address: str, count: int) -> dict[str, Any]:
    """Return the memory of small memories, each: after a recall of each, and after a write to each, too."""
    with recollect.open(address, "0", embedder="none") as memory:
        _warm_up(memory)
        before, out = _memory_of(memory), {}
        each = [memory.namespace(str(number)) for number in range(count)]
        for one in each:
            one.recall("What did Ana say about the harbour?")
        out["after a recall"] = _grown(memory, before, count)
        for one in each:
            one.remember("A note that is written later")
            one.recall("What did Ana say about the harbour?")
        out["after a recall and a write"] = _grown(memory, before, count)
        return {"a small memory": out}


def cold(address: str, name: int, count: int) -> dict[str, Any]:
    """Return the time of a warm recall, and of the first one: built, from the shared table, and from the file.

    Processor time is that of the process until the memory is closed, so it contains sharing what was built.
    """
    cache, asked = Path(address.partition("&cache=")[2]), questions(WARM)
    kinds = ("file", "table", "built") if count >= KEPT_FROM else ("built",)
    taken: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for _ in range(ROUNDS):
        for kind in kinds:
            if kind != "file":
                shutil.rmtree(cache, ignore_errors=True)
            if kind == "built":
                _forget_shared(address)
            with recollect.open(address, str(name), embedder="none") as memory:
                memory.count()
                began, processor = time.perf_counter(), time.process_time()
                memory.recall(asked[0])
                took = time.perf_counter() - began
            taken[kind].append((took, time.process_time() - processor))
    with recollect.open(address, str(name), embedder="none") as memory:
        for each in asked:
            memory.recall(each)
        began, processor = time.perf_counter(), time.process_time()
        for each in asked:
            memory.recall(each)
        taken["warm"] = [((time.perf_counter() - began) / WARM, (time.process_time() - processor) / WARM)]
    return {
        kind: {
            "wall_ms": statistics.median(wall for wall, _ in times) * 1000,
            "node_ms": statistics.median(processor for _, processor in times) * 1000,
        }
        for kind, times in taken.items()
    }


def recalls(address: str, count: int) -> dict[str, Any]:
    """Recall often in a memory."""
    with recollect.open(address, "0", embedder="none") as memory:
        for each in questions(count):
            memory.recall(each)
    return {}


TASKS: dict[str, Callable[..., dict[str, Any]]] = {"index": index, "idle": idle, "cold": cold, "recalls": recalls}


def _forget_shared(address: str) -> None:
    """Delete the segments that machines share."""
    dsn, _, rest = address.partition("&schema=")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"DELETE FROM {rest.partition('&')[0]}.segments".encode())


def _warm_up(memory: Memory) -> None:
    """Load the modules and tables that the first recall and the first write of a process load."""
    other = memory.namespace("to warm up")
    other.remember_all([f"A note about the harbour, number {number}" for number in range(20)])
    for each in questions(20):
        other.recall(each)


def _memory_of(memory: Memory) -> tuple[int, int]:
    """Return the bytes of all word indexes as the engine counts them, and the resident memory of the process."""
    gc.collect()
    with suppress(OSError, AttributeError):  # free memory is returned where the C library can do so
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    keeper = core_of(memory).keeper
    entries = [keeper.entries.peek(key) for key in keeper.entries]
    values = [entry.value for entry in entries if entry is not None]
    return sum(keeper.nbytes(value) for value in values if value is not None), resident_bytes()


def _grown(memory: Memory, before: tuple[int, int], count: int) -> dict[str, float]:
    counted, resident = _memory_of(memory)
    return {"counted_bytes": (counted - before[0]) / count, "resident_bytes": (resident - before[1]) / count}
