"""The official client, for tests: connected to a server in this process, or to `recollect mcp` over a transport."""

from __future__ import annotations

import os
import queue
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio.from_thread
import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from recollect.errors import StoreMissingError
from recollect.memory import Memory
from recollect.server.mcp.protocol import Protocol
from recollect.server.mcp.tools import Access
from recollect.server.mcp.toolsets import tools_of

#: The sets of tools that most tests use, and the options of a process that offers them.
BOTH = ("recollect", "reference")
WITH_BOTH = ("--tools", ",".join(BOTH))


class Connected:
    """A client that is connected to a server.

    Attributes:
        client: The official client, for use in the portal.
        access: What the server gives access to, if it runs in this process.
        updates: The address of each resource that the server reported as updated.
    """

    def __init__(self, portal: Any, access: Access | None = None) -> None:
        self.portal = portal
        self.access = access
        self.client: Client
        self.updates: queue.Queue[str] = queue.Queue()

    def run(self, call: Callable[..., Any], *arguments: Any) -> Any:
        return self.portal.call(call, *arguments)

    def call(self, tool: str, /, **arguments: Any) -> types.CallToolResult:
        """Call a tool, whatever the result."""
        result: types.CallToolResult = self.run(self.client.call_tool, tool, arguments)
        return result

    def ok(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool and return its structured result."""
        result = self.call(tool, **arguments)
        assert not result.is_error, texts(result)
        return result.structured_content

    def refused(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool that must fail, and return the text of the error."""
        result = self.call(tool, **arguments)
        assert result.is_error
        assert result.structured_content is None
        return "\n".join(texts(result))


def texts(result: types.CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, types.TextContent)]


@contextmanager
def in_process(
    memory: Memory | Callable[..., Memory],
    sets: Iterable[str] = BOTH,
    *,
    mode: str = "legacy",
    **settings: Any,
) -> Iterator[Connected]:
    """Connect to a server of this process.

    Args:
        memory: The memory that it serves, which is not closed, or a function that opens one.
        sets: The sets of tools.
        mode: "legacy" for the protocol with a handshake, "auto" for the newest.
        **settings: Of `Access`.
    """

    def opener(*, create: bool, read_only: bool) -> Memory:
        if not isinstance(memory, Memory):
            return memory(create=create, read_only=read_only)
        if not create and not memory.namespaces():
            raise StoreMissingError("memory")
        return memory

    with ExitStack() as stack:
        portal = stack.enter_context(anyio.from_thread.start_blocking_portal())
        access = Access(opener, **settings)
        connected = Connected(portal, access)
        protocol = portal.call(lambda: _protocol(access, sets))
        if not isinstance(memory, Memory):
            stack.callback(access.close)
        following = portal.start_task_soon(protocol.subscribers.run)
        stack.callback(following.cancel)

        async def on_message(message: Any) -> None:
            if isinstance(message, types.ResourceUpdatedNotification):
                connected.updates.put(str(message.params.uri))

        client = Client(protocol.server(), mode=mode, message_handler=on_message)
        connected.client = stack.enter_context(portal.wrap_async_context_manager(client))
        yield connected


async def _protocol_async(access: Access, sets: Iterable[str]) -> Protocol:
    return Protocol(access, tools_of(sets, read_only=access.read_only, scoped=access.user is not None))


def _protocol(access: Access, sets: Iterable[str]) -> Any:
    return _protocol_async(access, sets)


@contextmanager
def over_stdio(store: Path | str, *options: str, **environment: str) -> Iterator[Connected]:
    """Start `recollect mcp` and connect to it."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "recollect", "mcp", "--db", str(store), *WITH_BOTH, *options],
        env={**os.environ, **environment},
    )
    with _over(lambda: Client(stdio_client(parameters), mode="legacy")) as connected:
        yield connected


@contextmanager
def over_http(url: str, *, mode: str = "legacy") -> Iterator[Connected]:
    """Connect to a server at an address."""
    with _over(lambda: Client(url, mode=mode)) as connected:
        yield connected


@contextmanager
def _over(make: Callable[[], Client]) -> Iterator[Connected]:
    with anyio.from_thread.start_blocking_portal() as portal:
        connected = Connected(portal)

        async def made() -> Client:
            return make()

        with portal.wrap_async_context_manager(portal.call(made)) as connected.client:
            yield connected
