"""Postings of documents that are not turns, compiled: each document is scored by itself, a block of them at a time.

The sums of a block fit the processor's fastest cache, and each column is read once, in order. A document's row is one
integer: the sum of the shares of its words, and above it a flag bit for each term that it contains.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect.indexes.fixed_point import BITS, SHARE_BITS
from recollect.indexes.kernels.numba.compiling import compiled
from recollect.indexes.kernels.numba.neighbours import ROOM, count_at, first_from, near, past, share_of, title_share
from recollect.indexes.kernels.numba.top_k import factor_of, most_of, replace_least
from recollect.indexes.kernels.types import RAW, TITLE
from recollect.indexes.parameters import TOP
from recollect.indexes.words.postings import LONGEST, MOST_COUNT, POSITION_BITS

_RAW = len(RAW)
#: Number of documents in a block.
BLOCK = 4096
#: Bits of the sum of shares in a row; the sum is at most 1, with SHARE_BITS of fraction.
_SUM_BITS = SHARE_BITS + 4
_SUM = (1 << _SUM_BITS) - 1
#: Number of flag bits above the sum; with more terms, some terms share one. The bit above them: whether the document is
#: forced.
_MARKS = 28
_FORCED = 1 << _SUM_BITS + _MARKS
#: The mask of the first eight terms: the maximum share of pairs is precomputed by these flags.
_FEW = 255
#: For a term with more occurrences than this, the share of a single occurrence is precomputed for lengths below this.
LENGTHS = 64
_TOP, _BELOW = TOP


def block(terms: int) -> tuple[Any, ...]:
    """Return the working memory of a question with at most `terms` terms, the last arguments of the kernels.

    The parts are: rows, shares of similar words, shares of titles, touched documents, rows of the chosen documents, the
    begin and end of each term's occurrences in the block, and the precomputed share of each term by document length.
    Between questions they are all zeros, or their contents are overwritten before use.
    """
    return (
        np.zeros(BLOCK, dtype=np.int64),
        np.zeros(BLOCK, dtype=np.int32),
        np.zeros(BLOCK, dtype=np.int32),
        np.empty(BLOCK + 1, dtype=np.int32),
        np.empty(BLOCK + 1, dtype=np.int64),
        np.empty((2, terms, 2), dtype=np.int64),
        np.empty((terms, LENGTHS), dtype=np.int32),
    )


def terms_of(block: tuple[Any, ...]) -> int:
    """Return how many terms a block has room for."""
    return len(block[-1])


@compiled
def _share(weight: Any, times: Any, size: Any, whole: Any, by_whole: Any) -> Any:
    """Return the share of a term that occurs `times` times in a document of this length."""
    return share_of(weight * _TOP, np.int64(times) << BITS, np.int64(size), whole, by_whole)


@compiled
def _mark_of(term: Any) -> Any:
    return np.int64(1) << _SUM_BITS + term % _MARKS


@compiled
def _begin(spans: Any, by_term: Any, whole: Any, cursors: Any, known: Any) -> None:
    """Set the cursors to the begin of each term, and precompute frequent shares."""
    by_whole = 1.0 / whole
    for term in range(len(spans)):
        for part in range(2):
            cursors[1, term, part] = spans[term, 2 * part]
        if spans[term, 1] - spans[term, 0] + spans[term, 3] - spans[term, 2] > LENGTHS:
            for size in range(LENGTHS):
                known[term, size] = _share(by_term[term], 1, size, whole, by_whole)


@compiled
def _next(spans: Any, base: Any, tail: Any, cursors: Any, first: Any) -> Any:
    """Return the first document before `first` that contains a term, and set the cursors to the begin of its block."""
    for term in range(len(spans)):
        for part in range(2):
            at = cursors[1, term, part]
            cursors[0, term, part] = at
            if at < spans[term, 2 * part + 1]:
                first = min(first, (base if part == 0 else tail)[at] >> POSITION_BITS)
    return first


@compiled
def _gather(
    column: Any,
    lengths: Any,
    at: Any,
    end: Any,
    begin: Any,
    some_dead: Any,
    alive: Any,
    length: Any,
    weight: Any,
    whole: Any,
    by_whole: Any,
    known: Any,
    below: Any,
    like: Any,
    mark: Any,
    rows: Any,
    likes: Any,
    touched: Any,
    used: Any,
) -> Any:
    """Add the share of a term to the documents of a block, from a position of a column on.

    Indexes are unsigned here, since signed indexes are checked for negative values at each access.

    Args:
        known: The precomputed share of a single occurrence, by document lengths less than `below`.

    Returns:
        The position at which it stopped, and the number of touched documents.
    """
    limit = begin + BLOCK << POSITION_BITS
    while at < end and column[np.uintp(at)] < limit:
        number = column[np.uintp(at)] >> POSITION_BITS
        size = np.int64(lengths[np.uintp(at)])
        if size < below:  # a single occurrence
            at += 1
            if some_dead and not alive[number]:
                continue
            share = np.int64(known[np.uintp(size)])
        else:
            started = at
            at = past(column, at, end)
            if some_dead and not alive[number]:
                continue
            size &= LONGEST
            if size == LONGEST:
                size = np.int64(length[number])
            share = _share(weight, min(at - started, MOST_COUNT), size, whole, by_whole)
        place = np.uintp(number - begin)
        row = rows[place]
        touched[np.uintp(used)] = place
        used += 1 if row == 0 else 0
        if like:
            likes[place] += share
        rows[place] = row + share | mark
    return at, used


@compiled
def _gather_titles(
    column: Any,
    at: Any,
    end: Any,
    mine: Any,
    mine_end: Any,
    begin: Any,
    some_dead: Any,
    alive: Any,
    length: Any,
    weight: Any,
    whole: Any,
    by_whole: Any,
    rows: Any,
    titles: Any,
    touched: Any,
    used: Any,
) -> Any:
    """Do as `_gather` for a title term; the occurrences of its term in the block begin at `mine`."""
    limit = begin + BLOCK << POSITION_BITS
    while at < end and column[at] < limit:
        number = column[at] >> POSITION_BITS
        at += 1
        if some_dead and not alive[number]:
            continue
        mine = first_from(column, mine, mine_end, number << POSITION_BITS)
        times = count_at(column, mine, mine_end, number)
        share = title_share(weight * _TOP, times, np.int64(length[number]), whole, by_whole)
        if share > 0:
            place = number - begin
            touched[used] = place
            used += 1 if rows[place] == 0 else 0
            rows[place] += share
            titles[place] += share
    return at, used


@compiled
def _of_block(
    base: Any,
    tail: Any,
    spans: Any,
    base_lengths: Any,
    tail_lengths: Any,
    begin: Any,
    some_dead: Any,
    alive: Any,
    length: Any,
    by_term: Any,
    like: Any,
    title_of: Any,
    whole: Any,
    rows: Any,
    likes: Any,
    titles: Any,
    touched: Any,
    cursors: Any,
    known: Any,
) -> Any:
    """Add the shares of all terms to the documents of a block, and return how many are touched."""
    by_whole = 1.0 / whole
    used = 0
    plain = len(spans) - len(title_of)  # the terms that are no title terms
    for term in range(plain):
        often = spans[term, 1] - spans[term, 0] + spans[term, 3] - spans[term, 2] > LENGTHS
        for part in range(2):
            at, end = cursors[1, term, part], spans[term, 2 * part + 1]
            if at < end:
                cursors[1, term, part], used = _gather(
                    base if part == 0 else tail,
                    base_lengths if part == 0 else tail_lengths,
                    at,
                    end,
                    begin,
                    some_dead,
                    alive,
                    length,
                    by_term[term],
                    whole,
                    by_whole,
                    known[term],
                    LENGTHS if often else 0,
                    like[term],
                    _mark_of(term),
                    rows,
                    likes,
                    touched,
                    used,
                )
    for term in range(plain, len(spans)):
        of = title_of[term - plain]
        for part in range(2):
            cursors[1, term, part], used = _gather_titles(
                base if part == 0 else tail,
                cursors[1, term, part],
                spans[term, 2 * part + 1],
                cursors[0, of, part],
                cursors[1, of, part],
                begin,
                some_dead,
                alive,
                length,
                by_term[term],
                whole,
                by_whole,
                rows,
                titles,
                touched,
                used,
            )
    return used


@compiled
def _of_pairs(base: Any, tail: Any, cursors: Any, pairs: Any, both: Any, number: Any, row: Any) -> Any:
    """Return the share of the pairs of terms that are near each other in a document of a block."""
    out = np.int64(0)
    for pair in range(len(pairs)):
        if row & both[pair] != both[pair]:
            continue
        first, second = pairs[pair, 0], pairs[pair, 1]
        for part in range(2):
            one, one_end = cursors[0, first, part], cursors[1, first, part]
            other, other_end = cursors[0, second, part], cursors[1, second, part]
            if near(base if part == 0 else tail, one, one_end, other, other_end, number):
                out += pairs[pair, 2]
                break
    return out


@compiled
def _marks_of(pairs: Any) -> Any:
    """Return the flag bits of each pair's terms."""
    both = np.empty(len(pairs), np.int64)
    for pair in range(len(pairs)):
        both[pair] = _mark_of(pairs[pair, 0]) | _mark_of(pairs[pair, 1])
    return both


@compiled
def _by_marks(pairs: Any, terms: Any) -> Any:
    """Return the maximum share of pairs of a document, by the flags of its first terms."""
    out = np.zeros(_FEW + 1, np.int64)
    for pair in range(len(pairs)):
        first, second = pairs[pair, 0], pairs[pair, 1]
        both = (1 << first | 1 << second) & _FEW if max(first, second) < _MARKS else 0
        for marks in range(1 << min(terms, 8)):  # `min` of the count, not of `1 << terms`: 1 << 64 exceeds 64 bits
            if marks & both == both:
                out[marks] += pairs[pair, 2]
    return out


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
    title_of: Any,
    whole: int,
    pairs: Any,
    forced: Any,
    rows: Any,
    likes: Any,
    titles: Any,
    touched: Any,
    chosen_rows: Any,
    cursors: Any,
    known: Any,
) -> tuple[Any, Any]:
    """Return what `neighbours.reach` returns, for documents that are not turns."""
    most = len(forced)
    for term in range(len(spans)):
        most += spans[term, 1] - spans[term, 0] + spans[term, 3] - spans[term, 2]
    most = min(most, count)
    numbers = np.empty(most, np.int64)
    shares = np.zeros((_RAW, most), np.int32)
    both = _marks_of(pairs)
    by_marks = _by_marks(pairs, len(spans))
    _begin(spans, by_term, whole, cursors, known)
    kept = 0
    next_forced = 0
    while True:
        first = np.int64(count)
        if next_forced < len(forced):
            first = np.int64(forced[next_forced])
        begin = _next(spans, base, tail, cursors, first)
        if begin >= count:
            break
        used = _of_block(
            base, tail, spans, base_lengths, tail_lengths, begin, some_dead, alive, length,
            by_term, like, title_of, whole, rows, likes, titles, touched, cursors, known,
        )  # fmt: skip
        while next_forced < len(forced) and forced[next_forced] < begin + BLOCK:
            place = np.int64(forced[next_forced]) - begin
            next_forced += 1
            if rows[place] == 0:
                touched[used] = place
                used += 1
            rows[place] |= _FORCED
        for at in range(used):
            place = np.int64(touched[at])
            row, by_trigram, by_title = rows[place], np.int64(likes[place]), np.int64(titles[place])
            rows[place] = 0
            likes[place] = 0
            titles[place] = 0
            raw = row & _SUM
            if raw > 0:
                shares[0, kept] = raw - by_trigram - by_title
                shares[1, kept] = by_trigram
                shares[TITLE, kept] = by_title
                if by_marks[row >> _SUM_BITS & _FEW]:
                    shares[4, kept] = _of_pairs(base, tail, cursors, pairs, both, begin + place, row)
            elif not row & _FORCED:
                continue
            numbers[kept] = begin + place
            kept += 1
    return numbers[:kept], shares[:, :kept]


@compiled
def reach_best(
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
    title_of: Any,
    whole: int,
    pairs: Any,
    weight: Any,
    speakers: Any,
    speaker: Any,
    offers: Any,
    kinds: int,
    heaviest: int,
    standing: Any,
    wanted: int,
    rows: Any,
    likes: Any,
    titles: Any,
    touched: Any,
    chosen_rows: Any,
    cursors: Any,
    known: Any,
) -> tuple[Any, Any, int]:
    """Return the candidates for the best `wanted`, all documents with standing tags, and the number of all reached.

    They are documents of `reach_plain`. The terms of a block are added for all documents; near pairs and factors are
    determined only for documents that can be among the best so far.

    Args:
        standing: The documents with standing tags, ascending.
    """
    most = most_of(heaviest, speaker, kinds)
    both = _marks_of(pairs)
    by_marks = _by_marks(pairs, len(spans))
    _begin(spans, by_term, whole, cursors, known)
    numbers = np.empty(ROOM, np.int64)
    shares = np.zeros((_RAW, ROOM), np.int32)
    heap = np.zeros(wanted, np.int64)  # the best totals so far, the least on top
    some_apart = False
    for term in range(len(spans)):
        some_apart |= like[term] or term >= len(spans) - len(title_of)
    reached = 0
    kept = 0
    next_standing = 0
    while True:
        begin = _next(spans, base, tail, cursors, np.int64(count))
        if begin >= count:
            break
        used = _of_block(
            base, tail, spans, base_lengths, tail_lengths, begin, some_dead, alive, length,
            by_term, like, title_of, whole, rows, likes, titles, touched, cursors, known,
        )  # fmt: skip
        while next_standing < len(standing) and standing[next_standing] < begin:
            next_standing += 1
        while next_standing < len(standing) and standing[next_standing] < begin + BLOCK:
            place = standing[next_standing] - begin
            next_standing += 1
            if rows[place]:
                rows[place] |= _FORCED
        # Without a branch, which the processor could not predict.
        least = ((heap[0] << BITS) + most - 1) // most if most else np.int64(0)
        chosen = 0
        for at in range(used):
            place = np.uintp(touched[np.uintp(at)])
            row = rows[place]
            rows[place] = 0
            raw = row & _SUM
            reached += 1 if raw > 0 else 0
            touched[np.uintp(chosen)] = place
            chosen_rows[np.uintp(chosen)] = row
            possible = raw + by_marks[np.uintp(row >> _SUM_BITS & _FEW)] + (row & _FORCED)
            chosen += 1 if possible >= least else 0
        for at in range(chosen):
            place, row = np.int64(touched[at]), chosen_rows[at]
            raw = row & _SUM
            possible = raw + by_marks[row >> _SUM_BITS & _FEW]
            stands = row & _FORCED != 0
            if raw == 0 or (not stands and possible * most >> BITS < heap[0]):
                continue
            number = begin + place
            by_pairs = np.int64(0)
            if possible > raw:
                by_pairs = _of_pairs(base, tail, cursors, pairs, both, number, row)
            factor = factor_of(weight[number], speakers[number], speaker, offers[number], kinds)
            by_trigram, by_title = np.int64(likes[place]), np.int64(titles[place])
            by_words = raw - by_trigram - by_title
            total = (by_words * factor >> BITS) + (by_trigram * factor >> BITS) + (by_pairs * factor >> BITS)
            total += by_title * factor >> BITS
            if not stands and (total <= 0 or total < heap[0]):
                continue
            if kept == len(numbers):
                numbers = np.concatenate((numbers, np.empty_like(numbers)))
                shares = np.concatenate((shares, np.zeros_like(shares)), axis=1)
            numbers[kept] = number
            shares[0, kept] = by_words
            shares[1, kept] = by_trigram
            shares[4, kept] = by_pairs
            shares[TITLE, kept] = by_title
            kept += 1
            if total > heap[0]:
                replace_least(heap, total)
        if some_apart:
            likes[:] = 0
            titles[:] = 0
    return numbers[:kept], shares[:, :kept], reached
