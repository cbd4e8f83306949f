"""What became of a commit whose answer was lost: whether it is stored, and whether a standby has it.

1. On a new connection, end the server's old process, which may wait for a client that is gone; but not while it waits
   for a standby.
2. Lock the memory. Once that is granted, the old transaction has ended.
3. The log of the memory decides: the commit is there, with its root and time, or it is not. What no log states, such as
   a quota, the server knows by the number of its transaction, as long as its run is the same; after a restart, a crash
   or a failover, numbers of transactions that were never durable are used again.
4. If it is stored, commit a write of one's own. It is later in the server's log, so a standby that has it has the other
   one too; a warning says that none is known to have it.
"""

from __future__ import annotations

import enum
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from recollect.errors import RecollectError, StoreIOError
from recollect.ledger.commits import Branch, Head
from recollect.stores.postgres.dialect import rewritten
from recollect.stores.postgres.session import SERVER_RUN, Backend, NotReplicatedError, Session
from recollect.stores.postgres.wire import Statement

#: Seconds between two attempts.
_PAUSE_S = 0.1
_END = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND xact_start = $2::timestamptz "
    "AND wait_event IS DISTINCT FROM 'SyncRep'"
)
_STATUS = f"SELECT CASE WHEN {SERVER_RUN} = $1 THEN pg_xact_status($2::xid8) END"
_LOCK = "SELECT number FROM namespaces WHERE name = ? FOR UPDATE"
_COMMIT = (
    "SELECT c.root, c.time FROM commits c JOIN branches b ON b.number = c.branch JOIN namespaces n "
    "ON n.number = b.namespace WHERE n.name = ? AND b.name = ? AND c.seq = ?"
)
_BARRIER = (
    "INSERT INTO meta (name, value) VALUES ('barrier', '') ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


class Fate(enum.Enum):
    """What became of a commit."""

    STORED = "stored"
    NOT_STORED = "not stored"
    UNKNOWN = "unknown"


class LostCommit(NamedTuple):
    """A commit whose answer was lost.

    Attributes:
        owner: The name of the memory.
        backend: The server's process and transaction.
        before: The newest commits of its branches when the transaction began.
        after: What it would have made of them.
    """

    owner: str
    backend: Backend
    before: Mapping[Branch, Head]
    after: Mapping[Branch, Head]


class Resolver:
    """Finds out what became of a commit.

    Args:
        connect: Opens a session.
        schema: The schema of the store's tables.
        timeout_s: How long it tries, in seconds.
        limits: The statement that sets for a transaction what is set for those of the store.

    Attributes:
        asked: How often it was asked, by what had become of the commit.
    """

    def __init__(self, connect: Callable[[], Session], schema: str, timeout_s: float, limits: Statement) -> None:
        self._limits = limits
        self._connect = connect
        self._schema = schema
        self._timeout_s = timeout_s
        self.asked: Counter[Fate] = Counter()

    def resolve(self, lost: LostCommit) -> Fate:
        """Return what became of a commit; UNKNOWN if the server does not answer in time, or no standby answers it."""
        fate = self._resolved(lost)
        self.asked[fate] += 1
        return fate

    def _resolved(self, lost: LostCommit) -> Fate:
        until = time.monotonic() + self._timeout_s
        while True:
            try:
                return self._attempt(lost, until)
            except NotReplicatedError:
                return Fate.UNKNOWN
            except RecollectError:
                if time.monotonic() >= until:
                    return Fate.UNKNOWN
            time.sleep(_PAUSE_S)

    def _attempt(self, lost: LostCommit, until: float) -> Fate:
        session = self._connect()
        try:
            session.wait_until(until)  # where no standby is there, a commit waits for one without end
            session.rows(_END, (lost.backend.pid, lost.backend.began))
            session.begin(("BEGIN ISOLATION LEVEL READ COMMITTED", ()), self._limits)
            session.rows(rewritten(_LOCK, self._schema), (lost.owner,))
            outcome = self._outcome(session, lost)
            if outcome is Fate.STORED:
                session.stage(rewritten(_BARRIER, self._schema), [()])
                session.commit_or_raise()
            return outcome
        finally:
            session.close()

    def _outcome(self, session: Session, lost: LostCommit) -> Fate:
        [[status]] = session.rows(_STATUS, (lost.backend.server_run, lost.backend.number))
        if status == "in progress":
            raise StoreIOError(lost.owner, "its transaction has not ended yet")
        made = {branch: head for branch, head in lost.after.items() if head.seq and lost.before.get(branch) != head}
        if not made:
            known = {"committed": Fate.STORED, "aborted": Fate.NOT_STORED}
            return known.get(str(status), Fate.UNKNOWN)
        for branch, head in made.items():
            rows = session.rows(rewritten(_COMMIT, self._schema), (*branch, head.seq))
            if not rows or tuple(rows[0]) != (head.root.hash, head.micros):
                return Fate.NOT_STORED
        return Fate.STORED
