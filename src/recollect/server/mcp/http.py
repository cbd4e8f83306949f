"""The transport over streamable HTTP, for several clients.

Without a token, the server listens on the loopback interface only, and refuses requests that a web page of another
origin makes. With one, each request must carry it.
"""

from __future__ import annotations

import hmac
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.errors import InvalidArgumentError
from recollect.server.addresses import SAFE_HEADERS, foreign_page, is_loopback
from recollect.server.mcp.protocol import Protocol

PATH = "/mcp"
#: Maximum number of connections and of sessions. Further ones are refused.
_CONNECTIONS, _SESSIONS = 256, 1024
_MOST_BYTES = 4 * 2**20


async def serve_http(
    protocol: Protocol, host: str, port: int, *, token: str | None, ready: Callable[[str], object]
) -> None:
    """Serve clients until the process gets a signal to end.

    Args:
        protocol: The handlers.
        host: The host to listen on.
        port: The port; 0: any free one.
        token: What clients must send as "Authorization: Bearer TOKEN"; None: nothing.
        ready: Called with the address when clients can connect.

    Raises:
        InvalidArgumentError: The host can be reached by other machines and there is no token, or the address cannot
            be used.
    """
    if token is None and not is_loopback(host):
        rule = "can be reached by other machines: pass --token-file FILE, or listen on 127.0.0.1"
        raise InvalidArgumentError("http", host, rule)
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family)
        # Connections inherit it. asyncio sets it only if the socket names its protocol, and an answer of several parts
        # would wait 40 ms for the client's acknowledgement.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        rule = f"cannot be listened on: {error.strerror or error}; choose another port or host"
        raise InvalidArgumentError("http", f"{host}:{port}", rule) from None
    server = protocol.server()
    shown = f"[{host}]" if ":" in host else host
    app: ASGIApp = server.streamable_http_app(
        streamable_http_path=PATH,
        host=host,
        max_request_body_size=_MOST_BYTES,
        max_sessions=_SESSIONS,
        transport_security=_for_this_machine(shown) if is_loopback(host) else None,
    )
    config = uvicorn.Config(
        _OfNoOtherSite(app if token is None else _Authorized(app, token)),
        log_level="warning",
        headers=list(SAFE_HEADERS),
        access_log=False,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=5,
    )
    with listening:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(protocol.subscribers.run)
            ready(f"http://{shown}:{listening.getsockname()[1]}{PATH}")
            await uvicorn.Server(config).serve(sockets=[listening])
            tasks.cancel_scope.cancel()


def _for_this_machine(shown: str) -> TransportSecuritySettings:
    """Return settings that refuse requests of web pages, which can reach a server of this machine, too."""
    hosts = dict.fromkeys([shown, "127.0.0.1", "localhost", "[::1]"])
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[f"{host}:*" for host in hosts],
        allowed_origins=[f"http://{host}:*" for host in hosts],
    )


class _OfNoOtherSite:
    """An application that refuses what pages of other sites load without stating their origin, which the SDK checks."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = [each for each in scope["headers"] if each[0].startswith(b"sec-fetch-")]
            if (page := foreign_page(scope["method"], scope["path"], headers, "", ())) is not None:
                body = b'{"error": "requests of %s are refused"}' % page.replace('"', "'").encode("ascii", "replace")
                await _refuse(send, 403, body)
                return
        await self._app(scope, receive, send)


class _Authorized:
    """An application that refuses requests without the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                body = b'{"error": "the token is missing or wrong: send Authorization: Bearer TOKEN"}'
                await _refuse(send, 401, body, (b"www-authenticate", b"Bearer"))
                return
        await self._app(scope, receive, send)


async def _refuse(
    send: Callable[[dict[str, Any]], Awaitable[None]], status: int, body: bytes, *more: tuple[bytes, bytes]
) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
