"""The search for the best documents in NumPy: two rounds, the second of all that the first cannot exclude.

See `choose` for the method, and `native/search.c` for the same in C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import Flags, Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import ONE
from recollect.indexes.kernels import blocks
from recollect.indexes.kernels.blocks import BaseChanges, Part, SegmentBase, kept_of, part_of, standing_blocks
from recollect.indexes.kernels.types import About, Reached, TermSummary, Wanted, Weights
from recollect.indexes.words.postings import Postings

#: Number of blocks that are computed first.
_FIRST = 64
_NOTHING: Ints = np.zeros(0, dtype=np.int64)
#: The number of bits of each byte.
_COUNTS = np.array([byte.bit_count() for byte in range(256)], dtype=np.int64)


class _Steps(Protocol):
    """The functions that a search is made of (`with_numpy.NumpyKernels`)."""

    def bounds(
        self,
        postings: Postings,
        table: Table,
        weights: Weights,
        base: SegmentBase,
        summaries: Sequence[TermSummary],
        forced: Flags,
    ) -> NDArray[np.float64]: ...

    def reach(
        self, postings: Postings, table: Table, weights: Weights, forced: Ints, part: Part | None = None
    ) -> Reached: ...

    def best(self, totals: Ints, numbers: Ints, table: Table, wanted: int) -> Ints: ...

    def best_of(self, reached: Reached, dates: Ints, table: Table, about: About, wanted: int) -> tuple[Ints, Ints]: ...


@dataclass(frozen=True)
class Search:
    """The search for the best documents of one question: see `Kernels.search`."""

    kernels: _Steps
    postings: Postings
    table: Table
    weights: Weights
    about: About
    wanted: Wanted
    base: SegmentBase
    changes: BaseChanges
    summaries: tuple[TermSummary, ...]

    def best(self) -> Reached:
        """Return the best documents."""
        changed = self.changes.blocks
        bounds = self._bounds()
        if self.wanted.among is not None:  # other blocks have no hits
            begins = np.arange(0, self.base.documents, 1 << blocks.BITS)
            bounds *= np.logical_or.reduceat(self.wanted.among[: self.base.documents], begins)
        limits = np.ceil(bounds * self.base.factors(self.about)).astype(np.int64)
        standing = standing_blocks(self.table, self.base, self.changes, self.wanted)
        first = np.zeros(self.base.blocks, dtype=np.bool_)
        first[changed] = True
        first[self._greatest(limits, _FIRST)] = True
        if len(standing):
            of_standing = limits[standing]
            first[standing[self._greatest(of_standing, self.wanted.standing)]] = True
        found = self._computed(first, with_tail=True)
        passed = self._passed(found)
        rest = limits >= self._bar(found, self.wanted.best)
        if len(standing):
            has_tags = np.flatnonzero(self.table.standing[found.numbers])
            some = Reached(found.numbers[has_tags], found.shares[:, has_tags], len(has_tags))
            rest[standing[of_standing >= self._bar(some, self.wanted.standing)]] = True
        rest &= ~first
        if rest.any():
            more = self._computed(rest, with_tail=False)
            numbers = np.concatenate([found.numbers, more.numbers])
            found = Reached(numbers, np.concatenate([found.shares, more.shares], axis=1), passed)
        return found._replace(passed=passed)

    def _bounds(self) -> NDArray[np.float64]:
        """Return upper bounds of the shares of a document times its weight, for each block; 0 if none is reached."""
        extras = self.wanted.extras
        most = np.zeros(self.base.blocks)
        forced = np.zeros(self.base.blocks, dtype=np.bool_)
        if extras is not None:
            numbers = extras.numbers[extras.numbers < self.base.documents]
            forced[numbers >> blocks.BITS] = True
            shares = extras.shares[: len(numbers)] * self.table.weight[numbers]
            np.maximum.at(most, numbers >> blocks.BITS, shares / ONE)
        bounds = self.kernels.bounds(self.postings, self.table, self.weights, self.base, self.summaries, forced)
        if extras is not None:
            others = extras.bounds_in(*self.base.days)[1] * self.base.weights / ONE
            bounds += most + np.where(bounds > 0, others + self._near(), 0)
        return bounds

    def _near(self) -> NDArray[np.float64]:
        """Return the greatest share of meaning of a document times its weight, for each block."""
        out = np.zeros(self.base.blocks)
        extras = self.wanted.extras
        if extras is not None and extras.near is not None:
            numbers = extras.near.numbers[extras.near.numbers < self.base.documents]
            np.maximum.at(out, numbers >> blocks.BITS, extras.near.shares[numbers] * self.table.weight[numbers] / ONE)
        return out

    def _greatest(self, limits: Ints, count: int) -> Ints:
        """Return the indexes of the greatest limits above 0, at least this many if there are."""
        same = np.zeros(len(limits), dtype=np.int64)  # ties are not broken by time
        return self.kernels.best(limits, same, self.table, count)

    def _computed(self, inside: Flags, *, with_tail: bool) -> Reached:
        """Return the documents in some blocks that may be hits, with their shares."""
        part = part_of(self.base, inside, self.changes, self.summaries, with_tail=with_tail)
        forced = _NOTHING
        if self.wanted.extras is not None:
            numbers = self.wanted.extras.numbers
            in_base = numbers < self.base.documents
            here = inside[np.where(in_base, numbers >> blocks.BITS, 0)]
            forced = numbers[np.where(in_base, here, with_tail)]
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

    def _passed(self, found: Reached) -> int:
        """Return the number of documents that are reached and may be hits.

        Args:
            found: What of them is in the tail and in blocks with changes, and other documents.
        """
        documents, kept = self.base.documents, kept_of(self.changes, self.wanted)
        reached = kept & 0
        few = np.zeros(documents, dtype=np.bool_)
        if self.wanted.extras is not None:
            numbers = self.wanted.extras.numbers
            few[numbers[numbers < documents]] = True
        for summary in self.summaries:
            few[summary.reached] = True
            if len(summary.bits):
                reached |= summary.bits
        count = int(_COUNTS[(reached | np.packbits(few)) & kept].sum())
        if not len(self.changes.blocks) and self.table.count == documents:
            return count
        changed = np.zeros(self.base.blocks + 1, dtype=np.bool_)  # the last is the tail
        changed[self.changes.blocks] = changed[-1] = True
        of = np.where(found.numbers < documents, found.numbers >> blocks.BITS, self.base.blocks)
        return count + int(np.count_nonzero(changed[of]))
