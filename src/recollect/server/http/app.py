"""The HTTP server as a Starlette application, and as a door of a server, run by uvicorn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.errors import STOPPING, DeadlineError, ProtocolError, RecollectError, ServerBusyError, StoreError
from recollect.server.http.exchange import (
    BRANCH_HEADER,
    KEY_HEADER,
    SLASH,
    VERSION_HEADER,
    CheckedHandler,
    Exchange,
    Site,
)
from recollect.server.http.guard import problem
from recollect.server.http.openapi import description
from recollect.server.http.routes import ROUTES
from recollect.server.metrics import CONTENT_TYPE, Metrics
from recollect.wire import READ, Grant
from recollect.wire.trace import HEADERS

if TYPE_CHECKING:
    from recollect.server.mcp.mounted import MountedMcp

#: Seconds within which the store must be read for the server to be ready.
READY_S = 2.0
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
            if site.calls.leaving:
                raise ServerBusyError(STOPPING, 1.0)
            async with asyncio.timeout(READY_S):
                store = await exchange.run("now", site.calls.desk.look)
        except TimeoutError:
            return exchange.json_answer({"ok": False, "code": DeadlineError.code}, HTTPStatus.SERVICE_UNAVAILABLE)
        except (StoreError, ServerBusyError) as error:  # without its message: who asks needs no token
            return exchange.json_answer({"ok": False, "code": error.code}, HTTPStatus.SERVICE_UNAVAILABLE)
        return exchange.json_answer({"ok": True, "store": store} if store else {"ok": True})

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
                allow_headers=[
                    "Authorization",
                    "Content-Type",
                    KEY_HEADER,
                    BRANCH_HEADER,
                    "If-None-Match",
                    "Last-Event-ID",
                    *HEADERS,
                ],
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
