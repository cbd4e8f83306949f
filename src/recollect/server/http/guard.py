"""Admission of requests: the token, the Host and the origin of a request, and how many run for one client.

Host is checked because a web page can let its own name point to this machine (DNS rebinding), and the origin because it
can send a request to another one (`server.addresses`). Both are refused unless they are named.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from recollect import errors
from recollect.errors import AccessError, ProtocolError, RecollectError, ServerBusyError, TokenError
from recollect.server.addresses import foreign_page
from recollect.server.limits import BODY_BYTES, BODY_S, MOST_RUNNING
from recollect.server.tokens import Tokens, hash_of
from recollect.wire import ADMIN, Grant, encode

#: How much of a body that is too large is read, so that its client reads the answer, and for how many seconds each part
#: of it is waited for.
_DISCARDED_BYTES, _DISCARDED_S = 64 * 2**20, 1.0


@dataclass
class Guard:
    """The rules of an HTTP server.

    Attributes:
        tokens: The tokens; None: none is needed.
        hosts: The names that Host may have, without a port; None: any.
        origins: The origins that may send requests from web pages.
        body_bytes: Maximum size of a body.
        body_s: Seconds that a body may take to arrive.
        most_running: Number of requests of one token that run at the same time.
        read_only: Whether every client can only read.
        linked: The beginning of the paths of further pages to which other pages may link; "": there are none.
    """

    tokens: Tokens | None = None
    hosts: frozenset[str] | None = None
    origins: frozenset[str] = frozenset()
    body_bytes: int = BODY_BYTES
    body_s: float = BODY_S
    most_running: int = MOST_RUNNING
    read_only: bool = False
    linked: str = ""
    _running: Counter[str] = field(default_factory=Counter)

    def refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that may not be sent; None if it may."""
        if self.hosts is not None:
            host = request.headers.get("host", "")
            name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
            if name.lower() not in self.hosts:
                rule = f"the server is not called {name!r:.80}: name it with --allow-host"
                return problem(ProtocolError(rule), HTTPStatus.MISDIRECTED_REQUEST)
        page = foreign_page(
            request.method,
            request.scope["path"],
            request.scope["headers"],
            _own_origin(request),
            self.origins,
            self.linked,
        )
        if page is not None:
            refused = AccessError(f"requests of web pages of {page}", "this server", "name it with --allow-origin")
            return problem(refused, HTTPStatus.FORBIDDEN)
        framings = [name for name, _ in request.scope["headers"] if name in (b"content-length", b"transfer-encoding")]
        if len(set(framings)) > 1:  # a proxy may have taken another end of the body for its end (RFC 9112, 6.1)
            out = problem(ProtocolError("the request has both Content-Length and Transfer-Encoding"))
            out.headers["Connection"] = "close"
            return out
        return None

    def grant(self, request: Request) -> Grant:
        """Return what the token of a request allows.

        Raises:
            TokenError: It has none that the server knows.
        """
        grant = self._stated(request)
        return grant.read_only() if self.read_only else grant

    def check_again(self, request: Request, grant: Grant) -> None:
        """Check that the token of a request still allows what it did, for an answer that takes long.

        Raises:
            TokenError: It was revoked or changed.
        """
        if self.grant(request) != grant:
            raise TokenError("the token allows something else than when the request came")

    def check_operator(self, request: Request) -> None:
        """Check that a request may see what concerns the whole store, such as metrics, also where it can only read.

        Raises:
            AccessError: Its token is none of an admin, or one of some namespaces or of a scope.
        """
        grant = self._stated(request)
        if grant.right != ADMIN or grant.namespaces is not None or grant.scope.fixed:
            raise AccessError("metrics, which are those of the whole store")

    def _stated(self, request: Request) -> Grant:
        """Return what the token of a request allows where the server can be written."""
        return Grant() if self.tokens is None else self.tokens.grant(_token(request.headers))

    def check_room(self, request: Request) -> str:
        """Return whose request it is, unless as many of them run already as may.

        Raises:
            TooManyError: As many run.
        """
        token = _token(request.headers) if self.tokens is not None else None
        key = "" if token is None else hash_of(token)
        if self._running[key] >= self.most_running:
            raise TooManyError(f"{self.most_running} requests of this token run already", 1.0)
        return key

    @contextmanager
    def running(self, request: Request) -> Iterator[None]:
        """Count a request while it runs, and a stream while it lasts.

        Raises:
            TooManyError: As many of its token run already.
        """
        key = self.check_room(request)
        self._running[key] += 1
        try:
            yield
        finally:
            self._running[key] -= 1
            if not self._running[key]:
                del self._running[key]

    async def body(self, request: Request) -> bytes:
        """Return the body of a request.

        Raises:
            TooLargeError: It is too large.
            TooSlowError: It does not arrive in time.
        """
        stated = request.headers.get("content-length", "")
        if stated.isdigit() and int(stated) > self.body_bytes:
            if int(stated) <= self.body_bytes + _DISCARDED_BYTES:
                await self._discarded(request)
            raise TooLargeError(f"the body has {stated} bytes, and may have {self.body_bytes}")
        parts: list[bytes] = []
        size, more = 0, True
        try:
            async with asyncio.timeout(self.body_s):
                while more and size <= self.body_bytes:
                    message = await request.receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    more = message.get("more_body", False)
        except TimeoutError:
            raise TooSlowError(f"the body did not arrive within {self.body_s:g} s") from None
        if size > self.body_bytes:
            parts.clear()
            if more:
                await self._discarded(request)
            raise TooLargeError(f"the body has more than {self.body_bytes} bytes")
        return b"".join(parts)

    async def _discarded(self, request: Request) -> None:
        """Read a body on without keeping it, within bounds: a client that still sends would not read the answer."""
        left = _DISCARDED_BYTES
        with suppress(TimeoutError):
            while left > 0:
                async with asyncio.timeout(_DISCARDED_S):
                    message = await request.receive()
                left -= len(message.get("body", b""))
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return


class TooManyError(ServerBusyError):
    """Too many requests of one token run."""

    http_status = HTTPStatus.TOO_MANY_REQUESTS


class TooLargeError(ProtocolError):
    """A body is too large."""

    http_status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class TooSlowError(ProtocolError):
    """A body did not arrive in time."""

    http_status = HTTPStatus.REQUEST_TIMEOUT


def _token(headers: Mapping[str, str]) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if not token:
        return None
    if scheme.lower() != "bearer":
        raise TokenError(f"the request is authorized by {scheme!r:.40}")
    return token.strip()


def _own_origin(request: Request) -> str:
    return f"{request.url.scheme}://{request.headers.get('host', '')}"


# Errors as problem details (RFC 9457): the status that fits, and the code and fields of ours.

#: Class of error -> status, the first that fits.
_STATUS: tuple[tuple[type[RecollectError], HTTPStatus], ...] = (
    (errors.TokenError, HTTPStatus.UNAUTHORIZED),
    (errors.AccessError, HTTPStatus.FORBIDDEN),
    (errors.ScopeError, HTTPStatus.FORBIDDEN),
    (errors.OriginError, HTTPStatus.FORBIDDEN),
    (errors.ReadOnlyMemoryError, HTTPStatus.FORBIDDEN),
    (errors.ReadOnlyStoreError, HTTPStatus.FORBIDDEN),
    (errors.DeadlineError, HTTPStatus.GATEWAY_TIMEOUT),
    (errors.ServerBusyError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.StoreBusyError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.StoreServerError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.StoreReplacedError, HTTPStatus.SERVICE_UNAVAILABLE),  # of a batch: another one uses the new store
    (errors.UnknownRecordError, HTTPStatus.NOT_FOUND),
    (errors.UnknownTargetError, HTTPStatus.NOT_FOUND),
    (errors.UnknownBranchError, HTTPStatus.NOT_FOUND),
    (errors.BranchExistsError, HTTPStatus.CONFLICT),
    (errors.BranchInUseError, HTTPStatus.CONFLICT),
    (errors.BranchLimitError, HTTPStatus.CONFLICT),
    (errors.StoreMissingError, HTTPStatus.NOT_FOUND),
    (errors.ConflictError, HTTPStatus.CONFLICT),
    (errors.RecordExistsError, HTTPStatus.CONFLICT),
    (errors.ValidityError, HTTPStatus.CONFLICT),
    (errors.ClosedError, HTTPStatus.CONFLICT),
    (errors.IdempotencyError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.RejectedError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.QuotaError, HTTPStatus.INSUFFICIENT_STORAGE),
    (errors.StoreFullError, HTTPStatus.INSUFFICIENT_STORAGE),
    (errors.StaleReadError, HTTPStatus.CONFLICT),
    (errors.StoreError, HTTPStatus.INTERNAL_SERVER_ERROR),
    (errors.ProtocolError, HTTPStatus.BAD_REQUEST),
    (errors.AnswerTooLargeError, HTTPStatus.BAD_REQUEST),
    (errors.ResultChangedError, HTTPStatus.CONFLICT),
    (errors.ServerError, HTTPStatus.INTERNAL_SERVER_ERROR),
)


def status_of(error: RecollectError) -> HTTPStatus:
    """Return the status of an error."""
    own: HTTPStatus | None = getattr(error, "http_status", None)  # only of errors of this server
    return own or next((status for kind, status in _STATUS if isinstance(error, kind)), HTTPStatus.BAD_REQUEST)


def problem(error: RecollectError, status: HTTPStatus | None = None) -> Response:
    """Return an error as an answer.

    Args:
        status: The status; None: that of its class.
    """
    status = status or status_of(error)
    stated = error.to_json()
    body: dict[str, Any] = {
        "type": f"urn:recollect:error:{error.code}",
        "title": status.phrase,
        "status": int(status),
        "detail": stated["message"],
        "code": stated["error"],
        "args": stated["args"],
    }
    if stated.get("unchanged"):
        body["unchanged"] = True
    headers = {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if status in (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS):
        after = error.args[1] if isinstance(error, errors.ServerBusyError) else 1.0
        headers["Retry-After"] = str(max(1, math.ceil(after)))
    return Response(encode(body), int(status), headers, "application/problem+json")
