"""Commit streams: the commits of a branch as an iterator that waits for the next one.

A stream has no thread. It reads the log in the thread of its consumer, from its own position, and is woken by the feed.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from time import monotonic

from recollect.common.uncopied import Uncopied
from recollect.engine.feed import PAGE, CommitLog, Feed
from recollect.errors import ClosedError
from recollect.ledger.commits import Branch, Commit
from recollect.operations import check_timeout


class CommitStream(Uncopied):
    """An iterator over the commits of a memory, in order, each once. Created by `Memory.subscribe`.

    `next` waits until there is a commit. Once the stream or its memory is closed, also by another thread while it
    waits, the iteration ends, even if there are commits that were not read; a new stream continues from the cursor of
    the last commit. If the store fails, `next` raises and the position stays. Several threads may read one stream;
    each commit goes to one of them.

    Close a stream, or leave its `with` block, when it is not needed any more.
    """

    def __init__(self, log: CommitLog, since: int, feed: Feed) -> None:
        self._log = log
        self._feed = feed
        self._waiter = _Waiter(log.branch, since)
        self._page: deque[Commit] = deque()
        self._reading = threading.Lock()
        self._subscribed = False

    @property
    def closed(self) -> bool:
        """Whether the stream has ended: it or its memory was closed."""
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
        if timeout is not None:
            check_timeout(timeout)
        self._feed.check_process()
        deadline = None if timeout is None else monotonic() + timeout
        while not self._waiter.ended:
            wakes = self._waiter.wakes
            if (commit := self._next()) is not None:
                return commit
            remaining = None if deadline is None else deadline - monotonic()
            if remaining is not None and remaining <= 0:
                return None
            if self._subscribe():
                continue  # a commit may have been made since it was read
            self._waiter.wait(wakes, remaining)
        return None

    def close(self) -> None:
        """End the stream."""
        if not self._feed.forked:
            self._waiter.close()
            with self._reading:  # so that another thread does not add the waiter afterwards
                self._feed.discard(self._waiter)

    def __iter__(self) -> CommitStream:
        return self

    def __next__(self) -> Commit:
        commit = self.wait()
        if commit is None:
            raise StopIteration
        return commit

    def __enter__(self) -> CommitStream:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _next(self) -> Commit | None:
        """Return the next commit, from the current page or else from the log; None if there is none now."""
        with self._reading:
            more = True
            while not self._page and more and not self._waiter.ended:
                try:
                    page = self._log.read(self._waiter.seen)
                except ClosedError:  # the memory was closed
                    self._waiter.close()
                    self._feed.discard(self._waiter)
                    return None
                if page:
                    self._waiter.seen = page[-1][0]
                self._page.extend(commit for _, commit in page if commit is not None)
                more = len(page) == PAGE
            return self._page.popleft() if self._page else None

    def _subscribe(self) -> bool:
        """Make the feed wake this stream, and return whether it did not do so before."""
        with self._reading:
            if self._subscribed or self._waiter.ended:
                return False
            self._feed.add(self._waiter)
            self._subscribed = True
            # A loop that is left early drops the stream without closing it.
            weakref.finalize(self, self._feed.abandon, self._waiter).atexit = False
            return True


class _Waiter:
    """The subscriber of a stream. It does not refer to the stream, so that an abandoned stream is collected."""

    def __init__(self, branch: Branch, since: int) -> None:
        self.branch = branch
        self.seen = since
        self.wakes = 0
        self.ended = False
        self._changed = threading.Condition()

    def notify(self) -> None:
        with self._changed:
            self.wakes += 1
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def wait(self, wakes: int, timeout_s: float | None) -> None:
        """Wait until it is woken again after its first `wakes` times, or closed."""
        with self._changed:
            self._changed.wait_for(lambda: self.ended or self.wakes != wakes, timeout_s)
