"""Waiting for commits, and reading them as they come, without a thread for each client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from recollect import AsyncMemory, Commit, Memory
from recollect.errors import STOPPING, InvalidOperationError, ServerBusyError
from recollect.server.served_memory import ServedMemory
from recollect.wire import Place

T = TypeVar("T")
#: How often it is looked whether there is a store by now, in seconds.
_LOOK_S = 0.5


class Waits:
    """Waits for commits of the memory of a server."""

    def __init__(self, memory: ServedMemory) -> None:
        self._served = memory
        self._awaited: tuple[Memory, AsyncMemory] | None = None
        self._stopped = asyncio.Event()

    async def wait(self, place: Place, since: int | str, timeout_s: float) -> bool:
        """Wait until there is a commit after a cursor, and return whether there is one.

        Args:
            place: The branch and the scope. What lies beside the records has no waits.
            since: The cursor.
            timeout_s: Maximum number of seconds.

        Raises:
            InvalidArgumentError: It is not a cursor of this place.
            InvalidOperationError: The place lies beside the records.
            ServerBusyError: The server stops.
        """
        if place.branch != place.branch.owner:
            raise InvalidOperationError("wait", 'waits for commits of records: leave "beside" out')
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while True:
            left = max(0.0, until - loop.time())
            there = self._served.is_open
            found = await self._unless_stopped(self._is_newer(place, since, left if there else min(left, _LOOK_S)))
            if found is None:
                raise ServerBusyError(STOPPING, 1.0)
            if found:
                return True
            if there or not left:
                return False

    async def _is_newer(self, place: Place, since: int | str, timeout_s: float) -> bool:
        """Wait until there is a commit after a cursor, and return whether there is one."""
        async with self._memory(place).subscribe(since=since) as commits:
            return await commits.awaited(timeout_s) is not None

    async def commits(
        self, place: Place, since: int | str | None, idle_s: float, parts: tuple[str, ...] | None = None
    ) -> AsyncIterator[Commit | None]:
        """Yield the commits after a cursor as they come, and None each time that there was none for some seconds.

        Args:
            place: The branch and the scope.
            since: The cursor; None: only those that come.
            idle_s: After how many seconds without a commit None is yielded.
            parts: Only commits that change these parts of the memory; None: all.
        """
        while not self._served.is_open:  # all commits of a store that does not exist yet will be new
            self._served.reading()
            if not self._served.is_open:
                since = 0 if since is None else since
                await self._unless_stopped(asyncio.sleep(_LOOK_S))
                if self._stopped.is_set():
                    return
                yield None
        async with self._memory(place).subscribe(since=since, parts=parts) as stream:
            while not stream.closed and not self._stopped.is_set():
                yield await self._unless_stopped(stream.awaited(idle_s))

    def stop(self) -> None:
        """End all waits and streams of commits, because the server stops."""
        self._stopped.set()

    async def _unless_stopped(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Return what a coroutine returns, or None as soon as the server stops."""
        doing = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait((doing, stopping), return_when=asyncio.FIRST_COMPLETED)
            return await doing if doing.done() else None
        finally:
            for each in (doing, stopping):
                each.cancel()

    def _memory(self, place: Place) -> AsyncMemory:
        """Return the memory of a place. All share one pool of threads."""
        memory = self._served.reading()
        if self._awaited is None or self._awaited[0] is not memory:
            self._awaited = memory, AsyncMemory(memory)
        out = self._awaited[1].namespace(place.branch.namespace)._of_branch(place.branch.name)
        return out.scoped(**dict(place.scope.fixed)) if place.scope.fixed else out
