"""The vectors of texts, as returned by embedding models: derived data next to the store.

They are stored in a small SQLite file (`FILE.index/vectors.db`, mode 0600), or in memory if the store is in memory. A
vector is stored under (model, dimension, namespace, digest). The digest covers the text and the user, agent and
conversation of its record: equal texts of one user, agent and conversation are embedded once, and neither a namespace
nor a scope can detect what another one contains. Several models can be used side by side. The vectors are not part of
the ledger or its root. The file may be deleted at any time; then the texts must be embedded again. A stored vector
survives a kill of the process.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import apsw
import numpy as np

from recollect.errors import (
    ClosedError,
    DamagedStoreError,
    NotAStoreError,
    ReadOnlyStoreError,
    RecollectError,
    StoreError,
    StoreIOError,
)
from recollect.ledger.commits import Branch
from recollect.stores.derived import opening as derived
from recollect.stores.derived.opening import UnusableError
from recollect.stores.derived_protocols import Floats, VectorModel, keyed
from recollect.stores.sqlite_base.errors import translated
from recollect.stores.sqlite_base.snapshots import has_snapshot

T = TypeVar("T")
_log = logging.getLogger("recollect")
_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE sets (number INTEGER PRIMARY KEY, model TEXT, dimension INTEGER, namespace TEXT,
                                 UNIQUE (model, dimension, namespace));
-- Numbers are never given twice, so that a reader finds what is new by them.
CREATE TABLE vectors (number INTEGER PRIMARY KEY AUTOINCREMENT, vectors INTEGER, text BLOB, vector BLOB,
                                    UNIQUE (vectors, text));
CREATE TABLE reached (vectors INTEGER, branch TEXT, seq INTEGER, root BLOB,
                                    PRIMARY KEY (vectors, branch));
"""
#: Changes with the tables: a file with another layout is emptied and filled again.
_LAYOUT = "2"
#: The layout in which digests had no key: they get one.
_UNKEYED = "1"
_NAME = "vectors.db"
#: Number of vectors that are read at a time.
_PAGE = 1000
#: The number of the newest vector, and the highest number ever assigned; the limit is never reached in practice.
_NEWEST = "SELECT (SELECT max(number) FROM vectors), (SELECT max(seq) FROM sqlite_sequence)"
_MOST_NUMBER = 2**62
#: The sizes of a SHA-256 and of a component of a vector.
_DIGEST_BYTES, _FLOAT_BYTES = 32, 4


class VectorFile:
    """The vectors of a store.

    Args:
        folder: `FILE.index`, created with mode 0700 when first needed; None keeps the vectors in memory.
        uuid: The uuid of the store. Vectors of another store in that folder are deleted.
        key: The store's key. Digests that an earlier release stored without it get it.
        read_only: Write nothing, only read existing vectors.

    Attributes:
        life: Changes when vectors have been removed, so that readers know that they must start again.
    """

    def __init__(self, folder: str | None, uuid: str, key: bytes, *, read_only: bool = False) -> None:
        self._key = key
        self._path = ":memory:" if folder is None else os.path.join(folder, _NAME)
        self._folder = folder
        self._uuid = uuid
        self._read_only = read_only
        self._lock = threading.RLock()
        self._connection: apsw.Connection | None = None
        self._file: tuple[int, int] | None = None  # device and inode of the file that is open
        self._closed = False
        self.life = 0

    def absent(self, model: VectorModel, namespace: str, digests: Iterable[bytes]) -> list[bytes]:
        """Return those of the digests that have no vector, in their order."""

        def read(connection: apsw.Connection) -> list[bytes]:
            number = self._set(connection, model, namespace)
            query = "SELECT 1 FROM vectors WHERE vectors = ? AND text = ?"
            return [each for each in digests if connection.execute(query, (number, each)).fetchone() is None]

        digests = list(digests)
        return self._do(read)

    def put(
        self,
        model: VectorModel,
        namespace: str,
        vectors: Mapping[bytes, Floats],
        wanted: Callable[[], Container[bytes]] | None = None,
    ) -> None:
        """Store vectors by the digests of their texts, atomically. See `derived_protocols.Vectors.put`.

        Raises:
            ReadOnlyStoreError: It was opened read-only.
            StoreError: Writing failed.
        """
        if self._read_only:
            raise ReadOnlyStoreError(self._path, "it was opened for reading only")
        for vector in vectors.values():
            assert len(vector) == model.dimension, "all vectors of a model must have its dimension"
            assert np.isfinite(vector).all(), "embedded() must pass on only finite vectors"

        def write(connection: apsw.Connection) -> None:
            with derived.writing(connection):
                stored = _asked(allowed) if admitted is None else admitted
                keys = (model.name, model.dimension, namespace)
                connection.execute("INSERT OR IGNORE INTO sets (model, dimension, namespace) VALUES (?, ?, ?)", keys)
                number = self._set(connection, model, namespace)
                for newest in connection.execute(_NEWEST).fetchone() or ():
                    # Otherwise SQLite would fail as if the disk were full.
                    if newest is not None and _is(int, newest) > _MOST_NUMBER:
                        raise UnusableError("its numbers are used up")
                connection.executemany(
                    "INSERT OR REPLACE INTO vectors (vectors, text, vector) VALUES (?, ?, ?)",
                    [
                        (number, text, vector.astype("<f4").tobytes())
                        for text, vector in vectors.items()
                        if text in stored
                    ],
                )

        allowed = wanted or vectors.keys
        admitted: Container[bytes] | None = None
        if self._folder is not None:
            self._do(write)
            return
        # In memory, `wanted` runs outside the lock: a reader of the store may wait for the lock, and `wanted` for it.
        while True:
            life, admitted = self.life, allowed()
            with self._lock:
                if life == self.life:
                    self._do(write)
                    return

    def newer(self, model: VectorModel, namespace: str, seen: int) -> Iterator[tuple[int, dict[bytes, Floats]]]:
        """Yield the vectors stored after number `seen` (0: all), in pages, each with the number of its last vector."""
        query = "SELECT number, text, vector FROM vectors WHERE vectors = ? AND number > ? ORDER BY number LIMIT ?"
        while True:

            def read(connection: apsw.Connection, seen: int = seen) -> tuple[int, dict[bytes, Floats]]:
                number = self._set(connection, model, namespace)
                rows = list(connection.execute(query, (number, seen, _PAGE)))
                vectors = {_digest(text): _vector(vector, model) for _, text, vector in rows}
                return rows[-1][0] if rows else seen, vectors

            seen, vectors = self._do(read)
            if not vectors:
                return
            yield seen, vectors

    def embedded_digests(self, model: VectorModel, namespace: str) -> set[bytes]:
        """Return the digests of all texts that have a vector."""

        def read(connection: apsw.Connection) -> set[bytes]:
            number = self._set(connection, model, namespace)
            rows = connection.execute("SELECT text FROM vectors WHERE vectors = ?", (number,))
            return {_digest(text) for (text,) in rows}

        return self._do(read)

    def models(self, namespace: str) -> list[tuple[VectorModel, int]]:
        """Return the models of a namespace in the order of their first use, each with its number of vectors."""
        query = (
            "SELECT s.model, s.dimension, count(v.number) FROM sets s JOIN vectors v ON v.vectors = s.number "
            "WHERE s.namespace = ? GROUP BY s.number ORDER BY s.number"
        )

        def read(connection: apsw.Connection) -> list[tuple[VectorModel, int]]:
            rows = connection.execute(query, (namespace,))
            return [(VectorModel(_is(str, name), _is(int, dimension)), count) for name, dimension, count in rows]

        return self._do(read)

    def reached(self, model: VectorModel, branch: Branch) -> tuple[int, bytes]:
        """Return the seq and root up to which every text has been embedded; (0, b"") at first."""
        query = "SELECT seq, root FROM reached WHERE vectors = ? AND branch = ?"

        def read(connection: apsw.Connection) -> tuple[int, bytes]:
            number = self._set(connection, model, branch.namespace)
            row = connection.execute(query, (number, branch.name)).fetchone()
            return (_is(int, row[0]), _is(bytes, row[1])) if row else (0, b"")

        return self._do(read)

    def reach(self, model: VectorModel, branch: Branch, seq: int, root: bytes) -> None:
        """Note that every text up to this commit has been embedded."""

        def write(connection: apsw.Connection) -> None:
            number = self._set(connection, model, branch.namespace)
            if number is not None:
                connection.execute(
                    "INSERT OR REPLACE INTO reached VALUES (?, ?, ?, ?)", (number, branch.name, seq, root)
                )

        self._do(write)

    def keep_only(self, namespace: str, wanted: Callable[[], Container[bytes]]) -> int:
        """Delete vectors of a namespace. See `derived_protocols.Vectors.keep_only`."""
        if self._folder is not None and self._identity() is None:
            return 0

        def write(connection: apsw.Connection) -> int:
            with derived.writing(connection):
                stays = _asked(wanted) if known is None else known
                self.life += 1
                own = "SELECT number, text FROM vectors WHERE vectors IN (SELECT number FROM sets WHERE namespace = ?)"
                others = [(number,) for number, text in connection.execute(own, (namespace,)) if text not in stays]
                connection.executemany("DELETE FROM vectors WHERE number = ?", others)
                return len(others)

        known: Container[bytes] | None = None
        if self._folder is not None:
            return self._do(write)
        while True:  # in memory, `wanted` runs outside the lock, as in `put`
            newest, known = self._newest(), wanted()
            with self._lock:
                if newest == self._newest():
                    return self._do(write)

    def _newest(self) -> int:
        return self._do(lambda connection: int(connection.execute(_NEWEST).fetchall()[0][1] or 0))

    def purge(self) -> bool:
        """Remove what was erased also from the unused parts of the file. Return False if others prevent that."""
        if self._folder is None or self._identity() is None:
            return True
        return self._do(lambda connection: derived.purged(connection, rewrite=True))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._disconnect()

    # The file

    @staticmethod
    def _set(connection: apsw.Connection, model: VectorModel, namespace: str) -> int | None:
        row = connection.execute(
            "SELECT number FROM sets WHERE model = ? AND dimension = ? AND namespace = ?", (*model, namespace)
        ).fetchone()
        return int(row[0]) if row else None

    def _do(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` on the open file. If the file turns out to be unusable, delete it and try once more.

        In read-only mode an unusable file is not deleted but treated as missing.
        """
        with self._lock:
            if self._closed:
                raise ClosedError("the memory")
            try:
                with translated(self._path):
                    return work(self._open())
            except _WantedError as failed:  # the store failed, not this file
                raise failed.error from failed.error.__cause__
            except (DamagedStoreError, NotAStoreError, UnusableError) as error:
                why = error.args[1] if isinstance(error, StoreError) else error
                _log.warning("the vectors in %s cannot be used (%s); the texts must be embedded again", self._path, why)
                if self._read_only:
                    self._pass_over()
                else:
                    self._remove()
            try:
                with translated(self._path):
                    return work(self._open())
            except _WantedError as failed:
                raise failed.error from failed.error.__cause__
            except UnusableError as error:
                raise StoreIOError(self._path, str(error)) from error

    def _open(self) -> apsw.Connection:
        """Return a connection to the current file. Raise StoreIOError if it cannot be opened."""
        found = self._identity()
        if self._connection is not None and found != self._file:
            # Deleted, created, or recreated by another process: what was read from the old file is no longer valid.
            self._disconnect()
            self.life += 1
        if self._connection is not None and self._folder is not None and has_snapshot(self._connection):
            self._disconnect()  # a statement was left half-way: it would read the past
        if self._connection is None:
            if self._folder is None or (found is None and self._read_only):  # nothing exists that could be read
                self._connection = derived.in_memory(_TABLES)
            else:
                try:
                    self._connection = self._opened()
                except OSError as error:
                    raise StoreIOError(self._path, error.strerror or str(error)) from error
            self._file = self._identity()
        return self._connection

    def _pass_over(self) -> None:
        """Treat the file as missing until another one takes its place."""
        self._disconnect()
        self.life += 1
        self._connection, self._file = derived.in_memory(_TABLES), self._identity()

    def _identity(self) -> tuple[int, int] | None:
        """Return the identity of the file at the path; None if there is none, or in memory."""
        return None if self._folder is None else derived.identity(self._path)

    def _opened(self) -> apsw.Connection:
        connection = derived.connect(self._path, _TABLES, read_only=self._read_only)
        try:
            if self._read_only:
                if self._is_ours(connection):
                    return connection
                copy = derived.in_memory(_TABLES)
                if self._is_ours(connection, _UNKEYED):
                    with copy.backup("main", connection, "main") as work:
                        work.step(-1)
                    self._give_key(copy)
                connection.close()
                return copy
            # NORMAL: after a power cut the newest vectors may be missing; they are embedded again.
            connection.execute("PRAGMA journal_mode = WAL").fetchall()  # fetched, or the statement would not finish
            connection.execute("PRAGMA synchronous = NORMAL")
            if not self._is_ours(connection):
                with derived.writing(connection):
                    unkeyed = self._is_ours(connection, _UNKEYED)
                    if unkeyed:
                        self._give_key(connection)
                    elif not self._is_ours(connection):
                        self._begin(connection)
                if unkeyed:
                    derived.purged(connection, rewrite=True)
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_key(self, connection: apsw.Connection) -> None:
        """Replace digests without a key."""
        rows = connection.execute("SELECT number, text FROM vectors").fetchall()
        connection.executemany(
            "UPDATE vectors SET text = ? WHERE number = ?", [(keyed(_digest(text), self._key), n) for n, text in rows]
        )
        connection.execute("UPDATE about SET value = ? WHERE name = 'layout'", (_LAYOUT,)).fetchall()

    def _is_ours(self, connection: apsw.Connection, layout: str = _LAYOUT) -> bool:
        if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'about'").fetchone() is None:
            return False  # a process died while it created the file
        return dict(connection.execute("SELECT name, value FROM about")) == {"uuid": self._uuid, "layout": layout}

    def _begin(self, connection: apsw.Connection) -> None:
        connection.execute("DELETE FROM about; DELETE FROM reached; DELETE FROM vectors; DELETE FROM sets").fetchall()
        connection.executemany("INSERT INTO about VALUES (?, ?)", [("uuid", self._uuid), ("layout", _LAYOUT)])

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(apsw.Error):
                connection.close()

    def _remove(self) -> None:
        self._disconnect()
        self.life += 1
        if self._folder is not None:
            derived.remove(self._path)


class _WantedError(Exception):
    """What a caller was asked for, in the middle of a write, raised an error."""

    def __init__(self, error: RecollectError) -> None:
        super().__init__(error)
        self.error = error


def _asked(wanted: Callable[[], T]) -> T:
    try:
        return wanted()
    except RecollectError as error:
        raise _WantedError(error) from error


def _is(kind: type[T], value: Any) -> T:
    """Return the value of a column. Raise UnusableError if its type is wrong: SQLite stores values of any type."""
    if not isinstance(value, kind):
        raise UnusableError(f"a column has {type(value).__name__} instead of {kind.__name__}")
    return value


def _digest(value: Any) -> bytes:
    digest = _is(bytes, value)
    if len(digest) != _DIGEST_BYTES:
        raise UnusableError(f"a digest has {len(digest)} bytes")

    return digest


def _vector(value: Any, model: VectorModel) -> Floats:
    raw = _is(bytes, value)
    if len(raw) != model.dimension * _FLOAT_BYTES:
        raise UnusableError(f"a vector of {model.dimension} components has {len(raw)} bytes")
    vector = np.frombuffer(raw, dtype="<f4")
    if not np.isfinite(vector).all():
        raise UnusableError("a vector is not finite")
    return vector
