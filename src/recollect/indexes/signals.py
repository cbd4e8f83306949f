"""Signals: the sources of a score, each a small class.

A signal gives documents integer shares, with SHARE_BITS of fraction, under one name or several; the score is the sum of
all shares, multiplied by what each document's manner and speaker count for. The words signals admit a document: one
that has no share of theirs is no hit, whatever the others say. Every share is a function of the record, the question
and the namespace's statistics, so that a filter changes no score.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Protocol

import numpy as np

from recollect.indexes.dense import Dense
from recollect.indexes.documents import NONE, Flags, Ints, Table, civil_of
from recollect.indexes.fixed import BITS, ONE, SHARE_BITS, log_ratio
from recollect.indexes.vocabulary import LEAST_LETTERS, comparable
from recollect.indexes.words import QueryTerm, Scores, WordView, asked_terms
from recollect.text.answers import Kind, subject_of
from recollect.text.answers import wanted as asks_for
from recollect.text.dates import Named, named
from recollect.text.languages import CODES, known
from recollect.text.words import folded, language_of, runs, stem, terms

#: What the signals beside the words count for, in hundredths, and the factor of the speaker who was asked about.
SESSION, PAIR, DATE = 70, 20, 10
SPEAKER = (5, 4)
_FIRST_PERSON = frozenset("i i'm i've i'd i'll my me mine we we're we've our us".split())
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


#: What a document that offers the kind of answer that is asked for counts for.
ANSWER = (23, 20)


@dataclass(frozen=True)
class Question:
    """A question as the signals read it.

    asked     the terms to look for, stand-ins for unknown words included
    sequence  the terms in their order, as they were asked
    dates     the dates that it names
    speaker   the number of the one speaker whom it names first, or NONE
    wanted    the kinds of answers that it asks for
    """

    asked: tuple[QueryTerm, ...]
    sequence: tuple[str, ...]
    dates: Named
    speaker: int
    wanted: Kind


def read(text: str, view: WordView, today: date, tag: str | None = None) -> Question:
    """The question of a text, asked on a day, from which "yesterday" counts.

    tag  its language, as a BCP 47 tag; None: the one that it seems to be in, else that of most documents
    """
    text = " ".join(text.split())
    dates = named(text, today)
    spoken = subject_of(text)
    if _in_spans(dates, view.table).any():
        # Where something was said at that time, "yesterday" tells the time and is no word to look for.
        for phrase in dates.relative:
            spoken = spoken.replace(phrase, " ")
    speaker, misspelt = _speaker(text, view)
    language = _language(text, view, tag)
    wanted = [(term.term, term.word) for term in terms(spoken, language)]
    if not known(tag):
        wanted = [(_known_stem(term, word, view), word) for term, word in wanted]
    wanted = [each for each in wanted if each[1] not in misspelt] or wanted
    asked = tuple(asked_terms(view, wanted))
    kept = {query.term for query in asked}
    sequence = tuple(term for term, _ in wanted if term in kept)
    return Question(asked, sequence, dates, speaker, asks_for(text))


def _language(text: str, view: WordView, tag: str | None) -> str:
    """In which language a question's words are read: one that documents are written in, where it is not told."""
    if known(tag):
        return language_of(text, tag)
    counts = view.table.languages
    if np.count_nonzero(counts) == 1:
        return CODES[int(counts.argmax())]
    own = language_of(text)
    spoken = CODES.index(own)
    return own if spoken < len(counts) and counts[spoken] else CODES[int(counts.argmax())] if len(counts) else own


def _known_stem(term: str, word: str, view: WordView) -> str:
    """The term of a word; where nobody uses it, that of a language in which the word is used, the commonest first."""
    counts = view.table.languages
    if not word or np.count_nonzero(counts) < 2 or view.known(term):
        return term
    spoken = sorted(np.flatnonzero(counts).tolist(), key=lambda code: (-int(counts[code]), code))
    return next((other for code in spoken if view.known(other := stem(word, CODES[code]))), term)


def _in_spans(dates: Named, table: Table) -> Flags:
    """Which live documents are of the days that a question tells from where it stands."""
    civil = table.civil[: table.count]
    out: Flags = np.zeros(table.count, dtype=np.bool_)
    for first, last in dates.spans:
        out |= (civil >= civil_of(first)) & (civil <= civil_of(last))
    return out & table.alive[: table.count]


def _speaker(text: str, view: WordView) -> tuple[int, set[str]]:
    """The speaker whom a question names first, and the misspelt names in it.

    By name, by its first three letters, by a word that nobody uses and that is almost a name, or as "I" where there is
    a user.
    """
    names = view.table.spoken_by
    misspelt: set[str] = set()
    for raw in _WORD.findall(text):
        plain = raw.partition("'")[0]
        word = folded(plain)
        found = {number for number in view.speakers(stem(word)) if number in names}
        if not found and len(plain) == 3 and plain[0].isupper():
            found = {number for number, name in names.items() if name[:3] == word}
        if not found and comparable(word) and not view.known(stem(word)):
            found = {number for number, name in names.items() if any(_almost(word, each) for each in name.split())}
            if found:
                misspelt.add(word)
        if found:
            return (found.pop() if len(found) == 1 else NONE), misspelt
    if _FIRST_PERSON & {run for run, _ in runs(text)}:
        return view.table.speakers.get("\0user", NONE), misspelt
    return NONE, misspelt


def _almost(word: str, name: str) -> bool:
    """Whether a word is a name of four letters or more but for one letter changed, left out, put in, or two swapped.

    >>> _almost("melanei", "melanie"), _almost("ben", "ken"), _almost("melanie", "melania")
    (True, False, True)
    """
    if len(name) < LEAST_LETTERS or abs(len(word) - len(name)) > 1:
        return False
    start = next((at for at, (one, other) in enumerate(zip(word, name, strict=False)) if one != other), len(word))
    one, other = word[start:], name[start:]
    return (
        one[1:] == other[1:] or one[1:] == other or one == other[1:] or (one[1::-1], one[2:]) == (other[:2], other[2:])
    )


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
            numbers, counts = each.numbers, each.counts
            inside = session[numbers] != NONE
            places = session[numbers][inside]
            mass = np.bincount(places, counts[inside], len(lengths)).astype(np.int64)
            weight = each.asked.weight * log_ratio(2 * live + 2, 2 * int(np.count_nonzero(mass)) + 1) >> BITS
            mass = np.minimum(mass, 1 << 15) << BITS
            saturated = weight * 22 * mass // (10 * (mass + pivot))
            sums[: len(lengths)] += (saturated * SESSION // 100 << SHARE_BITS) // words.mass
        shares: Ints = sums[session]  # NONE takes the last, which is 0
        return shares


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
    """The day on which it was said: a share for a month, a year or a time told from now; two for the very day.

    A document of the very day is admitted though it has no word of the question.
    """

    name = "date"

    def shares(self, question: Question, view: WordView, words: Scores) -> Ints:
        table, dates = view.table, question.dates
        share = (DATE << SHARE_BITS) // 100
        civil = table.civil[: table.count]
        out = np.where(_in_spans(dates, table), share, 0)
        if dates.months or dates.years:
            fits = np.ones(table.count, dtype=np.bool_)
            if dates.months:
                fits &= np.isin(civil >> 5 & 15, list(dates.months))
            if dates.years:
                fits &= np.isin(civil >> 9, list(dates.years))
            out[fits] = share
        out[self.exact(question, view)] = 2 * share
        return out

    @staticmethod
    def exact(question: Question, view: WordView) -> Flags:
        """The documents of the very day that a question names."""
        table, dates = view.table, question.dates
        civil = table.civil[: table.count]
        out: Flags = np.zeros(table.count, dtype=np.bool_)
        for first, last in dates.spans:
            if first == last:
                out |= civil == civil_of(first)
        if dates.days:
            fits = np.isin(civil & 511, [month << 5 | day for month, day in dates.days])
            out |= fits & np.isin(civil >> 9, list(dates.years)) if dates.years else fits
        return out & table.alive[: table.count]


#: What a score is made of beside the words.
SIGNALS: tuple[Signal, ...] = (Session(), Pairs(), Dates())


def score(question: Question, view: WordView, dense: Dense | None = None) -> Scores:
    """The shares of every document, from all signals; `dense` is that of the vectors, where there are any."""
    words = view.score(question.asked)
    relevant = (words.total() > 0) | Dates.exact(question, view)
    if dense is not None:
        relevant |= dense.admits
    if not relevant.any():  # no word leads anywhere: what is of the time that is named may still be meant
        relevant = (Dates().shares(question, view, words) > 0) & view.table.alive[: view.table.count]
    for signal in SIGNALS:
        words.shares[signal.name] = np.where(relevant, signal.shares(question, view, words), 0)
    table = view.table
    factor = table.weight[: table.count].copy()
    if question.speaker != NONE:
        above, below = SPEAKER
        theirs = table.speaker[: table.count] == question.speaker
        factor[theirs] = factor[theirs] * above // below
    above, below = ANSWER
    for kind in question.wanted:
        has = table.offers[: table.count] & kind != 0
        factor[has] = factor[has] * above // below
    for name, column in words.shares.items():
        words.shares[name] = column * factor >> BITS
    words.factor = factor
    if dense is not None:
        # A cosine has seen the whole text, its manner too: no factor is due to it.
        words.shares["dense"] = np.where(relevant, dense.shares, 0)
    return words
