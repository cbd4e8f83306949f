"""Whose turn it is to write to a store: one thread at a time, in the order of their asking.

Making a commit durable takes as long as some ten writes. So threads that write at once share a transaction: whoever
has written and sees another waiting hands the transaction on, open, and waits; the last one commits for all of them.
Nobody waits for company: a thread that finds none commits at once. `stores.sqlite` does the writing and committing;
here is only who may, and what became of it.

An interruption (Ctrl-C) can strike between any two steps of a thread, those that tidy up included. So whoever waits
looks now and then whether the one it waits for is still at work, and tidies up in its place where not.
"""

from __future__ import annotations

import copy
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, suppress
from typing import TypeVar

from recollect.errors import RecollectError
from recollect.stores.interruptible import Steps, ended, watched

#: So many threads share a transaction at most.
MOST = 64
#: Who was not woken finds out after so long by looking.
LOOK_AGAIN_S = 0.1


T = TypeVar("T")


class Shared:
    """A transaction under way, and what becomes of it. Changed only by the thread whose turn it is.

    members   how many have written in it, and depend on its commit
    """

    def __init__(self) -> None:
        self.members = 0
        self.over = False
        self._error: RecollectError | None = None
        self._waking: threading.Event | None = None  # made when the first member has to wait

    def hand_over(self) -> None:
        """There will be somebody to wake."""
        self._waking = self._waking or threading.Event()

    def end(self, error: RecollectError | None) -> None:
        """It is durable, or nothing of it is held because of an error."""
        self._error = error
        self.over = True
        if self._waking is not None:
            self._waking.set()

    def result(self, look: Callable[[], object]) -> None:
        """Wait for its end; `look` is called while it takes long.

        Raises: the error because of which nothing of it is held, to each member its own.
        """
        while not self.over:
            assert self._waking is not None
            if not self._waking.wait(LOOK_AGAIN_S):  # an interruption may have cut off the waking of some
                look()
        if self._error is not None:
            raise copy.copy(self._error) from self._error


class Ticket:
    """A thread's turn: asked for, then held, then given up.

    shares     whether it may write in another's transaction, and leave its own to others
    thread     whose turn it is
    steps      what the thread does in its turn; None where nothing can interrupt that
    shared     the transaction that it was handed, or has begun
    inside     whether it has a savepoint of its own there
    successor  who holds the turn after it and is yet to be woken
    """

    __slots__ = ("_granted", "inside", "queue", "shared", "shares", "steps", "successor", "thread")

    def __init__(self, *, shares: bool) -> None:
        self.shares = shares
        self.thread = threading.get_ident()
        self.steps: Steps | None = None
        self.inside = False
        self.shared: Shared | None = None
        self.queue: WriteQueue | None = None
        self.successor: Ticket | None = None
        self._granted = threading.Lock()
        self._granted.acquire()

    @property
    def held(self) -> bool:
        """Whether it is its turn."""
        return self.queue is not None and self.queue.holder is self

    @property
    def abandoned(self) -> bool:
        """Whether its thread has gone on to other things without giving it up."""
        return self.steps is not None and ended(self.steps)

    def around(self, steps: Generator[T, None, None]) -> AbstractContextManager[T]:
        """The context manager of a generator that takes the turn and gives it up. Who waits sees when it is over."""
        managed, self.steps = watched(steps)
        return managed

    def wait(self, timeout_s: float) -> None:
        """Until it is woken, or the time is over."""
        self._granted.acquire(timeout=timeout_s)

    def wake_successor(self) -> None:
        """Wake who holds the turn now. To be called until it has returned: doing it twice does no harm."""
        if self.successor is not None:
            with suppress(RuntimeError):  # woken already, before an interruption
                self.successor._granted.release()
            self.successor = None


class WriteQueue:
    """The turns of a store. One is held at a time.

    give_up  a method of the store's that gives up a turn in place of its thread, where more than `release` is needed
    holder   whose turn it is. It passes on in one step, which nothing can interrupt half-way: before it the turn is
            still held, after it the next one's. Who asks stands in the queue until it is itself at work again.
    """

    def __init__(self, give_up: Callable[[Ticket], object] | None = None) -> None:
        self._guard = threading.Lock()
        self._mending = threading.Lock()
        # Weak: a store that nobody has any more is to go at once, with its file.
        self._give_up = None if give_up is None else weakref.WeakMethod(give_up)
        self.holder: Ticket | None = None
        self._waiters: deque[Ticket] = deque()

    @property
    def waiting(self) -> int:
        """How many have asked and wait."""
        return len(self._waiters)

    def take(self, ticket: Ticket, timeout_s: float = -1) -> bool:
        """Wait until the turn is held (-1: as long as it takes); whether it is. Where this raises, `held` tells."""
        ticket.queue = self
        until = time.monotonic() + timeout_s if timeout_s >= 0 else float("inf")
        try:
            with self._guard:
                if self.holder is None:
                    self.holder = ticket
                    return True
                self._waiters.append(ticket)
            while not ticket.held:
                self.look()
                left = until - time.monotonic()
                if ticket.held or left <= 0:
                    break
                ticket.wait(min(left, LOOK_AGAIN_S))
        finally:
            with self._guard:
                if ticket in self._waiters:
                    self._waiters.remove(ticket)
        return ticket.held

    def mine(self) -> bool:
        """Whether it is the calling thread's turn."""
        holder = self.holder
        return holder is not None and holder.thread == threading.get_ident() and not holder.abandoned

    def look(self) -> None:
        """See whether the holder is still at work, and give its turn up for it where not."""
        holder = self.holder
        if holder is not None and holder.abandoned:
            with self._mending:
                give_up = self.release if self._give_up is None else self._give_up()
                if self.holder is holder and give_up is not None:
                    give_up(holder)

    def hand_over(self, ticket: Ticket) -> bool:
        """Give the turn up to the next who asks, with its open transaction; False where it stays: nobody shares."""
        with self._guard:
            shared = ticket.shared
            assert shared is not None
            successor = self._next(ticket)
            if not (ticket.shares and successor is not None and successor.shares and shared.members < MOST):
                return False
            shared.hand_over()
            self._pass(ticket, shared)
        ticket.wake_successor()
        return True

    def release(self, ticket: Ticket) -> None:
        """Give the turn up. No transaction is open."""
        with self._guard:
            self._pass(ticket, None)
        ticket.wake_successor()

    def _next(self, ticket: Ticket) -> Ticket | None:
        """Who asks next. One that was interrupted before it could leave the queue asks no more."""
        while self._waiters and (self._waiters[0] is ticket or self._waiters[0].abandoned):
            self._waiters.popleft()
        return self._waiters[0] if self._waiters else None

    def _pass(self, ticket: Ticket, shared: Shared | None) -> None:
        successor = self._next(ticket)
        if successor is not None:
            successor.shared = shared
        ticket.successor = successor
        self.holder = successor
