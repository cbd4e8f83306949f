"""What kernels are given and give, and the protocol that the NumPy and the compiled ones implement alike."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from recollect.indexes.documents.columns import Flags, Ints, Numbers
from recollect.indexes.documents.table import Table
from recollect.indexes.words.postings import Postings

#: The signals: the rows of `Reached.shares`, and those that stand beside them.
RAW = ("words", "trigram", "context", "session", "pair")
SHARES = (*RAW, "date", "dense")


class Weights(NamedTuple):
    """What the terms of a question weigh, with 16 bits of fraction.

    terms     of each term, in documents
    sessions  of each term, in sessions
    like      whether the term stands in for an unknown word
    whole     of the question: what the shares are parts of
    pairs     a row for each pair of terms that may stand near each other: the terms, and the share
    live      sessions that have tokens, and how many tokens those have
    """

    terms: Ints
    sessions: Ints
    like: Flags
    whole: int
    pairs: Ints
    live: tuple[int, int]


class Reached(NamedTuple):
    """Documents that a question reaches, in no particular order, and their shares before any factor.

    shares  a row for each signal of `RAW`, a column for each document
    passed  how many are reached of those that count, where only the best of them are here too
    """

    numbers: Ints
    shares: Ints
    passed: int

    def within(self, among: Flags) -> Reached:
        """Those that are among some documents, where all that are reached are here."""
        places = np.flatnonzero(among[self.numbers])
        return Reached(self.numbers[places], self.shares.take(places, axis=1), len(places))


class About(NamedTuple):
    """What a question is about beside its words: a speaker (NONE for nobody), and kinds of answers (a bit each)."""

    speaker: int
    kinds: tuple[int, ...]


class Matched(NamedTuple):
    """What each term of a question gives to some documents: a row for each document, a column for each term.

    reached  whether the term has a share in the document, before any factor
    shares   the shares, times each document's factor
    own      the parts of them that the documents' own texts have
    lent     whether the rest is lent by the turns around
    around   the turns around each document, a column for each step, nearest before first; NONE where there is none
    lends    whether the turn around has the term itself: document, term, step
    """

    reached: Flags
    shares: Ints
    own: Ints
    lent: Flags
    around: Ints
    lends: Flags


class Kernels(Protocol):
    """The functions that walk postings."""

    name: str

    def tally(self, postings: Postings, table: Table) -> Ints:
        """A row for each term: how many live documents have it, how often, and in how many sessions."""
        ...

    def reach(self, postings: Postings, table: Table, weights: Weights, forced: Numbers) -> Reached:
        """The documents that have a share of a term, and those of `forced` (distinct), each once."""
        ...

    def reach_best(
        self, postings: Postings, table: Table, weights: Weights, about: About, wanted: int, among: Flags | None = None
    ) -> Reached:
        """Of what `reach` gives, where nothing is forced, at least the best `wanted` and all that tie with the last,
        by what `weigh` gives them without dates; and all that stand (`Table.standing`).

        among  the documents that count, with the shares that they have among all; None for all
        """
        ...

    def weigh(self, reached: Reached, dates: Ints, table: Table, about: About) -> Ints:
        """The totals: all shares, those of `dates` too (where there are any), times each document's factor."""
        ...

    def matched(self, postings: Postings, table: Table, weights: Weights, numbers: Ints, factors: Ints) -> Matched:
        """What the terms give to these documents, whose factors (16 bits of fraction) are given."""
        ...

    def best(self, totals: Ints, numbers: Ints, table: Table, wanted: int) -> Ints:
        """The places of the best `wanted` by total above 0, then by time, and of all that tie with the last."""
        ...

    def best_of(self, reached: Reached, dates: Ints, table: Table, about: About, wanted: int) -> tuple[Ints, Ints]:
        """`best` of what `weigh` would give, and their totals: documents that cannot be among them are not weighed."""
        ...
