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
from itertools import count
from typing import Any, cast

from recollect.arguments.checks import is_integer
from recollect.common.deadlines import Deadline
from recollect.errors import (
    STOPPING,
    AccessError,
    ClosedError,
    InvalidOperationError,
    ProtocolError,
    RecollectError,
    ServerBusyError,
)
from recollect.operations import checked_parts
from recollect.policies import Level
from recollect.server.calls import ClientCalls, internal_error, reads
from recollect.server.limits import BODY_BYTES
from recollect.server.lines import ExportPages, LineSplitter, SlowReader
from recollect.server.socket.actions import ACTIONS, PONG, act, read_action
from recollect.server.socket.listening import has_hung_up
from recollect.server.waits import Waits
from recollect.wire import (
    READ,
    ClientBatch,
    Grant,
    Place,
    answer_json,
    check_size,
    decode,
    encode,
    error_json,
    read_place,
    read_request,
)
from recollect.wire.compact import COMPACT
from recollect.wire.seen import NOTHING, read_seen, with_seq
from recollect.wire.trace import TRACE, read_trace

#: Number of waiting lines, and their bytes, at which no more are read.
_MOST_WAITING, _WAITING_BYTES = 128, 2**20
#: Lines up to this length are parsed in the event loop.
_SHORT = 16 * 2**10
#: Number of lines that one client is answered before others get a turn.
_AT_ONCE = 32
#: How many bytes of lines beyond `_SHORT`, unfinished or not answered yet, all connections together may have in memory.
_LONG_BYTES = 256 * 2**20
#: Number of bytes of answers that a client has not read at which none is computed any more.
_UNREAD_BYTES = 2**16
#: How often it is looked whether a client that sends nothing more is still there, in seconds.
_LOOK_S = 1.0
_numbers = count(1)
_BEGIN, _COMMIT, _UNDO = "begin", "commit", "undo"


@dataclass
class SocketState:
    """The state that all connections of the socket share.

    Attributes:
        calls: Executes requests.
        grant: What clients may do.
        waits: Waits for commits.
        salience: How strictly texts are judged before the action `store` stores them.
        line_bytes: Maximum length of a line.
        connections: The open connections.
        most_connections: Maximum number of connections.
        long_bytes: Bytes of long lines in memory, unfinished or not answered yet.
    """

    calls: ClientCalls
    grant: Grant
    waits: Waits
    salience: Level = "normal"
    line_bytes: int = BODY_BYTES
    most_connections: int = 4096
    connections: set[Connection] = field(default_factory=set)
    long_bytes: int = 0


class Connection(asyncio.Protocol):
    """A client of the daemon."""

    def __init__(self, door: SocketState, refusal: Callable[[asyncio.BaseTransport], str]) -> None:
        self._door = door
        self._refusal = refusal
        self._name = f"connection {next(_numbers)}"  # for turns
        self._lines = LineSplitter(door.line_bytes)
        self._counted = 0  # what of `door.long_bytes` is this connection's
        self._waiting: deque[bytes | RecollectError] = deque()  # lines, and errors in place of those that were skipped
        self._waiting_bytes = self._long_bytes = 0  # of all waiting lines; of the long ones, and of the one that runs
        self._running_bytes = 0
        self._crowded = False  # the unfinished line was skipped, because all together have too much in memory
        self._transport: asyncio.Transport | None = None
        self._busy = self._ended = False  # whether a request runs; whether the client has sent its last line
        self._writable = True
        self._unread = 0  # what of the unread bytes of all is this connection's
        self._advancing = self._scheduled = False  # whether `_next` runs; whether it will
        self._batch: ClientBatch | None = None
        self._batch_lost = False  # it was undone because its time was over, and the client does not know yet
        self._batch_ends: asyncio.TimerHandle | None = None
        self._export: ExportPages | None = None
        self._export_ends: asyncio.TimerHandle | None = None
        self._waiter: asyncio.Task[None] | None = None
        self._deadline: Deadline | None = None  # of the read that runs

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_UNREAD_BYTES)
        self._reader = SlowReader(transport)
        door = self._door
        refusal: RecollectError | None = None
        if refused := self._refusal(transport):
            refusal = AccessError(
                refused, "this socket, which is for the user of the server alone,", "connect as that user"
            )
        elif len(door.connections) >= door.most_connections:
            refusal = ServerBusyError(f"{len(door.connections)} connections are open", 1.0)
        if refusal is not None:
            self._ended = True
            self._write(error_json(refusal))
            self._transport.close()
            return
        door.connections.add(self)

    def data_received(self, data: bytes) -> None:
        if self._ended:  # it is being closed
            return
        for line in self._lines.feed(data):
            self._take(line)
        if self._count() > _LONG_BYTES and self._lines.size > _SHORT:
            self._lines.skip()
            self._crowded = True
            self._count()
        if len(self._waiting) > _MOST_WAITING or self._waiting_bytes > _WAITING_BYTES:
            self._pause()
        self._next()

    def eof_received(self) -> bool:
        self._ended = True
        self._next()
        self._look_for_client()
        return True  # what was asked is still answered

    def _look_for_client(self) -> None:
        """Close the connection when its client is gone: one that has sent its last line may still wait for a commit."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if has_hung_up(transport):
            transport.abort()
        elif self._waiter is not None:
            asyncio.get_running_loop().call_later(_LOOK_S, self._look_for_client)

    def pause_writing(self) -> None:
        self._writable = False
        assert self._transport is not None
        self._unread = self._door.calls.unread.add(self._name, self._transport.get_write_buffer_size())
        self._reader.begin()

    def resume_writing(self) -> None:
        self._writable = True
        self._has_read()
        self._next()

    def _has_read(self) -> None:
        """Note that the client has read its answers, or is gone."""
        self._door.calls.unread.remove(self._name, self._unread)
        self._unread = 0
        self._reader.end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._door.connections.discard(self)
        self._has_read()
        self._waiting.clear()
        self._long_bytes = self._running_bytes
        self._lines.skip()
        self._count()
        self._end_batch()
        self._close_export()
        if self._deadline is not None:
            self._deadline.cancel()
        if self._waiter is not None:
            self._waiter.cancel()

    # Lines

    def _take(self, line: bytes | None) -> None:
        """Queue a line, or an error in place of one that is too long, or for which there is no room."""
        door = self._door
        waiting = door.long_bytes - self._counted + self._long_bytes  # without the unfinished line, which this one was
        if line is None and not self._crowded:
            self._waiting.append(ProtocolError(f"the line is longer than {door.line_bytes} bytes, and was skipped"))
        elif line is None or (len(line) > _SHORT and waiting + len(line) > _LONG_BYTES):
            self._waiting.append(ServerBusyError("it has too many long lines in memory, and skipped this one", 1.0))
        else:
            self._waiting.append(line)
            self._waiting_bytes += len(line)
            self._long_bytes += len(line) if len(line) > _SHORT else 0
        self._crowded = False

    def _count(self) -> int:
        """Count the long lines of this connection, and return the bytes that all have."""
        size = self._long_bytes + (self._lines.size if self._lines.size > _SHORT else 0)
        self._door.long_bytes += size - self._counted
        self._counted = size
        return self._door.long_bytes

    def _pause(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _next(self) -> None:
        """Answer the next lines, until one needs a thread, or it is the turn of others."""
        if self._advancing:  # the answer to a line was there at once
            return
        self._advancing = True
        try:
            for _ in range(_AT_ONCE):
                if not self._busy:
                    self._forget_line()
                if not self._waiting or self._busy or not self._writable:
                    break
                self._answer(self._waiting.popleft())
        finally:
            self._advancing = False
        if not self._busy:
            self._forget_line()
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._waiting and not self._busy and self._writable:
            if not self._scheduled:
                self._scheduled = True
                asyncio.get_running_loop().call_soon(self._go_on)
        elif not self._waiting and not self._busy and self._ended:
            transport.close()
        if len(self._waiting) <= _MOST_WAITING // 2 and self._waiting_bytes <= _WAITING_BYTES // 2:
            transport.resume_reading()

    def _go_on(self) -> None:
        self._scheduled = False
        self._next()

    def _answer(self, line: bytes | RecollectError) -> None:
        if isinstance(line, RecollectError):
            self._write(error_json(line))
            return
        self._waiting_bytes -= len(line)
        if len(line) <= _SHORT:
            try:
                data = decode(line)
            except RecollectError as error:
                self._write(error_json(error))
                return
            self._handle(data)
        else:
            self._running_bytes = len(line)
            self._busy = True
            self._door.calls.start("socket", "parse", partial(decode, line), self._handle, client=self._name)

    def _forget_line(self) -> None:
        """Note that the long line that was answered takes no memory any more."""
        if self._running_bytes:
            self._long_bytes -= self._running_bytes
            self._running_bytes = 0
            self._count()

    def _handle(self, data: Any) -> None:
        """Answer a line that was parsed, now or when it is done."""
        self._busy = False
        try:
            if isinstance(data, RecollectError):
                raise data
            if not isinstance(data, Mapping):
                raise ProtocolError("it is not a JSON object")
            stated = dict(data)
            token = TRACE.set(read_trace(stated.pop("trace", None)))
            try:
                self._ask(stated)
            finally:
                TRACE.reset(token)
        except RecollectError as error:
            self._write(error_json(error))
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the connection
            self._write(error_json(internal_error("line", error)))
        self._next()

    def _ask(self, data: Mapping[str, Any]) -> None:
        """Answer what a line asks for.

        Raises:
            RecollectError: It asks for nothing that there is, or for something else beside it.
        """
        kinds = [each for each in ("op", "action", "batch", "export") if each in data]
        if len(kinds) != 1:
            raise ProtocolError('it has neither "op" nor "action"' if not kinds else f"it has {' and '.join(kinds)}")
        _HANDLERS[kinds[0]](self, data)

    # What a line can ask for

    def _act(self, data: Mapping[str, Any]) -> None:
        name, fields = read_action(data)
        if name == "ping":
            self._door.calls.on_served("socket", "ping", 0.0, "")
            self._write(PONG if self._door.calls.continued is None else {**PONG, "traces": True})
            return
        if self._batch is not None or self._batch_lost:
            raise InvalidOperationError(name, "cannot be part of a batch: commit or undo it first")
        place = _place(data)
        door = self._door

        def call() -> bytes:
            memory = door.calls.desk.memory(place, door.grant, ACTIONS[name][1])
            raw = encode(act(name, fields, memory, door.salience))
            if ACTIONS[name][1] == READ:
                check_size(name, raw)
            return raw

        self._start(name, call)

    def _operate(self, data: Mapping[str, Any]) -> None:
        data = dict(data)
        seen, compact = data.pop("seen", None), data.pop(COMPACT, False)
        if not isinstance(compact, bool):
            raise ProtocolError(f'"{COMPACT}" must be true or false')
        calls, grant, batch = self._door.calls, self._door.grant, self._batch
        name = data["op"] if isinstance(data["op"], str) else "?"
        if self._batch_lost:
            raise self._door.calls.closed_batch()
        if name == "wait" and batch is None:
            self._wait(data)
            return

        def call() -> bytes:
            request = read_request(data)._replace(compact=compact)
            if batch is None and seen is None:
                return calls.answer(request, grant)
            if batch is None:
                with calls.desk.seeing(request.place.branch.owner.namespace, read_seen(seen), grant) as token:
                    answer = calls.answer(request, grant)
                    return with_seq(answer, token())
            if data.get("in") is not None:
                batch.check(request.place)
            return batch.answer(request)

        self._start(name, call, batch)

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
            except Exception as error:  # noqa: BLE001 - a fault of ours must not end the connection
                answer = error_json(internal_error("wait", error))
            self._waiter = None
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
            if self._batch_lost:  # the client believes that it is open
                raise self._door.calls.closed_batch()
            place, expect_head = _place(data), data.get("expect_head")
            if expect_head is not None and not is_integer(expect_head):
                raise ProtocolError('"expect_head" must be an integer')
            batch = calls.batch(place, self._door.grant, expect_head)

            def opened(answer: bytes | RecollectError) -> None:
                if self._is_gone:
                    batch.abandon()
                elif not isinstance(answer, RecollectError):
                    self._batch = batch
                    self._batch_ends = asyncio.get_running_loop().call_later(calls.batch_s, self._lose_batch)
                self._done(answer)

            self._busy = True
            begin = partial(_after, batch.begin)
            calls.start("socket", "batch", begin, opened, client=self._name, batch=batch, begins=True)
            return
        self._batch_lost = False
        if self._batch is None:
            raise self._door.calls.closed_batch()
        batch, self._batch = self._batch, None
        if self._batch_ends is not None:
            self._batch_ends.cancel()
        end = batch.commit if what == _COMMIT else batch.undo
        closing, grant = batch, self._door.grant

        def call() -> bytes:
            answer = _after(end)
            return with_seq(answer, calls.desk.token(closing.freshness, grant)) if "seen" in data else answer

        self._start("batch", call, batch)

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
            place, calls, grant = _place(data), self._door.calls, self._door.grant
            parts = checked_parts(data.get("parts"))

            def take() -> ExportPages:
                seen = read_seen(data.get("seen", NOTHING))
                with calls.desk.seeing(place.branch.owner.namespace, seen, grant):
                    return ExportPages(calls.desk.export(place, grant, parts))

            def opened(answer: ExportPages | RecollectError) -> None:
                if isinstance(answer, RecollectError):
                    self._done(answer)
                    return
                self._export = answer
                if self._is_gone:
                    self._close_export()
                self._done(_done(answer.head))

            self._export_ends = asyncio.get_running_loop().call_later(calls.export_s, self._close_export)
            self._busy = True
            self._deadline = calls.start("socket", "export", take, opened, client=self._name)
        elif what == "read":
            if self._export is None:
                raise ClosedError("the export")
            self._start("export", partial(_read_page, self._export, data.get("part")))
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
            self._door.calls.release(export.close)

    # Answers

    def _start(self, name: str, call: Callable[[], bytes], batch: ClientBatch | None = None) -> None:
        self._busy = True
        calls = self._door.calls

        def done(answer: bytes | RecollectError) -> None:
            if isinstance(answer, bytes) and reads(name) and name != "export":  # a page of which is read once
                try:
                    calls.unread.check(self._name, len(answer))
                except ServerBusyError as error:
                    answer = error
            self._done(answer)

        self._deadline = calls.start("socket", name, call, done, client=self._name, batch=batch)

    def _done(self, answer: bytes | RecollectError) -> None:
        """Write the answer of the request that ran, and go on with the next line."""
        self._busy = False
        self._write(error_json(answer) if isinstance(answer, RecollectError) else answer)
        self._next()

    @property
    def _is_gone(self) -> bool:
        """True if the client does not read answers any more."""
        return self._transport is None or self._transport.is_closing()

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
        if self._waiter is not None:
            self._waiter.cancel()
            self._waiter = None
            self._done(ServerBusyError(STOPPING, 1.0))
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


def _read_page(export: ExportPages, part: str | None) -> bytes:
    return b'{"ok":true,"result":[%s]}' % b",".join(export.read(part))


def _place(data: Mapping[str, Any]) -> Place:
    """Return the place that a line names."""
    stated = data.get("in")
    return Place() if stated is None else read_place(stated)


_HANDLERS: dict[str, Callable[[Connection, Mapping[str, Any]], None]] = {
    "op": Connection._operate,
    "action": Connection._act,
    "batch": Connection._change_batch,
    "export": Connection._change_export,
}
