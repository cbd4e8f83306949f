"""When records were last used, for evicting the least recently used ones when a namespace exceeds its quota.

The times are stored next to the store, outside ledger and root: in a small SQLite file (`FILE.index/usage.db`, mode
0600), written in batches and not synced, or in memory if the store is in memory. The file may be deleted at any time,
and a power cut may lose the newest uses. Then other records are evicted first, and nothing else changes.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Container, Iterable, Sequence

import apsw

from recollect.ledger.commits import Branch
from recollect.stores.derived.database import DerivedDatabase, UnusableError, purged
from recollect.stores.sealing.keys import Unlocked

#: Maximum number of uses of a branch that are buffered in memory before they are written.
_BATCH = 1000
_TABLES = (
    "CREATE TABLE uses (uuid TEXT, namespace TEXT, branch TEXT, id TEXT, micros INTEGER, "
    "PRIMARY KEY (uuid, namespace, branch, id)) WITHOUT ROWID"
)
_INSERT = "INSERT INTO uses VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET micros = max(micros, excluded.micros)"

_SELECT = "SELECT id, micros FROM uses WHERE uuid = ? AND namespace = ? AND branch = ?"
_DROP = "DELETE FROM uses WHERE uuid = ? AND namespace = ? AND branch = ? AND id = ?"


class UsageFile(DerivedDatabase):
    """When a store's records were last used, in microseconds since 1970. It may lose the newest uses.

    Args:
        folder: `FILE.index`, created with mode 0700 when first needed; None keeps the uses in memory.
        uuid: The uuid of the store.
        keys: The data keys of an encrypted store.
    """

    NAME, TABLES = "usage.db", _TABLES
    STAYS_OPEN = False  # operations are rare, and a file that is not kept open can be deleted
    WARNING = (
        "the times when records were last used are lost: %s cannot be used (%s); eviction uses those of their writes"
    )

    def __init__(self, folder: str | None, uuid: str, *, keys: Unlocked | None = None) -> None:
        super().__init__(folder, uuid, keys=keys)
        self._new: dict[Branch, dict[str, int]] = {}  # since the last call of `new`
        self._unwritten: dict[Branch, dict[str, int]] = {}
        self._in_memory: dict[Branch, dict[str, int]] = {}  # if there is no file
        self._last: dict[Branch, int] = {}  # the time of the last use or commit that was noted
        self._rows: dict[Branch, int] = {}  # the number of rows at the last read
        self._state: dict[Branch, tuple[int, ...]] = {}  # the state of the file at the last read

    def note(self, branch: Branch, record_ids: Iterable[str], micros: int) -> None:
        """Note that records were used at `micros`.

        Each one counts as used after all uses and commits that were noted before, also where the clock stands still.
        """
        with self._lock:
            for used, record_id in enumerate(record_ids, self._after(branch, micros)):
                self._put(branch, record_id, used)
                self._last[branch] = used
            full = len(self._unwritten.get(branch, ())) >= _BATCH
        if full:
            self.write(branch)

    def committed(self, branch: Branch, record_ids: Collection[str], micros: int) -> int:
        """Note that a commit of the time `micros` wrote records, and return when they count as used, as in `note`."""
        with self._lock:
            used = self._last[branch] = self._after(branch, micros)
            if used > micros:  # else the log has it
                for record_id in record_ids:
                    self._put(branch, record_id, used)
        return used

    def _after(self, branch: Branch, micros: int) -> int:
        """Return a time that is after all that were noted, also by the processes that had the store open before."""
        if branch not in self._last:
            stored = {} if self._path is None else self._read(branch)
            self._last[branch] = max(stored.values(), default=micros - 1)
        return max(micros, self._last[branch] + 1)

    def _put(self, branch: Branch, record_id: str, used: int) -> None:
        self._new.setdefault(branch, {})[record_id] = used
        self._unwritten.setdefault(branch, {})[record_id] = used

    def new(self, branch: Branch) -> dict[str, int]:
        """Return the uses noted since the last call; if the file has changed since it was read, those in it, too."""
        with self._lock:
            own = self._new.pop(branch, {})
            if self._path is None or self._state.get(branch, ()) == _state(self._path):
                return own
            uses = self._read(branch)
        for record_id, micros in own.items():
            uses[record_id] = max(micros, uses.get(record_id, micros))
        return uses

    def of(self, branch: Branch) -> dict[str, int]:
        """Return all known uses. Those of other processes are included once they have written them."""
        self.write(branch)
        with self._lock:
            return dict(self._in_memory.get(branch, {})) if self._path is None else self._read(branch)

    def _read(self, branch: Branch) -> dict[str, int]:
        def read(connection: apsw.Connection) -> dict[str, int]:
            self._state[branch] = _state(self._where)  # before reading, so that a later write is noticed
            uses = dict(connection.execute(_SELECT, (self._uuid, *branch)))
            if not all(isinstance(each, str) and isinstance(when, int) for each, when in uses.items()):
                raise UnusableError("a row does not have an id and a time")
            self._rows[branch] = len(uses)
            return uses

        nothing: dict[str, int] = {}
        return self._use(read, nothing)

    def known(self, branch: Branch) -> int:
        """Return the number of uses found at the last read, without reading again."""
        return self._rows.get(branch, 0) if self._path is not None else len(self._in_memory.get(branch, ()))

    def keep_only(self, branch: Branch, live: Container[str]) -> None:
        """Remove the uses of records that are not in `live`."""
        stale = [record_id for record_id in self.of(branch) if record_id not in live]
        with self._lock:
            for record_id in stale:
                self._in_memory.get(branch, {}).pop(record_id, None)
            if stale:
                self._write(_DROP, [(self._uuid, *branch, record_id) for record_id in stale])

    def _write(self, statement: str, rows: Sequence[tuple[str | int, ...]]) -> None:
        """Run a statement for each of the rows, in one transaction."""

        def write(connection: apsw.Connection) -> None:
            with connection:
                connection.executemany(statement, rows)

        self._use(write, None)

    def forget(self, branch: Branch, live: Container[str]) -> None:
        """Remove the buffered uses of records that are not in `live`."""
        with self._lock:
            for uses in (self._new, self._unwritten, self._in_memory):
                buffered = uses.get(branch, {})
                for record_id in [each for each in buffered if each not in live]:
                    del buffered[record_id]

    def erase(self, branch: Branch, live: Container[str]) -> bool:
        """Remove the uses of records that are not in `live`, also from the unused parts of the file.

        Returns:
            Whether that is complete. False if others prevent it.
        """
        self.forget(branch, live)
        if self._identity() is None:
            return True
        self.keep_only(branch, live)
        purged_all = self._use(lambda connection: purged(connection, rewrite=True), False)
        return purged_all or self._identity() is None

    def write(self, branch: Branch | None = None) -> None:
        """Write the buffered uses of a branch, or of all.

        Those of the others stay buffered: another process may have erased their records since they were noted.
        """
        with self._lock:
            some = list(self._unwritten) if branch is None else [branch]
            unwritten = {each: uses for each in some if (uses := self._unwritten.pop(each, None))}
            if not unwritten:
                return
            if self._path is None:
                for each, uses in unwritten.items():
                    self._in_memory.setdefault(each, {}).update(uses)
                return
            rows = [
                (self._uuid, *each, record_id, micros)
                for each, uses in unwritten.items()
                for record_id, micros in uses.items()
            ]
            self._write(_INSERT, rows)


def _state(path: str) -> tuple[int, ...]:
    """Return a value that changes whenever the file is written; () if there is none."""
    try:
        facts = os.stat(path)
    except OSError:
        return ()
    return facts.st_ino, facts.st_size, facts.st_mtime_ns
