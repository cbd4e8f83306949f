"""Postings: the occurrences of terms as packed integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect.indexes.documents.columns import NONE, Ints
from recollect.indexes.documents.table import Table

if TYPE_CHECKING:
    from recollect.indexes.words.segment import Segment

POSITION_BITS = 16
#: The last position; later ones are stored as this one. It is two below the maximum, so that adding 2 to a position
#: does not reach the next document.
LAST_POSITION = (1 << POSITION_BITS) - 3
#: Maximum count of a term in a document.
MOST_COUNT = (1 << 15) - 1


class Postings(NamedTuple):
    """The occurrences of the terms of a question: `number << 16 | position`, ascending within each term.

    Attributes:
        base: The column of occurrences of the segment.
        tail: The column of occurrences of the tail.
        spans: A row for each term: its begin and end in `base`, and its begin and end in `tail`.
        segment: The segment that `base` is of; None if there is none.
        terms: The number of each term in the segment, or NONE.
    """

    base: Ints
    tail: Ints
    spans: Ints
    segment: Segment | None = None
    terms: tuple[int, ...] = ()


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
