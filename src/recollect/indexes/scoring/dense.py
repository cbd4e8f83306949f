"""The dense index: cosines of vectors in integers, by document number.

Vectors are brought to length 1 and their components to integers of 15 bits. From there on everything is exact: a
cosine is a sum of products of integers, so the same stored vectors give the same scores on every machine, in whatever
order they are added. Bringing them there takes only operations that IEEE 754 rounds correctly (no library's cosine,
no sum of floats), so it is exact in that sense too.

Whether a cosine says anything is a matter of the model: its floors are given by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import NONE, Flags, Ints
from recollect.indexes.documents.row_data import Rows
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import SHARE_BITS
from recollect.indexes.kernels.choose import Choice
from recollect.indexes.parameters import DENSE_SHARE

Floats = NDArray[np.float32]
Quantised = NDArray[np.int16]
#: A component of 1 is this, with 14 bits behind the point; a product of two has 28.
_UNIT_BITS = 14
COSINE_BITS = 2 * _UNIT_BITS
#: Before a vector has length 1, its greatest component has so many bits.
_FINE_BITS = 20
#: Rows that are multiplied at a time, few enough to stay in the processor's cache.
_BLOCK = 4096


def quantised(vectors: Floats) -> Quantised:
    """Vectors (a row each, finite) at length 1 with 14 bits behind the point; a zero vector stays zero.

    >>> quantised(np.array([[3.0, 4.0], [0.0, 0.0], [-2e-30, 0.0]], dtype=np.float32)).tolist()
    [[9830, 13107], [0, 0], [-16384, 0]]

    Cost: O(components).
    """
    values = vectors.astype(np.float64)
    greatest = np.abs(values).max(axis=1, keepdims=True, initial=0.0)
    greatest[greatest == 0.0] = 1.0
    fine = np.rint(values / greatest * (1 << _FINE_BITS)).astype(np.int64)
    squares = np.maximum((fine * fine).sum(axis=1, keepdims=True), 1)  # of integers, so the order says nothing
    out: Quantised = np.rint((fine << _UNIT_BITS) / np.sqrt(squares.astype(np.float64))).astype(np.int16)
    return out


class Dense(NamedTuple):
    """What the dense signal gives to each document: a share, with SHARE_BITS of fraction, and whether it admits it."""

    shares: Ints
    admits: Flags


#: The products of a matrix's rows with a vector, all of them quantised.
Products = Callable[[Quantised, Quantised], Ints]
#: So many multiplications take NumPy about as long as one occurrence of a word, which kernels are chosen by.
_PER_OCCURRENCE = 100


def products(matrix: Quantised, wanted: Quantised) -> Ints:
    """The product of each row with a vector. Cost: O(components)."""
    # Every product and every partial sum is a whole number far below 2^53, where float64 is exact: so the fast
    # multiplication gives the integers' own result, whatever order and threads it uses.
    fine = wanted.astype(np.float64)
    out: Ints = np.empty(len(matrix), dtype=np.int64)
    for start in range(0, len(matrix), _BLOCK):
        block = matrix[start : start + _BLOCK]
        out[start : start + len(block)] = block.astype(np.float64) @ fine
    return out


def _compiled() -> Products:
    from recollect.indexes.kernels.numba import dot_products as numba_dense

    found: Products = numba_dense.loaded()
    return found


_serving = Choice(lambda: products, _compiled).serving


class DenseView:
    """The vectors of one moment: immutable.

    multiplied  by what the products are made; None: as it is chosen for words (`indexes.kernels`)
    """

    def __init__(self, matrix: Quantised, rows: Ints, multiplied: Products | None = None) -> None:
        self._matrix = matrix
        self._multiplied = multiplied
        self._rows = rows  # document -> row of the matrix, or NONE

    def cosines(self, asked: Quantised) -> Ints:
        """The cosine of each document with a question's vector, with COSINE_BITS of fraction; -1 where it has none.

        Cost: O(vectors x dimension).
        """
        if not len(self._matrix):
            return np.full(len(self._rows), -(1 << COSINE_BITS), dtype=np.int64)
        multiplied = self._multiplied or _serving(self._matrix.size // _PER_OCCURRENCE)
        found = multiplied(self._matrix, asked)[self._rows]  # a row of NONE is the last one, whichever that is
        found[self._rows == NONE] = -(1 << COSINE_BITS)
        out: Ints = np.minimum(found, 1 << COSINE_BITS)  # rounding may lead a little past 1
        return out

    def score(self, asked: Quantised, table: Table, share: float, alone: float) -> Dense:
        """The signal of each document of a table.

        share, alone  the floors above which a cosine counts, and from which it admits a document by itself
        """
        cosines = self.cosines(asked)
        seen = table.alive[: table.count] & (self._rows != NONE)
        above = np.maximum(cosines - _fixed(share), 0)
        shares = np.where(seen, (above * DENSE_SHARE << SHARE_BITS - COSINE_BITS) // 100, 0)
        return Dense(shares, seen & (cosines >= _fixed(alone)) & (above > 0))


def _fixed(cosine: float) -> int:
    return int(cosine * (1 << COSINE_BITS))


class DenseIndex:
    """The vectors of a table's documents as they are gathered: one writer, any number of views.

    rows   of the table, with the digests of the texts; they only grow. They tell which table this index belongs to.
    """

    def __init__(self, rows: Rows, dimension: int) -> None:
        self.rows = rows
        self._matrix: Quantised = np.zeros((16, dimension), dtype=np.int16)
        self._used = 0
        self._row_of: dict[bytes, int] = {}
        self._rows: Ints = np.full(16, NONE, dtype=np.int64)
        self._seen = 0
        self._waiting: dict[bytes, list[int]] = {}  # documents whose text has no vector yet

    def add(self, vectors: Mapping[bytes, Floats]) -> None:
        """Take in vectors by the digests of their texts. Those of texts that it has replace them."""
        if not vectors:
            return
        while self._used + len(vectors) > len(self._matrix):
            self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
        rows = np.arange(self._used, self._used + len(vectors))
        # A replaced vector gets a row of its own, as views may hold the old one.
        self._matrix[rows] = quantised(np.stack(list(vectors.values())))
        self._used += len(vectors)
        for digest, row in zip(vectors, rows.tolist(), strict=True):
            if digest in self._row_of:
                self._rows[: self._seen][self._rows[: self._seen] == self._row_of[digest]] = row
            self._row_of[digest] = row
            self._rows[self._waiting.pop(digest, [])] = row

    def view(self, table: Table) -> DenseView:
        """The vectors of a table's documents. Cost: O(documents) to copy, and what is new."""
        while len(self._rows) < table.count:
            self._rows = np.concatenate([self._rows, np.full_like(self._rows, NONE)])
        for number in range(self._seen, table.count):
            digest = self.rows.text(number)
            row = self._row_of.get(digest, NONE)
            self._rows[number] = row
            if row == NONE and digest:
                self._waiting.setdefault(digest, []).append(number)
        self._seen = max(self._seen, table.count)
        return DenseView(self._matrix[: self._used], self._rows[: table.count].copy())

    def __len__(self) -> int:
        return len(self._row_of)
