"""SQLite files beside a store that hold what can be made again: opened so that nothing in their place does harm.

Anything may lie in `FILE.index`: a pipe, a link to somebody's file, a database of somebody else's. What is no regular
file, or has other tables than its owner makes, cannot be used; the owners delete it and make it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

from recollect.stores import files
from recollect.stores.sqlite import checksums
from recollect.stores.sqlite.structure import few_steps, made_by, structure

#: What SQLite puts beside a file.
_BESIDE = ("-wal", "-shm", "-journal")
_WRITES = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


class UnusableError(Exception):
    """A file of `FILE.index` is not what its owner keeps there. Owners make it again; no caller sees this."""


def connect(path: str, tables: str, *, read_only: bool = False, timeout_ms: int = 10_000) -> apsw.Connection:
    """Open a file of `FILE.index`, made with mode 0600 where it is missing, and its tables where it has none.

    tables  the statements that make all that it has

    Raises: OSError, apsw.Error; UnusableError where something else is in its place, or in it.
    """
    folder, name = os.path.split(path)
    if not read_only:
        files.make_folder(folder)
        files.create(path)
    for suffix in ("", *_BESIDE):
        if not files.is_regular(path + suffix):
            raise UnusableError(f"{name}{suffix} is not a regular file")
    # Only the file itself must not be a link, so the way to it is resolved here.
    real = os.path.join(os.path.realpath(folder), name)
    flags = apsw.SQLITE_OPEN_READONLY if read_only else _WRITES
    connection = checksums.connect(real, flags | apsw.SQLITE_OPEN_NOFOLLOW)
    try:
        connection.set_busy_timeout(timeout_ms)
        if not read_only:
            checksums.begin(connection)
        if not _has(connection, tables) and not read_only:
            with writing(connection):
                if not _has(connection, tables):  # another process may have been faster
                    connection.execute(tables).fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def writing(connection: apsw.Connection) -> Iterator[None]:
    """A transaction that has the write lock from its start, and is undone by what its block raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _has(connection: apsw.Connection, tables: str) -> bool:
    """Whether the tables are there. Raises: UnusableError where there are others."""
    with few_steps(connection):
        held = structure(connection)
    if held and held != made_by(tables):
        raise UnusableError("it has other tables than ours")
    return bool(held)


def in_memory(tables: str) -> apsw.Connection:
    """The same, with nothing on the disk."""
    connection = apsw.Connection(":memory:")
    connection.execute(tables).fetchall()
    return connection


def identity(path: str) -> tuple[int, int] | None:
    """Which file is at a path; None for none."""
    try:
        facts = os.lstat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def remove(path: str) -> None:
    """Delete a file, with what SQLite has put beside it. What cannot be deleted is noticed when it is opened."""
    for suffix in ("", *_BESIDE):
        with suppress(OSError):
            files.remove(path + suffix)
