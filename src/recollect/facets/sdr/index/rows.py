"""Rows of the SDR index: the tail, to which they are added, and the base, which is built from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.facets.sdr.index.encoding import BITS, SparseRows
from recollect.facets.sdr.index.types import SdrBase, SdrRows
from recollect.indexes.documents.columns import NONE, Ints

#: A bit that more than one in this many rows have is stored as a column of flags. At this share, flags take twice the
#: space of postings and are read about twice as fast (measured); for a bit of half of all rows they take half the
#: space.
_COMMON_SHARE = 8

T = TypeVar("T", bound=np.generic)


def rows_of(numbers: Sequence[int] | Ints, sdrs: SparseRows) -> SdrRows:
    """Return SDRs with their numbers.

    Raises:
        ValueError: A number is repeated, the numbers and SDRs differ in count, or the bits of an SDR are not strictly
            ascending and below 4096.
    """
    of = np.array(numbers, dtype=np.int64)
    if len(of) != len(sdrs.offsets) - 1 or len(np.unique(of)) != len(of):
        raise ValueError("each SDR needs a different number; nothing was added")
    rising = np.diff(sdrs.bits.astype(np.int64), append=-1) > 0
    rising[sdrs.offsets[1:][np.diff(sdrs.offsets) > 0] - 1] = True  # the last bit of a row has no successor
    if not rising.all() or (len(sdrs.bits) and int(sdrs.bits.max()) >= BITS):
        raise ValueError(f"the bits of an SDR must be ascending and below {BITS}; nothing was added")
    return SdrRows(of, sdrs.bits, sdrs.offsets, np.ones(len(of), dtype=np.bool_))


def joined(one: SdrRows, other: SdrRows) -> SdrRows:
    """Return the live rows of both, sorted by number."""
    numbers = np.concatenate([one.numbers, other.numbers])
    bits = np.concatenate([one.bits, other.bits])
    offsets = np.concatenate([one.offsets, other.offsets[1:] + one.offsets[-1]])
    order = np.flatnonzero(np.concatenate([one.alive, other.alive]))
    order = order[np.argsort(numbers[order], kind="stable")]
    if len(order) < len(numbers) or (np.diff(order) < 0).any():
        sizes = np.diff(offsets)[order]
        begins, ends = offsets[order], np.cumsum(sizes)
        bits = bits[np.repeat(begins - (ends - sizes), sizes) + np.arange(int(sizes.sum()))]
        numbers, offsets = numbers[order], np.concatenate([[0], ends]).astype(np.int64)
    return SdrRows(numbers, bits, offsets, np.ones(len(order), dtype=np.bool_))


def based(rows: SdrRows) -> SdrBase:
    """Build the base of rows that are all live and sorted by number.

    Cost:
        One radix sort of their bits.
    """
    sizes = np.diff(rows.offsets)
    having = np.bincount(rows.bits, minlength=BITS)
    frequent = np.flatnonzero(having * _COMMON_SHARE > len(sizes))
    common = np.full(BITS, NONE, dtype=np.int64)
    common[frequent] = np.arange(len(frequent))
    owners = np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes)
    owners = owners[np.argsort(rows.bits, kind="stable")]
    ends = np.cumsum(having)
    flags = np.zeros((len(frequent), len(sizes)), dtype=np.int8)
    for row, bit in enumerate(frequent.tolist()):
        flags[row, owners[ends[bit] - having[bit] : ends[bit]]] = -1
    listed = np.where(common == NONE, having, 0)
    postings = owners[np.repeat(common == NONE, having)]
    starts = np.concatenate([[0], np.cumsum(listed)]).astype(np.int64)
    return SdrBase(rows, sizes.astype(np.uint16), postings, starts, common, flags)


class Growing:
    """Rows in columns that grow at their ends."""

    def __init__(self) -> None:
        self._indexes: dict[int, int] = {}  # of the live rows, by number
        self._rows, self._bits = 0, 0
        self._numbers: Ints = np.zeros(8, dtype=np.int64)
        self._alive = np.zeros(8, dtype=np.bool_)
        self._offsets: Ints = np.zeros(9, dtype=np.int64)
        self._column = np.zeros(512, dtype=np.uint16)

    def __len__(self) -> int:
        return len(self._indexes)

    def __contains__(self, number: int) -> bool:
        return number in self._indexes

    @property
    def row_count(self) -> int:
        """Number of rows, removed ones included."""
        return self._rows

    def rows(self) -> SdrRows:
        """Return the current rows. Later additions and removals may be visible in them."""
        end = self._rows
        return SdrRows(self._numbers[:end], self._column[: self._bits], self._offsets[: end + 1], self._alive[:end])

    def row(self, number: int) -> NDArray[np.uint16]:
        """Return the bits of a live row.

        Raises:
            KeyError: No live row has this number.
        """
        index = self._indexes[number]
        return self._column[self._offsets[index] : self._offsets[index + 1]]

    def extend(self, rows: SdrRows) -> None:
        """Add rows with new numbers."""
        end, bits = self._rows + len(rows.numbers), self._bits + len(rows.bits)
        self._numbers, self._alive = _room(self._numbers, end), _room(self._alive, end)
        self._offsets, self._column = _room(self._offsets, end + 1), _room(self._column, bits)
        self._numbers[self._rows : end] = rows.numbers
        self._alive[self._rows : end] = True
        self._offsets[self._rows + 1 : end + 1] = rows.offsets[1:] + self._bits
        self._column[self._bits : bits] = rows.bits
        self._indexes.update(zip(rows.numbers.tolist(), range(self._rows, end), strict=True))
        self._rows, self._bits = end, bits

    def remove(self, number: int) -> None:
        """Remove a row.

        Raises:
            KeyError: No live row has this number.
        """
        self._alive[self._indexes.pop(number)] = False


def _room(column: NDArray[T], size: int) -> NDArray[T]:
    """Return the column, or a longer one that begins with it and has at least twice the length."""
    if size <= len(column):
        return column
    longer: NDArray[Any] = np.zeros(max(size, 2 * len(column)), dtype=column.dtype)
    longer[: len(column)] = column
    return longer
