"""The transport of the SDK over standard input and output, for a client that begins with a later revision.

Memory is bounded whatever the client sends: a message that is too long is skipped and refused, and no further request
is read while `REQUESTS` are not answered, also if the client does not read the answers.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from pydantic import ValidationError

from recollect.server.mcp.handshake import REQUESTS
from recollect.server.mcp.lines import MOST_BYTES, refusal
from recollect.server.mcp.protocol import Protocol
from recollect.server.mcp.subscribers import MOST_SUBSCRIPTIONS

#: Seconds in which requests are still answered after the input has ended.
_PATIENCE_S = 30.0


async def serve_stdio(protocol: Protocol, lines: Iterator[bytes]) -> None:
    """Serve the client at standard output until the input ends, or the client closes the output.

    Args:
        protocol: What it is served with.
        lines: The lines of the client.
    """
    try:
        await _serve(protocol, _Lines(lines))
    except* (BrokenPipeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass  # the client is gone


async def _serve(protocol: Protocol, lines: _Lines) -> None:
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        received, sent = await stack.enter_async_context(stdio_server(stdin=cast("Any", lines)))
        tasks.start_soon(protocol.subscribers.run)
        requests = _Requests()
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)

        async def forward() -> None:
            async with to_server:
                async for item in received:
                    if isinstance(item, Exception):
                        await sent.send(lines.refusals.popleft())
                    elif (reused := requests.reused_id(item)) is not None:
                        text = "a request with this id is not answered yet: use another id for each request"
                        await sent.send(_error(reused, types.INVALID_REQUEST, text))
                    else:
                        await to_server.send(await requests.admit(item))
                with anyio.move_on_after(_PATIENCE_S):
                    await requests.answered()

        async def back() -> None:
            async with from_server, sent:  # the SDK's writer ends when `sent` is closed
                async for item in from_server:
                    await sent.send(item)
                    if isinstance(item.message, (types.JSONRPCResponse, types.JSONRPCError)):
                        await requests.settle(item.message.id)

        tasks.start_soon(forward)
        tasks.start_soon(back)
        server = protocol.server()
        await server.run(from_client, to_client, server.create_initialization_options())


class _Lines:
    """The lines of a client, read in a thread that does not keep the process from ending.

    A line that is too long is skipped; an empty text stands for it.

    Attributes:
        refusals: The answers to the lines that are not messages, in their order. The SDK does not answer these.
    """

    def __init__(self, lines: Iterator[bytes]) -> None:
        self.refusals: deque[SessionMessage] = deque()
        self._lines = lines
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._room = threading.Semaphore(1)  # of the queue
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, name="recollect-stdin", daemon=True).start()

    def _read(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            for line in self._lines:
                if len(line) > MOST_BYTES:
                    self._put("")
                elif line.strip():
                    self._put(line.decode("utf-8", "replace"))
            self._put(None)

    def _put(self, line: str | None) -> None:
        self._room.acquire()
        self._loop.call_soon_threadsafe(self._queue.put_nowait, line)

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self._queue.get()) is not None:
            self._room.release()
            try:
                message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValidationError:
                self.refusals.append(_refusal(line))
            else:
                if isinstance(message, types.JSONRPCNotification) and _states_id(line):
                    # A request whose id has a wrong type: the SDK would take it for a notification, and not answer.
                    self.refusals.append(_refusal(line))
                    line = ""
            yield line


class _Requests:
    """The requests that are not answered yet."""

    def __init__(self) -> None:
        self._calls = asyncio.Semaphore(REQUESTS)
        # These stay open, so they must not use up the room of others.
        self._subscriptions = asyncio.Semaphore(MOST_SUBSCRIPTIONS + REQUESTS)
        self._open: dict[types.RequestId, asyncio.Semaphore] = {}  # id -> whose room it uses
        self._settled = asyncio.Event()

    def reused_id(self, item: SessionMessage) -> types.RequestId | None:
        """Return the id of a request if another one with this id is not answered yet, otherwise None."""
        message = item.message
        return message.id if isinstance(message, types.JSONRPCRequest) and message.id in self._open else None

    async def admit(self, item: SessionMessage) -> SessionMessage:
        """Wait until there is room for a message, and return it in a form that reports if it is never answered."""
        message = item.message
        if not isinstance(message, types.JSONRPCRequest):
            return item
        room = self._subscriptions if message.method == "subscriptions/listen" else self._calls
        await room.acquire()
        self._open[message.id] = room
        return SessionMessage(message, ServerMessageMetadata(on_request_unanswered=partial(self.settle, message.id)))

    async def settle(self, request_id: types.RequestId | None) -> None:
        """Note that a request was answered, or never will be."""
        room = None if request_id is None else self._open.pop(request_id, None)
        if room is not None:
            room.release()
        self._settled.set()

    async def answered(self) -> None:
        """Wait until every request is answered, except subscriptions."""
        while self._calls in self._open.values():
            self._settled.clear()
            await self._settled.wait()


def _states_id(line: str) -> bool:
    with suppress(ValueError, RecursionError):
        return "id" in json.loads(line)
    return False


def _refusal(line: str) -> SessionMessage:
    """Return the answer to a line that is not a message; "" stands for one that is too long."""
    return _error(*refusal(line))


def _error(request_id: types.RequestId | None, code: int, text: str) -> SessionMessage:
    error = types.ErrorData(code=code, message=text)
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error))
