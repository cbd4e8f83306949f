"""The SQLite store: one file, written by one connection at a time, read by many.

Write-ahead log with `synchronous=FULL`: a commit that was acknowledged survives a power cut. Readers never wait for the
writer and see one moment; several processes may open the same file. The writer's lock is taken at the start of a
transaction (`BEGIN IMMEDIATE`), so a transaction never fails half-way because another was faster. Threads that write at
once share a transaction (`write_queue`), and the log is carried into the file beside them (`checkpoints`).
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import uuid
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any
from urllib.parse import quote

import apsw

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
)
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.stores.base import Backup
from recollect.stores.interruptible import Steps, ended, watched
from recollect.stores.sqlite import checksums, schema
from recollect.stores.sqlite.checkpoints import Checkpointer
from recollect.stores.sqlite.copying import back_up
from recollect.stores.sqlite.errors import SQLITE_ERRORS, ours, translated
from recollect.stores.sqlite.header import admit, check_size, has_wal, header_of, must_not_write, stands_still
from recollect.stores.sqlite.identity import FileIdentity
from recollect.stores.sqlite.integrity import problems_in
from recollect.stores.sqlite.schema import APPLICATION_ID, PAGE_CHECKSUMS, TABLES
from recollect.stores.sqlite.structure import few_steps, strange, structure
from recollect.stores.sqlite.transaction import SqliteTransaction
from recollect.stores.sqlite.view import SqliteView
from recollect.stores.write_queue import POLL_S, Shared, Ticket, WriteQueue

#: So many readers' connections are kept for the next.
_IDLE = 8
#: A payload of fewer bytes lies in one page, beside what says how long it is. A longer one goes on in pages of nothing
#: but its bytes, of which a page of zeros has a right checksum.
_WHOLE_IN_PAGE = 3900
#: What the modes promise after a power cut (`PRAGMA synchronous`).
DURABILITY = {
    "full": "FULL",  # every acknowledged commit
    "normal": "NORMAL",  # a consistent store, perhaps without the newest commits
}


class SqliteStore:
    """A `Store` in one SQLite file.

    path         of the file; made with mode 0600 where it is absent and `create` allows
    read_only    nothing is written, whatever is called
    key          from which salts are derived; must be the one that the file was made with
    timeout_s    how long a writer waits for another before StoreBusyError
    durability   "full", or "normal": after a power cut the newest commits may be missing, never others

    Raises: StoreMissingError, NotAStoreError, NewerFormatError, WrongKeyError, StoreIOError; none of them touches the
    file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        read_only: bool = False,
        key: bytes = PUBLIC_KEY,
        timeout_s: float = 10.0,
        durability: str = "full",
    ) -> None:
        if durability not in DURABILITY:
            raise InvalidArgumentError("durability", durability, f"must be one of {', '.join(DURABILITY)}")
        self.path = os.path.abspath(os.fspath(path))
        self.key = key
        self._timeout_s = timeout_s
        self._synchronous = DURABILITY[durability]
        self._durability = durability
        self._pid = os.getpid()
        self._closed = False
        self._queue = WriteQueue(self._abandoned)  # one writer of this process at a time
        self._checkpointer = Checkpointer(self.path, self._queue)
        self._idle: list[apsw.Connection] = []
        self._reading: dict[object, Steps] = {}
        self._readers_done = threading.Condition()
        self._write_refused = must_not_write(self.path, read_only)
        new = admit(self.path, create and not self._write_refused)
        self._writer = self._connect(writing=not self._write_refused)
        try:
            self._begin_life(new)
            self._identity = FileIdentity(self.path, self._writer)
        except BaseException:
            with suppress(apsw.Error):
                if not new and has_wal(self.path):
                    # The last connection would carry the WAL into a file that was refused, and delete it.
                    self._writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                self._writer.close()
            raise

    # Opening

    def _connect(self, *, writing: bool) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READWRITE if writing or not self._write_refused else apsw.SQLITE_OPEN_READONLY
        name = self.path
        if self._write_refused and stands_still(self.path):
            # SQLite would make files beside it, which it cannot here and need not.
            name, flags = f"file:{quote(self.path)}?immutable=1", flags | apsw.SQLITE_OPEN_URI
        with translated(self.path):
            connection = checksums.connect(name, flags)
            connection.set_busy_timeout(max(1, round(self._timeout_s * 1000)))
            # One plan for a statement whatever is bound to it; else SQLite parses it anew for each value.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            if not writing:
                connection.execute("PRAGMA query_only = 1")
            else:
                connection.execute(f"PRAGMA synchronous = {self._synchronous}")
                # A full page for every change is what the log carries anyway; temporary files never touch the disk.
                connection.execute("PRAGMA temp_store = MEMORY")
        return connection

    def _begin_life(self, new: bool) -> None:
        with translated(self.path):
            if not self._write_refused:
                if new:
                    checksums.begin(self._writer)
                    # In the header before anything else, so that the file is known as ours from its first page on.
                    self._writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                mode = self._writer.execute("PRAGMA journal_mode = WAL").fetchall()[0][0]
                if mode != "wal":  # SQLite would go on without; but then a power cut may undo what is acknowledged
                    raise StoreIOError(self.path, f"its log cannot be set up, SQLite stays in mode {mode!r}")
                self._checkpointer.attach(self._writer)
            if not new:
                self._check_size()
            with few_steps(self._writer):
                if not self._has_tables():
                    self._make_tables()
                meta = dict(self._writer.execute("SELECT name, value FROM meta"))
            self.has_checksums = checksums.kept(self._writer)
        try:
            least_reader, least_writer = int(meta["least_reader"]), int(meta["least_writer"])
            self._uuid, check = str(meta["uuid"]), bytes(meta["key_check"])
            self.format, features = int(meta["format"]), str(meta["features"]).split(",")
        except (KeyError, TypeError, ValueError):
            raise DamagedStoreError(self.path, "its meta table lacks what every store has") from None
        if least_reader > schema.FORMAT:
            raise NewerFormatError(self.path, f"it needs format {least_reader}, this release has {schema.FORMAT}")
        if self.format < schema.READS_FROM:
            raise OlderFormatError(self.path, f"it has format {self.format}")
        if PAGE_CHECKSUMS in features and not self.has_checksums:
            raise DamagedStoreError(self.path, "its header denies the checksums that its pages have")
        if check != key_check(self.key):
            raise WrongKeyError(self.path)
        if not self._write_refused:
            self._write_refused = self._why_not_write(least_writer)
        self._trusted = _WHOLE_IN_PAGE if self.has_checksums and checksums.available() else 0

    def _check_size(self) -> None:
        """Raises: DamagedStoreError where the file lacks pages."""
        header = header_of(self.path)
        self._writer.execute("BEGIN")  # whose moment keeps the WAL from being begun anew meanwhile
        try:
            check_size(self.path, header, self._writer.pragma("page_count"))
        finally:
            self._writer.execute("ROLLBACK")

    def _why_not_write(self, least_writer: int) -> str:
        """Why this release must not write to the file; "" where it may."""
        if least_writer > schema.FORMAT:
            return f"it needs format {least_writer} to be written, this release has {schema.FORMAT}"
        if self.format < schema.WRITES_FROM:
            return f"it has format {self.format}, which this release only reads: run `recollect migrate`"
        if self.has_checksums and not checksums.available():
            return "its pages have checksums, which the SQLite at hand cannot keep: pip install --force-reinstall apsw"
        return ""

    def _has_tables(self) -> bool:
        """Whether the file has our tables. Raises: DamagedStoreError where something else has the name of one."""
        held = structure(self._writer)
        if not held:
            return False
        known = self._writer.pragma("user_version") in schema.FORMATS
        name = "meta" if "meta" not in held else strange(held, TABLES, exactly=known)
        if name:
            raise DamagedStoreError(self.path, f"its table {name} is not one of a store")
        return True

    def _make_tables(self) -> None:
        """The tables, in one transaction, where the file has none yet: it is new, or a process died making it."""
        if self._write_refused:
            raise NotAStoreError(self.path, "it is empty")
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            if not self._has_tables():  # another process may have been faster
                self._writer.execute(TABLES)
                # Again: where a power cut came in between, SQLite has just undone the first time.
                self._writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._writer.execute(f"PRAGMA user_version = {schema.FORMAT}")
                facts = {
                    "uuid": str(uuid.uuid4()),
                    "format": schema.FORMAT,
                    "least_reader": schema.LEAST_READER,
                    "least_writer": schema.FORMAT,
                    "features": PAGE_CHECKSUMS if checksums.kept(self._writer) else "",
                    "key_check": key_check(self.key),
                }
                self._writer.executemany("INSERT INTO meta VALUES (?, ?)", list(facts.items()))
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise

    # Reading and writing

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise ForkedError(self.path, self._pid)
        if self._closed:
            raise ClosedError("the memory")

    def _reader(self) -> AbstractContextManager[apsw.Connection]:
        self._check_usable()  # before any lock: in a fork it may be held by a thread that is not there
        self._identity.check_file()
        mark = object()
        lent, steps = watched(self._lent(mark))
        with self._readers_done:
            self._check_usable()
            self._reading[mark] = steps
        return lent

    def _lent(self, mark: object) -> Generator[apsw.Connection, None, None]:
        """A reader's connection, while the block runs."""
        connection: apsw.Connection | None = None
        try:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._connect(writing=False)
            yield connection
        finally:
            with self._readers_done:
                self._reading.pop(mark, None)
                surplus: apsw.Connection | None = connection
                # One whose view was not ended, because of an interruption, is not for the next.
                if connection is not None and not connection.in_transaction and len(self._idle) < _IDLE:
                    self._idle.append(connection)
                    surplus = None
                self._readers_done.notify_all()
            if surplus is not None:
                surplus.close()

    def _nobody_reads(self) -> bool:
        return all(ended(steps) for steps in self._reading.values())

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """A connection to the file that only reads, for copying it."""
        with self._reader() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[SqliteView]:
        with self._reader() as connection:
            _run_by(connection, "BEGIN", self.path)
            try:
                yield SqliteView(connection, self.path, self.key, self._trusted)
            finally:
                if connection.in_transaction:  # some errors (of a read) have made SQLite end it by itself
                    _run_by(connection, "ROLLBACK", self.path)  # nothing was written; this only ends the view

    def write(self) -> AbstractContextManager[SqliteTransaction]:
        ticket = Ticket(shares=False)
        return ticket.managed(self._writing(ticket))

    def write_shared(self) -> AbstractContextManager[SqliteTransaction]:
        """Like `write`, for what is short and waits for nobody: threads that do it at once share one durable commit.

        Each has a part of its own in the transaction, which ends well or is undone by itself. None returns before all
        of it is durable; where that fails, each raises, and nothing of any of them is held.
        """
        ticket = Ticket(shares=True)
        return ticket.managed(self._writing(ticket))

    def _writing(self, ticket: Ticket) -> Generator[SqliteTransaction, None, None]:
        self._check_usable()
        if self._write_refused:
            raise ReadOnlyStoreError(self.path, self._write_refused)
        if self._queue.owned_by_caller():
            raise StoreBusyError(self.path, "this thread is inside a batch: use the batch's own calls")
        refused: Exception | None = None
        try:
            if not self._queue.take(ticket, self._timeout_s):
                raise StoreBusyError(self.path, f"waited {self._timeout_s:g} s for another thread")
            self._check_usable()
            self._entered(ticket)
            transaction = SqliteTransaction(self._writer, self.path, self.key, self._trusted)
            yield transaction
            transaction.finish()
            self._left(ticket)
        except BaseException as error:
            self._undo(ticket, error)
            # What it saw of others, and was refused for, is not true before it is durable.
            if not isinstance(error, Exception) or ticket.shared is None or not ticket.shared.members:
                raise
            refused = error
        finally:
            self._give_up(ticket)
        assert ticket.shared is not None
        ticket.shared.result(self._queue.release_abandoned)
        if refused is not None:
            raise refused

    def _entered(self, ticket: Ticket) -> None:
        """Begin a transaction, or a part of the one that was handed on."""
        # Noted before it is begun, so that whatever interrupts it finds what there may be to undo.
        if ticket.shared is None:
            ticket.shared = Shared()
            self._identity.check()
            self._run("BEGIN IMMEDIATE")
        else:
            ticket.inside = True
            self._run("SAVEPOINT part")

    def _left(self, ticket: Ticket) -> None:
        """The turn's own part is done; now it depends on the commit."""
        assert ticket.shared is not None
        if ticket.inside:
            self._run("RELEASE part")
            ticket.inside = False
        ticket.shared.members += 1

    def _run(self, sql: str) -> None:
        _run_by(self._writer, sql, self.path)

    def _undo(self, ticket: Ticket, error: BaseException) -> None:
        """Undo the turn's own part; all of the transaction where nothing else is in it, or it cannot be saved."""
        if not ticket.has_lock or ticket.shared is None:
            return
        if self._writer.in_transaction:  # some errors (a full disk) have made SQLite roll back by itself
            if ticket.inside:
                try:
                    self._writer.execute("ROLLBACK TO part; RELEASE part")
                    return
                except apsw.SQLError:  # there is no such part: it was interrupted before it had begun
                    if ticket.shared.members:
                        return
                except apsw.Error:
                    pass
            elif ticket.shared.members:
                return  # it had not begun its own part, or was done with it
            with suppress(apsw.Error):
                self._writer.execute("ROLLBACK")
        lost = error if isinstance(error, StoreError) else StoreIOError(self.path, f"a commit was lost to {error!r}")
        ticket.shared.end(lost)

    def _give_up(self, ticket: Ticket) -> None:
        """Pass the turn on, whatever interrupts that: others wait for it."""
        try:
            while ticket.has_lock or ticket.successor is not None:
                if ticket.has_lock:
                    self._pass_on(ticket)
                ticket.wake_successor()
        except BaseException:
            self._give_up(ticket)  # goes on where it was interrupted
            raise

    def _abandoned(self, ticket: Ticket) -> None:
        """Give up a turn whose thread was interrupted before it could."""
        self._undo(ticket, StoreIOError(self.path, "the thread that wrote was interrupted"))
        self._give_up(ticket)

    def _pass_on(self, ticket: Ticket) -> None:
        """Hand an open transaction on to whoever waits to share it, or else commit it, and give the turn up."""
        shared = ticket.shared
        if shared is not None and not shared.done:
            if self._writer.in_transaction:
                if self._queue.hand_over(ticket):
                    return
                self._commit(shared)
            else:  # what ended it was interrupted before it could tell
                shared.end(CommitInDoubtError(self.path, "interrupted at the commit"))
        self._queue.release(ticket)

    def _commit(self, shared: Shared) -> None:
        error: RecollectError | None = None
        try:
            self._writer.execute("COMMIT")
        except SQLITE_ERRORS as raised:
            error = ours(self.path, raised)
            if isinstance(raised, apsw.IOError) and not self._taken_back():
                error = CommitInDoubtError(self.path, f"{raised}; it is not held now, but may be after a crash")
            error.__cause__ = raised
        else:
            try:
                self._identity.check("what was written last is in the file that was open")
            except StoreReplacedError as gone:
                error = gone
        finally:
            if self._writer.in_transaction:
                with suppress(apsw.Error):
                    self._writer.execute("ROLLBACK")
                error = error or StoreIOError(self.path, "interrupted before the commit")
            shared.end(error)
        if error is None:
            self._checkpointer.committed(self._writer)

    def _taken_back(self) -> bool:
        """Whether a commit that failed is surely not held.

        It may stand in the log, whole, without being part of the store: but whoever reads that log anew, after a crash,
        would find it. The next commit is written over it, so here is one that changes nothing.
        """
        try:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            version = self._writer.pragma("user_version")
            self._writer.execute(f"PRAGMA user_version = {version}")  # writes its page, though it is the same
        except apsw.Error:
            return False
        return True

    # Facts

    def facts(self) -> dict[str, Any]:
        sizes = {}
        for suffix, name in (("", "file_bytes"), ("-wal", "log_bytes")):
            with suppress(OSError):
                sizes[name] = os.stat(self.path + suffix).st_size
        return {
            "store": "sqlite",
            "path": self.path,
            "uuid": self._uuid,
            "format": self.format,
            "checksums": self.has_checksums,
            "sqlite": apsw.sqlite_lib_version(),
            "durability": self._durability,
            "read_only": bool(self._write_refused),
            **sizes,
        }

    def check(self) -> list[str]:
        """SQLite's integrity check, and that all rows agree with their hashes and with each other."""
        with self._reader() as connection:
            connection.execute("BEGIN")
            try:
                return problems_in(connection, self.path, self.key)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def back_up(self, path: str, *, verify: bool, force: bool) -> Backup:
        """See `copying.back_up`."""
        return back_up(self, path, verify=verify, force=force)

    def probe(self) -> None:
        nonce = secrets.token_hex(16)
        with self.write() as transaction:
            transaction.set_setting("probe", nonce)
        with self.read() as view:
            value = view.setting("probe")
        if value != nonce:
            raise DamagedStoreError(self.path, "what was just written was not read back")

    def close(self) -> None:
        if os.getpid() != self._pid:
            return  # a fork must not touch its parent's connections
        if self._queue.owned_by_caller():
            raise StoreBusyError(self.path, "this thread is inside a batch, which must end first")
        with self._readers_done:
            if self._closed:
                return
            self._closed = True
            while not self._nobody_reads():
                self._readers_done.wait(POLL_S)
        self._checkpointer.close()
        ticket = Ticket(shares=False)
        try:
            self._queue.take(ticket)
            self._identity.leave((*self._idle, self._writer))
        finally:
            if ticket.has_lock:
                self._queue.release(ticket)


def _run_by(connection: apsw.Connection, sql: str, path: str) -> None:
    """Run a statement that gives nothing. (`translated` would do, at the cost of a block for each read.)"""
    try:
        connection.execute(sql)
    except SQLITE_ERRORS as error:
        raise ours(path, error) from error


def key_check(key: bytes) -> bytes:
    """Eight bytes that tell a wrong key from the right one and nothing else."""
    return hashlib.sha256(b"recollect.key check.1\0" + key).digest()[:8]
