"""When records were last used: what lets the least recently used go first where a namespace is full.

Beside the store, outside ledger and root: a small SQLite file (`FILE.index/usage.db`, mode 0600), written in batches
and not made durable, or in memory where the store is. It may be deleted at any time, and the newest uses are lost to a
power cut: then other records go first than would have, and nothing else changes.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Container, Iterable
from contextlib import closing

import apsw

from recollect.ledger.commits import Branch
from recollect.stores.derived import opening as derived
from recollect.stores.derived.opening import UnusableError
from recollect.stores.sqlite.errors import SQLITE_ERRORS

_log = logging.getLogger("recollect")
#: So many uses are kept in memory before they are written.
_BATCH = 1000
_TABLE = (
    "CREATE TABLE uses (uuid TEXT, namespace TEXT, branch TEXT, id TEXT, micros INTEGER, "
    "PRIMARY KEY (uuid, namespace, branch, id)) WITHOUT ROWID"
)
_PUT = "INSERT INTO uses VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET micros = max(micros, excluded.micros)"

_OF = "SELECT id, micros FROM uses WHERE uuid = ? AND namespace = ? AND branch = ?"
#: What reading and writing the file raises; and of that, what says nothing about the file.
_UNREADABLE = (*SQLITE_ERRORS, OSError, UnusableError)
_PASSING = (apsw.BusyError, apsw.FullError, apsw.NoMemError, OSError)
_DROP = "DELETE FROM uses WHERE uuid = ? AND namespace = ? AND branch = ? AND id = ?"


class Uses:
    """The uses of a store's records.

    folder  `FILE.index`, made with mode 0700 when first needed; None keeps them in memory
    uuid    of the store
    """

    def __init__(self, folder: str | None, uuid: str) -> None:
        self._path = None if folder is None else os.path.join(folder, "usage.db")
        self._uuid = uuid
        self._lock = threading.Lock()
        self._new: dict[Branch, dict[str, int]] = {}  # since they were last asked for
        self._unwritten: dict[tuple[Branch, str], int] = {}
        self._held: dict[Branch, dict[str, int]] = {}  # where there is no file
        self._rows: dict[Branch, int] = {}  # how many there were then
        self._looked: dict[Branch, tuple[int, ...]] = {}  # what the file was when it was last read for a line

    def note(self, branch: Branch, record_ids: Iterable[str], micros: int) -> None:
        """Records were used. Those that come later in the list count as used a little later."""
        with self._lock:
            for used, record_id in enumerate(record_ids, micros):
                self._new.setdefault(branch, {})[record_id] = used
                self._unwritten[branch, record_id] = used
            full = len(self._unwritten) >= _BATCH
        if full:
            self.write()

    def new(self, branch: Branch) -> dict[str, int]:
        """The uses since this was last asked; all that are written, where somebody has written some since."""
        with self._lock:
            own = self._new.pop(branch, {})
            if self._path is None or self._looked.get(branch, ()) == _state(self._path):
                return own
            uses = self._read(branch)
        for record_id, micros in own.items():
            uses[record_id] = max(micros, uses.get(record_id, micros))
        return uses

    def of(self, branch: Branch) -> dict[str, int]:
        """All uses that are known, those of other processes as far as they have written them."""
        self.write()
        with self._lock:
            return dict(self._held.get(branch, {})) if self._path is None else self._read(branch)

    def _read(self, branch: Branch) -> dict[str, int]:
        assert self._path is not None
        try:
            with closing(_connection(self._path)) as connection:
                self._looked[branch] = _state(self._path)  # before it is read: what comes then is news
                rows = connection.execute(_OF, (self._uuid, *branch))
                uses = dict(rows)
                if not all(isinstance(each, str) and isinstance(when, int) for each, when in uses.items()):
                    raise UnusableError("a use is not of an id, or not a time")
                self._rows[branch] = len(uses)
                return uses
        except _UNREADABLE as error:
            self._lost(error)
            return {}

    def known(self, branch: Branch) -> int:
        """How many uses are kept, as far as that is known without looking."""
        return self._rows.get(branch, 0) if self._path is not None else len(self._held.get(branch, ()))

    def keep_only(self, branch: Branch, held: Container[str]) -> None:
        """Forget the uses of records that are not held any more."""
        gone = [record_id for record_id in self.of(branch) if record_id not in held]
        with self._lock:
            for record_id in gone:
                self._held.get(branch, {}).pop(record_id, None)
            if gone and self._path is not None:
                try:
                    with closing(_connection(self._path)) as connection, connection:
                        connection.executemany(_DROP, [(self._uuid, *branch, record_id) for record_id in gone])
                except _UNREADABLE as error:
                    self._lost(error)

    def write(self) -> None:
        """Write what was noted."""
        with self._lock:
            if not self._unwritten:
                return
            unwritten, self._unwritten = self._unwritten, {}
            if self._path is None:
                for (branch, record_id), micros in unwritten.items():
                    self._held.setdefault(branch, {})[record_id] = micros
                return
            try:
                with closing(_connection(self._path)) as connection, connection:
                    rows = [
                        (self._uuid, *branch, record_id, micros) for (branch, record_id), micros in unwritten.items()
                    ]
                    connection.executemany(_PUT, rows)
            except _UNREADABLE as error:
                self._lost(error)

    def _lost(self, error: Exception) -> None:
        _log.warning("when records were last used is not known any more (%s); eviction goes by their times", error)
        if self._path is not None and not isinstance(error, _PASSING):
            derived.remove(self._path)


def _state(path: str) -> tuple[int, ...]:
    """What changes whenever a file is written to; () where there is none."""
    try:
        facts = os.stat(path)
    except OSError:
        return ()
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def _connection(path: str) -> apsw.Connection:
    """For one use: there is seldom any, and a file that is not held open can be deleted."""
    connection = derived.connect(path, _TABLE, timeout_ms=1000)
    connection.execute("PRAGMA synchronous = OFF")
    return connection
