"""The memory of a server: opened when it is first needed. The store is created by the first write, and reads as empty
until then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from recollect import Memory
from recollect import open as open_memory
from recollect.errors import ClosedError, RecollectError, StoreMissingError, StoreReplacedError, UnsupportedError
from recollect.wire.nodes import IN_MEMORY


class Opener(Protocol):
    """Opens the memory."""

    def __call__(self, *, create: bool, read_only: bool) -> Memory:
        """Open the memory.

        Raises:
            StoreMissingError: There is no store, and `create` is false.
        """


class ServedMemory:
    """The memory of a server. Thread-safe.

    Attributes:
        read_only: Whether it is only read.

    Args:
        opener: Opens the memory.
        read_only: Whether it is only read.
        view: What of an opened memory is served; default: all of it.
    """

    def __init__(
        self, opener: Opener, *, read_only: bool = False, view: Callable[[Memory], Memory] = lambda memory: memory
    ) -> None:
        self.read_only = read_only
        self._opener = opener
        self._view = view
        self._lock = threading.RLock()
        self._opened: Memory | None = None  # closed at the end
        self._memory: Memory | None = None  # the view of it
        self._empty: Memory | None = None
        self._on_open: list[Callable[[Memory], object]] = []

    @property
    def is_open(self) -> bool:
        """True if there is a store, and it is open."""
        return self._memory is not None

    def reading(self) -> Memory:
        """Return the memory for reading: an empty one while there is no store."""
        with self._lock:
            if self._memory is not None:
                return self._memory
            try:
                return self._open(create=False)
            except StoreMissingError:
                if self._empty is None:
                    self._empty = self._view(open_memory(IN_MEMORY, embedder="none"))
                return self._empty

    def check(self) -> None:
        """Open the store, if there is one, so that a wrong path is an error now and not of the first write.

        Raises:
            RecollectError: There is a store that cannot be opened, or its folder does not exist.
        """
        with self._lock:
            try:
                self._open(create=False)
            except StoreMissingError as error:
                if error.args[1]:  # the folder
                    raise

    def check_shared(self) -> None:
        """Raise UnsupportedError if other processes cannot open the store."""
        if self._opened is not None and self._opened._executor.location == IN_MEMORY:
            raise UnsupportedError("--workers", "each worker would have a memory of its own: name a file with --db")

    def writing(self) -> Memory:
        """Return the memory for writing, and create the store if there is none."""
        with self._lock:
            return self._memory if self._memory is not None else self._open(create=True)

    def on_open(self, callback: Callable[[Memory], object]) -> None:
        """Call a function with the memory as soon as there is a store, now or when it is opened (again)."""
        with self._lock:
            self._on_open.append(callback)
            try:
                memory = self._memory or self._open(create=False, notify=False)
            except StoreMissingError:
                return
            callback(memory)

    def failed(self, error: RecollectError) -> bool:
        """Note an error of a call, and return whether the store was replaced or deleted. Another call uses the new one.

        The memory is closed only if it is the one that failed: another thread may have opened the new one already.
        """
        if not isinstance(error, (StoreReplacedError, ClosedError)):
            return False
        with self._lock:
            memory, opened = self._memory, self._opened
        if memory is not None:
            try:
                memory.changes(limit=1)
            except (StoreReplacedError, ClosedError):
                with self._lock:
                    if self._opened is opened:
                        self._opened = self._memory = None
                if opened is not None:
                    opened.close()
        return True

    def close(self) -> None:
        """Close the memory. The next call opens it again."""
        with self._lock:
            opened, self._opened, self._memory = self._opened, None, None
        if opened is not None:
            opened.close()

    def _open(self, *, create: bool, notify: bool = True) -> Memory:
        self._opened = self._opener(create=create and not self.read_only, read_only=self.read_only)
        self._memory = self._view(self._opened)
        if notify:
            for callback in self._on_open:
                callback(self._memory)
        return self._memory
