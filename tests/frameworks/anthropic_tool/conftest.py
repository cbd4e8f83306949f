"""Memory tools on every kind of store, called as the SDK calls them. No test needs a key or a network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import recollect

with suppress(ImportError):  # each module of tests is skipped then
    from recollect.compat.anthropic import AsyncRecollectMemoryTool, RecollectMemoryTool

#: Sends a command, with its fields by name, and returns the answer.
Send: TypeAlias = Callable[..., str]


@pytest.fixture(params=["memory", "sqlite", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[recollect.Memory]:
    """A memory in this process, in a file, and of a server on a Unix socket."""
    if request.param == "server":
        if request.config.rootpath.name != "frameworks":
            pytest.skip("`make test-compat` runs it, in the environment of the framework")
        from tests.server.serving import Served

        with Served(tmp_path) as server, server.memory() as memory:
            yield memory
    else:
        path = ":memory:" if request.param == "memory" else tmp_path / "agent.db"
        with recollect.open(path, embedder="none") as memory:
            yield memory


@pytest.fixture
def tool(place: recollect.Memory) -> Iterator[RecollectMemoryTool]:
    with RecollectMemoryTool(place, user="ana") as tool:
        yield tool


@pytest.fixture(params=["sync", "async"])
def send(request: pytest.FixtureRequest, place: recollect.Memory) -> Iterator[Send]:
    """Send commands to a tool of either kind; each awaited call has an event loop of its own."""
    if request.param == "sync":
        with RecollectMemoryTool(place, user="ana") as tool:

            def call(command: str, **fields: Any) -> str:
                return str(tool.call({"command": command, **fields}))

            yield call
    else:
        awaited = AsyncRecollectMemoryTool(place, user="ana")

        def wait(command: str, **fields: Any) -> str:
            return str(asyncio.run(awaited.call({"command": command, **fields})))

        yield wait
        asyncio.run(awaited.close())
