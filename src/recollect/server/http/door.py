"""The HTTP server as a door: its listening socket, its connections and its end, run by uvicorn."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from http import HTTPStatus
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from recollect.errors import InvalidArgumentError, ProtocolError, ServerBusyError
from recollect.server.addresses import SAFE_HEADERS
from recollect.server.http.batches import undo_all
from recollect.server.http.exchange import Site
from recollect.server.http.guard import problem
from recollect.server.lines import SlowReader

#: Maximum number of connections. Further ones are answered with 503.
CONNECTIONS = 1024
#: How much of an answer the system buffers for a connection, in bytes.
_SEND_BUFFER = 256 * 2**10
#: Seconds that a connection without a request is kept.
_KEPT_S = 75


class HttpDoor:
    """The HTTP server as a door.

    Args:
        site: What all requests share.
        app: The application.
        listening: The listening socket (`listening_on`); None: connections come by `take` alone.
        end: Ends what has no end of its own, such as the streams of MCP clients.
    """

    def __init__(
        self,
        site: Site,
        app: Any,
        listening: socket.socket | None,
        end: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._end = end
        self._site = site
        self._app = app
        self._socket = listening
        config = uvicorn.Config(
            self._limited,
            interface="asgi3",
            http=PatientProtocol,
            log_level="error",
            access_log=False,
            server_header=False,
            headers=list(SAFE_HEADERS),
            timeout_keep_alive=_KEPT_S,
            lifespan="off",
            ws="none",
        )
        self._server = _Server(config)
        self._running: asyncio.Task[None] | None = None

    async def _limited(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or refuse it if too many connections are open."""
        if self.connections <= CONNECTIONS:
            await self._app(scope, receive, send)
            return
        refusal = problem(ServerBusyError(f"{self.connections - 1} connections are open", 1.0))
        refusal.headers["Connection"] = "close"
        await refusal(scope, receive, send)

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._server.server_state.connections)

    async def open(self) -> str:
        """Begin to accept clients. See `server.doors.Door`."""
        sockets = [] if self._socket is None else [self._socket]
        self._running = asyncio.get_running_loop().create_task(self._server.serve(sockets=sockets))
        while not self._server.started and not self._running.done():
            await asyncio.sleep(0.005)
        return "" if self._socket is None else address_of_socket(self._socket)

    async def take(self, connection: socket.socket) -> None:
        """Serve a connection that was accepted elsewhere."""
        if self._server.should_exit:
            connection.close()
            return
        loop = asyncio.get_running_loop()

        def protocol() -> PatientProtocol:
            return PatientProtocol(self._server.config, self._server.server_state, {}, loop)

        await loop.connect_accepted_socket(protocol, connection)

    async def stop(self) -> None:
        """Accept no more clients, and close connections when their calls are answered."""
        undo_all(self._site)
        self._site.waits.stop()
        self._server.should_exit = True
        if self._end is not None:
            await self._end()

    async def flushed(self) -> None:
        """Return when all connections are closed. See `server.doors.Door`."""
        if self._running is not None:
            await asyncio.shield(self._running)

    def abort(self) -> None:
        """Close all connections at once."""
        self._server.force_exit = True
        for each in list(self._server.server_state.connections):
            if each.transport is not None:
                each.transport.abort()


def listening_on(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a host and a port; 0: any free one.

    Raises:
        InvalidArgumentError: That is not possible.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return tuned(socket.create_server((host, port), family=family, backlog=1024))
    except OSError as error:
        rule = f"cannot be listened on: {error.strerror or error}; choose another port or host"
        raise InvalidArgumentError("http", f"{host}:{port}", rule) from None


def tuned(listening: socket.socket) -> socket.socket:
    """Set what the connections of a listening TCP socket inherit, and return it."""
    # An answer of several parts would otherwise wait for the client's acknowledgement.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Otherwise the system would buffer up to some megabytes of what a client does not read.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):  # a client that vanished is noticed in two minutes instead of two hours
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return listening


def address_of_socket(listening: socket.socket) -> str:
    """Return the address of a listening socket, for people."""
    name = listening.getsockname()
    if listening.family == socket.AF_UNIX:
        return f"unix://{name}"
    return f"http://[{name[0]}]:{name[1]}" if ":" in name[0] else f"http://{name[0]}:{name[1]}"


class _Server(uvicorn.Server):
    """A server that leaves the signals to the process."""

    def install_signal_handlers(self) -> None:
        pass

    def capture_signals(self) -> Any:
        return nullcontext()


# uvicorn's protocol, with a limit on how long a client may take for the head of a request, and with answers of JSON.
#
# uvicorn closes connections between requests, but waits for ever for a head that was begun, or never comes, and for a
# client that does not read its answer. A client that opens many such connections would take the room of others. What is
# not HTTP, it answers with plain text.

#: Seconds that the head of a request may take.
HEAD_S = 10.0


class PatientProtocol(H11Protocol):
    """A connection whose requests must begin in time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._head_ends: asyncio.TimerHandle | None = self.loop.call_later(HEAD_S, self._give_up)
        self._reader = SlowReader(transport)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader.begin()

    def resume_writing(self) -> None:
        self._reader.end()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering and self._head_ends is not None:
            self._head_ends.cancel()
            self._head_ends = None
        elif not answering and self._head_ends is None:
            self._head_ends = self.loop.call_later(HEAD_S, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._head_ends is not None:
            self._head_ends.cancel()
        self._reader.end()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not a request of HTTP, and close the connection. See `H11Protocol`."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # within an answer
            self.transport.close()
            return
        answer = problem(ProtocolError("the request is not one of HTTP/1.1"), HTTPStatus.BAD_REQUEST)
        headers = [*self.server_state.default_headers, *answer.raw_headers, (b"connection", b"close")]
        events: tuple[Any, ...] = (
            h11.Response(status_code=answer.status_code, headers=headers, reason=b"Bad Request"),
            h11.Data(data=bytes(answer.body)),
            h11.EndOfMessage(),
        )
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()

    def _give_up(self) -> None:
        self._head_ends = None
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()
