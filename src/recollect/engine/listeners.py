"""Listeners: callbacks that are called with each commit of a branch, in order, each once.

A listener is served by at most one thread at a time, reads the log from its own position, and yields its turn after
each page. An exception in a callback is logged and stored in `Subscription.error`, and the next commit is delivered
nevertheless.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from recollect.common.uncopied import Uncopied
from recollect.common.wakeups import in_pool
from recollect.engine.feed import PAGE, CommitLog, Feed
from recollect.errors import ClosedError, ForkedError, RecollectError, StoreReplacedError
from recollect.ledger.commits import Commit

if TYPE_CHECKING:
    from concurrent.futures import Executor

_log = logging.getLogger("recollect")


class Subscription(Uncopied):
    """A listener, created by `Memory.listen`.

    Close it, or leave its `with` block, to stop it. Commits made before that are delivered first. It ends by itself if
    the memory is closed, or if its file was deleted or replaced (`error` is then the StoreReplacedError).
    """

    def __init__(self, callback: Callable[[Commit], object], log: CommitLog, since: int, feed: Feed) -> None:
        self._listener = _Listener(callback, log, since, feed)

    @property
    def error(self) -> BaseException | None:
        """The last exception that the callback raised, or that ended or delayed the listener; None without one."""
        return self._listener.error

    def wake(self) -> None:
        """Make the listener read the log now, without waiting until commits of other processes are noticed."""
        self._listener.notify()

    def drain(self) -> None:
        """Wait until all commits made before this call have been delivered. Returns at once within the callback."""
        self._listener.drain()

    def close(self) -> None:
        """Deliver the commits made so far, then stop. May be called by the callback."""
        self._listener.close()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class AsyncSubscription(Uncopied):
    """A listener of an `AsyncMemory`, created by `await memory.listen(callback)`. It behaves as `Subscription` does.

        async with await memory.listen(callback) as subscription:
            ...

    The callback runs in a thread, not in the event loop. `memory.subscribe()` is an iterator for the event loop.
    """

    def __init__(self, subscription: Subscription, pool: Executor) -> None:
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
        await in_pool(self._pool, self._subscription.drain)

    async def close(self) -> None:
        """Deliver the commits made so far, then stop. See `Subscription.close`."""
        with suppress(ClosedError):  # it ended with the memory
            await in_pool(self._pool, self._subscription.close)

    async def __aenter__(self) -> AsyncSubscription:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class _Listener:
    """A subscriber whose commits are delivered to a callback, as a job of the feed."""

    def __init__(self, callback: Callable[[Commit], object], log: CommitLog, since: int, feed: Feed) -> None:
        self.branch = log.branch
        self.seen = since
        self.error: BaseException | None = None
        self._callback = callback
        self._log = log
        self._feed = feed
        self._changed = threading.Condition()
        self._wakes = 0  # requests to read the log
        self._done = 0  # requests that have been fulfilled
        self._thread: threading.Thread | None = None  # runs the job
        self._failing = False  # the last reading failed
        self._closing = False
        self._ended = False
        feed.add(self)
        self.notify()  # for commits made before it was added

    def notify(self) -> None:
        if not self._feed.forked:
            self._request()

    def _request(self, *, closing: bool = False) -> int:
        """Request a reading of the log and return its number."""
        with self._changed:
            self._closing = self._closing or closing
            self._wakes += 1
            request = self._wakes
        if not self._ended:
            self._feed.submit(self)
        return request

    def drain(self) -> None:
        if self._feed.forked or self._thread is threading.current_thread():
            return  # no thread delivers, or the callback called this: waiting would never end
        request = self._request()
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._done >= request)

    def close(self) -> None:
        if self._feed.forked:
            return
        self._request(closing=True)
        if self._thread is not threading.current_thread():
            with self._changed:
                self._changed.wait_for(lambda: self._ended)

    def run(self) -> None:
        """Deliver a page of commits."""
        with self._changed:
            if self._ended:
                return  # it was woken while it ended
            wakes, closing = self._wakes, self._closing
            self._thread = threading.current_thread()
        ended, more = True, False
        try:
            more = self._deliver()
            ended = closing and not more
        except (ClosedError, ForkedError, StoreReplacedError) as error:  # the log cannot be read any more
            self.error = error
            if isinstance(error, StoreReplacedError):
                _log.error("a listener has ended: %s", error)
        except RecollectError as error:  # busy or unavailable for now: the commits stay in the log
            self.error = error
            ended = closing
            if not self._failing:
                _log.warning("a listener could not read the log; it tries again: %s", error)
            self._failing = True
            self._feed.retry()
        finally:
            if ended:
                self._feed.discard(self)
            with self._changed:
                self._thread = None
                self._ended = ended
                if not more:
                    self._done = wakes
                again = not ended and (more or self._wakes > wakes)
                self._changed.notify_all()
        if again:
            self._feed.submit(self)  # behind the others that wait

    def _deliver(self) -> bool:
        """Deliver a page of commits and return whether there may be more."""
        page = self._log.read(self.seen)
        self._failing = False
        for seq, commit in page:
            self.seen = seq
            if commit is None:
                continue
            try:
                self._callback(commit)
            except BaseException as error:  # noqa: BLE001 - the callback may raise anything; it is stored
                self.error = error
                _log.exception("a listener failed on commit %d of %r", commit.seq, commit.namespace)
        return len(page) == PAGE
