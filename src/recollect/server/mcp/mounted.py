"""MCP clients of an HTTP server that serves others, too: one protocol for each grant, on the memory that all share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import NoReturn, TypeVar, cast

import anyio
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect import Memory
from recollect.errors import AccessError, RecollectError
from recollect.records.origins import ASSISTANT, RANKS, USER, least
from recollect.server.calls import ClientCalls, internal_error
from recollect.server.mcp.http import PATH
from recollect.server.mcp.protocol import Protocol
from recollect.server.mcp.tools import Access, McpTool, ToolError, of_client
from recollect.server.mcp.toolsets import tools_of
from recollect.server.served_memory import ServedMemory
from recollect.wire import OWN, READ, Grant, read_place

T = TypeVar("T")
_MOST_BYTES = 4 * 2**20
#: Maximum number of sessions of one grant.
_SESSIONS = 256


class SharedAccess(Access):
    """The part of a shared memory that the MCP clients of one grant may reach.

    Args:
        served: The memory of the server.
        grant: What they may do.
    """

    def __init__(self, served: ServedMemory, grant: Grant, namespace: str) -> None:
        fixed = dict(grant.scope.fixed)
        super().__init__(self._refuse, read_only=grant.right == READ)
        self._grant = grant
        self.user = fixed.get("user")
        self._served = served

        def view(memory: Memory) -> Memory:
            inside = memory.namespace(namespace)
            inside = inside.scoped(**fixed) if fixed else inside
            origin = least((grant.origin, ASSISTANT))
            # One that may write as the user over HTTP names itself the same when it does.
            return of_client(inside, origin) if RANKS[grant.origin] < RANKS[USER] else inside.as_origin(origin)

        self._narrowed = view

    def signed(self, stated: str | None) -> str | None:
        """Return what commits name as the actor: the client and its token."""
        return self._grant.signed(stated)

    def reading(self) -> Memory:
        """Return the memory for reading."""
        return self._narrowed(self._served.reading())

    def writing(self) -> Memory:
        """Return the memory for writing, and create the store if there is none."""
        return self._narrowed(self._served.writing())

    def check(self) -> None:
        """Do nothing: the server has checked its store."""

    def on_open(self, callback: Callable[[Memory], object]) -> None:
        """Call a function with the memory as soon as there is a store, now or when it is opened (again)."""
        self._served.on_open(lambda memory: callback(self._narrowed(memory)))

    def failed(self, error: RecollectError) -> bool:
        """Note an error of a call. See `ServedMemory.failed`."""
        return self._served.failed(error)

    def close(self) -> None:
        """Do nothing: the memory is that of the server."""

    @staticmethod
    def _refuse(*, create: bool, read_only: bool) -> NoReturn:
        raise AssertionError("the server opens the memory")


class MountedMcp:
    """MCP as a part of an HTTP server.

    Args:
        served: The memory of the server.
        calls: Executes calls, in turn with those of other doors.
        namespace: The namespace of clients whose grant names none, or several.
        sets: The sets of tools.
    """

    def __init__(self, served: ServedMemory, calls: ClientCalls, namespace: str, sets: tuple[str, ...]) -> None:
        tools_of(sets, read_only=False, scoped=False)  # raises if there is no such set
        self._served = served
        self._calls = calls
        self._namespace = namespace
        self._sets = sets
        self._apps: dict[Grant, asyncio.Future[ASGIApp]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()

    async def serve(self, grant: Grant, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of a client.

        Raises:
            AccessError: Its grant does not allow to read the namespace.
        """
        if grant.right == OWN:
            raise AccessError("MCP, whose tools write,")
        if grant not in self._apps:
            self._apps[grant] = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._run(grant, self._apps[grant]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        app = await asyncio.shield(self._apps[grant])
        await app({**scope, "path": PATH, "raw_path": PATH.encode()}, receive, send)

    async def close(self) -> None:
        """End all sessions."""
        self._ended.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _namespace_of(self, grant: Grant) -> str:
        allowed = grant.namespaces
        name = next(iter(allowed)) if allowed is not None and len(allowed) == 1 else self._namespace
        if allowed is not None and name not in allowed:
            raise AccessError(f"the namespace {name!r}, which MCP clients use")
        return name

    async def _made(self, grant: Grant, client: str, name: str, reads: bool, call: Callable[[], T]) -> T:
        """Make a call in turn. See `protocol.Runner`."""
        raised: list[Exception] = []

        def made() -> T | None:
            try:
                return call()
            except Exception as error:  # noqa: BLE001 - raised below: what a tool raises is known to the protocol
                raised.append(error)
                return None

        try:
            with anyio.CancelScope(shield=True):  # a write must not be cut off
                result = await self._calls.run("mcp", name, made, client=grant.client or client, writes=not reads)
        except RecollectError as error:  # it was refused
            raise ToolError(f"{error} [{error.code}]") from None
        if raised:
            raise raised[0]
        return cast("T", result)

    async def _run(self, grant: Grant, ready: asyncio.Future[ASGIApp]) -> None:
        """Run the protocol of a grant until the server stops."""
        try:
            namespace = self._namespace_of(grant)
            self._calls.desk.memory(read_place({"namespace": namespace}), grant, READ)
            access = SharedAccess(self._served, grant, namespace)
            tools: Mapping[str, McpTool] = tools_of(
                self._sets, read_only=access.read_only, scoped=bool(grant.scope.fixed)
            )
            protocol = Protocol(access, tools, partial(self._made, grant))
            app = protocol.server().streamable_http_app(
                streamable_http_path=PATH,
                host="0.0.0.0",  # the host and the origin of requests have been checked
                max_request_body_size=_MOST_BYTES,
                max_sessions=_SESSIONS,
                transport_security=None,
            )
            async with anyio.create_task_group() as tasks, app.router.lifespan_context(app):
                tasks.start_soon(protocol.subscribers.run)
                ready.set_result(app)
                await self._ended.wait()
                tasks.cancel_scope.cancel()
        except BaseException as error:
            known = error if isinstance(error, RecollectError) else internal_error("mcp", error)
            if not ready.done():
                ready.set_exception(known)
            if not isinstance(error, Exception):
                raise
        finally:
            if not self._ended.is_set():
                self._apps.pop(grant, None)  # another request tries again
