"""The SQLite store: one file in WAL mode, with one writer at a time and many readers.

With `synchronous=FULL`, an acknowledged commit survives a power cut. Readers never wait for the writer, and each reads
a snapshot. Several processes may open the same file. A transaction takes the write lock at its start (`BEGIN
IMMEDIATE`), so it never fails half-way because of another writer. Threads that write at the same time share a
transaction (`write_queue`). A background thread checkpoints the WAL (`checkpoints`).
"""

from __future__ import annotations

import os
import secrets
import threading
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from typing import Any, Literal
from urllib.parse import quote

import apsw

from recollect.common import deadlines
from recollect.errors import (
    ClosedError,
    CommitInDoubtError,
    DamagedStoreError,
    ForkedError,
    InvalidArgumentError,
    NewerFormatError,
    NotAStoreError,
    OlderFormatError,
    ReadOnlyStoreError,
    RecollectError,
    StoreBusyError,
    StoreError,
    StoreIOError,
    StoreReplacedError,
    WrongKeyError,
    WrongSecretError,
)
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.stores.derived.files import DerivedFiles
from recollect.stores.sealing.keys import Secret, Unlocked
from recollect.stores.sql.group_writer import GroupWriter
from recollect.stores.sqlite import schema
from recollect.stores.sqlite.checkpoints import Checkpointer
from recollect.stores.sqlite.copies import copies_with
from recollect.stores.sqlite.copying import back_up
from recollect.stores.sqlite.encryption import key_check, keys_of, prepare, remove_unfinished, store_keys
from recollect.stores.sqlite.header import admit, check_size, has_wal, header_of, is_immutable, must_not_write
from recollect.stores.sqlite.identity import FileIdentity, FrozenFile
from recollect.stores.sqlite.integrity import examined
from recollect.stores.sqlite.locks import FileLocks
from recollect.stores.sqlite.names import uncomposed_heads
from recollect.stores.sqlite.renewing import Renewal
from recollect.stores.sqlite.schema import APPLICATION_ID, ENCRYPTED_ID, KEYED_IDS, PAGE_CHECKSUMS
from recollect.stores.sqlite.view import SqliteTransaction, SqliteView
from recollect.stores.sqlite_base import checksums
from recollect.stores.sqlite_base.connections import differing_table, few_steps, has_snapshot, in_turn, structure
from recollect.stores.sqlite_base.errors import SQLITE_ERRORS, ours, translated
from recollect.stores.values import Backup, Capabilities, CheckReport, Durability
from recollect.stores.write_queue import POLL_S, Shared, Steps, Ticket, ended, repeated, watched

#: Maximum number of idle read connections that are kept open for later reads.
_MAX_IDLE = 8
#: A payload of fewer bytes is in one page together with its length, so the page's checksum covers it. A longer one
#: continues in overflow pages that contain only its bytes, and a page of zeros there has a valid checksum.
_ONE_PAGE_BYTES = 3900
#: How often the number of pages that were encrypted is written, in pages; and how.
_COUNTED_EVERY = 4096
_COUNT = (
    "INSERT INTO meta VALUES ('encrypted_pages', ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
)
#: Number of steps of a statement between two looks at the deadline of its thread: about a millisecond.
_STEPS = 50_000
#: The value of `PRAGMA synchronous` for each mode, and what survives a power cut.
DURABILITY: dict[Durability, str] = {
    "full": "FULL",  # every acknowledged commit
    "normal": "NORMAL",  # a consistent store, perhaps without the newest commits
}


class SqliteStore(GroupWriter[SqliteTransaction]):
    """A `Store` in one SQLite file.

    Args:
        path: The file. If it is missing and `create` is true, it is created with mode 0600.
        create: Whether to create a missing file.
        read_only: Refuse every write.
        key: The key from which salts are derived; must be the one that the file was created with. Default: the public
            key, and in an encrypted file one that is derived from its data key.
        timeout_s: How long a writer waits for another one before StoreBusyError, in seconds.
        durability: "full", or "normal": after a power cut the newest commits may be missing, but no others.
        zone_of_new: Returns the name of the time zone of a file that is created; default: UTC.
        secret: What opens an encrypted file; a file that is created is encrypted if there is one.

    Raises:
        StoreMissingError: There is no file, and none may be created.
        NotAStoreError: The file is not a store.
        NewerFormatError: The file needs a newer release.
        OlderFormatError: The file has a format that this release cannot read.
        DamagedStoreError: The file is corrupt.
        WrongKeyError: The file was created with another key.
        SecretNeededError, WrongSecretError, KeyFileMissingError, NotEncryptedError: See `recollect.open`.
        MissingExtraError: The file is encrypted, and the library for that is not installed.
        StoreIOError: The file cannot be read or created. An existing file is not changed by any of these errors.
    """

    _writer: apsw.Connection
    capabilities = Capabilities(
        group_commit=True, copying=True, writers="store", snapshots=True, durable=True, watched=True
    )

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        read_only: bool = False,
        key: bytes | None = None,
        timeout_s: float = 10.0,
        durability: Durability = "full",
        zone_of_new: Callable[[], str] = lambda: "UTC",
        secret: Secret | Unlocked | None = None,
    ) -> None:
        if durability not in DURABILITY:
            raise InvalidArgumentError("durability", durability, f"must be one of {', '.join(DURABILITY)}")
        super().__init__(os.path.abspath(os.fspath(path)), timeout_s)
        self._synchronous = DURABILITY[durability]
        self._durability = durability
        self._zone_of_new = cache(zone_of_new)
        self._closed = False
        # Before the connections: of a store that is not closed, the locks must be freed first.
        self._locks = FileLocks(self.path)
        self._counted = 0  # pages that were encrypted, and are in the count of the file
        self._idle: list[apsw.Connection] = []
        self._poller: apsw.Connection | None = None  # for `version`
        self._polling = threading.Lock()
        self._readers: dict[object, Steps] = {}
        self._readers_done = threading.Condition()
        self._uncomposed: int | None = None  # heads of a format before 4 whose names are not in NFC, once counted
        self._write_refused = must_not_write(self.path, read_only)
        if create and not self._write_refused and not os.path.lexists(self.path):
            self._zone_of_new()  # raises before there is a file
            prepare(self.path, secret)
        new, encrypted = admit(self.path, create and not self._write_refused)
        self._keys = keys_of(self.path, secret, new=new, encrypted=encrypted)
        self._cipher = None if self._keys is None else self._keys.pages("db")
        self._checkpointer = Checkpointer(self.path, self._queue, encrypted=self._keys is not None)
        self._store_keys = store_keys(key, self._keys)
        self.key = self._store_keys[0]
        self._renewal = Renewal(self.path, self.key)
        immutable = bool(self._write_refused) and not new and is_immutable(self.path)
        self._frozen = FrozenFile(self.path) if immutable else None
        self._locks.enter()
        try:
            self._begin(new)
        except BaseException:
            self._locks.close()
            raise

    # Opening

    def _begin(self, new: bool) -> None:
        try:
            in_turn(lambda: self._open(new), StoreBusyError, self._timeout_s)
        except DamagedStoreError as error:
            repeated(lambda: self._open(new), error, lambda error: not new and self._renews_at_opening(error))
        try:
            self._identity = FileIdentity(self.path, self._writer)
            self._check_frozen()
            self._locks.begin(self._writer.filename, writing=not self._write_refused)
            self._identity.check()  # from here on, no other process can delete the WAL
            if self._keys is not None and not self._write_refused:
                remove_unfinished(self._writer.filename)
        except BaseException:
            self._close_refused(new)
            raise

    def _renews_at_opening(self, error: StoreError) -> bool:
        return checksums.is_fault(error) and self._renewal.run(self._unverified) >= 0

    def _open(self, new: bool) -> None:
        self._writer = self._connect(writing=not self._write_refused)
        try:
            self._set_up(new)
        except BaseException:
            self._close_refused(new)
            raise

    def _close_refused(self, new: bool) -> None:
        with suppress(apsw.Error):
            if not new and has_wal(self.path):
                # The last connection to close would checkpoint the WAL into the refused file, and delete the WAL.
                self._writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self._writer.close()

    def _connect(self, *, writing: bool, verify: bool = True) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READWRITE if writing or not self._write_refused else apsw.SQLITE_OPEN_READONLY
        name = self.path
        if self._frozen is not None:
            # SQLite would create files next to it, which is impossible here and not needed.
            name, flags = f"file:{quote(self.path)}?immutable=1", flags | apsw.SQLITE_OPEN_URI
        with translated(self.path):
            connection = checksums.connect(name, flags, verify=self._renewal.verifies and verify, cipher=self._cipher)
            connection.set_busy_timeout(max(1, round(self._timeout_s * 1000)))
            # One query plan for a statement, whatever values are bound; otherwise SQLite prepares it again for each.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            if not writing:
                connection.execute("PRAGMA query_only = 1")
                # It is called in the thread that runs the statement, whose deadline may be another one each time.
                connection.set_progress_handler(deadlines.is_over, _STEPS)
            else:
                # Temporary files never touch the disk, and what is deleted is overwritten.
                pragmas = (
                    f"PRAGMA synchronous = {self._synchronous}; PRAGMA temp_store = MEMORY; PRAGMA secure_delete = ON"
                )
                connection.execute(pragmas).fetchall()
        return connection

    def _set_up(self, new: bool) -> None:
        with translated(self.path):
            if not self._write_refused:
                if new:
                    # Until the WAL, a journal is played back after a power cut, and with NORMAL its header may be on
                    # the disk before the page that it announces.
                    self._writer.execute("PRAGMA synchronous = FULL")
                    checksums.begin(self._writer, self._cipher)
                    # Written before anything else, so that the header identifies the file from its first page on.
                    self._writer.execute(f"PRAGMA application_id = {self._application_id}")
                mode = self._writer.execute("PRAGMA journal_mode = WAL").fetchall()[0][0]
                if mode != "wal":  # SQLite would continue, but a power cut could undo acknowledged commits
                    raise StoreIOError(self.path, f"SQLite cannot use WAL mode here and stays in mode {mode!r}")
                if new:
                    self._writer.execute(f"PRAGMA synchronous = {self._synchronous}")
                self._checkpointer.attach(self._writer)
            if not new:
                self._check_size()
            with few_steps(self._writer):
                if not self._has_tables(self._writer):
                    self._create_tables()
                self._read_meta(self._writer)

    def _read_meta(self, connection: apsw.Connection) -> None:
        """Read what the store says of itself.

        Raises:
            DamagedStoreError, NewerFormatError, OlderFormatError, WrongKeyError: It cannot be used.
        """
        meta = dict(connection.execute("SELECT name, value FROM meta"))
        self.has_checksums = checksums.reserved(connection)
        try:
            least_reader, least_writer = int(meta["least_reader"]), int(meta["least_writer"])
            self._uuid, check = str(meta["uuid"]), bytes(meta["key_check"])
            self.format, features = int(meta["format"]), str(meta["features"]).split(",")
            self.zone = str(meta.get("zone", "UTC"))
        except (KeyError, TypeError, ValueError):
            raise DamagedStoreError(self.path, "its table meta lacks entries that every store has") from None
        if least_reader > (known := max(schema.FORMAT, schema.BRANCHED_FORMAT)):
            raise NewerFormatError(self.path, f"it needs format {least_reader}, this release has {known}")
        if self.format < schema.READS_FROM:
            raise OlderFormatError(self.path, f"it has format {self.format}")
        if PAGE_CHECKSUMS in features and not self.has_checksums:
            raise DamagedStoreError(self.path, "its pages have checksums, but its header says that they have none")
        self.key = next((each for each in self._store_keys if check == key_check(each)), b"")
        if not self.key:
            raise WrongKeyError(self.path)
        if not self._write_refused:
            self._write_refused = self._why_not_write(least_writer)
        self.id_key = self.key if KEYED_IDS in features else None
        if self._keys is not None and self._uuid != self._keys.uuid:
            raise WrongSecretError(self.path, f"its key file is that of the store {self._keys.uuid}")
        verified = self._keys is not None
        verified = verified or (self.has_checksums and checksums.available() and self._renewal.verifies)
        self._trusted = _ONE_PAGE_BYTES if verified else 0

    @property
    def _application_id(self) -> int:
        return APPLICATION_ID if self._keys is None else ENCRYPTED_ID

    @contextmanager
    def _unverified(self) -> Iterator[tuple[apsw.Connection, bool]]:
        """Provide a connection that does not verify checksums, and whether it may write."""
        connection = self._connect(writing=False, verify=False)
        try:
            with translated(self.path), few_steps(connection):
                self._has_tables(connection)  # before more of it is read
                self._read_meta(connection)
            writing = not self._write_refused
            if writing:
                connection.execute("PRAGMA query_only = 0")
            yield connection, writing
        finally:
            with suppress(apsw.Error):
                # Not the last connection, or the file is not to be changed.
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                connection.close()

    @property
    def renewed(self) -> str:
        return self._renewal.found

    def renew(self, error: StoreError) -> bool:
        """Verify the store after an error that may mean no damage. See `Store.renew`."""
        return checksums.is_fault(error) and self._renewed_pages() is not None

    def _renewed_pages(self) -> int | None:
        """Renew the checksums of pages. Return their number; None if not everything verifies."""
        if not self.has_checksums:
            return None
        pages = self._renewal.attempt(self._unverified, self._without_writers)
        if pages is not None:
            if not self._renewal.verifies:
                self._trusted = 0
            with suppress(IndexError):
                while True:  # one by one: other threads take them, too. One that is in use may meet such a page later
                    self._idle.pop().close()
        return pages

    @contextmanager
    def _without_writers(self) -> Iterator[None]:
        """Keep other threads of this process from writing and from checkpointing."""
        with self._alone(), self._checkpointer.paused():
            yield

    def _check_size(self) -> None:
        """Raise DamagedStoreError if the file lacks pages."""
        header = header_of(self.path, self._writer.filename)
        self._writer.execute("BEGIN")  # an open snapshot keeps the WAL from being restarted meanwhile
        try:
            check_size(self.path, header, self._writer.pragma("page_count"))
        finally:
            if self._writer.in_transaction:  # SQLite itself ends it after some read errors
                self._writer.execute("ROLLBACK")

    def _why_not_write(self, least_writer: int) -> str:
        """Return why this release must not write to the file; "" if it may."""
        if least_writer > (known := max(schema.FORMAT, schema.BRANCHED_FORMAT)):
            return f"writing to it needs format {least_writer}, this release has {known}"
        if self.has_checksums and not checksums.available():
            return "its pages have checksums, which this SQLite cannot write: pip install --force-reinstall apsw"
        return ""

    def _has_tables(self, connection: apsw.Connection) -> bool:
        """Return whether the file has the store's tables. Raise DamagedStoreError if one of them is something else."""
        found = structure(connection)
        if not found:
            return False
        number = connection.pragma("user_version")
        tables = schema.tables_of(number)
        name = "meta" if "meta" not in found else differing_table(found, tables, exactly=number in schema.FORMATS)
        if name:
            raise DamagedStoreError(self.path, f"its table {name} is not that of a store")
        return True

    def _create_tables(self) -> None:
        """Create the tables in one transaction. The file is new, or a process died while it created it."""
        if self._write_refused:
            raise NotAStoreError(self.path, "it is empty")
        zone = self._zone_of_new()
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            if not self._has_tables(self._writer):  # another process may have created them meanwhile
                self._writer.execute(schema.tables_of(schema.FORMAT))
                # Again: after a power cut, SQLite may just have rolled back the first time.
                self._writer.execute(f"PRAGMA application_id = {self._application_id}")
                self._writer.execute(f"PRAGMA user_version = {schema.FORMAT}")
                facts = {
                    "uuid": str(uuid.uuid4()) if self._keys is None else self._keys.uuid,
                    "format": schema.FORMAT,
                    "least_reader": schema.LEAST_READER,
                    "least_writer": schema.FORMAT,
                    "features": ",".join(self._features_of_new()),
                    "key_check": key_check(self.key),
                    "zone": zone,
                }
                self._writer.executemany("INSERT INTO meta VALUES (?, ?)", list(facts.items()))
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise

    @property
    def binds_parts(self) -> bool:
        """Whether the commits of the file bind all parts of a memory, as they do since format 4."""
        return self.format >= 4

    def _has_composed_names(self, connection: apsw.Connection) -> bool:
        """Return whether the names in the columns of heads are in NFC, as they are since format 4."""
        if self._uncomposed is None:
            with translated(self.path):
                self._uncomposed = len(uncomposed_heads(connection)) if self.format < 4 else 0
        return not self._uncomposed

    def _features_of_new(self) -> list[str]:
        features = {PAGE_CHECKSUMS: checksums.reserved(self._writer), KEYED_IDS: self.key != PUBLIC_KEY}
        return [name for name, present in features.items() if present]

    # Reading and writing

    def _check_frozen(self) -> None:
        if self._frozen is not None:
            self._frozen.check()

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise ForkedError(self.path, self._pid)
        if self._closed:
            raise ClosedError("the memory")

    def _reader(self) -> AbstractContextManager[apsw.Connection]:
        self._check_usable()  # before any lock: in a fork, the thread that holds it does not exist
        self._identity.check_file()
        self._check_frozen()
        reader = object()
        block, steps = watched(self._borrow(reader))
        with self._readers_done:
            self._check_usable()
            self._readers[reader] = steps
        return block

    def _borrow(self, reader: object) -> Generator[apsw.Connection, None, None]:
        """Provide a read connection while the block runs."""
        connection: apsw.Connection | None = None
        try:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._connect(writing=False)
            drops = self._locks.drops()
            yield connection
            self._check_frozen()
            if self._locks.drops() != drops:
                raise StoreBusyError(self.path, "a library of this process closed it while it was read")
        except StoreError:
            self._check_frozen()  # pages of two states may have looked corrupt
            raise
        finally:
            with self._readers_done:
                self._readers.pop(reader, None)
                surplus: apsw.Connection | None = connection
                # SQLite's own state decides: a statement that was left half-way keeps its snapshot after a ROLLBACK.
                if connection is not None and not has_snapshot(connection) and len(self._idle) < _MAX_IDLE:
                    self._idle.append(connection)
                    surplus = None
                self._readers_done.notify_all()
            if surplus is not None:
                surplus.close()  # ends the statements that were left half-way, too

    def _no_readers(self) -> bool:
        return all(ended(steps) for steps in self._readers.values())

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """Provide a read-only connection to the file, for copying it."""
        with self._reader() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[SqliteView]:
        with self._reader() as connection:
            _run_on(connection, "BEGIN", self.path)
            try:
                composed = self._uncomposed == 0 or self._has_composed_names(connection)
                yield SqliteView(connection, self.path, self.key, self._trusted, self.binds_parts, composed)
            finally:
                if connection.in_transaction:  # SQLite itself ends it after some read errors
                    _run_on(connection, "ROLLBACK", self.path)  # nothing was written; this only ends the view

    def version(self) -> int:
        """Return SQLite's `data_version`, which changes when another connection, of any process, has committed.

        The connection for this stays open and never writes. Between two calls it has no snapshot, so it delays no
        checkpoint.
        """
        self._check_usable()  # before the lock: in a fork, the thread that holds it does not exist
        with self._polling:
            self._check_usable()
            self._identity.check_file()
            self._check_frozen()
            if self._poller is None:
                self._poller = self._connect(writing=False)
            with translated(self.path):
                version: int = self._poller.pragma("data_version")
            return version

    def write(
        self, branch: Branch, *, shared: bool = False, ids: Sequence[str] = ()
    ) -> AbstractContextManager[SqliteTransaction]:
        """Open a transaction. The file has one writer, whichever branch it writes to."""
        self._check_usable()
        if self._write_refused:
            raise ReadOnlyStoreError(self.path, self._write_refused)
        ticket = Ticket(shares=shared)
        return ticket.managed(self._writing(ticket))

    def _transaction(self) -> SqliteTransaction:
        composed = self._uncomposed == 0 or self._has_composed_names(self._writer)
        return SqliteTransaction(self._writer, self.path, self.key, self._trusted, self.binds_parts, composed)

    def _begin_transaction(self) -> None:
        if not self._locks.take_turn(self._timeout_s):
            raise StoreBusyError(self.path, f"waited {self._timeout_s:g} s for another process")
        self._identity.check()
        self._run("BEGIN IMMEDIATE")

    def _run(self, sql: str) -> None:
        _run_on(self._writer, sql, self.path)

    def _undo_part(self) -> Literal["undone", "absent", "failed"]:
        try:
            self._writer.execute("ROLLBACK TO part; RELEASE part")
        except apsw.SQLError:
            return "absent"
        except apsw.Error:
            return "failed"
        return "undone"

    def _roll_back(self) -> None:
        with suppress(apsw.Error):
            self._writer.execute("ROLLBACK")

    def _end_turn(self) -> None:
        if has_snapshot(self._writer):
            self._renew_writer()
        self._locks.end_turn()

    def _renew_writer(self) -> None:
        """Replace the connection that writes, because a statement that was left half-way keeps a snapshot on it.

        Later transactions would begin from that snapshot: they would fail once another process has committed, and no
        checkpoint could be complete.
        """
        former = self._writer
        try:
            successor = self._connect(writing=True)
            self._checkpointer.attach(successor)
        except StoreError:
            return  # it is tried again after the next transaction
        self._writer = successor
        with suppress(apsw.Error):
            former.close()

    def _commit(self, shared: Shared) -> None:
        error: RecollectError | None = None
        try:
            if self._cipher is not None and self._cipher.count >= self._counted + _COUNTED_EVERY:
                self._writer.execute(_COUNT, (self._cipher.count - self._counted,))
                self._counted = self._cipher.count
            self._writer.execute("COMMIT")
        except SQLITE_ERRORS as raised:
            error = ours(self.path, raised)
            if isinstance(raised, apsw.IOError) and not self._overwrite_failed():
                error = CommitInDoubtError(self.path, f"{raised}; it is not stored now, but may be after a crash")
            error.__cause__ = raised
        else:
            try:
                self._identity.check("the last commit is in the file that was open")
            except StoreReplacedError as replaced:
                error = replaced
        finally:
            if self._writer.in_transaction:
                with suppress(apsw.Error):
                    self._writer.execute("ROLLBACK")
                error = error or StoreIOError(self.path, "interrupted before the commit")
            shared.end(error)
        if error is None:
            self._checkpointer.committed(self._writer)

    def _overwrite_failed(self) -> bool:
        """Overwrite a failed commit in the WAL, and return whether that succeeded.

        The failed commit may be complete in the WAL without being part of the store, and recovery after a crash would
        then find it. The next commit overwrites it, so this writes one that changes nothing.
        """
        try:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            version = self._writer.pragma("user_version")
            self._writer.execute(f"PRAGMA user_version = {version}")  # writes the page even if the value is the same
        except apsw.Error:
            return False
        return True

    # Facts

    def derived(self) -> DerivedFiles:
        return DerivedFiles(
            self.path + ".index", self._uuid, self.key, read_only=bool(self._write_refused), keys=self._keys
        )

    def facts(self) -> dict[str, Any]:
        sizes = {}
        for suffix, name in (("", "file_bytes"), ("-wal", "log_bytes")):
            with suppress(OSError):
                sizes[name] = os.stat(self.path + suffix).st_size
        return {
            "store": "sqlite",
            "path": self.path,
            "uuid": self._uuid,
            "zone": self.zone,
            "format": self.format,
            "checksums": self.has_checksums,
            "encrypted": self._keys is not None,
            "sqlite": apsw.sqlite_lib_version(),
            "durability": self._durability,
            "renewed": self.renewed,
            **self._encrypted_pages(),
            **({"uncomposed_names": self._uncomposed} if self._uncomposed else {}),
            "read_only": bool(self._write_refused),
            **sizes,
        }

    def _encrypted_pages(self) -> dict[str, int]:
        """Return about how many pages were encrypted with the data key, if the file is encrypted."""
        if self._keys is None:
            return {}
        with self._reader() as connection, translated(self.path):
            found = connection.execute("SELECT value FROM meta WHERE name = 'encrypted_pages'").fetchall()
        return {"encrypted_pages": int(str(found[0][0])) if found else 0}

    def check(self) -> CheckReport:
        """Run SQLite's integrity check, and compare all rows with their hashes and with each other."""
        report = self._examined()
        return self._examined() if report and self._renewed_pages() else report

    def _examined(self) -> CheckReport:
        with self._reader() as connection:
            connection.execute("BEGIN")
            try:
                return examined(connection, self.path, self.key, self._cipher)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def compact(self) -> bool:
        """Rewrite the file without its free pages (`VACUUM`), and make it as short as it can be."""
        with self._alone():
            self._run("VACUUM")
            self._identity.check("it was compacted in the file that was open")
            with translated(self.path):
                return self._checkpointer.truncate(self._writer)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads from writing while the block runs."""
        self._check_usable()
        if self._write_refused:
            raise ReadOnlyStoreError(self.path, self._write_refused)
        if self._queue.owned_by_caller():
            raise StoreBusyError(self.path, "this thread is inside a batch: end it first")
        ticket = Ticket(shares=False)
        try:
            if not self._queue.take(ticket, self._timeout_s):
                raise StoreBusyError(self.path, f"waited {self._timeout_s:g} s for another thread")
            self._check_usable()
            if not self._locks.take_turn(self._timeout_s):
                raise StoreBusyError(self.path, f"waited {self._timeout_s:g} s for another process")
            self._identity.check()
            yield
        finally:
            if ticket.has_lock:
                self._locks.end_turn()
                self._queue.release(ticket)

    @property
    def keys(self) -> Unlocked | None:
        """The data keys of an encrypted file; None if it is not encrypted."""
        return self._keys

    def back_up(self, path: str, *, verify: bool, force: bool) -> Backup:
        """See `copying.back_up`."""
        return back_up(self, path, verify=verify, force=force)

    def copies_with(self, branch: Branch, versions: Sequence[bytes]) -> tuple[str, ...]:
        """See `copies.copies_with`."""
        return copies_with(self.path, branch, versions, self._uuid, self._keys)

    def truncate(self) -> bool:
        """Copy the WAL into the file and truncate it: after its last frame there may be frames of former states."""
        with self._alone(), translated(self.path):
            return self._checkpointer.truncate(self._writer, wait_ms=0)

    def probe(self) -> None:
        nonce = secrets.token_hex(16)
        with self.write(Branch("probe")) as transaction:
            transaction.set_setting("probe", nonce)
        with self.read() as view:
            value = view.setting("probe")
        if value != nonce:
            raise DamagedStoreError(self.path, "a test value was written and not read back")

    def close(self) -> None:
        if os.getpid() != self._pid:
            return  # a fork must not touch its parent's connections
        if self._queue.owned_by_caller():
            raise StoreBusyError(self.path, "this thread is inside a batch: end it first")
        with self._readers_done:
            if self._closed:
                return
            self._closed = True
            while not self._no_readers():
                self._readers_done.wait(POLL_S)
        self._checkpointer.close()
        ticket = Ticket(shares=False)
        try:
            self._queue.take(ticket)
            with self._polling:
                pollers = () if self._poller is None else (self._poller,)
            self._locks.release()
            self._identity.close((*self._idle, *pollers, self._writer))
        finally:
            self._locks.close()
            if ticket.has_lock:
                self._queue.release(ticket)


def _run_on(connection: apsw.Connection, sql: str, path: str) -> None:
    """Run a statement that returns no rows, with SQLite's errors translated. Cheaper than `translated`."""
    try:
        connection.execute(sql)
    except SQLITE_ERRORS as error:
        raise ours(path, error) from error
