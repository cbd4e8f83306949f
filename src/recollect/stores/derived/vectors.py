"""The vectors of texts, as returned by embedding models: derived data next to the store.

They are stored in a small SQLite file (`FILE.index/vectors.db`, mode 0600), or in memory if the store is in memory. A
vector is stored under (model, dimension, namespace, digest). The digest covers the text and the user, agent and
conversation of its record: equal texts of one user, agent and conversation are embedded once, and neither a namespace
nor a scope can detect what another one contains. Several models can be used side by side. The vectors are not part of
the ledger or its root. The file may be deleted at any time; then the texts must be embedded again. A stored vector
survives a kill of the process.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

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
from recollect.stores.derived.database import DerivedDatabase, T, UnusableError, column, in_memory, purged, writing
from recollect.stores.derived.shared import VectorModel
from recollect.stores.sealing.keys import Unlocked
from recollect.stores.sqlite_base.errors import translated

Floats = NDArray[np.float32]
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
#: The layout in which digests had no key: they get one.
_UNKEYED = "1"
#: Number of vectors that are read at a time.
_PAGE = 1000
#: The number of the newest vector, and the highest number ever assigned; the limit is never reached in practice.
_NEWEST = "SELECT (SELECT max(number) FROM vectors), (SELECT max(seq) FROM sqlite_sequence)"
_MOST_NUMBER = 2**62
#: The sizes of a SHA-256 and of a component of a vector.
_DIGEST_BYTES, _FLOAT_BYTES = 32, 4


def keyed(digest: bytes, key: bytes) -> bytes:
    """Return the digest under which the vectors of a text are stored, from a digest of the text and a store's key."""
    return hmac.digest(key, b"recollect.vector.1\0" + digest, "sha256")


class VectorFile(DerivedDatabase):
    """The vectors of a store.

    Args:
        folder: `FILE.index`, created with mode 0700 when first needed; None keeps the vectors in memory.
        uuid: The uuid of the store. Vectors of another store in that folder are deleted.
        key: The store's key. Digests that an earlier release stored without it get it.
        read_only: Write nothing, only read existing vectors.
        keys: The data keys of an encrypted store.

    Attributes:
        life: Changes when vectors have been removed, so that readers know that they must start again.
    """

    NAME, TABLES = "vectors.db", _TABLES
    LAYOUT, CONTENTS = "2", ("reached", "vectors", "sets")
    WAL = True
    TIMEOUT_MS = 10_000
    WARNING = "the vectors in %s cannot be used (%s); the texts must be embedded again"

    def __init__(
        self, folder: str | None, uuid: str, key: bytes, *, read_only: bool = False, keys: Unlocked | None = None
    ) -> None:
        super().__init__(folder, uuid, read_only=read_only, keys=keys)
        self._key = key
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
        """Store vectors by the digests of their texts, atomically.

        Args:
            namespace: The namespace of the texts.
            wanted: Returns the digests whose vectors may be stored. It is called while no other process can erase.

        Raises:
            ReadOnlyStoreError: It was opened read-only.
            StoreError: Writing failed.
        """
        if self._read_only:
            raise ReadOnlyStoreError(self._where, "it was opened for reading only")
        for vector in vectors.values():
            assert len(vector) == model.dimension, "all vectors of a model must have its dimension"
            assert np.isfinite(vector).all(), "embedded() must pass on only finite vectors"

        def write(connection: apsw.Connection) -> None:
            with writing(connection):
                stored = asked(allowed) if admitted is None else admitted
                self._insert(
                    connection, model, namespace, {text: each for text, each in vectors.items() if text in stored}
                )

        allowed = wanted or vectors.keys
        admitted: Container[bytes] | None = None
        if self._path is not None:
            self._do(write)
            return
        # In memory, `wanted` runs outside the lock: a reader of the store may wait for the lock, and `wanted` for it.
        while True:
            life, admitted = self.life, allowed()
            with self._lock:
                if life == self.life:
                    self._do(write)
                    return

    def _insert(
        self, connection: apsw.Connection, model: VectorModel, namespace: str, vectors: Mapping[bytes, Floats]
    ) -> None:
        """Insert vectors in the caller's transaction."""
        keys = (model.name, model.dimension, namespace)
        connection.execute("INSERT OR IGNORE INTO sets (model, dimension, namespace) VALUES (?, ?, ?)", keys)
        number = self._set(connection, model, namespace)
        for newest in connection.execute(_NEWEST).fetchone() or ():
            # Otherwise SQLite would fail as if the disk were full.
            if newest is not None and column(int, newest) > _MOST_NUMBER:
                raise UnusableError("its numbers are used up")
        connection.executemany(
            "INSERT OR REPLACE INTO vectors (vectors, text, vector) VALUES (?, ?, ?)",
            [(number, text, vector.astype("<f4").tobytes()) for text, vector in vectors.items()],
        )

    def newer(self, model: VectorModel, namespace: str, seen: int) -> Iterator[tuple[int, dict[bytes, Floats]]]:
        """Yield the vectors stored after number `seen` (0: all), in pages, each with the number up to which it reads.

        Cost:
            O(vectors of all namespaces that were stored since).
        """
        # By the numbers: the index of the texts would have to be read as a whole, and sorted.
        query = (
            "SELECT number, text, vector FROM vectors NOT INDEXED "
            "WHERE vectors = ? AND number > ? ORDER BY number LIMIT ?"
        )
        while True:

            def read(connection: apsw.Connection, seen: int = seen) -> tuple[int, dict[bytes, Floats]]:
                number = self._set(connection, model, namespace)
                newest = column(
                    int, connection.execute("SELECT coalesce(max(number), 0) FROM vectors").fetchall()[0][0]
                )
                if newest <= seen:
                    return seen, {}
                rows = list(connection.execute(query, (number, seen, _PAGE)))
                vectors = {_digest(text): _vector(vector, model) for _, text, vector in rows}
                # Those of other namespaces are not read again.
                return rows[-1][0] if len(rows) == _PAGE else newest, vectors

            before, (seen, vectors) = seen, self._do(read)
            if seen == before:
                return
            yield seen, vectors

    def embedded_digests(self, model: VectorModel, namespace: str) -> set[bytes]:
        """Return the digests of all texts that have a vector."""

        def read(connection: apsw.Connection) -> set[bytes]:
            number = self._set(connection, model, namespace)
            rows = connection.execute("SELECT text FROM vectors WHERE vectors = ?", (number,))
            return {_digest(text) for (text,) in rows}

        return self._do(read)

    def has_any(self, name: str, namespace: str) -> bool:
        """Return whether a namespace has a vector of a model with this name."""
        query = (
            "SELECT 1 FROM sets s WHERE s.namespace = ? AND s.model = ? "
            "AND EXISTS (SELECT 1 FROM vectors v WHERE v.vectors = s.number)"
        )
        return self._do(lambda connection: connection.execute(query, (namespace, name)).fetchone() is not None)

    def models(self, namespace: str) -> list[tuple[VectorModel, int]]:
        """Return the models of a namespace in the order of their first use, each with its number of vectors."""
        query = (
            "SELECT s.model, s.dimension, count(v.number) FROM sets s JOIN vectors v ON v.vectors = s.number "
            "WHERE s.namespace = ? GROUP BY s.number ORDER BY s.number"
        )

        def read(connection: apsw.Connection) -> list[tuple[VectorModel, int]]:
            rows = connection.execute(query, (namespace,))
            return [(VectorModel(column(str, name), column(int, dimension)), count) for name, dimension, count in rows]

        return self._do(read)

    def reached(self, model: VectorModel, branch: Branch) -> tuple[int, bytes]:
        """Return the seq and root up to which every text has been embedded; (0, b"") at first."""
        query = "SELECT seq, root FROM reached WHERE vectors = ? AND branch = ?"

        def read(connection: apsw.Connection) -> tuple[int, bytes]:
            number = self._set(connection, model, branch.namespace)
            row = connection.execute(query, (number, branch.name)).fetchone()
            return (column(int, row[0]), column(bytes, row[1])) if row else (0, b"")

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
        """Delete vectors of a namespace, from every model, and return their number. Used to erase texts.

        Args:
            wanted: Returns the digests whose vectors stay. No vector is stored between its call and the deletion.
        """
        if self._path is not None and self._identity() is None:
            return 0

        def write(connection: apsw.Connection) -> int:
            with writing(connection):
                stays = asked(wanted) if known is None else known
                self.life += 1
                own = "SELECT number, text FROM vectors WHERE vectors IN (SELECT number FROM sets WHERE namespace = ?)"
                others = [(number,) for number, text in connection.execute(own, (namespace,)) if text not in stays]
                connection.executemany("DELETE FROM vectors WHERE number = ?", others)
                return len(others)

        known: Container[bytes] | None = None
        if self._path is not None:
            return self._do(write)
        while True:  # in memory, `wanted` runs outside the lock, as in `put`
            newest, known = self._newest(), wanted()
            with self._lock:
                if newest == self._newest():
                    return self._do(write)

    def keep_only_shared(self, namespace: str, wanted: Callable[[], Iterable[bytes]]) -> int:
        """Delete vectors as `keep_only` does from what machines share; 0 if they share nothing."""
        return 0

    def fetch(self, model: VectorModel, branch: Branch, digests: Callable[[], Iterable[bytes]]) -> bool:
        """Store here what machines share of the vectors of some texts, and return whether there was anything new.

        Args:
            digests: Returns the digests of texts without a vector. It is called only if machines share vectors.
        """
        return False

    def _newest(self) -> int:
        return self._do(lambda connection: int(connection.execute(_NEWEST).fetchall()[0][1] or 0))

    def purge(self) -> bool:
        """Remove what was erased also from the unused parts of the file. Return False if others prevent that."""
        if self._identity() is None:
            return True
        return self._do(lambda connection: purged(connection, rewrite=True))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            super().close()

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
                try:
                    return self._attempt(work)
                except (DamagedStoreError, NotAStoreError, UnusableError) as error:
                    _log.warning(self.WARNING, self._where, error.args[1] if isinstance(error, StoreError) else error)
                    if self._read_only:
                        self._pass_over()
                    else:
                        self._remove()
                return self._attempt(work)
            except _WantedError as failed:  # the store failed, not this file
                raise failed.error from failed.error.__cause__
            except UnusableError as error:
                raise StoreIOError(self._where, str(error)) from error

    def _attempt(self, work: Callable[[apsw.Connection], T]) -> T:
        with translated(self._where):
            connection = self._current()
            assert connection is not None
            return work(connection)

    def _pass_over(self) -> None:
        """Treat the file as missing until another one takes its place."""
        self._lose()
        self._connection, self._file = in_memory(_TABLES), self._identity()

    def _lose(self) -> None:
        super()._lose()
        self.life += 1

    def _connect(self) -> apsw.Connection:
        try:
            return super()._connect()
        except OSError as error:
            raise StoreIOError(self._where, error.strerror or str(error)) from error

    def _readable(self, connection: apsw.Connection) -> apsw.Connection:
        if self._is_ours(connection):
            return connection
        copy = in_memory(_TABLES)
        if self._is_ours(connection, _UNKEYED):
            with copy.backup("main", connection, "main") as work:
                work.step(-1)
            self._give_key(copy)
        connection.close()
        return copy

    def _begin(self, connection: apsw.Connection) -> bool:
        unkeyed = self._is_ours(connection, _UNKEYED)
        if unkeyed:
            self._give_key(connection)
        else:
            super()._begin(connection)
        return unkeyed

    def _give_key(self, connection: apsw.Connection) -> None:
        """Replace digests without a key."""
        rows = connection.execute("SELECT number, text FROM vectors").fetchall()
        connection.executemany(
            "UPDATE vectors SET text = ? WHERE number = ?", [(keyed(_digest(text), self._key), n) for n, text in rows]
        )
        connection.execute("UPDATE about SET value = ? WHERE name = 'layout'", (self.LAYOUT,)).fetchall()


class _WantedError(Exception):
    """A function of the caller raised an error in the middle of a write."""

    def __init__(self, error: RecollectError) -> None:
        super().__init__(error)
        self.error = error


def asked(wanted: Callable[[], T]) -> T:
    """Return what a function of the caller returns, in the middle of a write. Its errors are not the file's."""
    try:
        return wanted()
    except RecollectError as error:
        raise _WantedError(error) from error


def _digest(value: Any) -> bytes:
    digest = column(bytes, value)
    if len(digest) != _DIGEST_BYTES:
        raise UnusableError(f"a digest has {len(digest)} bytes")
    return digest


def _vector(value: Any, model: VectorModel) -> Floats:
    raw = column(bytes, value)
    if len(raw) != model.dimension * _FLOAT_BYTES:
        raise UnusableError(f"a vector of {model.dimension} components has {len(raw)} bytes")
    vector = np.frombuffer(raw, dtype="<f4")
    if not np.isfinite(vector).all():
        raise UnusableError("a vector is not finite")
    return vector
