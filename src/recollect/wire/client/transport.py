"""The transport of a client's memory: it exchanges messages with a server and tries again where that is safe.

A message that was not sent is always sent again, on a new connection. One that was sent is repeated only if its effect
is the same: it only reads, or has an idempotency key. Of any other the outcome is unknown, and the error says so.
"""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from recollect.engine.results import ExportedPart
from recollect.errors import (
    ClosedError,
    CommitInDoubtError,
    ServerBusyError,
    ServerError,
    StoreError,
    StoreIOError,
    StoreServerError,
    UnsupportedError,
)
from recollect.ledger.parts import RECORDS
from recollect.records.record import Record
from recollect.wire import Place

#: Number of connections that are kept while they are not used.
_IDLE = 16


class Closable(Protocol):
    """A connection."""

    def close(self) -> None:
        """Close it."""


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
        """Return a connection for the caller only; None if there is none.

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


T = TypeVar("T")
#: The first pause before another attempt, in seconds, which doubles, and the longest.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 5.0


class LostError(Exception):
    """A connection failed.

    Args:
        detail: What happened.
        sent: Whether the server may have got the message.
    """

    def __init__(self, detail: str, *, sent: bool) -> None:
        super().__init__(detail)
        self.sent = sent


@dataclass(frozen=True, slots=True)
class RemoteExport:
    """A snapshot of records that a server keeps open while they are read."""

    root: str
    count: int
    records: Iterator[Record]
    parts: tuple[ExportedPart, ...] = ()


def stated_parts(head: Mapping[str, Any], parts: Collection[str] | None) -> list[dict[str, Any]]:
    """Return the name, the root and the count of each other part in the head of an export.

    Raises:
        UnsupportedError: The server does not know of parts, and other parts than the records are to be exported.
    """
    if "parts" not in head and (parts is None or {*parts} != {RECORDS}):
        raise UnsupportedError(
            "exporting what facets keep", 'the server is of an earlier release: pass parts=["records"]'
        )
    found: list[dict[str, Any]] = head.get("parts", [])
    return found


class Channel(Protocol):
    """A connection that only one batch uses.

    Attributes:
        seq: The token of its commit (`wire.seen`), once it is committed; "" if the server gives none.
    """

    seq: str

    def exchange(self, message: dict[str, Any]) -> Any:
        """Send a message in the batch and return the JSON form of its answer."""


class Transport(Protocol):
    """Exchanges messages with a server. Thread-safe.

    Attributes:
        address: The address of the server, without secrets.
    """

    address: str

    def exchange(self, message: dict[str, Any], timeout_s: float) -> Any:
        """Send a request and return its answer as parsed JSON.

        What the message states in "seen" (`wire.seen`) is sent to servers that take it; their answers have "seq".

        Raises:
            LostError: The connection failed.
        """

    def batch(self, place: Place, expect_head: int | None) -> AbstractContextManager[Channel]:
        """Open a batch on a connection of its own. It is committed when the block ends, and undone if the block raises.

        Raises:
            LostError: The connection failed.
        """

    def export(self, place: Place, parts: Collection[str] | None, seen: str) -> AbstractContextManager[RemoteExport]:
        """Open a snapshot of parts of a memory; None: of all. It is no older than what was seen (`wire.seen`).

        Raises:
            LostError: The connection failed.
        """

    def store(self) -> str:
        """Return what the nodes of a store have in common (`wire.nodes.store_digest`); "" if there is no store yet.

        Raises:
            LostError: The server cannot be reached, or takes no requests.
        """

    def close(self) -> None:
        """Close all connections."""


class Patience(NamedTuple):
    """Limits of a client: how long it waits, and how often it tries.

    Attributes:
        timeout_s: Seconds that an answer may take.
        retries: How often a message is sent again.
    """

    timeout_s: float
    retries: int

    def run(self, address: str, attempt: Callable[[], T], *, repeatable: bool, changes: bool = False) -> T:
        """Return what an attempt returns, after others if it fails, or if the server cannot reach its database.

        Args:
            address: The address of the server.
            attempt: Sends a message, and returns its result.
            repeatable: Whether the message may be sent again if its answer is lost.
            changes: Whether it changes something.

        Raises:
            StoreServerError: The server cannot be reached, or does not answer a message that changes nothing.
            CommitInDoubtError: It was sent a message that changes something, and its answer is lost, also if a later
                attempt was refused before the server looked whether it was executed.
            ServerBusyError: The server has too much to do.
        """
        pause, in_doubt = _FIRST_PAUSE_S, ""
        for left in range(self.retries, -1, -1):
            try:
                return attempt()
            except LostError as lost:
                if lost.sent and changes:
                    in_doubt = str(lost)
                if (lost.sent and not repeatable) or (in_doubt and not left):
                    raise CommitInDoubtError(address, in_doubt or str(lost)) from None
                if not left:
                    raise StoreServerError(address, str(lost)) from None
            except ServerBusyError as busy:
                if not left and in_doubt:
                    raise CommitInDoubtError(address, in_doubt) from None
                if not left:
                    raise
                pause = max(pause, min(float(busy.args[1]), _LONGEST_PAUSE_S))
            except (ServerError, StoreError, ClosedError) as refusal:
                # Of the database that the server keeps its store in: it may have failed over the next time.
                lacks_database = isinstance(refusal, StoreServerError | StoreIOError) and (
                    refusal.unchanged or isinstance(refusal, StoreServerError)
                )
                if not (lacks_database and left and repeatable):
                    if not in_doubt or isinstance(refusal, CommitInDoubtError):
                        raise
                    raise CommitInDoubtError(address, f"{in_doubt}; then {refusal}") from None
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        raise AssertionError
