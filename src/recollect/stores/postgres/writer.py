"""The writers of a PostgreSQL store: one for each memory that this process writes to, whose threads share commits.

Across processes the row of the memory is the lock. A writer has a session only while a transaction is open.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from itertools import count
from typing import Literal

import psycopg

from recollect.errors import CommitInDoubtError, RecollectError, StoreError, StoreIOError
from recollect.stores.postgres.doubt import Fate, LostCommit, Resolver
from recollect.stores.postgres.errors import is_lost, ours
from recollect.stores.postgres.pool import SessionPool
from recollect.stores.postgres.session import NotReplicatedError, Session
from recollect.stores.postgres.view import LIMITS, PostgresTransaction, StoreContext
from recollect.stores.sql.group_writer import GroupWriter
from recollect.stores.write_queue import Shared, Ticket


class _Nothing:
    """In place of a session while no transaction is open."""

    in_transaction = False


class MemoryWriter(GroupWriter[PostgresTransaction]):
    """Writes to one memory in turn.

    Args:
        owner: The name of the memory.
        pool: The connections.
        context: What all transactions of the store use.
        resolver: Finds out what became of a commit.
        timeout_s: How long a thread waits for its turn, and for the lock of the memory, in seconds.
    """

    _writer: Session | _Nothing

    def __init__(
        self, owner: str, pool: SessionPool, context: StoreContext, resolver: Resolver, timeout_s: float
    ) -> None:
        super().__init__(context.path, timeout_s)
        self._owner = owner
        self._pool = pool
        self._context = context
        self._resolver = resolver
        self._writer = _Nothing()
        self._current: PostgresTransaction | None = None
        self._savepoints = count(1)
        self._savepoint: str | None = None  # that of the part which is being written
        self._loan = 0  # of the session
        self._shares = False  # whether that part may be followed by others in the same transaction
        self._last: PostgresTransaction | None = None  # the last part that was not undone

    @property
    def idle(self) -> bool:
        """Whether no thread writes or waits."""
        return self._queue.holder is None and not self._queue.waiting

    def writing(self, ticket: Ticket) -> Generator[PostgresTransaction, None, None]:
        """Write in a transaction while the block runs, in the turn of a ticket."""
        return self._writing(ticket)

    def _check_usable(self) -> None:
        self._pool.check_usable()

    def _session(self) -> Session:
        assert isinstance(self._writer, Session)
        return self._writer

    def _transaction(self) -> PostgresTransaction:
        lookups = self._queue.lookups if self._shares else None
        self._current = PostgresTransaction(self._session(), self._context, self._owner, self._last, lookups)
        return self._current

    def _begin_part(self, ticket: Ticket) -> None:
        self._savepoint = None  # that of a part that was undone
        self._shares = ticket.shares
        super()._begin_part(ticket)
        if ticket.inside:  # another thread has begun the transaction
            self._pool.adopt(self._session())

    def _end_part(self, ticket: Ticket) -> None:
        if not ticket.inside:
            self._last = self._current  # before it counts as a member: its numbers are noted by the commit
        super()._end_part(ticket)

    def _begin_transaction(self) -> None:
        self._writer, self._loan = self._pool.take()
        self._last = None
        limits = (LIMITS, self._context.limits)
        self._session().begin(("BEGIN ISOLATION LEVEL READ COMMITTED", ()), limits)

    def _run(self, sql: str) -> None:
        # Each savepoint has a name of its own: those of finished parts may not have been sent yet.
        if sql == "SAVEPOINT part":
            savepoint = f"part_{next(self._savepoints)}"
            self._session().stage(f"SAVEPOINT {savepoint}", [()])
            self._savepoint = savepoint
        else:
            assert sql == "RELEASE part"
            ended = self._savepoint
            # In one step, which cannot be interrupted half-way: from now on the part is not undone.
            self._last, self._savepoint = self._current, None
            # What was not sent yet is undone by not sending it, so the server need not know of a part that is complete.
            if not self._session().unstage(f"SAVEPOINT {ended}"):
                self._session().stage(f"RELEASE {ended}", [()])

    def _undo_part(self) -> Literal["undone", "absent", "failed"]:
        if self._savepoint is None:
            return "absent"
        try:
            return "undone" if self._session().roll_back_to(self._savepoint) else "absent"
        except RecollectError:
            return "failed"

    def _roll_back(self) -> None:
        self._session().roll_back()

    def _commit(self, shared: Shared) -> None:
        session, last = self._session(), self._last
        if last is not None:
            try:
                last.note_numbers()  # repeated after an interruption, as nothing is sent yet
            except StoreError as raised:
                shared.end(raised)
                return
        # Until the answer is known: an interruption may come after the commit was sent.
        error: RecollectError | None = CommitInDoubtError(self.path, "interrupted at the commit")
        try:
            session.commit()
            error = None
        except NotReplicatedError as raised:
            error = self._resolved(session, last, raised)
        except psycopg.Error as raised:
            # After a PANIC the server says why it ends, and the commit may be durable all the same.
            unknown = is_lost(raised) or session.connection.closed
            error = self._resolved(session, last, raised) if unknown else ours(self.path, raised)
            error = error and _with_cause(error, raised)
        except StoreError as raised:
            error = raised
        finally:
            shared.end(error)
        if error is None and last is not None:
            last.committed()

    def _resolved(self, session: Session, last: PostgresTransaction | None, raised: Exception) -> RecollectError | None:
        """Return the error of a commit whose answer is not known, or None if it is durable."""
        if last is None or session.backend is None:
            return _unwritten(self.path, f": {raised}")
        outcome = self._resolver.resolve(LostCommit(self._owner, session.backend, last.before, last.after))
        if outcome is Fate.STORED:
            return None
        if outcome is Fate.NOT_STORED:
            return _unwritten(self.path)
        return CommitInDoubtError(self.path, str(raised) or "no standby is known to have it")

    def _end_turn(self) -> None:
        if isinstance(self._writer, Session):
            with suppress(psycopg.Error):
                self._pool.give_back(self._writer, self._loan)  # first: an interruption would lose it
        self._writer, self._last, self._current, self._savepoint = _Nothing(), None, None, None


def _unwritten(path: str, detail: str = "") -> StoreIOError:
    error = StoreIOError(path, f"the connection was lost, and nothing was written{detail}")
    error.unchanged = True
    return error


def _with_cause(error: RecollectError, cause: Exception) -> RecollectError:
    error.__cause__ = cause
    return error
