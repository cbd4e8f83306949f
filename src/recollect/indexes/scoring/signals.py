"""Signals: the parsing of a question, and the parts of a score.

The words of a question, with what surrounding turns lend, make up most of a score (`scores`). The other signals are the
session, the proximity of words, the date and the vectors. The sum of all shares but that of the vectors is multiplied
by factors for the document's manner, its speaker, and whether it provides the kind of answer that the question expects.
Every share is a function of the record, the question and the namespace's statistics, so a filter changes no score.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, replace
from datetime import date, timedelta

import numpy as np

from recollect.indexes.documents.columns import NO_TIME, NONE, Flags, Ints, Numbers, day_of
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import BITS, SHARE_BITS
from recollect.indexes.kernels.types import About, Extras, Near, Reached, Wanted
from recollect.indexes.parameters import NAMED_SHARE, SAID_SHARE, SPEAKER, SPEAKING_ASSISTANT, STANDING
from recollect.indexes.scoring.dense import Dense
from recollect.indexes.scoring.members import Member, MemberShares, member_shares, members_in
from recollect.indexes.scoring.neighbours import limits
from recollect.indexes.scoring.order_and_summary import by_place, spread
from recollect.indexes.scoring.scores import NOTHING, Scores, WeightedQuery, weighed
from recollect.indexes.scoring.speakers import named_speaker
from recollect.indexes.scoring.times import date_shares, exact, span_bounds, within
from recollect.indexes.words.index import QueryTerm, WordView, query_terms
from recollect.text.answers import ASKS, INSTRUCTION, Kind
from recollect.text.answers import wanted as asks_for
from recollect.text.asking import is_about_questions
from recollect.text.change import Holds, asks_what_holds, words_beside
from recollect.text.dates import NO_DATES, NamedDates, in_recent_days, named
from recollect.text.dates.spans import Span
from recollect.text.events import NamedEvent, events
from recollect.text.frames import Frame, frame_of, frame_words
from recollect.text.languages import CODES, known
from recollect.text.requests import AskedFor, request_of, subject_of, without_kind
from recollect.text.signs import asked_terms
from recollect.text.words import MAX_WORD, language_of, runs, stem, terms

#: The speaker of turns with the role of the assistant and no name.
ASSISTANT = "\0assistant"
#: Number of days before and after the day of an event that are around it.
AROUND = 7


@dataclass(frozen=True)
class Question:
    """A question as the signals read it.

    Attributes:
        asked: The terms to search for, including replacements of unknown words.
        sequence: The terms in the order of the question.
        dates: The dates that it names.
        speaker: The number of the speaker that it names first, or NONE if there is none or the name is ambiguous.
        wanted: The kinds of answers that it expects.
        request: What it asks to be done.
        members: The members of the class that it asks for.
        favour: The factor of the speaker's documents.
        about_questions: Whether a text that only asks can answer it.
        holds: Whether it asks for what is true now or was true before.
        present: Whether it is a question about the present.
        beside: The terms of the events that it names as times, and of phrases such as "these days".
        speaker_share: The share of the speaker's turns, in hundredths, if nothing else is left of the question; else 0.
    """

    asked: tuple[QueryTerm, ...]
    sequence: tuple[str, ...]
    dates: NamedDates
    speaker: int
    wanted: Kind
    request: AskedFor
    members: tuple[Member, ...] = ()
    speaker_share: int = 0
    favour: int = SPEAKER
    about_questions: bool = False
    holds: Holds | None = None
    present: bool = False
    beside: frozenset[str] = frozenset()


def read(text: str, view: WordView, now: date, tag: str | None = None) -> Question:
    """Parse a question.

    Args:
        text: The question.
        view: The view to search.
        now: The day or the time from which relative dates such as "yesterday" count.
        tag: Its language as a BCP 47 tag. None: the detected language, if documents are written in it, or else the most
            frequent language of the documents.
    """
    text = " ".join(text.split())
    dates = named(text, now, tag)
    undated = text
    # "The week before last" asks for no former state, and "the first of May" for no order.
    for phrase in (*dates.relative, *dates.absolute):
        undated = undated.replace(phrase, " ")
    request, framed, wanted = request_of(undated), without_kind(text), asks_for(text)
    if dates.windows:
        tells = request.recollection or wanted & Kind.PAST
        dates = in_recent_days(dates, now) if tells else dates._replace(windows=())
    holds = asks_what_holds(undated)
    table = view.table
    if dates.spans or dates.moments:
        if within(dates, table).any():
            # If there are documents of that time, "yesterday" is a date and not a word to search for.
            for phrase in dict.fromkeys(dates.relative):
                framed = framed.replace(phrase, " ")
        elif dates.nearby:
            days = tuple(span for span in dates.nearby if span[0] == span[1])
            dates = dates._replace(around=dates.nearby, main=(*dates.main, *days), nearby=())
    view.check()
    speaker, misspelt = named_speaker(text, view)
    language = _language(text, view, tag)
    frame = _frame(framed, view, misspelt, language) if table.has_speakers else Frame(frame_words(language))
    by_name = speaker != NONE and table.speaker_names.get(speaker) is not None
    favour = SPEAKER
    if frame.assistant and not by_name and (assistant := table.speakers.number.get(ASSISTANT)) is not None:
        speaker, favour = assistant, SPEAKING_ASSISTANT
    pairs = terms(subject_of(framed, request), language) or terms(framed, language) or terms(text, language)
    if speaker != NONE and frame.only and frame.says and not frame.assistant:
        pairs = [each for each in pairs if view.is_speaker_name(stem(each[1]) if each[1] else each[0])] or pairs
    else:
        pairs = [each for each in pairs if each[1] not in frame.words] or pairs
    if not known(tag):
        pairs = [(_known_stem(term, word, view), word) for term, word in pairs]
    pairs = [each for each in pairs if each[1] not in misspelt] or pairs
    # Of tokens with signs and numbers, only those that a document has: without one, the words in them decide.
    seen = set(pairs)
    for each in asked_terms(text, [word for _, word in pairs]):
        if each not in seen and view.in_use(each[0]):
            seen.add(each)
            pairs.append(each)
    happened = events(text) if dates == NO_DATES else ()
    beside = frozenset[str]()
    if happened or holds is not None:
        names = " ".join([words_beside(undated), *[name for _, name in happened]])
        beside = frozenset([term for term, _ in terms(names, language)])
    plain = dates == NO_DATES and not happened
    if happened:
        dates = dates._replace(around=tuple(_times_of(happened, view, language)))
    asked = tuple(query_terms(view, pairs, language))
    kept = {query.term for query in asked}
    sequence = tuple(term for term, _ in pairs if term in kept)
    share = 0
    if speaker != NONE and frame.only and (frame.says or by_name):
        # "What did you recommend?" has a word to search for: it decides among the assistant's turns.
        topic = favour == SPEAKING_ASSISTANT and any(word not in frame.words for _, word in pairs)
        share = SAID_SHARE if frame.says and not topic else NAMED_SHARE
    of_questions = request.order or request.summary or is_about_questions(text)
    members = members_in(text, view)
    return Question(
        asked,
        sequence,
        dates,
        speaker,
        wanted,
        request,
        members,
        share,
        favour,
        about_questions=of_questions,
        holds=holds,
        present=plain and not (wanted & Kind.PAST or request.recollection) and text.endswith(("?", "？")),
        beside=beside,
    )


def _times_of(happened: Iterable[NamedEvent], view: WordView, language: str) -> Iterator[Span]:
    """Yield the days that events mean as times: since the day on which the best record tells of it, until or around it.

    A record that tells of an event has all words of its name; its last words may be left out.
    """
    table = view.table
    for relation, name in happened:
        view.check()
        pairs = terms(name, language)
        while pairs and not (telling := _having_all([term for term, _ in pairs], view)).any():
            pairs.pop()
        if not pairs:
            continue
        asked = tuple(query_terms(view, pairs))
        question = Question(asked, tuple(term for term, _ in pairs), NO_DATES, NONE, Kind(0), AskedFor())
        scores = score(question, view, best=1, among=telling)
        index, _ = next(scores.ranked(1), (NONE, 0))
        if index == NONE or table.micros[scores.numbers[index]] == NO_TIME:
            continue
        day = day_of(int(table.civil[scores.numbers[index]]))
        if relation == "after":
            yield day, date.max
        elif relation == "before":
            yield date.min, day
        else:
            around = timedelta(AROUND)
            yield day - min(around, day - date.min), day + min(around, date.max - day)


def _having_all(of: list[str], view: WordView) -> Flags:
    """Return which live documents have all of some terms."""
    out = view.having(of[:1])
    for term in of[1:]:
        out &= view.having([term])
    return out & view.table.alive[: view.table.count]


def _frame(subject: str, view: WordView, misspelt: Set[str], language: str) -> Frame:
    """Return the frame of a question in the language in which it is read, or in one that documents are written in."""
    spaced, unspaced = [], ""
    for run, without_spaces in runs(subject):
        if without_spaces:
            unspaced += run
        else:
            spaced.append(run.partition("'")[0][:MAX_WORD])
    for name in view.table.speaker_names.values() if unspaced else ():
        unspaced = unspaced.replace(name, "")
    names = {word for word in spaced if word in misspelt or view.is_speaker_name(stem(word))}
    written = (CODES[number] for number in view.table.written_in)
    return frame_of(spaced, unspaced, names, list(dict.fromkeys([language, *written, *CODES])))


def _language(text: str, view: WordView, tag: str | None) -> str:
    """Return the language in which a question's words are read.

    Without a tag, it is one that documents are written in.
    """
    if known(tag):
        return language_of(text, tag)
    written = view.table.written_in
    if len(written) == 1:
        return CODES[written[0]]
    own = language_of(text)
    return own if not written or CODES.index(own) in written else CODES[written[0]]


def _known_stem(term: str, word: str, view: WordView) -> str:
    """Return the term of a word; if no document has it, the term in the most frequent language in which one does."""
    written = view.table.written_in
    if not word or len(written) < 2 or view.known(term):
        return term
    return next((other for code in written if view.known(other := stem(word, CODES[code]))), term)


def score(
    question: Question,
    view: WordView,
    dense: Dense | None = None,
    best: int | None = None,
    among: Flags | None = None,
    admitted: Ints | None = None,
    at_first: int = 0,
) -> Scores:
    """Return the shares, from all signals, of the documents that a question reaches.

    A document is reached by a word, by a member of a class, by an exact day, or by its vector. Others are not hits,
    whatever the other signals add. If no document is reached, those of the month, year or span that the question names
    are hits.

    Args:
        view: The view to search.
        dense: The signal of the vectors, if there are any.
        best: At most this many documents are needed, and STANDING of those with standing tags; None: all.
        among: The documents that may be hits; their shares are computed among all documents. None for all.
        admitted: Documents that count as reached although the question may reach them by no signal.
        at_first: At least this many are computed before any limit, with `best`. Limits may require more.
    """
    wanted = None if best is None else max(best, at_first)
    found = _score(question, view, dense, wanted, among, admitted)
    while wanted is not None and (missing := _missing(found, wanted, best)):
        wanted += max(missing, wanted)
        found = _score(question, view, dense, wanted, among, admitted)
    return found


def _missing(scores: Scores, wanted: int, best: int | None) -> int:
    """Return how many more of the best documents by their words are needed, since others were limited."""
    if not len(scores.limit) or len(scores.numbers) >= scores.reached.passed:
        return 0
    return max(0, (best or 0) - int(np.count_nonzero(scores.totals > scores.most_of_others(wanted))))


def _score(
    question: Question,
    view: WordView,
    dense: Dense | None,
    best: int | None,
    among: Flags | None,
    admitted: Ints | None,
) -> Scores:
    """Return what `score` does; with `best`, that many of the best before any limit (`neighbours.limits`)."""
    asked = weighed(view, question.asked, question.sequence)
    table, dates = view.table, question.dates
    kinds = (
        *map(int, question.wanted),
        *((INSTRUCTION,) if question.request.recollection else ()),
        *(() if question.about_questions else (ASKS,)),
    )
    about = About(question.speaker, kinds, question.favour)
    named_time = dates != NO_DATES
    request, members = question.request, question.members if asked.mass else ()
    placed = request.order or request.summary
    forced = NOTHING
    if dates.days or dates.spans or dates.moments:
        forced = exact(dates, table)
    spoken: Flags | None = None
    if question.speaker_share:
        spoken = (table.speaker[: table.count] == question.speaker) & table.alive[: table.count]
        forced = _joined(forced, np.flatnonzero(spoken))
    with_member = member_shares(members, question.speaker, asked.mass, view) if members else None
    if with_member is not None:
        forced = _joined(forced, with_member.numbers)
    if dense is not None:
        forced = _joined(forced, dense.admitted)
    if admitted is not None:
        forced = _joined(forced, admitted)
    reached: Reached | None = None
    whole = False
    if best is not None and admitted is None and not placed:
        wanted = Wanted(max(1, min(best, table.live_count)), STANDING, among)
        if len(forced) or named_time or dense is not None:
            wanted = wanted._replace(extras=_extras(forced, dates, with_member, dense, table))
        reached = asked.reach_best(about, wanted) if spoken is None else _best_with(spoken, asked, about, wanted)
    if reached is None or (named_time and not reached.passed):
        whole, reached = True, asked.reach(forced)
        if named_time and not reached.passed:  # nothing is reached, whatever may be a hit
            alive = np.flatnonzero(table.alive[: table.count])
            reached = asked.reach(alive[date_shares(dates, table, alive) > 0])
    dated = date_shares(dates, table, reached.numbers) if named_time else NOTHING
    by_vector = NOTHING if dense is None else dense.shares[reached.numbers]
    said = NOTHING if spoken is None else spoken[reached.numbers] * ((question.speaker_share << SHARE_BITS) // 100)
    by_member = None if with_member is None else with_member.of(reached.numbers)
    scores = Scores(asked, reached, dated, by_member, speaker=said, dense=by_vector, about=about)
    if placed:
        factors = by_place(request, reached.numbers, table)
        if request.order:
            scores = replace(scores, placed=factors)
            factors = factors * spread(scores.totals, reached.numbers, table) >> BITS
        scores = replace(scores, placed=factors)
    # Where all are there, all are limited: one behind the best would else come before those that were limited. If some
    # may not be hits, turns that lend to the others can be among those.
    if whole or len(reached.numbers) >= reached.passed:
        best = None if whole or among is None else len(reached.numbers)
    if table.has_turns and len(limit := limits(scores, best)):
        scores = replace(scores, limit=limit)
    return scores if among is None or not whole else scores.within(among)


def _best_with(spoken: Flags, asked: WeightedQuery, about: About, wanted: Wanted) -> Reached | None:
    """Return at least the best documents if those of one speaker, in `spoken`, have the same share besides the others.

    They are among the best of the speaker and the best of all others: each search is independent of that share. The
    same applies to documents with standing tags. None if too few of the speaker's have any other share, so that
    documents with only this share can be among the best.
    """
    table = asked.view.table
    extras, found = wanted.extras, []
    for group in (spoken, ~spoken):
        among = group if wanted.among is None else group & wanted.among
        admits = None if extras is None else extras.within(group)
        found.append(asked.reach_best(about, wanted._replace(among=among, extras=admits)))
    first, others = found
    shares = NOTHING if extras is None else extras.of(first.numbers)
    totals = asked.kernels.weigh(first, shares, table, about)
    standing = table.governing[spoken[table.governing]]
    least_standing = min(wanted.standing, len(standing) if wanted.among is None else int(wanted.among[standing].sum()))
    has_tags = table.standing[first.numbers] != 0
    if np.count_nonzero(totals) < wanted.best or np.count_nonzero(totals[has_tags]) < least_standing:
        return None
    numbers = np.concatenate([first.numbers, others.numbers])
    return Reached(numbers, np.concatenate([first.shares, others.shares], axis=1), first.passed + others.passed)


def _extras(
    forced: Ints, dates: NamedDates, with_member: MemberShares | None, dense: Dense | None, table: Table
) -> Extras:
    """Return the shares of dates, members and meaning before any factor; `forced` are the documents that they admit."""

    def without_meaning(numbers: Ints) -> Ints:
        shares = date_shares(dates, table, numbers) if dates != NO_DATES else np.zeros(len(numbers), dtype=np.int64)
        return shares if with_member is None else shares + with_member.of(numbers).shares

    def shares_of(numbers: Ints) -> Ints:
        shares = without_meaning(numbers)
        return shares if dense is None else shares + dense.shares[numbers]

    def bounds_in(first: Numbers, last: Numbers) -> tuple[Ints, Ints]:
        # Documents of exact days and times are among the forced ones, those with members too.
        nothing = np.zeros(len(first), dtype=np.int64)
        return span_bounds(dates, first, last) if dates != NO_DATES else (nothing, nothing)

    near = None if dense is None else Near(dense.shares, dense.numbers)
    return Extras(forced, without_meaning(forced), bounds_in, shares_of, near)


def _joined(some: Ints, more: Ints) -> Ints:
    """Return the numbers of two sets without repetitions, ascending; each is ascending itself."""
    return np.union1d(some, more) if len(some) else more
