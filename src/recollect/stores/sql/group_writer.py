"""Writing in turn: one thread at a time has the connection that writes, and threads share a durable commit.

`stores.write_queue` decides whose turn it is; this module begins, undoes, hands over and commits what threads write.
The store adds what depends on its database: how a transaction begins, how it is committed, and what follows it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Generic, Literal, Protocol, TypeVar

from recollect.errors import CommitInDoubtError, StoreBusyError, StoreError, StoreIOError
from recollect.stores.sql.transaction import SqlTransaction
from recollect.stores.write_queue import Shared, Ticket, WriteQueue

T = TypeVar("T", bound=SqlTransaction)


class WritingConnection(Protocol):
    """What a connection must tell of itself."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""


class GroupWriter(ABC, Generic[T]):
    """The writing side of a store: a connection that one thread at a time uses.

    Args:
        path: The file or address, for messages.
        timeout_s: How long a thread waits for its turn before StoreBusyError, in seconds.
    """

    _writer: WritingConnection

    def __init__(self, path: str, timeout_s: float) -> None:
        self.path = path
        self._timeout_s = timeout_s
        self._pid = os.getpid()
        self._queue = WriteQueue(self._recover)

    @abstractmethod
    def _check_usable(self) -> None:
        """Raise an error if the store is closed, or belongs to the parent process."""

    @abstractmethod
    def _transaction(self) -> T:
        """Return the object with which a thread writes."""

    @abstractmethod
    def _begin_transaction(self) -> None:
        """Begin a transaction on `_writer`."""

    @abstractmethod
    def _run(self, sql: str) -> None:
        """Run a statement without rows on `_writer`."""

    @abstractmethod
    def _undo_part(self) -> Literal["undone", "absent", "failed"]:
        """Roll back to the savepoint `part` and release it; "absent" if there is none."""

    @abstractmethod
    def _roll_back(self) -> None:
        """Roll back the transaction, and raise nothing."""

    @abstractmethod
    def _commit(self, shared: Shared) -> None:
        """Commit the transaction and tell the outcome (`Shared.end`). None stays open, whatever happens."""

    @abstractmethod
    def _end_turn(self) -> None:
        """Do what follows a transaction, committed or not, before another thread has its turn."""

    def owned_by_caller(self) -> bool:
        """Return whether the current thread is inside a transaction that it has opened."""
        return self._queue.owned_by_caller()

    def _writing(self, ticket: Ticket) -> Generator[T, None, None]:
        """Write in a transaction while the block runs, in the turn of a ticket."""
        if self._queue.owned_by_caller():
            raise StoreBusyError(self.path, "this thread is inside a batch: use the batch's own calls")
        withheld: Exception | None = None
        try:
            if not self._queue.take(ticket, self._timeout_s):
                raise StoreBusyError(self.path, f"waited {self._timeout_s:g} s for another thread")
            self._check_usable()
            self._begin_part(ticket)
            transaction = self._transaction()
            yield transaction
            transaction.finish()
            self._end_part(ticket)
        except BaseException as error:
            self._undo(ticket, error)
            # The error may result from what other threads wrote in this transaction: raise it once that is durable.
            if not isinstance(error, Exception) or ticket.shared is None or not ticket.shared.members:
                raise
            withheld = error
        finally:
            self._release(ticket)
        assert ticket.shared is not None
        ticket.shared.result(self._queue.release_abandoned)
        if withheld is not None:
            raise withheld

    def _begin_part(self, ticket: Ticket) -> None:
        """Begin a transaction, or a savepoint in the one that was handed over."""
        # Recorded first, so that an interruption in between knows what may have to be rolled back.
        ticket.unfinished = True
        if ticket.shared is None:
            ticket.shared = Shared()
            self._begin_transaction()
        else:
            ticket.inside = True
            self._run("SAVEPOINT part")

    def _end_part(self, ticket: Ticket) -> None:
        """Release the thread's savepoint; from now on the thread depends on the commit."""
        assert ticket.shared is not None
        if ticket.inside:
            self._run("RELEASE part")
            ticket.inside = False
        # In one step: from now on it is not undone.
        ticket.shared.members, ticket.unfinished = ticket.shared.members + 1, False

    def _undo(self, ticket: Ticket, error: BaseException) -> None:
        """Roll back the thread's own part; or the whole transaction, if it has no other part or cannot be saved."""
        if not ticket.has_lock or ticket.shared is None or os.getpid() != self._pid:
            return  # a fork must not touch its parent's connection
        if self._writer.in_transaction:  # the database itself rolls back after some errors, such as a full disk
            if ticket.inside:
                outcome = self._undo_part()
                if outcome == "undone" or (outcome == "absent" and ticket.shared.members):
                    ticket.unfinished = False
                    return  # or it was interrupted before it had set its savepoint
            elif ticket.shared.members:
                ticket.unfinished = False
                return  # it had not yet set its savepoint, or had already released it
            self._roll_back()
        lost = error if isinstance(error, StoreError) else StoreIOError(self.path, f"a commit failed: {error!r}")
        ticket.shared.end(lost)
        ticket.unfinished = False

    def _release(self, ticket: Ticket) -> None:
        """Pass the lock on, even if this is interrupted: other threads wait for it."""
        if os.getpid() != self._pid:
            return
        try:
            while ticket.has_lock or ticket.successor is not None:
                if ticket.has_lock:
                    self._hand_over_or_commit(ticket)
                ticket.wake_successor()
        except BaseException:
            self._release(ticket)  # continues where it was interrupted
            raise

    def _recover(self, ticket: Ticket) -> None:
        """Release the lock in place of a thread that was interrupted before it could."""
        self._undo(ticket, StoreIOError(self.path, "the thread that wrote was interrupted"))
        self._release(ticket)

    def _hand_over_or_commit(self, ticket: Ticket) -> None:
        """Hand an open transaction over to a waiting thread that can share it, or commit it and release the lock."""
        shared = ticket.shared
        if ticket.unfinished:  # its thread was interrupted before it had undone its part
            self._undo(ticket, StoreIOError(self.path, "the thread that wrote was interrupted"))
        if shared is not None and not shared.done:
            if self._writer.in_transaction:
                if self._queue.hand_over(ticket):
                    return
                self._commit(shared)
            else:  # the thread that ended it was interrupted before it could set the outcome
                shared.end(CommitInDoubtError(self.path, "interrupted at the commit"))
        self._end_turn()
        self._queue.release(ticket)
