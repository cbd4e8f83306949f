"""SQLite files of derived data, in `FILE.index`, or in memory.

`FILE.index` may contain anything: a pipe, a link to another file, a database of another program. A file that is not
regular, or that has other tables than its owner creates, is unusable; its owner deletes and recreates it. Other
processes may delete or recreate a file at any time, so a connection is used only while its file is the one at the path.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, ClassVar, TypeVar

import apsw

from recollect.stores import files
from recollect.stores.sealing.keys import Unlocked
from recollect.stores.sealing.pages import PageCipher
from recollect.stores.sqlite_base import checksums
from recollect.stores.sqlite_base.connections import few_steps, has_snapshot, in_turn, made_by, structure
from recollect.stores.sqlite_base.errors import SQLITE_ERRORS

T = TypeVar("T")
_log = logging.getLogger("recollect")
#: The suffixes of the files that SQLite creates next to a database.
_BESIDE = ("-wal", "-shm", "-journal")
#: How long a statement waits for a lock; and how long it waits if it is tried again later, in milliseconds.
_TIMEOUT_MS, PURGE_MS = 10_000, 100
_WRITES = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


class UnusableError(Exception):
    """A file of `FILE.index` does not have the expected content. Its owner recreates it; no caller sees this error."""


#: What reading and writing a file raises.
UNREADABLE = (*SQLITE_ERRORS, OSError, UnusableError)


class DerivedDatabase:
    """A database of derived data. Its owner is a subclass, which describes it and gives it its operations.

    Args:
        folder: `FILE.index`, created with mode 0700 when first needed; None keeps the data in memory.
        uuid: The uuid of the store. What belongs to another store in that folder is not used.
        read_only: Write nothing, only read what exists.
        keys: The data keys of an encrypted store, with which the file is encrypted, too.
    """

    #: The name of the file, and the statements that create all of its tables.
    NAME: ClassVar[str]
    TABLES: ClassVar[str]
    #: Changes with the tables or the meaning of their rows: a file of another layout, or of another store, is emptied.
    #: "" if there is no table `about`: then each row has the uuid of its store.
    LAYOUT: ClassVar[str] = ""
    #: The tables that have the contents of a file with a layout.
    CONTENTS: ClassVar[tuple[str, ...]] = ()
    #: Whether it has a WAL, so that a power cut loses its newest transactions and nothing else; otherwise nothing is
    #: synced.
    WAL: ClassVar[bool] = False
    #: Whether the file stays open between operations.
    STAYS_OPEN: ClassVar[bool] = True
    #: Maximum wait for a lock, in milliseconds.
    TIMEOUT_MS: ClassVar[int] = 1000
    #: Errors that do not mean that the file is unusable.
    TRANSIENT: ClassVar[tuple[type[Exception], ...]] = (apsw.BusyError, apsw.FullError, apsw.NoMemError, OSError)
    #: The warning if the file cannot be used, with its path and the reason.
    WARNING: ClassVar[str]

    def __init__(self, folder: str | None, uuid: str, *, read_only: bool = False, keys: Unlocked | None = None) -> None:
        self._keys = keys
        self._path = None if folder is None else os.path.join(folder, self.NAME)
        self._uuid = uuid
        self._read_only = read_only
        self._lock = threading.RLock()
        self._connection: apsw.Connection | None = None
        self._file: tuple[int, int] | None = None  # device and inode of the file that is open

    @property
    def _where(self) -> str:
        return self._path or ":memory:"

    def _identity(self) -> tuple[int, int] | None:
        """Return the identity of the file at the path; None if there is none, or in memory."""
        return None if self._path is None else identity(self._path)

    def _connect(self) -> apsw.Connection:
        """Open the file, or a database in memory if there is none that may be opened."""
        if self._path is None or (self._read_only and self._identity() is None):
            return in_memory(self.TABLES)
        connection = connect(
            self._path,
            self.TABLES,
            read_only=self._read_only,
            timeout_ms=self.TIMEOUT_MS,
            cipher=None if self._keys is None else self._keys.pages(self.NAME),
        )
        try:
            if self._read_only:
                return self._readable(connection)
            if self.WAL:
                in_turn(partial(_use_wal, connection), apsw.BusyError, self.TIMEOUT_MS / 1000)
            connection.execute(f"PRAGMA synchronous = {'NORMAL' if self.WAL else 'OFF'}")
            if self.LAYOUT and not self._is_ours(connection):
                with writing(connection):
                    rewrite = not self._is_ours(connection) and self._begin(connection)
                if rewrite:
                    purged(connection, rewrite=True)
        except BaseException:
            connection.close()
            raise
        return connection

    def _readable(self, connection: apsw.Connection) -> apsw.Connection:
        """Return what is read in place of a file that must not be written: it, or a database in memory."""
        return connection

    def _is_ours(self, connection: apsw.Connection, layout: str = "") -> bool:
        if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'about'").fetchone() is None:
            return False  # a process died while it created the file, and this one only reads
        about = dict(connection.execute("SELECT name, value FROM about"))
        return about == {"uuid": self._uuid, "layout": layout or self.LAYOUT}

    def _begin(self, connection: apsw.Connection) -> bool:
        """Empty a file that is not ours. Return whether the unused parts of the file must be removed, too."""
        for table in ("about", *self.CONTENTS):
            connection.execute(f"DELETE FROM {table}").fetchall()
        connection.executemany("INSERT INTO about VALUES (?, ?)", [("uuid", self._uuid), ("layout", self.LAYOUT)])
        return False

    def _current(self, *, create: bool = True) -> apsw.Connection | None:
        """Return a connection to the file at the path; None if there is none and it must not be created.

        Raises:
            UnusableError, OSError, apsw.Error: It cannot be used.
        """
        found = self._identity()
        if self._connection is not None and found != self._file:
            self._lose()  # deleted, created, or recreated by another process: what was read of it is no longer valid
        if self._connection is not None and self._path is not None and has_snapshot(self._connection):
            self._disconnect()  # a statement was left half-way: it would read the past
        if self._connection is None:
            if found is None and not create:
                return None
            self._connection = self._connect()
            self._file = self._identity()
        return self._connection

    def _use(self, work: Callable[[apsw.Connection], T], otherwise: T, *, create: bool = True) -> T:
        """Run `work` on the file. Return `otherwise` if there is none, or after a warning if it cannot be used."""
        with self._lock:
            try:
                connection = None if self._path is None else self._current(create=create)
                return otherwise if connection is None else work(connection)
            except UNREADABLE as error:
                self._disconnect()
                _log.warning(self.WARNING, self._path, error)
                if not self._read_only and not isinstance(error, self.TRANSIENT):
                    self._remove()
                return otherwise
            finally:
                if not self.STAYS_OPEN:
                    self._disconnect()

    def _lose(self) -> None:
        """Close the connection to a file that is gone."""
        self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(apsw.Error):  # derived data: what could not be written is derived again
                connection.close()

    def _remove(self) -> None:
        """Delete the file."""
        self._lose()
        if self._path is not None:
            remove(self._path)

    def close(self) -> None:
        """Release its resources."""
        with self._lock:
            self._disconnect()


def column(kind: type[T], value: Any) -> T:
    """Return the value of a column. Raise UnusableError if its type is wrong: SQLite stores values of any type."""
    if not isinstance(value, kind):
        raise UnusableError(f"a column has {type(value).__name__} instead of {kind.__name__}")
    return value


def connect(
    path: str,
    tables: str,
    *,
    read_only: bool = False,
    timeout_ms: int = _TIMEOUT_MS,
    cipher: PageCipher | None = None,
) -> apsw.Connection:
    """Open a file of `FILE.index`. Create it with mode 0600 if it is missing, and its tables if it has none.

    Args:
        tables: The statements that create all of its tables.
        read_only: Create nothing.
        timeout_ms: Maximum wait for a lock.
        cipher: The cipher of an encrypted file.

    Raises:
        UnusableError: It is not a regular file, or has other tables.
        OSError: The file or its folder cannot be created or read.
        apsw.Error: SQLite failed.
    """
    folder, name = os.path.split(path)
    if not read_only:
        files.make_folder(folder)
        files.create(path)
    for suffix in ("", *_BESIDE):
        if not files.is_regular(path + suffix):
            raise UnusableError(f"{name}{suffix} is not a regular file")
    # SQLite must not follow a link at the file itself, but the folder may be one, so it is resolved here.
    real = os.path.join(os.path.realpath(folder), name)
    flags = apsw.SQLITE_OPEN_READONLY if read_only else _WRITES
    connection = checksums.connect(real, flags | apsw.SQLITE_OPEN_NOFOLLOW, cipher=cipher)
    try:
        connection.set_busy_timeout(timeout_ms)
        if not read_only:
            checksums.begin(connection, cipher)
            connection.execute("PRAGMA secure_delete = ON").fetchall()  # what is deleted is overwritten
        if not _has(connection, tables) and not read_only:
            with writing(connection):
                if not _has(connection, tables):  # another process may have created them
                    connection.execute(tables).fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def writing(connection: apsw.Connection) -> Iterator[None]:
    """Run the block in a transaction that takes the write lock at its start, and roll it back if the block raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def purged(connection: apsw.Connection, *, rewrite: bool) -> bool:
    """Remove what was deleted from all parts of a file and from its WAL. Return False if others prevent that.

    Args:
        connection: A connection without open transaction.
        rewrite: Rewrite the file. When SQLite moves rows from one page to another, copies of them may remain in the
            unused part of the first page.
    """
    connection.set_busy_timeout(PURGE_MS)
    try:
        if rewrite:
            connection.execute("PRAGMA temp_store = MEMORY; VACUUM").fetchall()
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return False
    finally:
        connection.set_busy_timeout(_TIMEOUT_MS)
    return True


def _use_wal(connection: apsw.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL").fetchall()  # fetched, or it would not finish


def _has(connection: apsw.Connection, tables: str) -> bool:
    """Return whether the tables exist. Raise UnusableError if there are others."""
    with few_steps(connection):
        found = structure(connection)
    if found and found != made_by(tables):
        raise UnusableError("its tables are not the expected ones")
    return bool(found)


def in_memory(tables: str) -> apsw.Connection:
    """Open a database in memory with these tables."""
    connection = apsw.Connection(":memory:")
    connection.execute("PRAGMA temp_store = MEMORY")  # temporary files never touch the disk
    connection.execute(tables).fetchall()
    return connection


def identity(path: str) -> tuple[int, int] | None:
    """Return the device and inode of the file at a path; None if there is none."""
    try:
        facts = os.lstat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def remove(path: str) -> None:
    """Delete a file and SQLite's files next to it. One that cannot be deleted is detected when it is opened again."""
    for suffix in ("", *_BESIDE):
        with suppress(OSError):
            files.remove(path + suffix)
