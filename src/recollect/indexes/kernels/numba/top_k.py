"""The best documents, compiled: from shares and factors to totals, and from totals to the greatest."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect.indexes.documents.columns import NONE
from recollect.indexes.fixed_point import BITS
from recollect.indexes.kernels.numba.compiling import compiled
from recollect.indexes.kernels.types import RAW
from recollect.indexes.parameters import ANSWER, PAST_ANSWER, RECOLLECTED_INSTRUCTION
from recollect.text.answers import INSTRUCTION, Kind

_RAW = len(RAW)
_ANSWER, _BY_ANSWER = ANSWER
_PAST_ANSWER, _BY_PAST_ANSWER = PAST_ANSWER
_RECOLLECTED, _BY_RECOLLECTED = RECOLLECTED_INSTRUCTION
_PAST, _INSTRUCTION = int(Kind.PAST), INSTRUCTION


@compiled
def factor_of(weight: Any, says: Any, speaker: Any, offers: Any, kinds: Any) -> Any:
    """Return the factor of a document's shares.

    The arguments are numbers, and `speaker` the number of a speaker and the favour of their documents, since passing an
    array costs more than the computation.
    """
    factor = np.int64(weight)
    number, favour = speaker
    if number != NONE and says == number:
        factor = factor * favour >> BITS
    fits = np.int64(offers) & kinds
    while fits:
        kind = fits & -fits
        fits ^= kind
        if kind == _PAST:
            factor = factor * _PAST_ANSWER // _BY_PAST_ANSWER
        elif kind == _INSTRUCTION:
            factor = factor * _RECOLLECTED // _BY_RECOLLECTED
        else:
            factor = factor * _ANSWER // _BY_ANSWER
    return factor


@compiled
def _total(shares: Any, dates: Any, place: Any, factor: Any) -> Any:
    total = np.int64(0)
    for column in range(_RAW):
        total += shares[column, place] * factor >> BITS
    if len(dates):
        total += dates[place] * factor >> BITS
    return total


@compiled
def replace_least(heap: Any, total: Any) -> None:
    """Replace the least value of a heap, which is on top, by a total."""
    at = 0
    while True:
        down = 2 * at + 1
        if down >= len(heap):
            break
        if down + 1 < len(heap) and heap[down + 1] < heap[down]:
            down += 1
        if heap[down] >= total:
            break
        heap[at] = heap[down]
        at = down
    heap[at] = total


@compiled
def most_of(heaviest: Any, speaker: Any, kinds: Any) -> Any:
    """Return the maximum factor of the documents without standing tags."""
    kinds &= ~_INSTRUCTION
    return factor_of(heaviest, speaker[0], speaker, kinds, kinds)


@compiled
def weigh(
    numbers: Any, shares: Any, dates: Any, weight: Any, speakers: Any, speaker: Any, offers: Any, kinds: int
) -> Any:
    totals = np.empty(len(numbers), np.int64)
    for place in range(len(numbers)):
        number = numbers[place]
        totals[place] = _total(
            shares, dates, place, factor_of(weight[number], speakers[number], speaker, offers[number], kinds)
        )
    return totals


@compiled
def best(totals: Any, numbers: Any, micros: Any, wanted: int) -> Any:
    """Collect the best in a heap with the least on top; then return the indexes of all that are not below it."""
    heap_totals = np.empty(wanted, np.int64)
    heap_micros = np.empty(wanted, np.int64)
    size = 0
    for place in range(len(totals)):
        total = totals[place]
        if total <= 0 or (size == wanted and total < heap_totals[0]):
            continue
        time = micros[numbers[place]]
        if size < wanted:
            at = size
            size += 1
            while at > 0:
                up = (at - 1) >> 1
                if heap_totals[up] < total or (heap_totals[up] == total and heap_micros[up] <= time):
                    break
                heap_totals[at], heap_micros[at] = heap_totals[up], heap_micros[up]
                at = up
            heap_totals[at], heap_micros[at] = total, time
        elif total > heap_totals[0] or time > heap_micros[0]:
            at = 0
            while True:
                down = 2 * at + 1
                if down >= size:
                    break
                other = down + 1
                if other < size and (
                    heap_totals[other] < heap_totals[down]
                    or (heap_totals[other] == heap_totals[down] and heap_micros[other] < heap_micros[down])
                ):
                    down = other
                if heap_totals[down] > total or (heap_totals[down] == total and heap_micros[down] >= time):
                    break
                heap_totals[at], heap_micros[at] = heap_totals[down], heap_micros[down]
                at = down
            heap_totals[at], heap_micros[at] = total, time
    least, since = np.int64(1), np.int64(-(2**63))
    if size == wanted:
        least, since = heap_totals[0], heap_micros[0]
    found = 0
    out = np.empty(len(totals), np.int64)
    for place in range(len(totals)):
        if totals[place] > least or (totals[place] == least and micros[numbers[place]] >= since):
            out[found] = place
            found += 1
    return out[:found]


@compiled
def best_of(
    numbers: Any,
    shares: Any,
    dates: Any,
    weight: Any,
    speakers: Any,
    speaker: Any,
    offers: Any,
    kinds: int,
    heaviest: int,
    standing: Any,
    micros: Any,
    wanted: int,
) -> tuple[Any, Any]:
    """Weigh the documents whose shares could reach the best so far, then return the best of them as `best` does."""
    most = most_of(heaviest, speaker, kinds)
    places = np.empty(len(numbers), np.int64)
    totals = np.empty(len(numbers), np.int64)
    heap = np.zeros(wanted, np.int64)  # the best totals so far, the least on top
    found = 0
    for place in range(len(numbers)):
        raw = np.int64(dates[place]) if len(dates) else np.int64(0)
        for column in range(_RAW):
            raw += shares[column, place]
        if raw * most >> BITS < heap[0] and standing[numbers[place]] == 0:
            continue
        number = numbers[place]
        total = _total(
            shares, dates, place, factor_of(weight[number], speakers[number], speaker, offers[number], kinds)
        )
        if total <= 0 or total < heap[0]:
            continue
        places[found] = place
        totals[found] = total
        found += 1
        if total > heap[0]:
            replace_least(heap, total)
    places, totals = places[:found], totals[:found]
    chosen = best(totals, numbers[places], micros, wanted)
    return places[chosen], totals[chosen]
