"""The interface of the kernels that walk postings, which exist in NumPy and compiled, with the same results."""

from __future__ import annotations

from typing import Protocol

from recollect.indexes.documents.columns import Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.kernels.blocks import Pruned
from recollect.indexes.kernels.types import About, Matched, MatchRows, Reached, Summarizing, Wanted, Weights
from recollect.indexes.words.postings import Postings


class Kernels(Summarizing, Protocol):
    """The functions that walk postings."""

    name: str

    def tally(self, postings: Postings, table: Table) -> Ints:
        """Return a row for each term: its number of live documents, its count in them, and its number of sessions."""

    def reach(self, postings: Postings, table: Table, weights: Weights, forced: Ints) -> Reached:
        """Return the documents in which a term has a share, and those of `forced` (distinct), each once."""

    def search(
        self, postings: Postings, table: Table, weights: Weights, about: About, wanted: Wanted, pruned: Pruned | None
    ) -> Reached:
        """Return at least the best documents that a question reaches, as `choose.reach_best` does.

        Args:
            postings: The postings of the terms.
            table: The documents.
            weights: The weights of the terms.
            about: The subject of the question.
            wanted: What is wanted.
            pruned: With what blocks are left out; None to compute the shares of all documents.
        """

    def weigh(self, reached: Reached, dates: Ints, table: Table, about: About) -> Ints:
        """Return the totals: all shares, including those of `dates`, multiplied by each document's factor."""

    def matched(self, postings: Postings, table: Table, weights: Weights, numbers: Ints) -> Matched:
        """Return the shares of the terms in these documents."""

    def explained(
        self, postings: Postings, table: Table, weights: Weights, numbers: Ints, factors: Ints, ranks: Ints
    ) -> MatchRows:
        """Return the terms in these documents.

        Args:
            postings: The postings of the terms.
            table: The documents.
            weights: The weights of the terms.
            numbers: The documents.
            factors: What the shares of each are multiplied by, with 16 bits of fraction.
            ranks: The rank of each term, title terms excepted: a lower one comes first if the shares are equal.
        """

    def best(self, totals: Ints, numbers: Ints, table: Table, wanted: int) -> Ints:
        """Return the indexes of the best `wanted` by total above 0, then by time, and of all that tie with the last."""

    def best_of(self, reached: Reached, dates: Ints, table: Table, about: About, wanted: int) -> tuple[Ints, Ints]:
        """Return `best` of the totals of `weigh`, and these totals.

        Documents that cannot be among the best are not weighed.
        """
