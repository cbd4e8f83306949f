"""The vectors of texts, as models gave them: derived data beside the store.

A small SQLite file (`FILE.index/vectors.db`, mode 0600), or in memory where the store is in memory. A vector is kept
for (model, its dimension, namespace, SHA-256 of the text): models live side by side, a text is embedded once however
many records say it, and no namespace can tell what another has. Nothing here is in the ledger or under its root, and
the file may be deleted at any time, which costs embedding again and nothing else. What was stored survives a kill.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeVar

import apsw
import numpy as np
from numpy.typing import NDArray

from recollect.errors import ClosedError, DamagedStoreError, NotAStoreError, ReadOnlyStoreError, StoreIOError
from recollect.stores import checksums, files
from recollect.stores.base import Line
from recollect.stores.sqlite_errors import translated

T = TypeVar("T")
Floats = NDArray[np.float32]
_log = logging.getLogger("recollect")
_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sets (number INTEGER PRIMARY KEY, model TEXT, dimension INTEGER, namespace TEXT,
                                 UNIQUE (model, dimension, namespace));
-- Numbers are never given twice, so that a reader finds what is new by them.
CREATE TABLE IF NOT EXISTS vectors (number INTEGER PRIMARY KEY AUTOINCREMENT, vectors INTEGER, text BLOB, vector BLOB,
                                    UNIQUE (vectors, text));
CREATE TABLE IF NOT EXISTS reached (vectors INTEGER, branch TEXT, seq INTEGER, root BLOB,
                                    PRIMARY KEY (vectors, branch));
"""
#: Changes when the tables do: a file of another layout is made anew.
_LAYOUT = "1"
_NAME = "vectors.db"
#: So many vectors are read at a time.
_PAGE = 1000


class Model(NamedTuple):
    """Whose vectors: the embedder's name, and their dimension, since a model that changes it is another one."""

    name: str
    dimension: int


class VectorStore:
    """The vectors of a store.

    folder      `FILE.index`, made with mode 0700 when first needed; None keeps the vectors in memory
    uuid        of the store: vectors of another store that lie in that folder are deleted
    read_only   nothing is written; what is there is read
    """

    def __init__(self, folder: str | None, uuid: str, *, read_only: bool = False) -> None:
        self._path = ":memory:" if folder is None else os.path.join(folder, _NAME)
        self._folder = folder
        self._uuid = uuid
        self._read_only = read_only
        self._turn = threading.RLock()
        self._connection: apsw.Connection | None = None
        self._file: tuple[int, int] | None = None  # device and number of the file that it is of
        self._closed = False
        #: Changes when vectors are taken away, so that whoever has read them begins anew.
        self.life = 0

    def absent(self, model: Model, namespace: str, digests: Iterable[bytes]) -> list[bytes]:
        """Those of the texts that have no vector, in their order."""

        def read(connection: apsw.Connection) -> list[bytes]:
            number = self._set(connection, model, namespace)
            query = "SELECT 1 FROM vectors WHERE vectors = ? AND text = ?"
            return [each for each in digests if connection.execute(query, (number, each)).fetchone() is None]

        digests = list(digests)
        return self._do(read)

    def put(self, model: Model, namespace: str, vectors: Mapping[bytes, Floats]) -> None:
        """Keep vectors by the digests of their texts, all or none. Raises: ReadOnlyStoreError, StoreError."""
        if self._read_only:
            raise ReadOnlyStoreError(self._path, "it was opened for reading only")
        for vector in vectors.values():
            assert len(vector) == model.dimension, "vectors of one model have one size"
            assert np.isfinite(vector).all(), "embedded() lets through only finite ones"

        def write(connection: apsw.Connection) -> None:
            with _transaction(connection):
                keys = (model.name, model.dimension, namespace)
                connection.execute("INSERT OR IGNORE INTO sets (model, dimension, namespace) VALUES (?, ?, ?)", keys)
                number = self._set(connection, model, namespace)
                connection.executemany(
                    "INSERT OR REPLACE INTO vectors (vectors, text, vector) VALUES (?, ?, ?)",
                    [(number, text, vector.astype("<f4").tobytes()) for text, vector in vectors.items()],
                )

        self._do(write)

    def newer(self, model: Model, namespace: str, seen: int) -> Iterator[tuple[int, dict[bytes, Floats]]]:
        """The vectors that were stored after the number `seen` (0: all), in pages, each with the number it reaches."""
        query = "SELECT number, text, vector FROM vectors WHERE vectors = ? AND number > ? ORDER BY number LIMIT ?"
        while True:

            def read(connection: apsw.Connection, seen: int = seen) -> list[tuple[int, bytes, bytes]]:
                number = self._set(connection, model, namespace)
                return list(connection.execute(query, (number, seen, _PAGE)))

            rows = self._do(read)
            if not rows:
                return
            seen = rows[-1][0]
            yield seen, {text: np.frombuffer(vector, dtype="<f4") for _, text, vector in rows}

    def held(self, model: Model, namespace: str) -> set[bytes]:
        """The digests of all texts that have a vector."""

        def read(connection: apsw.Connection) -> set[bytes]:
            number = self._set(connection, model, namespace)
            return {
                bytes(row[0]) for row in connection.execute("SELECT text FROM vectors WHERE vectors = ?", (number,))
            }

        return self._do(read)

    def models(self, namespace: str) -> list[tuple[Model, int]]:
        """The models that a namespace has vectors of, and how many, in the order in which they came."""
        query = (
            "SELECT s.model, s.dimension, count(v.number) FROM sets s JOIN vectors v ON v.vectors = s.number "
            "WHERE s.namespace = ? GROUP BY s.number ORDER BY s.number"
        )
        rows = self._do(lambda connection: list(connection.execute(query, (namespace,))))
        return [(Model(str(name), int(dimension)), int(count)) for name, dimension, count in rows]

    def reached(self, model: Model, line: Line) -> tuple[int, bytes]:
        """The seq and root up to which every text has been embedded; (0, b"") at first."""
        query = "SELECT seq, root FROM reached WHERE vectors = ? AND branch = ?"
        row = self._do(
            lambda connection: connection.execute(
                query, (self._set(connection, model, line.namespace), line.branch)
            ).fetchone()
        )
        return (int(row[0]), bytes(row[1])) if row else (0, b"")

    def reach(self, model: Model, line: Line, seq: int, root: bytes) -> None:
        """Note that every text up to a commit has been embedded."""

        def write(connection: apsw.Connection) -> None:
            number = self._set(connection, model, line.namespace)
            if number is not None:
                connection.execute(
                    "INSERT OR REPLACE INTO reached VALUES (?, ?, ?, ?)", (number, line.branch, seq, root)
                )

        self._do(write)

    def erase(self, namespace: str, digests: Iterable[bytes]) -> int:
        """Delete the vectors of texts, of every model; how many. For texts that must not be held any more."""

        def write(connection: apsw.Connection) -> int:
            with _transaction(connection):
                before = connection.total_changes()
                connection.executemany(
                    "DELETE FROM vectors WHERE text = ? AND vectors IN (SELECT number FROM sets WHERE namespace = ?)",
                    [(digest, namespace) for digest in digests],
                )
                return connection.total_changes() - before

        erased = self._do(write)
        self.life += 1
        return erased

    def close(self) -> None:
        with self._turn:
            self._closed = True
            self._disconnect()

    # The file

    @staticmethod
    def _set(connection: apsw.Connection, model: Model, namespace: str) -> int | None:
        row = connection.execute(
            "SELECT number FROM sets WHERE model = ? AND dimension = ? AND namespace = ?", (*model, namespace)
        ).fetchone()
        return int(row[0]) if row else None

    def _do(self, work: Callable[[apsw.Connection], T]) -> T:
        """Work on the open file. A damaged one is made anew, once: it is derived."""
        with self._turn:
            if self._closed:
                raise ClosedError("the memory")
            try:
                with translated(self._path):
                    return work(self._open())
            except (DamagedStoreError, NotAStoreError) as error:
                if self._read_only:
                    raise
                _log.warning("the vectors in %s cannot be used (%s); they are to be made anew", self._path, error)
                self._remove()
            with translated(self._path):
                return work(self._open())

    def _open(self) -> apsw.Connection:
        """The connection to the file that is there now. Raises: StoreIOError."""
        found = self._identity()
        if self._connection is not None and found != self._file:
            # Deleted, made, or made anew by another process: what was read from the former one no longer holds.
            self._disconnect()
            self.life += 1
        if self._connection is None:
            if found is None and self._read_only and self._folder is not None:
                self._connection = self._opened(":memory:")  # there is nothing to read yet
            else:
                try:
                    self._connection = self._opened(self._path)
                except OSError as error:
                    raise StoreIOError(self._path, error.strerror or str(error)) from error
            self._file = self._identity()
        return self._connection

    def _identity(self) -> tuple[int, int] | None:
        """Which file is at the path; None for none, and in memory."""
        if self._folder is None:
            return None
        try:
            facts = os.stat(self._path)
        except OSError:
            return None
        return facts.st_dev, facts.st_ino

    def _opened(self, path: str) -> apsw.Connection:
        if self._read_only and path != ":memory:":
            connection = checksums.connect(path, apsw.SQLITE_OPEN_READONLY)
            connection.set_busy_timeout(10_000)
            return connection if self._is_ours(connection) else self._opened(":memory:")
        if self._folder is not None and path != ":memory:":
            files.make_folder(self._folder)
            files.create(path)
        connection = checksums.connect(path)
        checksums.begin(connection)
        connection.set_busy_timeout(10_000)
        # NORMAL: after a power cut the newest vectors may be missing, and are embedded again.
        connection.execute("PRAGMA journal_mode = WAL").fetchall()  # what stands behind a row is not run before that
        connection.execute("PRAGMA synchronous = NORMAL")
        with _transaction(connection):
            connection.execute(_TABLES)
            if not self._is_ours(connection):
                connection.execute("DELETE FROM about; DELETE FROM reached; DELETE FROM vectors; DELETE FROM sets")
                connection.executemany("INSERT INTO about VALUES (?, ?)", [("uuid", self._uuid), ("layout", _LAYOUT)])
        return connection

    def _is_ours(self, connection: apsw.Connection) -> bool:
        if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'about'").fetchone() is None:
            return False  # a process died making it
        return dict(connection.execute("SELECT name, value FROM about")) == {"uuid": self._uuid, "layout": _LAYOUT}

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(apsw.Error):
                connection.close()

    def _remove(self) -> None:
        self._disconnect()
        self.life += 1
        if self._folder is not None:
            for suffix in ("", "-wal", "-shm"):
                with suppress(OSError):
                    files.remove(self._path + suffix)


@contextmanager
def _transaction(connection: apsw.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
