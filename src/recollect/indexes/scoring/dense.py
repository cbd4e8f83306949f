"""The dense index: cosines of vectors in integer arithmetic, by document number.

Vectors are scaled to length 1, and their components are converted to 15-bit integers. From there on everything is
exact: a cosine is a sum of products of integers, so the same stored vectors give the same scores on every machine and
in any order of addition. The conversion uses only operations that IEEE 754 rounds correctly (no library cosine, no sum
of floats), so it too gives the same result everywhere.

Which cosines are significant depends on the model: the caller passes the floors. It also depends on the memory: to a
model of English all German texts are similar, and so are all facts about one person to a question about them. What the
middle of a memory has says nothing about the rest, so the floors rise by what the median has above the floor.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import NONE, Flags, Ints
from recollect.indexes.documents.row_data import Rows
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import SHARE_BITS
from recollect.indexes.kernels.choose import native, uses_native
from recollect.indexes.parameters import (
    AFTER_QUESTION,
    ALL_COMPARED,
    DONOR_CAP,
    FEW_VECTORS,
    FROM_AFTER,
    FROM_BEFORE,
    NEAR_THE_GREATEST,
    NEARLY_ALONE,
    RISE,
)
from recollect.indexes.scoring.nearest import Signs, nearest, signs_of

Floats = NDArray[np.float32]
Quantised = NDArray[np.int16]
#: Components have 14 bits of fraction, and the product of two has 28.
_UNIT_BITS = 14
COSINE_BITS = 2 * _UNIT_BITS
#: Bits of the greatest component before a vector is scaled to length 1.
_FINE_BITS = 20
#: Approximate memory of a digest and its row number, and of a digest and the list of the documents that wait for it.
_ROW_BYTES, _WAITING_BYTES = 200, 300
#: Weights of models are multiples of one in this many.
_WEIGHT_PARTS = 10_000
#: Number of rows that are products_of at a time, so that they stay in the processor's cache.
_BLOCK = 4096


def quantised(vectors: Floats) -> Quantised:
    """Return vectors (finite, one per row) scaled to length 1, with 14 bits of fraction; a zero vector remains zero.

    >>> quantised(np.array([[3.0, 4.0], [0.0, 0.0], [-2e-30, 0.0]], dtype=np.float32)).tolist()
    [[9830, 13107], [0, 0], [-16384, 0]]

    Cost:
        O(components).
    """
    values = vectors.astype(np.float64)
    greatest = np.abs(values).max(axis=1, keepdims=True, initial=0.0)
    greatest[greatest == 0.0] = 1.0
    fine = np.rint(values / greatest * (1 << _FINE_BITS)).astype(np.int64)
    squares = np.maximum((fine * fine).sum(axis=1, keepdims=True), 1)  # integers: exact in any order
    out: Quantised = np.rint((fine << _UNIT_BITS) / np.sqrt(squares.astype(np.float64))).astype(np.int16)
    return out


class Dense(NamedTuple):
    """The signal of meaning.

    Attributes:
        shares: The share of each document, with SHARE_BITS of fraction.
        numbers: The documents with a share above 0, ascending.
        admitted: The documents that are hits by their meaning alone, ascending.
        own: The documents whose own cosines are above the floor, ascending.
        cosines: Their cosines, with COSINE_BITS of fraction.
        greatest: The greatest cosine of a live document, with COSINE_BITS of fraction; None if none has a vector.
        floor: The cosine above which one adds to a score, with COSINE_BITS of fraction.
        closest: What the greatest cosine would add to a score, with SHARE_BITS of fraction: 0 if it is below the floor.
    """

    shares: Ints
    numbers: Ints
    admitted: Ints
    own: Ints
    cosines: Ints
    greatest: int | None
    floor: int
    closest: int

    def cosine_of(self, number: int) -> float | None:
        """Return the cosine of a document that is above the floor itself; None for others."""
        at = int(self.own.searchsorted(number))
        if at == len(self.own) or self.own[at] != number:
            return None
        return int(self.cosines[at]) / (1 << COSINE_BITS)


#: Returns the dot product of each row of a matrix with a vector, both quantised.
Products = Callable[[Quantised, Quantised], Ints]


def products(matrix: Quantised, vector: Quantised) -> Ints:
    """Return the dot product of each row with a vector.

    Cost:
        O(components).
    """
    # Every product and every partial sum is an integer far below 2^53, for which float64 is exact. The fast
    # floating-point multiplication therefore gives the exact result with any order and number of threads.
    fine = vector.astype(np.float64)
    out: Ints = np.empty(len(matrix), dtype=np.int64)
    for start in range(0, len(matrix), _BLOCK):
        block = matrix[start : start + _BLOCK]
        out[start : start + len(block)] = block.astype(np.float64) @ fine
    return out


@cache
def _chosen() -> Products:
    """Return the function that computes products, by the rules of `kernels.choose`."""
    if uses_native():
        compiled: Products = native("vectors").products
        return compiled
    return products


class DenseView:
    """An immutable view of the vectors.

    Args:
        matrix: The quantised vectors.
        rows: The row of each document in `matrix`, or NONE.
        products_of: Computes the products. None: chosen like the kernels for words (`indexes.kernels`).
        signs: The signs of the vectors (`scoring.nearest`). None: computed.
        waits: A flag for each document: whether it has a text, and no vector yet. None: not known.
    """

    def __init__(
        self,
        matrix: Quantised,
        rows: Ints,
        products_of: Products | None = None,
        signs: Signs | None = None,
        waits: Flags | None = None,
    ) -> None:
        self._matrix = matrix
        self._products_of = products_of or _chosen()
        self._rows = rows
        self._signs = signs
        self._compared: tuple[weakref.ref[Table], Ints, Ints] | None = None
        self._waits = waits

    @property
    def known(self) -> Flags:
        """A flag for each document: whether it has a vector."""
        out: Flags = self._rows != NONE
        return out

    def cosines(self, question: Quantised) -> Ints:
        """Return the cosine of each document with a question's vector, with COSINE_BITS of fraction.

        It is -1 for a document without a vector.

        Cost:
            O(vectors x dimension).
        """
        if not len(self._matrix):
            return np.full(len(self._rows), -(1 << COSINE_BITS), dtype=np.int64)
        found = self._products_of(self._matrix, question)[self._rows]  # as an index, NONE is the last row; see below
        found[self._rows == NONE] = -(1 << COSINE_BITS)
        out: Ints = np.minimum(found, 1 << COSINE_BITS)  # rounding may slightly exceed 1
        return out

    def _live(self, table: Table) -> tuple[Ints, Ints]:
        """Return the live documents of a table that have a vector, ascending, and their rows."""
        kept = self._compared
        if kept is None or kept[0]() is not table:
            numbers = np.flatnonzero(table.alive[: table.count] & self.known)
            kept = self._compared = (weakref.ref(table), numbers, self._rows[numbers])
        return kept[1:]

    def is_partial(self, table: Table) -> bool:
        """Return whether a live document of a table waits for its vector.

        Cost:
            O(documents) bytes.
        """
        return self._waits is not None and bool((self._waits & table.alive[: len(self._waits)]).any())

    def nearest(self, question: Quantised, table: Table) -> tuple[Ints, Ints, int]:
        """Return the documents that are compared with a question, ascending, their cosines, and the median of all.

        Above `ALL_COMPARED` documents, only the nearest are compared, and the median is estimated (`scoring.nearest`).

        Cost:
            O(vectors x dimension / 64), and O(dimension) for each document that is compared.
        """
        numbers, rows = self._live(table)
        if len(numbers) > ALL_COMPARED:
            found = nearest(self._matrix, question, self._signs or signs_of(self._matrix), rows)
            numbers, cosines, median = numbers[found.places], found.products, found.median
        else:
            cosines = self._products_of(self._matrix[rows], question)
            middle = (len(cosines) - 1) // 2
            median = int(np.partition(cosines, middle)[middle]) if len(cosines) else 0
        return numbers, np.minimum(cosines, 1 << COSINE_BITS), median

    def score(self, question: Quantised, table: Table, share: float, alone: float, weight: float) -> Dense:
        """Return the signal of each document of a table.

        Args:
            question: The vector of the question.
            table: The table of this view's documents.
            share: The floor above which a cosine adds to the score.
            alone: The cosine from which a document is a hit without any other signal. Those nearly as close as the
                closest need less.
            weight: What a cosine of 1 above the floor would add to the score.

        Both floors rise by most of what the median cosine has above the first, but by no more than lies between them: a
        memory may be all about what is asked. Among few documents all may answer, so there they rise less.
        """
        numbers, cosines, median = self.nearest(question, table)
        count, floor, admits = len(self._live(table)[0]), _fixed(share), _fixed(alone) - _fixed(share)
        of, out_of = RISE
        rise = max(median - floor, 0) * max(count - FEW_VECTORS, 0) * of // (max(count, 1) * out_of)
        floor += min(rise, admits)
        unit = round(weight * _WEIGHT_PARTS) * (1 << SHARE_BITS - COSINE_BITS)
        greatest = int(cosines.max()) if len(cosines) else None
        closest = 0 if greatest is None else max(greatest - floor, 0) * unit // _WEIGHT_PARTS
        above = cosines > floor
        own, cosines = numbers[above], cosines[above]
        shares, near, with_context = lent(table, own, cosines - floor, (unit, _WEIGHT_PARTS))
        admitted = near[(with_context >= _enough(admits, with_context)) & (self._rows[near] != NONE)]
        return Dense(shares, near, admitted, own, cosines, greatest, floor, closest)


def lent(table: Table, numbers: Ints, above: Ints, unit: tuple[int, int]) -> tuple[Ints, Ints, Ints]:
    """Return the shares of documents by what their cosines have above the floor, and what the turns around them lend.

    The constants are those of the context of words: a reply needs what the question before it says, and a long turn
    lends no more than a short one.

    Args:
        table: The table whose links say which turns are around each other.
        numbers: The documents with a cosine above the floor, live and ascending.
        above: What each has above it, above 0.
        unit: The share for each unit of that, as a fraction.

    Returns:
        The share of each document; the documents that have or get something, ascending; and how much that is.

    Cost:
        O(numbers), and a look at each document.
    """
    if uses_native():
        found: tuple[Ints, Ints, Ints] = native("vectors").lent(table, numbers, above, unit)
        return found
    shares: Ints = np.zeros(table.count, dtype=np.int64)
    shares[numbers] = above * 10
    given = above * DONOR_CAP // np.maximum(table.length[numbers], DONOR_CAP)
    asked = np.where(table.asks[numbers], AFTER_QUESTION, 0)
    # A turn lends to the turns after it as one before them, and the other way round.
    for links, tenths in ((table.after, FROM_BEFORE), (table.before, FROM_AFTER)):
        turn, gives, extra = numbers, given, asked if links is table.after else asked * 0
        for of in tenths:
            turn = links[turn].astype(np.int64)
            there = (turn != NONE) & (turn < table.count)
            turn, gives, extra = turn[there], gives[there], extra[there]
            shares[turn] += gives * (of + extra)  # each turn has one before it and one after it
            extra = extra * 0
    shares //= 10
    near = np.flatnonzero(shares)
    with_context = shares[near]
    of, out_of = unit
    shares[near] = with_context * of // out_of
    return shares, near, with_context


def _enough(admits: int, with_context: Ints) -> int:
    """Return what a document must have above the floor to be a hit by its meaning alone."""
    (of, out_of), (part, parts) = NEARLY_ALONE, NEAR_THE_GREATEST
    greatest = int(with_context.max()) if len(with_context) else 0
    return min(admits, max(admits * of // out_of, greatest * part // parts))


def _fixed(cosine: float) -> int:
    return int(cosine * (1 << COSINE_BITS))


class DenseIndex:
    """The vectors of a table's documents under construction: one writer, any number of views.

    Args:
        rows: The rows of the table, which only grow, with the digests of the texts. They identify the table, and are
            not kept in memory by the vectors.
        dimension: Number of components of the vectors.
    """

    def __init__(self, rows: Rows, dimension: int) -> None:
        self._table_rows = weakref.ref(rows)
        self._matrix: Quantised = np.zeros((16, dimension), dtype=np.int16)
        self._signs, self._positive = signs_of(self._matrix)
        self._used = 0
        self._row_of: dict[bytes, int] = {}
        self._rows: Ints = np.full(16, NONE, dtype=np.int64)
        self._waits: Flags = np.zeros(16, dtype=np.bool_)
        self._seen = 0
        self._identity = object()
        self._latest: tuple[tuple[int, int], DenseView] | None = None
        self._waiting: dict[bytes, list[int]] = {}  # digest -> documents whose text has no vector yet

    def is_of(self, table: Table) -> bool:
        """Return whether these are the vectors of a table's documents."""
        return self._table_rows() is table.rows

    @property
    def nbytes(self) -> int:
        """The approximate memory use, in bytes."""
        by_digest = len(self._row_of) * _ROW_BYTES + len(self._waiting) * _WAITING_BYTES
        return self._matrix.nbytes + self._signs.nbytes + self._positive.nbytes + self._rows.nbytes + by_digest

    def add(self, vectors: Mapping[bytes, Floats]) -> None:
        """Add vectors by the digests of their texts, replacing existing ones."""
        if not vectors:
            return
        while self._used + len(vectors) > len(self._matrix):
            self._matrix, self._signs, self._positive = (
                np.concatenate([each, np.zeros_like(each)]) for each in (self._matrix, self._signs, self._positive)
            )
        rows = np.arange(self._used, self._used + len(vectors))
        # A vector that replaces another gets a new row, since views may still use the old one.
        self._matrix[rows] = added = quantised(np.stack(list(vectors.values())))
        self._signs[rows], self._positive[rows] = signs_of(added)
        self._used += len(vectors)
        for digest, row in zip(vectors, rows.tolist(), strict=True):
            if digest in self._row_of:
                self._rows[: self._seen][self._rows[: self._seen] == self._row_of[digest]] = row
            self._row_of[digest] = row
            waiting = self._waiting.pop(digest, [])
            self._rows[waiting] = row
            self._waits[waiting] = False

    def view(self, table: Table) -> DenseView:
        """Return the vectors of the documents of a table that `is_of` accepts, the same object for the same state.

        Cost:
            O(documents) for a copy, and O(new documents).
        """
        state = (self._used, table.count)
        if self._latest is not None and self._latest[0] == state:
            return self._latest[1]
        while len(self._rows) < table.count:
            self._rows = np.concatenate([self._rows, np.full_like(self._rows, NONE)])
            self._waits = np.concatenate([self._waits, np.zeros_like(self._waits)])
        for number in range(self._seen, table.count):
            digest = table.rows.text(number)
            row = self._row_of.get(digest, NONE)
            self._rows[number] = row
            if row == NONE and digest:
                self._waiting.setdefault(digest, []).append(number)
                self._waits[number] = True
        self._seen = max(self._seen, table.count)
        view = self._view(self._rows[: table.count].copy(), self._waits[: table.count].copy())
        self._latest = state, view
        return view

    def view_of(self, table: Table) -> DenseView:
        """Return the vectors of the documents of any table. What was looked up is kept with the rows of that table.

        Cost:
            O(documents), the first time after vectors were added; then O(1).
        """
        state = (self._identity, self._used)
        kept = table.rows.kept.get("vectors")
        if kept is None or kept[0] != state or len(kept[1]) < table.count:
            texts = map(table.rows.text, range(table.count))
            found = (self._row_of.get(text, NONE) for text in texts)
            kept = table.rows.kept["vectors"] = (state, np.fromiter(found, dtype=np.int64, count=table.count))
        return self._view(kept[1][: table.count])

    def _view(self, rows: Ints, waits: Flags | None = None) -> DenseView:
        used = self._used
        return DenseView(self._matrix[:used], rows, None, (self._signs[:used], self._positive[:used]), waits)

    def __len__(self) -> int:
        return len(self._row_of)
