"""The arguments and results of kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import Flags, Ints, Numbers
from recollect.indexes.documents.table import Table
from recollect.indexes.parameters import SPEAKER

#: The signals: RAW are the rows of `Reached.shares`; SHARES also has those that are computed separately.
RAW = ("words", "trigram", "context", "session", "pair", "title")
SHARES = (*RAW, "date", "member", "speaker", "dense", "limit", "replaces", "prevails", "recency", "importance")
#: The row of words in titles.
TITLE = RAW.index("title")
#: Bits of fraction of a ratio in a `TermSummary`, and of a ratio times the weight of a document, which is below 8.
RATIO_BITS, WEIGHED_BITS = 15, 13


class _Weights(NamedTuple):
    terms: Ints
    sessions: Ints
    like: Flags
    title_of: Ints
    whole: int
    pairs: Ints
    live: tuple[int, int]


class Weights(_Weights):
    """The weights of a question's terms, with 16 bits of fraction.

    Not a named tuple itself, so that kernels can keep something with it (`native.library.kept`).

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
    """The shares of each term in some documents, before any factor: a row for each document, a column for each term.

    Attributes:
        shares: The shares of words, with what surrounding turns lend.
        own: The parts of these from the documents' own texts.
        titles: What titles add to them.
    """

    shares: Ints
    own: Ints
    titles: Ints


class MatchRow(NamedTuple):
    """A term of a question in a hit.

    Attributes:
        hit: The index of the hit.
        term: The number of the term.
        share: Its share of the score, multiplied by the factor of the hit.
        own: The part of the share from the record's own text.
        title: The part of the share from the titles above the record; the rest is lent by surrounding turns.
        begin: The begin of these turns in `MatchRows.lenders`; the previous ones come first, the nearest first.
        end: Their end.
    """

    hit: int
    term: int
    share: int
    own: int
    title: int
    begin: int
    end: int


class MatchRows(NamedTuple):
    """The terms in some hits.

    Attributes:
        rows: Those of each hit after those of the hit before, by descending share, then by the rank of the term. Each
            is a tuple with the fields of a `MatchRow`.
        lenders: The documents that lend; those of each row are in one piece.
    """

    rows: Sequence[tuple[int, ...]]
    lenders: list[int]


@dataclass(frozen=True, eq=False)
class TermSummary:
    """Statistics of a term in the base of an index, as if all of its documents were live. They never change.

    Attributes:
        blocks: The blocks with a document that the term reaches, ascending.
        most: The greatest product, in each of these blocks, of a document's weight and the ratio of the mass of the
            term to that mass and K of the document: rounded up, with WEIGHED_BITS of fraction.
        sessions: The sessions that contain the term, ascending.
        times: Its count in each of these sessions.
        reached: The documents that it reaches, ascending, if they are few; else empty.
        bits: If they are many, a bit for each document, the first one in the highest bit of the first byte; else empty.
        least: The least ratio of these documents, rounded down.
    """

    blocks: Numbers
    most: NDArray[np.uint16]
    sessions: Numbers
    times: Numbers
    reached: Numbers
    bits: NDArray[np.uint8]
    least: int

    @classmethod
    def of(cls, most: NDArray[np.uint16], times: Numbers, reached: Flags, least: int) -> TermSummary:
        """Return a summary from columns with an element for each block, session and document."""
        blocks, sessions, some = (np.flatnonzero(each) for each in (most, times, reached))
        many = len(some) * 32 > len(reached)
        return cls(
            blocks.astype(np.int32),
            most[blocks],
            sessions.astype(np.int32),
            times[sessions],
            some[: 0 if many else None].astype(np.int32),
            np.packbits(reached[: None if many else 0]),
            least,
        )

    @property
    def nbytes(self) -> int:
        """Its approximate memory in bytes."""
        arrays = self.blocks, self.most, self.sessions, self.times, self.reached, self.bits
        return 1000 + sum(each.nbytes for each in arrays)


@dataclass(frozen=True, eq=False)
class BlockLayout:
    """The blocks of the base: runs of documents with consecutive numbers, and of which sessions these are.

    Attributes:
        documents: Number of documents.
        bits: A block has 1 << bits documents; the last may have fewer.
        starts: The begin of each block in `sessions`, and the end of the last.
        sessions: The sessions of the documents of each block, each once; NONE for a block without any.
    """

    documents: int
    bits: int
    starts: Ints
    sessions: Ints

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return len(self.starts) - 1


class Near(NamedTuple):
    """Shares of meaning, which any document can have. They make no document a hit.

    Attributes:
        shares: The share of each document.
        numbers: The documents in which it is above 0, ascending.
    """

    shares: Ints
    numbers: Ints


class Extras(NamedTuple):
    """Shares of a question that do not come from the postings of its terms. Factors apply to them.

    Attributes:
        numbers: Documents that count as reached, live and ascending.
        shares: The share of each, without that of meaning.
        bounds_in: Returns a lower and an upper bound of the shares of other documents, by the first and the last day of
            some (`Table.civil`), without those of meaning.
        of: Returns the shares of documents.
        near: The shares of meaning; None if there are none.
    """

    numbers: Ints
    shares: Ints
    bounds_in: Callable[[Numbers, Numbers], tuple[Ints, Ints]]
    of: Callable[[Ints], Ints]
    near: Near | None = None

    def within(self, group: Flags) -> Extras:
        """Return the same without the documents that are not in a group."""
        kept = group[self.numbers]
        return self._replace(numbers=self.numbers[kept], shares=self.shares[kept])


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


class Summarizing(Protocol):
    """The function that summarises terms."""

    def summarize(self, occurrences: Ints, table: Table, layout: BlockLayout, is_title: bool) -> TermSummary:
        """Return the summary of a term.

        Args:
            occurrences: Its occurrences in the base.
            table: The documents of the base, all live.
            layout: Their blocks.
            is_title: Whether it is a title term.
        """
