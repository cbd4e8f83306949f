"""The complete tiles of the log trees, so that a process need not read a whole log for a head or a proof.

They are stored in a small SQLite file (`FILE.index/log.db`, mode 0600), written outside of commits and not synced. It
may be deleted at any time; then the tiles are computed from the log again. What cannot be saved, because the store is
in memory or read-only or the file cannot be written, is cached by the process. Tiles that are read are verified by
their user (`ledger.log_tiles`).
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from recollect.ledger.commits import Branch
from recollect.ledger.log_tiles import CompleteTile
from recollect.stores.derived.database import DerivedDatabase, column, writing
from recollect.stores.sealing.keys import Unlocked

_TABLES = """
CREATE TABLE logs (uuid TEXT, namespace TEXT, branch TEXT, size INTEGER, tree BLOB,
                   PRIMARY KEY (uuid, namespace, branch)) WITHOUT ROWID;
-- The hashes are last, so that the others are read without them.
CREATE TABLE tiles (uuid TEXT, namespace TEXT, branch TEXT, level INTEGER, number INTEGER, top BLOB, hashes BLOB,
                    PRIMARY KEY (uuid, namespace, branch, level, number)) WITHOUT ROWID;
"""
_OF_BRANCH = "uuid = ? AND namespace = ? AND branch = ?"


class LogTileFile(DerivedDatabase):
    """The tiles of a store.

    Args:
        folder: `FILE.index`, created with mode 0700 when first needed; None keeps the tiles in memory.
        uuid: The uuid of the store.
        read_only: Write nothing, only read existing tiles.
    """

    NAME, TABLES = "log.db", _TABLES
    TRANSIENT = (*DerivedDatabase.TRANSIENT, apsw.ReadOnlyError, apsw.CantOpenError)
    WARNING = "%s cannot be used (%s); the log is read instead"

    def __init__(self, folder: str | None, uuid: str, *, read_only: bool = False, keys: Unlocked | None = None) -> None:
        super().__init__(folder, uuid, read_only=read_only, keys=keys)
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
            return column(int, size), column(bytes, tree)

        return self._use(read, (0, b""), create=False)

    def tops(self, branch: Branch, level: int, first: int) -> list[bytes]:
        """Return the hashes over the tiles of a level, in order, from number `first` to the last one without a gap."""

        def read(connection: apsw.Connection) -> dict[int, bytes]:
            sql = f"SELECT number, top FROM tiles WHERE {_OF_BRANCH} AND level = ? AND number >= ?"
            rows = connection.execute(sql, (self._uuid, *branch, level, first))
            return {column(int, number): column(bytes, top) for number, top in rows}

        nothing: dict[int, bytes] = {}
        found = self._use(read, nothing, create=False)
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
            return None if row is None else column(bytes, row[0])

        return self._use(read, None, create=False)

    def save(self, branch: Branch, tiles: Sequence[CompleteTile], size: int, tree: bytes) -> None:
        """Add tiles, so that all of them cover `size` entries with this tree hash. What cannot be saved is cached."""

        def write(connection: apsw.Connection) -> bool:
            with writing(connection):
                rows = [(self._uuid, *branch, *tile) for tile in tiles]
                connection.executemany("INSERT OR REPLACE INTO tiles VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
                connection.execute(
                    "INSERT OR REPLACE INTO logs VALUES (?, ?, ?, ?, ?)", (self._uuid, *branch, size, tree)
                )
            return True

        # Once tiles of a branch are cached, later ones are, too: those in the file must have no gap.
        if self._read_only or branch in self._sizes or not self._use(write, False):
            with self._lock:
                self._tiles.setdefault(branch, {}).update({(tile.level, tile.number): tile for tile in tiles})
                self._sizes[branch] = size, tree

    def clear(self, branch: Branch) -> None:
        """Remove the tiles of a branch."""

        def write(connection: apsw.Connection) -> None:
            with writing(connection):
                for table in ("logs", "tiles"):
                    connection.execute(f"DELETE FROM {table} WHERE {_OF_BRANCH}", (self._uuid, *branch))

        with self._lock:
            self._tiles.pop(branch, None)
            self._sizes.pop(branch, None)
            if self._read_only:
                self._sizes[branch] = 0, b""  # those in the file are not used any more
            else:
                self._use(write, None, create=False)
