"""The cost of the worst texts, compared with plain distinct words of as many bytes.

The texts are from `torture.worst_cases`: a character for each combination of Unicode properties, repeated and
alternated. Each is remembered with an id and without, read, asked as a question, grepped, filtered and exported, in
processor time; and it is indexed once more to measure memory. A ratio compares a call with the same call on plain
words, or with indexing them if that costs more: folding ASCII is so cheap that no other script could be within a
multiple.
"""

from __future__ import annotations

import io
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any

from torture.worst_cases import cases, plain

import recollect
from bench.measuring import versions
from recollect import filters as f
from recollect.importers import write_jsonl

#: A call that is faster than this, in seconds, is compared as if it took so long: the clock tells no less.
_LEAST_S = 0.002
#: The size of the texts of a first look, in bytes, and how many of them are measured well.
_FIRST_BYTES, _KEPT = 2**14, 25


def _calls(text: str) -> dict[str, Callable[[], object]]:
    """What is done with a text, in this order, by name."""
    limits = recollect.Limits(content_bytes=2**30)
    memory = recollect.open(":memory:", limits=limits, embedder="none")
    other = recollect.open(":memory:", limits=limits, embedder="none")
    question = text.encode()[: limits.question_bytes].decode("utf-8", "ignore")
    return {
        "remember, with id": lambda: memory.remember(text, id="a"),
        "remember": lambda: other.remember(text),
        "recall, indexing": lambda: memory.recall("tea"),
        "recall, asking": lambda: memory.recall(question),
        "grep": lambda: memory.grep("tea"),
        "contains": lambda: memory.find(f.contains("tea")),
        "matches": lambda: memory.find(f.matches("tea")),
        "update": lambda: memory.update("a", content=text + "."),
        "recall, after an update": lambda: memory.recall("tea"),
        "export": lambda: write_jsonl(memory, io.StringIO()),
    }


def _times(text: str, *, quick: bool = False) -> dict[str, float]:
    """Seconds of the processor's time for each call; quick: but for asking with it, which is the dearest for any."""
    out = {}
    for name, call in _calls(text).items():
        if quick and name == "recall, asking":
            continue
        start = time.thread_time()
        call()
        out[name] = time.thread_time() - start
    return out


def _bytes(text: str) -> int:
    """The most of Python's memory that indexing a text takes at a time."""
    calls = _calls(text)
    calls["remember, with id"]()
    tracemalloc.start()
    try:
        calls["recall, indexing"]()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _longest_hold(text: str) -> tuple[float, str]:
    """The longest time, in seconds, that another thread did not run while a text was worked on, and in which call."""
    worst, of = 0.0, ""
    for name, call in _calls(text).items():
        gap = 0.0
        over = threading.Event()
        ready = threading.Event()

        def tick(over: threading.Event = over, ready: threading.Event = ready) -> None:
            nonlocal gap
            last = time.perf_counter()
            ready.set()
            while not over.is_set():
                time.sleep(0.001)
                now = time.perf_counter()
                gap, last = max(gap, now - last), now

        thread = threading.Thread(target=tick)
        thread.start()
        ready.wait()
        call()
        over.set()
        thread.join()
        if gap > worst:
            worst, of = gap, name
    return worst, of


def _ratio(times: dict[str, float], plainly: dict[str, float]) -> tuple[float, str]:
    """The greatest ratio of a call to plain words, and which call."""
    dearest = plainly["recall, indexing"]
    return max((took / max(plainly[name], dearest, _LEAST_S), name) for name, took in times.items())


def _measured(texts: Iterable[str]) -> dict[str, float]:
    """The least for each call of some texts."""
    found = [_times(text) for text in texts]
    return {name: min(each[name] for each in found) for name in found[0]}


def _plain(size: int, first: int) -> dict[str, float]:
    """The times of plain words, each time others: what is known of words is kept."""
    return _measured(plain(size, seed) for seed in range(first, first + 3))


def poison(size: int) -> dict[str, Any]:
    """The ten texts whose dearest call has the greatest ratio to plain words; likewise for memory."""
    sys.setswitchinterval(0.001)
    small = min(size, _FIRST_BYTES)
    plainly = _plain(small, 0)
    looked_at = [(_ratio(_times(case.text(small), quick=True), plainly)[0], case) for case in cases()]
    looked_at.sort(reverse=True)
    text = plain(size)
    plainly, plain_bytes, plain_hold = _plain(size, 10), _bytes(text), _longest_hold(text)
    rows = []
    for _, case in looked_at[:_KEPT]:
        text = case.text(size)
        ratio, call = _ratio(_measured([text] * 2), plainly)
        hold_s, held_in = _longest_hold(text)
        rows.append(
            {
                "text": case.name,
                "time_ratio": round(ratio, 2),
                "call": call,
                "memory_ratio": round(_bytes(text) / plain_bytes, 2),
                "longest_hold_ms": round(1000 * hold_s),
                "held_in": held_in,
            }
        )
    rows.sort(key=lambda row: -float(str(row["time_ratio"])))
    return {
        "command": "poison",
        "bytes": size,
        "texts": len(looked_at),
        "plain_s": {name: round(took, 4) for name, took in plainly.items()},
        "plain_bytes_a_byte": round(plain_bytes / size, 1),
        "plain_longest_hold_ms": round(1000 * plain_hold[0]),
        "worst": rows[:10],
        "most_memory": sorted(rows, key=lambda row: -float(str(row["memory_ratio"])))[:3],
        "longest_hold": max(rows, key=lambda row: int(str(row["longest_hold_ms"]))),
        "versions": versions(),
    }
