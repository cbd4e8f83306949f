"""Postings: the occurrences of terms as packed integers, and the lengths of their documents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import NONE, Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.ending import Ending
from recollect.indexes.words.segment import MOST_COUNT, POSITION_BITS, Segment


class _Postings(NamedTuple):
    base: Ints
    tail: Ints
    spans: Ints
    lengths: NDArray[np.uint16]
    segment: Segment | None = None
    terms: tuple[int, ...] = ()
    ending: Ending | None = None


class Postings(_Postings):
    """The occurrences of the terms of a question: `number << 16 | position`, ascending within each term.

    Not a named tuple itself, so that kernels can keep something with it (`native.library.kept`).

    Attributes:
        base: The column of occurrences of the segment.
        tail: The column of occurrences of the tail.
        spans: A row for each term: its begin and end in `base`, and its begin and end in `tail`.
        lengths: For each occurrence in `base`, the length of its document and the flag MORE (`lengths_of`).
        segment: The segment that `base` is of; None if there is none.
        terms: The number of each term in the segment, or NONE.
        ending: When work on them must end; None for no limit. Kernels look at it between terms and between blocks.
    """

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
