"""The kernels compiled by numba: see `indexes.kernels` for what each gives, and `numpy_kernels` for the same in NumPy.

Terms are taken one at a time. What a document has gathered stands in one row of a scratch table, which is all zeros
between questions: a row is a line of the processor's cache, and only those that are touched are visited again.

This is the one module that imports numba, which takes most of a second. What it compiles is kept in numba's cache;
where no place for that can be written, it is compiled in every process that comes so far.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents import NONE, Documents, Flags, Ints, Numbers, Table
from recollect.indexes.fixed import BITS, ONE, SHARE_BITS
from recollect.indexes.kernels import SHARES, Matched, Postings, Reached, Weights
from recollect.indexes.recipe import (
    AFTER_QUESTION,
    ANSWER,
    DONOR_CAP,
    FROM_AFTER,
    FROM_BEFORE,
    PIVOT_CONSTANT,
    PIVOT_SLOPE,
    SESSION_SHARE,
    SPEAKER,
    TOP,
)
from recollect.indexes.segments import MOST_COUNT, PLACE_BITS

# Columns of a scratch row. A pivot is above 0, so it also tells that the row is in use.
_OWN, _MASS, _WORDS, _TRIGRAM, _CONTEXT, _PIVOT, _PAIR = range(7)
_ROW = 8
_SHARES = len(SHARES)
_TOP, _BELOW = TOP
_STEPS = len(FROM_BEFORE)
_SPEAKER, _BY_SPEAKER = SPEAKER
_ANSWER, _BY_ANSWER = ANSWER


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as numba compiles it, from its cache where there is one."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        made = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # there is nowhere to keep it
        made = numba.njit(**options)(function)
    out: Callable[..., Any] = made
    return out


@_compiled
def _quotient(above: Any, below: Any, inverse: Any) -> Any:
    """above // below for numbers of which neither is negative and the quotient is below 2^52, without dividing."""
    out = np.int64(above * inverse)
    rest = above - out * below
    while rest < 0:
        out -= 1
        rest += below
    while rest >= below:
        out += 1
        rest -= below
    return out


@_compiled
def _pivot_of(number: Any, count: Any, length: Any, asks: Any, before: Any, after: Any) -> Any:
    total = np.int64(length[number]) << BITS
    at = np.int64(before[number])
    for step in range(_STEPS):
        if at == NONE or at >= count:
            break
        lending = FROM_BEFORE[step]
        if step == 0 and asks[at]:
            lending += AFTER_QUESTION
        total += (np.int64(min(length[at], DONOR_CAP)) * lending << BITS) // 10
        at = np.int64(before[at])
    at = np.int64(after[number])
    for step in range(_STEPS):
        if at == NONE or at >= count:
            break
        total += (np.int64(min(length[at], DONOR_CAP)) * FROM_AFTER[step] << BITS) // 10
        at = np.int64(after[at])
    return PIVOT_CONSTANT + total * PIVOT_SLOPE // 10_000


@_compiled
def _tally(base: Any, tail: Any, spans: Any, alive: Any, session: Any, stamps: Any, out: Any) -> None:
    for term in range(len(spans)):
        for part in range(2):
            column = base if part == 0 else tail
            at, end = spans[term, 2 * part], spans[term, 2 * part + 1]
            while at < end:
                number = column[at] >> PLACE_BITS
                begin = at
                at += 1
                while at < end and column[at] >> PLACE_BITS == number:
                    at += 1
                if not alive[number]:
                    continue
                out[term, 0] += 1
                out[term, 1] += min(at - begin, MOST_COUNT)
                which = session[number]
                if which != NONE and stamps[which] != term + 1:
                    stamps[which] = term + 1
                    out[term, 2] += 1


@_compiled
def _reach(
    base: Any,
    tail: Any,
    spans: Any,
    count: int,
    alive: Any,
    length: Any,
    asks: Any,
    before: Any,
    after: Any,
    session: Any,
    lengths: Any,
    by_term: Any,
    by_session: Any,
    like: Any,
    whole: int,
    pairs: Any,
    sessions: int,
    tokens: int,
    forced: Any,
    rows: Any,
    reach: Any,
    touched: Any,
    masses: Any,
    sums: Any,
    met: Any,
) -> tuple[Any, Any]:
    used = 0
    seen = 0  # sessions of `met` that have a sum
    by_whole = 1.0 / whole
    rise = 9 * sessions * ONE // 10
    for term in range(len(spans)):
        weight = by_term[term]
        reached = 0
        now = seen  # those of this term stand behind those that were met before
        for part in range(2):
            column = base if part == 0 else tail
            at, end = spans[term, 2 * part], spans[term, 2 * part + 1]
            while at < end:
                number = column[at] >> PLACE_BITS
                begin = at
                at += 1
                while at < end and column[at] >> PLACE_BITS == number:
                    at += 1
                if not alive[number]:
                    continue
                times = min(at - begin, MOST_COUNT)
                row = rows[number]
                if row[_MASS] == 0:
                    reach[reached] = number
                    reached += 1
                row[_OWN] += times << BITS
                row[_MASS] += times << BITS
                which = session[number]
                if which == NONE:
                    continue
                if tokens:
                    if masses[which] == 0:
                        met[now] = which
                        now += 1
                    masses[which] += times
                lent = (times * DONOR_CAP << BITS) // max(np.int64(length[number]), DONOR_CAP)
                there = np.int64(after[number])
                for step in range(_STEPS):
                    if there == NONE or there >= count:
                        break
                    lending = FROM_BEFORE[step]
                    if step == 0 and asks[number]:
                        lending += AFTER_QUESTION
                    given = lent * lending // 10
                    if given > 0:
                        if rows[there, _MASS] == 0:
                            reach[reached] = there
                            reached += 1
                        rows[there, _MASS] += given
                    there = np.int64(after[there])
                there = np.int64(before[number])
                for step in range(_STEPS):
                    if there == NONE or there >= count:
                        break
                    given = lent * FROM_AFTER[step] // 10
                    if given > 0:
                        if rows[there, _MASS] == 0:
                            reach[reached] = there
                            reached += 1
                        rows[there, _MASS] += given
                    there = np.int64(before[there])
        for place in range(reached):
            number = np.int64(reach[place])
            row = rows[number]
            pivot = row[_PIVOT]
            if pivot == 0:
                pivot = _pivot_of(number, count, length, asks, before, after)
                row[_PIVOT] = pivot
                touched[used] = number
                used += 1
            mass, own = row[_MASS], row[_OWN]
            saturated = weight * _TOP * mass // (_BELOW * (mass + pivot))
            share = _quotient(saturated << SHARE_BITS, whole, by_whole)
            part = share if own == mass else share * own // mass
            row[_TRIGRAM if like[term] else _WORDS] += part
            row[_CONTEXT] += share - part
            row[_OWN] = 0
            row[_MASS] = 0
        for place in range(seen, now):
            which = met[place]
            mass = min(masses[which], 1 << 15) << BITS
            masses[which] = 0
            pivot = 3 * ONE // 10 + lengths[which] * rise // tokens
            saturated = by_session[term] * 22 * mass // (10 * (mass + pivot))
            share = (saturated * SESSION_SHARE // 100 << SHARE_BITS) // whole
            if sums[which] == 0 and share > 0:
                met[seen] = which
                seen += 1
            sums[which] += share
    for pair in range(len(pairs)):
        first, second, share = pairs[pair, 0], pairs[pair, 1], pairs[pair, 2]
        for part in range(2):
            column = base if part == 0 else tail
            one, one_end = spans[first, 2 * part], spans[first, 2 * part + 1]
            other, other_end = spans[second, 2 * part], spans[second, 2 * part + 1]
            given_to = np.int64(NONE)
            while one < one_end and other < other_end:
                gap = column[other] - column[one]
                if gap <= 0:
                    other += 1
                elif gap > 2:
                    one += 1
                else:
                    number = column[one] >> PLACE_BITS
                    one += 1
                    if number != given_to and alive[number]:
                        given_to = number
                        rows[number, _PAIR] += share
    for place in range(len(forced)):
        number = np.int64(forced[place])
        if rows[number, _PIVOT] == 0:
            rows[number, _PIVOT] = 1
            touched[used] = number
            used += 1
        rows[number, _ROW - 1] = 1
    kept = 0
    for place in range(used):
        row = rows[touched[place]]
        if row[_WORDS] + row[_TRIGRAM] + row[_CONTEXT] > 0 or row[_ROW - 1]:
            kept += 1
    numbers = np.empty(kept, np.int64)
    shares = np.empty((kept, _SHARES), np.int64)
    kept = 0
    for place in range(used):
        number = np.int64(touched[place])
        row = rows[number]
        if row[_WORDS] + row[_TRIGRAM] + row[_CONTEXT] > 0 or row[_ROW - 1]:
            numbers[kept] = number
            out = shares[kept]
            out[0], out[1], out[2] = row[_WORDS], row[_TRIGRAM], row[_CONTEXT]
            which = session[number]
            out[3] = sums[which] if which != NONE else 0
            out[4] = row[_PAIR]
            out[5] = 0
            out[6] = 0
            kept += 1
        row[:] = 0
    for place in range(seen):
        sums[met[place]] = 0
    return numbers, shares


@_compiled
def _weigh(
    numbers: Any, shares: Any, weight: Any, speakers: Any, speaker: int, offers: Any, kinds: Any
) -> tuple[Any, Any]:
    factors = np.empty(len(numbers), np.int64)
    totals = np.empty(len(numbers), np.int64)
    for place in range(len(numbers)):
        number = numbers[place]
        factor = np.int64(weight[number])
        if speaker != NONE and speakers[number] == speaker:
            factor = factor * _SPEAKER // _BY_SPEAKER
        for kind in kinds:
            if offers[number] & kind:
                factor = factor * _ANSWER // _BY_ANSWER
        total = np.int64(0)
        row = shares[place]
        for column in range(_SHARES):
            share = row[column] * factor >> BITS
            row[column] = share
            total += share
        factors[place] = factor
        totals[place] = total
    return factors, totals


@_compiled
def _count_of(column: Any, begin: Any, end: Any, number: Any) -> Any:
    """How often a document stands in a part of a column."""
    low, high = begin, end
    wanted = number << PLACE_BITS
    while low < high:
        middle = (low + high) >> 1
        if column[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    at = low
    while at < end and column[at] >> PLACE_BITS == number:
        at += 1
    return at - low


@_compiled
def _matched(
    base: Any,
    tail: Any,
    spans: Any,
    count: int,
    length: Any,
    asks: Any,
    before: Any,
    after: Any,
    hits: Any,
    own: Any,
    mass: Any,
    pivots: Any,
    around: Any,
    lends: Any,
) -> None:
    for place in range(len(hits)):
        number = hits[place]
        pivots[place] = _pivot_of(number, count, length, asks, before, after)
        at = np.int64(before[number])
        for step in range(2 * _STEPS):
            if step == _STEPS:
                at = np.int64(after[number])
            if at >= count:
                at = np.int64(NONE)
            around[step, place] = at
            if at != NONE:
                at = np.int64(before[at]) if step < _STEPS else np.int64(after[at])
        for term in range(len(spans)):
            times = _count_of(base, spans[term, 0], spans[term, 1], number)
            if times == 0:
                times = _count_of(tail, spans[term, 2], spans[term, 3], number)
            total = min(times, MOST_COUNT) << BITS
            own[term, place] = total
            for step in range(2 * _STEPS):
                at = around[step, place]
                if at == NONE:
                    continue
                times = _count_of(base, spans[term, 0], spans[term, 1], at)
                if times == 0:
                    times = _count_of(tail, spans[term, 2], spans[term, 3], at)
                if times == 0:
                    continue
                lends[term, step, place] = True
                lent = (min(times, MOST_COUNT) * DONOR_CAP << BITS) // max(np.int64(length[at]), DONOR_CAP)
                lending = FROM_BEFORE[step] if step < _STEPS else FROM_AFTER[step - _STEPS]
                if step == 0 and asks[at]:
                    lending += AFTER_QUESTION
                total += lent * lending // 10
            mass[term, place] = total


@_compiled
def _best(totals: Any, micros: Any, wanted: int) -> Any:
    """A heap of the best so far, the least of them on top; then all that are not below it."""
    heap_totals = np.empty(wanted, np.int64)
    heap_micros = np.empty(wanted, np.int64)
    size = 0
    for place in range(len(totals)):
        total, time = totals[place], micros[place]
        if total <= 0:
            continue
        if size < wanted:
            at = size
            size += 1
            while at > 0:
                up = (at - 1) >> 1
                if (heap_totals[up], heap_micros[up]) <= (total, time):
                    break
                heap_totals[at], heap_micros[at] = heap_totals[up], heap_micros[up]
                at = up
            heap_totals[at], heap_micros[at] = total, time
        elif total > heap_totals[0] or (total == heap_totals[0] and time > heap_micros[0]):
            at = 0
            while True:
                down = 2 * at + 1
                if down >= size:
                    break
                if down + 1 < size and (heap_totals[down + 1], heap_micros[down + 1]) < (
                    heap_totals[down],
                    heap_micros[down],
                ):
                    down += 1
                if (heap_totals[down], heap_micros[down]) >= (total, time):
                    break
                heap_totals[at], heap_micros[at] = heap_totals[down], heap_micros[down]
                at = down
            heap_totals[at], heap_micros[at] = total, time
    least, since = np.int64(1), np.int64(-(2**63))
    if size == wanted:
        least, since = heap_totals[0], heap_micros[0]
    found = 0
    for place in range(len(totals)):
        if totals[place] > least or (totals[place] == least and micros[place] >= since):
            found += 1
    out = np.empty(found, np.int64)
    found = 0
    for place in range(len(totals)):
        if totals[place] > least or (totals[place] == least and micros[place] >= since):
            out[found] = place
            found += 1
    return out


class _Scratch:
    """What one question works on: all zeros whenever nobody has it."""

    def __init__(self, documents: int, sessions: int) -> None:
        self.documents, self.sessions = documents, sessions
        self.rows: Ints = np.zeros((documents, _ROW), dtype=np.int64)
        self.reach, self.touched = (np.zeros(documents, dtype=np.int32) for _ in range(2))
        self.masses, self.sums = (np.zeros(sessions, dtype=np.int64) for _ in range(2))
        self.met: Ints = np.zeros(2 * sessions, dtype=np.int64)


class NumbaKernels:
    name = "numba"

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._free: list[_Scratch] = []

    def _take(self, table: Table) -> _Scratch:
        documents, sessions = table.count, max(len(table.session_lengths), 1)
        with self._turn:
            scratch = self._free.pop() if self._free else None
        if scratch is None or scratch.documents < documents or scratch.sessions < sessions:
            scratch = _Scratch(documents + documents // 4 + 64, sessions + sessions // 4)
        return scratch

    def _give_back(self, scratch: _Scratch) -> None:
        with self._turn:
            if not self._free:  # one is kept: that of whoever asks one question after the other
                self._free.append(scratch)

    def tally(self, postings: Postings, table: Table) -> Ints:
        out: Ints = np.zeros((len(postings.spans), 3), dtype=np.int64)
        stamps = np.zeros(max(len(table.session_lengths), 1), dtype=np.int64)
        _tally(*postings, table.alive, table.session, stamps, out)
        return out

    def reach(self, postings: Postings, table: Table, weights: Weights, forced: Numbers) -> Reached:
        scratch = self._take(table)
        found = _reach(
            *postings,
            table.count,
            table.alive,
            table.length,
            table.asks,
            table.before,
            table.after,
            table.session,
            table.session_lengths,
            weights.terms,
            weights.sessions,
            weights.like,
            weights.whole,
            weights.pairs,
            *weights.live,
            forced,
            scratch.rows,
            scratch.reach,
            scratch.touched,
            scratch.masses,
            scratch.sums,
            scratch.met,
        )
        self._give_back(scratch)  # not after an exception: it may be half used then
        return Reached(*found)

    def weigh(self, reached: Reached, table: Table, speaker: int, kinds: tuple[int, ...]) -> tuple[Ints, Ints]:
        wanted: NDArray[np.int8] = np.array(kinds, dtype=np.int8)
        factors, totals = _weigh(
            reached.numbers, reached.shares, table.weight, table.speaker, speaker, table.offers, wanted
        )
        return factors, totals

    def matched(self, postings: Postings, table: Table, numbers: Ints) -> Matched:
        terms, hits = len(postings.spans), len(numbers)
        own: Ints = np.zeros((terms, hits), dtype=np.int64)
        mass, pivots = np.zeros_like(own), np.zeros(hits, dtype=np.int64)
        around: Ints = np.zeros((2 * _STEPS, hits), dtype=np.int64)
        lends: Flags = np.zeros((terms, 2 * _STEPS, hits), dtype=np.bool_)
        _matched(
            *postings,
            table.count,
            table.length,
            table.asks,
            table.before,
            table.after,
            numbers,
            own,
            mass,
            pivots,
            around,
            lends,
        )
        return Matched(own, mass, pivots, around, lends)

    def best(self, totals: Ints, micros: Ints, wanted: int) -> Ints:
        out: Ints = _best(totals, micros, wanted)
        return out


def loaded() -> NumbaKernels:
    """The kernels, compiled for the types that they are called with."""
    kernels = NumbaKernels()
    table = Documents().view()
    nothing = np.zeros(0, dtype=np.int64)
    postings = Postings(nothing, nothing, np.zeros((0, 4), dtype=np.int64))
    pairs = np.zeros((0, 3), dtype=np.int64)
    weights = Weights(nothing, nothing, np.zeros(0, dtype=np.bool_), 1, pairs, (0, 0))
    kernels.tally(postings, table)
    reached = kernels.reach(postings, table, weights, np.zeros(0, dtype=np.int32))
    kernels.weigh(reached, table, NONE, ())
    kernels.matched(postings, table, nothing)
    kernels.best(nothing, nothing, 1)
    return kernels
