"""One client of the socket daemon: lines in, an answer for each, in the order of the lines.

Requests may be sent without waiting for answers. One of a connection runs at a time. While many lines wait, or the
client does not read its answers, nothing more is read from it: its memory is bounded, and no other client waits for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, cast

from recollect.errors import (
    ClosedError,
    InvalidOperationError,
    ProtocolError,
    RecollectError,
    ServerBusyError,
)
from recollect.salience import Level
from recollect.server.calls import Calls
from recollect.server.limits import BODY_BYTES
from recollect.server.socket.actions import ACTIONS, PONG, act, read_action
from recollect.server.socket.lines import Lines
from recollect.server.waits import Waits
from recollect.wire import (
    READ,
    Grant,
    OpenBatch,
    Place,
    answer_json,
    decode,
    encode,
    error_json,
    read_request,
    record_json,
)

#: Number of waiting lines, and their bytes, at which no more are read.
_MOST_WAITING, _WAITING_BYTES = 128, 2**20
#: Lines up to this length are parsed in the event loop.
_SHORT = 16 * 2**10
#: How many bytes of unfinished lines beyond `_SHORT` all connections together may have in memory.
_UNFINISHED_BYTES = 256 * 2**20
#: Number of bytes of answers that a client has not read at which none is computed any more.
_UNREAD_BYTES = 2**20
#: Number of records that one read of an export returns.
_PAGE = 200
_BEGIN, _COMMIT, _UNDO = "begin", "commit", "undo"


@dataclass
class Door:
    """What all connections of the socket share.

    Attributes:
        calls: Executes requests.
        grant: What clients may do.
        waits: Waits for commits.
        salience: How strictly texts are judged before the action `store` stores them.
        line_bytes: Maximum length of a line.
        connections: The open connections.
        unfinished: Bytes of unfinished lines in memory.
    """

    calls: Calls
    grant: Grant
    waits: Waits
    salience: Level = "normal"
    line_bytes: int = BODY_BYTES
    most_connections: int = 4096
    connections: set[Connection] = field(default_factory=set)
    unfinished: int = 0


class Connection(asyncio.Protocol):
    """A client of the daemon."""

    def __init__(self, door: Door, refusal: Callable[[asyncio.BaseTransport], str]) -> None:
        self._door = door
        self._refusal = refusal
        self._lines = Lines(door.line_bytes)
        self._counted = 0  # what of `door.unfinished` is this connection's
        self._waiting: deque[bytes | None] = deque()
        self._waiting_bytes = 0
        self._transport: asyncio.Transport | None = None
        self._busy = self._ended = False  # whether a request runs; whether the client has sent its last line
        self._writable = True
        self._batch: OpenBatch | None = None
        self._batch_lost = False  # it was undone because its time was over, and the client does not know yet
        self._batch_ends: asyncio.TimerHandle | None = None
        self._export: Any = None
        self._export_ends: asyncio.TimerHandle | None = None
        self._waiter: asyncio.Task[None] | None = None

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_UNREAD_BYTES)
        door = self._door
        refusal = self._refusal(transport)
        if not refusal and len(door.connections) >= door.most_connections:
            refusal = f"{len(door.connections)} connections are open"
        if refusal:
            self._write(error_json(ServerBusyError(refusal, 1.0)))
            self._transport.close()
            return
        door.connections.add(self)

    def data_received(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            self._waiting.append(line)
            self._waiting_bytes += len(line or b"")
        self._count_unfinished()
        if len(self._waiting) > _MOST_WAITING or self._waiting_bytes > _WAITING_BYTES:
            self._pause()
        self._next()

    def eof_received(self) -> bool:
        self._ended = True
        self._next()
        return True  # what was asked is still answered

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._door.connections.discard(self)
        self._door.unfinished -= self._counted
        self._counted = 0
        self._waiting.clear()
        self._end_batch()
        self._close_export()
        if self._waiter is not None:
            self._waiter.cancel()

    # Lines

    def _count_unfinished(self) -> None:
        """Count the unfinished line, and skip it if all connections together have too much in memory."""
        size = self._lines.size if self._lines.size > _SHORT else 0
        door = self._door
        door.unfinished += size - self._counted
        self._counted = size
        if door.unfinished > _UNFINISHED_BYTES and size:
            self._lines.skip()
            door.unfinished -= size
            self._counted = 0

    def _pause(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _next(self) -> None:
        """Answer the next lines, until one needs a thread."""
        while self._waiting and not self._busy and self._writable:
            line = self._waiting.popleft()
            self._waiting_bytes -= len(line or b"")
            if line is None:
                limit = self._door.line_bytes
                self._write(error_json(ProtocolError(f"the line is longer than {limit} bytes, and was skipped")))
            elif len(line) <= _SHORT:
                self._parsed(line)
            else:
                self._busy = True
                self._door.calls.start("socket", "parse", partial(decode, line), self._handle)
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if not self._waiting and not self._busy and self._ended:
            transport.close()
        elif len(self._waiting) <= _MOST_WAITING // 2 and self._waiting_bytes <= _WAITING_BYTES // 2:
            transport.resume_reading()

    def _parsed(self, line: bytes) -> None:
        try:
            data = decode(line)
        except RecollectError as error:
            self._write(error_json(error))
            return
        self._handle(data)

    def _handle(self, data: Any) -> None:
        """Answer a line that was parsed, now or when it is done."""
        self._busy = False
        try:
            if isinstance(data, RecollectError):
                raise data
            if not isinstance(data, Mapping):
                raise ProtocolError("it is not a JSON object")
            kinds = [each for each in ("op", "action", "batch", "export") if each in data]
            if len(kinds) != 1:
                raise ProtocolError(
                    'it has neither "op" nor "action"' if not kinds else f"it has {' and '.join(kinds)}"
                )
            _HANDLERS[kinds[0]](self, data)
        except RecollectError as error:
            self._write(error_json(error))

    # What a line can ask for

    def _act(self, data: Mapping[str, Any]) -> None:
        name, fields = read_action(data)
        if name == "ping":
            self._door.calls.on_served("socket", "ping", 0.0, "")
            self._write(PONG)
            return
        place = Place.from_json(data.get("in") or {})
        door = self._door

        def call() -> bytes:
            memory = door.calls.desk.memory(place, door.grant, ACTIONS[name][1])
            return encode(act(name, fields, memory, door.salience))

        self._start(name, call)

    def _operate(self, data: Mapping[str, Any]) -> None:
        if data.get("op") == "wait":
            self._wait(data)
            return
        calls, grant, batch = self._door.calls, self._door.grant, self._batch
        name = data["op"] if isinstance(data["op"], str) else "?"

        if self._batch_lost:
            raise ClosedError("the batch")

        def call() -> bytes:
            request = read_request(data)
            result = calls.execute(request, grant) if batch is None else batch.execute(request.operation)
            return encode(answer_json(request.operation, result))

        self._start(name, call, None if batch is None else batch.submit)

    def _wait(self, data: Mapping[str, Any]) -> None:
        """Wait for a commit. This takes no thread."""
        request = read_request(data)
        operation: Any = request.operation
        self._door.grant.check(READ, request.place.branch)
        place = self._door.grant.placed(request.place)
        self._busy = True

        async def waiting() -> None:
            try:
                found = await self._door.waits.wait(place, operation.since, operation.timeout)
                answer = answer_json(operation, found)
            except RecollectError as error:
                answer = error_json(error)
            self._done(encode(answer))

        self._waiter = asyncio.get_running_loop().create_task(waiting())

    def _change_batch(self, data: Mapping[str, Any]) -> None:
        what = data["batch"]
        if what not in (_BEGIN, _COMMIT, _UNDO):
            raise ProtocolError(f'"batch" must be one of {_BEGIN}, {_COMMIT}, {_UNDO}')
        calls = self._door.calls
        if what == _BEGIN:
            if self._batch is not None:
                raise InvalidOperationError("batch", "is open already on this connection: commit or undo it first")
            place, expect_head = Place.from_json(data.get("in") or {}), data.get("expect_head")
            if expect_head is not None and (isinstance(expect_head, bool) or not isinstance(expect_head, int)):
                raise ProtocolError('"expect_head" must be an integer')
            batch = calls.batch(place, self._door.grant, expect_head)

            def opened(answer: bytes | RecollectError) -> None:
                if self._transport is None or self._transport.is_closing():
                    batch.abandon()
                elif not isinstance(answer, RecollectError):
                    self._batch = batch
                    self._batch_ends = asyncio.get_running_loop().call_later(calls.batch_s, self._lose_batch)
                self._done(answer)

            self._busy = True
            calls.start("socket", "batch", partial(_after, batch.begin), opened, batch.submit)
            return
        self._batch_lost = False
        if self._batch is None:
            raise ClosedError("the batch")
        batch, self._batch = self._batch, None
        if self._batch_ends is not None:
            self._batch_ends.cancel()
        end = batch.commit if what == _COMMIT else batch.undo
        self._start("batch", partial(_after, end), batch.submit)

    def _lose_batch(self) -> None:
        self._batch_lost = True
        self._end_batch()

    def _end_batch(self) -> None:
        """Undo the open batch: its time is over, or the client is gone."""
        batch, self._batch = self._batch, None
        if self._batch_ends is not None:
            self._batch_ends.cancel()
        if batch is not None:
            batch.abandon()

    def _change_export(self, data: Mapping[str, Any]) -> None:
        what = data["export"]
        if what == "open":
            self._close_export()
            place, calls, grant = Place.from_json(data.get("in") or {}), self._door.calls, self._door.grant

            def opened() -> bytes:
                self._export = export = calls.desk.export(place, grant)
                return _done({"root": export.root, "count": export.count})

            self._export_ends = asyncio.get_running_loop().call_later(calls.export_s, self._close_export)
            self._start("export", opened)
        elif what == "read":
            if self._export is None:
                raise ClosedError("the export")
            self._start("export", partial(_read_page, self._export))
        elif what == "close":
            self._close_export()
            self._write({"ok": True, "result": None})
        else:
            raise ProtocolError('"export" must be one of open, read, close')

    def _close_export(self) -> None:
        export, self._export = self._export, None
        if self._export_ends is not None:
            self._export_ends.cancel()
        if export is not None:
            self._door.calls.start("socket", "export", export.close, lambda result: None)

    # Answers

    def _start(
        self, name: str, call: Callable[[], bytes], submit: Callable[[Callable[[], object]], object] | None = None
    ) -> None:
        self._busy = True
        self._door.calls.start("socket", name, call, self._done, submit)

    def _done(self, answer: bytes | RecollectError) -> None:
        """Write the answer of the request that ran, and go on with the next line."""
        self._busy = False
        self._write(error_json(answer) if isinstance(answer, RecollectError) else answer)
        self._next()

    def _write(self, answer: Mapping[str, Any] | bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        try:
            data = answer if isinstance(answer, bytes) else encode(answer)
        except ProtocolError as error:  # each line has an answer, whatever happens
            data = encode(error_json(error))
        self._transport.write(data + b"\n")

    def stop(self) -> None:
        """Close the connection, after the answer to the request that runs. Further lines are not answered."""
        self._waiting.clear()
        self._ended = True
        self._end_batch()
        if not self._busy and self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()


def _done(result: Any) -> bytes:
    return encode({"ok": True, "result": result})


def _after(call: Callable[[], None]) -> bytes:
    """Return the answer to what has no result."""
    call()
    return _done(None)


def _read_page(export: Any) -> bytes:
    return _done([record_json(record) for record in islice(export.records, _PAGE)])


_HANDLERS: dict[str, Callable[[Connection, Mapping[str, Any]], None]] = {
    "op": Connection._operate,
    "action": Connection._act,
    "batch": Connection._change_batch,
    "export": Connection._change_export,
}
