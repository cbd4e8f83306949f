"""Scores: the score of each document that a question reaches, and its explanation.

BM25 with conversation context, in integers. A document's mass of a term is its own count plus what the surrounding
turns lend: their counts with decaying weights, where a long turn lends no more than a short one. The mass is saturated
against the document's length in tokens, and weighted by the rarity of the term among documents and among tokens.
Lengths are absolute, so no stored value depends on an average, and a new turn changes no other turn's postings: context
is applied while the postings of a term are walked.

Everything is fixed-point integer arithmetic (`fixed_point`), so a score is the exact sum of its shares and does not
depend on the order of addition. docs/architecture.md has the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, repeat
from typing import Any, NamedTuple, TypeVar

import numpy as np

from recollect.indexes.documents.columns import NONE, Flags, Ints
from recollect.indexes.fixed_point import BITS, SHARE_BITS, log_ratio
from recollect.indexes.kernels.choose import chosen, reach_best, session_counts
from recollect.indexes.kernels.factors import factor_of
from recollect.indexes.kernels.interface import Kernels
from recollect.indexes.kernels.types import RAW, SHARES, About, Reached, Wanted, Weights
from recollect.indexes.parameters import PAIR_SHARE, TOP
from recollect.indexes.scoring.members import MemberShares
from recollect.indexes.scoring.ranking import ranked
from recollect.indexes.words.index import QueryTerm, WordView
from recollect.indexes.words.postings import Postings
from recollect.indexes.words.titles import title_term

NOTHING: Ints = np.zeros(0, dtype=np.int64)
NO_SUBJECT = About(NONE, ())
M = TypeVar("M")
#: Number of hits that are explained at a time.
_BATCH = 64
_MEMBER, _DENSE, _DATE = (SHARES.index(name) for name in ("member", "dense", "date"))
#: The fields of `Scores` with a value for each document.
_BY_DOCUMENT = ("dates", "placed", "speaker", "dense", "limit", "replaces", "prevails", "recency", "importance")


class Match(NamedTuple):
    """A word of the question in a hit.

    Attributes:
        word: The word as it was written in the question.
        like: The known word that replaces an unknown one, or the member of the class that the word names; "" for the
            word itself.
        share: Its share of the score, with SHARE_BITS of fraction.
        own: The part of the share from the record's own text.
        lent_by: The ids of the turns that lend to this record.
        title: The part of the share from the titles above the record; the rest is lent by the turns in `lent_by`.
    """

    word: str
    like: str
    share: int
    own: int
    lent_by: tuple[str, ...]
    title: int


#: The fields of a `Match`; the shares are numbers of the caller's scale.
MatchFields = tuple[str, str, Any, Any, tuple[str, ...], Any]


@dataclass(frozen=True)
class WeightedQuery:
    """The terms of a question, weighted for a view: the input of the kernels.

    Attributes:
        in_titles: The terms, by their number, that also occur in titles. After the terms, they have rows of their own
            in postings and weights: the same words as title terms.
        mass: The mass of the question: 2.5 times the sum of its terms' weights, with 16 bits of fraction.
        kernels: The kernels to use.
    """

    view: WordView
    terms: tuple[QueryTerm, ...]
    in_titles: tuple[int, ...]
    postings: Postings
    weights: Weights
    mass: int
    kernels: Kernels

    def reach(self, forced: Ints) -> Reached:
        """Return the documents that the question reaches and those of `forced`, with shares before any factor."""
        if not self.mass:
            numbers = np.unique(forced)
            return Reached(numbers, np.zeros((len(RAW), len(numbers)), dtype=np.int64), len(numbers))
        return self.kernels.reach(self.postings, self.view.table, self.weights, forced)

    def reach_best(self, about: About, wanted: Wanted) -> Reached:
        """Return at least the best documents that the question reaches (`pruning.reach_best`)."""
        if not self.mass:
            found = self.reach(NOTHING if wanted.extras is None else wanted.extras.numbers)
            return found if wanted.among is None else found.within(wanted.among)
        return reach_best(self.kernels, self.postings, self.view.table, self.weights, about, wanted)


def weighed(
    view: WordView, terms: Sequence[QueryTerm], sequence: Sequence[str] = (), *, other_signals: bool = True
) -> WeightedQuery:
    """Weight the terms of a question for a view.

    Args:
        view: The view to search.
        sequence: The terms in the order of the question.
        other_signals: Whether to include the signals other than words: sessions and pairs.
    """
    in_titles: tuple[int, ...] = ()
    all_terms = [each.term for each in terms]
    if view.has_titles:
        in_titles = tuple(at for at, term in enumerate(all_terms) if view.in_titles(term))
        all_terms += [title_term(all_terms[at]) for at in in_titles]
    postings, counts = view.gathered(all_terms)
    kernels = chosen()
    sessions, session_tokens = view.table.session_totals if other_signals else (0, 0)
    if counts is None or in_titles:
        rows = kernels.tally(postings, view.table).tolist()
    else:
        in_sessions = session_counts(kernels, postings, view.table) if sessions else repeat(0)
        rows = [[*of_documents, count] for of_documents, count in zip(counts, in_sessions, strict=False)]
    if in_titles:
        # The larger count says how rare a word is in both: most texts repeat words of their title.
        for at, of_title in zip(in_titles, rows[len(terms) :], strict=True):
            rows[at] = [max(both) for both in zip(rows[at], of_title, strict=True)]
        del rows[len(terms) :]
    idf = [view.idf(row[0], row[1], each.expected) for row, each in zip(rows, terms, strict=True)]
    weights = [each.weight * rarity >> BITS for each, rarity in zip(terms, idf, strict=True)]
    by_session = [
        each.weight * log_ratio(2 * sessions + 2, 2 * having + 1) >> BITS if sessions else 0
        for each, (_, _, having) in zip(terms, rows, strict=True)
    ]
    top, below = TOP
    mass = sum(top * weight // below for weight in weights)
    index_of = {each.term: index for index, each in enumerate(terms)}
    total_rarity = 2 * sum(idf[index_of[term]] for term in sequence)
    pairs = []
    for first, second in dict.fromkeys(pairwise(sequence)):
        if first != second:
            one, other = index_of[first], index_of[second]
            rarity = idf[one] + idf[other]
            pairs.append((one, other, (rarity * PAIR_SHARE // 100 << SHARE_BITS) // total_rarity))
    return WeightedQuery(
        view,
        tuple(terms),
        in_titles,
        postings,
        Weights(
            np.array([*weights, *(weights[at] for at in in_titles)], dtype=np.int64),
            np.array(by_session + [0] * len(in_titles), dtype=np.int64),
            np.array([bool(each.like) for each in terms] + [False] * len(in_titles), dtype=np.bool_),
            np.array(in_titles, dtype=np.int64),
            mass,
            np.array(pairs, dtype=np.int64).reshape(-1, 3),
            (sessions, session_tokens),
        ),
        mass,
        kernels,
    )


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of the documents that a question reaches.

    Attributes:
        query: The weighted question.
        reached: The documents and their shares before any factor. If only the best were requested, the others may be
            missing.
        dates: The share of the date signal for each document; empty if there is none.
        members: The shares of members of the class that the question asks for, of the reached documents; None if it
            asks for none.
        placed: The factor by which the shares of words, dates and members are multiplied besides that of `about`, for
            each document, with 16 bits of fraction; empty if there is none.
        speaker: The share of the speaker that the question asks for, for each document; empty if there is none.
        dense: The share of the dense signal for each document, before any factor; empty if there is none.
        replaces: The share of what each document replaces; empty if there is none (`engine.read.validity`).
        limit: What is taken from each document that only surrounding turns lend to, 0 or less; empty if nothing is
            (`scoring.neighbours`).
        prevails: The share for prevailing over rivals; empty if there is none (`scoring.rivals`).
        recency: The share of recency for each document; empty if there is none.
        importance: The share of importance for each document; empty if there is none. No factor applies to this share
            and those of speaker and recency.
        about: The subject of the question, which determines the factors.
    """

    query: WeightedQuery
    reached: Reached
    dates: Ints = field(default_factory=lambda: NOTHING)
    members: MemberShares | None = None
    placed: Ints = field(default_factory=lambda: NOTHING)
    speaker: Ints = field(default_factory=lambda: NOTHING)
    dense: Ints = field(default_factory=lambda: NOTHING)
    replaces: Ints = field(default_factory=lambda: NOTHING)
    limit: Ints = field(default_factory=lambda: NOTHING)
    prevails: Ints = field(default_factory=lambda: NOTHING)
    recency: Ints = field(default_factory=lambda: NOTHING)
    importance: Ints = field(default_factory=lambda: NOTHING)
    about: About = NO_SUBJECT

    @property
    def numbers(self) -> Ints:
        """The documents that the question reaches, in no particular order."""
        return self.reached.numbers

    @property
    def mass(self) -> int:
        """The mass of the question: 2.5 times the sum of its terms' weights, with 16 bits of fraction."""
        return self.query.mass

    def most_of_others(self, known: int) -> int:
        """Return the score that no document without a score here exceeds, if `known` of the best before any limit have.

        At least one document must have a score.
        """
        totals = self.totals - self.limit if len(self.limit) else self.totals
        at = max(len(totals) - known, 0)
        return int(np.partition(totals, at)[at])

    def within(self, among: Flags) -> Scores:
        """Return the scores of the documents that are in `among`."""
        return self.picked(np.flatnonzero(among[self.numbers]))

    def picked(self, indexes: Sequence[int] | Ints) -> Scores:
        """Return the scores of the documents at these indexes of `numbers`, in their order."""
        kept = np.array(indexes, dtype=np.int64)
        arrays = {name: values[kept] for name in _BY_DOCUMENT if len(values := getattr(self, name))}
        members = None if self.members is None else self.members.at(kept)
        reached = Reached(self.numbers[kept], self.reached.shares.take(kept, axis=1), len(kept))
        return replace(self, reached=reached, members=members, **arrays)

    @cached_property
    def totals(self) -> Ints:
        """The scores of all documents, with SHARE_BITS of fraction.

        Ranking needs them only if there are shares without factors.
        """
        if len(self.placed):
            totals: Ints = self._shares(np.arange(len(self.numbers)))[0].sum(axis=0)
            return totals
        totals = self.query.kernels.weigh(self.reached, self._extra, self.query.view.table, self.about)
        if self.members is not None:
            at = np.flatnonzero(self.members.shares)
            factors = factor_of(self.numbers[at], self.query.view.table, self.about)
            totals[at] += self.members.shares[at] * factors >> BITS
        for _, more in self._unfactored:
            totals = totals + more
        return totals

    @cached_property
    def _extra(self) -> Ints:
        """The shares besides those of words to which the factors apply; empty if there are none."""
        if not len(self.dense):
            return self.dates
        return self.dense + self.dates if len(self.dates) else self.dense

    @property
    def _apart(self) -> bool:
        """True if there are shares or factors that the kernels do not know."""
        return self.members is not None or len(self.placed) > 0

    @cached_property
    def _unfactored(self) -> list[tuple[str, Ints]]:
        """The shares to which no factor applies, each with its name."""
        names = ("speaker", "limit", "replaces", "prevails", "recency", "importance")
        return [(name, shares) for name in names if len(shares := getattr(self, name))]

    def beside(self, indexes: Sequence[int]) -> list[int]:
        """Return what recency, importance and meaning add to the scores of the documents at these indexes."""
        shares = [each for each in (self.recency, self.importance) if len(each)]
        if not shares and not len(self.dense):
            return [0] * len(indexes)
        at = np.array(indexes, dtype=np.int64)
        added: Ints = self._shares(at)[0][_DENSE] if len(self.dense) else np.zeros(len(at), dtype=np.int64)
        out: list[int] = sum((each[at] for each in shares), added).tolist()
        return out

    def totals_at(self, indexes: Ints) -> Ints:
        """Return the scores of the documents at these indexes of `numbers`."""
        if self._apart:
            return self.totals[indexes]
        some = Reached(self.numbers[indexes], self.reached.shares.take(indexes, axis=1), len(indexes))
        extra = self._extra[indexes] if len(self._extra) else NOTHING
        totals = self.query.kernels.weigh(some, extra, self.query.view.table, self.about)
        for _, more in self._unfactored:
            totals = totals + more[indexes]
        return totals

    def ranked(self, first: int) -> Iterator[tuple[int, int]]:
        """Yield the indexes of documents with a score above 0, and the scores, best first (`ranking.ranked`).

        Args:
            first: The number of results that is probably needed.
        """
        return ranked(self.best, self.numbers, self.query.view.table, first)

    def best(self, wanted: int) -> tuple[Ints, Ints]:
        """Return the indexes of the best documents, and their scores: as many as wanted and all that tie with the last.

        They are in no particular order. Cached: the limit of neighbours looks at the best before they are ranked.
        """
        found = self._found.get(wanted)
        if found is None:
            kernels, table = self.query.kernels, self.query.view.table
            if not self._unfactored and not self._apart:
                found = kernels.best_of(self.reached, self._extra, table, self.about, wanted)
            else:
                indexes = kernels.best(self.totals, self.numbers, table, wanted)
                found = indexes, self.totals[indexes]
            self._found[wanted] = found
        return found

    @cached_property
    def _found(self) -> dict[int, tuple[Ints, Ints]]:
        """The result of `best`."""
        return {}

    def explained(
        self, indexes: Sequence[int], make: Callable[[MatchFields], M], divisor: int
    ) -> Iterator[tuple[int, list[float], list[M]]]:
        """Yield for each of these documents its total, its shares and the query words that it matches.

        Shares are in the order of `kernels.types.SHARES` and add up to the total exactly. Words are sorted by
        descending share; the member of a class is the last.

        Args:
            indexes: Indexes in `numbers`.
            make: Builds the value for each word from the fields of a `Match`.
            divisor: The divisor of all shares, `own` and `title` included; with 1 they remain integers.
        """
        for begin in range(0, len(indexes), _BATCH):  # bounds the memory, some bytes per hit, term and turn
            at = np.array(indexes[begin : begin + _BATCH], dtype=np.int64)
            shares, factors = self._shares(at)
            matches = self._matches(self.numbers[at], factors, make, divisor)
            if self.members is not None:
                self._add_members(matches, at, shares[_MEMBER], make, divisor)
            yield from zip(shares.sum(axis=0).tolist(), (shares.T / divisor).tolist(), matches, strict=True)

    def _shares(self, indexes: Ints) -> tuple[Ints, Ints]:
        """Return the shares of the documents at these indexes, one column each, and the factors that they include."""
        factors = factor_of(self.numbers[indexes], self.query.view.table, self.about)
        if len(self.placed):
            factors = factors * self.placed[indexes] >> BITS
        shares = np.zeros((len(SHARES), len(indexes)), dtype=np.int64)
        shares[: len(RAW)] = self.reached.shares[:, indexes]
        for name, more in (("date", self.dates), ("dense", self.dense)):
            if len(more):
                shares[SHARES.index(name)] = more[indexes]
        if self.members is not None:
            shares[_MEMBER] = self.members.shares[indexes]
        meaning = shares[_DENSE] + shares[_DATE]
        shares *= factors
        shares >>= BITS
        # Dates and meaning are weighed as one share (`_extra`), so that the shares add up to the total.
        shares[_DENSE] = (meaning * factors >> BITS) - shares[_DATE]
        for name, more in self._unfactored:
            shares[SHARES.index(name)] = more[indexes]
        return shares, factors

    def _matches(
        self,
        numbers: Ints,
        factors: Ints,
        make: Callable[[MatchFields], M],
        divisor: int,
    ) -> list[list[M]]:
        query = self.query
        out: list[list[M]] = [[] for _ in range(len(numbers))]
        if not query.mass:
            return out
        words = [(each.word, each.like, each.term) for each in query.terms]
        ranks = np.empty(len(words), dtype=np.int64)
        ranks[sorted(range(len(words)), key=words.__getitem__)] = np.arange(len(words))
        table = query.view.table
        found = query.kernels.explained(query.postings, table, query.weights, numbers, factors, ranks)
        id_of = table.rows.ids(found.lenders)
        ids = [id_of[number] for number in found.lenders]
        for at, term, share, own, title, begin, end in found.rows:
            word, like, _ = words[term]
            parts = (share, own, title) if divisor == 1 else (share / divisor, own / divisor, title / divisor)
            out[at].append(make((word, like, parts[0], parts[1], tuple(ids[begin:end]), parts[2])))
        return out

    def _add_members(
        self, matches: list[list[M]], indexes: Ints, shares: Ints, make: Callable[[MatchFields], M], divisor: int
    ) -> None:
        """Add to the words of each document the member of a class that it contains."""
        assert self.members is not None
        rarest = self.members.rarest[indexes].tolist()
        for words, index, share in zip(matches, rarest, shares.tolist(), strict=True):
            if share:
                _, word, of = self.members.members[index]
                part = share if divisor == 1 else share / divisor
                words.append(make((of, word, part, part, (), 0 if divisor == 1 else 0.0)))
