"""The longest call in a long run of mixed writes: is there a pause that a user would notice?

Of ten operations, eight remember, one updates and one forgets, in a seeded order. After every hundred comes a recall,
so that indexes are kept up to date. Durability is "normal", because the sync of the disk would hide our own work. Also
measured: how long threads of the store (checkpoints) block writers, and how long Python's garbage collector runs. The
millions of objects of the measurement itself (texts, ids, times) are in arrays, which the collector does not traverse;
in lists they would take most of its time.
"""

from __future__ import annotations

import gc
import random
import tempfile
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import recollect
from bench.corpus import cache_folder, corpus, questions
from bench.measuring import milliseconds, percentile, versions
from recollect.indexes.documents.string_table import Pieces
from recollect.stores.write_queue import Ticket, WriteQueue

RECALL_EVERY = 100


@contextmanager
def held_in_background() -> Iterator[list[float]]:
    """How many milliseconds each turn to write took that a thread of the store's own had."""
    taken: dict[Ticket, float] = {}
    times: list[float] = []
    take, release = WriteQueue.take, WriteQueue.release

    def timed_take(self: WriteQueue, ticket: Ticket, timeout_s: float = -1) -> bool:
        got = take(self, ticket, timeout_s)
        if threading.current_thread().name.startswith("recollect-"):
            taken[ticket] = time.perf_counter()
        return got

    def timed_release(self: WriteQueue, ticket: Ticket) -> None:
        release(self, ticket)
        if ticket in taken:
            times.append((time.perf_counter() - taken.pop(ticket)) * 1000)

    WriteQueue.take, WriteQueue.release = timed_take, timed_release  # type: ignore[method-assign]
    try:
        yield times
    finally:
        WriteQueue.take, WriteQueue.release = take, release  # type: ignore[method-assign]


@contextmanager
def looks_at_all_objects() -> Iterator[list[float]]:
    """How many milliseconds the collector took each time that it looked at all objects."""
    times: list[float] = []
    began = 0.0

    def note(phase: str, about: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = time.perf_counter()
        elif about["generation"] == 2:
            times.append((time.perf_counter() - began) * 1000)

    gc.callbacks.append(note)
    try:
        yield times
    finally:
        gc.callbacks.remove(note)


def pauses(operations: int) -> dict[str, Any]:
    """The latencies of so many operations on a store that begins empty."""
    source = corpus()
    texts = source.texts(operations)
    asked = questions(texts, 1000)
    told = Pieces.of([text.encode("ascii") for text in texts])
    del texts
    rng = random.Random(6)
    times = {name: array("d") for name in ("remember", "update", "forget", "recall")}
    stored = np.zeros(operations, dtype="S36")  # ids, as they are derived: UUIDs
    count = 0
    with (
        held_in_background() as background,
        looks_at_all_objects() as looks,
        tempfile.TemporaryDirectory(dir=cache_folder()) as folder,
        recollect.open(Path(folder) / "pauses.db", durability="normal") as memory,
    ):

        def timed(name: str, call: Callable[..., object], *arguments: object) -> None:
            times[name].append(milliseconds(call, *arguments))

        def remember(text: str) -> None:
            stored[count] = memory.remember(text).id

        def update(id_: str, importance: float) -> None:
            memory.update(id_, importance=importance)

        for at in range(operations):
            share = rng.random()
            place = rng.randrange(count) if count else 0
            chosen = stored[place].decode("ascii")
            if share < 0.8 or not count:
                timed("remember", remember, told[at].decode("ascii"))
                count += 1
            elif share < 0.9:
                timed("update", update, chosen, rng.random())
            else:
                timed("forget", memory.forget, chosen)
                count -= 1
                stored[place] = stored[count]
            if at % RECALL_EVERY == RECALL_EVERY - 1:
                timed("recall", memory.recall, asked[at // RECALL_EVERY % len(asked)])
        left = memory.count()
    return {
        "command": "pauses",
        "records": operations,
        "records_at_the_end": left,
        "worst_ms": max(map(max, filter(None, times.values()))),
        "worst_write_ms": max(max(some) for name, some in times.items() if some and name != "recall"),
        "background": _spread(background) if background else None,
        "collector": _spread(looks) if looks else None,
        "p999_ms": percentile([each for some in times.values() for each in some], 0.999),
        **{name: _spread(some) for name, some in times.items() if some},
        **source.to_json(),
        "versions": versions(),
    }


def _spread(times: Sequence[float]) -> dict[str, Any]:
    shares = {"p50_ms": 0.5, "p99_ms": 0.99, "p999_ms": 0.999}
    return {
        "n": len(times),
        **{name: percentile(times, share) for name, share in shares.items()},
        "worst_ms": max(times),
    }
