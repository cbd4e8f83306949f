"""A connection of the pool, and what is sent on it: as few round trips as the statements allow.

A transaction begins with the first statement that needs it, in the same round trip; writes are sent together with the
next read, or with the commit; and no thread waits for the answer to a ROLLBACK.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple

import psycopg
from psycopg.pq import TransactionStatus

from recollect.errors import InvalidArgumentError, RecollectError, StoreIOError
from recollect.stores.postgres.errors import is_lost, ours
from recollect.stores.postgres.wire import Reply, Row, Statement, Wire


class Traffic:
    """Counts the round trips for a store: how often a thread waited for an answer of the server.

    Attributes:
        total: Those of all threads.
    """

    def __init__(self) -> None:
        self.total = 0
        self._guard = threading.Lock()
        self._own = threading.local()

    @property
    def round_trips(self) -> int:
        """Those of the current thread."""
        return int(getattr(self._own, "count", 0))

    def add(self) -> None:
        """Count a round trip of the current thread."""
        self._own.count = self.round_trips + 1
        with self._guard:
            self.total += 1


class Backend(NamedTuple):
    """A transaction of the server, which is found again on another connection.

    Attributes:
        pid: The server's process.
        began: When the transaction began.
        number: The number of the transaction.
        server_run: The run of the server (`SERVER_RUN`).
    """

    pid: int
    began: str
    number: str
    server_run: str


#: A run of the server: another one after a restart, and after a crash of one of its processes, from which it recovers
#: without one. Numbers of transactions and of pages that were not durable before may be used again in another run.
SERVER_RUN = "concat(pg_postmaster_start_time(), ' ', pg_stat_get_bgwriter_stat_reset_time())"
#: The columns of a query that make a `Backend`.
BACKEND = f"pg_backend_pid(), now()::text, pg_current_xact_id()::text, {SERVER_RUN}"


#: What changes with every transaction that writes, on a standby when it has replayed it.
SNAPSHOT = "SELECT pg_current_snapshot()::text"
#: Begins a view.
BEGIN_READ: Statement = ("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", ())


def version_of(snapshot: str) -> int:
    """Return a number for what `SNAPSHOT` returned."""
    return int.from_bytes(hashlib.sha256(snapshot.encode()).digest()[:8])


class NotReplicatedError(Exception):
    """A commit was answered with a warning: the server does not know that a standby has it."""


class Session:
    """A connection, in at most one transaction.

    Args:
        connect: Opens a connection.
        path: The address without secrets, for messages.
        traffic: Counts the round trips.
        prepares: Prepare statements that are sent again and again (`Wire`).

    Attributes:
        lost: Whether the connection is lost.
        backend: The server's process and transaction, once a transaction that writes has asked for them.
        expires: When the pool replaces it (`time.monotonic`).
        loan: The number under which the pool has lent it; 0 while it has it.
        lending: Counts its transactions, so that what belongs to an earlier one is known.
    """

    def __init__(
        self, connect: Callable[[], psycopg.Connection[Row]], path: str, traffic: Traffic, *, prepares: bool = True
    ) -> None:
        self._connect = connect
        self._prepares = prepares
        self._path = path
        self._traffic = traffic
        self._notices: list[str] = []
        self._begin: list[Statement] = []
        self._staged: list[tuple[str, Sequence[Sequence[Any]]]] = []
        self._unread = False
        self._used = False
        self._doomed = False  # something of the transaction was sent and not done, so it must not be committed
        self.backend: Backend | None = None
        self.lost = False
        self.expires = 0.0
        self.loan = 0
        self.lending = 0
        self._cursors = count(1)
        self._pid = os.getpid()
        self._open()

    def _open(self) -> None:
        try:
            self.connection = self._connect()
        except psycopg.Error as error:
            raise ours(self._path, error) from error
        self.connection.add_notice_handler(lambda notice: self._notices.append(str(notice.severity_nonlocalized)))
        self._wire = Wire(self.connection, prepares=self._prepares)
        self._used = self._unread = self.lost = False

    def begin(self, *statements: Statement) -> None:
        """Begin a transaction with the next statement, in the same round trip."""
        self._drain()
        assert not self._begin
        self.lending += 1
        self._begin, self._doomed, self.backend = list(statements), False, None

    def new_cursor(self) -> str:
        """Return a name that no other cursor of the connection has."""
        return f"rows_{next(self._cursors)}"

    def wait_until(self, until: float) -> None:
        """Give up waiting for an answer at a time (`time.monotonic`), and close the connection then."""
        self._wire.until = until

    @property
    def begins(self) -> bool:
        """Whether a transaction begins with the next statement, so that a view is of that moment."""
        return bool(self._begin)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, or begins with the next statement."""
        if self._unread:
            return False
        return bool(self._begin) or self.connection.info.transaction_status not in (
            TransactionStatus.IDLE,
            TransactionStatus.UNKNOWN,
        )

    @property
    def failed(self) -> bool:
        """Whether an error has ended the transaction, so that it can only be rolled back."""
        status = self.connection.info.transaction_status
        return self._doomed or (not self._begin and status is not TransactionStatus.INTRANS)

    def stage(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Send a statement for each of some rows of values, before the next one that is waited for."""
        for value in (value for row in rows for value in row if isinstance(value, str) and "\0" in value):
            raise InvalidArgumentError("text", value, "PostgreSQL cannot store a text with the character NUL")
        if rows:
            self._staged.append((sql, list(rows)))  # the caller goes on with its own

    def unstage(self, sql: str) -> bool:
        """Remove a staged statement without values, and return whether it was still staged."""
        for at in range(len(self._staged) - 1, -1, -1):
            if self._staged[at][0] == sql:
                del self._staged[at]
                return True
        return False

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a statement."""
        return self.several([(sql, parameters)])[0]

    def several(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Send statements in one round trip, and return the rows of each.

        Raises:
            RecollectError: One of them failed; those after it were not executed.
        """
        try:
            return [answer.rows for answer in self._sent(statements)]
        except psycopg.Error as error:
            raise self._problem(error) from error

    def _sent(self, statements: Sequence[Statement]) -> list[Reply]:
        """Send what is pending, and statements, and wait for the answers."""
        self._drain()
        begin, staged = self._begin, self._staged
        before = [*begin, *((sql, row) for sql, rows in staged for row in rows)]
        converted = self._wire.converted([*before, *statements])  # raises before anything is sent or forgotten
        doomed = self._doomed
        self._doomed = doomed or bool(before)  # until they are known to be done, whatever interrupts this
        self._begin, self._staged = [], []
        self._traffic.add()
        try:
            replies = self._wire.run(converted)
        except psycopg.Error as error:
            # Of a connection that was idle in the pool, this may be how it is noticed that the server has ended it.
            is_commit = any(sql == "COMMIT" for sql, _ in statements)
            if is_commit or not (self._used and begin and is_lost(error)):
                raise
            self._close()
            self._open()
            self._traffic.add()
            replies = self._wire.run(converted)
        self._doomed = doomed
        return replies[len(before) :]

    def commit(self) -> None:
        """Commit, in the same round trip as what is staged.

        Raises:
            psycopg.Error: The commit failed, or its outcome is not known (`is_lost`).
            NotReplicatedError: The server does not know whether a standby has it.
            StoreIOError: The transaction had failed, and was rolled back.
        """
        if self._begin and not self._staged:
            self._begin = []  # nothing was read or written
            return
        if self._doomed:
            raise StoreIOError(self._path, "an earlier error rolled the transaction back")
        self._notices.clear()
        answer = self._sent([("COMMIT", ())])[0]
        self._used = True
        if answer.tag != "COMMIT":
            raise StoreIOError(self._path, "an earlier error rolled the transaction back")
        if "WARNING" in self._notices:
            raise NotReplicatedError

    def commit_or_raise(self) -> None:
        """Commit as `commit` does, with the server's errors translated."""
        try:
            self.commit()
        except psycopg.Error as error:
            raise self._problem(error) from error

    def roll_back(self) -> None:
        """Roll back without waiting for the answer. Raises nothing: a connection that fails is closed."""
        self._staged = []
        self.lending += 1
        self._used, self._doomed = True, False
        if self._begin or self._unread:
            self._begin = []
            return
        if self.connection.closed or self.connection.info.transaction_status is TransactionStatus.IDLE:
            return
        try:
            self.connection.pgconn.send_query_params(b"ROLLBACK", None)
            self.connection.pgconn.flush()
            self._unread = True
        except psycopg.Error:
            self._close()

    def roll_back_to(self, savepoint: str) -> bool:
        """Roll back to a savepoint and release it; return False if there is none.

        Raises:
            RecollectError: That failed.
        """
        for at, (sql, _) in enumerate(self._staged):
            if sql == f"SAVEPOINT {savepoint}":  # it was not sent yet
                del self._staged[at:]
                return True
        if self._doomed:
            raise StoreIOError(self._path, "an earlier error rolled the transaction back")
        self._doomed = True  # until the part is undone, whatever interrupts this
        self._staged = []
        try:
            self._sent([(f"ROLLBACK TO {savepoint}", ()), (f"RELEASE {savepoint}", ())])
        except psycopg.errors.InvalidSavepointSpecification:
            return False
        except psycopg.Error as error:
            raise self._problem(error) from error
        self._doomed = False
        return True

    def _drain(self) -> None:
        """Read the answer to a ROLLBACK, which has usually come by now. A connection that is lost is noticed later."""
        if not self._unread:
            return
        self._unread = False
        connection = self.connection.pgconn
        with suppress(psycopg.Error):
            while True:
                self._wire.wait()
                if connection.get_result() is None:
                    return

    def _problem(self, error: psycopg.Error) -> RecollectError:
        if is_lost(error) or self.connection.closed:
            self._close()
        return ours(self._path, error)

    def _close(self) -> None:
        self.lost = True
        if os.getpid() == self._pid:  # a fork must not end its parent's connection
            self._wire.close()

    def close(self) -> None:
        """Close the connection."""
        self._close()

    def __del__(self) -> None:
        if hasattr(self, "_wire"):  # a store that was not closed closes its connections with itself
            self._close()
