"""Connections that are kept for the next messages."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from recollect.errors import ClosedError

#: Number of connections that are kept while they are not used.
_IDLE = 16


class Closable(Protocol):
    """A connection."""

    def close(self) -> None:
        """Close it."""
        ...


C = TypeVar("C", bound=Closable)


class Pool(Generic[C]):
    """Connections that are not used. Thread-safe. A pool that is dropped without being closed leaves none open.

    Args:
        is_open: Returns whether the server has not closed an idle connection.
    """

    def __init__(self, is_open: Callable[[C], bool]) -> None:
        self._is_open = is_open
        self._idle: deque[C] = deque()
        weakref.finalize(self, _close_all, self._idle).atexit = False
        self._pid = os.getpid()
        self._closed = False
        self._lock = threading.Lock()

    def take(self) -> C | None:
        """Return a connection for the caller alone; None if there is none.

        Raises:
            ClosedError: The pool is closed.
        """
        with self._lock:
            if self._closed:
                raise ClosedError("the memory")
            if self._pid != os.getpid():  # a fork: the connections are those of the other process
                _close_all(self._idle)
                self._pid = os.getpid()
            while self._idle:
                connection = self._idle.pop()
                if self._is_open(connection):
                    return connection
                connection.close()
        return None

    def keep(self, connection: C) -> None:
        """Keep a connection for others, or close it if there is no room."""
        with self._lock:
            if not self._closed and len(self._idle) < _IDLE and self._pid == os.getpid():
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close all connections that are kept. Those in use are closed when they come back."""
        with self._lock:
            self._closed = True
            _close_all(self._idle)


def _close_all(idle: deque[C]) -> None:
    while idle:
        idle.pop().close()
