"""Postings: the occurrences of terms as packed integers, and the lengths of their documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import NONE, Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.ending import Ending

if TYPE_CHECKING:
    from recollect.indexes.words.segment import Segment

POSITION_BITS = 16
#: The last position; later ones are stored as this one. It is two below the maximum, so that adding 2 to a position
#: does not reach the next document.
LAST_POSITION = (1 << POSITION_BITS) - 3
#: For a document of at least this length, the exact length is read from the table.
LONGEST = (1 << 15) - 1
#: A flag above the length: the term occurs, or may occur, again in the same document. One read thus identifies the
#: frequent case of a single occurrence.
MORE = LONGEST + 1
#: Maximum count of a term in a document.
MOST_COUNT = (1 << 15) - 1


def lengths_of(length: NDArray[np.int32], occurrences: Ints) -> NDArray[np.uint16]:
    """Return the document length of each occurrence, at most LONGEST, and the flag MORE.

    MORE is set if the next occurrence is in the same document. Terms are not distinguished, so it may also be set at
    the last occurrence of a term.
    """
    numbers = occurrences >> POSITION_BITS
    out: NDArray[np.uint16] = np.minimum(length[numbers], LONGEST).astype(np.uint16)
    out[np.flatnonzero(numbers[1:] == numbers[:-1])] |= MORE
    return out


class Postings(NamedTuple):
    """The occurrences of the terms of a question: `number << 16 | position`, ascending within each term.

    Attributes:
        base: The column of occurrences of the segment.
        tail: The column of occurrences of the tail.
        spans: A row for each term: its begin and end in `base`, and its begin and end in `tail`.
        lengths: For each occurrence in `base`, the length of its document and the flag MORE (`lengths_of`).
        segment: The segment that `base` is of; None if there is none.
        terms: The number of each term in the segment, or NONE.
        ending: When work on them must end; None for no limit. Kernels look at it between terms and between blocks.
    """

    base: Ints
    tail: Ints
    spans: Ints
    lengths: NDArray[np.uint16]
    segment: Segment | None = None
    terms: tuple[int, ...] = ()
    ending: Ending | None = None

    def check(self) -> None:
        """Raise the error of the limit if the work is over."""
        if self.ending is not None:
            self.ending.check()


def live(occurrences: Ints, table: Table) -> Ints:
    """Return the occurrences in live documents."""
    out: Ints = occurrences[table.alive[occurrences >> POSITION_BITS]]
    return out


def run_lengths(occurrences: Ints) -> tuple[Ints, Ints]:
    """Return the documents of a term, ascending, and its count in each."""
    numbers = occurrences >> POSITION_BITS
    starts = np.flatnonzero(np.diff(numbers, prepend=NONE))
    counts = np.diff(starts, append=len(numbers))
    return numbers[starts], np.minimum(counts, MOST_COUNT)
