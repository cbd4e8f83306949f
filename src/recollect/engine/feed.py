"""The feed: wakes the subscribers of a branch when it has new commits, and runs the callbacks of listeners.

A subscriber is woken by a commit to its own branch only, and then reads the log from its own position. So there is no
queue of commits, and nothing is lost: a commit that is not delivered yet is in the log.

While a store has subscribers, one thread, the watcher, notices commits of other processes: it polls the store's version
(`Store.version`) and, if that has changed, compares the heads of their branches in one view. Callbacks run in another
thread, one after the other. When one takes long while others wait, the watcher starts a further thread for those.
Threads that have nothing to do end.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Collection
from time import monotonic
from typing import Protocol

from recollect.errors import ClosedError, ForkedError, RecollectError
from recollect.ledger.commits import Branch, Commit
from recollect.stores.base import Store

_log = logging.getLogger("recollect")
#: Seconds between two looks at the version of the store.
POLL_S = 0.25
#: How long a callback may keep other listeners waiting before another thread serves them, in seconds.
PATIENCE_S = 0.05
#: How long a thread that ran callbacks waits for the next one before it ends, in seconds.
LINGER_S = 1.0
#: Number of commits that are read at a time.
PAGE = 256


class CommitLog(Protocol):
    """The commits of a branch as a scope sees them."""

    branch: Branch

    def head(self) -> int:
        """Return the seq of the newest commit."""

    def start(self, since: int | str | None) -> int:
        """Return the seq of a cursor, or that of the newest commit for None, if the store can be read."""

    def seq(self, cursor: int | str) -> int:
        """Return the seq of a cursor.

        Raises:
            InvalidArgumentError: It is not a cursor of this branch and scope.
            ScopeError: It is a seq, within a scope.
        """

    def read(self, since: int) -> list[tuple[int, Commit | None]]:
        """Return up to `PAGE` commits after a seq, each with its seq; None for one that the scope does not see."""


class Subscriber(Protocol):
    """Something that reads the log of a branch and is woken by new commits.

    Attributes:
        seen: The seq up to which it has read the log.
    """

    branch: Branch
    seen: int

    def notify(self) -> None:
        """Read the log soon. Called in any thread; does not block."""

    def close(self) -> None:
        """End, because the memory is closed."""


class Watch(Protocol):
    """A source of commits of other processes, which a feed watches: a store, or a server.

    Attributes:
        path: Where the store is, for messages.
        watched: Whether other processes can commit, so that `version` must be polled.
    """

    path: str
    watched: bool

    def version(self) -> int:
        """Return a number that changes with every commit of any process."""

    def heads(self, branches: Collection[Branch]) -> dict[Branch, int]:
        """Return the seq of the newest commit of each branch."""


class StoreWatch:
    """A `Watch` of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.path = store.path
        self.watched = store.capabilities.watched

    def version(self) -> int:
        """Return the store's version."""
        return self._store.version()

    def heads(self, branches: Collection[Branch]) -> dict[Branch, int]:
        """Return the newest seqs, from one view."""
        with self._store.read() as view:
            return {branch: view.head(branch).seq for branch in branches}


class Job(Protocol):
    """A piece of work that may call the caller's code, and so may take long."""

    def run(self) -> None:
        """Do the work."""


class Feed:
    """The subscribers of a store and the threads that serve them.

    Args:
        watch: The store.
    """

    def __init__(self, watch: Watch) -> None:
        self._pid = os.getpid()
        self._source = watch
        self._lock = threading.Lock()  # guards everything below; no other lock is taken while it is held
        self._watching = threading.Condition(self._lock)  # the watcher waits here
        self._working = threading.Condition(self._lock)  # idle workers wait here
        self._subscribers: dict[Branch, set[Subscriber]] = {}
        self._abandoned: deque[Subscriber] = deque()
        self._ready: dict[Job, None] = {}  # submitted jobs, in order; one that runs may be submitted again
        self._running: dict[Job, tuple[float, threading.Thread]] = {}  # when each began, and its worker
        self._idle: set[threading.Thread] = set()  # workers that wait for a job, including those that are starting
        self._threads: set[threading.Thread] = set()  # the watcher, the workers, and those that have just ended
        self._watcher_runs = False
        self._supervising = False  # the watcher waits only for the patience with the current jobs to end
        self._behind = False  # a subscriber could not read the log: wake those that are behind at the next poll
        self._failing = False  # the last poll failed
        self._starved = False  # the last worker could not be started

    @property
    def forked(self) -> bool:
        """True if this process is a fork of the one that opened the store: its threads and locks are not usable."""
        return os.getpid() != self._pid

    def check_process(self) -> None:
        """Raise ForkedError if this process is a fork of the one that opened the store."""
        if self.forked:
            raise ForkedError(self._source.path, self._pid)

    # Subscribers

    def add(self, subscriber: Subscriber) -> None:
        """Wake a subscriber from now on. It must read the log once more, for the commits made before this call.

        Raises:
            ForkedError: The store was opened by the parent process.
        """
        self.check_process()
        with self._lock:
            self._prune()
            self._start_watcher()
            self._subscribers.setdefault(subscriber.branch, set()).add(subscriber)

    def discard(self, subscriber: Subscriber) -> None:
        """Stop waking a subscriber."""
        with self._lock:
            self._remove(subscriber)
            if not self._subscribers:
                self._watching.notify()

    def abandon(self, subscriber: Subscriber) -> None:
        """Discard a subscriber soon. A finalizer may run in a thread that already has the lock, so this takes none."""
        self._abandoned.append(subscriber)

    def wake(self, branch: Branch) -> None:
        """Wake the subscribers of a branch, after a commit of this process is durable.

        Cost:
            Without subscribers of the branch, one look into a dictionary.
        """
        if branch not in self._subscribers or self.forked:
            return
        with self._lock:
            subscribers = tuple(self._subscribers.get(branch, ()))
        for subscriber in subscribers:
            subscriber.notify()

    def close(self) -> None:
        """Close all subscribers: listeners after the commits made so far are delivered to them."""
        for subscriber in self._all():
            subscriber.close()
            self.discard(subscriber)

    def join(self) -> None:
        """Close what was added since `close`, and wait until the threads have ended. Call it after closing the store.

        A worker that still runs a callback is not waited for.
        """
        self.close()
        with self._lock:
            self._working.notify_all()
            self._watching.notify()
            threads = self._threads - {thread for _, thread in self._running.values()}
        for thread in threads:
            thread.join()

    def _all(self) -> tuple[Subscriber, ...]:
        with self._lock:
            self._prune()
            return tuple(subscriber for subscribers in self._subscribers.values() for subscriber in subscribers)

    def _remove(self, subscriber: Subscriber) -> None:
        subscribers = self._subscribers.get(subscriber.branch, set())
        subscribers.discard(subscriber)
        if not subscribers:
            self._subscribers.pop(subscriber.branch, None)

    def _prune(self) -> None:
        while self._abandoned:
            self._remove(self._abandoned.popleft())

    # Callbacks

    def submit(self, job: Job) -> None:
        """Run a job in a worker, once for all calls before it begins, and after it has ended if it runs."""
        with self._lock:
            if job in self._running:
                self._ready.pop(job, None)  # it comes after those that have waited meanwhile
                self._ready[job] = None
                return  # its worker continues with it
            self._ready[job] = None
            self._start_watcher()
            if self._idle and self._may_begin(monotonic()):
                self._working.notify()
            elif not self._supervising:
                self._watching.notify()

    def retry(self) -> None:
        """Wake the subscribers that are behind at the next poll: one of them could not read the log."""
        with self._lock:
            self._behind = True
            self._watching.notify()

    def _may_begin(self, now: float) -> bool:
        """Return whether to begin the next job now."""
        return self._next_job() is not None and now >= self._patience_ends()

    def _next_job(self) -> Job | None:
        return next((job for job in self._ready if job not in self._running), None)

    def _patience_ends(self) -> float:
        """Return when the running jobs no longer keep the next one waiting: the more of them take long, the sooner."""
        began = [each for each, _ in self._running.values()]
        return max(began) + PATIENCE_S / len(began) if began else 0.0

    def _start(self, run: Callable[[], None], name: str) -> threading.Thread:
        """Start a thread, which needs the lock to begin."""
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        self._threads = {thread, *(each for each in self._threads if each.is_alive())}
        return thread

    def _start_worker(self) -> None:
        try:
            self._idle.add(self._start(self._work, "recollect-listener"))
        except RuntimeError as error:  # there are too many threads; a worker that becomes free runs the job
            if not self._starved:
                _log.warning("listeners wait, because no thread for them can be started: %s", error)
            self._starved = True
        else:
            self._starved = False

    def _work(self) -> None:
        """Run jobs until there is none for a while."""
        thread = threading.current_thread()
        with self._lock:
            while not self._unused():
                if self._may_begin(monotonic()):
                    self._idle.discard(thread)
                    self._run_next(thread)
                    self._idle.add(thread)
                elif not self._working.wait(LINGER_S) and not self._may_begin(monotonic()):
                    break
            self._idle.discard(thread)

    def _run_next(self, thread: threading.Thread) -> None:
        """Run the next job, without the lock."""
        job = self._next_job()
        assert job is not None
        del self._ready[job]
        self._running[job] = monotonic(), thread
        if self._next_job() is not None and not self._supervising:
            self._watching.notify()
        self._lock.release()
        try:
            job.run()
        finally:
            self._lock.acquire()
            del self._running[job]

    def _unused(self) -> bool:
        """Return whether the threads can end."""
        return not self._subscribers and self._next_job() is None

    # The watcher

    def _start_watcher(self) -> None:
        if not self._watcher_runs:
            self._start(self._watch, "recollect-feed")
            self._watcher_runs = True

    def _watch(self) -> None:
        """Poll the store and start workers, until there are no subscribers."""
        version: int | None = None
        due = monotonic()
        while True:
            with self._lock:
                while not (self._polls() and monotonic() >= due):
                    self._prune()
                    if self._unused():
                        self._watcher_runs = False
                        self._working.notify_all()
                        return
                    self._supervise(due)
            try:
                version = self._poll(version)
            except BaseException:  # not an error of the store, but of its code; the next subscriber starts a thread
                with self._lock:
                    self._watcher_runs = False
                raise
            due = monotonic() + POLL_S

    def _polls(self) -> bool:
        return bool(self._subscribers) and (self._source.watched or self._behind)

    def _supervise(self, due: float) -> None:
        """See to it that the next job begins, then wait until there is something to do."""
        now = monotonic()
        if self._may_begin(now):
            if self._idle:
                self._working.notify()
            else:
                self._start_worker()
        times = [due] if self._polls() else []
        self._supervising = self._next_job() is not None
        if self._supervising:
            times.append(max(self._patience_ends(), now + PATIENCE_S / (1 + len(self._running))))
        self._watching.wait(max(0.0, min(times) - now) if times else None)
        self._supervising = False

    def _poll(self, version: int | None) -> int | None:
        """Wake the subscribers that are behind, if the version of the store has changed. Return the new version."""
        try:
            with self._lock:
                behind, self._behind = self._behind, False
            newest = self._source.version() if self._source.watched else None
            if newest != version or behind:
                self._wake_behind()
        except RecollectError as error:
            if not self._failing and not isinstance(error, ClosedError):
                _log.warning("the store cannot be watched for commits; it is tried again: %s", error)
            if not self._failing:  # once: the subscribers get the error when they read the log
                for subscriber in self._all():
                    subscriber.notify()
            self._failing = self._behind = True
            return None
        self._failing = False
        return newest

    def _wake_behind(self) -> None:
        """Wake the subscribers whose branch has commits that they have not read."""
        with self._lock:
            subscribed = [(branch, tuple(subscribers)) for branch, subscribers in self._subscribers.items()]
        heads = self._source.heads([branch for branch, _ in subscribed])
        for branch, subscribers in subscribed:
            for subscriber in subscribers:
                if subscriber.seen < heads[branch]:
                    subscriber.notify()
