"""The index of sparse distributed representations (SDRs): an exact search for the rows closest to a question.

SDRs (`encoding`) are stored under numbers that the caller chooses, such as the number of a record. There are two
rankings.

`overlapping` ranks by the rarity of the shared bits. With N rows, df(b) of which have bit b, |s| bits in a row s, and
|q| bits in the question:

    w(b)     = max(1, floor(ln((2N + 2) / (2 df(b) + 1)) 2^14))          rare bits count more
    share    = sum of w over the common bits / sum of w over the bits of the question
    score    = share 1024 / (1024 + max(0, |s| - |q|))                   rounded down, with SHARE_BITS of fraction

The score is in (0, 1], and 1 only for identical bits; rows without a common bit are not hits. Length has little effect:
a long text that contains the whole question scores above a short one that contains half of it, unless it is 1024 bits
longer.

`nearest` ranks by Hamming distance: 1 - hamming / 4096 of every row, so even rows without a common bit score near 1. It
favours short texts, and is there for callers that want that distance.

Equal scores are ranked by the lowest number. All arithmetic is in integers, so NumPy and compiled kernels give the same
bits, in whatever order the index was built. Not thread-safe: callers that share an index must synchronise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.facets.sdr.index.encoding import BITS, SparseRows, encoded_all
from recollect.facets.sdr.index.rows import Growing, based, joined, rows_of
from recollect.facets.sdr.index.types import FACTOR_BITS, BestRows, Query, SdrKernels
from recollect.indexes.documents.columns import Flags, Ints
from recollect.indexes.fixed_point import BITS as LOG_BITS
from recollect.indexes.fixed_point import SHARE_BITS, log_ratio
from recollect.indexes.kernels.choose import uses_native

#: Bits of fraction of weights: the weights of 4096 bits among fewer than 2^31 rows add up to less than 2^31.
_WEIGHT_BITS = 14
#: A row that is this many bits longer than the question has half the score (measured: docs/decisions.md).
_HALF = 1024
#: Additional bits of the inverse of the question's weight, beyond those of a share.
_INVERSE_BITS = 31
#: The tail is merged when it has more than _TAIL rows plus one per _TAIL_SHARE rows of the base; removals likewise with
#: _DEAD_SHARE.
_TAIL, _TAIL_SHARE, _DEAD_SHARE = 1024, 32, 4
#: The commonest bits of a question, up to such a part of its weight, are looked at last.
_COMMON_SHARE = 1000000
#: The factors for length, by the difference in bits between a row and the question, starting at -4096.
_FACTORS: Ints = (_HALF << FACTOR_BITS) // (_HALF + np.maximum(np.arange(-BITS, BITS + 1), 0))
_NO_FACTORS: Ints = np.full(BITS + 1, 1 << FACTOR_BITS, dtype=np.int64)
#: The part of a score that one bit of Hamming distance accounts for.
_ONE_BIT = (1 << SHARE_BITS) // BITS


class FoundRow(NamedTuple):
    """A row that was found.

    Attributes:
        number: The number of the row.
        score: The score, with SHARE_BITS of fraction.
        hamming: The number of bits in which it differs from the question.
    """

    number: int
    score: int
    hamming: int


class SdrIndex:
    """An index of SDRs by number.

    Cost:
        Adding or removing a row takes some microseconds; each time the index has grown by a thirtieth, all rows are
        merged. A search reads the rows that have the question's bits, two per nanosecond, and scans the sums of the
        others.
    """

    def __init__(self, kernels: SdrKernels | None = None) -> None:
        self._kernels = kernels  # None: selected at each search
        self._base = based(rows_of([], encoded_all([])))
        self._tail = Growing()
        self._dead = 0  # rows of the base
        self._having = np.zeros(BITS, dtype=np.int64)
        self._weights = np.zeros(BITS, dtype=np.int32)  # 0 if not yet computed

    def __len__(self) -> int:
        return len(self._base.sizes) - self._dead + len(self._tail)

    def __contains__(self, number: int) -> bool:
        return self._base_index(number) is not None or number in self._tail

    def add(self, number: int, bits: Iterable[int]) -> None:
        """Add an SDR, its bits in any order.

        Raises:
            ValueError: As in `add_all`.
        """
        row = sorted(set(bits))
        if row and not 0 <= row[0] <= row[-1] < BITS:
            raise ValueError(f"the bits of an SDR must be in [0, {BITS}); nothing was added")
        self.add_all([number], SparseRows(np.array(row, dtype=np.uint16), np.array([0, len(row)], dtype=np.int64)))

    def add_all(self, numbers: Sequence[int], sdrs: SparseRows) -> None:
        """Add SDRs under these numbers.

        Raises:
            ValueError: A number is in use or repeated, the numbers and SDRs differ in count, or the bits of an SDR are
                not strictly ascending and below 4096. Nothing was added.
        """
        rows = rows_of(numbers, sdrs)
        if self._in_base(rows.numbers).any() or any(map(self._tail.__contains__, numbers)):
            raise ValueError("one of these numbers is in use; nothing was added: remove its SDR first")
        self._tail.extend(rows)
        self._count(rows.bits, 1)
        self._merge_if_due()

    def remove(self, number: int) -> None:
        """Remove an SDR.

        Raises:
            KeyError: No SDR has this number.
        """
        row = self.bits(number)
        index = self._base_index(number)
        if index is None:
            self._tail.remove(number)
        else:
            self._base.rows.alive[index] = False
            self._dead += 1
        self._count(row, -1)
        self._merge_if_due()

    def bits(self, number: int) -> NDArray[np.uint16]:
        """Return the active bits of a row, ascending.

        Raises:
            KeyError: No SDR has this number.
        """
        index = self._base_index(number)
        if index is None:
            return self._tail.row(number)
        rows = self._base.rows
        return rows.bits[rows.offsets[index] : rows.offsets[index + 1]]

    def overlapping(self, bits: Iterable[int], wanted: int) -> list[FoundRow]:
        """Return the best `wanted` rows by overlap, best first: see above."""
        query = _bits(bits)
        if not len(query):
            return []
        weights = np.zeros(BITS, dtype=np.int32)
        weights[query] = self._weighed(query)
        inverse = -((-1 << SHARE_BITS + _INVERSE_BITS) // int(weights.sum()))  # rounded up: identical bits give 1
        factors = _FACTORS[BITS - len(query) : 2 * BITS + 1 - len(query)]
        return self._hits(Query(query, weights, 0, inverse, _INVERSE_BITS, factors, 0, 1), wanted, 1)

    def nearest(self, bits: Iterable[int], wanted: int) -> list[FoundRow]:
        """Return the best `wanted` rows by Hamming distance, best first."""
        query = _bits(bits)
        weights = np.zeros(BITS, dtype=np.int32)
        weights[query] = 2
        # 4096 - (|q| + |s| - 2 |q and s|)
        add = BITS - len(query)
        return self._hits(Query(query, weights, 1, 1, 0, _NO_FACTORS, add, 0), wanted, _ONE_BIT)

    def _hits(self, query: Query, wanted: int, unit: int) -> list[FoundRow]:
        kernels = self._kernels or chosen()
        found: BestRows = kernels.best(self._base, self._tail.rows(), query, wanted)
        order = np.lexsort((found.numbers, -found.values))
        rows = zip(*(column[order].tolist() for column in found), strict=True)
        return [FoundRow(number, value * unit, hamming) for number, value, hamming in rows]

    def _weighed(self, query: Ints) -> NDArray[np.int32]:
        """Return the weights of bits, which are cached until the rows change."""
        weights = self._weights
        for bit in query[weights[query] == 0].tolist():
            rarity = log_ratio(2 * len(self) + 2, 2 * int(self._having[bit]) + 1)
            weights[bit] = max(rarity >> LOG_BITS - _WEIGHT_BITS, 1)
        return weights[query]

    def _count(self, bits: NDArray[np.uint16], step: int) -> None:
        self._having += step * np.bincount(bits, minlength=BITS)
        self._weights[:] = 0

    def _in_base(self, numbers: Ints) -> Flags:
        """Return which numbers are those of live rows of the base."""
        rows = self._base.rows
        at = rows.numbers.searchsorted(numbers)
        out = at < len(rows.numbers)
        out[out] = rows.alive[at[out]] & (rows.numbers[at[out]] == numbers[out])
        return out

    def _base_index(self, number: int) -> int | None:
        """Return the index of a live row in the base."""
        rows = self._base.rows
        at = int(rows.numbers.searchsorted(number))
        return at if at < len(rows.numbers) and rows.numbers[at] == number and rows.alive[at] else None

    def _merge_if_due(self) -> None:
        count = len(self._base.sizes)
        if self._tail.row_count > _TAIL + count // _TAIL_SHARE or self._dead > _TAIL + count // _DEAD_SHARE:
            self._base = based(joined(self._base.rows, self._tail.rows()))
            self._tail, self._dead = Growing(), 0


def _bits(bits: Iterable[int]) -> Ints:
    """Return a question's bits.

    Raises:
        ValueError: A bit is out of range.
    """
    out = np.array(sorted(set(bits)), dtype=np.int64)
    if len(out) and not 0 <= out[0] <= out[-1] < BITS:
        raise ValueError(f"the bits of a question must be in [0, {BITS})")
    return out


# Selection of the kernels that search SDRs, by the same rules as for words.


@cache
def chosen() -> SdrKernels:
    """Return the kernels for SDRs."""
    if uses_native():
        from recollect.facets.sdr.index import with_native as native_sdr

        return native_sdr.NativeSdr()
    from recollect.facets.sdr.index import with_numpy as numpy_sdr

    return numpy_sdr.KERNELS
