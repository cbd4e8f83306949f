"""The server of the official SDK, with the tools, the resource and the prompt of a memory.

Calls run in threads, so that a slow one does not delay those of other clients, except that writes wait for each other:
in threads of the protocol, or, in a server that serves others, too, in those of all its doors.
The calls of one session or connection run one after the other, in the order in which they arrive, so that a client sees
what it has written.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, TypeVar
from typing import Protocol as Protocol_
from weakref import WeakValueDictionary

import anyio
import mcp_types as types
from anyio import to_thread
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

from recollect._version import __version__
from recollect.errors import RecollectError
from recollect.server.mcp import guidance, reference
from recollect.server.mcp.subscribers import MOST_SUBSCRIPTIONS, Subscribers
from recollect.server.mcp.tools import Access, McpTool, ToolError, ToolResult
from recollect.server.mcp.toolsets import sets_with

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]

#: Maximum number of calls that run at the same time.
_CALLS = 16
_MOST_ACTOR = 100


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
        self.subscribers = Subscribers(access, reference.RESOURCE)
        self._tools = tools
        self._former = {tool.former_name: tool for tool in tools.values() if tool.former_name}
        self._listener = ListenHandler(self.subscribers.bus, max_subscriptions=MOST_SUBSCRIPTIONS)
        self._threads = anyio.CapacityLimiter(_CALLS)
        self._runner = runner or self._in_thread
        self._clients: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def server(self) -> Server[Any]:
        """Return the server of the SDK."""
        server: Server[Any] = Server(
            "recollect",
            version=__version__,
            title="Recollect",
            instructions=guidance.instructions(self._tools, read_only=self.access.read_only),
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
        return types.ListToolsResult(tools=[_described(tool, self.access) for tool in self._tools.values()])

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self._tools.get(params.name) or self._former.get(params.name)
        if tool is None:
            # Not one that removes something: a model may follow the hint.
            safe = [name for name, each in self._tools.items() if not each.destructive]
            similar = difflib.get_close_matches(params.name.lower(), safe, 1)
            elsewhere = sets_with(params.name, read_only=self.access.read_only, scoped=self.access.user is not None)
            hint = [f"Did you mean {similar[0]}?"] if similar else []
            if elsewhere:
                hint = [f"This server does not offer it; with --tools {elsewhere[0]} it would."]
            return _error(f"MCP error -32602: Tool {params.name} not found", *hint)
        actor = self.access.signed(_actor(ctx))

        def call() -> ToolResult:
            return tool.call(self.access, params.arguments or {}, actor)

        try:
            async with self.subscribers.writing(_client_key(ctx)) if tool.graph and not tool.reads else nullcontext():
                result = await self._run(ctx, tool.name, call, reads=tool.reads)
        except ToolError as error:
            return _error(str(error))
        return types.CallToolResult(content=_texts(*result.texts()), structured_content=result.structured)

    async def _list_resources(self, _ctx: Context, _params: object) -> types.ListResourcesResult:
        resource = types.Resource(
            uri=reference.RESOURCE,
            name="knowledge-graph",
            title="Knowledge Graph",
            description="The knowledge graph: its entities with their observations, and their relations",
            mime_type="application/json",
        )
        return types.ListResourcesResult(resources=[resource])

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        if uri != reference.RESOURCE:
            raise MCPError(types.INVALID_PARAMS, f"MCP error -32602: Resource {uri} not found")
        tool = next(each for each in reference.TOOLS if each.name == "read_graph")
        try:
            result = await self._run(ctx, tool.name, lambda: tool.call(self.access, {}, None))
        except ToolError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from None
        text, *notes = result.texts()
        contents: list[types.TextResourceContents | types.BlobResourceContents] = [
            types.TextResourceContents(uri=uri, mime_type="application/json", text=text)
        ]
        contents += [types.TextResourceContents(uri=uri, mime_type="text/plain", text=note) for note in notes]
        return types.ReadResourceResult(contents=contents)

    async def _subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        await self.subscribers.add(_client_key(ctx), str(params.uri), ctx.session)
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
        arguments = [
            types.PromptArgument(name=name, description=description, required=name == "task")
            for name, description in guidance.prompt_arguments(self.access).items()
        ]
        prompt = types.Prompt(
            name=guidance.PROMPT,
            title=guidance.PROMPT_TITLE,
            description=guidance.PROMPT_DESCRIPTION,
            arguments=arguments,
        )
        return types.ListPromptsResult(prompts=[prompt])

    async def _get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != guidance.PROMPT:
            raise MCPError(types.INVALID_PARAMS, f"no such prompt {params.name!r}: the only one is {guidance.PROMPT}")
        try:
            text = await self._run(ctx, "context", lambda: guidance.prompt(self.access, params.arguments or {}))
        except (ToolError, RecollectError) as error:
            if isinstance(error, RecollectError):
                self.access.failed(error)
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=guidance.PROMPT_DESCRIPTION, messages=[message])


def _described(tool: McpTool, access: Access) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=(tool.listed is not None and tool.summary) or tool.description,
        input_schema={"$schema": _DIALECT, **tool.listed_schema(access)},
        output_schema=None if tool.listed is not None else {"$schema": _DIALECT, **tool.outputs},
        annotations=types.ToolAnnotations(
            read_only_hint=tool.reads,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
        execution=types.ToolExecution(task_support="forbidden"),
    )


_DIALECT = "http://json-schema.org/draft-07/schema#"


def _texts(*texts: str) -> list[types.ContentBlock]:
    return [types.TextContent(text=text) for text in texts]


def _error(*texts: str) -> types.CallToolResult:
    return types.CallToolResult(content=_texts(*texts), is_error=True)


def _client_key(ctx: Context) -> str:
    """Return what distinguishes the client: its session, or else its connection."""
    request = ctx.request
    if request is None:
        return "stdio"
    peer = request.client
    return str(request.headers.get("mcp-session-id") or (peer and f"{peer.host}:{peer.port}"))


def _actor(ctx: Context) -> str | None:
    """Return the name that the client states: on one line, without control characters."""
    params = ctx.session.client_params
    stated = params.client_info.name if params else ""
    name = "".join(letter for letter in stated if letter.isprintable())
    return name.strip()[:_MOST_ACTOR] or None
