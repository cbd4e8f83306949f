"""Small conversations for the word index, and the formulas of the specification in plain floating point."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from recollect.indexes.documents.columns import NEVER, Document
from recollect.indexes.kernels.types import SHARES
from recollect.indexes.scoring.scores import Match, Scores, weighed
from recollect.indexes.words.index import QueryTerm, WordIndex, WordView, query_terms
from recollect.indexes.words.postings import run_lengths
from recollect.text.words import terms

#: Forms of few stems, and words alike in spelling, so that likeness and stems meet.
WORDS = (
    "connect connects connected connecting connection collect collected collecting correct corrected "
    "boat boats boating lighthouse lighthouses harbour tea red go went running ran 我喜欢猫 café cafes"
).split()
#: Known words, unknown ones that resemble them, and ones that resemble nothing.
QUESTIONS = (
    "boat",
    "red boat boats",
    "conected",
    "konnected lihgthouse",
    "colected tea",
    "喜欢",
    "zzzz boat",
    "qqqq",
    "ana connected",
)
IDS = [f"r{number}" for number in range(20)]

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join) | st.sampled_from(["red " * 30, "tea boat " * 20])


def document(
    record_id: str,
    text: str,
    *,
    session: str | None = None,
    position: int = 0,
    asks: bool = False,
    micros: int = 0,
    expires: int = NEVER,
    speaker: str = "",
    filter_terms: tuple[str, ...] = (),
    title: str = "",
) -> Document:
    return Document(
        id=record_id,
        terms=list(terms(text)),
        session=None if session is None else ("conversation", session),
        sort_key=(position, micros, record_id),
        asks=asks,
        micros=micros,
        expires=expires,
        speaker=speaker,
        names=tuple(term for term, _ in terms(speaker)),
        importance=micros / 4,
        filter_terms=filter_terms,
        titles=tuple(dict.fromkeys(terms(title))),
    )


@st.composite
def documents(draw: st.DrawFn, record_id: str | None = None, *, expiring: bool = False) -> Document:
    session = draw(st.sampled_from([None, "s1", "s1", "s2"]))
    return document(
        draw(st.sampled_from(IDS)) if record_id is None else record_id,
        draw(texts),
        session=session,
        position=draw(st.integers(0, 6)),
        asks=draw(st.booleans()),
        micros=draw(st.integers(0, 3)),
        expires=draw(st.sampled_from([NEVER, 10, 20, 30])) if expiring else NEVER,
        speaker=draw(st.sampled_from(["", "", "", "Ana"])),
        filter_terms=draw(st.sampled_from([(), (), ("\0tx",), ("\0k", "\0tx")])),
        title="" if session else draw(st.sampled_from(["", "", "red boats", "the lighthouse", "connections 我喜欢猫"])),
    )


def collections(*, expiring: bool = False, most: int = 12) -> st.SearchStrategy[list[Document]]:
    """Documents of different ids."""
    return st.lists(documents(expiring=expiring), max_size=most, unique_by=lambda each: each.id)


#: A step of a history: ids that go, and documents that come (in the place of one of that id where there is one).
steps = st.tuples(
    st.lists(st.sampled_from(IDS), max_size=2),
    st.lists(documents(expiring=True), max_size=4, unique_by=lambda each: each.id),
)
histories = st.lists(steps, max_size=7)


def advance(index: WordIndex, stored: dict[str, Document], step: tuple[list[str], list[Document]]) -> None:
    """Take a step with the index and with the dict of what it should hold."""
    gone, come = step
    index.apply([*gone, *(each.id for each in come)], come)
    for record_id in gone:
        stored.pop(record_id, None)
    for each in come:
        stored[each.id] = each


def made_of(stored: Iterable[Document]) -> WordIndex:
    index = WordIndex()
    index.apply((), stored)
    return index


def of_words(view: WordView, terms: Sequence[QueryTerm]) -> Scores:
    """The scores of only the words, with each document's factor."""
    asked = weighed(view, terms, other_signals=False)
    return Scores(asked, asked.reach(np.zeros(0, dtype=np.int64)))


def places(scores: Scores) -> dict[int, int]:
    """Document number -> its place in the scores."""
    return {number: place for place, number in enumerate(scores.numbers.tolist())}


def total_of(scores: Scores, number: int) -> int:
    """The score of a document, 0 where the question does not reach it."""
    place = places(scores).get(number)
    return 0 if place is None else int(scores.totals[place])


def share_of(scores: Scores, number: int, name: str) -> int:
    """The share of a signal in a document's score."""
    place = places(scores).get(number)
    return 0 if place is None else explained(scores, [place])[0][0][SHARES.index(name)]


def explained(scores: Scores, at: Sequence[int]) -> list[tuple[list[int], list[Match]]]:
    """The documents at these places, each with its shares and its matches, in whole numbers."""
    return [([int(share) for share in shares], matches) for _, shares, matches in scores.explained(at, Match._make, 1)]


def only(view: WordView, record_ids: Iterable[str]) -> WordView:
    """The view of some records, as if there were no others."""
    return view.narrowed(object(), lambda: view.table.mask(record_ids))


def postings(view: WordView, term: str) -> list[str]:
    """The ids of the live documents that have a term, as they came."""
    return [view.table.id(int(at)) for at in run_lengths(view.occurrences(term))[0]]


def order_of(scores: Scores) -> list[int]:
    """The documents that a question reaches, best first."""
    return [int(scores.numbers[place]) for place, _ in scores.ranked(10)]


def answers(view: WordView, ids: Sequence[str] = IDS) -> dict[str, Any]:
    """All that a view says, by id: what has to be the same, to the bit, wherever the same is stored."""
    out: dict[str, Any] = {}
    table = view.table
    numbers = {record_id: table.number(record_id) for record_id in ids if table.number(record_id) >= 0}
    out["held"] = sorted(numbers)
    out["count"] = (table.live_count, table.tokens)
    out["mask"] = sorted(table.id(at) for at, flag in enumerate(table.mask(ids)) if flag)
    for question in QUESTIONS:
        asked = query_terms(view, terms(question))
        scores = of_words(view, asked)
        reached = places(scores)
        by_id = {record_id: reached[at] for record_id, at in numbers.items() if at in reached}
        reasons = explained(scores, list(by_id.values()))
        out[question] = (
            sorted(asked),
            scores.mass,
            [table.id(number) for number in order_of(scores)],
            dict(zip(by_id, reasons, strict=True)),
            len(reached) - len(by_id),  # of no speaker: 0
        )
    return out


# Section 2.5 of the specification, BM25 part, in floating point.

LENT = {-4: 0.1, -3: 0.1, -2: 0.3, -1: 0.4, 1: 0.2, 2: 0.2, 3: 0.1, 4: 0.1}


def _idf(count: int, tokens: int, df: float, cf: float) -> float:
    return (math.log(1 + (count - df + 0.5) / (df + 0.5)) + math.log(1 + tokens / (cf + 1))) / 2


def reference_scores(stored: Sequence[Document], asked: Sequence[QueryTerm]) -> tuple[dict[str, float], float]:
    """BM_i / U of each document, and U."""
    bags = {each.id: [term for term, _ in each.terms] for each in stored}
    sessions: dict[Any, list[Document]] = {}
    for each in sorted(stored, key=lambda each: each.sort_key):
        sessions.setdefault(each.session or ("alone", each.id), []).append(each)
    around: dict[str, list[tuple[float, Document]]] = {each.id: [] for each in stored}
    for turns in sessions.values():
        for place, turn in enumerate(turns):
            for step, weight in LENT.items():
                if 0 <= place + step < len(turns):
                    donor = turns[place + step]
                    more = 0.6 if step == -1 and donor.asks else 0.0
                    around[turn.id].append((weight + more, donor))

    def capped(donor: Document) -> float:
        return min(1.0, 12 / max(len(bags[donor.id]), 1))

    titles = {each.id: {term for term, _ in each.titles} for each in stored}

    def idf(query: QueryTerm) -> float:
        term, count = query.term, len(stored)
        titled = sum(term in title for title in titles.values())
        df = max(titled, sum(term in bag for bag in bags.values()))
        cf = max(titled, sum(bag.count(term) for bag in bags.values()))
        tokens = sum(map(len, bags.values()))
        if query.expected is not None:  # 300 texts of 40 words of general language
            texts, occurrences = (each / 16 for each in query.expected)
            return _idf(count + 300, tokens + 12_000, df + texts, cf + occurrences)
        return _idf(count, tokens, df, cf)

    whole = 2.5 * sum(query.weight / 65_536 * idf(query) for query in asked)
    out = {}
    for each in stored:
        length = len(bags[each.id]) + sum(w * capped(donor) * len(bags[donor.id]) for w, donor in around[each.id])
        pivot = 1.5 * (0.4 + 0.6 * length / 40)
        score = 0.0
        for query in asked:
            mass = float(bags[each.id].count(query.term))
            mass += sum(w * capped(donor) * bags[donor.id].count(query.term) for w, donor in around[each.id])
            mass += 0.7 * (query.term in titles[each.id])
            score += query.weight / 65_536 * idf(query) * 2.5 * mass / (mass + pivot)
        out[each.id] = score / whole if whole else 0.0
    return out, whole
