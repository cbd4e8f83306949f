"""What is read and written inside a transaction of the SQLite store: views, and the writer's transaction.

Errors of SQLite pass through here; `stores.sqlite`, which opens the transactions, turns them into ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import apsw

from recollect.errors import DamagedStoreError, StoreIOError
from recollect.filters.tree import Filter
from recollect.indexes.merkle import Root
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.stores.base import Change, Commit, Head, Line, Stored, Tally, check_seq, tally_of
from recollect.stores.schema import COPIED
from recollect.stores.sql_filters import bounds, selective
from recollect.stores.sqlite_errors import translated

_ORDER_BY = {
    "newest": "h.time DESC, h.position DESC, h.id",
    "oldest": "h.time, h.position, h.id",
    "importance": "h.importance DESC, h.id",
    "position": "coalesce(h.conversation, ''), coalesce(h.position, -1), h.time, h.id",
    "id": "h.id",
}
_PUT_HEAD = (
    f"INSERT INTO heads (branch, id, version, {', '.join(COPIED)}, time, importance, expires) "
    f"VALUES ({', '.join('?' * (len(COPIED) + 6))}) ON CONFLICT (branch, id) DO UPDATE SET version = excluded.version, "
    + ", ".join(f"{name} = excluded.{name}" for name in (*COPIED, "time", "importance", "expires"))
)


class SqliteView:
    def __init__(self, connection: apsw.Connection, path: str) -> None:
        self._execute = connection.execute
        self._path = path
        self._branches: dict[Line, int | None] = {}

    def _sql(self, sql: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """Run a statement. The columns of its rows have the types that schema.TABLES (STRICT) gives them."""
        with translated(self._path):
            rows: Any = self._execute(sql, parameters)
        return self._translated(rows)

    def _translated(self, rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """The rows of a statement; later rows can fail like the first."""
        with translated(self._path):
            yield from rows

    def _branch(self, line: Line) -> int | None:
        if line not in self._branches:
            self._branches[line] = self._value(
                "SELECT b.number FROM branches b JOIN namespaces n ON n.number = b.namespace "
                "WHERE n.name = ? AND b.name = ?",
                line,
            )
        return self._branches[line]

    def _value(self, sql: str, parameters: tuple[Any, ...]) -> Any:
        row = next(self._sql(sql, parameters), None)
        return row[0] if row else None

    def lines(self) -> list[Line]:
        rows = self._sql(
            "SELECT n.name, b.name FROM branches b JOIN namespaces n ON n.number = b.namespace "
            "WHERE EXISTS (SELECT 1 FROM commits c WHERE c.branch = b.number) ORDER BY 1, 2"
        )
        return [Line(*row) for row in rows]

    def head(self, line: Line) -> Head:
        row = next(
            self._sql(
                "SELECT seq, root, page, time FROM commits WHERE branch = ? ORDER BY seq DESC LIMIT 1",
                (self._branch(line),),
            ),
            None,
        )
        return Head(row[0], Root(row[1], row[2]), row[3]) if row else Head()

    def get(self, line: Line, record_id: str) -> Stored | None:
        row = next(
            self._sql(
                "SELECT v.hash, v.payload FROM heads h JOIN versions v ON v.number = h.version "
                "WHERE h.branch = ? AND h.id = ?",
                (self._branch(line), record_id),
            ),
            None,
        )
        return Stored(*row) if row else None

    def known(self, line: Line, record_id: str) -> bool:
        sql = "SELECT 1 FROM changes WHERE branch = ? AND id = ? LIMIT 1"
        # Within a transaction, what was put but not yet committed is known too.
        return bool(self._value(sql, (self._branch(line), record_id)) or self.get(line, record_id))

    def select(
        self, line: Line, where: Filter, *, order: str = "newest", limit: int | None = None, now: int
    ) -> Iterator[Record]:
        if limit == 0:
            return
        sql, parameters = self.select_sql(line, where, order, now)
        given = 0
        for (payload,) in self._sql(sql, parameters):
            record = Record.load(payload)
            if where.matches(record):
                yield record
                given += 1
                if given == limit:
                    return

    def select_sql(self, line: Line, where: Filter, order: str, now: int) -> tuple[str, tuple[Any, ...]]:
        """The statement behind `select`, for EXPLAIN."""
        live, parameters = self._live(line, where, now)
        order_by = _ORDER_BY[order]
        if 'h."conversation"' in live:
            # The index of conversations is by position. Without the plus SQLite would rather walk all of the
            # namespace in order of time than sort one conversation.
            order_by = order_by.replace("h.time", "+h.time")
        sql = f"SELECT v.payload FROM heads h JOIN versions v ON v.number = h.version WHERE {live} ORDER BY {order_by}"
        return sql, parameters

    def count(self, line: Line, where: Filter, *, now: int) -> int:
        if not self._says_all(where):
            return sum(1 for _ in self.select(line, where, order="id", now=now))
        live, parameters = self._live(line, where, now)
        return int(self._value(f"SELECT count(*) FROM heads h WHERE {live}", parameters))

    def tally(self, line: Line, where: Filter, *, now: int) -> Tally:
        if not self._says_all(where):
            return tally_of(self.select(line, where, order="id", now=now))
        live, parameters = self._live(line, where, now)
        kinds = self._sql(f"SELECT h.kind, count(*) FROM heads h WHERE {live} GROUP BY 1 ORDER BY 1", parameters)
        rest = self._sql(
            "SELECT count(DISTINCT h.user), count(DISTINCT h.conversation), count(DISTINCT h.entity), "
            f"min(h.time), max(h.time) FROM heads h WHERE {live}",
            parameters,
        )
        return Tally(dict(kinds), *next(rest))

    @staticmethod
    def _says_all(where: Filter) -> bool:
        """Whether SQL can say just what the filter says."""
        both = bounds(where)
        return both.upper == both.lower

    def _live(self, line: Line, where: Filter, now: int) -> tuple[str, tuple[Any, ...]]:
        """The condition on `heads h` for live records that a filter may match."""
        upper = bounds(where).upper
        condition = f"h.branch = ? AND (h.expires IS NULL OR h.expires > ?) AND {upper.text}"
        return condition, (self._branch(line), now, *upper.parameters)

    def payload(self, line: Line, version: bytes) -> bytes | None:
        found: bytes | None = self._value(
            "SELECT v.payload FROM versions v JOIN namespaces n ON n.number = v.namespace "
            "WHERE n.name = ? AND v.hash = ?",
            (line.namespace, version),
        )
        return found

    def narrowed(self, line: Line, where: Filter) -> list[str] | None:
        if not selective(where):
            return None
        upper = bounds(where).upper
        sql = f"SELECT h.id FROM heads h WHERE h.branch = ? AND {upper.text}"
        return [row[0] for row in self._sql(sql, (self._branch(line), *upper.parameters))]

    def versions(self, line: Line) -> Iterator[tuple[str, Stored]]:
        rows = self._sql(
            "SELECT h.id, v.hash, v.payload FROM heads h JOIN versions v ON v.number = h.version WHERE h.branch = ?",
            (self._branch(line),),
        )
        for record_id, digest, payload in rows:
            yield record_id, Stored(digest, payload)

    def last_position(self, line: Line, conversation: str) -> int | None:
        found: int | None = self._value(
            "SELECT position FROM heads WHERE branch = ? AND conversation = ? ORDER BY position DESC LIMIT 1",
            (self._branch(line), conversation),
        )
        return found

    def turns_at(self, line: Line, conversation: str, position: int) -> list[Stored]:
        rows = self._sql(
            "SELECT v.hash, v.payload FROM heads h JOIN versions v ON v.number = h.version "
            "WHERE h.branch = ? AND h.conversation = ? AND h.position = ? ORDER BY h.id",
            (self._branch(line), conversation, position),
        )
        return [Stored(*row) for row in rows]

    def due(self, line: Line, now: int, limit: int) -> list[str]:
        sql = "SELECT id FROM heads WHERE branch = ? AND expires <= ? ORDER BY expires, id LIMIT ?"
        return [row[0] for row in self._sql(sql, (self._branch(line), now, limit))]

    def changed(self, line: Line, since: int) -> list[str]:
        rows = self._sql("SELECT id FROM changes WHERE branch = ? AND seq > ?", (self._branch(line), since))
        return list(dict.fromkeys(row[0] for row in rows))

    def commits(
        self, line: Line, since: int = 0, limit: int | None = None, record_id: str | None = None
    ) -> Iterator[Commit]:
        branch = self._branch(line)
        touching = "AND seq IN (SELECT seq FROM changes WHERE branch = ? AND id = ?) "
        rows = self._sql(
            "SELECT seq, parents, time, actor, reason, root, page FROM commits WHERE branch = ? AND seq > ? "
            f"{'' if record_id is None else touching}ORDER BY seq LIMIT ?",
            (branch, since, *(() if record_id is None else (branch, record_id)), -1 if limit is None else limit),
        )
        for seq, parents, time, actor, reason, root, page in list(rows):
            changes = self._sql(
                "SELECT id, before, after, cause FROM changes WHERE branch = ? AND seq = ? ORDER BY place",
                (branch, seq),
            )
            yield Commit(
                namespace=line.namespace,
                branch=line.branch,
                seq=seq,
                parents=_parents(line, seq, parents),
                micros=time,
                actor=actor,
                reason=reason,
                root=Root(root, page),
                changes=tuple(Change(*row) for row in changes),
            )

    def node(self, place: int) -> bytes:
        body = self._value("SELECT body FROM nodes WHERE place = ?", (place,))
        if body is None:
            raise DamagedStoreError(self._path, f"it lacks page {place} of its hashes")
        return bytes(body)


class SqliteTransaction(SqliteView):
    def __init__(self, connection: apsw.Connection, path: str) -> None:
        super().__init__(connection, path)
        self._connection = connection
        self._unnamed: dict[tuple[str, bytes | None], int] = {}  # versions that were put and that no commit names yet

    def check_open(self) -> None:
        """Raises: StoreIOError where an error has made SQLite undo the transaction: what came now would stand alone."""
        if not self._connection.in_transaction:
            raise StoreIOError(self._path, "the transaction was undone by an error before")

    def _sql(self, sql: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        self.check_open()
        return super()._sql(sql, parameters)

    def _own(self, line: Line) -> int:
        """The number of the line's branch, made where it is the first write to it."""
        branch = self._branch(line)
        if branch is None:
            self._sql("INSERT INTO namespaces (name) VALUES (?) ON CONFLICT DO NOTHING", (line.namespace,))
            self._sql(
                "INSERT INTO branches (namespace, name) SELECT number, ? FROM namespaces WHERE name = ?",
                (line.branch, line.namespace),
            )
            del self._branches[line]
            branch = self._branch(line)
        assert branch is not None
        return branch

    def put(self, line: Line, record: Record, stored: Stored) -> None:
        branch = self._own(line)
        namespace = self._value("SELECT namespace FROM branches WHERE number = ?", (branch,))
        version = self._value(
            "SELECT number FROM versions WHERE namespace = ? AND hash = ?", (namespace, stored.version)
        )
        if version is None:
            self._sql(
                "INSERT INTO versions (namespace, hash, payload) VALUES (?, ?, ?)",
                (namespace, stored.version, stored.payload),
            )
            version = self._connection.last_insert_rowid()
            self._unnamed[line.namespace, stored.version] = version
        self._sql(
            _PUT_HEAD,
            (
                branch,
                record.id,
                version,
                *(getattr(record, name) for name in COPIED),
                None if record.time is None else microseconds(record.time),
                record.importance,
                None if record.expires is None else microseconds(record.expires),
            ),
        )

    def drop(self, line: Line, record_id: str) -> None:
        self._sql("DELETE FROM heads WHERE branch = ? AND id = ?", (self._own(line), record_id))

    def add_node(self, body: bytes) -> int:
        self._sql("INSERT INTO nodes (body) VALUES (?)", (body,))
        return self._connection.last_insert_rowid()

    def append(self, commit: Commit) -> None:
        line = Line(commit.namespace, commit.branch)
        check_seq(commit, self.head(line))
        branch = self._own(line)
        usual = _parents(line, commit.seq, None)
        self._sql(
            "INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                branch,
                commit.seq,
                None if commit.parents == usual else json.dumps(commit.parents),
                commit.micros,
                commit.actor,
                commit.reason,
                commit.root.hash,
                commit.root.place,
            ),
        )
        with translated(self._path):
            self._connection.executemany(
                "INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(branch, commit.seq, place, *change) for place, change in enumerate(commit.changes)],
            )
        for change in commit.changes:
            self._unnamed.pop((commit.namespace, change.after), None)

    def leave_unnamed_out(self) -> None:
        """Keep no version that was written over, or dropped again, before a commit named it."""
        for number in self._unnamed.values():
            self._sql("DELETE FROM versions WHERE number = ?", (number,))

    def set_meta(self, name: str, value: str) -> None:
        self._sql(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (name, value)
        )


def _parents(line: Line, seq: int, stored: str | None) -> tuple[tuple[str, int], ...]:
    if stored is not None:
        return tuple((branch, number) for branch, number in json.loads(stored))
    return ((line.branch, seq - 1),) if seq > 1 else ()
