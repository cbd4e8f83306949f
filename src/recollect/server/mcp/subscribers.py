"""Clients that are notified when the knowledge graph changes, whichever process changed it.

A client that does not read its notifications delays no other: each has one notification in progress at most, which
stands for further changes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from recollect import Commit, Memory
from recollect.server.mcp.tools import Access

#: Maximum number of subscriptions. Beyond it, the oldest one is dropped: its client may be gone.
MOST_SUBSCRIPTIONS = 256
#: Seconds after which a notification that a client does not read is dropped.
_PATIENCE_S = 10.0
#: Maximum number of seconds until a change is noticed that no commit announces.
_POLL_S = 1.0
#: Sends a client that the resource of an address has changed.
Send = Callable[[str], Awaitable[None]]


class Subscribers:
    """The clients that subscribed to the graph.

    Args:
        access: The memory.
        uri: The address of the graph. Subscriptions to others are accepted and never notified.
        publish: Notifies the subscriptions of the newer protocol.
    """

    def __init__(self, access: Access, uri: str, publish: Send) -> None:
        self._publish = publish
        self._access = access
        self._uri = uri
        self._sessions: OrderedDict[tuple[str, str], _Session] = OrderedDict()
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listening = False
        self._starting = asyncio.Lock()
        self._writers = 0  # calls of this server that are changing the graph; they notify themselves
        self._tasks: TaskGroup | None = None

    async def run(self) -> None:
        """Notify subscribers until this is cancelled."""
        self._loop = asyncio.get_running_loop()
        async with anyio.create_task_group() as self._tasks:
            while True:
                # Without a commit, something may have expired, or the store been created, replaced or deleted.
                with anyio.move_on_after(_POLL_S if self._listening else None):
                    await self._changed.wait()
                self._changed.clear()
                if self._listening and not self._writers and await to_thread.run_sync(self._access.has_changed_graph):
                    await self._notify()

    @asynccontextmanager
    async def writing(self, client: str) -> AsyncIterator[None]:
        """Notify the subscribers after a call that writes to the graph; the client of the call before it is answered.

        If the block raises, they are not notified.
        """
        if not self._listening:
            yield
            return
        self._writers += 1
        try:
            yield
            await to_thread.run_sync(self._access.has_changed_graph)  # otherwise the log would report it again
            await self._notify(client)
        finally:
            self._writers -= 1
            self._changed.set()  # other processes may have written meanwhile

    async def _notify(self, first: str | None = None) -> None:
        """Notify all subscribers, and wait for one client to read it."""
        await self._publish(self._uri)
        for (client, uri), session in list(self._sessions.items()):
            if uri == self._uri and not session.busy and self._tasks is not None:
                session.busy = True
                if client == first:
                    await session.notify(uri)
                else:
                    self._tasks.start_soon(session.notify, uri)

    async def add(self, client: str, uri: str, send: Send) -> None:
        """Notify a client when the resource changes."""
        self._sessions.pop((client, uri), None)
        self._sessions[client, uri] = _Session(send)
        while len(self._sessions) > MOST_SUBSCRIPTIONS:
            self._sessions.popitem(last=False)
        await self.listen()

    def remove(self, client: str, uri: str) -> None:
        """Notify a client no longer."""
        self._sessions.pop((client, uri), None)

    async def listen(self) -> None:
        """Begin to follow the log, if this was not done before: the changes after this are reported.

        Raises:
            RecollectError: The memory cannot be read.
        """
        async with self._starting:
            if not self._listening:
                await to_thread.run_sync(self._access.graph.take_changed)  # what changed before is not reported
                await to_thread.run_sync(self._access.on_open, self._follow)
                self._listening = True
                self._changed.set()

    def _follow(self, memory: Memory) -> None:
        memory.listen(self._on_commit)  # until the memory is closed
        self._wake()

    def _on_commit(self, _commit: Commit) -> None:
        self._wake()

    def _wake(self) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._changed.set)


class _Session:
    """A client with a subscription."""

    def __init__(self, send: Send) -> None:
        self.busy = False
        self._send = send

    async def notify(self, uri: str) -> None:
        try:
            with anyio.move_on_after(_PATIENCE_S):
                await self._send(uri)
        finally:
            self.busy = False
