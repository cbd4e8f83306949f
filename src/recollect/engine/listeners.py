"""The feed: commits delivered to listeners, in order, each once, after they are durable.

A listener has a thread of its own and reads the log from where it stands, so a slow one delays nobody, nothing is
queued without bound, and nothing is lost: what it has not seen yet is still in the log. An exception in a callback is
logged and kept; the next commit is delivered all the same.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from recollect.errors import ClosedError, ForkedError, RecollectError
from recollect.ledger.commits import Commit

_log = logging.getLogger("recollect")
#: How many commits are read from the log at a time.
_PAGE = 256


#: Gives the commits after a seq, at most so many: each with its seq, or None where the listener may not see it.
Read = Callable[[int, int], Sequence[tuple[int, Commit | None]]]


class Subscription:
    """One listener. Close it, or leave its `with` block, to end it; what was committed before is delivered first."""

    def __init__(self, callback: Callable[[Commit], object], read: Read, since: int, feed: Feed) -> None:
        self._callback = callback
        self._read = read
        self._seen = since
        self._feed = feed
        self._woken = threading.Condition()
        self._wakes = 1
        self._done = 0
        self._closing = False
        #: The last exception that the callback raised, if any.
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="recollect-listener", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Tell the listener that the log may have grown."""
        with self._woken:
            self._wakes += 1
            self._woken.notify_all()

    def drain(self) -> None:
        """Wait until everything that is committed now has been delivered."""
        if threading.current_thread() is self._thread:
            return  # the callback itself: waiting would be for ever
        with self._woken:
            self._wakes += 1
            wanted = self._wakes
            self._woken.notify_all()
            self._woken.wait_for(lambda: self._done >= wanted or not self._thread.is_alive())

    def close(self) -> None:
        """Deliver what is committed, then end. May be called from the callback itself."""
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
            except (ClosedError, ForkedError) as error:  # there is nothing more to read
                self.error = error
                closing = True
            except RecollectError as error:  # busy, or out of reach for now: the log keeps what is to be delivered
                self.error = error
                _log.warning("a listener could not read the log, and tries again at the next commit: %s", error)
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
                except BaseException as error:  # noqa: BLE001 - the callback is not ours; what it raises is kept
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
        """Deliver the commits after `since`, which `read(since, limit)` gives, to a callback."""
        subscription = Subscription(callback, read, since, self)
        with self._lock:
            self._subscriptions.append(subscription)
        subscription.wake()  # for what was committed before it was in the list
        return subscription

    def discard(self, subscription: Subscription) -> None:
        with self._lock:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)

    def wake(self) -> None:
        """The log may have grown."""
        with self._lock:
            subscriptions = list(self._subscriptions)
        for subscription in subscriptions:
            subscription.wake()

    def close(self) -> None:
        """End every listener, after delivering what is committed."""
        with self._lock:
            subscriptions = list(self._subscriptions)
        for subscription in subscriptions:
            subscription.close()
