"""The longest recalls while others write: does anything in the background stall a reader?

One thread asks questions without a break. Another writes to the same store: of ten operations, eight add a turn to the
end of a conversation, one updates a record and one forgets one. Another process adds turns to it, too, so
that the index catches up with commits of others. Enough is written in ten minutes that the index is merged and saved
several times.

Unlike other measurements, this one uses all cores: what runs in the background is meant to run beside the recalls.
As in a server, what is loaded at the start is exempt from garbage collection.

A stall is a recall that takes more than 20 ms. For each is measured how long its thread computed and how long Python's
garbage collector ran. The machine itself also stalls: another process does nothing but sleep for a millisecond at a
time, and reports when it overslept by 10 ms or more. Stalls at these times are counted apart.
"""

from __future__ import annotations

import gc
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import recollect
from bench import stores
from bench.corpus import cache_folder
from bench.dialogues import Turn, dialogues
from bench.measuring import CORES, ROOT, percentile, percentiles, told, versions
from bench.peers import K
from recollect.engine.follower import Tagged
from recollect.engine.index.keeper import IndexKeeper
from recollect.ledger.commits import Branch

#: A recall that takes longer is a stall.
STALL_MS = 20.0
#: Pauses between the writes of this process and of the other one, in seconds.
_PAUSE_S, _OTHER_PAUSE_S = 0.02, 0.1
#: The number of turns that are written, again and again, and of records that are changed.
_WRITTEN = 5000
#: What the other process runs: it prints nothing, and ends with its input.
_OTHER = """
import select, sys
from itertools import cycle
import recollect
path, pause, *texts = sys.argv[1:]
with recollect.open(path) as memory:
    for text in cycle(texts):
        if select.select([sys.stdin], [], [], float(pause))[0]:
            break
        memory.remember(text, kind="conversation", conversation="other", session="other", speaker="Ana")
"""
#: Prints when it overslept, by the clock that all processes share.
_SLEEPER = """
import select, sys, time
before = time.perf_counter()
while not select.select([sys.stdin], [], [], 0.001)[0]:
    now = time.perf_counter()
    if now - before > 0.011:
        print(before, now)
    before = now
"""


class Times:
    """Of each recall, when it began and ended, and how long its thread computed and the collector ran, in ms.

    They are in arrays, which the collector does not traverse.
    """

    def __init__(self) -> None:
        self.began, self.ended, self.computed, self.collected = array("d"), array("d"), array("d"), array("d")

    @property
    def ms(self) -> list[float]:
        return [(end - begin) * 1000 for begin, end in zip(self.began, self.ended, strict=True)]

    def described(self, at: int) -> dict[str, float]:
        figures = {
            "at_s": self.began[at] - self.began[0],
            "ms": (self.ended[at] - self.began[at]) * 1000,
            "computed_ms": self.computed[at],
            "collected_ms": self.collected[at],
        }
        return {name: round(value, 1) for name, value in figures.items()}


@contextmanager
def _collecting() -> Iterator[list[float]]:
    """The milliseconds that the garbage collector has run, in one number that grows."""
    ran, began = [0.0], 0.0

    def note(phase: str, _: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = time.perf_counter()
        else:
            ran[0] += (time.perf_counter() - began) * 1000

    gc.callbacks.append(note)
    try:
        yield ran
    finally:
        gc.callbacks.remove(note)


@contextmanager
def _merging() -> Iterator[list[float]]:
    """When merges of the index began."""
    times: list[float] = []
    merge = IndexKeeper._merge_now

    def noted(self: IndexKeeper, branch: Branch, entry: Tagged[Any]) -> None:
        times.append(time.perf_counter())
        merge(self, branch, entry)

    IndexKeeper._merge_now = noted  # type: ignore[method-assign]
    try:
        yield times
    finally:
        IndexKeeper._merge_now = merge  # type: ignore[method-assign]


def _write(memory: recollect.Memory, turns: list[Turn], ids: list[str], ended: threading.Event) -> int:
    """Write until the end, and return the number of writes. The ids are those of the records that are changed."""
    rng = random.Random(4)
    for place in count():
        if ended.wait(_PAUSE_S):
            return place
        share, turn = rng.random(), turns[place % len(turns)]
        if share < 0.8:
            ids.append(
                memory.remember(
                    turn.text,
                    kind="conversation",
                    conversation=f"new {turn.conversation}",
                    session=f"{turn.session}/{place // len(turns)}",
                    speaker=turn.speaker,
                ).id
            )
        elif share < 0.9:
            memory.update(rng.choice(ids), importance=rng.random())
        else:
            memory.forget(ids.pop(rng.randrange(len(ids))))
    raise AssertionError("there is always a next place")


@contextmanager
def _process(code: str, *arguments: str) -> Iterator[Callable[[], str]]:
    """Another process. The function that is yielded ends it and returns what it printed."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield lambda: process.communicate("\n")[0]
    finally:
        process.kill()
        process.wait()


def stalls(records: int, seconds: int) -> dict[str, Any]:
    """The latencies of recalls in so many seconds of mixed load on a store of conversations."""
    if CORES:
        os.sched_setaffinity(0, CORES)
    source = dialogues()
    asked, about = source.questions(1000), source.to_json()
    turns = source.turns(records)[:_WRITTEN]
    kept = stores.of_dialogues(source, records)
    del source  # the collector would look at all turns
    times = Times()
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        with told("copying the store"):
            shutil.copytree(kept.parent, folder, dirs_exist_ok=True)
        path = Path(folder) / kept.name
        ended = threading.Event()
        with (
            recollect.open(path) as memory,
            ThreadPoolExecutor(1) as pool,
            _collecting() as collected,
            _merging() as merges,
            _process(_OTHER, str(path), str(_OTHER_PAUSE_S), *(turn.text for turn in turns[:200])) as other,
            _process(_SLEEPER) as sleeper,
        ):
            ids = [f"t{at}" for at in range(len(turns))]
            for question in asked:  # compiles patterns, too
                memory.recall(question, K)
            gc.freeze()
            before = memory.seq
            writing = pool.submit(_write, memory, turns, ids, ended)
            end = time.perf_counter() + seconds
            try:
                while time.perf_counter() < end:
                    question = asked[len(times.began) % len(asked)]
                    cpu, ran, began = time.thread_time(), collected[0], time.perf_counter()
                    memory.recall(question, K)
                    times.ended.append(time.perf_counter())
                    times.began.append(began)
                    times.computed.append((time.thread_time() - cpu) * 1000)
                    times.collected.append(collected[0] - ran)
            finally:
                ended.set()
            other()
            overslept = [tuple(map(float, line.split())) for line in sleeper().splitlines()]
            commits = memory.seq - before
    ms = times.ms
    slow = [at for at, each in enumerate(ms) if each > STALL_MS]
    of_machine = {
        at for at in slow if any(begin < times.ended[at] and times.began[at] < end for begin, end in overslept)
    }
    own = [at for at in slow if at not in of_machine]
    return {
        "command": "stalls",
        "records": records,
        "seconds": seconds,
        "recalls": len(ms),
        "writes": writing.result(),
        "commits": commits,
        "merges": len(merges),
        **percentiles(ms),
        "p999_ms": percentile(ms, 0.999),
        "stalls": {
            "all": len(slow),
            "while_the_machine_stalled": len(of_machine),
            "own": len(own),
            "own_without_the_collector": sum(ms[at] - times.collected[at] > STALL_MS for at in own),
            "own_longest_ms": max((ms[at] for at in own), default=0.0),
            "longest": [times.described(at) for at in sorted(own, key=ms.__getitem__, reverse=True)[:20]],
        },
        "machine": {"overslept": len(overslept), "longest_ms": max(((b - a) * 1000 for a, b in overslept), default=0)},
        **about,
        "versions": versions(),
    }
