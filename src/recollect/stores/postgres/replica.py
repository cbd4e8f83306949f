"""Reading from a standby, or another copy of the store that lags behind, without ever showing an older state.

A view is read from the replica if that has every commit of the memory that this process, or the caller, has seen. If it
has not, the view waits a moment, and then reads the primary. What is not about one memory is read from the primary,
since nothing says how new it must be.

A replica that cannot be reached is left out for a while, which the log says once. What fails in the middle of a view,
such as by a conflict with what the replica replays, is read again from the primary as a whole (`PostgresStore.renew`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from recollect.errors import ClosedError, ForkedError, InvalidArgumentError, RecollectError, StoreBusyError, StoreError
from recollect.ledger.commits import MAIN, Branch
from recollect.stores.freshness import least_of
from recollect.stores.postgres import schema as tables
from recollect.stores.postgres.address import Address
from recollect.stores.postgres.connecting import Connector
from recollect.stores.postgres.pages import PageCache
from recollect.stores.postgres.pool import SessionPool
from recollect.stores.postgres.session import BEGIN_READ, SNAPSHOT, Session, Traffic, version_of
from recollect.stores.postgres.view import PostgresView, StoreContext

_log = logging.getLogger("recollect")
#: Seconds that a view waits for a commit that the replica does not have yet, and in which steps.
WAIT_S, _STEP_S = 0.05, 0.005
#: Seconds for which a thread reads the primary after the replica has failed in the middle of a view.
_AVOIDED_S = 1.0
#: Seconds that connecting to a replica may take: the primary can be read instead.
_CONNECT_S = 2.0
#: Seconds for which a replica that failed is left out: the first time, doubled each time, and at most.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0


class Replica:
    """A copy of a store on another server. Thread-safe.

    Args:
        address: Its address.
        uuid: The uuid of the store.
        key: The store's key.
        context: What the views of the store use.
        traffic: Counts round trips.
        timeout_s: How long a thread waits for a connection.
        clock: Returns the time in seconds.

    Attributes:
        reads: How many views were read from it.
        waits: How many of them waited for a commit.
        behind: How many views were read from the primary because it lacked a commit.
        failures: How often it failed.
    """

    def __init__(
        self,
        address: Address,
        uuid: str,
        key: bytes,
        context: StoreContext,
        traffic: Traffic,
        timeout_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = address.shown
        self.context = context._replace(path=address.shown, schema=address.schema, pages=PageCache())
        self.reads = self.waits = self.behind = self.failures = 0
        self._uuid, self._key = uuid, key
        self._schema = address.schema
        self._clock = clock
        self._guard = threading.Lock()
        self._down_until = 0.0
        self._pause_s = 0.0
        self._of_thread = threading.local()
        connector = Connector(address, _CONNECT_S, traffic)
        self._pool = SessionPool(lambda: self._checked(connector.session()), self.path, address.pool, timeout_s)

    def _checked(self, session: Session) -> Session:
        """Return a new session, if it is one of a copy of the store.

        Raises:
            InvalidArgumentError: It is another store.
        """
        try:
            found = tables.about(session.connection, self.path, self._schema, self._key)
            if found is None or found.uuid != self._uuid:
                what = "has no tables of a store" if found is None else "has another store"
                rule = f"{what}: it must be a standby of the server that the store is on"
                raise InvalidArgumentError("read_from", self.path, rule)
        except BaseException:
            session.close()
            raise
        return session

    def check(self) -> None:
        """Connect, so that a wrong address is an error now. A replica that cannot be reached is left out for a while.

        Raises:
            InvalidArgumentError: It is no copy of the store, or no address.
        """
        try:
            with self._pool.session() as session:
                if not session.rows("SELECT pg_is_in_recovery()")[0][0]:
                    _log.warning(
                        "read_from: %s is the primary, or a standby that was promoted, and no standby", self.path
                    )
        except InvalidArgumentError:
            self._pool.close()
            raise
        except RecollectError as error:
            self.failed(error)

    def lend(self, stack: ExitStack) -> Session | None:
        """Lend a session until a stack ends; None if the replica is left out, or all of its sessions are lent."""
        now = self._clock()
        if now < self._down_until or now < getattr(self._of_thread, "avoided_until", now):
            return None
        try:
            session = stack.enter_context(self._pool.session(waits=False))
        except (StoreBusyError, ClosedError, ForkedError):
            return None
        except RecollectError as error:
            self.failed(error)
            return None
        session.begin(BEGIN_READ)
        return session

    def avoid(self, error: StoreError) -> bool:
        """Let this thread read the primary for a moment if an error is one of the replica; return whether it is."""
        if error.args[0] != self.path:
            return False
        self._of_thread.avoided_until = self._clock() + _AVOIDED_S
        if not isinstance(error, StoreBusyError):  # else it only lags, or replays what the view would have read
            self.failed(error)
        return True

    def version(self) -> int | None:
        """Return a number that changes with every commit that it has replayed; None if it is left out."""
        with ExitStack() as stack:
            try:
                session = self.lend(stack)
                return None if session is None else version_of(str(session.rows(SNAPSHOT)[0][0]))
            except RecollectError as error:
                self.failed(error)
                return None

    def failed(self, error: RecollectError) -> None:
        """Leave it out for a while."""
        with self._guard:
            self.failures += 1
            if self._clock() < self._down_until:  # another thread has noted it
                return
            first = not self._pause_s
            self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s or _FIRST_PAUSE_S)
            self._down_until = self._clock() + self._pause_s
        if first:
            _log.warning("the replica %s cannot be read, so the primary is: %s", self.path, error)

    def give_back(self, session: Session, loan: int) -> None:
        """Take a session back before its stack ends."""
        self._pool.give_back(session, loan)

    def worked(self) -> None:
        """Note that it was read."""
        self.reads += 1
        if self._pause_s and self._clock() >= self._down_until:
            with self._guard:
                self._pause_s = 0.0
            _log.warning("the replica %s can be read again", self.path)

    def facts(self) -> dict[str, Any]:
        """Return what there is to know about it."""
        return {
            "read_from": self.path,
            "replica_usable": self._clock() >= self._down_until,
            "replica_reads": self.reads,
            "replica_waits": self.waits,
            "replica_behind": self.behind,
            "replica_failures": self.failures,
        }

    def close(self) -> None:
        """Close its connections."""
        self._pool.close()


class ReplicaView(PostgresView):
    """A view of the replica, or of the primary if the replica is not new enough, from its first read on.

    Args:
        session: A session of the replica, which begins a transaction with the first statement.
        replica: The replica.
        context: What views of the primary use.
        primary: Lends a session of the primary, which begins a transaction, until the view ends.
    """

    def __init__(
        self, session: Session, replica: Replica, context: StoreContext, primary: Callable[[], Session]
    ) -> None:
        super().__init__(session, replica.context)
        self._loan = session.loan
        self._replica: Replica | None = replica
        self._of_primary = context
        self._primary = primary

    def _look_up(self, branch: Branch) -> None:
        replica, owner = self._replica, branch.owner
        if replica is not None and owner.name != MAIN:  # what a caller has seen is only known of the main branch
            self._leave()
        if replica is None or owner.name != MAIN:
            super()._look_up(branch)
            return
        is_first = self._session.begins
        until = time.monotonic() + WAIT_S
        waited = False
        while True:
            before = self._context.history.of(owner)
            try:
                heads, settings = self._session.several(self._first(owner))
            except RecollectError as error:
                if not is_first:
                    raise
                if isinstance(error, StoreBusyError):  # a conflict with what it replays
                    replica.behind += 1
                else:
                    replica.failed(error)
                break
            seqs = {Branch(namespace, name): row[2] or 0 for namespace, name, *row in heads}
            if seqs.get(owner, 0) >= least_of(owner.namespace) and all(
                seqs.get(each, 0) >= seq for each, (seq, _) in before.items()
            ):
                self._note_first(owner, before if is_first else {}, heads, settings)
                if branch not in self._numbers:
                    self._note_head(branch, None)
                if is_first:
                    replica.worked()
                    replica.waits += waited
                return
            if not is_first:
                raise StoreBusyError(self._path, "the replica is behind what was read before: read again")
            if time.monotonic() >= until:
                replica.behind += 1
                replica.waits += waited
                break
            waited = True
            self._session.roll_back()
            time.sleep(_STEP_S)
            self._session.begin(BEGIN_READ)
        self._leave()
        super()._look_up(branch)

    def _leave(self) -> None:
        """Read the primary from now on. Nothing of the replica was used."""
        assert self._replica is not None
        self._replica.give_back(self._session, self._loan)
        self._replica = None
        self._session, self._context, self._path = self._primary(), self._of_primary, self._of_primary.path
        self._server = None

    def _settle(self) -> None:
        """Read what is not about one memory from the primary, unless the view is one of the replica already."""
        if self._replica is not None and self._session.begins:
            self._leave()

    def _rows(self, sql: str, parameters: tuple[Any, ...] = ()) -> Any:
        self._settle()
        return super()._rows(sql, parameters)

    def _row(self, sql: str, parameters: tuple[Any, ...]) -> tuple[Any, ...] | None:
        self._settle()
        return super()._row(sql, parameters)

    def _many(self, sql: str, parameters: tuple[Any, ...], first: int | None = None) -> Any:
        self._settle()
        return super()._many(sql, parameters, first)
