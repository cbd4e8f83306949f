"""Commit streams for asyncio. A stream that waits occupies no thread; only reading the log runs in the pool."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from recollect.engine.feed import PAGE, CommitLog, Feed
from recollect.errors import ClosedError
from recollect.ledger.commits import Branch, Commit


class AsyncCommitStream:
    """An asynchronous iterator over the commits of a memory. Created by `AsyncMemory.subscribe`.

    It behaves as `CommitStream` does. Cancelling `anext`, as `asyncio.timeout` does, loses no commit. Use it in the
    event loop in which it was created, and close it (`aclose`, or the end of its `async with` block) when it is not
    needed any more.
    """

    def __init__(self, log: CommitLog, since: int | None, feed: Feed, pool: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        self._log = log
        self._feed = feed
        self._pool = pool
        self._page: deque[Commit] = deque()
        self._turn = asyncio.Lock()  # of several tasks, one reads at a time
        self._waiter = _Waiter(log.branch, since, loop)
        feed.add(self._waiter)
        weakref.finalize(self, feed.abandon, self._waiter).atexit = False
        self._head: asyncio.Future[int] | None = None
        if since is not None:
            return
        try:
            self._head = loop.run_in_executor(pool, log.head)
        except RuntimeError as error:  # the pool is shut down
            feed.discard(self._waiter)
            raise ClosedError("the memory") from error
        self._head.add_done_callback(lambda done: done.cancelled() or done.exception())  # else asyncio logs an error

    @property
    def closed(self) -> bool:
        """Whether the stream has ended: it or its memory was closed."""
        return self._waiter.ended

    async def aclose(self) -> None:
        """End the stream, also for a task that waits for its next commit."""
        self._waiter.end()
        self._feed.discard(self._waiter)

    def __aiter__(self) -> AsyncCommitStream:
        return self

    async def __anext__(self) -> Commit:
        async with self._turn:
            while not self._page and not self._waiter.ended:
                self._waiter.woken.clear()
                if not await self._read() and not self._page:
                    await self._waiter.woken.wait()
            if self._waiter.ended:
                raise StopAsyncIteration
            return self._page.popleft()

    async def __aenter__(self) -> AsyncCommitStream:
        if self._head is not None:
            async with self._turn:
                await self._start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def _start(self) -> None:
        """Determine the position of a stream of future commits."""
        if self._head is not None:
            self._waiter.seen = min(self._waiter.seen, await asyncio.shield(self._head))
            self._head = None

    async def _read(self) -> bool:
        """Read a page of the log and return whether there may be more. If this is cancelled, the position stays."""
        loop = asyncio.get_running_loop()
        try:
            await self._start()
            since = self._waiter.seen
            try:
                reading = loop.run_in_executor(self._pool, self._log.read, since)
            except RuntimeError as error:  # the pool is shut down
                raise ClosedError("the memory") from error
            page = await reading
        except ClosedError:
            await self.aclose()
            return False
        if self._waiter.seen != since:
            return True  # an earlier commit became known meanwhile
        if page:
            self._waiter.seen = page[-1][0]
            self._waiter.fresh = False
        self._page.extend(commit for _, commit in page if commit is not None)
        return len(page) == PAGE


class _Waiter:
    """The subscriber of a stream. It does not refer to the stream, so that an abandoned stream is collected.

    The newest commit at its creation is read in the pool, when there may be newer ones. So until it has read a commit,
    a stream without cursor begins at the latest before the first commit of this process that it is woken by.

    Attributes:
        fresh: Whether that is the case.
    """

    def __init__(self, branch: Branch, since: int | None, loop: asyncio.AbstractEventLoop) -> None:
        self.branch = branch
        self.seen = 2**63 if since is None else since
        self.fresh = since is None
        self.woken = asyncio.Event()
        self.ended = False
        self._loop = loop

    def notify(self, seq: int | None = None) -> None:
        with suppress(RuntimeError):  # the loop is closed, and with it the consumer
            self._loop.call_soon_threadsafe(self._wake, seq)

    def close(self) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.end)

    def _wake(self, seq: int | None) -> None:
        if self.fresh and seq is not None:
            self.seen = min(self.seen, seq - 1)
        self.woken.set()

    def end(self) -> None:
        """End the stream. Called in the event loop."""
        self.ended = True
        self.woken.set()
