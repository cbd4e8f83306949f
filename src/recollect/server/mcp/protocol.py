"""The server of the official SDK, with the tools, the resource and the prompt of a memory.

Calls run in threads, so that a slow one does not delay those of other clients, except that writes wait for each other:
in threads of the protocol, or, in a server that serves others, too, in those of all its doors.
The calls of one session or connection run one after the other, in the order in which they arrive, so that a client sees
what it has written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar
from typing import Protocol as Protocol_
from weakref import WeakValueDictionary

import anyio
import mcp_types as types
from anyio import to_thread
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from recollect._version import __version__
from recollect.server.mcp import reference
from recollect.server.mcp.replies import Replies, ReplyError, actor_of, failure
from recollect.server.mcp.subscribers import MOST_SUBSCRIPTIONS, Subscribers
from recollect.server.mcp.tools import Access, McpTool, ToolError

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]

#: Maximum number of calls that run at the same time.
_CALLS = 16


class Runner(Protocol_):
    """Makes calls in threads."""

    async def __call__(self, client: str, name: str, reads: bool, call: Callable[[], T]) -> T:
        """Make a call, to its end also if this is cancelled, and return its result.

        Args:
            client: Which session or connection makes it.
            name: The name of the tool.
            reads: Whether it only reads.

        Raises:
            ToolError: It was refused.
            Exception: What it raises.
        """


class Protocol:
    """The handlers of a server.

    Args:
        access: What clients may reach.
        tools: The tools, by name.
        runner: Makes the calls; None: in threads of its own.
    """

    def __init__(self, access: Access, tools: Mapping[str, McpTool], runner: Runner | None = None) -> None:
        self.access = access
        self.replies = Replies(access, tools)
        bus = InMemorySubscriptionBus()
        self.subscribers = Subscribers(access, reference.RESOURCE, lambda uri: bus.publish(ResourceUpdated(uri)))
        self._listener = ListenHandler(bus, max_subscriptions=MOST_SUBSCRIPTIONS)
        self._threads = anyio.CapacityLimiter(_CALLS)
        self._runner = runner or self._in_thread
        self._clients: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def server(self) -> Server[Any]:
        """Return the server of the SDK."""
        server: Server[Any] = Server(
            "recollect",
            version=__version__,
            title="Recollect",
            instructions=self.replies.instructions,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )
        server.add_request_handler("resources/list", types.PaginatedRequestParams, self._list_resources)
        server.add_request_handler("resources/read", types.ReadResourceRequestParams, self._read_resource)
        server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, self._subscribe)
        server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, self._unsubscribe)
        server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, self._listen)
        return server

    async def _run(self, ctx: Context, name: str, call: Callable[[], T], *, reads: bool = True) -> T:
        """Run a call in a thread, after those of the same client that were before it."""
        key = _client_key(ctx)
        turn = self._clients.setdefault(key, asyncio.Lock())
        async with turn:
            return await self._runner(key, name, reads, call)

    async def _in_thread(self, _client: str, _name: str, _reads: bool, call: Callable[[], T]) -> T:
        # A call that is cancelled runs to its end: a write must not be cut off.
        return await to_thread.run_sync(call, limiter=self._threads)

    async def _list_tools(self, _ctx: Context, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult.model_validate(self.replies.tools)

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self.replies.tool(params.name)
        if tool is None:
            return types.CallToolResult.model_validate(self.replies.unknown_tool(params.name))
        called = partial(self.replies.call, tool, params.arguments, _actor(ctx))
        try:
            async with self.subscribers.writing(_client_key(ctx)) if tool.graph and not tool.reads else nullcontext():
                result = await self._run(ctx, tool.name, called, reads=tool.reads)
        except ToolError as error:
            result = failure(str(error))
        return types.CallToolResult.model_validate(result)

    async def _list_resources(self, _ctx: Context, _params: object) -> types.ListResourcesResult:
        return types.ListResourcesResult.model_validate(self.replies.resources)

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        with _as_errors(types.INTERNAL_ERROR):
            self.replies.check_resource(str(params.uri))
            result = await self._run(ctx, "read_graph", self.replies.resource)
        return types.ReadResourceResult.model_validate(result)

    async def _subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        await self.subscribers.add(_client_key(ctx), str(params.uri), ctx.session.send_resource_updated)
        return types.EmptyResult()

    async def _unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self.subscribers.remove(_client_key(ctx), str(params.uri))
        return types.EmptyResult()

    async def _listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        await self.subscribers.listen()
        return await self._listener(ctx, params)

    async def _list_prompts(self, _ctx: Context, _params: object) -> types.ListPromptsResult:
        return types.ListPromptsResult.model_validate(self.replies.prompts)

    async def _get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        with _as_errors(types.INVALID_PARAMS):
            self.replies.check_prompt(params.name)
            result = await self._run(ctx, "context", partial(self.replies.prompt, params.arguments))
        return types.GetPromptResult.model_validate(result)


@contextmanager
def _as_errors(refused: int) -> Iterator[None]:
    """Raise an error of a reply as one of the SDK; `refused` is the code of a call that the server did not make."""
    try:
        yield
    except ReplyError as error:
        raise MCPError(error.code, error.text) from None
    except ToolError as error:
        raise MCPError(refused, str(error)) from None


def _client_key(ctx: Context) -> str:
    """Return what distinguishes the client: its session, or else its connection."""
    request = ctx.request
    if request is None:
        return "stdio"
    peer = request.client
    return str(request.headers.get("mcp-session-id") or (peer and f"{peer.host}:{peer.port}"))


def _actor(ctx: Context) -> str | None:
    """Return the name that the client states."""
    params = ctx.session.client_params
    return actor_of(params.client_info.name) if params else None
