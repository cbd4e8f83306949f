"""Commit streams for asyncio. A stream that waits occupies no thread; only reading the log runs in the pool."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TypeVar

from recollect.common.uncopied import Uncopied
from recollect.engine.feed import PAGE, CommitLog, Feed
from recollect.engine.listeners import Subscription
from recollect.errors import ClosedError
from recollect.ledger.commits import Branch, Commit
from recollect.operations import check_timeout

T = TypeVar("T")


class AsyncCommitStream(Uncopied):
    """An asynchronous iterator over the commits of a memory. Created by `AsyncMemory.subscribe`.

    It behaves as `CommitStream` does. Cancelling `anext`, as `asyncio.timeout` does, loses no commit. Use it in the
    event loop in which it was created, and close it (`aclose`, or the end of its `async with` block) when it is not
    needed any more.
    """

    def __init__(self, log: CommitLog, since: int | str | None, feed: Feed, pool: ThreadPoolExecutor) -> None:
        self._log = log
        self._feed = feed
        self._pool = pool
        self._page: deque[Commit] = deque()
        self._turn = asyncio.Lock()  # of several tasks, one reads at a time
        self._waiter = _Waiter(log.branch, asyncio.get_running_loop())
        self._since = since
        self._started = False
        feed.add(self._waiter)
        weakref.finalize(self, feed.abandon, self._waiter).atexit = False

    @property
    def closed(self) -> bool:
        """Whether the stream has ended: it or its memory was closed."""
        return self._waiter.ended

    async def wait(self, timeout: float | None = None) -> Commit | None:
        """Return the next commit. See `CommitStream.wait`."""
        if timeout is not None:
            check_timeout(timeout)
        async with self._turn:
            until = None if timeout is None else asyncio.get_running_loop().time() + timeout
            while not self._page and not self._waiter.ended:
                self._waiter.woken.clear()
                if not await self._read() and not self._page:  # at least once, whatever the timeout
                    try:
                        async with asyncio.timeout_at(until):
                            await self._waiter.woken.wait()
                    except TimeoutError:
                        return None
            return None if self._waiter.ended else self._page.popleft()

    async def aclose(self) -> None:
        """End the stream, also for a task that waits for its next commit."""
        self._waiter.end()
        self._feed.discard(self._waiter)

    def __aiter__(self) -> AsyncCommitStream:
        return self

    async def __anext__(self) -> Commit:
        commit = await self.wait()
        if commit is None:
            raise StopAsyncIteration
        return commit

    async def __aenter__(self) -> AsyncCommitStream:
        async with self._turn:
            await self._start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def _start(self) -> None:
        """Determine the position. The feed wakes the stream already, so no commit is missed."""
        if not self._started:
            self._waiter.seen = await _in_pool(self._pool, partial(self._log.start, self._since))
            self._started = True

    async def _read(self) -> bool:
        """Read a page of the log and return whether there may be more. If this is cancelled, the position stays."""
        try:
            await self._start()
            page = await _in_pool(self._pool, partial(self._log.read, self._waiter.seen))
        except ClosedError:
            await self.aclose()
            return False
        if page:
            self._waiter.seen = page[-1][0]
        self._page.extend(commit for _, commit in page if commit is not None)
        return len(page) == PAGE


class AsyncSubscription(Uncopied):
    """A listener of an `AsyncMemory`, created by `await memory.listen(callback)`. It behaves as `Subscription` does.

        async with await memory.listen(callback) as subscription:
            ...

    The callback runs in a thread, not in the event loop. `memory.subscribe()` is an iterator for the event loop.
    """

    def __init__(self, subscription: Subscription, pool: ThreadPoolExecutor) -> None:
        self._subscription = subscription
        self._pool = pool

    @property
    def error(self) -> BaseException | None:
        """The last exception of the callback or of the listener. See `Subscription.error`."""
        return self._subscription.error

    def wake(self) -> None:
        """Make the listener read the log now. See `Subscription.wake`."""
        self._subscription.wake()

    async def drain(self) -> None:
        """Wait until all commits made before this call have been delivered. See `Subscription.drain`."""
        await _in_pool(self._pool, self._subscription.drain)

    async def close(self) -> None:
        """Deliver the commits made so far, then stop. See `Subscription.close`."""
        with suppress(ClosedError):  # it ended with the memory
            await _in_pool(self._pool, self._subscription.close)

    async def __aenter__(self) -> AsyncSubscription:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


async def _in_pool(pool: ThreadPoolExecutor, call: Callable[[], T]) -> T:
    """Run a call in a pool.

    Raises:
        ClosedError: The pool is shut down.
    """
    try:
        future = asyncio.get_running_loop().run_in_executor(pool, call)
    except RuntimeError as error:
        raise ClosedError("the memory") from error
    return await future


class _Waiter:
    """The subscriber of a stream. It does not refer to the stream, so that an abandoned stream is collected."""

    def __init__(self, branch: Branch, loop: asyncio.AbstractEventLoop) -> None:
        self.branch = branch
        self.seen = 2**63  # until the position is known
        self.woken = asyncio.Event()
        self.ended = False
        self._loop = loop

    def notify(self) -> None:
        with suppress(RuntimeError):  # the loop is closed, and with it the consumer
            self._loop.call_soon_threadsafe(self.woken.set)

    def close(self) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.end)

    def end(self) -> None:
        """End the stream. Called in the event loop."""
        self.ended = True
        self.woken.set()
