"""Snapshot views of a store in SQL tables, inside a transaction that the store has opened.

The statements are written for SQLite: with `?` for each value, table names without a schema, and where SQLite would
choose a slow plan, with its hints (`INDEXED BY`, a plus before a column). All else in them means the same in
PostgreSQL, for which `stores.postgres.dialect` rewrites these three.

A view is queried for the same branch repeatedly, so it caches the branch's numbers and its head.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from recollect.errors import DamagedStoreError
from recollect.filters.tree import EVERYTHING, Everything, Filter
from recollect.ledger.commits import MAIN, Branch, Change, Commit, Head, Parent, Snapshot, Stored
from recollect.ledger.merkle import EMPTY, PUBLIC_KEY, Live, Root, version_hash
from recollect.ledger.parts import PartHead, decode_parts, stated_root
from recollect.records.record import Record
from recollect.stores.sql.columns import SETTING, decode_pages, decoded_parents, implicit_parents
from recollect.stores.sql.continued import Continued
from recollect.stores.sql.filters import TRUE, Sql, bounds, of_one_conversation, rest
from recollect.stores.values import (
    Base,
    Continuing,
    RemovedPayload,
    Resolved,
    SortKey,
    Tally,
    Trimmed,
    Untrimmed,
    Version,
    expired,
    in_order,
    net,
    tally_of,
)

_ORDER_BY = {
    "newest": "h.time DESC NULLS LAST, h.position DESC NULLS LAST, h.id",
    "oldest": "h.time NULLS FIRST, h.position NULLS FIRST, h.id",
    "importance": "h.importance DESC NULLS LAST, h.id",
    "position": "coalesce(h.conversation, ''), coalesce(h.position, -1), h.time NULLS FIRST, h.id",
    "last": "h.conversation NULLS FIRST, h.position DESC NULLS LAST, h.time DESC NULLS LAST, h.id",
    "id": "h.id",
}
#: A limit that nothing reaches.
_ALL = 2**62

#: A branch's numbers, and its newest commit if it has one; where it begins; and further columns.
BRANCH = (
    "SELECT b.number, n.number, c.seq, c.time, c.root, c.entry, c.page, {}, b.base_branch, b.base_seq, b.kept{} "
    "FROM namespaces n "
    "JOIN branches b ON b.namespace = n.number LEFT JOIN commits c ON c.branch = b.number "
    "WHERE n.name = ? AND b.name = ? ORDER BY c.seq DESC LIMIT 1"
)
#: What a follower of the log asks: the root of a commit; whether later ones erased; which records they changed.
ROOT_AT = "SELECT root, entry, page FROM commits WHERE branch = ? AND seq = ?"
HAS_ERASED = "SELECT 1 FROM changes WHERE branch = ? AND seq > ? AND cause = 'erased' LIMIT 1"
CHANGED = "SELECT id FROM changes WHERE branch = ? AND seq > ?"
#: Maximum number of ids in one statement.
_IDS_PER_QUERY = 100
#: Maximum number of commits whose changes are read with one statement. It grows up to that, as few readers want many.
_COMMITS_PER_QUERY = 16
#: Maximum number of pages in one statement.
_PAGES_PER_QUERY = 500


class Numbers(NamedTuple):
    """The numbers of a branch and of its namespace.

    Attributes:
        base: The number of the branch that it continues; None if it begins empty.
        base_seq: The commit of that branch.
        kept: The newest commit whose pages are kept. It is below `base_seq` until the branch has heads of its own.
    """

    branch: int
    namespace: int
    base: int | None = None
    base_seq: int | None = None
    kept: int = 0


class SqlView(ABC):
    """A snapshot view of the tables.

    Queries use LEFT JOIN so that a head without its version raises an error instead of being skipped.

    Args:
        path: The file or address, for messages.
        key: The store's key.
        trusted: Payloads with fewer bytes than this are covered by a verified page checksum; longer ones are hashed
            when they are read.
        binds_parts: Whether the store's commits bind all parts of the memory, as they do since format 4.
        composed: Whether the names in the columns are in NFC, as this release writes them. If not, records are compared
            and sorted in Python.
    """

    def __init__(
        self,
        path: str,
        key: bytes = PUBLIC_KEY,
        trusted: int = 0,
        binds_parts: bool = True,
        composed: bool = True,
    ) -> None:
        self.binds_parts = binds_parts
        self._composed = composed
        self._parts_column = "c.parts" if binds_parts else "NULL"
        self._path = path
        self._key = key
        self._trusted = trusted
        self._numbers: dict[Branch, Numbers | None] = {}
        self._heads: dict[Branch, Head] = {}
        self._continued: dict[Branch, Continued | None] = {}

    @abstractmethod
    def _rows(self, sql: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a statement. Their columns have the types that the tables declare."""

    @abstractmethod
    def _row(self, sql: str, parameters: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return the first row of a statement; None if there is none."""

    def _sql(self, sql: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """Run a statement that reads the tables. `SqlTransaction` flushes its staged writes first."""
        return self._rows(sql, parameters)

    def _many(self, sql: str, parameters: tuple[Any, ...], first: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Run a statement as `_sql` does that may have many rows, which the caller may not read to the end.

        Args:
            sql: The statement.
            parameters: Its values.
            first: How many rows the caller expects to read; None if it is not known.
        """
        return self._sql(sql, parameters)

    def _value(self, sql: str, parameters: tuple[Any, ...]) -> Any:
        row = self._row(sql, parameters)
        return row[0] if row else None

    def _stored(self, digest: bytes, payload: bytes | None) -> Stored:
        """Return a version that was read. Raise DamagedStoreError if its payload does not match its hash."""
        if not isinstance(digest, bytes) or not isinstance(payload, bytes):
            raise DamagedStoreError(self._path, "the version of a live record, or its payload, is missing")
        if len(payload) >= self._trusted:
            try:
                intact = version_hash(Record.load(payload).id, payload, self._key) == digest
            except (ValueError, AttributeError):  # it is not a record
                intact = False
            if not intact:
                raise DamagedStoreError(self._path, f"version {digest.hex()[:16]} does not match its hash")
        return Stored(digest, payload)

    def _root(self, digest: bytes, entry: bytes, page: int | None) -> Root:
        """Return a root that was read. Raise DamagedStoreError if it is invalid.

        The root and the entry are at the end of their row, after the reason. If the reason is long, they may be in an
        overflow page that was replaced by zeros, which have a valid checksum.
        """
        if not isinstance(digest, bytes) or not isinstance(entry, bytes) or not isinstance(page, (int, type(None))):
            raise DamagedStoreError(self._path, "a commit has lost its root")
        # In a page of zeros, the page number is 0, which is valid only for the empty root. SQLite stores 1 and NULL
        # without bytes, so the row then ends in the entry.
        if not digest or (page == 0 and digest != EMPTY) or entry[-8:] == bytes(8):
            raise DamagedStoreError(self._path, "a commit has lost its root")
        return Root(digest, page or 0)

    def _numbers_of(self, branch: Branch) -> Numbers | None:
        if branch not in self._numbers:
            row = self._row(
                "SELECT b.number, n.number, b.base_branch, b.base_seq, b.kept FROM branches b "
                "JOIN namespaces n ON n.number = b.namespace WHERE n.name = ? AND b.name = ?",
                branch,
            )
            self._numbers[branch] = Numbers(*row) if row else None
        return self._numbers[branch]

    def _of_base(self, branch: Branch) -> Continued | None:
        """Return how a branch continues another one; None if it begins empty. The branch is not the main one."""
        if branch not in self._continued:
            numbers = self._numbers_of(branch)
            self._continued[branch] = None if numbers is None or numbers.base is None else self._begun(branch, numbers)
        return self._continued[branch]

    def _begun(self, branch: Branch, numbers: Numbers) -> Continued:
        name, seq = self._value("SELECT name FROM branches WHERE number = ?", (numbers.base,)), numbers.base_seq
        if not isinstance(name, str) or seq is None:
            raise DamagedStoreError(self._path, f"branch {branch.name!r} continues one that is missing")
        base = Branch(branch.namespace, name)
        found = Continued(self, branch, base, seq, own_heads=numbers.kept >= seq)
        self._numbers[found.own] = Numbers(numbers.branch, numbers.namespace)
        self._heads[found.own] = head if (head := self.head(branch)).seq > seq else Head()
        self._continued[found.own] = None
        return found

    def base(self, branch: Branch) -> Base | None:
        if branch.name == MAIN or (found := self._of_base(branch)) is None:
            return None
        return Base(found.base, found.seq, found.own_heads)

    def continuing(self, namespace: str) -> list[Continuing]:
        rows = self._sql(
            "SELECT b.name, x.name, b.base_seq, b.kept, "
            "(SELECT c.seq FROM commits c WHERE c.branch = b.number ORDER BY c.seq DESC LIMIT 1) "
            "FROM branches b JOIN namespaces n ON n.number = b.namespace "
            "JOIN branches x ON x.number = b.base_branch WHERE n.name = ? ORDER BY b.name",
            (namespace,),
        )
        return [
            Continuing(
                Branch(namespace, name), Base(Branch(namespace, base), seq, own_heads=kept >= seq), newest or seq
            )
            for name, base, seq, kept, newest in rows
        ]

    def forks(self, branch: Branch) -> set[int]:
        rows = self._sql("SELECT base_seq FROM branches WHERE base_branch = ?", (self._branch(branch),))
        return {seq for (seq,) in rows}

    def _branch_row(self, branch: Branch) -> tuple[Any, ...] | None:
        return self._row(BRANCH.format(self._parts_column, ""), branch)

    def _look_up(self, branch: Branch) -> None:
        """Cache the numbers of a branch and its head, with one query."""
        self._note_head(branch, self._branch_row(branch))

    def _note_head(self, branch: Branch, row: Sequence[Any] | None) -> None:
        """Cache a row of BRANCH."""
        self._numbers[branch] = Numbers(*row[:2]) if row else None
        if row and row[8] is not None:
            self._numbers[branch] = Numbers(*row[:2], *row[8:11])
            if not row[2]:
                self._heads[branch] = self._head_of_base(*row[8:10])
                return
        if row and row[2] and not isinstance(row[3], int):
            raise DamagedStoreError(self._path, "a commit has lost its time")
        if row and row[2]:
            parts = self._parts(row[2], row[7]) if row[7] != b"" else ()  # most have none
            self._heads[branch] = Head(row[2], self._root(*row[4:7]), row[3], parts)
        else:
            self._heads[branch] = Head()

    def _head_of_base(self, number: int, seq: int) -> Head:
        """Return the head of a branch that has no commit of its own: the one that it continues."""
        sql = f"SELECT root, entry, page, time, {self._parts_column} FROM commits c WHERE branch = ? AND seq = ?"
        row = self._row(sql, (number, seq)) if seq else None
        if row is None and seq:
            base = self._row("SELECT base_branch, base_seq FROM branches WHERE number = ?", (number,))
            if base is None or base[0] is None or seq > base[1]:
                raise DamagedStoreError(self._path, f"commit {seq}, which a branch continues, is missing")
            return self._head_of_base(base[0], seq)
        return Head() if row is None else Head(seq, self._root(*row[:3]), row[3], self._parts(seq, row[4]))

    def _parts(self, seq: int, raw: bytes | None) -> tuple[PartHead, ...] | None:
        """Return the parts of a commit that were read. Raise DamagedStoreError if they are invalid."""
        if not raw:
            return None if raw is None else ()
        try:
            return decode_parts(raw)
        except ValueError as error:
            raise DamagedStoreError(self._path, f"commit {seq}: {error}") from error

    def _branch(self, branch: Branch) -> int | None:
        numbers = self._numbers_of(branch)
        return numbers.branch if numbers else None

    def setting(self, name: str) -> str | None:
        row = self._row("SELECT value FROM meta WHERE name = ?", (SETTING + name,))
        return None if row is None else str(row[0])

    def setting_names(self, first: str, before: str, limit: int | None = None) -> list[str]:
        sql = "SELECT name FROM meta WHERE name >= ? AND name < ? ORDER BY name LIMIT ?"
        bounds = SETTING + first, SETTING + before
        rows = self._sql(sql, (*bounds, _ALL if limit is None else limit))
        return [str(name).removeprefix(SETTING) for (name,) in rows]

    def settings(self, first: str, before: str) -> dict[str, str]:
        sql = "SELECT name, value FROM meta WHERE name >= ? AND name < ? ORDER BY name"
        rows = self._sql(sql, (SETTING + first, SETTING + before))
        return {str(name).removeprefix(SETTING): str(value) for name, value in rows}

    def branches(self) -> list[Branch]:
        rows = self._sql(
            "SELECT n.name, b.name FROM branches b JOIN namespaces n ON n.number = b.namespace "
            "WHERE EXISTS (SELECT 1 FROM commits c WHERE c.branch = b.number) ORDER BY 1, 2"
        )
        return [Branch(*row) for row in rows]

    def head(self, branch: Branch) -> Head:
        if branch not in self._heads:
            self._look_up(branch)
        return self._heads[branch]

    def get(self, branch: Branch, record_id: str) -> Stored | None:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.get(record_id)
        row = self._row(
            "SELECT v.hash, v.payload FROM heads h LEFT JOIN versions v ON v.number = h.version "
            "WHERE h.branch = ? AND h.id = ?",
            (self._branch(branch), record_id),
        )
        return self._stored(*row) if row else None

    def several(self, branch: Branch, record_ids: Sequence[str]) -> dict[str, Stored]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.several(record_ids)
        branch_number, out = self._branch(branch), {}
        for begin in range(0, len(record_ids), _IDS_PER_QUERY):
            ids = tuple(record_ids[begin : begin + _IDS_PER_QUERY])
            for record_id, digest, payload in self._rows_of(branch_number, ids):
                out[record_id] = self._stored(digest, payload)
        return out

    def _rows_of(self, branch: int | None, ids: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
        """Return the live records under some ids: the id, hash and payload of each."""
        sql = (
            "SELECT h.id, v.hash, v.payload FROM heads h LEFT JOIN versions v ON v.number = h.version "
            f"WHERE h.branch = ? AND h.id IN ({','.join('?' * len(ids))})"
        )
        return self._sql(sql, (branch, *ids))

    def resolve(self, branch: Branch, record_ids: Sequence[str], now: int) -> dict[str, Resolved]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.resolve(record_ids, now)
        branch_number, out = self._branch(branch), {}
        for begin in range(0, len(record_ids), _IDS_PER_QUERY):
            ids = tuple(record_ids[begin : begin + _IDS_PER_QUERY])
            rows = self._resolved_rows(branch_number, ids, now)
            for record_id, has_head, digest, payload, due, known in rows:
                stored = self._stored(digest, payload) if has_head else None
                out[record_id] = Resolved(bool(known), stored, bool(due))
        return out

    def _resolved_rows(self, branch: int | None, ids: tuple[str, ...], now: int) -> Iterator[tuple[Any, ...]]:
        """Return each id, whether it is live, its hash and payload, whether it is due, and whether it is known."""
        return self._rows(resolving(len(ids)), (*ids, now, branch, branch))

    def known(self, branch: Branch, record_id: str) -> bool:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.known(record_id)
        sql = "SELECT 1 FROM changes WHERE branch = ? AND id = ? LIMIT 1"
        return self._row(sql, (self._branch(branch), record_id)) is not None

    def select(
        self,
        branch: Branch,
        where: Filter,
        *,
        order: str = "newest",
        limit: int | None = None,
        after: SortKey | None = None,
        now: int,
    ) -> Iterator[Record]:
        if limit == 0:
            return
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            yield from of_base.select(where, order, limit, after, now)
            return
        if not self._composed:
            live = (Record.load(stored.payload) for _, stored in self.versions(branch))
            found = (each for each in live if not expired(each, now) and where.matches(each))
            yield from in_order(found, order, after)[:limit]
            return
        statements = (self.select_sql(branch, where, order, now, part) for part in rest(order, after, where))
        rows = chain.from_iterable(self._many(sql, parameters, limit) for sql, parameters in statements)
        exact = self._is_exact(where)
        yielded = 0
        for record_id, *row in rows:
            record = Record.load(self._stored(*row).payload)
            matches = where.matches(record)
            if record.id != record_id or (exact and not matches):
                # Pages that were swapped have valid checksums, but their contents do not match the rows that lead here.
                raise DamagedStoreError(self._path, f"the head of record {record_id!r} does not match its version")
            if matches:
                yield record
                yielded += 1
                if yielded == limit:
                    return

    def select_sql(
        self, branch: Branch, where: Filter, order: str, now: int, part: Sql = TRUE
    ) -> tuple[str, tuple[Any, ...]]:
        """Return the statement of `select` for one part of the order, and its parameters, also for EXPLAIN."""
        live, parameters = self._live(branch, where, now)
        order_by, after = _ORDER_BY[order], part.text
        if order == "last" and of_one_conversation(where):  # `rest` selects those without a position apart
            order_by = order_by.replace("h.position DESC NULLS LAST", "h.position DESC")
        if 'h."conversation"' in live or 'h."id"' in live:
            # The index of conversations is sorted by position, and that of ids by id. Without the plus, SQLite would
            # scan the whole namespace in order of time instead of sorting one conversation or a few records.
            order_by, after = order_by.replace("h.time", "+h.time"), after.replace("h.time", "+h.time")
        sql = (
            "SELECT h.id, v.hash, v.payload FROM heads h LEFT JOIN versions v ON v.number = h.version "
            f"WHERE {live} AND {after} ORDER BY {order_by}"
        )
        return sql, (*parameters, *part.parameters)

    def count(self, branch: Branch, where: Filter, *, now: int) -> int:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.count(where, now)
        if not self._is_exact(where):
            return sum(1 for _ in self.select(branch, where, order="id", now=now))
        live, parameters = self._live(branch, where, now)
        return int(next(self._sql(f"SELECT count(*) FROM heads h WHERE {live}", parameters))[0])

    def tally(self, branch: Branch, where: Filter, *, now: int) -> Tally:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.tally(where, now)
        if not self._is_exact(where):
            return tally_of(self.select(branch, where, order="id", now=now))
        live, parameters = self._live(branch, where, now)
        kinds = self._sql(f"SELECT h.kind, count(*) FROM heads h WHERE {live} GROUP BY 1 ORDER BY 1", parameters)
        rest = self._sql(
            "SELECT count(DISTINCT h.user), count(DISTINCT h.conversation), count(DISTINCT h.entity), "
            f"min(h.time), max(h.time) FROM heads h WHERE {live}",
            parameters,
        )
        return Tally(dict(kinds), *next(rest))

    def _is_exact(self, where: Filter) -> bool:
        """Return whether SQL can express the filter exactly."""
        if not self._composed:
            return False
        both = bounds(where)
        return both.upper == both.lower

    def _live(self, branch: Branch, where: Filter, now: int) -> tuple[str, tuple[Any, ...]]:
        """Return the condition on `heads h` for live records that may match a filter, and its parameters."""
        upper = bounds(where).upper
        condition = f"h.branch = ? AND (h.expires IS NULL OR h.expires > ?) AND {upper.text}"
        return condition, (self._branch(branch), now, *upper.parameters)

    def payload(self, branch: Branch, version: bytes) -> bytes | None:
        rows = self._sql(
            "SELECT v.payload FROM versions v JOIN namespaces n ON n.number = v.namespace "
            "WHERE n.name = ? AND v.hash = ? AND v.payload IS NOT NULL",
            (branch.namespace, version),
        )
        return next((self._stored(version, found).payload for (found,) in rows), None)

    def versions(self, branch: Branch) -> Iterator[tuple[str, Stored]]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            yield from of_base.versions()
            return
        rows = self._many(
            "SELECT h.id, v.hash, v.payload FROM heads h LEFT JOIN versions v ON v.number = h.version "
            "WHERE h.branch = ?",
            (self._branch(branch),),
        )
        for record_id, digest, payload in rows:
            yield record_id, self._stored(digest, payload)

    def nbytes(self, branch: Branch) -> int:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.nbytes()
        # SQLite takes the length of a blob from the row's header, and does not read its overflow pages.
        rows = self._sql(
            "SELECT coalesce(sum(length(v.payload)), 0) FROM heads h JOIN versions v ON v.number = h.version "
            "WHERE h.branch = ?",
            (self._branch(branch),),
        )
        return int(next(rows)[0])

    def last_position(self, branch: Branch, conversation: str, within: Filter = EVERYTHING) -> int | None:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.last_position(conversation, within)
        if not self._composed:
            turns = (record for record, _ in self._turns_of(branch, conversation) if within.matches(record))
            return max((turn.position for turn in turns if turn.position is not None), default=None)
        if not isinstance(within, Everything):
            upper = bounds(within).upper
            rows = self._rows(
                "SELECT h.position, v.payload FROM heads h JOIN versions v ON v.number = h.version "
                f"WHERE h.branch = ? AND h.conversation = ? AND h.position IS NOT NULL AND {upper.text} "
                "ORDER BY h.position DESC",
                (self._branch(branch), conversation, *upper.parameters),
            )
            return next((int(row[0]) for row in rows if within.matches(Record.load(row[1]))), None)
        found: int | None = self._value(
            "SELECT position FROM heads WHERE branch = ? AND conversation = ? "
            "ORDER BY position DESC NULLS LAST LIMIT 1",
            (self._branch(branch), conversation),
        )
        return found

    def turns_at(self, branch: Branch, conversation: str, position: int) -> list[Stored]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.turns_at(conversation, position)
        if not self._composed:
            return [stored for turn, stored in self._turns_of(branch, conversation) if turn.position == position]
        rows = self._rows(
            "SELECT v.hash, v.payload FROM heads h LEFT JOIN versions v ON v.number = h.version "
            "WHERE h.branch = ? AND h.conversation = ? AND h.position = ? ORDER BY +h.id",
            # Without the plus, SQLite would scan the whole branch in order of id instead of sorting a few rows.
            (self._branch(branch), conversation, position),
        )
        return [self._stored(*row) for row in rows]

    def _turns_of(self, branch: Branch, conversation: str) -> list[tuple[Record, Stored]]:
        """Return the records of a conversation and their versions by id, without the column of conversations."""
        every = [(Record.load(stored.payload), stored) for _, stored in self.versions(branch)]
        return sorted(
            (each for each in every if each[0].conversation == conversation), key=lambda each: each[0].id.encode()
        )

    def due(self, branch: Branch, now: int, limit: int) -> list[str]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.due(now, limit)
        sql = "SELECT id FROM heads WHERE branch = ? AND expires <= ? ORDER BY expires, id LIMIT ?"
        return [row[0] for row in self._rows(sql, (self._branch(branch), now, limit))]

    def next_expiry(self, branch: Branch, after: int) -> int | None:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.next_expiry(after)
        sql = "SELECT min(expires) FROM heads WHERE branch = ? AND expires > ?"
        found: int | None = self._value(sql, (self._branch(branch), after))
        return found

    def expiring_at(self, branch: Branch, end: int) -> list[str]:
        """Return the ids of the live records that expire at a time, in microseconds since 1970."""
        return [
            row[0]
            for row in self._rows("SELECT id FROM heads WHERE branch = ? AND expires = ?", (self._branch(branch), end))
        ]

    def latest_time(self) -> int | None:
        found: int | None = self._value(
            "SELECT max((SELECT c.time FROM commits c WHERE c.branch = b.number ORDER BY c.seq DESC LIMIT 1)) "
            "FROM branches b "
            "WHERE EXISTS (SELECT 1 FROM heads INDEXED BY heads_by_expiry WHERE expires IS NOT NULL)",
            (),
        )
        return found

    def changed(self, branch: Branch, since: int) -> list[str]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.changed(since)
        rows = self._sql(CHANGED, (self._branch(branch), since))
        return list(dict.fromkeys(row[0] for row in rows))

    def any_id(self, branch: Branch, first: str) -> bool:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.any_id(first)
        sql = "SELECT 1 FROM heads WHERE branch = ? AND id >= ? AND id < ? LIMIT 1"
        return self._value(sql, (self._branch(branch), first, chr(ord(first) + 1))) is not None

    def last_touched(self, branch: Branch, since: int, upto: int = _ALL) -> dict[str, int]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.last_touched(since, upto)
        rows = self._sql(
            "SELECT x.id, max(k.time) FROM commits k JOIN changes x ON x.branch = k.branch AND x.seq = k.seq "
            # Without the plus, SQLite would read all changes in order of id instead of sorting those of a few commits.
            "WHERE k.branch = ? AND k.seq > ? AND k.seq <= ? GROUP BY +x.id",
            (self._branch(branch), since, upto),
        )
        return {row[0]: row[1] for row in rows}

    def last_commits(self, branch: Branch, record_ids: Sequence[str], upto: int = _ALL) -> dict[str, int]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.last_commits(record_ids, upto)
        number, out = self._branch(branch), {}
        for begin in range(0, len(record_ids), _IDS_PER_QUERY):
            ids = tuple(record_ids[begin : begin + _IDS_PER_QUERY])
            sql = (
                "SELECT x.id, k.time FROM (SELECT id, max(seq) AS seq FROM changes "
                f"WHERE branch = ? AND seq <= ? AND id IN ({','.join('?' * len(ids))}) GROUP BY id) x "
                "JOIN commits k ON k.branch = ? AND k.seq = x.seq"
            )
            out.update(dict(self._sql(sql, (number, upto, *ids, number))))
        return out

    def commits(
        self,
        branch: Branch,
        since: int = 0,
        limit: int | None = None,
        record_id: str | None = None,
        *,
        before: int | None = None,
        newest_first: bool = False,
    ) -> Iterator[Commit]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            yield from of_base.commits(since, limit, record_id, before=before, newest_first=newest_first)
            return
        branch_number = self._branch(branch)
        touching = "" if record_id is None else "AND seq IN (SELECT seq FROM changes WHERE branch = ? AND id = ?)"
        rows = self._sql(
            f"SELECT seq, parents, time, actor, reason, root, entry, page, {self._parts_column} FROM commits c "
            f"WHERE branch = ? AND seq > ? AND seq < ? {touching} "
            f"ORDER BY seq {'DESC' if newest_first else 'ASC'} LIMIT ?",
            (
                branch_number,
                since,
                2**62 if before is None else before,
                *(() if record_id is None else (branch_number, record_id)),
                _ALL if limit is None else limit,
            ),
        )
        pending, size = list(rows), 1 if limit is None else min(max(limit, 1), _COMMITS_PER_QUERY)
        while pending:
            some, pending = pending[:size], pending[size:]
            changes = self._changes_of(branch_number, [row[0] for row in some])
            for seq, parents, time, actor, reason, root, entry, page, parts in some:
                yield Commit(
                    namespace=branch.namespace,
                    branch=branch.name,
                    seq=seq,
                    parents=implicit_parents(branch, seq) if parents is None else self._parents(seq, parents),
                    micros=time,
                    actor=actor,
                    reason=reason,
                    root=self._root(root, entry, page),
                    changes=tuple(changes.get(seq, ())),
                    entry=entry,
                    parts=self._parts(seq, parts),
                )
            size = min(4 * size, _COMMITS_PER_QUERY)

    def _changes_of(self, branch_number: int | None, seqs: Sequence[int]) -> dict[int, list[Change]]:
        """Return the changes of some commits, by seq."""
        out: dict[int, list[Change]] = {}
        rows = self._sql(
            "SELECT seq, id, before, after, cause FROM changes "
            f"WHERE branch = ? AND seq IN ({','.join('?' * len(seqs))}) ORDER BY seq, place",
            (branch_number, *seqs),
        )
        for seq, *change in rows:
            out.setdefault(seq, []).append(Change(*change))
        return out

    def _parents(self, seq: int, written: str) -> tuple[Parent, ...]:
        try:
            return decoded_parents(written)
        except ValueError as error:
            raise DamagedStoreError(self._path, f"commit {seq}: {error}") from error

    def root_at(self, branch: Branch, seq: int) -> bytes | None:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.root_at(seq)
        row = next(self._sql(ROOT_AT, (self._branch(branch), seq)), None)
        return None if row is None else self._root(*row).hash

    def entries(self, branch: Branch, since: int) -> Iterator[bytes]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            yield from of_base.entries(since)
            return
        rows = self._many(
            "SELECT entry FROM commits WHERE branch = ? AND seq > ? ORDER BY seq", (self._branch(branch), since)
        )
        for (entry,) in rows:
            yield entry

    def numbered(self, branch: Branch, numbers: Sequence[int]) -> dict[int, Version]:
        own, out = self._numbers_of(branch), {}
        for begin in range(0, len(numbers), _IDS_PER_QUERY):
            some = tuple(numbers[begin : begin + _IDS_PER_QUERY])
            sql = (
                "SELECT number, hash, payload FROM versions "
                # Without the plus, SQLite would read all versions of the namespace.
                f"WHERE number IN ({','.join('?' * len(some))}) AND +namespace = ?"
            )
            for number, digest, payload in self._sql(sql, (*some, own and own.namespace)):
                stored = None if payload is None else self._stored(digest, payload).payload
                out[number] = Version(digest, stored)
        return out

    def head_at(self, branch: Branch, seq: int) -> Head | None:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.head_at(seq)
        sql = f"SELECT root, entry, page, time, {self._parts_column} FROM commits c WHERE branch = ? AND seq = ?"
        row = next(self._sql(sql, (self._branch(branch), seq)), None)
        return None if row is None else Head(seq, Root(self._root(*row[:3]).hash), row[3], self._parts(seq, row[4]))

    def newest_with(self, branch: Branch, root: bytes, upto: int = _ALL) -> int | None:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.newest_with(root, upto)
        sql = f"SELECT seq, root, {self._parts_column} FROM commits c WHERE branch = ? AND seq <= ? ORDER BY seq DESC"
        rows = self._sql(sql, (self._branch(branch), upto))
        return next((seq for seq, own, parts in rows if root in (own, stated_root(own, self._parts(seq, parts)))), None)

    def versions_at(self, branch: Branch, record_ids: Sequence[str], seq: int) -> dict[str, bytes | None]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.versions_at(record_ids, seq)
        branch_number, out = self._branch(branch), {}
        # Without the hint, SQLite would read the log backwards until the id appears.
        sql = (
            "SELECT after FROM changes INDEXED BY changes_by_id "
            "WHERE branch = ? AND id = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
        )
        for record_id in record_ids:
            row = next(self._sql(sql, (branch_number, record_id, seq)), None)
            if row is not None:
                out[record_id] = row[0]
        return out

    def net_changes(self, branch: Branch, since: int, until: int) -> dict[str, tuple[bytes | None, bytes | None]]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.net_changes(since, until)
        rows = self._sql(
            "SELECT id, before, after FROM changes WHERE branch = ? AND seq > ? AND seq <= ? ORDER BY seq, place",
            (self._branch(branch), since, until),
        )
        return net(rows)

    def has_erased(self, branch: Branch, since: int) -> bool:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.has_erased(since)
        return next(self._sql(HAS_ERASED, (self._branch(branch), since)), None) is not None

    def erased_between(self, branch: Branch, since: int, upto: int) -> bool:
        """Return whether a commit after `since` and up to `upto` erased a record."""
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.erased_between(since, upto)
        sql = "SELECT 1 FROM changes WHERE branch = ? AND seq > ? AND seq <= ? AND cause = 'erased' LIMIT 1"
        return next(self._sql(sql, (self._branch(branch), since, upto)), None) is not None

    def versions_of(self, branch: Branch, record_id: str) -> list[Version]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.versions_of(record_id)
        numbers = self._numbers_of(branch)
        rows = self._sql(
            "SELECT hash, payload FROM versions WHERE namespace = ? AND hash IN "
            "(SELECT after FROM changes INDEXED BY changes_by_id WHERE branch = ? AND id = ?)",
            (numbers and numbers.namespace, numbers and numbers.branch, record_id),
        )
        return [Version(*row) for row in rows]

    def all_versions(self, branch: Branch) -> Iterator[bytes]:
        numbers = self._numbers_of(branch)
        sql = "SELECT payload FROM versions WHERE namespace = ? AND payload IS NOT NULL"
        for (payload,) in self._many(sql, (numbers and numbers.namespace,)):
            yield payload

    def payloads(self, branch: Branch, versions: Sequence[bytes]) -> dict[bytes, bytes]:
        own, out = self._numbers_of(branch), {}
        for begin in range(0, len(versions), _IDS_PER_QUERY):
            some = tuple(versions[begin : begin + _IDS_PER_QUERY])
            sql = (
                "SELECT hash, payload FROM versions "
                f"WHERE namespace = ? AND hash IN ({','.join('?' * len(some))}) AND payload IS NOT NULL"
            )
            for digest, payload in self._sql(sql, (own and own.namespace, *some)):
                out[digest] = self._stored(digest, payload).payload
        return out

    def removed(self, branch: Branch, versions: Sequence[bytes]) -> dict[bytes, RemovedPayload]:
        own, out = self._numbers_of(branch), {}
        for begin in range(0, len(versions), _IDS_PER_QUERY):
            some = tuple(versions[begin : begin + _IDS_PER_QUERY])
            sql = (
                "SELECT v.hash, r.cause, r.id FROM versions v JOIN removed_payloads r ON r.version = v.number "
                f"WHERE v.namespace = ? AND v.hash IN ({','.join('?' * len(some))}) AND v.payload IS NULL"
            )
            for digest, cause, record_id in self._sql(sql, (own and own.namespace, *some)):
                out[digest] = RemovedPayload(cause, record_id)
        return out

    def redactions(self, branch: Branch, seq: int) -> dict[str, bytes]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.redactions(seq)
        sql = "SELECT name, commitment FROM redactions WHERE branch = ? AND seq = ?"
        return dict(self._sql(sql, (self._branch(branch), seq)))

    def node(self, page: int) -> bytes:
        body = self._value("SELECT body FROM nodes WHERE place = ?", (page,))
        if body is None:
            raise self._missing(page)
        return bytes(body)

    def nodes(self, pages: Sequence[int]) -> dict[int, bytes]:
        out: dict[int, bytes] = {}
        for begin in range(0, len(pages), _PAGES_PER_QUERY):
            some = tuple(pages[begin : begin + _PAGES_PER_QUERY])
            sql = f"SELECT place, body FROM nodes WHERE place IN ({','.join('?' * len(some))})"
            out.update(self._rows(sql, some))
        if len(out) < len(pages):
            raise self._missing(next(page for page in pages if page not in out))
        return out

    def _missing(self, page: int) -> DamagedStoreError:
        return DamagedStoreError(self._path, f"page {page} of its Merkle trie is missing")

    def trimmed(self, branch: Branch) -> Trimmed:
        row = self._row("SELECT trimmed, kept, trimmed_changes FROM branches WHERE number = ?", (self._branch(branch),))
        return Trimmed(*row) if row else Trimmed()

    def untrimmed(self, branch: Branch, first: int, last: int) -> list[Untrimmed]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.untrimmed(first, last)
        rows = self._sql(
            "SELECT c.seq, c.page, c.replaced, "
            "(SELECT count(*) FROM changes x WHERE x.branch = c.branch AND x.seq = c.seq) "
            "FROM commits c WHERE c.branch = ? AND c.seq BETWEEN ? AND ? ORDER BY c.seq",
            (self._branch(branch), first, last),
        )
        try:
            return [Untrimmed(seq, page, decode_pages(replaced), changes) for seq, page, replaced, changes in rows]
        except (TypeError, ValueError) as error:
            raise DamagedStoreError(self._path, f"a commit has lost what it replaced: {error}") from error

    def stored_root(self, branch: Branch, seq: int, *, newer: bool = False) -> tuple[int, Root]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.stored_root(seq, newer=newer)
        which, order = (">=", "ASC") if newer else ("<=", "DESC")
        sql = (
            f"SELECT seq, root, entry, page FROM commits WHERE branch = ? AND seq {which} ? AND page IS NOT NULL "
            f"ORDER BY seq {order} LIMIT 1"
        )
        row = next(self._sql(sql, (self._branch(branch), seq)), None)
        return (row[0], self._root(*row[1:])) if row else (0, Root())

    def count_changes(self, branch: Branch, after: int, upto: int, limit: int) -> int:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.count_changes(after, upto, limit)
        sql = "SELECT count(*) FROM (SELECT 1 FROM changes WHERE branch = ? AND seq > ? AND seq <= ? LIMIT ?) x"
        return int(next(self._sql(sql, (self._branch(branch), after, upto, limit)))[0])

    def snapshots(self, branch: Branch) -> list[Snapshot]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            sql = "SELECT number, name, seq, time FROM snapshots WHERE branch = ? ORDER BY number DESC"
            return [of_base.snapshot_of(*row) for row in self._sql(sql, (self._branch(branch),))]
        rows = self._sql(
            f"SELECT s.number, s.name, s.seq, c.root, {self._parts_column}, s.time FROM snapshots s "
            "LEFT JOIN commits c ON c.branch = s.branch AND c.seq = s.seq WHERE s.branch = ? ORDER BY s.number DESC",
            (self._branch(branch),),
        )
        return [
            Snapshot(
                number=number,
                name=name,
                seq=seq,
                root=(stated_root(root, self._parts(seq, parts)) if seq else Head().memory_root).hex(),
                micros=micros,
            )
            for number, name, seq, root, parts, micros in rows
        ]

    def lives(self, branch: Branch, after: int, upto: int) -> dict[str, Live | None]:
        if branch.name != MAIN and (of_base := self._of_base(branch)) is not None:
            return of_base.lives(after, upto)
        numbers = self._numbers_of(branch)
        rows = self._many(
            "SELECT x.id, x.after, v.number FROM changes x "
            "LEFT JOIN versions v ON v.namespace = ? AND v.hash = x.after "
            "WHERE x.branch = ? AND x.seq > ? AND x.seq <= ? ORDER BY x.seq",
            (numbers and numbers.namespace, numbers and numbers.branch, after, upto),
        )
        # The last change of an id decides.
        found = {record_id: (version, number) for record_id, version, number in rows}
        out: dict[str, Live | None] = {}
        for record_id, (version, number) in found.items():
            if version is not None and number is None:
                raise DamagedStoreError(self._path, f"a version of record {record_id!r} is missing")
            out[record_id] = None if version is None else Live(version, number)
        return out


@cache
def resolving(count: int) -> str:
    """Return the statement that resolves this many ids."""
    return (
        f"WITH asked(id) AS (VALUES {','.join(['(?)'] * count)}) "
        "SELECT asked.id, h.id IS NOT NULL, v.hash, v.payload, h.expires <= ?, h.id IS NOT NULL OR "
        "EXISTS (SELECT 1 FROM changes c WHERE c.branch = ? AND c.id = asked.id) "
        "FROM asked LEFT JOIN heads h ON h.branch = ? AND h.id = asked.id "
        "LEFT JOIN versions v ON v.number = h.version"
    )
