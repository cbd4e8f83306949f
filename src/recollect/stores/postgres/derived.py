"""What machines share of their derived data: the tables `segments`, `vector_sets`, `vectors` and `vectors_reached`.

An older store lacks these tables, and a role may lack rights on them. Then machines share nothing, and nothing else
changes. Whatever is stored here may be deleted at any time.

No erased text must come back, however old what another machine has cached. So a machine that stores something locks the
namespace (`SharedTables.lock`) and looks, after that, whether the text is still there; a machine that erases locks the
namespace after the erasure is committed, and deletes. The lock is one of a transaction and of derived data only: no
write of the ledger waits for it.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.errors import StoreIOError
from recollect.ledger.commits import Branch
from recollect.stores.derived.shared import Fetch, Fetched, Floats, Made, VectorModel
from recollect.stores.postgres.dialect import DERIVED_TABLES
from recollect.stores.postgres.pool import SessionPool
from recollect.stores.postgres.session import NotReplicatedError, Session
from recollect.stores.postgres.view import LIMITS

_log = logging.getLogger("recollect")
#: A segment is written in place of another one if at least this fraction (1/16) of its records was changed since.
_WORTH_PART = 16
#: How long a transaction may stand still: while an erasure reads what stays. It keeps no writer of the ledger waiting.
_STANDS_STILL = "10min"
_DIGEST_BYTES, _SUM_BYTES = 32, 8
_READ = ("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", ())
_WRITE = ("BEGIN ISOLATION LEVEL READ COMMITTED", ())
_BRANCH = (
    "(SELECT b.number FROM {s}.branches b JOIN {s}.namespaces n ON n.number = b.namespace "
    "WHERE n.name = $1 AND b.name = $2)"
)
_SET = "(SELECT number FROM {s}.vector_sets WHERE namespace = $1 AND model = $2 AND dimension = $3)"


def _erased_since(branch: str, seq: str) -> str:
    """Return the condition that something was erased from a branch after a commit, both given in SQL."""
    return f"EXISTS (SELECT 1 FROM {{s}}.changes c WHERE c.branch = {branch} AND c.seq > {seq} AND c.cause = 'erased')"


class Rights(NamedTuple):
    """What the role of a store may do with the shared tables.

    Attributes:
        exist: Whether the tables are there.
        read: Whether they can be read.
        write: Whether they can be written.
    """

    exist: bool
    read: bool
    write: bool


def rights_of(session: Session, schema: str) -> Rights:
    """Return what the role may do with the shared tables of a schema."""
    tables = [f"to_regclass('{schema}.{table}')" for table in DERIVED_TABLES]
    exist = " AND ".join(f"{each} IS NOT NULL" for each in tables)

    def has(right: str) -> str:
        return " AND ".join(f"coalesce(has_table_privilege({each}, '{right}'), FALSE)" for each in tables)

    write = " AND ".join(has(right) for right in ("INSERT", "UPDATE", "DELETE"))
    return Rights(*map(bool, session.rows(f"SELECT {exist}, {has('SELECT')}, {write}")[0]))


class SharedTables:
    """The sessions in which the shared tables are read and written.

    Args:
        pool: The connections of the store.
        connect: Opens a connection of its own, for what takes long.
        schema: The schema of the store.
        path: The address without secrets, for messages.
        limits: The values of `LIMITS`.
        readable: Whether anything is read.
        writable: Whether anything is written besides the deletions of erasures, which are always tried.
    """

    def __init__(
        self,
        pool: SessionPool,
        connect: Callable[[], Session],
        schema: str,
        path: str,
        limits: tuple[str, str, str],
        *,
        readable: bool,
        writable: bool,
    ) -> None:
        self._pool = pool
        self._connect = connect
        self._limits = limits
        self.schema = schema
        self.path = path
        self.readable = readable
        self.writable = readable and writable

    def sql(self, text: str) -> str:
        """Return a statement with the schema of the tables."""
        return text.format(s=self.schema)

    def connected(self) -> AbstractContextManager[Session]:
        """Provide a session without a transaction while the block runs."""
        return self._pool.session()

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Provide a session in a snapshot while the block runs."""
        with self._pool.session() as session:
            session.begin(_READ)
            yield session

    @contextmanager
    def writing(self, *, durable: bool = False) -> Iterator[Session]:
        """Provide a session in a transaction, which is committed when the block ends.

        Args:
            durable: Wait until the commit is durable; what only saves work need not be.
        """
        with self._pool.session() as session:
            yield from self._transaction(session, durable)

    @contextmanager
    def writing_long(self) -> Iterator[Session]:
        """Provide a session of its own in a transaction, so that the block keeps no connection from others."""
        self._pool.check_usable()
        with closing(self._connect()) as session:
            yield from self._transaction(session, False)

    def _transaction(self, session: Session, durable: bool) -> Iterator[Session]:
        wait, _, sync = self._limits
        session.begin(_WRITE, (LIMITS, (wait, _STANDS_STILL, sync if durable else "off")))
        yield session
        if not session.in_transaction:  # the block has rolled it back
            return
        try:
            session.commit_or_raise()
        except NotReplicatedError as error:
            raise StoreIOError(self.path, "it is not known whether a standby has it") from error

    def lock(self, session: Session, namespace: str) -> None:
        """Lock what is derived of a namespace until the transaction ends: statements after this see what is committed.

        Raises:
            StoreBusyError: Others have it for too long.
        """
        session.rows("SELECT pg_advisory_xact_lock($1)", (self._number(namespace),))

    def lock_now(self, session: Session, name: str) -> bool:
        """Lock something by its name until the transaction ends, and return whether that was possible."""
        return bool(session.rows("SELECT pg_try_advisory_xact_lock($1)", (self._number(name),))[0][0])

    def _number(self, name: str) -> int:
        digest = hashlib.sha256(f"recollect derived {self.schema} {name}".encode()).digest()
        return int.from_bytes(digest[:8], signed=True)

    def has(self, session: Session, table: str) -> bool:
        """Return whether a table is there: it may have been added since the store was opened."""
        return bool(session.rows("SELECT to_regclass($1) IS NOT NULL", (f"{self.schema}.{table}",))[0][0])


class PostgresSegments:
    """The table `segments` (`SharedSegments`)."""

    def __init__(self, tables: SharedTables) -> None:
        self._tables = tables
        self._parts = tables.sql("FROM {s}.segments WHERE branch = " + _BRANCH + " AND rules = $3")

    def read(self, branch: Branch, rules: str, newest: int) -> NDArray[np.uint8] | None:
        if not self._tables.readable:
            return None
        with self._tables.reading() as session:
            found = session.rows(
                f"SELECT part, octet_length(body) {self._parts} AND seq <= $4 ORDER BY part",
                (*branch, rules, newest),
            )
            if not found:
                return None
            out = np.empty(sum(size for _, size in found), dtype=np.uint8)
            at = 0
            for part, size in found:  # one by one, so that no more than one is in memory twice
                [(body,)] = session.rows(f"SELECT body {self._parts} AND part = $4", (*branch, rules, part))
                out[at : at + size] = np.frombuffer(body, dtype=np.uint8)
                at += size
            return out

    def accepts(self, branch: Branch, made: Made) -> bool:
        if not self._tables.writable:
            return False
        sql = self._tables.sql(
            "SELECT p.seq, (SELECT count(*) FROM {s}.changes c WHERE c.branch = p.branch AND c.seq > p.seq AND "
            "c.seq <= $4), (SELECT count(*) FROM {s}.heads h WHERE h.branch = p.branch) "
            "FROM {s}.segments p WHERE p.part = 0 AND p.rules = $3 AND p.branch = " + _BRANCH
        )
        with self._tables.reading() as session:
            rows = session.rows(sql, (*branch, made.rules, made.seq))
        return not rows or rows[0][1] * _WORTH_PART > rows[0][2]

    def write(self, branch: Branch, made: Made, parts: Iterator[bytes]) -> bool:
        if not self._tables.writable:
            return False
        upload = secrets.randbits(62)
        insert = self._tables.sql(
            "INSERT INTO {s}.segments (branch, rules, upload, part, seq, root, body) "
            "SELECT number, $3, $4, $5, $6, $7, $8 FROM " + _BRANCH + " AS b(number)"
        )
        erased = self._tables.sql("SELECT " + _erased_since(_BRANCH, "$3"))
        with self._tables.writing_long() as session:
            if not self._tables.lock_now(session, f"segments {branch.namespace}"):  # another machine writes one
                return False
            for part, body in enumerate(parts):
                session.rows(insert, (*branch, made.rules, upload, part, made.seq, made.root_hash, body))
            self._tables.lock(session, branch.namespace)
            if session.rows(erased, (*branch, made.seq))[0][0]:
                session.roll_back()
                return False
            session.rows(f"DELETE {self._parts} AND upload <> $4", (*branch, made.rules, upload))
        return True

    def remove_erased(self, branch: Branch) -> None:
        with self._tables.reading() as session:
            if not self._tables.has(session, "segments"):
                return
        with self._tables.writing(durable=True) as session:
            self._tables.lock(session, branch.namespace)
            delete = "DELETE FROM {s}.segments p WHERE p.branch = " + _BRANCH + " AND "
            session.rows(self._tables.sql(delete + _erased_since("p.branch", "p.seq")), branch)


class PostgresVectors:
    """The tables of vectors (`SharedVectors`)."""

    def __init__(self, tables: SharedTables) -> None:
        self._tables = tables
        self._of_set = tables.sql("FROM {s}.vectors v WHERE v.vectors = " + _SET)

    @property
    def usable(self) -> bool:
        return self._tables.readable

    @contextmanager
    def fetching(self) -> Iterator[Fetch]:
        with self._tables.connected() as session:
            yield partial(self._fetch, session)

    def _fetch(
        self, session: Session, model: VectorModel, branch: Branch, digests: list[bytes], after: int, limit: int
    ) -> Fetched:
        key = _key(model, branch.namespace)
        columns = "v.number, v.text, v.vector, v.sum"
        newest = self._tables.sql(
            "SELECT coalesce(max(v.number), 0), r.seq, r.root FROM {s}.vector_sets s "
            "LEFT JOIN {s}.vectors_reached r ON r.vectors = s.number AND r.branch = $4 "
            "LEFT JOIN LATERAL (SELECT number FROM {s}.vectors x WHERE x.vectors = s.number "
            "ORDER BY number DESC LIMIT 1) v ON TRUE "
            "WHERE s.namespace = $1 AND s.model = $2 AND s.dimension = $3 GROUP BY r.seq, r.root"
        )
        of_texts = f"SELECT {columns} {self._of_set} AND v.text = ANY($4)"
        of_numbers = f"SELECT {columns} {self._of_set} AND v.number > $4 ORDER BY v.number LIMIT $5"
        session.begin(_READ)
        facts, named, later = session.several(
            [(newest, (*key, branch.name)), (of_texts, (*key, digests)), (of_numbers, (*key, after, limit))]
        )
        session.roll_back()
        number, seq, root = facts[0] if facts else (0, None, None)
        vectors = {text: vector for _, text, vector in _intact([*named, *later], model)}
        read_to = later[-1][0] if later else after
        return Fetched(vectors, read_to, number, (seq or 0, root or b""))

    def put(
        self,
        model: VectorModel,
        namespace: str,
        vectors: Mapping[bytes, Floats],
        wanted: Callable[[], Container[bytes]],
    ) -> dict[bytes, Floats]:
        if not self._tables.writable or not vectors:
            return {}
        key = _key(model, namespace)
        insert_set = (
            "INSERT INTO {s}.vector_sets (namespace, model, dimension) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
        )
        with self._tables.writing() as session:
            # Only the machine that has the lock stores, so numbers become visible in their order.
            self._tables.lock(session, namespace)
            session.stage(self._tables.sql(insert_set), [key])
            found = session.rows(
                f"SELECT v.number, v.text, v.vector, v.sum {self._of_set} AND v.text = ANY($4)", (*key, list(vectors))
            )
            there = {text: vector for _, text, vector in _intact(found, model)}
            stored = wanted()
            rows = [
                (*key, text, body, _sum(text, body))
                for text, vector in vectors.items()
                if text in stored and text not in there
                for body in [vector.astype("<f4").tobytes()]
            ]
            insert = (
                "INSERT INTO {s}.vectors (vectors, text, vector, sum) SELECT number, $4, $5, $6 FROM "
                + _SET
                + " AS b(number) ON CONFLICT (vectors, text) DO UPDATE SET "  # one that is corrupt
                "number = DEFAULT, vector = excluded.vector, sum = excluded.sum"
            )
            session.stage(self._tables.sql(insert), rows)
        return {text: vector for text, vector in there.items() if text in stored}

    def keep_only(self, namespace: str, wanted: Callable[[], Iterable[bytes]]) -> int:
        with self._tables.reading() as session:
            if not self._tables.has(session, "vectors"):
                return 0
        delete = self._tables.sql(
            "DELETE FROM {s}.vectors v WHERE v.vectors IN (SELECT number FROM {s}.vector_sets WHERE namespace = $1) "
            "AND NOT EXISTS (SELECT 1 FROM unnest($2::bytea[]) AS stays(text) WHERE stays.text = v.text) RETURNING 1"
        )
        with self._tables.writing(durable=True) as session:
            self._tables.lock(session, namespace)
            return len(session.rows(delete, (namespace, [each for each in wanted() if each])))

    def digests(self, model: VectorModel, namespace: str) -> set[bytes]:
        if not self._tables.readable:
            return set()
        with self._tables.reading() as session:
            return {text for (text,) in session.rows(f"SELECT v.text {self._of_set}", _key(model, namespace))}

    def models(self, namespace: str) -> list[tuple[VectorModel, int]]:
        if not self._tables.readable:
            return []
        sql = self._tables.sql(
            "SELECT s.model, s.dimension, count(*) FROM {s}.vector_sets s JOIN {s}.vectors v ON v.vectors = s.number "
            "WHERE s.namespace = $1 GROUP BY s.number ORDER BY s.number"
        )
        with self._tables.reading() as session:
            return [(VectorModel(name, dimension), count) for name, dimension, count in session.rows(sql, (namespace,))]

    def reach(self, model: VectorModel, branch: Branch, seq: int, root: bytes) -> None:
        if not self._tables.writable:
            return
        sql = self._tables.sql(
            "INSERT INTO {s}.vectors_reached (vectors, branch, seq, root) SELECT number, $4, $5, $6 FROM "
            + _SET
            + " AS b(number) WHERE number IS NOT NULL ON CONFLICT (vectors, branch) DO UPDATE "
            "SET seq = excluded.seq, root = excluded.root"
        )
        with self._tables.writing() as session:
            session.rows(sql, (*_key(model, branch.namespace), branch.name, seq, root))


def _key(model: VectorModel, namespace: str) -> tuple[str, str, int]:
    return namespace, model.name, model.dimension


def _sum(text: bytes, vector: bytes) -> bytes:
    """Return the checksum of a row: a changed bit would change scores, and no other check would find it."""
    return hashlib.sha256(text + vector).digest()[:_SUM_BYTES]


def _intact(rows: Sequence[tuple[Any, ...]], model: VectorModel) -> Iterator[tuple[int, bytes, Floats]]:
    """Yield the rows of vectors that are intact. One that is not counts as missing, so its text is embedded again."""
    for number, text, body, checksum in rows:
        if len(text) != _DIGEST_BYTES or len(body) != 4 * model.dimension or _sum(text, body) != checksum:
            _log.warning("a vector that machines share is corrupt; its text is embedded again")
            continue
        yield number, text, np.frombuffer(body, dtype="<f4")
