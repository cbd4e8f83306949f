"""The complete tiles of the log trees, so that a process need not read a whole log for a head or a proof.

They are stored in a small SQLite file (`FILE.index/log.db`, mode 0600), written outside of commits and not synced. It
may be deleted at any time; then the tiles are computed from the log again. What cannot be saved, because the store is
in memory or read-only or the file cannot be written, is cached by the process. Tiles that are read are verified by
their user (`ledger.log_tiles`).
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import apsw

from recollect.ledger.commits import Branch
from recollect.ledger.log_tiles import CompleteTile
from recollect.stores.derived import opening as derived
from recollect.stores.derived.opening import UnusableError
from recollect.stores.sqlite_base.errors import SQLITE_ERRORS

T = TypeVar("T")
_log = logging.getLogger("recollect")
_TABLES = """
CREATE TABLE logs (uuid TEXT, namespace TEXT, branch TEXT, size INTEGER, tree BLOB,
                   PRIMARY KEY (uuid, namespace, branch)) WITHOUT ROWID;
-- The hashes are last, so that the others are read without them.
CREATE TABLE tiles (uuid TEXT, namespace TEXT, branch TEXT, level INTEGER, number INTEGER, top BLOB, hashes BLOB,
                    PRIMARY KEY (uuid, namespace, branch, level, number)) WITHOUT ROWID;
"""
_OF_BRANCH = "uuid = ? AND namespace = ? AND branch = ?"
#: What reading and writing the file raises.
_UNREADABLE = (*SQLITE_ERRORS, OSError, UnusableError)
#: Those of them that do not mean that the file is unusable.
_TRANSIENT = (apsw.BusyError, apsw.FullError, apsw.NoMemError, apsw.ReadOnlyError, apsw.CantOpenError, OSError)


class LogTileFile:
    """The tiles of a store.

    Args:
        folder: `FILE.index`, created with mode 0700 when first needed; None keeps the tiles in memory.
        uuid: The uuid of the store.
        read_only: Write nothing, only read existing tiles.
    """

    def __init__(self, folder: str | None, uuid: str, *, read_only: bool = False) -> None:
        self._path = None if folder is None else os.path.join(folder, "log.db")
        self._uuid = uuid
        self._read_only = read_only
        self._lock = threading.RLock()
        self._connection: apsw.Connection | None = None
        self._file: tuple[int, int] | None = None  # device and inode of the file that is open
        #: What is not saved in the file.
        self._sizes: dict[Branch, tuple[int, bytes]] = {}
        self._tiles: dict[Branch, dict[tuple[int, int], CompleteTile]] = {}

    def saved(self, branch: Branch) -> tuple[int, bytes]:
        """Return the number of entries that the tiles of a branch cover, and their tree hash; (0, b"") at first."""
        cached = self._sizes.get(branch)
        if cached is not None:
            return cached

        def read(connection: apsw.Connection) -> tuple[int, bytes]:
            rows = connection.execute(f"SELECT size, tree FROM logs WHERE {_OF_BRANCH}", (self._uuid, *branch))
            size, tree = rows.fetchone() or (0, b"")
            return (_integer(size), _blob(tree))

        return self._use(read, (0, b""))

    def tops(self, branch: Branch, level: int, first: int) -> list[bytes]:
        """Return the hashes over the tiles of a level, in order, from number `first` to the last one without a gap."""

        def read(connection: apsw.Connection) -> dict[int, bytes]:
            sql = f"SELECT number, top FROM tiles WHERE {_OF_BRANCH} AND level = ? AND number >= ?"
            rows = connection.execute(sql, (self._uuid, *branch, level, first))
            return {_integer(number): _blob(top) for number, top in rows}

        nothing: dict[int, bytes] = {}
        found = self._use(read, nothing)
        own = self._tiles.get(branch, {})
        out: list[bytes] = []
        while True:
            number = first + len(out)
            top = own[level, number].top if (level, number) in own else found.get(number)
            if top is None:
                return out
            out.append(top)

    def hashes(self, branch: Branch, level: int, number: int) -> bytes | None:
        """Return the hashes of a tile; None if there is none."""
        own = self._tiles.get(branch, {}).get((level, number))
        if own is not None:
            return own.hashes

        def read(connection: apsw.Connection) -> bytes | None:
            sql = f"SELECT hashes FROM tiles WHERE {_OF_BRANCH} AND level = ? AND number = ?"
            row = connection.execute(sql, (self._uuid, *branch, level, number)).fetchone()
            return None if row is None else _blob(row[0])

        return self._use(read, None)

    def save(self, branch: Branch, tiles: Sequence[CompleteTile], size: int, tree: bytes) -> None:
        """Add tiles, so that all of them cover `size` entries with this tree hash. What cannot be saved is cached."""

        def write(connection: apsw.Connection) -> bool:
            with derived.writing(connection):
                rows = [(self._uuid, *branch, *tile) for tile in tiles]
                connection.executemany("INSERT OR REPLACE INTO tiles VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
                connection.execute(
                    "INSERT OR REPLACE INTO logs VALUES (?, ?, ?, ?, ?)", (self._uuid, *branch, size, tree)
                )
            return True

        # Once tiles of a branch are cached, later ones are, too: those in the file must have no gap.
        if self._read_only or branch in self._sizes or not self._use(write, False, create=True):
            with self._lock:
                self._tiles.setdefault(branch, {}).update({(tile.level, tile.number): tile for tile in tiles})
                self._sizes[branch] = size, tree

    def clear(self, branch: Branch) -> None:
        """Remove the tiles of a branch."""

        def write(connection: apsw.Connection) -> None:
            with derived.writing(connection):
                for table in ("logs", "tiles"):
                    connection.execute(f"DELETE FROM {table} WHERE {_OF_BRANCH}", (self._uuid, *branch))

        with self._lock:
            self._tiles.pop(branch, None)
            self._sizes.pop(branch, None)
            if self._read_only:
                self._sizes[branch] = 0, b""  # those in the file are not used any more
            else:
                self._use(write, None)

    def close(self) -> None:
        """Release its resources."""
        with self._lock:
            self._disconnect()

    # The file

    def _use(self, work: Callable[[apsw.Connection], T], otherwise: T, *, create: bool = False) -> T:
        """Run `work` on the file. Return `otherwise` if there is none, or it cannot be used."""
        if self._path is None:
            return otherwise
        with self._lock:
            try:
                connection = self._open(self._path, create=create)
                return otherwise if connection is None else work(connection)
            except _UNREADABLE as error:
                self._disconnect()
                _log.warning("%s cannot be used (%s); the log is read instead", self._path, error)
                if not self._read_only and not isinstance(error, _TRANSIENT):
                    derived.remove(self._path)
                return otherwise

    def _open(self, path: str, *, create: bool) -> apsw.Connection | None:
        """Return a connection to the current file; None if there is none and it must not be created."""
        found = derived.identity(path)
        if self._connection is not None and found != self._file:  # it was deleted or recreated
            self._disconnect()
        if self._connection is None:
            if found is None and not create:
                return None
            self._connection = derived.connect(path, _TABLES, read_only=self._read_only, timeout_ms=1000)
            self._connection.execute("PRAGMA synchronous = OFF")
            self._file = derived.identity(path)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(apsw.Error):
                connection.close()


def _integer(value: object) -> int:
    """Return the value of a column. Raise UnusableError if its type is wrong: SQLite stores values of any type."""
    if not isinstance(value, int):
        raise UnusableError("a column does not contain an integer")
    return value


def _blob(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise UnusableError("a column does not contain bytes")
    return value
