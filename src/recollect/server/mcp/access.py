"""What a client may reach: a memory, opened when it is first needed, and the settings of the server.

A store that does not exist is created by the first write. Until then it reads as empty.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from recollect import Memory
from recollect import open as open_memory
from recollect.errors import ClosedError, RecollectError, StoreMissingError, StoreReplacedError
from recollect.server.mcp.graph import SharedGraph

#: Default maximum size of what a tool of the reference server returns, in tokens.
GRAPH_TOKENS = 20_000


class Opener(Protocol):
    """Opens the memory."""

    def __call__(self, *, create: bool, read_only: bool) -> Memory:
        """Open the memory.

        Raises:
            StoreMissingError: There is no store, and `create` is false.
        """
        ...


class Access:
    """The memory of a server and its settings. Thread-safe.

    Args:
        opener: Opens the memory.
        user: The user whose records a client can reach; None: all records of the namespace.
        read_only: Whether clients can only read.
        graph_tokens: Maximum size of a graph that a tool returns, in tokens.
    """

    def __init__(
        self, opener: Opener, *, user: str | None = None, read_only: bool = False, graph_tokens: int = GRAPH_TOKENS
    ) -> None:
        self.user = user
        self.read_only = read_only
        self.graph_tokens = graph_tokens
        self.graph = SharedGraph(self.reading)
        self._opener = opener
        self._lock = threading.RLock()
        self._opened: Memory | None = None  # closed at the end
        self._memory: Memory | None = None  # the same, or a scope of it
        self._empty: Memory | None = None
        self._on_open: list[Callable[[Memory], object]] = []

    def reading(self) -> Memory:
        """Return the memory for reading: an empty one while there is no store."""
        with self._lock:
            if self._memory is not None:
                return self._memory
            try:
                return self._open(create=False)
            except StoreMissingError:
                if self._empty is None:
                    self._empty = self._scoped(open_memory(":memory:", embedder="none"))
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
        self._memory = self._scoped(self._opened)
        if notify:
            for callback in self._on_open:
                callback(self._memory)
        return self._memory

    def _scoped(self, memory: Memory) -> Memory:
        return memory if self.user is None else memory.scoped(user=self.user)
