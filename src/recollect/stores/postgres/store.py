"""The PostgreSQL store: the ledger on a server that many machines share, with one writer for each memory at a time."""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from copy import copy
from typing import Any

import platformdirs
import psycopg

from recollect.errors import (
    DamagedStoreError,
    InvalidArgumentError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
    StoreMissingError,
    UnsupportedError,
)
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.stores.derived.files import DerivedFiles
from recollect.stores.postgres import schema as tables
from recollect.stores.postgres.address import SCHEMES, Address, parsed
from recollect.stores.postgres.connecting import Connector
from recollect.stores.postgres.derived import PostgresSegments, PostgresVectors, SharedTables, rights_of
from recollect.stores.postgres.doubt import Fate, Resolver
from recollect.stores.postgres.errors import ours
from recollect.stores.postgres.history import SeenHistory
from recollect.stores.postgres.pages import PageCache
from recollect.stores.postgres.pool import SessionPool
from recollect.stores.postgres.replica import Replica, ReplicaView
from recollect.stores.postgres.session import BEGIN_READ, SNAPSHOT, Session, Traffic, version_of
from recollect.stores.postgres.view import LIMITS, PostgresTransaction, PostgresView, Prefetch, StoreContext
from recollect.stores.postgres.writer import MemoryWriter
from recollect.stores.roots import disagreements
from recollect.stores.values import Backup, Capabilities, CheckReport, Durability
from recollect.stores.write_queue import Ticket

_log = logging.getLogger("recollect")
#: Maximum number of writers that are kept while no thread uses them.
_IDLE_WRITERS = 1000
#: Milliseconds that a transaction may stand still before the server ends it, at least, so that others can write.
_STANDS_STILL_MS = 30_000
#: Seconds by which the clocks of the server and of this machine may differ before it is mentioned.
CLOCK_S = 1.0


class PostgresStore:
    """A `Store` in a schema of a PostgreSQL database.

    Args:
        address: postgresql://USER@HOST/DATABASE (`address.parsed`).
        read_only: Refuse every write.
        key: The key from which salts are derived; must be the one that the store was created with.
        timeout_s: How long a writer waits for another one, and a thread for a connection, before StoreBusyError.
        durability: "full", or "normal": after a crash of the server the newest commits may be missing, but no others.
        read_from: The address of a standby that is read where it is new enough; None: the primary is read.

    Raises:
        StoreMissingError: The schema has no store; none is created (`recollect store init`).
        StoreServerError: The server cannot be reached.
        StoreError: The store cannot be used by this release or with this key.
    """

    capabilities = Capabilities(
        group_commit=True, copying=False, writers="family", snapshots=True, durable=True, watched=True
    )

    def __init__(
        self,
        address: str,
        *,
        read_only: bool = False,
        key: bytes = PUBLIC_KEY,
        timeout_s: float = 10.0,
        durability: Durability = "full",
        read_from: str | None = None,
    ) -> None:
        self._address = parsed(address)
        standby = None if read_from is None else _standby_of(read_from)
        self.path = self._address.shown
        self.key = key
        self.traffic = Traffic()
        self._durability = durability
        self._timeout_s = timeout_s
        connector = Connector(self._address, timeout_s, self.traffic, logs=True)
        self._pool = SessionPool(connector.session, self.path, self._address.pool, timeout_s)
        try:
            with self._pool.session() as session:
                found = tables.about(session.connection, self.path, self._address.schema, key)
                if found is None:
                    rule = (
                        f"the schema {self._address.schema} has no tables of a store: "
                        "`recollect store init` creates them"
                    )
                    raise StoreMissingError(self.path, rule)
                self._server = _server_of(session.connection, self.path)
                session.begin(("BEGIN", ()))
                self._rights = rights_of(session, self._address.schema)
        except BaseException:
            self._pool.close()
            raise
        self._about = found
        self.zone = found.zone
        self.id_key = key if found.keyed_ids else None
        self._write_refused = found.refused or ("it was opened to be read" if read_only else "")
        apart_s = self._server["clock_ahead_s"]
        if abs(apart_s) > self._address.clock_s:
            # Commits of a memory are in the order of their times, so one clock that is ahead would move all others.
            self._write_refused = self._write_refused or (
                f"the clocks of the server and of this machine differ by {abs(apart_s):.0f} s; set them, or allow more "
                "with clock=SECONDS in the address"
            )
        elif abs(apart_s) > CLOCK_S:
            _log.warning("%s: the clocks of the server and of this machine differ by %.1f s", self.path, abs(apart_s))
        if durability == "full" and self._server["fsync"] != "on" and not self._write_refused:
            _log.warning("%s has fsync = off: a crash of its machine loses commits or corrupts the database", self.path)
        self._context = StoreContext(
            self.path,
            self._address.schema,
            key,
            2**62 if self._server["data_checksums"] == "on" else 0,
            PageCache(),
            SeenHistory(self.path),
            Prefetch(),
            (
                f"{max(1, round(timeout_s * 1000))}ms",
                f"{max(_STANDS_STILL_MS, round(2 * timeout_s * 1000))}ms",
                "on" if durability == "full" else "off",
            ),
            self._address.replicated,
        )
        self._connector = connector
        limits = (LIMITS, self._context.limits)
        self._resolver = Resolver(connector.session, self._address.schema, timeout_s, limits)
        self._replica: Replica | None = None
        if standby is not None:
            self._replica = Replica(standby, found.uuid, key, self._context, self.traffic, timeout_s)
            try:
                self._replica.check()
            except BaseException:
                self._pool.close()
                raise
        if self._server["in_recovery"] and not read_only:
            _log.warning("%s is a standby: it can be read, and not written until it is promoted", self.path)
        self._writers: dict[str, MemoryWriter] = {}
        self._guard = threading.Lock()
        self._poller: Session | None = None
        self._polling = threading.Lock()

    # Reading and writing

    @contextmanager
    def read(self) -> Iterator[PostgresView]:
        if self._replica is not None:
            with ExitStack() as stack:

                def primary() -> Session:
                    session = stack.enter_context(self._pool.session())
                    session.begin(BEGIN_READ)
                    return session

                copied = self._replica.lend(stack)
                if copied is None:
                    yield PostgresView(primary(), self._context)
                else:
                    yield ReplicaView(copied, self._replica, self._context, primary)
            return
        with self._pool.session() as session:
            session.begin(BEGIN_READ)
            yield PostgresView(session, self._context)

    def write(
        self, branch: Branch, *, shared: bool = False, ids: Sequence[str] = ()
    ) -> AbstractContextManager[PostgresTransaction]:
        """Open a transaction. Each memory has one writer, whichever of its branches it writes to."""
        self._pool.check_usable()
        if self._write_refused:
            raise ReadOnlyStoreError(self.path, self._write_refused)
        if self.owned_by_caller():
            raise StoreBusyError(self.path, "this thread is inside a batch: use the batch's own calls")
        ticket = Ticket(shares=shared, lookups=(branch, ids) if ids else None)
        return ticket.managed(self._writer(branch.owner.namespace).writing(ticket))

    def _writer(self, owner: str) -> MemoryWriter:
        with self._guard:
            writer = self._writers.get(owner)
            if writer is None:
                if len(self._writers) >= _IDLE_WRITERS:
                    # One that a thread has just been given stays in use: the lock of the memory is in the database.
                    self._writers = {name: each for name, each in self._writers.items() if not each.idle}
                writer = MemoryWriter(owner, self._pool, self._context, self._resolver, self._timeout_s)
                self._writers[owner] = writer
            return writer

    def owned_by_caller(self) -> bool:
        with self._guard:
            writers = list(self._writers.values())
        return any(writer.owned_by_caller() for writer in writers)

    def version(self) -> int:
        """Return a digest of the server's snapshot, which changes with every transaction that writes."""
        self._pool.check_usable()
        with self._polling:
            self._pool.check_usable()
            # What is read after a change must have it, so the replica is asked where views are read from it.
            copied = None if self._replica is None else self._replica.version()
            if copied is not None:
                return copied
            if self._poller is None or self._poller.lost:
                self._poller = self._connector.session()
            snapshot = str(self._poller.rows(SNAPSHOT)[0][0])
        return version_of(snapshot)

    # Facts

    def derived(self) -> DerivedFiles:
        root = self._address.cache or platformdirs.user_cache_dir("recollect", appauthor=False)
        folder = os.path.join(root, f"{self._about.uuid}.index")
        rights = self._rights
        if rights.exist and not rights.read:
            _log.warning(
                "%s: this role may not read the tables that machines share, so this one builds its own indexes and "
                "embeds all texts itself: `recollect store init --grant ROLE`",
                self.path,
            )
        tables = SharedTables(
            self._pool,
            self._connector.session,
            self._address.schema,
            self.path,
            self._context.limits,
            readable=rights.read,
            writable=rights.write and not self._write_refused and not self._server["in_recovery"],
        )
        segments, vectors = PostgresSegments(tables), PostgresVectors(tables)
        return DerivedFiles(folder, self._about.uuid, self.key, of_machine=True, segments=segments, vectors=vectors)

    def facts(self) -> dict[str, Any]:
        return {
            "store": "postgresql",
            "path": self.path,
            "uuid": self._about.uuid,
            "zone": self.zone,
            "format": self._about.format,
            "schema": self._address.schema,
            "durability": self._durability,
            # A standby refuses writes by itself, until it is promoted.
            "read_only": bool(self._write_refused or self._server["in_recovery"]),
            "lost_commits": self._context.history.lost,
            "commits_resolved": self._resolver.asked.total(),
            "commits_in_doubt": self._resolver.asked[Fate.UNKNOWN],
            "round_trips": self.traffic.total,
            **self._pool.facts(),
            **self._server,
            **({} if self._replica is None else self._replica.facts()),
        }

    def check(self) -> CheckReport:
        """Compare all versions with their hashes, and the records with their roots."""
        # Nothing that is in memory hides what the tables have.
        tables_alone = copy(self)
        tables_alone._context = self._context._replace(trusted=0, pages=PageCache(0))
        problems = disagreements(tables_alone)
        with tables_alone.read() as view:
            commits, dropped = view.counts_of_commits()
            problems += view.wrong_versions()
            removed = view.counts_of_removed()
        return CheckReport(
            problems,
            commits=commits,
            dropped=dropped,
            erased=removed.get("erased", 0),
            thinned=removed.get("thinned", 0),
        )

    def renew(self, error: StoreError) -> bool:
        # Nothing but this package writes the tables, so what is corrupt stays so. A replica can be left out.
        return self._replica is not None and self._replica.avoid(error)

    def compact(self) -> bool:
        """Do nothing: the server's own vacuum gives the space of deleted rows back to the tables."""
        return True

    def back_up(self, path: str, *, verify: bool, force: bool) -> Backup:
        rule = "a server is backed up with its own tools, such as pg_dump; `recollect copy` makes a file of it"
        raise UnsupportedError("a backup", rule)

    def copies_with(self, branch: Branch, versions: Sequence[bytes]) -> tuple[str, ...]:
        """Name what the server still has of erased versions: no query finds it, and the server removes it later."""
        if not versions:
            return ()
        schema = self._address.schema
        return (
            f"{self.path}: dead rows of the tables of {schema}, until they are vacuumed and the space is used again",
            f"{self.path}: statistics of columns such as the user, until the tables are analyzed",
            f"{self.path}: the server's WAL, until its segments are recycled",
            f"{self.path}: standbys until they have replayed it; archives and base backups as long as they are kept",
            f"{self.path}: cache folders of other machines, until they next use the memory",
        )

    def truncate(self) -> bool:
        return True

    def probe(self) -> None:
        nonce = secrets.token_hex(16)
        with self.write(Branch("probe")) as transaction:
            transaction.set_setting("probe", nonce)
        with self.read() as view:
            value = view.setting("probe")
        if value != nonce:
            raise DamagedStoreError(self.path, "a test value was written and not read back")

    def close(self) -> None:
        if self.owned_by_caller():
            raise StoreBusyError(self.path, "this thread is inside a batch: end it first")
        self._pool.close()
        if self._replica is not None:
            self._replica.close()
        with self._polling:
            if self._poller is not None:
                self._poller.close()


def _standby_of(read_from: object) -> Address:
    """Return the address of a standby, taken apart. Raise InvalidArgumentError if it is no address of a server."""
    if not isinstance(read_from, str) or read_from.partition("://")[0] not in SCHEMES or "://" not in read_from:
        raise InvalidArgumentError("read_from", read_from, "must be the postgresql:// address of a standby")
    return parsed(read_from)


def _server_of(connection: psycopg.Connection[tuple[Any, ...]], path: str) -> dict[str, Any]:
    """Return what the server says of itself that matters to a store, and by how much its clock is ahead of ours."""
    named = (
        "server_version",
        "fsync",
        "full_page_writes",
        "synchronous_commit",
        "synchronous_standby_names",
        "data_checksums",
    )
    columns = ", ".join(f"current_setting('{name}')" for name in named)
    sql = f"SELECT {columns}, pg_is_in_recovery(), extract(epoch FROM clock_timestamp())::float8"
    before = time.time()
    try:
        row = connection.execute(sql.encode()).fetchone()
    except psycopg.Error as error:
        raise ours(path, error) from error
    assert row is not None
    *values, clock = row
    ahead_s = round(clock - (before + time.time()) / 2, 3)
    return {**dict(zip((*named, "in_recovery"), values, strict=True)), "clock_ahead_s": ahead_s}
