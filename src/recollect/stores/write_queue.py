"""The write queue: one writer at a time, first come first served, with group commit.

Making a commit durable costs about as much as ten writes, so threads that write at the same time share a transaction. A
thread that has finished its writes while others wait passes the open transaction to the next one, and waits until it is
committed; the last thread commits for all of them. A thread that finds no other thread waiting commits at once. This
module controls the write lock and passes on the outcome; `stores.sqlite` writes and commits.

States of a ticket: waiting, then holder, then released; with a shared transaction, released and then done.

    holder --hand_over--> released, waits in `Shared.result` --end(outcome)--> done     others wait and can share
    holder --commit, end(outcome), release--> done                                      no other thread waits

Invariants:

1. At most one ticket is the holder, and only the holder, or what recovers for it, uses the connection.
   `WriteQueue.holder` changes by a single assignment, so there is no moment at which two threads, or no thread, believe
   that they have an open transaction.
2. `Shared.members` counts the parts in the open transaction that must not be lost. A part is undone by its own
   savepoint; the transaction is rolled back as a whole only if it has no member, or if that fails: then for all.
3. A thread returns from `write` only after `Shared.end`. So what is acknowledged is durable, and a failed commit fails
   for every member.

No deadlock: a member waits for the commit only after it has passed the lock on, the holder waits for no member, and the
last thread finds no successor and commits. No starvation: the queue is first in, first out, and at most `MAX_SHARING`
parts share a transaction. No waiting for others to join: with one writer, a commit costs what it costs without a queue.

Source:
    D. DeWitt et al., Implementation techniques for main memory database systems, SIGMOD 1984 (group commit). The
    savepoints and the recovery from interruptions are ours.

An interruption (Ctrl-C) can strike between any two steps of a thread, including its cleanup. A waiting thread therefore
polls whether the thread it waits for is still inside its block (`ended`), and cleans up in its place if it is not.
"""

from __future__ import annotations

import copy
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from types import GeneratorType
from typing import Any, TypeAlias, TypeVar

from recollect.errors import RecollectError, StoreError
from recollect.ledger.commits import Branch

#: Maximum number of threads that share a transaction.
MAX_SHARING = 64
#: Interval at which a waiting thread polls, in case it was not woken.
POLL_S = 0.1
T = TypeVar("T")
#: A handle of a block: a weak reference to its generator.
Steps: TypeAlias = "weakref.ref[GeneratorType[Any, Any, Any]]"


def watched(steps: Generator[T, None, None]) -> tuple[AbstractContextManager[T], Steps]:
    """Return the context manager of a generator, and the handle with which `ended` detects the end of its block."""
    assert isinstance(steps, GeneratorType)
    return _block(steps), weakref.ref(steps)


@contextmanager
def _block(steps: Generator[T, None, None]) -> Generator[T, None, None]:
    return steps  # created by the caller, so that there is an object to watch


def ended(steps: Steps) -> bool:
    """Return whether the block is over, however it ended."""
    generator = steps()
    return generator is None or generator.gi_frame is None


class Shared:
    """A transaction in progress and its outcome. Only the thread that has the write lock changes it.

    Attributes:
        members: The number of threads that have written in it and depend on its commit.
        done: Whether its outcome is known.
    """

    def __init__(self) -> None:
        self.members = 0
        self.done = False
        self._error: RecollectError | None = None
        self._wake: threading.Event | None = None  # created when the first member has to wait

    def hand_over(self) -> None:
        """Prepare to wake a member that waits for the outcome."""
        self._wake = self._wake or threading.Event()

    def end(self, error: RecollectError | None) -> None:
        """Set the outcome and wake the members. None means durable; otherwise the commit failed with `error`."""
        self._error = error
        self.done = True
        if self._wake is not None:
            self._wake.set()

    def result(self, poll: Callable[[], object]) -> None:
        """Wait for the outcome.

        Args:
            poll: Called again and again while it takes long.

        Raises:
            RecollectError: The commit failed. Each member raises its own copy of the error.
        """
        while not self.done:
            assert self._wake is not None
            if not self._wake.wait(POLL_S):  # an interruption may have prevented the wake-up
                poll()
        if self._error is not None:
            raise copy.copy(self._error) from self._error


class Ticket:
    """A thread's request for the write lock: first waiting, then granted, then released.

    Attributes:
        shares: Whether it may join another thread's transaction and hand its own over.
        lookups: The branch in which it is going to look records up, and their ids.
        thread: The id of the thread.
        steps: A handle of the block in which the thread uses the lock; None if that cannot be interrupted.
        shared: The transaction that it was handed or has begun.
        inside: Whether it has a savepoint of its own in that transaction.
        unfinished: Whether it has written something in that transaction that is neither complete nor undone.
        queue: The queue in which it was enqueued.
        successor: The next holder of the lock, until it has been woken.
    """

    __slots__ = (
        "_granted",
        "inside",
        "lookups",
        "queue",
        "shared",
        "shares",
        "steps",
        "successor",
        "thread",
        "unfinished",
    )

    def __init__(self, *, shares: bool, lookups: tuple[Branch, Sequence[str]] | None = None) -> None:
        self.shares = shares
        self.lookups = lookups
        self.thread = threading.get_ident()
        self.steps: Steps | None = None
        self.inside = self.unfinished = False
        self.shared: Shared | None = None
        self.queue: WriteQueue | None = None
        self.successor: Ticket | None = None
        self._granted = threading.Lock()
        self._granted.acquire()

    @property
    def has_lock(self) -> bool:
        """True if it has the write lock."""
        return self.queue is not None and self.queue.holder is self

    @property
    def abandoned(self) -> bool:
        """True if its thread has left its block, so that it no longer needs the lock."""
        return self.steps is not None and ended(self.steps)

    def managed(self, steps: Generator[T, None, None]) -> AbstractContextManager[T]:
        """Return the context manager of a generator that acquires and releases the lock, and watch its block."""
        block, self.steps = watched(steps)
        return block

    def wait(self, timeout_s: float) -> None:
        """Wait until woken, or until the timeout."""
        self._granted.acquire(timeout=timeout_s)

    def wake_successor(self) -> None:
        """Wake the new holder of the lock. Call it again after an interruption: calling it twice is harmless."""
        if self.successor is not None:
            with suppress(RuntimeError):  # it was already woken before an interruption
                self.successor._granted.release()
            self.successor = None


class WriteQueue:
    """The write lock of a store, granted in the order of requests.

    Args:
        on_abandoned: A method of the store that releases the lock in place of a thread that was interrupted, if more
            than `release` is needed.

    Attributes:
        holder: The ticket that has the lock. It changes by a single assignment, which cannot be interrupted half-way:
            until then the old holder has the lock, from then on the new one. A waiting ticket stays in the queue until
            its own thread runs again.
    """

    def __init__(self, on_abandoned: Callable[[Ticket], object] | None = None) -> None:
        self._guard = threading.Lock()
        self._recovery = threading.Lock()
        # A weak reference, so that a store without other references is freed at once, together with its file.
        self._on_abandoned = None if on_abandoned is None else weakref.WeakMethod(on_abandoned)
        self.holder: Ticket | None = None
        self._waiters: deque[Ticket] = deque()

    @property
    def waiting(self) -> int:
        """The number of waiting tickets."""
        return len(self._waiters)

    def lookups(self, branch: Branch) -> list[str]:
        """Return the ids that waiting threads are going to look up in a branch, in the order of their turns."""
        with self._guard:
            waiting = [each.lookups for each in self._waiters if each.shares and each.lookups is not None]
        return [each for where, ids in waiting if where == branch for each in ids]

    def take(self, ticket: Ticket, timeout_s: float = -1) -> bool:
        """Wait for the lock and return whether it was granted. If this raises, `Ticket.has_lock` says so.

        Args:
            timeout_s: Maximum wait in seconds; -1 means no limit.
        """
        ticket.queue = self
        until = time.monotonic() + timeout_s if timeout_s >= 0 else float("inf")
        try:
            with self._guard:
                if self.holder is None:
                    self.holder = ticket
                    return True
                self._waiters.append(ticket)
            while not ticket.has_lock:
                self.release_abandoned()
                left = until - time.monotonic()
                if ticket.has_lock or left <= 0:
                    break
                ticket.wait(min(left, POLL_S))
        finally:
            with self._guard:
                if ticket in self._waiters:
                    self._waiters.remove(ticket)
        return ticket.has_lock

    def owned_by_caller(self) -> bool:
        """Return whether the calling thread has the lock."""
        holder = self.holder
        return holder is not None and holder.thread == threading.get_ident() and not holder.abandoned

    def release_abandoned(self) -> None:
        """Release the lock if its holder was interrupted before it could."""
        holder = self.holder
        if holder is not None and holder.abandoned:
            with self._recovery:
                release = self.release if self._on_abandoned is None else self._on_abandoned()
                if self.holder is holder and release is not None:
                    release(holder)

    def hand_over(self, ticket: Ticket) -> bool:
        """Pass the lock and the open transaction to the next waiting ticket. Return False if they cannot be shared."""
        with self._guard:
            shared = ticket.shared
            assert shared is not None
            successor = self._next(ticket)
            if not (ticket.shares and successor is not None and successor.shares and shared.members < MAX_SHARING):
                return False
            shared.hand_over()
            self._pass(ticket, shared)
        ticket.wake_successor()
        return True

    def release(self, ticket: Ticket) -> None:
        """Pass the lock on. No transaction may be open."""
        with self._guard:
            self._pass(ticket, None)
        ticket.wake_successor()

    def _next(self, ticket: Ticket) -> Ticket | None:
        """Return the first waiting ticket. Drop those that an interruption kept from leaving the queue."""
        while self._waiters and (self._waiters[0] is ticket or self._waiters[0].abandoned):
            self._waiters.popleft()
        return self._waiters[0] if self._waiters else None

    def _pass(self, ticket: Ticket, shared: Shared | None) -> None:
        successor = self._next(ticket)
        if successor is not None:
            successor.shared = shared
        ticket.successor = successor
        self.holder = successor


# Calls that are repeated after pages of a store were renewed (`Store.renew`).

#: How many times a call is repeated: another SQLite may checkpoint again and again meanwhile.
REPEATS = 10


def repeated(call: Callable[[], T], error: StoreError, renew: Callable[[StoreError], bool]) -> T:
    """Repeat a call that raised an error, as long as what it met could be renewed, and return its result.

    Args:
        call: The call. It must not be part of a transaction of the caller.
        error: What it raised.
        renew: Renews what raised an error, and returns whether that succeeded.

    Raises:
        StoreError: The last error, which could not be renewed.
    """
    for _ in range(REPEATS):
        if not renew(error):
            break
        try:
            return call()
        except StoreError as another:
            error = another
    raise error
