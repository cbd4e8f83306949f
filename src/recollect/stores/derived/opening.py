"""Opening SQLite files of derived data safely.

`FILE.index` may contain anything: a pipe, a link to another file, a database of another program. A file that is not
regular, or that has other tables than its owner creates, is unusable; its owner deletes and recreates it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

from recollect.stores import files
from recollect.stores.sqlite_base import checksums
from recollect.stores.sqlite_base.structure import few_steps, made_by, structure

#: The suffixes of the files that SQLite creates next to a database.
_BESIDE = ("-wal", "-shm", "-journal")
#: How long a statement waits for a lock; and how long it waits if it is tried again later, in milliseconds.
_TIMEOUT_MS, PURGE_MS = 10_000, 100
_WRITES = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


class UnusableError(Exception):
    """A file of `FILE.index` does not have the expected content. Its owner recreates it; no caller sees this error."""


def connect(path: str, tables: str, *, read_only: bool = False, timeout_ms: int = _TIMEOUT_MS) -> apsw.Connection:
    """Open a file of `FILE.index`. Create it with mode 0600 if it is missing, and its tables if it has none.

    Args:
        tables: The statements that create all of its tables.
        read_only: Create nothing.
        timeout_ms: Maximum wait for a lock.

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
    connection = checksums.connect(real, flags | apsw.SQLITE_OPEN_NOFOLLOW)
    try:
        connection.set_busy_timeout(timeout_ms)
        if not read_only:
            checksums.begin(connection)
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
