"""The interface of the kernels that search SDRs, which exist in NumPy and compiled, with the same results.

Most rows are in a `SdrBase`, which never changes. The postings of a bit list the rows that have it, so a search reads
only those of the question's bits; bits that many rows have are stored as plain columns instead. Later rows are in a
small tail, which is read bit by bit.

Both rankings are one sum of weights and one integer formula over it:

    sum    the weights of the common bits, less `penalty` for each bit of the row
    value  (sum inverse >> shift) factors[size] >> 16, plus `add`

`sdr.index` defines the numbers that make it an overlap or a Hamming distance. Kernels are selected as for words
(`indexes.kernels`).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import Flags, Ints

#: Bits of fraction of the factor for length.
FACTOR_BITS = 16


class SdrRows(NamedTuple):
    """A list of SDRs.

    Attributes:
        numbers: The number of each row.
        bits: The active bits of all rows; those of row i are `bits[offsets[i]:offsets[i + 1]]`, ascending.
        offsets: The begin of each row in `bits`, and the end of the last.
        alive: Whether each row is live.
    """

    numbers: Ints
    bits: NDArray[np.uint16]
    offsets: Ints
    alive: Flags


class SdrBase(NamedTuple):
    """Rows that do not change except for `alive`, and an index of their bits.

    Attributes:
        sizes: The number of bits of each row.
        postings: The indexes of the rows that have bit b are `postings[starts[b]:starts[b + 1]]`, ascending; unsigned,
            so that no check for negative indexes is compiled.
        starts: The begin of each bit in `postings`, and the end of the last.
        common: For each bit with too many rows for postings, its row in `flags`; NONE for the others.
        flags: A row for each common bit, a column for each row of the base: -1 if it has the bit, else 0.
    """

    rows: SdrRows
    sizes: NDArray[np.uint16]
    postings: NDArray[np.uint32]
    starts: Ints
    common: Ints
    flags: NDArray[np.int8]


class Query(NamedTuple):
    """The bits of a question, and the numbers of the formula above.

    Attributes:
        bits: The active bits.
        weights: The weight of each of the 4096 bits, above 0 for those of the question; their sum is below 2^31.
        penalty: Subtracted for each bit of the row.
        inverse: The factor of the sum.
        shift: The right shift after it.
        factors: The factor by number of bits of a row, at most 2^16.
        add: Added at the end.
        least: The minimum value of a hit.
    """

    bits: Ints
    weights: NDArray[np.int32]
    penalty: int
    inverse: int
    shift: int
    factors: Ints
    add: int
    least: int


class BestRows(NamedTuple):
    """The best rows, in no particular order.

    Attributes:
        numbers: The numbers of the rows.
        hamming: The number of bits in which each differs from the question.
    """

    numbers: Ints
    values: Ints
    hamming: Ints


class SdrKernels(Protocol):
    """The functions that search SDRs."""

    name: str

    def best(self, base: SdrBase, tail: SdrRows, query: Query, wanted: int) -> BestRows:
        """Return the `wanted` live rows with the greatest values; of equal values, those with the lowest numbers."""
