"""Signals: the sources of a score, each a small class.

A signal gives documents integer shares, with SHARE_BITS of fraction, under one name or several; the score is the sum of
all shares, multiplied by what each document's manner and speaker count for. The words signals admit a document: one
that has no share of theirs is no hit, whatever the others say. Every share is a function of the record, the question
and the namespace's statistics, so that a filter changes no score.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from recollect.indexes.dense import Dense
from recollect.indexes.documents import NONE, Flags, Ints
from recollect.indexes.fixed import BITS, ONE, SHARE_BITS, log_ratio
from recollect.indexes.words import Found, QueryTerm, Scores, WordView, asked_terms
from recollect.text.dates import Named, named
from recollect.text.words import runs, stem, terms

#: What the signals beside the words count for, in hundredths, and the factor of the speaker who was asked about.
SESSION, PAIR, DATE = 70, 20, 10
SPEAKER = (5, 4)
_FIRST_PERSON = frozenset("i i'm i've i'd i'll my me mine we we're we've our us".split())
_NAME = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class Question:
    """A question as the signals read it.

    asked     the terms to look for, stand-ins for unknown words included
    sequence  the terms in their order, as they were asked
    dates     the dates that it names
    speaker   the number of the one speaker whom it names, or NONE
    visible   the documents that may be seen; None for all
    """

    asked: tuple[QueryTerm, ...]
    sequence: tuple[str, ...]
    dates: Named
    speaker: int
    visible: Flags | None


def read(text: str, view: WordView, visible: Flags | None) -> Question:
    """The question of a text."""
    wanted = [(term.term, term.word) for term in terms(text)]
    asked = tuple(asked_terms(view, wanted, visible))
    kept = {query.term for query in asked}
    sequence = tuple(term for term, _ in wanted if term in kept)
    return Question(asked, sequence, named(text), _speaker(text, view, visible), visible)


def _speaker(text: str, view: WordView, visible: Flags | None) -> int:
    """The one speaker whom a question names: by name, by its first three letters, or as "I" where there is a user."""
    names = [stem(run.partition("'")[0]) for run, _ in runs(text)]
    found = set[int]().union(*(view.speakers(name, visible) for name in names))
    short = {word.lower() for word in _NAME.findall(text) if len(word) == 3 and word[0].isupper()}
    found |= {number for name, number in view.table.speakers.items() if name[:3].lower() in short and name[:1] != "\0"}
    if visible is not None:
        found &= set(np.unique(view.table.speaker[: view.table.count][visible]).tolist())
    if found:
        return found.pop() if len(found) == 1 else NONE
    if _FIRST_PERSON & {run for run, _ in runs(text)}:
        return view.table.speakers.get("\0user", NONE)
    return NONE


class Signal(Protocol):
    """One source of a score beside the words."""

    name: str

    def shares(self, question: Question, view: WordView, words: Scores) -> Ints:
        """A share for each document, with SHARE_BITS of fraction."""
        ...


class Session:
    """How well a turn's whole session fits the question: BM25 over sessions."""

    name = "session"

    def shares(self, question: Question, view: WordView, words: Scores) -> Ints:
        table = view.table
        lengths = table.session_lengths
        live = int(np.count_nonzero(lengths))
        tokens = int(lengths.sum())
        session = table.session[: table.count]
        if not live or not words.mass:
            return np.zeros(table.count, dtype=np.int64)
        # K = 1.2 (1/4 + 3/4 length / mean length)
        pivot = 3 * ONE // 10 + lengths * (9 * live * ONE // 10) // tokens
        sums = np.zeros(len(lengths) + 1, dtype=np.int64)
        for each in words.found:
            numbers, counts = _seen(each, question.visible)
            inside = session[numbers] != NONE
            places = session[numbers][inside]
            mass = np.bincount(places, counts[inside], len(lengths)).astype(np.int64)
            weight = each.asked.weight * log_ratio(2 * live + 2, 2 * int(np.count_nonzero(mass)) + 1) >> BITS
            mass = np.minimum(mass, 1 << 15) << BITS
            saturated = weight * 22 * mass // (10 * (mass + pivot))
            sums[: len(lengths)] += (saturated * SESSION // 100 << SHARE_BITS) // words.mass
        shares: Ints = sums[session]  # NONE takes the last, which is 0
        return shares


def _seen(found: Found, visible: Flags | None) -> tuple[Ints, Ints]:
    if visible is None:
        return found.numbers, found.counts
    seen = visible[found.numbers]
    return found.numbers[seen], found.counts[seen]


class Pairs:
    """Words that follow each other in the question and, within two places, in the text."""

    name = "pair"

    def shares(self, question: Question, view: WordView, words: Scores) -> Ints:
        out = np.zeros(view.table.count, dtype=np.int64)
        idf = {each.asked.term: each.idf for each in words.found}
        whole = 2 * sum(idf[term] for term in question.sequence)
        for first, second in dict.fromkeys(pairwise(question.sequence)):
            one, other = view.occurrences(first), view.occurrences(second)
            if first == second or not len(one) or not len(other):
                continue
            near = _among(one + 1, other) | _among(one + 2, other)
            numbers = np.unique(one[near] >> BITS)
            out[numbers] += ((idf[first] + idf[second]) * PAIR // 100 << SHARE_BITS) // whole
        return out


def _among(wanted: Ints, held: Ints) -> Flags:
    """Which of the wanted are held; both rise, and something is held."""
    found: Flags = held[np.minimum(np.searchsorted(held, wanted), len(held) - 1)] == wanted
    return found


class Dates:
    """The day on which it was said: a share for the month that a question names, two for the very day."""

    name = "date"

    def shares(self, question: Question, view: WordView, words: Scores) -> Ints:
        out = np.zeros(view.table.count, dtype=np.int64)
        dates = question.dates
        if not dates.months:
            return out
        civil = view.table.civil[: view.table.count]
        fits = np.isin(civil >> 5 & 15, list(dates.months))
        if dates.years:
            fits &= np.isin(civil >> 9, list(dates.years))
        share = (DATE << SHARE_BITS) // 100
        out[fits] = share
        if dates.days:
            out[fits & np.isin(civil & 31, list(dates.days))] = 2 * share
        return out


#: What a score is made of beside the words.
SIGNALS: tuple[Signal, ...] = (Session(), Pairs(), Dates())


def score(question: Question, view: WordView, dense: Dense | None = None) -> Scores:
    """The shares of every document, from all signals; `dense` is that of the vectors, where there are any."""
    words = view.score(question.asked, question.visible)
    relevant = words.total() > 0
    if dense is not None:
        relevant |= dense.admits
        words.shares["dense"] = np.where(relevant, dense.shares, 0)
    for signal in SIGNALS:
        words.shares[signal.name] = np.where(relevant, signal.shares(question, view, words), 0)
    table = view.table
    factor = table.weight[: table.count].copy()
    if question.speaker != NONE:
        above, below = SPEAKER
        theirs = table.speaker[: table.count] == question.speaker
        factor[theirs] = factor[theirs] * above // below
    for name, column in words.shares.items():
        words.shares[name] = column * factor >> BITS
    words.factor = factor
    return words
