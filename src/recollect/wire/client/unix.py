"""Messages over a Unix stream socket: one JSON object a line, on connections that are kept for the next messages."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from recollect.engine.results import ExportedPart, record_from_json
from recollect.errors import RecollectError, ServerVersionError
from recollect.operations import Recall
from recollect.records.record import Record
from recollect.wire import PROTOCOL, Place, decode, encode, place_json, read_result
from recollect.wire.client.transport import LostError, Pool, RemoteExport, stated_parts
from recollect.wire.compact import COMPACT
from recollect.wire.nodes import IN_MEMORY, store_digest
from recollect.wire.seen import NOTHING
from recollect.wire.trace import TRACE

#: Most answers fit. Python allocates as much for each read.
_CHUNK = 2**16


class UnixTransport:
    """A `Transport` over a Unix stream socket.

    Args:
        path: The path of the socket.
        timeout_s: Seconds that connecting, and each message of a batch or an export, may take.
        store_s: Seconds that the question for the store may take; default: as any other.
    """

    def __init__(self, path: str, timeout_s: float, store_s: float | None = None) -> None:
        self._store_s = timeout_s if store_s is None else store_s
        self.address = f"unix://{path}"
        self._path = path
        self._timeout_s = timeout_s
        self._pool: Pool[_Connection] = Pool(_Connection.is_open)

    def exchange(self, message: dict[str, Any], timeout_s: float) -> Any:
        """Send a request and return its answer. See `Transport.exchange`."""
        with self._connection() as connection:
            return connection.ask(message, timeout_s)

    @contextmanager
    def batch(self, place: Place, expect_head: int | None) -> Iterator[_BatchChannel]:
        """Open a batch. See `Transport.batch`."""
        begin: dict[str, Any] = {"batch": "begin", "in": place_json(place)}
        if expect_head is not None:
            begin["expect_head"] = expect_head
        with self._connection() as connection:
            channel = _BatchChannel(connection, self._timeout_s)
            read_result(channel.exchange(begin))
            try:
                yield channel
            except BaseException:
                try:
                    read_result(channel.exchange({"batch": "undo"}))
                except (LostError, RecollectError):  # the server undoes the batch of a connection that is gone
                    connection.is_settled = False
                raise
            answer = channel.exchange({"batch": "commit", "seen": NOTHING})
            read_result(answer)
            channel.seq = answer.get("seq", "")

    @contextmanager
    def export(self, place: Place, parts: Collection[str] | None, seen: str) -> Iterator[RemoteExport]:
        """Open a snapshot. See `Transport.export`."""
        with self._connection() as connection:

            def ask(message: dict[str, Any]) -> Any:
                return read_result(connection.ask(message, self._timeout_s))

            chosen = {} if parts is None else {"parts": [*parts]}
            head = ask({"export": "open", "in": place_json(place), **chosen, "seen": seen})

            def records(**part: str) -> Iterator[Record]:
                while page := ask({"export": "read", **part}):
                    yield from map(record_from_json, page)

            others = tuple(
                ExportedPart(each["name"], each["root"], each["count"], records(part=each["name"]))
                for each in stated_parts(head, parts)
            )
            try:
                yield RemoteExport(head["root"], head["count"], records(), others)
            finally:
                try:
                    ask({"export": "close"})
                except (LostError, RecollectError):  # the server closes the export of a connection that is gone
                    connection.is_settled = False

    def store(self) -> str:
        """Return what the nodes of a store have in common. See `Transport.store`."""
        facts = read_result(self.exchange({"op": "stats"}, self._store_s)).get("store", {})
        return "" if facts.get("path") == IN_MEMORY else store_digest(str(facts.get("uuid", "")))

    def close(self) -> None:
        """Close all connections. Those in use are closed when their answer has come."""
        self._pool.close()

    @contextmanager
    def _connection(self) -> Iterator[_Connection]:
        """Provide a connection. It is kept for others if it is in step: each message has its answer."""
        connection = self._pool.take() or self._new()
        try:
            yield connection
        finally:
            if connection.is_settled:
                self._pool.keep(connection)
            else:
                connection.close()

    def _new(self) -> _Connection:
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # With a timeout of its own, Python would not wait for a server whose queue of connections is full.
        seconds, rest = divmod(self._timeout_s, 1)
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(seconds), int(rest * 1e6)))
        try:
            channel.connect(self._path)
            channel.settimeout(self._timeout_s)
        except OSError as error:
            channel.close()
            raise LostError(f"cannot connect: {error.strerror or error}", sent=False) from None
        connection = _Connection(channel)
        try:
            pong = connection.exchange(b'{"action":"ping"}', self._timeout_s)
        except LostError as error:
            connection.close()
            raise LostError(str(error), sent=False) from None
        read_result({"ok": True, "result": None} if pong.get("ok") else pong)
        if pong.get("protocol") != PROTOCOL:
            connection.close()
            raise ServerVersionError(self.address, pong.get("protocol", 0), PROTOCOL)
        connection.traces, connection.sees = pong.get("traces") is True, pong.get("seen") is True
        connection.compact = pong.get(COMPACT) is True
        return connection


class _BatchChannel:
    """The connection of a batch."""

    def __init__(self, connection: _Connection, timeout_s: float) -> None:
        self.seq = ""
        self._connection = connection
        self._timeout_s = timeout_s

    def exchange(self, message: dict[str, Any]) -> Any:
        return self._connection.ask(message, self._timeout_s)


class _Connection:
    """One connection, used by one thread at a time.

    Attributes:
        is_settled: Whether every message that was sent has its answer. One that has not cannot be used any more: what
            comes next on it may be the answer to another message.
        traces: Whether the server continues traces. One that does not may refuse a line that has one.
        sees: Whether the server takes what a client has seen. One that does not would refuse such a line.
        compact: Whether the server returns hits in the form of `wire.compact`. One that does not would refuse to.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self.is_settled = True
        self.traces = self.sees = self.compact = False

    def ask(self, message: dict[str, Any], timeout_s: float) -> Any:
        """Send a message and return its answer as parsed JSON."""
        if self.traces and (trace := TRACE.get()):
            message = {**message, "trace": trace}
        if "seen" in message and not self.sees:
            message = {name: value for name, value in message.items() if name != "seen"}
        if self.compact and message.get("op") == Recall.name:
            message = {**message, COMPACT: True}
        return self.exchange(encode(message), timeout_s)

    def exchange(self, data: bytes, timeout_s: float) -> Any:
        if not self.is_settled:
            raise LostError("an earlier message on this connection has no answer", sent=False)
        self.is_settled = False
        sent = False
        try:
            if self._channel.gettimeout() != timeout_s:
                self._channel.settimeout(timeout_s)
            # A part of a line is no request: the server does not execute it.
            self._channel.sendall(data + b"\n")
            sent = True
            answer = decode(self._line())
        except TimeoutError:
            raise LostError(f"no answer within {timeout_s:g} s", sent=sent) from None
        except OSError as error:
            raise LostError(f"the connection broke: {error.strerror or error}", sent=sent) from None
        self.is_settled = True
        return answer

    def _line(self) -> bytes:
        chunks = []
        while True:
            chunk = self._channel.recv(_CHUNK)
            if not chunk:
                raise ConnectionResetError("the server closed it")
            chunks.append(chunk)
            if chunk.endswith(b"\n"):
                return b"".join(chunks)

    def is_open(self) -> bool:
        """Return whether the server has not closed it. (An idle connection has nothing to read.)"""
        try:
            return not select.select([self._channel], [], [], 0)[0]
        except (OSError, ValueError):
            return False

    def close(self) -> None:
        self._channel.close()
