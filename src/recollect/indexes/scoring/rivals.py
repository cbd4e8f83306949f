"""Rivals: records that say the same kind of thing at different times, of which a question asks for one.

"I drive a Skoda" and "I drive a Volvo" are rivals for "what do I drive?". The words decide nothing between them, or
prefer the older one because it is shorter. So the one that the question asks for gets at least the score of the other,
as the share "prevails": the newest for a question about now, the oldest for one about what was before, and the newest
of its time for one that names a time.

Rivals have the same words of the question in their own texts, the same user, and the same named speaker, if any; no
machine wrote them, they do not only ask, and their scores are not far apart. If the question has no word such as "now"
or "before", they have all of its words, and it is about the present. Rivals are looked for among the best documents of
the view, whatever the filter and the number of hits, so neither changes a score.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from recollect.indexes.documents.columns import NO_TIME, NONE, Flags, Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.parameters import RIVAL, RIVAL_OF_ALL_WORDS
from recollect.indexes.scoring.scores import Scores
from recollect.indexes.words.index import QueryTerm, WordView
from recollect.indexes.words.segment import POSITION_BITS
from recollect.text.answers import ASKS
from recollect.text.change import Holds

#: Number of the best documents among which rivals are looked for.
BEST_RIVALS = 100
#: The least part of the greatest weight of words of the question that rivals have, if it has a word such as "now".
_MOST_WORDS = (3, 4)
#: A question without a word such as "now" needs this many words that its rivals have.
_LEAST_WORDS = 2


class Contest(NamedTuple):
    """The choice among several rivals that a question asks for.

    Attributes:
        holds: NOW: the newest. BEFORE: the oldest.
        until: The end of the time that it names, in microseconds since 1970; later records come last. None: none.
        implied: The question has no word that says so, but is about the present.
        beside: Terms that name an event, such as "the move" in "before the move": rivals need not share them.
    """

    holds: Holds
    until: int | None = None
    implied: bool = False
    beside: frozenset[str] = frozenset()


def may_have_rivals(asked: Iterable[QueryTerm], view: WordView) -> bool:
    """Return whether at least two live documents have all words of a question, which needs at least two.

    Cost:
        O(occurrences of the rarest word), and O(log n) for each of them and each other word.
    """
    columns = [view.occurrences(each.term) for each in asked if not each.like]
    if len(columns) < _LEAST_WORDS:
        return False
    columns.sort(key=len)
    numbers = columns[0] >> POSITION_BITS
    for column in columns[1:]:
        if len(numbers) < _LEAST_WORDS:
            return False
        at = column.searchsorted(numbers << POSITION_BITS)
        inside = at < len(column)
        numbers = numbers[inside]
        numbers = numbers[column[at[inside]] >> POSITION_BITS == numbers]
    return len(numbers) > 1 and bool((numbers[1:] != numbers[:-1]).any())


def has_rivals(scores: Scores, known: int) -> bool:
    """Return whether `scores` have all documents among which rivals are looked for.

    Args:
        scores: The scores of a question.
        known: This many of the best documents before any limit are there; others may be missing.
    """
    if len(scores.numbers) >= scores.reached.passed:
        return True
    if len(scores.numbers) < known:
        return False
    least = scores.most_of_others(known)
    return int(np.count_nonzero(_usable(scores) & (scores.totals > least))) >= BEST_RIVALS


def _usable(scores: Scores) -> Flags:
    """Return which documents can be rivals: hits that have a time, and do not only ask."""
    table, numbers = scores.query.view.table, scores.numbers
    out: Flags = (scores.totals > 0) & ((table.offers[numbers] & ASKS) == 0) & (table.micros[numbers] != NO_TIME)
    return out


def prevailing(scores: Scores, contest: Contest, lapsed: Ints) -> Ints:
    """Return the share of each document of `scores` for prevailing over its rivals; empty if none does.

    Args:
        scores: The scores of all documents that the question reaches.
        contest: Which of them the question asks for.
        lapsed: The documents that are not valid at the time in question: what replaces them has its own share.

    Cost:
        That of explaining `BEST_RIVALS` hits, and O(n²) for n rivals among them.
    """
    table, totals, numbers = scores.query.view.table, scores.totals, scores.numbers
    usable = _usable(scores)
    if len(lapsed):
        usable &= ~np.isin(numbers, lapsed)
    at = np.flatnonzero(usable)
    if len(at) > BEST_RIVALS:
        at = at[scores.query.kernels.best(totals[at], numbers[at], table, BEST_RIVALS)]
        if len(at) > 2 * BEST_RIVALS:  # which of those that tie with the last are first is not determined
            at = at[totals[at] > totals[at].min()]
    at = at[~table.by_machine(numbers[at])]
    if len(at) < 2:
        return np.zeros(0, dtype=np.int64)
    own = _own_words(scores, numbers[at])
    beside = [number for number, each in enumerate(scores.query.terms) if each.term in contest.beside]
    words = [number for number, each in enumerate(scores.query.terms) if not each.like and number not in beside]
    own = own[:, words]
    if contest.implied:
        kept = own.all(axis=1)
    else:  # those whose words of the question weigh most
        weight = own @ scores.query.weights.terms[words]
        kept = (weight > 0) & (weight * _MOST_WORDS[1] >= weight.max(initial=0) * _MOST_WORDS[0])
    shares: Ints = np.zeros(len(numbers), dtype=np.int64)
    groups: dict[tuple[int, int, bytes], list[int]] = {}
    for index, of, key in zip(at[kept].tolist(), numbers[at[kept]].tolist(), own[kept], strict=True):
        groups.setdefault((int(table.user[of]), _named(table, of), key.tobytes()), []).append(index)
    tolerance = RIVAL_OF_ALL_WORDS if contest.implied else RIVAL
    for rivals in groups.values():
        if len(rivals) > 1:
            for index, share in _lifted(rivals, scores, contest, tolerance):
                shares[index] = share
    return shares if shares.any() else np.zeros(0, dtype=np.int64)


def _own_words(scores: Scores, numbers: Ints) -> Flags:
    """Return which terms of the question each document has in its own text."""
    query = scores.query
    if not query.mass:
        return np.zeros((len(numbers), len(query.terms)), dtype=np.bool_)
    found = query.kernels.matched(query.postings, query.view.table, query.weights, numbers)
    out: Flags = found.own > 0
    return out


def _named(table: Table, number: int) -> int:
    """Return the speaker of a document, if it has a name, or NONE."""
    speaker = int(table.speaker[number])
    return speaker if speaker != NONE and table.speakers.folded[speaker] else NONE


def _lifted(
    rivals: list[int], scores: Scores, contest: Contest, tolerance: tuple[int, int]
) -> Iterable[tuple[int, int]]:
    """Yield the rivals that prevail over another one, with what they gain.

    In the order in which they are asked for, the last one first, each gets at least one unit more than those before it
    that have not a much higher score.
    """
    table, of, out_of = scores.query.view.table, *tolerance
    micros = {index: int(table.micros[scores.numbers[index]]) for index in rivals}
    totals = {index: int(scores.totals[index]) for index in rivals}

    def asked_for(index: int) -> tuple[bool, int]:
        time = micros[index]
        if contest.until is not None and time >= contest.until:
            return False, -time
        return True, time if contest.holds is Holds.NOW else -time

    rivals = sorted(rivals, key=asked_for)
    lifted: list[tuple[int, int, tuple[bool, int]]] = []
    for index in rivals:
        total, key = totals[index], asked_for(index)
        least = max(
            (high + 1 for base, high, other in lifted if other != key and total * out_of >= base * of), default=0
        )
        if least > total:
            yield index, least - total
        lifted.append((total, max(least, total), key))
