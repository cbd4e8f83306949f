"""Requests over HTTP that belong to another worker than the one that got them, and the metrics of all workers.

A connection is served by the worker that got it. Two things live in one worker between requests, though: an open batch,
and the session of an MCP client. Their names begin with the number of their worker, and a request that names one is
relayed to it, over a Unix socket in a folder of the server. The worker checks the request as any other.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import h11
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.common.regexes import regex
from recollect.errors import CommitInDoubtError, RecollectError, ServerBusyError
from recollect.server.addresses import SAFE_HEADERS
from recollect.server.http.guard import problem
from recollect.server.metrics import CONTENT_TYPE

_OF_BATCH = regex(rb"/v1/[^/]+/batches/([0-9]{1,2})-[0-9a-f]{32}(?:/[a-z]+)?")
_SESSION = b"mcp-session-id"
_OF_SESSION = regex(rb"([0-9]{1,2})-(.+)")
_METRICS = "/metrics"
#: Headers of an answer that are not passed on: those of one connection, and those that this worker adds itself.
_OF_CONNECTION = frozenset(
    (b"connection", b"keep-alive", b"transfer-encoding", b"date", *(name.encode() for name, _ in SAFE_HEADERS))
)
_CHUNK = 2**16
_BACKLOG = 256


class Siblings:
    """The workers of a server, as one of them sees the others.

    Args:
        folder: The folder of their sockets, which only the user of the server can enter.
        number: The number of this worker, from 1 on.
        count: How many there are.
    """

    def __init__(self, folder: Path, number: int, count: int) -> None:
        self._folder = folder
        self._number = number
        self._others = [each for each in range(1, count + 1) if each != number]

    @property
    def prefix(self) -> str:
        """The number of this worker and a hyphen, which begin the names of its batches and sessions."""
        return f"{self._number}-"

    def listening(self) -> socket.socket:
        """Return a socket on which the others reach this worker."""
        path = self._folder / str(self._number)
        path.unlink(missing_ok=True)  # that of a worker that was killed
        out = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        out.bind(str(path))
        out.listen(_BACKLOG)
        return out

    def application(self, app: ASGIApp) -> ASGIApp:
        """Return an ASGI application that answers requests of clients by `app`, or by the worker that must."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["path"] == _METRICS and scope["method"] == "GET":
                await self._metrics(app, scope, receive, send)
                return
            owner = self._owner(scope)
            if owner is None or not await self._relayed(owner, scope, receive, send):
                await app(_without_prefix(scope), receive, _with_prefix(self._number, send))

        return answer

    def _owner(self, scope: Scope) -> int | None:
        """Return the worker that a request belongs to; None if that is this one, or none."""
        found = _OF_BATCH.fullmatch(scope["raw_path"]) or _session(scope)
        number = int(found[1]) if found else 0
        return number if number in self._others else None

    async def _relayed(self, owner: int, scope: Scope, receive: Receive, send: Send) -> bool:
        """Let another worker answer a request. Return False if it cannot be reached: what it had is gone with it."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(connection, str(self._folder / str(owner)))
        except OSError:
            connection.close()
            return False
        relay = _Relay(connection)
        try:
            await relay.answer(_without_prefix(scope), receive, _with_prefix(owner, send))
        finally:
            relay.close()
        return True

    async def _metrics(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        own = _Collected()
        await app(scope, receive, own)
        if own.status != HTTPStatus.OK:  # it needs another token
            for message in own.messages:
                await send(message)
            return
        found = {self._number: own.body}
        for number in self._others:
            other = _Collected()
            if await self._relayed(number, scope, receive, other) and other.status == HTTPStatus.OK:
                found[number] = other.body
        body = _merged(found)
        headers = [(b"content-type", CONTENT_TYPE.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _session(scope: Scope) -> re.Match[bytes] | None:
    return next((_OF_SESSION.fullmatch(value) for name, value in scope["headers"] if name == _SESSION), None)


def _with_prefix(number: int, send: Send) -> Send:
    """Return a function that sends messages, in which a session of MCP has the number of its worker."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start" and any(name == _SESSION for name, _ in message["headers"]):
            prefix = f"{number}-".encode()
            headers = [(name, prefix + value if name == _SESSION else value) for name, value in message["headers"]]
            message = {**message, "headers": headers}
        await send(message)

    return sent


def _without_prefix(scope: Scope) -> Scope:
    """Return a request in which a session of MCP has the name that the worker has given to it."""
    found = _session(scope)
    if found is None:
        return scope
    headers = [(name, found[2] if name == _SESSION else value) for name, value in scope["headers"]]
    return {**scope, "headers": headers}


class _Collected:
    """Collects an answer instead of sending it."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def __call__(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"]) if self.messages else 0

    @property
    def body(self) -> bytes:
        return b"".join(each.get("body", b"") for each in self.messages)


class _Relay:
    """A connection to another worker, for one request.

    A worker may answer before it has read the whole request, and close the connection. So the answer is read to its end
    although sending fails; a stream of asyncio would forget what it has received then.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._protocol = h11.Connection(h11.CLIENT)
        self._loop = asyncio.get_running_loop()
        self._begun = False

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a request, and pass the answer on as it comes, until it ends or the client leaves."""
        sending = asyncio.ensure_future(self._send(scope, receive))
        answering = asyncio.ensure_future(self._answer(send))
        try:
            await asyncio.wait((sending, answering), return_when=asyncio.FIRST_COMPLETED)
            if not answering.done() and sending.exception() is not None:
                await asyncio.wait((answering,))
            if answering.done():  # else the client has left
                await answering
        except (OSError, h11.ProtocolError):
            if not self._begun:
                await problem(_lost(scope))(scope, receive, send)
        finally:
            for each in (sending, answering):
                each.cancel()
            await asyncio.gather(sending, answering, return_exceptions=True)

    async def _send(self, scope: Scope, receive: Receive) -> None:
        """Send the request, and return when the client leaves."""
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        headers = [(name, value) for name, value in scope["headers"] if name != b"connection"]
        headers.append((b"connection", b"close"))
        await self._write(h11.Request(method=scope["method"], target=target, headers=headers))
        while (message := await receive())["type"] == "http.request":
            if message.get("body"):
                await self._write(h11.Data(data=message["body"]))
            if not message.get("more_body"):
                await self._write(h11.EndOfMessage())

    async def _write(self, event: Any) -> None:
        await self._loop.sock_sendall(self._connection, self._protocol.send(event) or b"")

    async def _answer(self, send: Send) -> None:
        while True:
            event = self._protocol.next_event()
            if event is h11.NEED_DATA:
                data = await self._loop.sock_recv(self._connection, _CHUNK)
                if not data and not self._begun:
                    raise ConnectionResetError
                self._protocol.receive_data(data)
            elif isinstance(event, h11.Response):
                self._begun = True
                headers = [(name, value) for name, value in event.headers if name not in _OF_CONNECTION]
                await send({"type": "http.response.start", "status": event.status_code, "headers": headers})
            elif isinstance(event, h11.Data):
                await send({"type": "http.response.body", "body": bytes(event.data), "more_body": True})
            elif isinstance(event, h11.EndOfMessage):
                await send({"type": "http.response.body", "body": b""})
                return

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _lost(scope: Scope) -> RecollectError:
    """Return the error of a request whose worker has ended: it may have changed something, or has not."""
    if scope["method"] == "GET" or scope["raw_path"].endswith(b"/execute"):  # of a batch, which ended with its worker
        return ServerBusyError("the worker that had it has ended", 1.0)
    return CommitInDoubtError("the store", "the worker that had it has ended")


class _OfWorkers(Collector):
    """The metrics of all workers, each with the label `worker`."""

    def __init__(self, texts: dict[int, bytes]) -> None:
        self._texts = texts

    def collect(self) -> Iterator[Metric]:
        out: dict[str, Metric] = {}
        for number, text in self._texts.items():
            for family in text_string_to_metric_families(text.decode()):
                merged = out.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                for sample in family.samples:
                    merged.samples.append(sample._replace(labels={"worker": str(number), **sample.labels}))
        yield from out.values()


def _merged(texts: dict[int, bytes]) -> bytes:
    registry = CollectorRegistry()
    registry.register(_OfWorkers(texts))
    return generate_latest(registry)
