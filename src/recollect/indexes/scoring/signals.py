"""Signals: how a question is read, and what makes up a score.

The words of a question, with what the turns around lend, make most of a score (`scores`). Beside them stand the
session, the nearness of words, the date and the vectors; the sum of all shares is multiplied by what each document's
manner and speaker count for, and by whether it offers the kind of answer that is asked for. Every share is a function
of the record, the question and the namespace's statistics, so that a filter changes no score.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

import numpy as np

from recollect.indexes.documents.columns import NONE, Flags, Ints, Numbers, civil_of
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import SHARE_BITS
from recollect.indexes.kernels.types import About
from recollect.indexes.parameters import DATE_SHARE
from recollect.indexes.scoring.dense import Dense
from recollect.indexes.scoring.scores import NOTHING, Scores, weighed
from recollect.indexes.words.index import QueryTerm, WordView, query_terms
from recollect.indexes.words.surface_forms import LEAST_LETTERS, comparable
from recollect.text.answers import Kind, subject_of
from recollect.text.answers import wanted as asks_for
from recollect.text.dates import Named, named
from recollect.text.folding import folded
from recollect.text.languages import CODES, known
from recollect.text.words import MAX_WORD, language_of, runs, stem, terms

_FIRST_PERSON = frozenset("i i'm i've i'd i'll my me mine we we're we've our us".split())
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


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
    table = view.table
    if dates.spans and (_of_spans(dates, table.civil[: table.count]) & table.alive[: table.count]).any():
        # Where something was said at that time, "yesterday" tells the time and is no word to look for.
        for phrase in dict.fromkeys(dates.relative):
            spoken = spoken.replace(phrase, " ")
    speaker, misspelt = _speaker(text, view)
    language = _language(text, view, tag)
    wanted = terms(spoken, language)
    if not known(tag):
        wanted = [(_known_stem(term, word, view), word) for term, word in wanted]
    wanted = [each for each in wanted if each[1] not in misspelt] or wanted
    asked = tuple(query_terms(view, wanted))
    kept = {query.term for query in asked}
    sequence = tuple(term for term, _ in wanted if term in kept)
    return Question(asked, sequence, dates, speaker, asks_for(text))


def _language(text: str, view: WordView, tag: str | None) -> str:
    """In which language a question's words are read: one that documents are written in, where it is not told."""
    if known(tag):
        return language_of(text, tag)
    written = view.table.written_in
    if len(written) == 1:
        return CODES[written[0]]
    own = language_of(text)
    return own if not written or CODES.index(own) in written else CODES[written[0]]


def _known_stem(term: str, word: str, view: WordView) -> str:
    """The term of a word; where nobody uses it, that of a language in which the word is used, the commonest first."""
    written = view.table.written_in
    if not word or len(written) < 2 or view.known(term):
        return term
    return next((other for code in written if view.known(other := stem(word, CODES[code]))), term)


def _of_spans(dates: Named, civil: Numbers) -> Flags:
    """Which days a question tells from where it stands."""
    out: Flags = np.zeros(len(civil), dtype=np.bool_)
    for first, last in {*dates.spans}:  # a question may name one a thousand times
        out |= (civil >= civil_of(first)) & (civil <= civil_of(last))
    return out


def _of_days(dates: Named, civil: Numbers) -> Flags:
    """Which are the very day that a question names."""
    out: Flags = np.zeros(len(civil), dtype=np.bool_)
    for first, last in {*dates.spans}:  # a question may name one a thousand times
        if first == last:
            out |= civil == civil_of(first)
    if dates.days:
        fits = np.isin(civil & 511, [month << 5 | day for month, day in dates.days])
        out |= fits & np.isin(civil >> 9, list(dates.years)) if dates.years else fits
    return out


def _speaker(text: str, view: WordView) -> tuple[int, set[str]]:
    """The speaker whom a question names first, and the misspelt names in it.

    By name, by its first three letters, by a word that nobody uses and that is almost a name, or as "I" where there is
    a user.
    """
    table = view.table
    misspelt: set[str] = set()
    if table.has_speakers:
        for raw in _WORD.findall(text):
            plain = raw.partition("'")[0][:MAX_WORD]  # as names are cut
            word = folded(plain)
            found = view.speakers(stem(word))
            if not found and len(plain) == 3 and plain[0].isupper():
                found = {number for number, name in table.speaker_names.items() if name[:3] == word}
            if not found and comparable(word) and table.speaker_names and not view.known(stem(word)):
                found = {
                    number
                    for number, name in table.speaker_names.items()
                    if any(_almost(word, each) for each in name.split())
                }
                if found:
                    misspelt.add(word)
            if found:
                return (found.pop() if len(found) == 1 else NONE), misspelt
    user = table.speakers.number.get("\0user", NONE)
    if user != NONE and _FIRST_PERSON & {run for run, _ in runs(text)}:
        return user, misspelt
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


def _date_shares(dates: Named, table: Table, numbers: Ints | Numbers) -> Ints:
    """A share for a month, a year or a time told from now; two for the very day."""
    share = (DATE_SHARE << SHARE_BITS) // 100
    civil = table.civil[numbers]
    out: Ints = np.where(_of_spans(dates, civil), share, 0)
    if dates.months or dates.years:
        fits = np.ones(len(civil), dtype=np.bool_)
        if dates.months:
            fits &= np.isin(civil >> 5 & 15, list(dates.months))
        if dates.years:
            fits &= np.isin(civil >> 9, list(dates.years))
        out[fits] = share
    out[_of_days(dates, civil)] = 2 * share
    return out


def score(
    question: Question, view: WordView, dense: Dense | None = None, best: int | None = None, among: Flags | None = None
) -> Scores:
    """The shares of every document that a question reaches, from all signals.

    A document is reached by a word, by its very day, or by its vector: one that has none of these is no hit, whatever
    the other signals say. Where nothing is reached so, what is of the time that is named may still be meant.

    dense  the signal of the vectors, where there are any
    best   no more than so many are wanted, beside those that stand; None: all
    among  the documents that count, with the shares that they have among all; None for all
    """
    asked = weighed(view, question.asked, question.sequence)
    table, dates = view.table, question.dates
    about = About(question.speaker, tuple(map(int, question.wanted)))
    named_time = bool(dates.days or dates.spans or dates.months or dates.years)
    if best is not None and dense is None and not named_time:
        return Scores(asked, asked.reach_best(about, max(1, min(best, table.live_count)), among), about=about)
    forced = np.zeros(0, dtype=np.int32)
    if dates.days or dates.spans:
        forced = _numbers(_of_days(dates, table.civil[: table.count]) & table.alive[: table.count])
    if dense is not None:
        forced = np.union1d(forced, _numbers(dense.admits))
    reached = asked.reach(forced)
    if not len(reached.numbers) and named_time:
        everyone = _numbers(table.alive[: table.count])
        reached = asked.reach(everyone[_date_shares(dates, table, everyone) > 0])
    if among is not None:
        reached = reached.within(among)
    dated = _date_shares(dates, table, reached.numbers) if named_time else NOTHING
    # A cosine has seen the whole text, its manner too: no factor is due to it.
    nearness = NOTHING if dense is None else dense.shares[reached.numbers]
    return Scores(asked, reached, dated, nearness, about)


def _numbers(flags: Flags) -> Numbers:
    return np.flatnonzero(flags).astype(np.int32)
