"""Walking postings, compiled: from occurrences to the shares of each document.

Terms are taken one at a time. What a document has gathered stands in scratch columns, which are all zeros between
questions; only documents that were touched are visited again. The columns are narrow (a sum of shares of the words is
at most 1, that is 30 bits), so that those of a hundred thousand documents stay in the processor's cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect.indexes.columns import NONE
from recollect.indexes.fixed import BITS, ONE, SHARE_BITS
from recollect.indexes.kernels import RAW
from recollect.indexes.numba_compiling import compiled
from recollect.indexes.recipe import (
    AFTER_QUESTION,
    DONOR_CAP,
    FROM_AFTER,
    FROM_BEFORE,
    PIVOT_CONSTANT,
    PIVOT_SLOPE,
    SESSION_SHARE,
    TOP,
)
from recollect.indexes.segments import LONGEST, MOST_COUNT, PLACE_BITS

_RAW = len(RAW)
#: So many documents are settled at a time where each stands by itself.
BLOCK = 4096
#: Which terms a document of a block has is marked by bits; of so many terms and more some share one.
_MARKS = 30
_FORCED = 1 << _MARKS
_TOP, _BELOW = TOP
_STEPS = len(FROM_BEFORE)


@compiled
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


@compiled
def _past(column: Any, at: Any, end: Any) -> Any:
    """Where the occurrences of the document that stands at a place of a column end."""
    number = column[at] >> PLACE_BITS
    at += 1
    while at < end and column[at] >> PLACE_BITS == number:
        at += 1
    return at


@compiled
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


@compiled
def tally(base: Any, tail: Any, spans: Any, alive: Any, session: Any, stamps: Any, out: Any) -> None:
    for term in range(len(spans)):
        for part in range(2):
            column = base if part == 0 else tail
            at, end = spans[term, 2 * part], spans[term, 2 * part + 1]
            while at < end:
                number = column[at] >> PLACE_BITS
                begin = at
                at = _past(column, at, end)
                if not alive[number]:
                    continue
                out[term, 0] += 1
                out[term, 1] += min(at - begin, MOST_COUNT)
                which = session[number]
                if which != NONE and stamps[which] != term + 1:
                    stamps[which] = term + 1
                    out[term, 2] += 1


@compiled
def reach(
    base: Any,
    tail: Any,
    spans: Any,
    count: int,
    some_dead: bool,
    alive: Any,
    length: Any,
    asks: Any,
    before: Any,
    after: Any,
    turns: bool,
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
    words: Any,
    trigram: Any,
    context: Any,
    near: Any,
    own: Any,
    mass: Any,
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
        weight = by_term[term] * _TOP
        column_of = trigram if like[term] else words
        reached = 0
        now = seen  # those of this term stand behind those that were met before
        for part in range(2):
            column = base if part == 0 else tail
            at, end = spans[term, 2 * part], spans[term, 2 * part + 1]
            while at < end:
                number = column[at] >> PLACE_BITS
                begin = at
                at = _past(column, at, end)
                if some_dead and not alive[number]:
                    continue
                times = min(at - begin, MOST_COUNT)
                which = session[number] if turns else NONE
                if which == NONE:
                    # No turn: nobody lends it anything, so its mass is its own and its share is settled.
                    weighs = times << BITS
                    pivot = PIVOT_CONSTANT + (np.int64(length[number]) << BITS) * PIVOT_SLOPE // 10_000
                    saturated = weight * weighs // (_BELOW * (weighs + pivot))
                    share = _quotient(saturated << SHARE_BITS, whole, by_whole)
                    if share > 0:
                        if words[number] == 0 and trigram[number] == 0:
                            touched[used] = number
                            used += 1
                        column_of[number] += share
                    continue
                if mass[number] == 0:
                    reach[reached] = number
                    reached += 1
                own[number] += times << BITS
                mass[number] += times << BITS
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
                        if mass[there] == 0:
                            reach[reached] = there
                            reached += 1
                        mass[there] += given
                    there = np.int64(after[there])
                there = np.int64(before[number])
                for step in range(_STEPS):
                    if there == NONE or there >= count:
                        break
                    given = lent * FROM_AFTER[step] // 10
                    if given > 0:
                        if mass[there] == 0:
                            reach[reached] = there
                            reached += 1
                        mass[there] += given
                    there = np.int64(before[there])
        for place in range(reached):
            number = np.int64(reach[place])
            weighs, its_own = mass[number], own[number]
            mass[number] = 0
            own[number] = 0
            pivot = _pivot_of(number, count, length, asks, before, after)
            saturated = weight * weighs // (_BELOW * (weighs + pivot))
            share = _quotient(saturated << SHARE_BITS, whole, by_whole)
            if share > 0:
                if words[number] == 0 and trigram[number] == 0 and context[number] == 0:
                    touched[used] = number
                    used += 1
                kept = share * its_own // weighs
                column_of[number] += kept
                context[number] += share - kept
        for place in range(seen, now):
            which = met[place]
            weighs = min(masses[which], 1 << 15) << BITS
            masses[which] = 0
            pivot = 3 * ONE // 10 + lengths[which] * rise // tokens
            saturated = by_session[term] * 22 * weighs // (10 * (weighs + pivot))
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
                    if number != given_to and (words[number] + trigram[number] + context[number] > 0):
                        given_to = number
                        near[number] += share
    reached = used
    for place in range(len(forced)):
        number = np.int64(forced[place])
        if words[number] == 0 and trigram[number] == 0 and context[number] == 0:
            touched[used] = number
            used += 1
    numbers = np.empty(used, np.int64)
    # Wider than what the words give: a session's share has no bound, as sessions have rarities of their own.
    shares = np.empty((_RAW, used), np.int64)
    for place in range(used):
        number = np.int64(touched[place])
        which = session[number] if turns else NONE
        numbers[place] = number
        shares[0, place] = words[number]
        shares[1, place] = trigram[number]
        shares[2, place] = context[number]
        shares[3, place] = sums[which] if which != NONE else 0
        shares[4, place] = near[number] if place < reached else 0
        words[number] = 0
        trigram[number] = 0
        context[number] = 0
        near[number] = 0
    for place in range(seen):
        sums[met[place]] = 0
    return numbers, shares


@compiled
def _first_from(column: Any, low: Any, high: Any, least: Any) -> Any:
    """The first place of a rising column, from `low` to `high`, that is not below `least`."""
    while low < high:
        middle = (low + high) >> 1
        if column[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def reach_plain(
    base: Any,
    tail: Any,
    spans: Any,
    base_lengths: Any,
    tail_lengths: Any,
    count: int,
    some_dead: bool,
    alive: Any,
    length: Any,
    by_term: Any,
    like: Any,
    whole: int,
    pairs: Any,
    forced: Any,
    rows: Any,
    touched: Any,
    cursors: Any,
) -> tuple[Any, Any]:
    """`reach` where no document is a turn, so that each is settled by itself: a block of documents at a time.

    What is gathered of a block stays in the processor's fastest cache, and each column is read once, in order.
    """
    by_whole = 1.0 / whole
    most = len(forced)
    for term in range(len(spans)):
        most += spans[term, 1] - spans[term, 0] + spans[term, 3] - spans[term, 2]
        for part in range(2):
            cursors[0, term, part] = spans[term, 2 * part]
            cursors[1, term, part] = spans[term, 2 * part]
    most = min(most, count)
    numbers = np.empty(most, np.int64)
    shares = np.empty((_RAW, most), np.int32)
    kept = 0
    next_forced = 0
    while True:
        first = np.int64(count)  # the next document that anything reaches
        if next_forced < len(forced):
            first = np.int64(forced[next_forced])
        for term in range(len(spans)):
            for part in range(2):
                at = cursors[1, term, part]
                cursors[0, term, part] = at
                if at < spans[term, 2 * part + 1]:
                    first = min(first, (base if part == 0 else tail)[at] >> PLACE_BITS)
        if first >= count:
            break
        begin = first
        limit = begin + BLOCK << PLACE_BITS
        used = 0
        for term in range(len(spans)):
            weight = by_term[term] * _TOP
            column_of = 1 if like[term] else 0
            mark = 1 << term % _MARKS
            for part in range(2):
                column = base if part == 0 else tail
                at, end = cursors[1, term, part], spans[term, 2 * part + 1]
                while at < end and column[at] < limit:
                    number = column[at] >> PLACE_BITS
                    started = at
                    at = _past(column, at, end)
                    if some_dead and not alive[number]:
                        continue
                    weighs = min(at - started, MOST_COUNT) << BITS
                    size = np.int64(base_lengths[started] if part == 0 else tail_lengths[started])
                    if size == LONGEST:
                        size = np.int64(length[number])
                    pivot = PIVOT_CONSTANT + (size << BITS) * PIVOT_SLOPE // 10_000
                    below = _BELOW * (weighs + pivot)
                    saturated = _quotient(weight * weighs, below, 1.0 / below)
                    share = _quotient(saturated << SHARE_BITS, whole, by_whole)
                    place = number - begin
                    if rows[place, 3] == 0:
                        touched[used] = place
                        used += 1
                    rows[place, column_of] += share
                    rows[place, 3] |= mark
                cursors[1, term, part] = at
        for pair in range(len(pairs)):
            first, second, share = pairs[pair, 0], pairs[pair, 1], pairs[pair, 2]
            for part in range(2):
                column = base if part == 0 else tail
                one, one_end = cursors[0, first, part], cursors[1, first, part]
                other, other_end = cursors[0, second, part], cursors[1, second, part]
                # The shorter is walked; the longer is searched, where the document has both.
                backward = other_end - other < one_end - one
                mark = 1 << (first if backward else second) % _MARKS
                if backward:
                    at, end, low, high = other, other_end, one, one_end
                else:
                    at, end, low, high = one, one_end, other, other_end
                given_to = np.int64(NONE)
                while at < end and low < high:
                    place = (column[at] >> PLACE_BITS) - begin
                    if rows[place, 3] & mark and place != given_to:
                        least = column[at] - 2 if backward else column[at] + 1
                        low = _first_from(column, low, high, least)
                        if low < high and column[low] <= least + 1:
                            given_to = place
                            rows[place, 2] += share
                    at += 1
        while next_forced < len(forced) and forced[next_forced] < begin + BLOCK:
            place = np.int64(forced[next_forced]) - begin
            next_forced += 1
            if rows[place, 3] == 0:
                touched[used] = place
                used += 1
            rows[place, 3] |= _FORCED
        for at in range(used):
            place = np.int64(touched[at])
            has_share = rows[place, 0] + rows[place, 1] > 0
            if has_share or rows[place, 3] & _FORCED:
                numbers[kept] = begin + place
                shares[0, kept] = rows[place, 0]
                shares[1, kept] = rows[place, 1]
                shares[2, kept] = 0
                shares[3, kept] = 0
                shares[4, kept] = rows[place, 2] if has_share else 0
                kept += 1
            rows[place, 0] = 0
            rows[place, 1] = 0
            rows[place, 2] = 0
            rows[place, 3] = 0
    return numbers[:kept], shares[:, :kept]


@compiled
def _count_of(column: Any, begin: Any, end: Any, number: Any) -> Any:
    """How often a document stands in a part of a column."""
    low = _first_from(column, begin, end, number << PLACE_BITS)
    at = low
    while at < end and column[at] >> PLACE_BITS == number:
        at += 1
    return at - low


@compiled
def matched(
    base: Any,
    tail: Any,
    spans: Any,
    count: int,
    length: Any,
    asks: Any,
    before: Any,
    after: Any,
    by_term: Any,
    whole: int,
    hits: Any,
    factors: Any,
    reached: Any,
    shares: Any,
    own: Any,
    lent: Any,
    around: Any,
    lends: Any,
) -> None:
    for place in range(len(hits)):
        number = hits[place]
        pivot = _pivot_of(number, count, length, asks, before, after)
        at = np.int64(before[number])
        for step in range(2 * _STEPS):
            if step == _STEPS:
                at = np.int64(after[number])
            if at >= count:
                at = np.int64(NONE)
            around[place, step] = at
            if at != NONE:
                at = np.int64(before[at]) if step < _STEPS else np.int64(after[at])
        for term in range(len(spans)):
            times = _count_of(base, spans[term, 0], spans[term, 1], number)
            if times == 0:
                times = _count_of(tail, spans[term, 2], spans[term, 3], number)
            its_own = min(times, MOST_COUNT) << BITS
            mass = its_own
            for step in range(2 * _STEPS):
                at = around[place, step]
                if at == NONE:
                    continue
                times = _count_of(base, spans[term, 0], spans[term, 1], at)
                if times == 0:
                    times = _count_of(tail, spans[term, 2], spans[term, 3], at)
                if times == 0:
                    continue
                lends[place, term, step] = True
                given = (min(times, MOST_COUNT) * DONOR_CAP << BITS) // max(np.int64(length[at]), DONOR_CAP)
                lending = FROM_BEFORE[step] if step < _STEPS else FROM_AFTER[step - _STEPS]
                if step == 0 and asks[at]:
                    lending += AFTER_QUESTION
                mass += given * lending // 10
            if mass == 0:
                continue
            saturated = by_term[term] * _TOP * mass // (_BELOW * (mass + pivot))
            share = (saturated << SHARE_BITS) // whole
            reached[place, term] = share > 0
            share = share * factors[place] >> BITS
            shares[place, term] = share
            own[place, term] = share * its_own // mass
            lent[place, term] = mass > its_own
