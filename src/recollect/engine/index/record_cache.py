"""Byte-bounded, approximately LRU caches of decoded records, two beside each index.

It is bounded by bytes because thousands of indexes may be open. What was added or used last is in the young half. When
that is full it becomes the old half, and the entries of the former old half are evicted: about the least recently used
first, without keeping an order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Generic, TypeVar

from recollect.indexes.documents.row_data import Rows
from recollect.records.record import Record

V = TypeVar("V")
#: Size limit of the cache and of one value in it, in bytes.
MOST_BYTES, MOST_OF_ONE = 512 * 1024, 64 * 1024


class RecordCache(Generic[V]):
    """Values by document number, within `MOST_BYTES`. Safe for use by several threads.

    The caller states the size of each value.
    """

    def __init__(self) -> None:
        self._young, self._old = _Half[V](), _Half[V]()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._young.values) + len(self._old.values)

    @property
    def nbytes(self) -> int:
        """The size of all values."""
        return self._young.nbytes + self._old.nbytes

    def known(self, numbers: Iterable[int]) -> dict[int, V]:
        """Return the cached values among some document numbers."""
        out = {}
        with self._lock:
            for number in numbers:
                entry = self._young.values.get(number)
                if entry is None and (entry := self._old.take(number)) is not None:
                    self._put(number, entry)
                if entry is not None:
                    out[number] = entry[0]
        return out

    def keep(self, entries: Iterable[tuple[int, V, int]]) -> None:
        """Cache values: each with its number and its size in bytes."""
        with self._lock:
            for number, value, nbytes in entries:
                if nbytes <= MOST_OF_ONE:
                    self._young.take(number)
                    self._old.take(number)
                    self._put(number, (value, nbytes))

    def _put(self, number: int, entry: tuple[V, int]) -> None:
        if self._young.nbytes + entry[1] > MOST_BYTES // 2:
            self._young, self._old = _Half[V](), self._young
        self._young.values[number] = entry
        self._young.nbytes += entry[1]


class _Half(Generic[V]):
    """Values with the size of each, and the size of all."""

    __slots__ = ("nbytes", "values")

    def __init__(self) -> None:
        self.values: dict[int, tuple[V, int]] = {}
        self.nbytes = 0

    def take(self, number: int) -> tuple[V, int] | None:
        """Remove and return a value with its size; None if it is not there."""
        entry = self.values.pop(number, None)
        if entry is not None:
            self.nbytes -= entry[1]
        return entry


def cache_of(rows: Rows, standing: bool = False) -> RecordCache[Record]:
    """Return the cache that belongs to the rows of an index, or that of its records with standing tags.

    The latter are few and in most answers, so they have a cache from which others cannot evict them.
    """
    name = "standing records" if standing else "records"
    found: RecordCache[Record] | None = rows.kept.get(name)
    return rows.kept.setdefault(name, RecordCache()) if found is None else found
