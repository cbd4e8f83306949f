"""The connections of a store: a few, lent for one view or transaction each, in the order in which threads ask.

psycopg_pool is not used: it hands connections back through a thread of its own, and closes one whose answer has not
been read, so each view would have to wait for its ROLLBACK, a round trip as long as the read itself.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from recollect.errors import ClosedError, ForkedError, StoreBusyError
from recollect.stores.postgres.session import Session

#: Seconds after which a connection is replaced, at least; up to a quarter more, so that not all are at once.
MAX_AGE_S = 1800.0
#: How often a thread that waits looks whether the store was closed.
_POLL_S = 0.1


class SessionPool:
    """Lends sessions.

    Args:
        connect: Opens a session.
        path: The address without secrets, for messages.
        size: Maximum number of sessions that are lent at a time. A thread that has one gets another one beyond that:
            two threads that each waited for the other's would wait for ever.
        timeout_s: How long a thread waits for a session before StoreBusyError.
    """

    def __init__(self, connect: Callable[[], Session], path: str, size: int, timeout_s: float) -> None:
        self._connect = connect
        self._path = path
        self._timeout_s = timeout_s
        self._pid = os.getpid()
        self._guard = threading.Lock()
        self._free = size
        self._waiters: deque[threading.Event] = deque()
        self._loans = count(1)
        self._idle: list[Session] = []
        self._lent: dict[Session, int] = {}  # the thread that has each
        self._beyond: set[Session] = set()  # those that are lent beyond `size`
        self._returned = threading.Condition(self._guard)
        self._closed = False
        self._size = size
        self._opened = 0

    def facts(self) -> dict[str, int]:
        """Return its size, and how many sessions are lent, how many threads wait, and how many were opened."""
        with self._guard:
            return {
                "pool_size": self._size,
                "pool_lent": len(self._lent),
                "pool_waiting": len(self._waiters),
                "pool_opened": self._opened,
            }

    def check_usable(self) -> None:
        """Raise ForkedError in a forked process, and ClosedError if the store is closed."""
        if os.getpid() != self._pid:
            raise ForkedError(self._path, self._pid)
        if self._closed:
            raise ClosedError("the memory")

    @contextmanager
    def session(self, *, waits: bool = True) -> Iterator[Session]:
        """Lend a session while the block runs. See `take`."""
        session, loan = self.take(waits=waits)
        try:
            yield session
        finally:
            self.give_back(session, loan)

    def take(self, *, waits: bool = True) -> tuple[Session, int]:
        """Lend a session to this thread, and return it with the number of the loan.

        Args:
            waits: Wait for one if all are lent; otherwise that is a StoreBusyError at once.
        """
        self.check_usable()
        thread = threading.get_ident()
        with self._guard:
            beyond = thread in self._lent.values()
        if not beyond:
            self._wait(self._timeout_s if waits else 0.0)
        try:
            session = self._idle_or_new()
            with self._guard:
                if self._closed:
                    session.close()
                    raise ClosedError("the memory")
                self._lent[session] = thread
                session.loan = next(self._loans)
                if beyond:
                    self._beyond.add(session)
        except BaseException:
            if not beyond:
                self._pass_on()
            raise
        return session, session.loan

    def adopt(self, session: Session) -> None:
        """Note that a session, which another thread took, is this thread's now."""
        with self._guard:
            self._lent[session] = threading.get_ident()

    def _idle_or_new(self) -> Session:
        now = time.monotonic()
        while True:
            with self._guard:
                session = self._idle.pop() if self._idle else None
            if session is None:
                session = self._connect()
                with self._guard:
                    self._opened += 1
                session.expires = now + MAX_AGE_S * random.uniform(1, 1.25)
                return session
            if now < session.expires:
                return session
            session.close()

    def give_back(self, session: Session, loan: int) -> None:
        """Take a session back. A transaction that is still open on it is rolled back.

        Nothing happens if that was done before, as before an interruption: it may have been lent again by now.
        """
        if os.getpid() != self._pid:
            return  # a fork must not touch its parent's connections
        if session.loan != loan:
            return
        keep = False
        try:
            session.roll_back()
            keep = True
        finally:  # also if it is interrupted
            with self._guard:
                keep = keep and not self._closed and not session.lost and not session.connection.closed
                if keep:
                    self._idle.append(session)
                del self._lent[session]
                session.loan = 0
                beyond = session in self._beyond
                self._beyond.discard(session)
                self._returned.notify_all()
            if not keep:
                session.close()
            if not beyond:
                self._pass_on()

    def _wait(self, timeout_s: float) -> None:
        """Wait for a turn, first come first served."""
        with self._guard:
            if self._free and not self._waiters:
                self._free -= 1
                return
            turn = threading.Event()
            self._waiters.append(turn)
        until = time.monotonic() + timeout_s
        try:
            while not turn.wait(min(_POLL_S, max(0.0, until - time.monotonic()))):
                self.check_usable()
                if time.monotonic() >= until:
                    raise StoreBusyError(self._path, f"waited {timeout_s:g} s for a connection of its pool")
        except BaseException:
            with self._guard:
                given = turn not in self._waiters
                if not given:
                    self._waiters.remove(turn)
            if given:
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        with self._guard:
            if self._waiters:
                self._waiters.popleft().set()
            else:
                self._free += 1

    def close(self) -> None:
        """Wait until other threads have given their sessions back, and close all."""
        if os.getpid() != self._pid:
            return
        thread = threading.get_ident()
        with self._guard:
            self._closed = True
            while any(other != thread for other in self._lent.values()):
                self._returned.wait(_POLL_S)
            idle, self._idle = self._idle, []
        for session in idle:
            session.close()
