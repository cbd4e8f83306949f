"""Rows of the SDR index: the tail, where they gather, and the base that is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import NONE, Ints
from recollect.indexes.sdr.encoding import BITS, Sdrs
from recollect.indexes.sdr.types import Base, Rows

#: A bit that more than one of so many rows have is a column of flags. It takes twice the room of postings there, and
#: is read about twice as fast (measured); of what half of all rows have, it takes half the room.
_COMMON_SHARE = 8

T = TypeVar("T", bound=np.generic)


def rows_of(numbers: Sequence[int] | Ints, sdrs: Sdrs) -> Rows:
    """SDRs under numbers.

    Raises: ValueError where a number comes twice, where there is not one for each SDR, or where the bits of one do not
            rise below 4096.
    """
    of = np.array(numbers, dtype=np.int64)
    if len(of) != len(sdrs.offsets) - 1 or len(np.unique(of)) != len(of):
        raise ValueError("each SDR wants a number of its own; nothing was added")
    rising = np.diff(sdrs.bits.astype(np.int64), append=-1) > 0
    rising[sdrs.offsets[1:][np.diff(sdrs.offsets) > 0] - 1] = True  # the last of a row has nothing after it
    if not rising.all() or (len(sdrs.bits) and int(sdrs.bits.max()) >= BITS):
        raise ValueError(f"the bits of an SDR rise and lie below {BITS}; nothing was added")
    return Rows(of, sdrs.bits, sdrs.offsets, np.ones(len(of), dtype=np.bool_))


def joined(one: Rows, other: Rows) -> Rows:
    """The live rows of both, by their numbers."""
    numbers = np.concatenate([one.numbers, other.numbers])
    bits = np.concatenate([one.bits, other.bits])
    offsets = np.concatenate([one.offsets, other.offsets[1:] + one.offsets[-1]])
    places = np.flatnonzero(np.concatenate([one.alive, other.alive]))
    places = places[np.argsort(numbers[places], kind="stable")]
    if len(places) < len(numbers) or (np.diff(places) < 0).any():
        sizes = np.diff(offsets)[places]
        begins, ends = offsets[places], np.cumsum(sizes)
        bits = bits[np.repeat(begins - (ends - sizes), sizes) + np.arange(int(sizes.sum()))]
        numbers, offsets = numbers[places], np.concatenate([[0], ends]).astype(np.int64)
    return Rows(numbers, bits, offsets, np.ones(len(places), dtype=np.bool_))


def based(rows: Rows) -> Base:
    """The base of rows that are all live and stand by their numbers. Cost: one sort of their bits, by radix."""
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
    return Base(rows, sizes.astype(np.uint16), postings, starts, common, flags)


class Growing:
    """Rows that gather, in columns that grow at their ends."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}  # of the live ones, by number
        self._rows, self._bits = 0, 0
        self._numbers: Ints = np.zeros(8, dtype=np.int64)
        self._alive = np.zeros(8, dtype=np.bool_)
        self._offsets: Ints = np.zeros(9, dtype=np.int64)
        self._column = np.zeros(512, dtype=np.uint16)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, number: int) -> bool:
        return number in self._places

    @property
    def held(self) -> int:
        """How many rows there are, those that were removed too."""
        return self._rows

    def rows(self) -> Rows:
        """The rows so far. What comes or goes later may be seen in it."""
        end = self._rows
        return Rows(self._numbers[:end], self._column[: self._bits], self._offsets[: end + 1], self._alive[:end])

    def row(self, number: int) -> NDArray[np.uint16]:
        """The bits of a live row. Raises: KeyError where there is none under this number."""
        place = self._places[number]
        return self._column[self._offsets[place] : self._offsets[place + 1]]

    def extend(self, rows: Rows) -> None:
        """Add rows under numbers that are not there."""
        end, bits = self._rows + len(rows.numbers), self._bits + len(rows.bits)
        self._numbers, self._alive = _room(self._numbers, end), _room(self._alive, end)
        self._offsets, self._column = _room(self._offsets, end + 1), _room(self._column, bits)
        self._numbers[self._rows : end] = rows.numbers
        self._alive[self._rows : end] = True
        self._offsets[self._rows + 1 : end + 1] = rows.offsets[1:] + self._bits
        self._column[self._bits : bits] = rows.bits
        self._places.update(zip(rows.numbers.tolist(), range(self._rows, end), strict=True))
        self._rows, self._bits = end, bits

    def remove(self, number: int) -> None:
        """Take a row away. Raises: KeyError where there is none under this number."""
        self._alive[self._places.pop(number)] = False


def _room(column: NDArray[T], wanted: int) -> NDArray[T]:
    """The column, or one at least twice as long that begins with it."""
    if wanted <= len(column):
        return column
    longer: NDArray[Any] = np.zeros(max(wanted, 2 * len(column)), dtype=column.dtype)
    longer[: len(column)] = column
    return longer
