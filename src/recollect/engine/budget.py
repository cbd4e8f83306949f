"""A cache of values within a memory budget: beyond it, the least recently used values are evicted.

Values may grow while they are cached: the user of the cache says when a value must be counted again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar


class SizedValue(Protocol):
    """A value that knows its size."""

    @property
    def nbytes(self) -> int:
        """The memory that the value uses, in bytes."""
        ...


K = TypeVar("K")
V = TypeVar("V", bound=SizedValue)


class Budget(Generic[K, V]):
    """Values by key. Safe for use by several threads.

    Args:
        budget_bytes: Memory limit of all values together. The most recently used value stays, whatever its size.

    Attributes:
        nbytes: The size of all values, each as it was last counted.
        evicted: How many values were evicted.
    """

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        #: Each value with its counted size; the most recently used one is last.
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.nbytes = 0
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys, the least recently used first."""
        return iter(tuple(self._entries))

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def get(self, key: K) -> V | None:
        """Return the value of a key, from now on the most recently used one; None if there is none."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def peek(self, key: K) -> V | None:
        """Return the value of a key without using it; None if there is none."""
        return self._entries.get(key, (None, 0))[0]

    def get_or_put(self, key: K, create: Callable[[], V]) -> V:
        """Return the value of a key, from now on the most recently used one; a new one of no size if there is none."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                value = create()
                self._entries[key] = entry = value, 0
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: K, value: V) -> None:
        """Set the value of a key as the most recently used one, and evict others until all are within the budget."""
        nbytes = value.nbytes
        with self._lock:
            _, counted = self._entries.get(key, (None, 0))
            self._entries[key] = value, nbytes
            self.nbytes += nbytes - counted
            self._entries.move_to_end(key)
            self._evict()

    def count(self, key: K, value: V) -> None:
        """Update the size of a value that has changed, unless it was evicted or replaced, and evict others as `put`."""
        nbytes = value.nbytes
        with self._lock:
            cached, counted = self._entries.get(key, (None, 0))
            if cached is value:
                self._entries[key] = value, nbytes
                self.nbytes += nbytes - counted
                self._evict()

    def _evict(self) -> None:
        while self.nbytes > self._budget_bytes and len(self._entries) > 1:
            _, (_, nbytes) = self._entries.popitem(last=False)
            self.nbytes -= nbytes
            self.evicted += 1

    def pop(self, key: K) -> V | None:
        """Remove the value of a key and return it; None if there is none."""
        with self._lock:
            value, counted = self._entries.pop(key, (None, 0))
            self.nbytes -= counted
            return value

    def drop(self, key: K, value: V | None = None) -> None:
        """Remove the value of a key, if there is one; with `value`, only if it is this one."""
        with self._lock:
            cached, counted = self._entries.get(key, (None, 0))
            if cached is not None and (value is None or cached is value):
                del self._entries[key]
                self.nbytes -= counted

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._entries.clear()
            self.nbytes = 0
