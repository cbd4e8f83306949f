"""The time that every call takes for an input that repeats one kind of token, up to the limit of the call.

The inputs and the calls are from `torture.repeats` and `torture.growth`, which measures the same exactly and at small
sizes. A row is listed if twice the bytes take more than 1.6 times twice the time, or if it takes three times as long as
plain distinct words of as many bytes, or as indexing these if that takes longer: reading ASCII is so cheap that nothing
else could be within a multiple. What a token asks for is paid for by it: a heading is a record.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from torture.growth import FORMS, SURFACES, Surface, a_memory
from torture.repeats import TOKENS
from torture.worst_cases import plain

from bench.measuring import versions
from recollect.errors import RecollectError
from recollect.memory import Memory

#: A call that is faster than this, in seconds, is compared as if it took so long: the clock tells no less.
_LEAST_S = 0.004
#: Twice the bytes may take this many times twice the time, and a kind of token this many times what plain words take.
_MOST_GROWTH, _MOST_TIMES = 1.6, 3.0
#: The bytes of a text for a call that has no limit of its own.
_UNLIMITED = 2**16


def _time(memory: Memory, surface: Surface, text: str) -> float:
    """Return the seconds of the processor's time for a call. One that is refused has a time, too."""
    if surface.is_write:
        memory = a_memory()
    start = time.thread_time()
    with suppress(RecollectError):
        surface.call(memory, text)
    return time.thread_time() - start


def _rows(memory: Memory, name: str, size: int, indexing: float) -> Iterator[dict[str, Any]]:
    """Yield what is dear at a surface."""
    surface = SURFACES[name]
    most = min(size, surface.limit or _UNLIMITED)
    plainly = max(min(_time(memory, surface, plain(most, seed)) for seed in (1, 2)), indexing * most / size, _LEAST_S)
    for form, text in FORMS.items():
        for kind, token in TOKENS.items():
            half, whole = (_time(memory, surface, text(token, bytes_)) for bytes_ in (most // 2, most))
            growth = whole / max(half, _LEAST_S) / 2
            if whole > _LEAST_S and (growth > _MOST_GROWTH or whole > _MOST_TIMES * plainly):
                yield {
                    "call": name,
                    "token": kind,
                    "form": form,
                    "seconds": round(whole, 4),
                    "growth_a_byte": round(growth, 2),
                    "times_plain": round(whole / plainly, 1),
                }


def repeats(size: int) -> dict[str, Any]:
    """Measure every kind of token at every call, with at most `size` bytes."""
    memory = a_memory()
    index = SURFACES["remember"]
    indexing = min(_time(memory, index, plain(size, seed)) for seed in (3, 4, 5))
    rows = [row for name in SURFACES for row in _rows(memory, name, size, indexing)]
    return {
        "command": "repeats",
        "bytes": size,
        "inputs": len(SURFACES) * len(FORMS) * len(TOKENS),
        "indexing_plain_s": round(indexing, 4),
        "growing": sorted(
            (row for row in rows if row["growth_a_byte"] > _MOST_GROWTH), key=lambda row: -row["growth_a_byte"]
        )[:30],
        "dearest": sorted(rows, key=lambda row: -row["times_plain"])[:30],
        "versions": versions(),
    }
