"""One request over HTTP: checked, read, executed in a thread, and answered, with a hash of the answer as ETag."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from recollect import Memory
from recollect.errors import CommitInDoubtError, ProtocolError, RecollectError, ServerBusyError
from recollect.server.calls import Calls, internal_error
from recollect.server.http.guard import Guard
from recollect.server.http.problems import problem
from recollect.server.waits import Waits
from recollect.wire import PROTOCOL, Grant, OpenBatch, Place, Right, decode, encode, reads

T = TypeVar("T")
#: The header with the version of the messages.
VERSION_HEADER = "Recollect-Protocol"
KEY_HEADER = "Idempotency-Key"
#: Texts up to this length are parsed in the event loop.
_SHORT = 16 * 2**10


class OpenedBatch(NamedTuple):
    """A batch that is open, its namespace, the grant of who opened it, and what ends it in time."""

    batch: OpenBatch
    namespace: str
    grant: Grant
    ends: asyncio.TimerHandle


@dataclass
class Site:
    """What all requests of a server share.

    Attributes:
        calls: Executes calls.
        waits: Waits for commits.
        guard: Who may send which request.
        call_s: Seconds that a call may take before its client is answered. It runs to its end nevertheless.
        batches: The open batches, by their number.
    """

    calls: Calls
    waits: Waits
    guard: Guard
    call_s: float = 60.0
    batches: dict[str, OpenedBatch] = field(default_factory=dict)


class Exchange:
    """A request and what its handler needs.

    Attributes:
        request: The request.
        grant: What its client may do.
        site: What all requests share.
        calls: Executes calls.
    """

    def __init__(self, request: HttpRequest, grant: Grant, site: Site) -> None:
        self.request = request
        self.grant = grant
        self.site = site
        self.calls = site.calls

    @property
    def namespace(self) -> str:
        """The namespace that the path names."""
        return str(self.request.path_params["namespace"])

    def place(self, stated: object = None) -> Place:
        """Return the place of a request: the namespace of its path, what its headers say, and its "in".

        Raises:
            ProtocolError: "in" names another namespace, or is invalid.
        """
        data = dict(stated) if isinstance(stated, Mapping) else {} if stated is None else stated
        if isinstance(data, dict):
            if data.setdefault("namespace", self.namespace) != self.namespace:
                raise ProtocolError('"in" names another namespace than the path')
            if (key := self.request.headers.get(KEY_HEADER)) is not None:
                data["key"] = key
        return Place.from_json(data)

    def check_query(self, *known: str) -> None:
        """Raise ProtocolError if the query has another parameter than those that the route takes."""
        if unknown := sorted(set(self.request.query_params) - set(known)):
            raise ProtocolError(f"this request takes no {unknown[0]!r:.80} in its query")

    async def json(self) -> Any:
        """Return the body, which must be a JSON object; {} if there is none.

        Raises:
            ProtocolError: It is none, or the request has a query, which would be ignored.
        """
        self.check_query()
        raw = await self.site.guard.body(self.request)
        data = await self.parsed(raw) if raw else {}
        if not isinstance(data, Mapping):
            raise ProtocolError("the body is not a JSON object")
        return data

    async def parsed(self, raw: bytes) -> Any:
        """Return what a text of JSON says; a long one is parsed in a thread, so that nobody waits for it.

        Raises:
            ProtocolError: It is no JSON.
        """
        return await self.run("parse", lambda: decode(raw)) if len(raw) > _SHORT else decode(raw)

    async def run(self, name: str, call: Callable[[], Any]) -> Any:
        """Run a call in a thread and return its result.

        Raises:
            CommitInDoubtError: It writes, and has not ended in time. It goes on.
            ServerBusyError: It reads, and has not ended in time.
            RecollectError: What it raises.
        """
        try:
            async with asyncio.timeout(self.site.call_s):
                return await self.calls.run("http", name, call)
        except TimeoutError:
            if reads(name):
                raise ServerBusyError(f"it takes longer than {self.site.call_s:g} s", self.site.call_s) from None
            raise CommitInDoubtError("the store", f"it takes longer than {self.site.call_s:g} s, and goes on") from None

    async def while_connected(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns, which is cancelled if the client leaves. The body must have been read.

        Raises:
            ClientDisconnect: The client has left.
        """
        doing, leaving = asyncio.ensure_future(work), asyncio.ensure_future(self._left())
        try:
            await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                raise ClientDisconnect
            return await doing
        finally:
            doing.cancel()
            leaving.cancel()

    async def _left(self) -> None:
        """Wait until the client leaves."""
        while (await self.request.receive())["type"] != "http.disconnect":
            pass

    async def on_memory(
        self, name: str, right: Right, call: Callable[[Memory], Any], place: Place | None = None
    ) -> Any:
        """Run a call on the memory of the request's place, in a thread."""
        where = place or self.place()
        return await self.run(name, lambda: call(self.calls.desk.memory(where, self.grant, right)))

    def answer(self, body: bytes, status: HTTPStatus = HTTPStatus.OK, *, same: bytes | None = None) -> Response:
        """Return an answer of JSON. One to GET has an ETag; if the client has it already, the answer has no body.

        Args:
            body: The answer.
            status: Its status.
            same: What the ETag is a hash of, if two answers can mean the same although their bytes differ.
        """
        headers = {VERSION_HEADER: str(PROTOCOL)}
        if self.request.method in ("GET", "HEAD"):
            tag = f'"{hashlib.sha256(body if same is None else same).hexdigest()[:32]}"'
            headers["ETag"] = tag if same is None else f"W/{tag}"
            headers["Cache-Control"] = "private, no-cache"
            headers["Vary"] = "Authorization, Accept"
            known = self.request.headers.get("if-none-match", "")
            if known and (
                known.strip() == "*" or tag in (each.strip().removeprefix("W/") for each in known.split(","))
            ):
                return Response(None, HTTPStatus.NOT_MODIFIED, headers)
        return Response(body, int(status), headers, "application/json")

    def json_answer(self, value: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:
        """Return a value as an answer."""
        return self.answer(encode(value), status)


#: The statuses of requests whose body was not read to its end.
_CUT_OFF = (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.REQUEST_TIMEOUT)
Handler = Callable[[Exchange], Awaitable[Response]]


def endpoint(handler: Handler, site: Site) -> Callable[[HttpRequest], Awaitable[Response]]:
    """Return a handler as Starlette calls it: with the checks before it, and its errors as answers."""

    async def handle(request: HttpRequest) -> Response:
        refusal = site.guard.refusal(request)
        if refusal is not None:
            return refusal
        try:
            grant = site.guard.grant(request)
            with site.guard.running(request):
                return await handler(Exchange(request, grant, site))
        except RecollectError as error:
            response = problem(error)
            if response.status_code in _CUT_OFF:
                response.headers["Connection"] = "close"
            return response
        except ClientDisconnect:  # nobody reads the answer
            return Response(None, HTTPStatus.BAD_REQUEST)
        except Exception as error:  # noqa: BLE001 - logged without contents, which a traceback may quote
            return problem(internal_error(_route_of(request), error))

    return handle


def _route_of(request: HttpRequest) -> str:
    """Return the route of a request, for the log: the path itself may have an id."""
    return str(getattr(request.scope.get("route"), "path", "a request"))
