"""The best documents of a question, without computing the shares of all that it reaches.

From the summaries of the terms follows for each block of documents an upper bound of a document's shares (block-max, as
in S. Ding and T. Suel, Faster top-k document retrieval using block-max indexes, SIGIR 2011). The shares are computed in
the blocks with the greatest bounds first, and then in all other blocks whose bound is not below the worst of the best
so far. All results are exact. Blocks with changes, and the tail, are always computed; if these are many, everything is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recollect.indexes.documents.columns import Flags, Ints, Numbers
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import BITS as FRACTION_BITS
from recollect.indexes.kernels import blocks
from recollect.indexes.kernels.blocks import Base, Changes, base_of, blocks_with_standing, changes_of, part_of
from recollect.indexes.kernels.factors import greatest_factor
from recollect.indexes.kernels.types import RATIO_BITS, About, Kernels, Reached, Summary, Weights
from recollect.indexes.parameters import TOP
from recollect.indexes.words.postings import Postings

#: Below this many documents in the base, all shares are computed.
_LEAST = 2000
#: Number of blocks that are computed first.
_FIRST = 64
#: At most this fraction of the blocks may have changes.
_CHANGED = 4
_NO_DOCUMENTS: Numbers = np.zeros(0, dtype=np.int32)
_NOTHING: Ints = np.zeros(0, dtype=np.int64)


class Extras(NamedTuple):
    """Shares of a question that do not come from the postings of its terms. Factors apply to them.

    Attributes:
        numbers: Documents that count as reached, live and ascending.
        shares: The share of each.
        most_in: Returns an upper bound of the shares of other documents, by the first and the last day of some
            (`Table.civil`).
        of: Returns the shares of documents.
    """

    numbers: Ints
    shares: Ints
    most_in: Callable[[Numbers, Numbers], Ints]
    of: Callable[[Ints], Ints]


class Wanted(NamedTuple):
    """The documents that are wanted.

    Attributes:
        best: Number of the best documents.
        standing: Number of the best documents with standing tags.
        among: The documents that may be hits; their shares are computed among all documents. None for all.
        extras: Shares that do not come from postings; None if there are none.
    """

    best: int
    standing: int
    among: Flags | None = None
    extras: Extras | None = None


def reach_best(
    kernels: Kernels, postings: Postings, table: Table, weights: Weights, about: About, wanted: Wanted
) -> Reached:
    """Return at least the best documents that a question reaches, and all that tie with the last.

    They are ranked by the totals of `Kernels.weigh` with the shares of the extras. The best documents with standing
    tags (`Table.standing`) are included.

    Args:
        kernels: The kernels.
        postings: The postings of the terms.
        table: The documents.
        weights: The weights of the terms.
        about: The subject of the question.
        wanted: What is wanted.
    """
    segment = postings.segment
    if segment is not None and segment.count >= _LEAST:
        base = base_of(segment, table)
        search = _Search(kernels, postings, table, weights, about, wanted, base, changes_of(table, base))
        found = search.best()
        if found is not None:
            return found
    forced = _NO_DOCUMENTS if wanted.extras is None else wanted.extras.numbers.astype(np.int32)
    reached = kernels.reach(postings, table, weights, forced)
    return reached if wanted.among is None else reached.within(wanted.among)


def session_counts(kernels: Kernels, postings: Postings, table: Table) -> list[int]:
    """Return the number of sessions that contain each term; all documents must be live and in the segment."""
    segment = postings.segment
    if segment is None or segment.count < _LEAST:
        counts: list[int] = kernels.tally(postings, table)[:, 2].tolist()
        return counts
    base = base_of(segment, table)
    return [len(base.summary(kernels, postings, term, False).sessions) for term in range(len(postings.terms))]


@dataclass(frozen=True)
class _Search:
    """The search for the best documents of one question, block by block."""

    kernels: Kernels
    postings: Postings
    table: Table
    weights: Weights
    about: About
    wanted: Wanted
    base: Base
    changes: Changes

    def best(self) -> Reached | None:
        """Return the best documents; None if this would not be faster than computing all shares."""
        changed = self.changes.blocks
        if len(changed) * _CHANGED > self.base.blocks:
            return None
        summaries = self._summaries()
        least = zip(self.weights.terms.tolist(), summaries, strict=True)
        if any(weight * TOP[0] * summary.least < TOP[1] << RATIO_BITS for weight, summary in least):
            return None  # some share may be rounded to 0, so that it is not known which documents are reached
        bounds = self._bounds(summaries)
        limits = bounds * self.base.factors(self.about) >> FRACTION_BITS
        standing = self._blocks_with_standing()
        first = np.zeros(self.base.blocks, dtype=np.bool_)
        first[changed] = True
        first[self._greatest(limits, _FIRST)] = True
        if len(standing):
            factor = greatest_factor(self.table.heaviest_standing, self.about)
            of_standing = bounds[standing] * factor >> FRACTION_BITS
            first[standing[self._greatest(of_standing, self.wanted.standing)]] = True
        found = self._computed(first, summaries, with_tail=True)
        passed = self._passed(found, summaries)
        rest = limits >= self._bar(found, self.wanted.best)
        if len(standing):
            has_tags = np.flatnonzero(self.table.standing[found.numbers])
            some = Reached(found.numbers[has_tags], found.shares[:, has_tags], len(has_tags))
            rest[standing[of_standing >= self._bar(some, self.wanted.standing)]] = True
        rest &= ~first
        if rest.any():
            more = self._computed(rest, summaries, with_tail=False)
            numbers = np.concatenate([found.numbers, more.numbers])
            found = Reached(numbers, np.concatenate([found.shares, more.shares], axis=1), passed)
        return found._replace(passed=passed)

    def _summaries(self) -> tuple[Summary, ...]:
        terms = len(self.weights.terms)
        titles = range(terms - len(self.weights.title_of), terms)
        return tuple(self.base.summary(self.kernels, self.postings, term, term in titles) for term in range(terms))

    def _bounds(self, summaries: tuple[Summary, ...]) -> Ints:
        """Return the upper bound of the shares of a document in each block; 0 if it has no document that is reached."""
        bounds = self.kernels.bounds(self.postings, self.table, self.weights, self.base.layout, summaries)
        extras = self.wanted.extras
        if extras is not None:
            bounds += np.where(bounds > 0, extras.most_in(*self.base.days), 0)
            numbers = extras.numbers[extras.numbers < self.base.documents]
            # The shares of a document with others than those of the extras, which may be none.
            np.maximum.at(bounds, numbers >> blocks.BITS, 1)
            most = np.zeros(len(bounds), dtype=np.int64)
            np.maximum.at(most, numbers >> blocks.BITS, extras.shares[: len(numbers)])
            bounds += most
        return bounds

    def _blocks_with_standing(self) -> Ints:
        if self.wanted.among is None:
            return self.changes.standing
        return blocks_with_standing(self.table, self.base, self.wanted.among)

    def _greatest(self, limits: Ints, count: int) -> Ints:
        """Return the indexes of the greatest limits above 0, at least this many if there are."""
        same = np.zeros(len(limits), dtype=np.int64)  # ties are not broken by time
        return self.kernels.best(limits, same, self.table, count)

    def _computed(self, inside: Flags, summaries: tuple[Summary, ...], *, with_tail: bool) -> Reached:
        """Return the documents in some blocks that may be hits, with their shares."""
        part = part_of(self.base, inside, self.changes, summaries, with_tail=with_tail)
        forced = _NO_DOCUMENTS
        if self.wanted.extras is not None:
            numbers = self.wanted.extras.numbers
            in_base = numbers < self.base.documents
            here = inside[np.where(in_base, numbers >> blocks.BITS, 0)]
            forced = numbers[np.where(in_base, here, with_tail)].astype(np.int32)
        found = self.kernels.reach(self.postings, self.table, self.weights, forced, part)
        return found if self.wanted.among is None else found.within(self.wanted.among)

    def _bar(self, found: Reached, count: int) -> int:
        """Return a total that the best `count` documents are not below, from some that are found."""
        extras = self.wanted.extras
        shares = _NOTHING if extras is None else extras.of(found.numbers)
        _, totals = self.kernels.best_of(found, shares, self.table, self.about, count)
        if len(totals) < count:
            return 1
        # Each part of a total is rounded down by itself.
        return max(int(totals.min()) - (2 if extras is not None else 0), 1)

    def _passed(self, found: Reached, summaries: tuple[Summary, ...]) -> int:
        """Return the number of documents that are reached and may be hits.

        Args:
            found: What of them is in the tail and in blocks with changes, and other documents.
            summaries: The summaries of the terms.
        """
        documents, kept = self.base.documents, self.changes.unchanged
        more = _NOTHING if self.wanted.extras is None else self.wanted.extras.numbers
        if self.wanted.among is not None:
            kept = kept & np.packbits(self.wanted.among[:documents])
        count = self.kernels.union(self.base.layout, summaries, more, kept)
        if not len(self.changes.blocks) and self.table.count == documents:
            return count
        changed = np.zeros(self.base.blocks + 1, dtype=np.bool_)  # the last is the tail
        changed[self.changes.blocks] = changed[-1] = True
        of = np.where(found.numbers < documents, found.numbers >> blocks.BITS, self.base.blocks)
        return count + int(np.count_nonzero(changed[of]))
