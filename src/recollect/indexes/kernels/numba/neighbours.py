"""Postings of documents that may be turns, compiled: from occurrences to the shares of each document.

Terms are processed one at a time. The sums of documents are collected in scratch columns, which are all zeros between
questions; only documents that were touched are visited again. The columns are narrow (the shares of the words add up to
at most 1, that is 30 bits), so that those of a hundred thousand documents fit the processor's cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect.indexes.documents.columns import NONE
from recollect.indexes.fixed_point import BITS, ONE, SHARE_BITS
from recollect.indexes.kernels.numba.compiling import compiled
from recollect.indexes.kernels.numba.top_k import factor_of, most_of, replace_least
from recollect.indexes.kernels.types import RAW, TITLE
from recollect.indexes.parameters import (
    AFTER_QUESTION,
    DONOR_CAP,
    FROM_AFTER,
    FROM_BEFORE,
    PIVOT_CONSTANT,
    PIVOT_SLOPE,
    SESSION_CONSTANT,
    SESSION_MOST_MASS,
    SESSION_SHARE,
    SESSION_SLOPE,
    SESSION_TOP,
    TITLE_MASS,
    TOP,
)
from recollect.indexes.words.postings import MOST_COUNT, POSITION_BITS

_RAW = len(RAW)
_TOP, _BELOW = TOP
_STEPS = len(FROM_BEFORE)
#: Initial capacity for documents if only the best are kept.
ROOM = 256


@compiled
def quotient(above: Any, below: Any, inverse: Any) -> Any:
    """Return above // below without a division, for non-negative numbers with a quotient below 2^52."""
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
def share_of(weight: Any, weighs: Any, size: Any, whole: Any, by_whole: Any) -> Any:
    """Return the share of a mass of a term in a document of this length that is not a turn.

    `weight` is the term's weight times the maximum of the saturated mass.
    """
    pivot = PIVOT_CONSTANT + (size << BITS) * PIVOT_SLOPE // 10_000
    below = _BELOW * (weighs + pivot)
    saturated = quotient(weight * weighs, below, 1.0 / below)
    return quotient(saturated << SHARE_BITS, whole, by_whole)


@compiled
def title_share(weight: Any, times: Any, size: Any, whole: Any, by_whole: Any) -> Any:
    """Return what a title adds to the share of a term that occurs `times` times in the text."""
    weighs = np.int64(min(times, MOST_COUNT)) << BITS
    more = share_of(weight, weighs + TITLE_MASS, size, whole, by_whole)
    return more - share_of(weight, weighs, size, whole, by_whole)


@compiled
def first_from(column: Any, low: Any, high: Any, least: Any) -> Any:
    """Return the first index from `low` to `high` at which an ascending column is not below `least`."""
    while low < high:
        middle = (low + high) >> 1
        if column[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def count_at(column: Any, low: Any, end: Any, number: Any) -> Any:
    """Return how many occurrences of a document follow each other at an index of a column."""
    at = low
    while at < end and column[at] >> POSITION_BITS == number:
        at += 1
    return at - low


@compiled
def past(column: Any, at: Any, end: Any) -> Any:
    """Return the end of the occurrences of the document at position `at` of a column."""
    number = column[np.uintp(at)] >> POSITION_BITS
    at += 1
    while at < end and column[np.uintp(at)] >> POSITION_BITS == number:
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
                number = column[at] >> POSITION_BITS
                begin = at
                at = past(column, at, end)
                if not alive[number]:
                    continue
                out[term, 0] += 1
                out[term, 1] += min(at - begin, MOST_COUNT)
                which = session[number]
                if which != NONE and stamps[which] != term + 1:
                    stamps[which] = term + 1
                    out[term, 2] += 1


@compiled
def _gathered(
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
    title_of: Any,
    whole: int,
    sessions: int,
    tokens: int,
    pivots: Any,
    words: Any,
    trigram: Any,
    title: Any,
    context: Any,
    own: Any,
    mass: Any,
    reach: Any,
    touched: Any,
    masses: Any,
    sums: Any,
    met: Any,
) -> tuple[Any, Any]:
    """Add the shares of all terms to the columns, and return how many documents and how many sessions have any."""
    used = 0
    seen = 0  # number of sessions in `met` with a sum
    by_whole = 1.0 / whole
    rise = SESSION_SLOPE * sessions * ONE // 10
    plain = len(spans) - len(title_of)  # the terms that are no title terms
    for term in range(plain):
        weight = by_term[term] * _TOP
        column_of = trigram if like[term] else words
        reached = 0
        now = seen  # sessions of this term follow those that were met before
        for part in range(2):
            column = base if part == 0 else tail
            at, end = spans[term, 2 * part], spans[term, 2 * part + 1]
            while at < end:
                number = column[at] >> POSITION_BITS
                begin = at
                at = past(column, at, end)
                if some_dead and not alive[number]:
                    continue
                times = min(at - begin, MOST_COUNT)
                which = session[number] if turns else NONE
                if which == NONE:
                    # Not a turn: no other document lends to it, so its mass is its own and its share is final.
                    share = share_of(weight, times << BITS, np.int64(length[number]), whole, by_whole)
                    if share > 0:
                        if words[number] == 0 and trigram[number] == 0 and title[number] == 0:
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
            pivot = pivots[number]
            if pivot == 0:
                pivot = _pivot_of(number, count, length, asks, before, after)
                pivots[number] = pivot
            below = _BELOW * (weighs + pivot)
            saturated = quotient(weight * weighs, below, 1.0 / below)
            share = quotient(saturated << SHARE_BITS, whole, by_whole)
            if share > 0:
                if words[number] == 0 and trigram[number] == 0 and context[number] == 0:
                    touched[used] = number
                    used += 1
                if its_own:  # rare: most are reached only by what others lend
                    own[number] = 0
                    kept = share * its_own // weighs
                    column_of[number] += kept
                    share -= kept
                context[number] += share
            elif its_own:
                own[number] = 0
        for place in range(seen, now):
            which = met[place]
            weighs = min(masses[which], SESSION_MOST_MASS) << BITS
            masses[which] = 0
            pivot = SESSION_CONSTANT * ONE // 10 + lengths[which] * rise // tokens
            saturated = by_session[term] * SESSION_TOP * weighs // (10 * (weighs + pivot))
            share = (saturated * SESSION_SHARE // 100 << SHARE_BITS) // whole
            if sums[which] == 0 and share > 0:
                met[seen] = which
                seen += 1
            sums[which] += share
    for term in range(plain, len(spans)):
        weight, of = by_term[term] * _TOP, title_of[term - plain]
        for part in range(2):
            column = base if part == 0 else tail
            at, end = spans[term, 2 * part], spans[term, 2 * part + 1]
            mine, mine_end = spans[of, 2 * part], spans[of, 2 * part + 1]
            while at < end:
                number = column[at] >> POSITION_BITS
                at += 1
                if some_dead and not alive[number]:
                    continue
                mine = first_from(column, mine, mine_end, number << POSITION_BITS)
                times = count_at(column, mine, mine_end, number)
                share = title_share(weight, times, np.int64(length[number]), whole, by_whole)
                if share > 0:
                    if words[number] == 0 and trigram[number] == 0 and title[number] == 0:
                        touched[used] = number
                        used += 1
                    title[number] += share
    return used, seen


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
    title_of: Any,
    whole: int,
    sessions: int,
    tokens: int,
    pivots: Any,
    pairs: Any,
    forced: Any,
    words: Any,
    trigram: Any,
    title: Any,
    context: Any,
    own: Any,
    mass: Any,
    reach: Any,
    touched: Any,
    masses: Any,
    sums: Any,
    met: Any,
    near: Any,
) -> tuple[Any, Any]:
    used, seen = _gathered(
        base, tail, spans, count, some_dead, alive, length, asks, before, after, turns, session, lengths, by_term,
        by_session, like, title_of, whole, sessions, tokens, pivots, words, trigram, title, context, own, mass, reach,
        touched, masses, sums, met,
    )  # fmt: skip
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
                    number = column[one] >> POSITION_BITS
                    one += 1
                    if number != given_to and (words[number] + trigram[number] + title[number] + context[number] > 0):
                        given_to = number
                        near[number] += share
    reached = used
    for place in range(len(forced)):
        number = np.int64(forced[place])
        if words[number] == 0 and trigram[number] == 0 and title[number] == 0 and context[number] == 0:
            touched[used] = number
            used += 1
    numbers = np.empty(used, np.int64)
    # Wider than the shares of words: a session's share has no limit, as sessions have different rarities.
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
        shares[TITLE, place] = title[number]
        words[number] = 0
        trigram[number] = 0
        title[number] = 0
        context[number] = 0
        near[number] = 0
    for place in range(seen):
        sums[met[place]] = 0
    return numbers, shares


@compiled
def near(column: Any, one: Any, one_end: Any, other: Any, other_end: Any, number: Any) -> Any:
    """Return whether a document has, in these parts of a column, one term one or two positions before the other."""
    one = first_from(column, one, one_end, number << POSITION_BITS)
    while one < one_end and column[one] >> POSITION_BITS == number:
        other = first_from(column, other, other_end, column[one] + 1)
        if other == other_end:
            break
        if column[other] <= column[one] + 2:
            return True
        one += 1
    return False


@compiled
def reach_best(
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
    title_of: Any,
    whole: int,
    sessions: int,
    tokens: int,
    pivots: Any,
    pairs: Any,
    weight: Any,
    speakers: Any,
    speaker: Any,
    offers: Any,
    kinds: int,
    heaviest: int,
    standing: Any,
    wanted: int,
    counting: Any,
    words: Any,
    trigram: Any,
    title: Any,
    context: Any,
    own: Any,
    mass: Any,
    reach: Any,
    touched: Any,
    masses: Any,
    sums: Any,
    met: Any,
) -> tuple[Any, Any, int]:
    """Return the candidates for the best `wanted` of `reach`, all with standing tags, and the number of all reached.

    Only for these is it determined which pairs of terms are near each other.

    Args:
        standing: The documents with standing tags.
        counting: Which documents may be hits.
    """
    used, seen = _gathered(
        base, tail, spans, count, some_dead, alive, length, asks, before, after, turns, session, lengths, by_term,
        by_session, like, title_of, whole, sessions, tokens, pivots, words, trigram, title, context, own, mass, reach,
        touched, masses, sums, met,
    )  # fmt: skip
    most = most_of(heaviest, speaker, kinds)
    of_pairs = np.int64(0)
    for pair in range(len(pairs)):
        of_pairs += pairs[pair, 2]
    heap = np.zeros(wanted, np.int64)  # the best totals so far, the least on top
    numbers = np.empty(ROOM, np.int64)
    shares = np.empty((_RAW, ROOM), np.int64)
    kept = passed = 0
    titled = len(title_of) > 0
    for step in range(-len(standing), used):  # first those with standing tags, whose columns are then cleared
        number = np.int64(touched[step]) if step >= 0 else standing[-1 - step]
        which = session[number] if turns else NONE
        by_words, by_trigram, by_context = np.int64(words[number]), np.int64(trigram[number]), np.int64(context[number])
        by_title = np.int64(0)
        if titled:  # spares a look at one more column
            by_title = np.int64(title[number])
            title[number] = 0
        by_all = sums[which] if which != NONE else np.int64(0)
        words[number] = 0
        trigram[number] = 0
        context[number] = 0
        own_share = by_words + by_trigram + by_title + by_context
        raw = own_share + by_all
        if own_share == 0 or not counting[number]:
            continue
        passed += 1
        if step >= 0 and (raw + of_pairs) * most >> BITS < heap[0]:
            continue
        factor = factor_of(weight[number], speakers[number], speaker, offers[number], kinds)
        if step >= 0 and (raw + of_pairs) * factor >> BITS < heap[0]:
            continue
        by_pairs = np.int64(0)
        for pair in range(len(pairs)):
            one, other = pairs[pair, 0], pairs[pair, 1]
            if near(base, spans[one, 0], spans[one, 1], spans[other, 0], spans[other, 1], number) or near(
                tail, spans[one, 2], spans[one, 3], spans[other, 2], spans[other, 3], number
            ):
                by_pairs += pairs[pair, 2]
        if kept == len(numbers):
            numbers = np.concatenate((numbers, np.empty_like(numbers)))
            shares = np.concatenate((shares, np.empty_like(shares)), axis=1)
        numbers[kept] = number
        shares[0, kept] = by_words
        shares[1, kept] = by_trigram
        shares[2, kept] = by_context
        shares[3, kept] = by_all
        shares[4, kept] = by_pairs
        shares[TITLE, kept] = by_title
        total = np.int64(0)
        for column in range(_RAW):
            total += shares[column, kept] * factor >> BITS
        if step < 0 or (total > 0 and total >= heap[0]):
            kept += 1
        if total > heap[0]:
            replace_least(heap, total)
    for place in range(seen):
        sums[met[place]] = 0
    return numbers[:kept], shares[:, :kept], passed


@compiled
def _count_of(column: Any, begin: Any, end: Any, number: Any) -> Any:
    """Return how many occurrences of a document a part of a column has."""
    return count_at(column, first_from(column, begin, end, number << POSITION_BITS), end, number)


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
    title_of: Any,
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
    plain = len(spans) - len(title_of)  # the terms that are no title terms
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
            if term >= plain:
                if times == 0:
                    continue
                size, of = np.int64(length[number]), title_of[term - plain]
                times = _count_of(base, spans[of, 0], spans[of, 1], number)
                if times == 0:
                    times = _count_of(tail, spans[of, 2], spans[of, 3], number)
                share = title_share(by_term[term] * _TOP, times, size, whole, 1.0 / whole)
                reached[place, term] = share > 0
                shares[place, term] = share * factors[place] >> BITS
                continue
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
