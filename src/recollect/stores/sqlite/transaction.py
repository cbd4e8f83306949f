"""What is written in a transaction of the SQLite store: staged, and put into the tables in bulk.

A statement for each row would cost more than the rows themselves. So writes are kept here, by kind, until the
transaction ends, they grow large, or something is read that only the tables can tell; the point lookups of the write
path are answered from what is staged and the tables together, without that. `stores.sqlite` opens the transaction,
calls `finish`, and commits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import apsw

from recollect.errors import StoreIOError
from recollect.filters.tree import EVERYTHING, Filter
from recollect.ledger.commits import Branch, Commit, Head, Stored
from recollect.ledger.merkle import PUBLIC_KEY, Root
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.stores.base import check_seq
from recollect.stores.sqlite.errors import SQLITE_ERRORS, ours
from recollect.stores.sqlite.schema import COPIED, SETTING
from recollect.stores.sqlite.view import Numbers, SqliteView, usual_parents

#: So many bytes are staged at most: memory is bounded, and a disk that is full is noticed early.
_STAGED_BYTES = 2**16
_PUT_HEAD = (
    f"INSERT INTO heads (branch, id, version, {', '.join(COPIED)}, time, importance, expires) "
    f"VALUES (?, ?, (SELECT number FROM versions WHERE namespace = ? AND hash = ?), {', '.join('?' * len(COPIED))}, "
    "?, ?, ?) ON CONFLICT (branch, id) DO UPDATE SET version = excluded.version, "
    + ", ".join(f"{name} = excluded.{name}" for name in (*COPIED, "time", "importance", "expires"))
)
_copied = attrgetter(*COPIED)
#: The columns of `heads` that `head_fields` fills.
HEAD_COLUMNS = (*COPIED, "time", "importance", "expires")
#: A branch, and an id or the name of a conversation. (A line without a branch yet has nothing.)
_Key = tuple[int | None, str]


class _Put(NamedTuple):
    record: Record
    stored: Stored
    namespace: int


class SqliteTransaction(SqliteView):
    def __init__(self, connection: apsw.Connection, path: str, key: bytes = PUBLIC_KEY, trusted: int = 0) -> None:
        super().__init__(connection, path, key, trusted)
        self._connection = connection
        self._bytes = 0
        self._puts: dict[_Key, _Put | None] = {}  # by branch and id; None: dropped
        self._versions: dict[tuple[int, bytes], bytes] = {}  # payloads by namespace and hash
        self._places: dict[tuple[_Key, int], list[str]] = {}  # ids that were put at a place of a conversation
        self._nodes: dict[int, bytes] = {}
        self._commits: list[tuple[Any, ...]] = []
        self._changes: list[tuple[Any, ...]] = []
        self._next_page = 0
        # What is known of this transaction, staged or not:
        self._holds: dict[_Key, bool] = {}  # ids that it put or dropped
        self._absent: set[_Key] = set()  # ids that were asked for and are not live
        self._last: dict[_Key, dict[Filter, int | None]] = {}  # last positions of conversations
        self._named: set[tuple[int, bytes]] = set()  # versions that a commit names
        self._unnamed: set[tuple[int, bytes]] = set()  # versions that were put and that no commit names yet
        self._newest_before: int | None = None  # the number of the last version that others wrote, once some are here

    # Reading

    def check_open(self) -> None:
        """Raises: StoreIOError where an error has made SQLite undo the transaction: what came now would stand alone."""
        if not self._connection.in_transaction:
            raise StoreIOError(self._path, "the transaction was undone by an error before")

    def _row(self, sql: str, parameters: tuple[Any, ...]) -> tuple[Any, ...] | None:
        self.check_open()
        return super()._row(sql, parameters)

    def _rows(self, sql: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        self.check_open()
        return super()._rows(sql, parameters)

    def _sql(self, sql: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        self.flush()
        return super()._sql(sql, parameters)

    def _of(self, branch: Branch) -> Numbers | None:
        if branch not in self._numbers:  # every write asks for the head next
            self._look_up(branch)
        return self._numbers[branch]

    def several(self, branch: Branch, record_ids: Sequence[str]) -> dict[str, Stored]:
        found = ((record_id, self.get(branch, record_id)) for record_id in record_ids)  # what is staged too
        return {record_id: stored for record_id, stored in found if stored is not None}

    def get(self, branch: Branch, record_id: str) -> Stored | None:
        key = (self._branch(branch), record_id)
        if key in self._puts:
            put = self._puts[key]
            held = put.stored if put else None
        else:
            held = super().get(branch, record_id)
        if held is None:
            self._absent.add(key)
        return held

    def known(self, branch: Branch, record_id: str) -> bool:
        key = (self._branch(branch), record_id)
        if self._holds.get(key):
            return True
        if self._changes:
            self.flush()
        known = super().known(branch, record_id)
        if not known:
            self._absent.add(key)
        return known

    def never_known(self, branch: Branch, record_ids: Sequence[str]) -> set[str]:
        if self._changes:
            self.flush()
        branch_number = self._branch(branch)
        sql = (
            "SELECT value FROM json_each(?) "
            "WHERE NOT EXISTS (SELECT 1 FROM changes WHERE branch = ? AND id = value LIMIT 1)"
        )
        asked = [record_id for record_id in record_ids if not self._holds.get((branch_number, record_id))]
        unknown = {row[0] for row in self._rows(sql, (json.dumps(asked), branch_number))}
        self._absent.update((branch_number, record_id) for record_id in unknown)
        return unknown

    def count(self, branch: Branch, where: Filter, *, now: int) -> int:
        self.flush()
        return super().count(branch, where, now=now)

    def payload(self, branch: Branch, version: bytes) -> bytes | None:
        self.flush()
        return super().payload(branch, version)

    def last_position(self, branch: Branch, conversation: str, within: Filter = EVERYTHING) -> int | None:
        last = self._last.setdefault((self._branch(branch), conversation), {})
        if within not in last:
            self.flush()
            last[within] = super().last_position(branch, conversation, within)
        return last[within]

    def any_id(self, branch: Branch, first: str) -> bool:
        branch_number = self._branch(branch)
        staged = [
            (each, put) for (of, each), put in self._puts.items() if of == branch_number and each.startswith(first)
        ]
        if any(put is not None for _, put in staged):
            return True
        if staged:  # what was dropped is in the file until then
            self.flush()
        return super().any_id(branch, first)

    def turns_at(self, branch: Branch, conversation: str, position: int) -> list[Stored]:
        branch_number = self._branch(branch)
        held = [(Record.load(stored.payload).id, stored) for stored in super().turns_at(branch, conversation, position)]
        turns = {each: stored for each, stored in held if (branch_number, each) not in self._puts}
        for each in self._places.get(((branch_number, conversation), position), ()):
            put = self._puts[branch_number, each]
            if put and (put.record.conversation, put.record.position) == (conversation, position):
                turns[each] = put.stored
        return [turns[each] for each in sorted(turns)]

    def due(self, branch: Branch, now: int, limit: int) -> list[str]:
        branch_number = self._branch(branch)
        if any(put and put.record.expires is not None for put in self._puts.values()):
            self.flush()
        # What is staged now is either dropped or never due.
        due = (
            each
            for each in super().due(branch, now, limit + len(self._puts))
            if (branch_number, each) not in self._puts
        )
        return list(due)[:limit]

    def node(self, place: int) -> bytes:
        return self._nodes[place] if place in self._nodes else super().node(place)

    # Writing

    def _own(self, branch: Branch) -> Numbers:
        """The numbers of the line, made where it is the first write to it."""
        numbers = self._of(branch)
        if numbers is None:
            self._write("INSERT INTO namespaces (name) VALUES (?) ON CONFLICT DO NOTHING", [(branch.namespace,)])
            self._write(
                "INSERT INTO branches (namespace, name) SELECT number, ? FROM namespaces WHERE name = ?",
                [(branch.name, branch.namespace)],
            )
            del self._numbers[branch]
            numbers = self._of(branch)
        assert numbers is not None
        return numbers

    def put(self, branch: Branch, record: Record, stored: Stored) -> None:
        self.check_open()
        branch_number, namespace = self._own(branch)
        key, version = (branch_number, record.id), (namespace, stored.version)
        self._puts[key] = _Put(record, stored, namespace)
        self._versions[version] = stored.payload
        if version not in self._named:
            self._unnamed.add(version)
        self._holds[key] = True
        self._place(key, record)
        self._grow(len(stored.payload))

    def _place(self, key: _Key, record: Record) -> None:
        """Keep the places and the last positions right."""
        fresh = key in self._absent
        self._absent.discard(key)
        if not fresh:
            self._last.clear()  # it may have been moved away from a last place
        if record.conversation is not None and record.position is not None:
            conversation = (key[0], record.conversation)
            self._places.setdefault((conversation, record.position), []).append(record.id)
            last = self._last.get(conversation, {})
            for within, position in last.items():
                if within.matches(record):
                    last[within] = record.position if position is None else max(position, record.position)

    def drop(self, branch: Branch, record_id: str) -> None:
        self.check_open()
        key = (self._own(branch).branch, record_id)
        self._puts[key] = None
        self._holds[key] = False
        self._last.clear()

    def add_node(self, body: bytes) -> int:
        place = self._next_page or (self._value("SELECT max(place) FROM nodes", ()) or 0) + 1
        self._nodes[place] = body
        self._next_page = place + 1
        self._grow(len(body))
        return place

    def append(self, commit: Commit) -> None:
        self.check_open()
        branch = Branch(commit.namespace, commit.branch)
        check_seq(commit, self.head(branch))
        branch_number, namespace = self._own(branch)
        parents = None if commit.parents == usual_parents(branch, commit.seq) else json.dumps(commit.parents)
        root, place = commit.root
        self._commits.append(
            (branch_number, commit.seq, parents, commit.micros, commit.actor, commit.reason, root, place),
        )
        self._changes.extend((branch_number, commit.seq, place, *change) for place, change in enumerate(commit.changes))
        named = {(namespace, change.after) for change in commit.changes if change.after is not None}
        self._named |= named
        self._unnamed -= named
        self._heads[branch] = Head(commit.seq, Root(root, place), commit.micros)

    def set_setting(self, name: str, value: str | None) -> None:
        if value is None:
            self._write("DELETE FROM meta WHERE name = ?", [(SETTING + name,)])
        else:
            put = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
            self._write(put, [(SETTING + name, value)])

    # From the stage to the tables

    def _grow(self, size: int) -> None:
        self._bytes += size
        if self._bytes > _STAGED_BYTES:
            self.flush()

    def _write(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self.check_open()
        try:
            self._connection.executemany(sql, rows)
        except SQLITE_ERRORS as error:
            raise ours(self._path, error) from error

    def flush(self) -> None:
        """Put what is staged into the tables."""
        if self._versions and self._newest_before is None:
            self._newest_before = self._value("SELECT max(number) FROM versions", ()) or 0
        self._unstage(self._versions)

    def finish(self) -> None:
        """The same for the last time: keep no version that was written over, or dropped, before a commit named it."""
        self._unstage({key: payload for key, payload in self._versions.items() if key not in self._unnamed})
        if self._newest_before is not None and self._unnamed:
            own = "DELETE FROM versions WHERE namespace = ? AND hash = ? AND number > ?"
            self._write(own, [(*version, self._newest_before) for version in sorted(self._unnamed)])
        self.check_open()

    def _unstage(self, versions: dict[tuple[int, bytes], bytes]) -> None:
        if versions:
            self._write(
                "INSERT INTO versions (namespace, hash, payload) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                [(*key, payload) for key, payload in versions.items()],
            )
        if self._puts:
            dropped = [key for key, put in self._puts.items() if put is None]
            if dropped:
                self._write("DELETE FROM heads WHERE branch = ? AND id = ?", dropped)
            self._write(_PUT_HEAD, [_head_row(key, put) for key, put in self._puts.items() if put is not None])
        if self._nodes:
            self._write("INSERT INTO nodes (place, body) VALUES (?, ?)", list(self._nodes.items()))
        if self._commits:
            self._write("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?)", self._commits)
            self._write("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)", self._changes)
        for staged in (self._versions, self._puts, self._places, self._nodes, self._commits, self._changes):
            staged.clear()
        self._bytes = 0


def _head_row(key: _Key, put: _Put) -> tuple[Any, ...]:
    record = put.record
    return (
        *key,
        put.namespace,
        put.stored.version,
        *head_fields(record),
    )


def head_fields(record: Record) -> tuple[Any, ...]:
    """What a head keeps a copy of: the values of HEAD_COLUMNS."""
    return (
        *_copied(record),
        None if record.time is None else microseconds(record.time),
        record.importance,
        None if record.expires is None else microseconds(record.expires),
    )
