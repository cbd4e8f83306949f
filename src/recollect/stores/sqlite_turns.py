"""Whose turn it is to write to a store: one thread at a time, in the order of their asking.

Making a commit durable takes as long as some ten writes. So threads that write at once share a transaction: whoever
has written and sees another waiting hands the transaction on, open, and waits; the last one commits for all of them.
Nobody waits for company: a thread that finds none commits at once. `stores.sqlite` does the writing and committing;
here is only who may, and what became of it.
"""

from __future__ import annotations

import copy
import threading
from collections import deque
from contextlib import suppress

from recollect.errors import RecollectError

#: So many threads share a transaction at most.
MOST = 64
#: Who was not woken finds out after so long by looking.
_LOOK_AGAIN_S = 0.5


class Shared:
    """A transaction under way, and what becomes of it. Changed only by the thread whose turn it is.

    members   how many have written in it, and depend on its commit
    """

    def __init__(self) -> None:
        self.members = 0
        self.over = False
        self._error: RecollectError | None = None
        self._waking: threading.Event | None = None  # made when the first member has to wait

    def hand_on(self) -> None:
        """There will be somebody to wake."""
        self._waking = self._waking or threading.Event()

    def end(self, error: RecollectError | None) -> None:
        """It is durable, or nothing of it is held because of an error."""
        self._error = error
        self.over = True
        if self._waking is not None:
            self._waking.set()

    def result(self) -> None:
        """Wait for its end. Raises: the error because of which nothing of it is held, to each member its own."""
        while not self.over:
            assert self._waking is not None
            self._waking.wait(_LOOK_AGAIN_S)  # an interruption may have cut off the waking of some
        if self._error is not None:
            raise copy.copy(self._error) from self._error


class Turn:
    """A thread's turn: asked for, then held, then given up.

    shares     whether it may write in another's transaction, and leave its own to others
    shared     the transaction that it was handed, or has begun
    inside     whether it has a savepoint of its own there
    successor  who holds the turn after it and is yet to be woken
    """

    __slots__ = ("_given", "inside", "of", "shared", "shares", "successor")

    def __init__(self, *, shares: bool) -> None:
        self.shares = shares
        self.inside = False
        self.shared: Shared | None = None
        self.of: Turns | None = None
        self.successor: Turn | None = None
        self._given = threading.Lock()
        self._given.acquire()

    @property
    def held(self) -> bool:
        """Whether it is its turn."""
        return self.of is not None and self.of.holder is self

    def wait(self, timeout_s: float) -> None:
        """Until it is woken, or the time is over."""
        self._given.acquire(timeout=timeout_s)

    def wake_successor(self) -> None:
        """Wake who holds the turn now. To be called until it has returned: doing it twice does no harm."""
        if self.successor is not None:
            with suppress(RuntimeError):  # woken already, before an interruption
                self.successor._given.release()
            self.successor = None


class Turns:
    """The turns of a store. One is held at a time.

    holder  whose turn it is. It passes on in one step, which nothing can interrupt half-way: before it the turn is
            still held, after it the next one's. Who asks stands in the queue until it is itself at work again.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self.holder: Turn | None = None
        self._asking: deque[Turn] = deque()

    @property
    def waiting(self) -> int:
        """How many have asked and wait."""
        return len(self._asking)

    def take(self, turn: Turn, timeout_s: float = -1) -> bool:
        """Wait until the turn is held (-1: as long as it takes); whether it is. Where this raises, `held` tells."""
        turn.of = self
        try:
            with self._guard:
                if self.holder is None:
                    self.holder = turn
                    return True
                self._asking.append(turn)
            turn.wait(timeout_s)
        finally:
            with self._guard:
                if turn in self._asking:
                    self._asking.remove(turn)
        return turn.held

    def hand_on(self, turn: Turn) -> bool:
        """Give the turn up to the next who asks, with its open transaction; False where it stays: nobody shares."""
        with self._guard:
            shared = turn.shared
            assert shared is not None
            if not (turn.shares and self._asking and self._asking[0].shares and shared.members < MOST):
                return False
            shared.hand_on()
            self._pass(turn, shared)
        turn.wake_successor()
        return True

    def release(self, turn: Turn) -> None:
        """Give the turn up. No transaction is open."""
        with self._guard:
            self._pass(turn, None)
        turn.wake_successor()

    def _pass(self, turn: Turn, shared: Shared | None) -> None:
        successor = self._asking[0] if self._asking else None
        if successor is not None:
            successor.shared = shared
        turn.successor = successor
        self.holder = successor
