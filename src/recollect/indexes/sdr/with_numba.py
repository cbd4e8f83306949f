"""Search of SDRs, compiled by numba: see `sdr.types` for the interface, and `with_numpy` for the same in NumPy.

The sums of the base's rows are collected bit by bit in one column, which fits the processor's cache at a hundred
thousand rows. Then the column is scanned in blocks, and a block is skipped if its greatest sum cannot be among the best
so far. Loops over whole columns are written so that the compiler vectorises them. numba is imported with this module.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import Ints
from recollect.indexes.kernels.numba.compiling import compiled, finished
from recollect.indexes.sdr.encoding import BITS, Sdrs
from recollect.indexes.sdr.rows import based, rows_of
from recollect.indexes.sdr.types import FACTOR_BITS, Base, Found, Query, Rows

#: Number of rows in a block: enough to compare many at once, few enough that blocks are often skipped.
_BLOCK = 64


@compiled
def _gather(postings: Any, starts: Any, bits: Any, weights: Any, sums: Any) -> None:
    """Add the weights of bits to the sums of the rows that have them."""
    for bit in bits:
        weight = weights[bit]
        part = postings[starts[bit] : starts[bit + 1]]
        fours = len(part) - len(part) % 4
        for at in range(0, fours, 4):  # four loads at once: the compiler cannot know that they are independent
            one, two, three, four = part[at], part[at + 1], part[at + 2], part[at + 3]
            sums[one] += weight
            sums[two] += weight
            sums[three] += weight
            sums[four] += weight
        for at in range(fours, len(part)):
            sums[part[at]] += weight


@compiled
def _gather_common(flags: Any, rows: Any, weights: Any, sums: Any) -> None:
    """Add the weights of common bits, which are plain columns, to the sums of the rows that have them."""
    fours = len(rows) - len(rows) % 4
    for at in range(0, fours, 4):
        one, two, three, four = flags[rows[at]], flags[rows[at + 1]], flags[rows[at + 2]], flags[rows[at + 3]]
        first, second, third, fourth = weights[at], weights[at + 1], weights[at + 2], weights[at + 3]
        for place in range(len(sums)):
            sums[place] += (
                (first & one[place]) + (second & two[place]) + (third & three[place]) + (fourth & four[place])
            )
    for at in range(fours, len(rows)):
        one, first = flags[rows[at]], weights[at]
        for place in range(len(sums)):
            sums[place] += first & one[place]


@compiled
def _value(total: Any, size: Any, inverse: int, shift: int, factors: Any, add: int) -> Any:
    return ((total * inverse >> shift) * factors[size] >> FACTOR_BITS) + add


@compiled
def _most(block: Any) -> Any:
    """Return the maximum of a block. The loop runs from 0 to its length, so that the compiler can vectorise it."""
    out = block[0]
    for place in range(len(block)):
        out = max(out, block[place])
    return out


@compiled
def _below(one_value: Any, one_number: Any, value: Any, number: Any) -> Any:
    """Return whether the first ranks below the second."""
    return one_value < value or (one_value == value and one_number > number)


@compiled
def _offer(values: Any, numbers: Any, places: Any, size: int, value: Any, number: Any, place: Any) -> Any:
    """Insert a row into the heap of the best rows if it ranks high enough, and return the heap's new size.

    The lowest of the best rows is on top.
    """
    if size < len(values):
        at = size
        size += 1
        while at > 0:
            up = (at - 1) >> 1
            if _below(values[up], numbers[up], value, number):
                break
            values[at], numbers[at], places[at] = values[up], numbers[up], places[up]
            at = up
    elif _below(values[0], numbers[0], value, number):
        at = 0
        while True:
            down = 2 * at + 1
            if down >= size:
                break
            other = down + 1
            if other < size and _below(values[other], numbers[other], values[down], numbers[down]):
                down = other
            if _below(value, number, values[down], numbers[down]):
                break
            values[at], numbers[at], places[at] = values[down], numbers[down], places[down]
            at = down
    else:
        return size
    values[at], numbers[at], places[at] = value, number, place
    return size


@compiled
def _best(
    numbers: Any,
    bits: Any,
    offsets: Any,
    alive: Any,
    sizes: Any,
    postings: Any,
    starts: Any,
    common: Any,
    flags: Any,
    tail_numbers: Any,
    tail_bits: Any,
    tail_offsets: Any,
    tail_alive: Any,
    query: Any,
    weights: Any,
    penalty: int,
    inverse: int,
    shift: int,
    factors: Any,
    add: int,
    least: int,
    sums: Any,
    best_numbers: Any,
    best_values: Any,
    hamming: Any,
) -> Any:
    count, wanted = len(sizes), len(best_values)
    by = np.int32(-penalty)
    for place in range(count):
        sums[place] = by * np.int32(sizes[place])
    rows = common[query]
    _gather_common(flags, rows[rows >= 0], weights[query[rows >= 0]], sums)
    _gather(postings, starts, query[rows < 0], weights, sums)
    best_places = np.empty(wanted, np.int64)
    size = 0
    bar = -((add - least << shift) // inverse)  # no smaller sum reaches `least`, since no factor is above 1
    for begin in range(0, count, _BLOCK):
        end = min(begin + _BLOCK, count)
        if _most(sums[begin:end]) < bar:
            continue
        for place in range(begin, end):
            if sums[place] < bar or not alive[place]:
                continue
            value = _value(sums[place], sizes[place], inverse, shift, factors, add)
            if value >= least:
                size = _offer(best_values, best_numbers, best_places, size, value, numbers[place], place)
                if size == wanted:
                    bar = -((add - best_values[0] << shift) // inverse)
    for place in range(len(tail_numbers)):
        if not tail_alive[place]:
            continue
        begin, end = tail_offsets[place], tail_offsets[place + 1]
        total = -penalty * (end - begin)
        for at in range(begin, end):
            total += weights[tail_bits[at]]
        value = _value(total, end - begin, inverse, shift, factors, add)
        if value >= least:
            size = _offer(best_values, best_numbers, best_places, size, value, tail_numbers[place], count + place)
    for hit in range(size):
        place = best_places[hit]
        if place < count:
            row = bits[offsets[place] : offsets[place + 1]]
        else:
            row = tail_bits[tail_offsets[place - count] : tail_offsets[place - count + 1]]
        differ = len(query) + len(row)
        for bit in row:
            if weights[bit]:
                differ -= 2
        hamming[hit] = differ
    return size


class NumbaSdr:
    name = "numba"

    def __init__(self) -> None:
        # One column of sums is kept for the next question. `pop` and `append` of a deque are thread-safe.
        self._free: deque[NDArray[np.int32]] = deque(maxlen=1)

    def best(self, base: Base, tail: Rows, query: Query, wanted: int) -> Found:
        count = len(base.sizes)
        try:
            sums = self._free.pop()
        except IndexError:
            sums = np.empty(0, dtype=np.int32)
        if len(sums) < count:
            sums = np.empty(count + count // 4, dtype=np.int32)
        room = max(min(wanted, count + len(tail.numbers)), 0)
        numbers, values, hamming = (np.empty(room, dtype=np.int64) for _ in range(3))
        size = 0
        if room:
            size = _best(*base.rows, *base[1:], *tail, *query, sums[:count], numbers, values, hamming)
        self._free.append(sums)
        out: tuple[Ints, Ints, Ints] = numbers[:size], values[:size], hamming[:size]
        return Found(*out)


def loaded() -> NumbaSdr:
    """Return the kernels, compiled for the types that they are called with."""
    return finished(loading())


def loading() -> Generator[None, None, NumbaSdr]:
    """Do as `loaded`, in a single step."""
    kernels = NumbaSdr()
    rows = rows_of([1], Sdrs(np.array([1], dtype=np.uint16), np.array([0, 1], dtype=np.int64)))
    weights = np.zeros(BITS, dtype=np.int32)
    weights[1] = 1
    factors = np.full(BITS + 1, 1 << FACTOR_BITS, dtype=np.int64)
    kernels.best(based(rows), rows, Query(np.array([1]), weights, 0, 1, 0, factors, 0, 1), 1)
    yield
    return kernels
