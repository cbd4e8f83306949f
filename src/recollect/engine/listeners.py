"""The feed: delivers durable commits to listeners, in order, each once.

Each listener has a thread of its own and reads the log from its own position. So a slow listener delays no other
thread, there is no unbounded queue, and nothing is lost: commits that are not delivered yet are in the log. An
exception in a callback is logged and stored in `Subscription.error`, and the next commit is delivered nevertheless.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from recollect.errors import ClosedError, ForkedError, RecollectError
from recollect.ledger.commits import Commit

_log = logging.getLogger("recollect")
#: Number of commits that are read from the log at a time.
_PAGE = 256


#: (seq, limit) -> the commits after a seq, each with its seq; None for a commit that the listener must not see.
Read = Callable[[int, int], Sequence[tuple[int, Commit | None]]]


class Subscription:
    """A listener, created by `Memory.listen`.

    Close it, or leave its `with` block, to stop it. Commits made before that are delivered first.

    Attributes:
        error: The last exception that the callback raised, or that ended or delayed the listener; None if there was
            none.
    """

    def __init__(self, callback: Callable[[Commit], object], read: Read, since: int, feed: Feed) -> None:
        self._callback = callback
        self._read = read
        self._seen = since
        self._feed = feed
        self._woken = threading.Condition()
        self._wakes = 1
        self._done = 0
        self._closing = False
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="recollect-listener", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Make the listener read the log, which may have new commits of another process."""
        with self._woken:
            self._wakes += 1
            self._woken.notify_all()

    def drain(self) -> None:
        """Wait until all commits made before this call have been delivered. Returns at once within the callback."""
        if threading.current_thread() is self._thread:
            return  # called by the callback: waiting would never end
        with self._woken:
            self._wakes += 1
            target = self._wakes
            self._woken.notify_all()
            self._woken.wait_for(lambda: self._done >= target or not self._thread.is_alive())

    def close(self) -> None:
        """Deliver the commits made so far, then stop. May be called by the callback."""
        with self._woken:
            self._closing = True
            self._wakes += 1
            self._woken.notify_all()
        self._feed.discard(self)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _run(self) -> None:
        while True:
            with self._woken:
                self._woken.wait_for(lambda: self._wakes > self._done)
                wakes, closing = self._wakes, self._closing
            try:
                self._deliver()
            except (ClosedError, ForkedError) as error:  # the log cannot be read any more
                self.error = error
                closing = True
            except RecollectError as error:  # busy or unavailable for now: the commits stay in the log
                self.error = error
                _log.warning("a listener could not read the log; it retries at the next commit: %s", error)
            with self._woken:
                self._done = wakes
                self._woken.notify_all()
            if closing:
                return

    def _deliver(self) -> None:
        while True:
            commits = self._read(self._seen, _PAGE)
            for seq, commit in commits:
                self._seen = seq
                if commit is None:
                    continue
                try:
                    self._callback(commit)
                except BaseException as error:  # noqa: BLE001 - the callback may raise anything; it is stored
                    self.error = error
                    _log.exception("a listener failed on commit %d of %r", commit.seq, commit.namespace)
            if len(commits) < _PAGE:
                return


class Feed:
    """The listeners of a store."""

    def __init__(self) -> None:
        self._subscriptions: list[Subscription] = []
        self._lock = threading.Lock()

    def add(self, callback: Callable[[Commit], object], read: Read, since: int) -> Subscription:
        """Deliver the commits after `since`, which `read(since, limit)` returns, to a callback."""
        subscription = Subscription(callback, read, since, self)
        with self._lock:
            self._subscriptions.append(subscription)
        subscription.wake()  # for commits made before it was added to the list
        return subscription

    def discard(self, subscription: Subscription) -> None:
        """Stop waking a listener."""
        with self._lock:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)

    def wake(self) -> None:
        """Make all listeners read the log."""
        with self._lock:
            subscriptions = list(self._subscriptions)
        for subscription in subscriptions:
            subscription.wake()

    def close(self) -> None:
        """Stop all listeners, after delivering the commits made so far."""
        with self._lock:
            subscriptions = list(self._subscriptions)
        for subscription in subscriptions:
            subscription.close()
