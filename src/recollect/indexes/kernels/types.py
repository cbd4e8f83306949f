"""The arguments and results of kernels, and the protocol that the NumPy and the compiled kernels implement."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from recollect.indexes.documents.columns import Flags, Ints, Numbers
from recollect.indexes.documents.table import Table
from recollect.indexes.parameters import SPEAKER
from recollect.indexes.words.postings import Postings

#: The signals: RAW are the rows of `Reached.shares`; SHARES also has those that are computed separately.
RAW = ("words", "trigram", "context", "session", "pair", "title")
SHARES = (*RAW, "date", "member", "speaker", "dense", "replaces", "recency", "importance")
#: The row of words in titles.
TITLE = RAW.index("title")


class Weights(NamedTuple):
    """The weights of a question's terms, with 16 bits of fraction.

    Attributes:
        terms: The weight of each term in documents.
        sessions: The weight of each term in sessions.
        like: Whether each term replaces an unknown word.
        title_of: The last terms are title terms: the number of the term that each of them is the title term of. A title
            term adds to the mass of its term; the weights of both are the same.
        whole: The mass of the question, by which shares are divided.
        pairs: A row for each pair of terms that may be near each other: the two terms, and the share.
        live: The number of sessions with tokens, and the number of these tokens.
    """

    terms: Ints
    sessions: Ints
    like: Flags
    title_of: Ints
    whole: int
    pairs: Ints
    live: tuple[int, int]


class Reached(NamedTuple):
    """The documents that a question reaches, in no particular order, and their shares before any factor.

    Attributes:
        numbers: The documents.
        shares: A row for each signal of `RAW`, a column for each document.
        passed: The number of documents that are reached and may be hits, even if only the best of them are included.
    """

    numbers: Ints
    shares: Ints
    passed: int

    def within(self, among: Flags) -> Reached:
        """Return the documents that are in `among`. This must contain all documents that the question reaches."""
        indexes = np.flatnonzero(among[self.numbers])
        return Reached(self.numbers[indexes], self.shares.take(indexes, axis=1), len(indexes))


class About(NamedTuple):
    """The subject of a question, besides its words.

    Attributes:
        speaker: The number of the speaker, or NONE.
        kinds: The kinds that decide factors of documents, one bit each, ascending: the kinds of answers that it
            expects, and INSTRUCTION if it asks what was said or done.
        favour: The factor of the speaker's documents, with 16 bits of fraction.
    """

    speaker: int
    kinds: tuple[int, ...]
    favour: int = SPEAKER


class Matched(NamedTuple):
    """The shares of each term in some documents: a row for each document, a column for each term.

    Attributes:
        reached: Whether the term has a share in the document, before any factor.
        shares: The shares, multiplied by each document's factor.
        own: The parts of the shares from the documents' own texts.
        lent: Whether surrounding turns lend the rest.
        around: The turns around each document, a column for each step: the previous ones, nearest first, then the next
            ones. NONE if there is none.
        lends: Whether the surrounding turn contains the term itself: document, term, step.
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
        """Return a row for each term: its number of live documents, its count in them, and its number of sessions."""
        ...

    def reach(self, postings: Postings, table: Table, weights: Weights, forced: Numbers) -> Reached:
        """Return the documents in which a term has a share, and those of `forced` (distinct), each once."""
        ...

    def reach_best(
        self, postings: Postings, table: Table, weights: Weights, about: About, wanted: int, among: Flags | None = None
    ) -> Reached:
        """Return at least the best `wanted` documents of `reach` without forced ones, and all that tie with the last.

        They are ranked by `weigh` without dates. All documents with standing tags (`Table.standing`) are included.

        Args:
            postings: The postings of the terms.
            table: The documents.
            weights: The weights of the terms.
            about: The subject of the question.
            wanted: Number of documents that are needed.
            among: The documents that may be hits; their shares are computed among all documents. None for all.
        """
        ...

    def weigh(self, reached: Reached, dates: Ints, table: Table, about: About) -> Ints:
        """Return the totals: all shares, including those of `dates`, multiplied by each document's factor."""
        ...

    def matched(self, postings: Postings, table: Table, weights: Weights, numbers: Ints, factors: Ints) -> Matched:
        """Return the shares of the terms in these documents, with `factors` (16 bits of fraction)."""
        ...

    def best(self, totals: Ints, numbers: Ints, table: Table, wanted: int) -> Ints:
        """Return the indexes of the best `wanted` by total above 0, then by time, and of all that tie with the last."""
        ...

    def best_of(self, reached: Reached, dates: Ints, table: Table, about: About, wanted: int) -> tuple[Ints, Ints]:
        """Return `best` of the totals of `weigh`, and these totals.

        Documents that cannot be among the best are not weighed.
        """
        ...
