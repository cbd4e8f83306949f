"""The SDR index: the rows that share most with a question's bits, exactly, without reading the others.

SDRs (`sdr.encoding`) are kept by number, which the caller chooses: that of a record, say. Two rankings of them:

`overlapping`, by the rarity of what is shared. With N rows, df(b) of which have bit b, and |s| bits of a row s:

    w(b)     = max(1, floor(ln((2N + 2) / (2 df(b) + 1)) 2^14))          rare bits say more
    share    = sum of w over the bits that both have / sum of w over the bits of the question
    score    = share 1024 / (1024 + max(0, |s| - |q|))                   rounded down, with SHARE_BITS of fraction

It lies in (0, 1] and is 1 for the very same bits, and only for these; what shares no bit is no hit. Length counts
little: a text that has the whole question stays above one of the question's own length that has half of it until it is
1024 bits longer.

`nearest`, by Hamming distance: 1 - hamming / 4096 of every row, so that even what shares nothing has a score near 1.
It favours short texts; it is there for those who want the score of sdr-memory.

Equal scores rank by the lowest number. Everything is integer arithmetic, so NumPy and compiled kernels, and an index
that grew in whatever order, give the same bits. Not for several threads at once: who shares an index takes turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import Flags, Ints
from recollect.indexes.fixed_point import BITS as LOG_BITS
from recollect.indexes.fixed_point import SHARE_BITS, log_ratio
from recollect.indexes.sdr.choose import serving
from recollect.indexes.sdr.encoding import BITS, Sdrs, encoded_all
from recollect.indexes.sdr.rows import Growing, based, joined, rows_of
from recollect.indexes.sdr.types import FACTOR_BITS, Found, Query, SdrKernels

#: Weights have so many bits of fraction: those of 4096 bits among less than 2^31 rows add up to less than 2^31.
_WEIGHT_BITS = 14
#: A row that is so many bits longer than the question has half of the score (measured: docs/decisions.md).
_HALF = 1024
#: The weight of the question is inverted with so many bits above those of a share.
_INVERSE_BITS = 31
#: The tail is merged when it has so many rows and one for so many of the base; so are removals.
_TAIL, _TAIL_SHARE, _DEAD_SHARE = 1024, 32, 4
#: The commonest bits of a question, up to such a part of its weight, are looked at last.
_COMMON_SHARE = 1000000
#: The factors for length, by how many bits a row is longer than the question, from 4096 fewer on.
_FACTORS: Ints = (_HALF << FACTOR_BITS) // (_HALF + np.maximum(np.arange(-BITS, BITS + 1), 0))
_NO_FACTORS: Ints = np.full(BITS + 1, 1 << FACTOR_BITS, dtype=np.int64)
#: What one bit of Hamming distance is of a score.
_ONE_BIT = (1 << SHARE_BITS) // BITS


class SdrHit(NamedTuple):
    """A row that was found.

    score    with SHARE_BITS of fraction
    hamming  how many bits differ from the question's
    """

    number: int
    score: int
    hamming: int


class SdrIndex:
    """SDRs by number.

    Cost: adding and removing some microseconds, and now and then (each time it has grown by a thirtieth) a merge of
    all. A question costs the rows that have its bits, two for each nanosecond, and a glance at the others' sums.
    """

    def __init__(self, kernels: SdrKernels | None = None) -> None:
        self._kernels = kernels  # None for those that serve at the time
        self._base = based(rows_of([], encoded_all([])))
        self._tail = Growing()
        self._dead = 0  # rows of the base
        self._having = np.zeros(BITS, dtype=np.int64)
        self._weights = np.zeros(BITS, dtype=np.int32)  # 0 where it is not known yet

    def __len__(self) -> int:
        return len(self._base.sizes) - self._dead + len(self._tail)

    def __contains__(self, number: int) -> bool:
        return self._place(number) is not None or number in self._tail

    def add(self, number: int, bits: Iterable[int]) -> None:
        """Add an SDR, its bits in any order. Raises: ValueError as `add_all`."""
        row = sorted(set(bits))
        if row and not 0 <= row[0] <= row[-1] < BITS:
            raise ValueError(f"the bits of an SDR lie in [0, {BITS}); nothing was added")
        self.add_all([number], Sdrs(np.array(row, dtype=np.uint16), np.array([0, len(row)], dtype=np.int64)))

    def add_all(self, numbers: Sequence[int], sdrs: Sdrs) -> None:
        """Add SDRs under these numbers.

        Raises: ValueError where a number is there already or comes twice, where there is not one for each SDR, or
                where the bits of one do not rise below 4096; nothing was added then.
        """
        rows = rows_of(numbers, sdrs)
        if self._in_base(rows.numbers).any() or any(map(self._tail.__contains__, numbers)):
            raise ValueError("there is an SDR under one of these numbers; nothing was added: remove it first")
        self._tail.extend(rows)
        self._count(rows.bits, 1)
        self._merge_if_due()

    def remove(self, number: int) -> None:
        """Take an SDR away. Raises: KeyError where there is none under this number."""
        row = self.bits(number)
        place = self._place(number)
        if place is None:
            self._tail.remove(number)
        else:
            self._base.rows.alive[place] = False
            self._dead += 1
        self._count(row, -1)
        self._merge_if_due()

    def bits(self, number: int) -> NDArray[np.uint16]:
        """The active bits of a row, rising. Raises: KeyError where there is none under this number."""
        place = self._place(number)
        if place is None:
            return self._tail.row(number)
        rows = self._base.rows
        return rows.bits[rows.offsets[place] : rows.offsets[place + 1]]

    def overlapping(self, bits: Iterable[int], wanted: int) -> list[SdrHit]:
        """The best `wanted` rows by overlap, best first: see above."""
        query = _bits(bits)
        if not len(query):
            return []
        weights = np.zeros(BITS, dtype=np.int32)
        weights[query] = self._weighed(query)
        inverse = -((-1 << SHARE_BITS + _INVERSE_BITS) // int(weights.sum()))  # rounded up: the same bits give 1
        factors = _FACTORS[BITS - len(query) : 2 * BITS + 1 - len(query)]
        return self._hits(Query(query, weights, 0, inverse, _INVERSE_BITS, factors, 0, 1), wanted, 1)

    def nearest(self, bits: Iterable[int], wanted: int) -> list[SdrHit]:
        """The best `wanted` rows by Hamming distance, best first."""
        query = _bits(bits)
        weights = np.zeros(BITS, dtype=np.int32)
        weights[query] = 2
        # 4096 - (|q| + |s| - 2 |q and s|)
        add = BITS - len(query)
        return self._hits(Query(query, weights, 1, 1, 0, _NO_FACTORS, add, 0), wanted, _ONE_BIT)

    def _hits(self, query: Query, wanted: int, unit: int) -> list[SdrHit]:
        kernels = self._kernels or serving(int(self._having[query.bits].sum()))
        found: Found = kernels.best(self._base, self._tail.rows(), query, wanted)
        order = np.lexsort((found.numbers, -found.values))
        rows = zip(*(column[order].tolist() for column in found), strict=True)
        return [SdrHit(number, value * unit, hamming) for number, value, hamming in rows]

    def _weighed(self, query: Ints) -> NDArray[np.int32]:
        """The weights of bits, which are kept until the rows change."""
        weights = self._weights
        for bit in query[weights[query] == 0].tolist():
            rarity = log_ratio(2 * len(self) + 2, 2 * int(self._having[bit]) + 1)
            weights[bit] = max(rarity >> LOG_BITS - _WEIGHT_BITS, 1)
        return weights[query]

    def _count(self, bits: NDArray[np.uint16], step: int) -> None:
        self._having += step * np.bincount(bits, minlength=BITS)
        self._weights[:] = 0

    def _in_base(self, numbers: Ints) -> Flags:
        """Which numbers are those of live rows of the base."""
        rows = self._base.rows
        at = rows.numbers.searchsorted(numbers)
        out = at < len(rows.numbers)
        out[out] = rows.alive[at[out]] & (rows.numbers[at[out]] == numbers[out])
        return out

    def _place(self, number: int) -> int | None:
        """The place of a live row in the base."""
        rows = self._base.rows
        at = int(rows.numbers.searchsorted(number))
        return at if at < len(rows.numbers) and rows.numbers[at] == number and rows.alive[at] else None

    def _merge_if_due(self) -> None:
        count = len(self._base.sizes)
        if self._tail.held > _TAIL + count // _TAIL_SHARE or self._dead > _TAIL + count // _DEAD_SHARE:
            self._base = based(joined(self._base.rows, self._tail.rows()))
            self._tail, self._dead = Growing(), 0


def _bits(bits: Iterable[int]) -> Ints:
    """A question's bits. Raises: ValueError for what is no bit of an SDR."""
    out = np.array(sorted(set(bits)), dtype=np.int64)
    if len(out) and not 0 <= out[0] <= out[-1] < BITS:
        raise ValueError(f"the bits of a question lie in [0, {BITS})")
    return out
