"""One request over HTTP: checked, read, executed in a thread, and answered, with a hash of the answer as ETag."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Coroutine, Hashable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from recollect import Memory
from recollect.errors import CommitInDoubtError, DeadlineError, ProtocolError, RecollectError, UnknownArgumentError
from recollect.server.calls import LONG, ClientCalls, internal_error, reads
from recollect.server.http.guard import Guard, problem
from recollect.server.limits import CALL_S
from recollect.server.waits import Waits
from recollect.wire import PROTOCOL, ClientBatch, Grant, Place, Right, decode, encode, read_place
from recollect.wire.seen import SEEN_HEADER, SEQ_HEADER, read_seen
from recollect.wire.trace import TRACE, trace_of

T = TypeVar("T")
#: The header with the version of the messages.
VERSION_HEADER = "Recollect-Protocol"
#: The name of the branch; without it, the main one.
BRANCH_HEADER = "Recollect-Branch"
KEY_HEADER = "Idempotency-Key"
#: What stands for "/" within a part of a path (%2F), while the route is searched. No name contains it.
SLASH = "\x1e"
#: Seconds that a read takes before it is noticed that its client has left: watching costs more than most reads.
LOOK_S = 0.5
#: Texts up to this length are parsed in the event loop.
_SHORT = 16 * 2**10
#: Size of the parts of a long answer.
_PART = 64 * 2**10


class OpenedBatch(NamedTuple):
    """A batch that is open, its namespace, the grant of who opened it, and what ends it in time."""

    batch: ClientBatch
    namespace: str
    grant: Grant
    ends: asyncio.TimerHandle


@dataclass
class Site:
    """The state that all requests of a server share.

    Attributes:
        calls: Executes calls.
        waits: Waits for commits.
        guard: Who may send which request.
        call_s: Seconds that a call may take before its client is answered. A write runs to its end nevertheless.
        batches: The open batches, by their number.
        beginning: The clients whose batch is about to wait for its turn.
        committed: The batches that were committed last, and whose they were.
        batch_prefix: What the numbers of batches begin with.
    """

    calls: ClientCalls
    waits: Waits
    guard: Guard
    call_s: float = CALL_S
    batches: dict[str, OpenedBatch] = field(default_factory=dict)
    beginning: set[Hashable] = field(default_factory=set)
    committed: OrderedDict[str, Grant] = field(default_factory=OrderedDict)
    batch_prefix: str = ""


class Exchange:
    """A request and what its handler needs.

    Attributes:
        grant: What its client may do.
        site: What all requests share.
        calls: Executes calls.
        seq: The token of the newest commit that was read or made, if the client states what it has seen (`wire.seen`).
    """

    def __init__(self, request: HttpRequest, grant: Grant, site: Site) -> None:
        self.request = request
        self.grant = grant
        self.site = site
        self.calls = site.calls
        self.seq = ""

    def parameter(self, name: str) -> str:
        """Return a part of the path."""
        return str(self.request.path_params[name]).replace(SLASH, "/")

    @property
    def client(self) -> str:
        """Whose request it is, for turns: that of its token, or else of its connection."""
        peer = self.request.client
        return self.grant.client or (f"{peer.host}:{peer.port}" if peer is not None else "")

    @property
    def namespace(self) -> str:
        """The namespace that the path names."""
        return self.parameter("namespace")

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
            branch = self.request.headers.get(BRANCH_HEADER)
            if branch is not None and data.setdefault("branch", branch) != branch:
                raise ProtocolError(f'"in" names another branch than the header {BRANCH_HEADER}')
        return read_place(data)

    def check_query(self, *known: str) -> None:
        """Raise ProtocolError if the query has another parameter than those that the route takes."""
        names = [name for name, _ in self.request.query_params.multi_items()]
        if unknown := sorted(set(names) - set(known)):
            raise ProtocolError(f"this request takes no {unknown[0]!r:.80} in its query")
        if len(set(names)) < len(names):
            raise ProtocolError(f"the query has {max(names, key=names.count)!r:.80} twice")

    async def json(self, known: Collection[str] | None = None) -> Any:
        """Return the body, which must be a JSON object; {} if there is none.

        Args:
            known: The fields that the route takes; None: those of a call, which checks them.

        Raises:
            ProtocolError: The body is not a JSON object, or the request has a query, which would be ignored.
            UnknownArgumentError: It has another field.
        """
        self.check_query()
        raw = await self.site.guard.body(self.request)
        data = await self.parsed(raw) if raw else {}
        if not isinstance(data, Mapping):
            raise ProtocolError("the body is not a JSON object")
        if known is not None and (unknown := sorted(data.keys() - set(known))):
            raise UnknownArgumentError("the request", unknown[0])
        return data

    async def parsed(self, raw: bytes) -> Any:
        """Return what a text of JSON says; a long one is parsed in a thread, so that no request waits for it.

        Raises:
            ProtocolError: The text is not JSON.
        """
        return await self.run("parse", lambda: decode(raw)) if len(raw) > _SHORT else decode(raw)

    async def run(self, name: str, call: Callable[[], Any]) -> Any:
        """Run a call in a thread and return its result.

        Raises:
            ClientDisconnect: It reads, and the client has left. It ends soon.
            CommitInDoubtError: It writes, and has not ended in time. It goes on.
            DeadlineError: It reads, and has not ended in time. It ends soon.
            RecollectError: What it raises.
        """
        seen = self.request.headers.get(SEEN_HEADER)
        if seen is not None and "namespace" in self.request.path_params:
            call = self._seeing(call, read_seen(seen))
        try:
            async with asyncio.timeout(None if name in LONG else self.site.call_s):
                work = self.calls.run("http", name, call, client=self.client)
                # A stream notices by itself that its client has left.
                return await (self._unless_left(work) if reads(name) and name != "export" else work)
        except TimeoutError:
            if reads(name):
                raise DeadlineError(self.site.call_s) from None
            raise CommitInDoubtError("the store", f"it takes longer than {self.site.call_s:g} s, and goes on") from None

    def _seeing(self, call: Callable[[], Any], seen: list[str]) -> Callable[[], Any]:
        """Return a call that shows nothing older than its client has seen, and notes the newest commit."""

        def made() -> Any:
            with self.calls.desk.seeing(self.namespace, seen, self.grant) as token:
                try:
                    return call()
                finally:
                    self.seq = token()

        return made

    async def _unless_left(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns. If it takes long, it is cancelled when the client leaves."""
        doing = asyncio.ensure_future(work)
        try:
            await asyncio.wait((doing,), timeout=LOOK_S)
            return await (doing if doing.done() else self.while_connected(doing))
        finally:
            doing.cancel()

    async def while_connected(self, work: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
        """Return what some work returns, which is cancelled if the client leaves. The body must have been read.

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

    def answer(
        self,
        body: bytes,
        status: HTTPStatus = HTTPStatus.OK,
        *,
        same: bytes | None = None,
        is_read: bool | None = None,
    ) -> Response:
        """Return an answer of JSON. One to GET has an ETag; if the client has it already, the answer has no body.

        Args:
            body: The answer.
            same: What the ETag is a hash of, if two answers can mean the same although their bytes differ.
            is_read: Whether nothing was changed, so that the answer can be refused; None: if it is one to GET.

        Raises:
            ServerBusyError: It is large, and too much of other answers is not read yet.
        """
        headers = {VERSION_HEADER: str(PROTOCOL)}
        if self.seq:
            headers[SEQ_HEADER] = self.seq
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
        if is_read or (is_read is None and self.request.method in ("GET", "HEAD")):
            self.calls.unread.check(self.client, len(body))
        return _InParts(body, int(status), headers, "application/json")

    def json_answer(self, value: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:
        """Return a value as an answer."""
        return self.answer(encode(value), status)


class _InParts(Response):
    """An answer of which a long body is sent in parts, each when the client has read those before it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for at in range(0, len(self.body) or 1, _PART):
            more = at + _PART < len(self.body)
            await send({"type": "http.response.body", "body": self.body[at : at + _PART], "more_body": more})


#: The statuses of requests whose body was not read to its end.
_CUT_OFF = (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.REQUEST_TIMEOUT)
Handler = Callable[[Exchange], Awaitable[Response]]


class CheckedHandler:
    """A handler as Starlette calls it: with the checks before it, its errors as answers, and its request counted until
    the answer is sent. An ASGI application.

    Args:
        handler: Answers requests.
        site: What all requests share.
    """

    def __init__(self, handler: Handler, site: Site) -> None:
        self._handler = handler
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HttpRequest(scope, receive, send)
        guard = self._site.guard
        try:
            grant = guard.grant(request)
            TRACE.set(trace_of(request.headers))  # for the task of this request
            with nullcontext() if self._is_of_open_batch(request, grant) else guard.running(request):
                exchange = Exchange(request, grant, self._site)
                response = await self._answer(exchange)
                unread, client = self._site.calls.unread, exchange.client
                counted = unread.add(client, len(response.body) if isinstance(response, _InParts) else 0)
                try:
                    await response(scope, receive, send)
                finally:
                    unread.remove(client, counted)
                return
        except RecollectError as error:
            response = problem(error)
        await response(scope, receive, send)

    async def _answer(self, exchange: Exchange) -> Response:
        try:
            return await self._handler(exchange)
        except RecollectError as error:
            response = problem(error)
            if response.status_code in _CUT_OFF:
                response.headers["Connection"] = "close"
            return response
        except ClientDisconnect:  # the client does not read the answer
            return Response(None, HTTPStatus.BAD_REQUEST)
        except Exception as error:  # noqa: BLE001 - logged without contents, which a traceback may quote
            return problem(internal_error(_route_of(exchange.request), error))

    def _is_of_open_batch(self, request: HttpRequest, grant: Grant) -> bool:
        """Return whether a request is one of an open batch of its client.

        Those are not counted: the batch has the lock that the others wait for, and they would keep it from ending.
        """
        opened = self._site.batches.get(request.path_params.get("batch", ""))
        return opened is not None and opened.grant == grant


def _route_of(request: HttpRequest) -> str:
    """Return the route of a request, for the log: the path itself may have an id."""
    return str(getattr(request.scope.get("route"), "path", "a request"))
