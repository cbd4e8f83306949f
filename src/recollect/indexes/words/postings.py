"""Postings: where terms occur, as packed occurrences, and the lengths of documents beside them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import NONE, Ints
from recollect.indexes.documents.table import Table

POSITION_BITS = 16
#: Positions beyond are all the last; two below the end, so that "the place after next" stays in the document.
LAST_POSITION = (1 << POSITION_BITS) - 3
#: A document of so many tokens or more is looked up for its length.
LONGEST = (1 << 15) - 1
#: Above a length: the term occurs once more in this document, or may. So one look tells the many that have it once.
MORE = LONGEST + 1
#: A document's count of a term is at most so much.
MOST_COUNT = (1 << 15) - 1


def lengths_of(length: NDArray[np.int32], occurrences: Ints) -> NDArray[np.uint16]:
    """The length of the document of each occurrence, at most LONGEST, and MORE where the next is in the same one.

    Terms are not told apart: MORE may stand at the last occurrence of a term, too.
    """
    numbers = occurrences >> POSITION_BITS
    out: NDArray[np.uint16] = np.minimum(length[numbers], LONGEST).astype(np.uint16)
    out[np.flatnonzero(numbers[1:] == numbers[:-1])] |= MORE
    return out


class Postings(NamedTuple):
    """Where the terms of a question occur: `number << 16 | position`, rising within each term.

    base, tail  columns of occurrences
    spans       a row for each term: where it begins and ends in `base`, and in `tail`
    base_lengths, tail_lengths  beside each occurrence, the length of its document and whether the term occurs once more
        in it (`lengths_of`)
    """

    base: Ints
    tail: Ints
    spans: Ints
    base_lengths: NDArray[np.uint16]
    tail_lengths: NDArray[np.uint16]


def live(occurrences: Ints, table: Table) -> Ints:
    """The occurrences in live documents."""
    out: Ints = occurrences[table.alive[occurrences >> POSITION_BITS]]
    return out


def run_lengths(occurrences: Ints) -> tuple[Ints, Ints]:
    """The documents (rising) and how often each has the term."""
    numbers = occurrences >> POSITION_BITS
    starts = np.flatnonzero(np.diff(numbers, prepend=NONE))
    counts = np.diff(starts, append=len(numbers))
    return numbers[starts], np.minimum(counts, MOST_COUNT)
