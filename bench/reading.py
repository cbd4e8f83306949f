"""The speed at which this core reads memory sequentially: the yardstick of the searches."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

#: Of an SDR: 4096 bits.
WORDS = 64


def reading(rows: NDArray[np.uint64]) -> Callable[[], object]:
    """What reads all of some rows once, as fast as NumPy can: it adds their words up."""
    return rows.reshape(-1).sum


def best_ms(call: Callable[[], object], times: int) -> float:
    """The shortest of so many runs: all else is somebody else's work on this machine."""
    out = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        out.append(time.perf_counter() - began)
    return min(out) * 1000


def bandwidth(bytes_: int = 2**28, times: int = 15) -> float:
    """Bytes a second that this core reads of so many in order, at best.

    It is the memory's as long as they are four times what the last cache holds. Source: J. McCalpin, STREAM, run rules.
    """
    words = np.arange(bytes_ // 8, dtype=np.uint64)
    return words.nbytes / best_ms(reading(words), times) * 1000
