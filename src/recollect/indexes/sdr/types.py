"""What searching SDRs does with their bits: once in NumPy and once compiled, which give the same bits.

Most rows stand in a `Base`, which never changes: the postings of a bit name the rows that have it, so a question walks
only those of its own bits; bits that many rows have are plain columns instead. What came since is a small tail beside
it, whose rows are read bit by bit.

Both ways of ranking are one sum of weights and one formula over it, in integers:

    sum    the weights of the bits that both have, less `penalty` for each bit of the row
    value  (sum inverse >> shift) factors[size] >> 16, and `add`

`indexes.sdr` says which numbers make it an overlap and which a Hamming distance. Which kernels serve is chosen as for
words (`indexes.kernels`).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import Flags, Ints

#: The factor for length has so many bits of fraction.
FACTOR_BITS = 16


class Rows(NamedTuple):
    """Some SDRs, by place.

    numbers  under which they are known
    bits     the active bits of all, those of row i at `bits[offsets[i]:offsets[i + 1]]`, rising
    alive    whether each is still there
    """

    numbers: Ints
    bits: NDArray[np.uint16]
    offsets: Ints
    alive: Flags


class Base(NamedTuple):
    """Rows that do not change but for `alive`, and where their bits are found.

    sizes     how many bits each has
    postings  the places of the rows that have bit b, rising, at `postings[starts[b]:starts[b + 1]]`; unsigned, so that
              nobody looks whether a place counts from the end
    common    of each bit that too many rows have for that, its row in `flags`; NONE of the others
    flags     a row for each common bit, a column for each row of the base: -1 where it has the bit, else 0
    """

    rows: Rows
    sizes: NDArray[np.uint16]
    postings: NDArray[np.uint32]
    starts: Ints
    common: Ints
    flags: NDArray[np.int8]


class Query(NamedTuple):
    """A question's bits, and how what shares them is valued: see above.

    weights  of each of the 4096 bits, above 0 for those of the question; they add up to less than 2^31
    factors  by how many bits a row has, at most 2^16
    least    rows of a lesser value are no hits
    """

    bits: Ints
    weights: NDArray[np.int32]
    penalty: int
    inverse: int
    shift: int
    factors: Ints
    add: int
    least: int


class Found(NamedTuple):
    """The best rows, in no particular order: numbers, values, and how many active bits differ from the question's."""

    numbers: Ints
    values: Ints
    hamming: Ints


class SdrKernels(Protocol):
    """The functions that search SDRs."""

    name: str

    def best(self, base: Base, tail: Rows, query: Query, wanted: int) -> Found:
        """The `wanted` live rows of the greatest value, of equal values those of the lowest numbers."""
        ...
