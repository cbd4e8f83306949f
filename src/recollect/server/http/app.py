"""The HTTP server as a Starlette application, and as a door of a server, run by uvicorn."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import nullcontext
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from recollect.errors import InvalidArgumentError, ProtocolError, RecollectError, ServerBusyError, StoreError
from recollect.server.addresses import SAFE_HEADERS
from recollect.server.http.batches import undo_all
from recollect.server.http.exchange import KEY_HEADER, SLASH, VERSION_HEADER, CheckedHandler, Exchange, Site
from recollect.server.http.guard import problem
from recollect.server.http.openapi import description
from recollect.server.http.routes import ROUTES
from recollect.server.lines import SlowReader
from recollect.server.metrics import CONTENT_TYPE, Metrics
from recollect.wire import READ, Grant
from recollect.wire.trace import HEADERS

if TYPE_CHECKING:
    from recollect.server.mcp.mounted import MountedMcp

#: Maximum number of connections. Further ones are answered with 503.
CONNECTIONS = 1024
#: How much of an answer the system buffers for a connection, in bytes.
_SEND_BUFFER = 256 * 2**10
#: Seconds that a connection without a request is kept.
_KEPT_S = 75
#: How often it is looked whether the token of a stream of MCP is still valid, in seconds.
_LOOK_S = 1.0


def application(
    site: Site, metrics: Metrics | None, more: tuple[BaseRoute, ...] = (), *, alone: bool = False
) -> Starlette:
    """Return the application.

    Args:
        site: What all requests share.
        metrics: What /metrics shows; None: there is no such path.
        more: Further routes, such as that of MCP.
        alone: Whether there are only those.
    """
    page = resources.files(__package__).joinpath("page.html").read_bytes()
    described = description()

    async def shown(exchange: Exchange) -> Response:
        return Response(page, media_type="text/html; charset=utf-8", headers=_PAGE_HEADERS)

    async def openapi(exchange: Exchange) -> Response:
        return exchange.json_answer(described)

    async def measured(exchange: Exchange) -> Response:
        assert metrics is not None
        site.guard.check_operator(exchange.request)
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    async def ready(exchange: Exchange) -> Response:
        try:
            await exchange.run("now", site.calls.desk.look)
        except StoreError as error:  # without its message: who asks needs no token
            return exchange.json_answer({"ok": False, "code": error.code}, HTTPStatus.SERVICE_UNAVAILABLE)
        return exchange.json_answer({"ok": True})

    routes: list[BaseRoute] = [
        Route(f"/v1/{{namespace}}{each.path}", CheckedHandler(each.handler, site), methods=list(each.methods))
        for each in ROUTES
    ]
    routes += [
        Route("/", _open_to_all(shown, site)),
        Route("/openapi.json", _open_to_all(openapi, site)),
        Route("/healthz", _open_to_all(_healthy, site)),
        Route("/readyz", _open_to_all(ready, site)),
        *more,
    ]
    if alone:
        routes = [*more]
    elif metrics is not None:
        routes.append(Route("/metrics", CheckedHandler(measured, site), methods=["GET"]))
    middleware = [Middleware(_Slashes)]
    if site.guard.origins:
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=sorted(site.guard.origins),
                allow_methods=["GET", "POST", "PATCH", "DELETE"],
                allow_headers=["Authorization", "Content-Type", KEY_HEADER, "If-None-Match", "Last-Event-ID", *HEADERS],
                expose_headers=["ETag", "Retry-After", VERSION_HEADER],
            )
        )
    middleware.append(Middleware(_Guarded, site=site))
    handlers: dict[Any, Any] = {HTTPException: _not_found, Exception: _failed}
    out = Starlette(routes=routes, middleware=middleware, exception_handlers=handlers)
    out.router.redirect_slashes = False  # another path is another resource, and each answer is JSON
    return out


_PAGE_HEADERS = {"Content-Security-Policy": "default-src 'self' 'unsafe-inline'; frame-ancestors 'none'"}


class _Guarded:
    """Refuses requests before they reach a route, whichever that is, and if there is none. An ASGI application.

    Args:
        app: The application.
        site: What all requests share.
    """

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._site.guard.refusal(Request(scope))
        await (refusal or self._app)(scope, receive, send)


class _Slashes:
    """Keeps "/" within a part of a path (%2F), such as a namespace, apart from that between parts. An ASGI application.

    Args:
        app: The application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path") or b""
        if b"%2f" in raw.lower():
            parts = raw.decode("ascii", "replace").split("/")
            scope = {**scope, "path": "/".join(unquote(part).replace("/", SLASH) for part in parts)}
        await self._app(scope, receive, send)


async def _healthy(exchange: Exchange) -> Response:
    return exchange.json_answer({"ok": True})


def _open_to_all(handler: Any, site: Site) -> Callable[[Request], Any]:
    """Return a handler that needs no token: what it shows is the same for everybody."""

    async def handle(request: Request) -> Response:
        try:
            out: Response = await handler(Exchange(request, Grant(right=READ), site))
            return out
        except RecollectError as error:
            return problem(error)

    return handle


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    body = {
        "type": "about:blank",
        "title": error.detail,
        "status": error.status_code,
        "detail": f"{request.method} {request.url.path:.200}: {error.detail}; GET /openapi.json lists what there is",
        "code": ProtocolError.code,
        "args": [],
    }
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:  # Starlette knows those of the first route of the path
        fit = (each for each in request.app.routes if each.matches(request.scope)[0] != Match.NONE)
        headers["Allow"] = ", ".join(sorted({method for each in fit for method in each.methods}))
    return JSONResponse(body, error.status_code, headers, media_type="application/problem+json")


async def _failed(request: Request, error: Exception) -> Response:
    return problem(RecollectError(f"internal error: {type(error).__name__}; see the log of the server"))


class McpClients:
    """An ASGI application that answers MCP clients, with the checks of tokens that all routes have.

    Args:
        site: What all requests share.
        mcp: Serves them.
    """

    def __init__(self, site: Site, mcp: MountedMcp) -> None:
        self._site = site
        self._mcp = mcp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        guard = self._site.guard
        has_begun = streams = False

        async def sent(message: Message) -> None:
            nonlocal has_begun, streams
            if not has_begun:
                streams = any(
                    name.lower() == b"content-type" and value.startswith(b"text/event-stream")
                    for name, value in message.get("headers", ())
                )
            has_begun = True
            await send(message)

        try:
            grant = guard.grant(request)
            with guard.running(request):
                answering = self._mcp.serve(grant, scope, receive, sent)
                await self._while_allowed(answering, request, grant, lambda: streams)
                return
        except RecollectError as error:
            if has_begun:  # a stream, which ends here
                await send({"type": "http.response.body"})
                return
            response = problem(error)
        await response(scope, receive, send)

    async def _while_allowed(
        self, answering: Coroutine[Any, Any, None], request: Request, grant: Grant, streams: Callable[[], bool]
    ) -> None:
        """Answer a request, and cut a stream off, which has no end of its own, when its token is revoked.

        Raises:
            TokenError: It was revoked or changed.
            RecollectError: What the answer raises.
        """
        task = asyncio.ensure_future(answering)
        try:
            while not (await asyncio.wait((task,), timeout=_LOOK_S))[0]:
                if streams():
                    self._site.guard.check_again(request, grant)
            await task
        finally:
            task.cancel()
            await asyncio.wait((task,))


class HttpDoor:
    """The HTTP server as a door.

    Args:
        site: What all requests share.
        app: The application.
        host: The host to listen on.
        port: The port; 0: any free one.
        given: A listening socket that is open already, instead of a host and a port.
        end: Ends what has no end of its own, such as the streams of MCP clients.
    """

    def __init__(
        self,
        site: Site,
        app: Any,
        host: str,
        port: int,
        given: socket.socket | None = None,
        end: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._end = end
        self._site = site
        self._app = app
        self._host, self._port = host, port
        self._socket = given
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
        """Begin to accept clients. See `server.process.Door`."""
        if self._socket is None:
            try:
                family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
                self._socket = socket.create_server((self._host, self._port), family=family, backlog=1024)
            except OSError as error:
                rule = f"cannot be listened on: {error.strerror or error}; choose another port or host"
                raise InvalidArgumentError("http", f"{self._host}:{self._port}", rule) from None
        # Connections inherit it: an answer of several parts would otherwise wait for the client's acknowledgement.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # Otherwise the system would buffer up to some megabytes of what a client does not read.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
            if hasattr(socket, name):  # a client that vanished is noticed in two minutes instead of two hours
                self._socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self._running = asyncio.get_running_loop().create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not self._running.done():
            await asyncio.sleep(0.005)
        name = self._socket.getsockname()
        return f"http://[{name[0]}]:{name[1]}" if ":" in name[0] else f"http://{name[0]}:{name[1]}"

    async def stop(self) -> None:
        """Accept no more clients, and close connections when their calls are answered."""
        undo_all(self._site)
        self._site.waits.stop()
        self._server.should_exit = True
        if self._end is not None:
            await self._end()

    async def flushed(self) -> None:
        """Return when all connections are closed. See `server.process.Door`."""
        if self._running is not None:
            await asyncio.shield(self._running)

    def abort(self) -> None:
        """Close all connections at once."""
        self._server.force_exit = True
        for each in list(self._server.server_state.connections):
            if each.transport is not None:
                each.transport.abort()


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
