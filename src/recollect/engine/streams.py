"""Commit streams: the commits of a branch as an iterator that waits for the next one.

A stream has no thread. It reads the log from its own position, in the thread of its consumer, or for a task of asyncio
in a pool, and is woken by the feed.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from recollect.common.uncopied import Uncopied
from recollect.common.wakeups import Wakeup, in_pool
from recollect.engine.feed import PAGE, CommitLog, Feed
from recollect.errors import ClosedError
from recollect.ledger.commits import Branch, Commit
from recollect.operations import check_timeout

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Executor


class CommitStream(Uncopied):
    """An iterator over the commits of a memory, in order, each once. Created by `subscribe`.

    `next` waits until there is a commit. Once the stream or its memory is closed, also by another thread while it
    waits, the iteration ends, even if there are commits that were not read; a new stream continues from the cursor of
    the last commit. If the store fails, `next` raises and the position stays. Several threads may read one stream;
    each commit goes to one of them.

    It is an asynchronous iterator, too, for the tasks of one event loop. A task that waits occupies no thread, and
    cancelling `anext`, as `asyncio.timeout` does, loses no commit.

    Close a stream (`close`), or leave its `with` or `async with` block, when it is not needed any more.

    Args:
        log: Where the commits are read.
        since: Start after this cursor or seq; None: with the next commit after the stream is started, by a block, or
            else by its first reading.
        feed: Wakes the stream.
        pool: Where the log is read for tasks; None: in that of the event loop.
    """

    def __init__(self, log: CommitLog, since: int | str | None, feed: Feed, pool: Executor | None = None) -> None:
        self._log = log
        self._since = since
        self._feed = feed
        self._pool = pool
        self._waiter = _Waiter(log.branch)
        self._page: deque[Commit] = deque()
        self._reading = threading.Lock()
        self._entry = threading.Lock()  # held only to begin and to end that the feed wakes the stream
        self._turn: asyncio.Lock | None = None  # of several tasks, one waits for the next commit at a time
        self._exhausted = -1  # the number of wakes before the log was last read to its end
        self._started = self._subscribed = False

    def start(self) -> CommitStream:
        """Determine the position, if that was not done yet.

        Raises:
            StoreError: The log cannot be read.
        """
        with self._reading:
            self._start()
        return self

    @property
    def closed(self) -> bool:
        """True if the stream has ended: it or its memory was closed."""
        return self._waiter.ended

    def wait(self, timeout: float | None = None) -> Commit | None:
        """Return the next commit.

        Args:
            timeout: Maximum number of seconds to wait, 0 to 86,400; None: until there is one, or the stream ends.

        Returns:
            The commit; None if there is none yet, or the stream has ended (`closed`).

        Raises:
            InvalidArgumentError: `timeout` is invalid.
            ForkedError: The stream was created before a fork and is used in the child process.
            StoreError: The log cannot be read. The position stays, so the call can be repeated.
        """
        for step in self._steps(timeout):
            if isinstance(step, Commit):
                return step
            if step is None:
                self._read()
            else:
                self._waiter.wait(*step)
        return None

    async def awaited(self, timeout: float | None = None) -> Commit | None:
        """Return the next commit, as `wait` does, without blocking the event loop."""
        import asyncio  # only for those who await

        self._turn = self._turn or asyncio.Lock()
        async with self._turn:
            for step in self._steps(timeout):
                if isinstance(step, Commit):
                    return step
                if step is None:
                    try:
                        await in_pool(self._pool, self._read)  # if this is cancelled, the page stays
                    except ClosedError:
                        self.close()
                else:
                    await self._waiter.awaited(*step)
        return None

    def _steps(self, timeout: float | None) -> Iterator[Commit | tuple[int, float | None] | None]:
        """Yield what is to be done: None to read the log, or the arguments of a wait; at the end, the next commit."""
        if timeout is not None:
            check_timeout(timeout)
        self._feed.check_process()
        deadline = None if timeout is None else monotonic() + timeout
        while not self._waiter.ended:
            wakes = self._waiter.wakes
            yield None
            if not self._waiter.ended and self._page:
                with suppress(IndexError):  # another reader has taken it
                    yield self._page.popleft()
                    return
            if self._exhausted < wakes:
                continue
            remaining = None if deadline is None else deadline - monotonic()
            if remaining is not None and remaining <= 0:
                return
            if not self._subscribe():  # else a commit may have been made since the log was read
                yield wakes, remaining

    def close(self) -> None:
        """End the stream, also for those who wait for its next commit."""
        if not self._feed.forked:
            self._waiter.close()
            with self._entry:  # so that another thread does not add the waiter afterwards
                self._feed.discard(self._waiter)

    async def aclose(self) -> None:
        """End the stream. See `close`."""
        self.close()

    def __iter__(self) -> CommitStream:
        return self

    def __next__(self) -> Commit:
        commit = self.wait()
        if commit is None:
            raise StopIteration
        return commit

    def __enter__(self) -> CommitStream:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __aiter__(self) -> CommitStream:
        return self

    async def __anext__(self) -> Commit:
        commit = await self.awaited()
        if commit is None:
            raise StopAsyncIteration
        return commit

    async def __aenter__(self) -> CommitStream:
        return await in_pool(self._pool, self.start)

    async def __aexit__(self, *exc: object) -> None:
        self.close()

    def _start(self) -> None:
        if not self._started:
            self._waiter.seen = self._log.start(self._since)
            self._started = True

    def _read(self) -> None:
        """Read a page of the log, unless there is one."""
        with self._reading:
            wakes = self._waiter.wakes
            try:
                while not self._page and not self._waiter.ended:
                    self._start()
                    page = self._log.read(self._waiter.seen)
                    if page:
                        self._waiter.seen = page[-1][0]
                    self._page.extend(commit for _, commit in page if commit is not None)
                    if len(page) < PAGE:
                        self._exhausted = wakes
                        break
            except ClosedError:  # the memory was closed
                self.close()

    def _subscribe(self) -> bool:
        """Make the feed wake this stream, and return whether it did not do so before."""
        with self._entry:
            if self._subscribed or self._waiter.ended:
                return False
            self._feed.add(self._waiter)
            self._subscribed = True
            # A loop that is left early drops the stream without closing it.
            weakref.finalize(self, self._feed.abandon, self._waiter).atexit = False
            return True


class _Waiter:
    """The subscriber of a stream. It does not refer to the stream, so that an abandoned stream is collected."""

    def __init__(self, branch: Branch) -> None:
        self.branch = branch
        self.seen = 2**63  # until the position is known
        self.wakes = 0
        self.ended = False
        self._changed = Wakeup()

    def notify(self) -> None:
        with self._changed:
            self.wakes += 1
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def wait(self, wakes: int, timeout_s: float | None) -> None:
        """Wait until it is woken again after its first `wakes` times, or closed, or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self.ended or self.wakes != wakes, timeout_s)

    async def awaited(self, wakes: int, timeout_s: float | None) -> None:
        """Do as `wait` does, without a thread."""
        import asyncio

        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._changed.awaited(lambda: self.ended or self.wakes != wakes)
