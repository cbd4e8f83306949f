"""Scores: what a question gives to each document that it reaches, and why.

BM25 with conversation context, in integers. A document's mass of a term is its own count plus what the turns around it
lend: their counts at decaying weight, where a long turn lends no more than a short one would. The mass is saturated
against the document's length, both in absolute tokens, and weighted by how rare the term is among documents and among
tokens. Lengths are absolute, so nothing stored depends on an average, and a new turn changes no other's postings:
context is applied while a term's postings are walked.

Everything is fixed-point integer arithmetic (`fixed_point`), so a score is the exact sum of its shares and does not
depend on the order of adding. docs/architecture.md has the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from recollect.indexes.documents.columns import NONE, Flags, Ints, Numbers
from recollect.indexes.fixed_point import BITS, SHARE_BITS, log_ratio
from recollect.indexes.kernels.choose import serving
from recollect.indexes.kernels.factors import factor_of
from recollect.indexes.kernels.types import RAW, SHARES, About, Kernels, Matched, Reached, Weights
from recollect.indexes.parameters import PAIR_SHARE, TOP
from recollect.indexes.scoring.ranking import ranked
from recollect.indexes.words.index import QueryTerm, WordView
from recollect.indexes.words.postings import Postings

NOTHING: Ints = np.zeros(0, dtype=np.int64)
NOBODY = About(NONE, ())
M = TypeVar("M")
#: So many hits are explained at a time.
_AT_A_TIME = 64


class Match(NamedTuple):
    """A word of the question in a hit.

    share   of the score, with SHARE_BITS of fraction
    own     the part of it that the record's own text has; the rest comes from the turns in `lent_by`
    """

    word: str
    like: str
    share: int
    own: int
    lent_by: tuple[str, ...]


@dataclass(frozen=True)
class WeightedQuery:
    """A question's terms, weighed in a view: what the kernels need.

    mass   of the question: 2.5 times the sum of its terms' weights, with 16 bits of fraction
    """

    view: WordView
    terms: tuple[QueryTerm, ...]
    postings: Postings
    weights: Weights
    mass: int
    kernels: Kernels

    def reach(self, forced: Numbers) -> Reached:
        """What the question reaches, and the documents of `forced`, each once; shares before any factor."""
        if not self.mass:
            numbers = np.unique(forced).astype(np.int64)
            return Reached(numbers, np.zeros((len(RAW), len(numbers)), dtype=np.int64), len(numbers))
        return self.kernels.reach(self.postings, self.view.table, self.weights, forced)

    def reach_best(self, about: About, wanted: int, among: Flags | None = None) -> Reached:
        """Of what the question reaches, at least the best `wanted`, and all that stand.

        among  the documents that count, with the shares that they have among all; None for all
        """
        if not self.mass:
            return self.reach(np.zeros(0, dtype=np.int32))
        return self.kernels.reach_best(self.postings, self.view.table, self.weights, about, wanted, among)


def weighed(
    view: WordView, terms: Sequence[QueryTerm], sequence: Sequence[str] = (), *, beside: bool = True
) -> WeightedQuery:
    """Weigh terms in a view.

    sequence  the terms in their order, as they were asked
    beside    whether the signals beside the words count: sessions and pairs
    """
    postings, counts = view.gathered([each.term for each in terms])
    kernels = serving(sum(end - begin + last - first for begin, end, first, last in postings.spans.tolist()))
    sessions, said = view.table.session_totals if beside else (0, 0)
    if counts is None or sessions:
        rows = kernels.tally(postings, view.table).tolist()
    else:
        rows = [[*each, 0] for each in counts]
    idf = [view.idf(documents, occurrences) for documents, occurrences, _ in rows]
    weights = [each.weight * rarity >> BITS for each, rarity in zip(terms, idf, strict=True)]
    by_session = [
        each.weight * log_ratio(2 * sessions + 2, 2 * having + 1) >> BITS if sessions else 0
        for each, (_, _, having) in zip(terms, rows, strict=True)
    ]
    top, below = TOP
    mass = sum(top * weight // below for weight in weights)
    place = {each.term: at for at, each in enumerate(terms)}
    whole = 2 * sum(idf[place[term]] for term in sequence)
    pairs = []
    for first, second in dict.fromkeys(pairwise(sequence)):
        if first != second:
            rarity = idf[place[first]] + idf[place[second]]
            pairs.append((place[first], place[second], (rarity * PAIR_SHARE // 100 << SHARE_BITS) // whole))
    return WeightedQuery(
        view,
        tuple(terms),
        postings,
        Weights(
            np.array(weights, dtype=np.int64),
            np.array(by_session, dtype=np.int64),
            np.array([bool(each.like) for each in terms], dtype=np.bool_),
            mass,
            np.array(pairs, dtype=np.int64).reshape(-1, 3),
            (sessions, said),
        ),
        mass,
        kernels,
    )


@dataclass(frozen=True, eq=False)
class Scores:
    """What a question gives to each document that it reaches.

    reached  the documents that count, and their shares before any factor; not all, where only the best are wanted
    dates, dense  what those signals give to each, where they give anything; no factor is due to the dense one
    about    what the question is about beside its words, which makes the factors
    """

    query: WeightedQuery
    reached: Reached
    dates: Ints = field(default_factory=lambda: NOTHING)
    dense: Ints = field(default_factory=lambda: NOTHING)
    about: About = NOBODY

    @property
    def numbers(self) -> Ints:
        """The documents that the question reaches, in no particular order."""
        return self.reached.numbers

    @property
    def mass(self) -> int:
        """Of the question: 2.5 times the sum of its terms' weights, with 16 bits of fraction."""
        return self.query.mass

    @cached_property
    def totals(self) -> Ints:
        """The scores of all, with SHARE_BITS of fraction. Ranking does without, where there are no vectors."""
        totals = self.query.kernels.weigh(self.reached, self.dates, self.query.view.table, self.about)
        return totals + self.dense if len(self.dense) else totals

    def totals_at(self, places: Ints) -> Ints:
        """The scores of the documents at these places."""
        some = Reached(self.numbers[places], self.reached.shares.take(places, axis=1), len(places))
        dates = self.dates[places] if len(self.dates) else NOTHING
        totals = self.query.kernels.weigh(some, dates, self.query.view.table, self.about)
        return totals + self.dense[places] if len(self.dense) else totals

    def ranked(self, first: int) -> Iterator[tuple[int, int]]:
        """The places and scores above 0, best first (`ranking.ranked`).

        first  how many are probably asked for
        """
        kernels, table = self.query.kernels, self.query.view.table

        def best(wanted: int) -> tuple[Ints, Ints]:
            if not len(self.dense):
                return kernels.best_of(self.reached, self.dates, table, self.about, wanted)
            places = kernels.best(self.totals, self.numbers, table, wanted)
            return places, self.totals[places]

        return ranked(best, self.numbers, table, first)

    def explained(
        self, places: Sequence[int], make: Callable[[tuple[str, str, Any, Any, tuple[str, ...]]], M], whole: int
    ) -> Iterator[tuple[int, list[float], list[M]]]:
        """Explain the documents at these positions: each with its total, its shares and the query words that it has.

        Shares are in the order of `kernels.types.SHARES` and add up to the total exactly; words by falling share.

        Args:
            places: positions in `numbers`.
            make: builds the value for each word from the fields of a `Match`.
            whole: the divisor of all shares, `own` included; with 1 they stay integers.
        """
        for begin in range(0, len(places), _AT_A_TIME):  # what explains a hit takes some bytes for each term and turn
            at = np.array(places[begin : begin + _AT_A_TIME], dtype=np.int64)
            shares, factors = self._shares(at)
            matches = self._matches(self.numbers[at], factors, make, whole)
            yield from zip(shares.sum(axis=0).tolist(), (shares.T / whole).tolist(), matches, strict=True)

    def _shares(self, places: Ints) -> tuple[Ints, Ints]:
        """The shares of the documents at these places, a column each, and the factors in them."""
        factors = factor_of(self.numbers[places], self.query.view.table, self.about)
        shares = np.zeros((len(SHARES), len(places)), dtype=np.int64)
        shares[: len(RAW)] = self.reached.shares[:, places]
        if len(self.dates):
            shares[len(RAW)] = self.dates[places]
        shares *= factors
        shares >>= BITS
        if len(self.dense):
            shares[-1] = self.dense[places]
        return shares, factors

    def _matches(
        self,
        numbers: Ints,
        factors: Ints,
        make: Callable[[tuple[str, str, Any, Any, tuple[str, ...]]], M],
        whole: int,
    ) -> list[list[M]]:
        query = self.query
        out: list[list[M]] = [[] for _ in range(len(numbers))]
        if not query.mass:
            return out
        found = query.kernels.matched(query.postings, query.view.table, query.weights, numbers, factors)
        words = [(each.word, each.like, each.term) for each in query.terms]
        rank = np.empty(len(words), dtype=np.int64)
        rank[sorted(range(len(words)), key=words.__getitem__)] = np.arange(len(words))
        # All of them in one order: by document, then by falling share, then as words do.
        places, terms = found.reached.nonzero()
        shares, own = found.shares[places, terms], found.own[places, terms]
        order = np.lexsort((rank[terms], -shares, places))
        places, terms, shares, own = places[order], terms[order], shares[order], own[order]
        some_lent = found.lent.any()
        parts = (shares.tolist(), own.tolist()) if whole == 1 else ((shares / whole).tolist(), (own / whole).tolist())
        for at, term, share, its_own in zip(places.tolist(), terms.tolist(), *parts, strict=True):
            lent_by = self._lenders(found, at, term) if some_lent and found.lent[at, term] else ()
            word, like, _ = words[term]
            out[at].append(make((word, like, share, its_own, lent_by)))
        return out

    def _lenders(self, found: Matched, at: int, term: int) -> tuple[str, ...]:
        turns = found.around[at][found.lends[at, term]].tolist()
        return tuple(map(self.query.view.table.id, turns))
