"""A write transaction of a store in SQL tables: writes are staged in memory and flushed to the tables in bulk.

One statement for each row would cost more than the rows themselves. Writes are therefore staged by kind until the
transaction ends, they exceed a limit, or a query needs the tables. Point lookups of the write path combine the staged
writes with the tables and need no flush. `stores.sql.group_writer` opens the transaction, calls `finish`, and commits.

Several threads may share one transaction of the database (group commit). Each has an object of this
class and a savepoint, and `finish` flushes before the savepoint is released: so nothing is staged when the connection
passes to the next thread, and that thread reads in the tables what those before it wrote.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from recollect.filters.tree import EVERYTHING, Filter
from recollect.ledger.commits import Branch, Commit, Head, Snapshot, Stored
from recollect.ledger.merkle import Root, redacted_id
from recollect.ledger.parts import encode_parts
from recollect.records.record import Record
from recollect.stores.sql.columns import (
    HEAD_COLUMNS,
    SETTING,
    encode_pages,
    encoded_parents,
    head_fields,
    implicit_parents,
)
from recollect.stores.sql.view import BRANCH, Numbers, SqlView
from recollect.stores.values import RemovedPayload, Resolved, Trimmed, check_seq, expired

#: Maximum number of staged bytes, so that memory is bounded and a full disk is noticed early.
_STAGED_BYTES = 2**16
_NEWEST = ", (SELECT max(number) FROM versions), (SELECT max(place) FROM nodes)"
_COLUMNS = tuple(f'"{name}"' for name in HEAD_COLUMNS)  # quoted, as "user" is a word of PostgreSQL
_PUT_HEAD = (
    f"INSERT INTO heads (branch, id, version, {', '.join(_COLUMNS)}) "
    f"VALUES (?, ?, ?, {', '.join('?' * len(_COLUMNS))}) "
    "ON CONFLICT (branch, id) DO UPDATE SET version = excluded.version, "
    + ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS)
)
#: A version that has lost its payload gets it back: the caller has stored the same record again.
_PUT_VERSION = (
    "INSERT INTO versions (number, namespace, hash, payload) VALUES (?, ?, ?, ?) ON CONFLICT (namespace, hash) "
    "DO UPDATE SET payload = excluded.payload WHERE versions.payload IS NULL"
)
#: The number of a branch (None if it does not exist yet), and an id or the name of a conversation.
_Key = tuple[int | None, str]


class _Put(NamedTuple):
    record: Record
    stored: Stored
    number: int  # of the version


class SqlTransaction(SqlView):
    """A `Transaction` in SQL tables. A subclass also inherits the view of its store, which has the arguments."""

    #: What `meta` states as the least reader and writer of a store with a branch that continues another one.
    _branched_format: ClassVar[int | str]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._bytes = 0
        self._puts: dict[_Key, _Put | None] = {}  # by branch and id; None: dropped
        self._versions: dict[tuple[int, bytes], tuple[int, bytes]] = {}  # number and payload, by namespace and hash
        self._turns: dict[tuple[_Key, int], list[str]] = {}  # ids by conversation and position
        self._nodes: dict[int, bytes] = {}
        self._commits: list[tuple[Any, ...]] = []
        self._changes: list[tuple[Any, ...]] = []
        self._next_page = 0
        self._next_version = 0
        # Facts about this transaction, which stay after a flush:
        self._written: dict[_Key, bool] = {}  # ids that it has put (True) or dropped (False)
        self._absent: set[_Key] = set()  # ids that were looked up and are not live
        self._last: dict[_Key, dict[Filter, int | None]] = {}  # last positions of conversations
        self._named: set[tuple[int, bytes]] = set()  # versions that a commit names
        self._unnamed: set[tuple[int, bytes]] = set()  # versions that were put and that no commit names yet
        self._newest_before = 0  # the number of the newest version before the first `put`
        self._flushed_versions = False
        self._restored: dict[tuple[int, bytes], int] = {}  # versions without payload that were put again

    # Reading

    @abstractmethod
    def check_open(self) -> None:
        """Raise StoreIOError if the database rolled the transaction back after an error."""

    @abstractmethod
    def _write(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run a statement that writes, once for each row of values."""

    def _sql(self, sql: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        self.flush()
        return super()._sql(sql, parameters)

    def _branch_row(self, branch: Branch) -> tuple[Any, ...] | None:
        row = self._row(BRANCH.format(self._parts_column, _NEWEST), branch)
        if row and not self._next_version and not self._next_page:  # every write needs these numbers, too
            self._newest_before = row[11] or 0
            self._next_version, self._next_page = self._newest_before + 1, (row[12] or 0) + 1
        return row

    def _numbers_of(self, branch: Branch) -> Numbers | None:
        if branch not in self._numbers:  # every write needs the head next
            self._look_up(branch)
        return self._numbers[branch]

    def several(self, branch: Branch, record_ids: Sequence[str]) -> dict[str, Stored]:
        found = ((record_id, self.get(branch, record_id)) for record_id in record_ids)  # includes staged writes
        return {record_id: stored for record_id, stored in found if stored is not None}

    def get(self, branch: Branch, record_id: str) -> Stored | None:
        key = (self._branch(branch), record_id)
        if key in self._puts:
            put = self._puts[key]
            stored = put.stored if put else None
        else:
            stored = super().get(branch, record_id)
        if stored is None:
            self._absent.add(key)
        return stored

    def known(self, branch: Branch, record_id: str) -> bool:
        key = (self._branch(branch), record_id)
        if self._written.get(key):
            return True
        if self._changes:
            self.flush()
        known = super().known(branch, record_id)
        if not known:
            self._absent.add(key)
        return known

    def resolve(self, branch: Branch, record_ids: Sequence[str], now: int) -> dict[str, Resolved]:
        if self._changes:
            self.flush()
        branch_number = self._branch(branch)
        out: dict[str, Resolved] = {}
        for record_id in record_ids:
            if (branch_number, record_id) in self._puts:
                stored = self.get(branch, record_id)
                due = stored is not None and expired(Record.load(stored.payload), now)
                out[record_id] = Resolved(stored is not None or self.known(branch, record_id), stored, due)
        out |= super().resolve(branch, [each for each in record_ids if each not in out], now)
        self._absent.update((branch_number, each) for each, found in out.items() if found.stored is None)
        return out

    def last_position(self, branch: Branch, conversation: str, within: Filter = EVERYTHING) -> int | None:
        last = self._last.setdefault((self._branch(branch), conversation), {})
        if within not in last:
            self.flush()
            last[within] = super().last_position(branch, conversation, within)
        return last[within]

    def any_id(self, branch: Branch, first: str) -> bool:
        branch_number = self._branch(branch)
        staged = [
            put for (number, each), put in self._puts.items() if number == branch_number and each.startswith(first)
        ]
        if any(put is not None for put in staged):
            return True
        if staged:  # the tables still have what was dropped
            self.flush()
        return super().any_id(branch, first)

    def turns_at(self, branch: Branch, conversation: str, position: int) -> list[Stored]:
        branch_number = self._branch(branch)
        rows = [(Record.load(stored.payload).id, stored) for stored in super().turns_at(branch, conversation, position)]
        turns = {each: stored for each, stored in rows if (branch_number, each) not in self._puts}
        for each in self._turns.get(((branch_number, conversation), position), ()):
            put = self._puts[branch_number, each]
            if put and (put.record.conversation, put.record.position) == (conversation, position):
                turns[each] = put.stored
        return [turns[each] for each in sorted(turns)]

    def due(self, branch: Branch, now: int, limit: int) -> list[str]:
        branch_number = self._branch(branch)
        if any(put and put.record.expires is not None for put in self._puts.values()):
            self.flush()
        # Every staged id is now either dropped or has no expiry.
        due = (
            each
            for each in super().due(branch, now, limit + len(self._puts))
            if (branch_number, each) not in self._puts
        )
        return list(due)[:limit]

    def node(self, page: int) -> bytes:
        return self._nodes[page] if page in self._nodes else super().node(page)

    def nodes(self, pages: Sequence[int]) -> dict[int, bytes]:
        staged = {page: self._nodes[page] for page in pages if page in self._nodes}
        return staged | super().nodes([page for page in pages if page not in staged])

    # Writing

    def _numbers_for_write(self, branch: Branch) -> Numbers:
        """Return the numbers of a branch. Create the branch if this is the first write to it."""
        numbers = self._numbers_of(branch)
        if numbers is None:
            self._write("INSERT INTO namespaces (name) VALUES (?) ON CONFLICT DO NOTHING", [(branch.namespace,)])
            self._write(
                "INSERT INTO branches (namespace, name) SELECT number, ? FROM namespaces WHERE name = ?",
                [(branch.name, branch.namespace)],
            )
            del self._numbers[branch]
            numbers = self._numbers_of(branch)
        assert numbers is not None
        return numbers

    def continue_from(self, branch: Branch, base: Branch, seq: int) -> None:
        self.flush()
        numbers = self._numbers_for_write(base)
        assert self._numbers_of(branch) is None
        row = (numbers.namespace, branch.name, numbers.branch, seq, -1)
        # -1: until it has heads of its own (`Numbers.kept`).
        self._write("INSERT INTO branches (namespace, name, base_branch, base_seq, kept) VALUES (?, ?, ?, ?, ?)", [row])
        needed = "UPDATE meta SET value = ? WHERE name IN ('least_reader', 'least_writer')"
        self._write(needed, [(self._branched_format,)])
        self._forget_numbers(branch)

    def _forget_numbers(self, branch: Branch) -> None:
        for known in (self._numbers, self._heads, self._continued):
            known.pop(branch, None)

    def take_heads(self, branch: Branch) -> dict[str, bytes]:
        self.flush()
        of_base, numbers = self._of_base(branch), self._numbers_of(branch)
        assert of_base is not None
        assert numbers is not None
        assert not of_base.own_heads
        base, seq = self._numbers_of(of_base.base), of_base.seq
        assert base is not None
        columns = ", ".join(_COLUMNS)
        unchanged = (
            f"INSERT INTO heads (branch, id, version, {columns}) SELECT ?, h.id, h.version, "
            + ", ".join(f"h.{name}" for name in _COLUMNS)
            + " FROM heads h WHERE h.branch = ? AND NOT EXISTS (SELECT 1 FROM changes x WHERE x.branch = h.branch "
            "AND x.id = h.id AND x.seq > ?)"
        )
        changed = self.changed(of_base.base, seq)
        former = self.versions_at(of_base.base, changed, seq)
        stored = of_base.several(changed)
        self._write(unchanged, [(numbers.branch, base.branch, seq)])
        rows = []
        for record_id, found in stored.items():
            number = self._version_number((numbers.namespace, found.version), (numbers.branch, record_id))
            rows.append(_head_row((numbers.branch, record_id), _Put(Record.load(found.payload), found, number)))
        if rows:
            self._write(_PUT_HEAD, rows)
        state = "UPDATE branches SET trimmed = ?, kept = ?, trimmed_changes = 0 WHERE number = ?"
        self._write(state, [(seq, seq, numbers.branch)])
        self._forget_numbers(branch)
        return {each: version for each, version in former.items() if version is not None and each not in stored}

    def remove(self, branch: Branch, pages: Sequence[int]) -> None:
        self.flush()
        numbers = self._numbers_of(branch)
        assert numbers is not None
        assert numbers.base is not None
        # By id, for which there is an index: a version belongs to one record.
        only_here = (
            "SELECT v.number, x.id FROM changes x JOIN versions v ON v.namespace = ? AND v.hash = x.after "
            "WHERE x.branch = ? AND NOT EXISTS (SELECT 1 FROM branches b "
            "JOIN changes y ON y.branch = b.number AND y.id = x.id AND y.after = x.after "
            "WHERE b.namespace = ? AND b.number <> ?)"
        )
        rows = self._sql(only_here, (numbers.namespace, numbers.branch, numbers.namespace, numbers.branch))
        texts = sorted(dict(rows))
        self._write("DELETE FROM removed_payloads WHERE version = ?", [(number,) for number in texts])
        self._write("DELETE FROM heads WHERE branch = ?", [(numbers.branch,)])
        self._write("DELETE FROM versions WHERE number = ?", [(number,) for number in texts])
        for table in ("changes", "commits", "redactions", "snapshots"):
            self._write(f"DELETE FROM {table} WHERE branch = ?", [(numbers.branch,)])
        self._drop_nodes(pages)
        self._write("DELETE FROM branches WHERE number = ?", [(numbers.branch,)])
        self._forget_numbers(branch)

    def put(self, branch: Branch, record: Record, stored: Stored) -> int:
        self.check_open()
        branch_number, namespace = self._numbers_for_write(branch)[:2]
        key, version = (branch_number, record.id), (namespace, stored.version)
        number = self._version_number(version, key)
        self._puts[key] = _Put(record, stored, number)
        self._versions[version] = number, stored.payload
        if version not in self._named:
            self._unnamed.add(version)
        self._written[key] = True
        self._note_position(key, record)
        self._grow(len(stored.payload))
        return number

    def _version_number(self, version: tuple[int, bytes], key: _Key) -> int:
        """Return the number of a version, a new one if it was never stored.

        Args:
            version: The number of its namespace, and its hash.
            key: The number of the branch, and the id.
        """
        if version in self._versions:
            return self._versions[version][0]
        sql = "SELECT number, payload IS NULL FROM versions WHERE namespace = ? AND hash = ?"
        row = self._row(sql, version)
        if row is not None:
            if row[1]:
                self._restored[version] = row[0]
            return int(row[0])
        if not self._next_version:
            self._newest_before = self._value("SELECT max(number) FROM versions", ()) or 0
            self._next_version = self._newest_before + 1
        self._next_version += 1
        return self._next_version - 1

    def _note_position(self, key: _Key, record: Record) -> None:
        """Update the turns by position and the last positions."""
        new = key in self._absent
        self._absent.discard(key)
        if not new:
            self._last.clear()  # the record may have had a last position
        if record.conversation is not None and record.position is not None:
            conversation = (key[0], record.conversation)
            self._turns.setdefault((conversation, record.position), []).append(record.id)
            last = self._last.get(conversation, {})
            for within, position in last.items():
                if within.matches(record):
                    last[within] = record.position if position is None else max(position, record.position)

    def drop(self, branch: Branch, record_id: str) -> None:
        self.check_open()
        key = (self._numbers_for_write(branch).branch, record_id)
        self._puts[key] = None
        self._written[key] = False
        self._last.clear()

    def add_node(self, body: bytes) -> int:
        page = self._next_page or (self._value("SELECT max(place) FROM nodes", ()) or 0) + 1
        self._nodes[page] = body
        self._next_page = page + 1
        self._grow(len(body))
        return page

    def append(self, commit: Commit, replaced: Sequence[int] = ()) -> None:
        self.check_open()
        branch = Branch(commit.namespace, commit.branch)
        check_seq(commit, self.head(branch))
        branch_number, namespace = self._numbers_for_write(branch)[:2]
        parents = None if commit.parents == implicit_parents(branch, commit.seq) else encoded_parents(commit.parents)
        root, page = commit.root
        texts, pages = (commit.actor, commit.reason), encode_pages(replaced)
        stated = None if commit.parts is None else encode_parts(commit.parts) if commit.parts else b""
        parts = (stated,) if self.binds_parts else ()
        self._commits.append(
            (branch_number, commit.seq, parents, commit.micros, *texts, root, commit.entry, page, pages, *parts)
        )
        self._changes.extend((branch_number, commit.seq, index, *change) for index, change in enumerate(commit.changes))
        named = {(namespace, change.after) for change in commit.changes if change.after is not None}
        self._named |= named
        self._unnamed -= named
        self._heads[branch] = Head(commit.seq, Root(root, page), commit.micros, commit.parts)

    def set_setting(self, name: str, value: str | None) -> None:
        if value is None:
            self._write("DELETE FROM meta WHERE name = ?", [(SETTING + name,)])
        else:
            put = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
            self._write(put, [(SETTING + name, value)])

    def remove_settings(self, first: str, before: str, limit: int | None = None) -> int:
        names = self.setting_names(first, before, limit)
        self._write("DELETE FROM meta WHERE name = ?", [(SETTING + name,) for name in names])
        return len(names)

    def put_snapshot(self, branch: Branch, snapshot: Snapshot) -> None:
        self.flush()
        row = (self._numbers_for_write(branch).branch, snapshot.number, snapshot.name, snapshot.seq, snapshot.micros)
        self._write("INSERT INTO snapshots VALUES (?, ?, ?, ?, ?)", [row])

    def drop_snapshot(self, branch: Branch, number: int) -> None:
        key = (self._numbers_for_write(branch).branch, number)
        self._write("DELETE FROM snapshots WHERE branch = ? AND number = ?", [key])

    def drop_roots(self, branch: Branch, seqs: Sequence[int], pages: Sequence[int], trimmed: Trimmed) -> None:
        self.flush()
        number = self._numbers_for_write(branch).branch
        self._write(
            "UPDATE commits SET page = NULL, replaced = NULL WHERE branch = ? AND seq = ?",
            [(number, seq) for seq in seqs],
        )
        self._drop_nodes(pages)
        state = "UPDATE branches SET trimmed = ?, kept = ?, trimmed_changes = ? WHERE number = ?"
        self._write(state, [(*trimmed, number)])

    def _drop_nodes(self, pages: Sequence[int]) -> None:
        self._write("DELETE FROM nodes WHERE place = ?", [(page,) for page in pages])

    def erase(self, branch: Branch, record_id: str, versions: Sequence[bytes], *, redact: bool) -> None:
        self.flush()
        branch_number, namespace = self._numbers_for_write(branch)[:2]
        self._remove_payloads(namespace, versions, "erased", None if redact else record_id)
        if redact:
            # By version, as an earlier erasure may have noted the id. Without the hints, SQLite would read all changes.
            former = (
                "UPDATE removed_payloads SET id = NULL WHERE version IN "
                "(SELECT v.number FROM changes x INDEXED BY changes_by_id "
                "JOIN versions v ON v.namespace = ? AND v.hash = x.after WHERE x.branch = ? AND x.id = ?)"
            )
            self._write(former, [(namespace, branch_number, record_id)])
            replaced = "UPDATE changes INDEXED BY changes_by_id SET id = ? WHERE branch = ? AND id = ?"
            self._write(replaced, [(redacted_id(record_id), branch_number, record_id)])
        self._written.pop((branch_number, record_id), None)

    def thin(self, branch: Branch, record_id: str, versions: Sequence[bytes]) -> None:
        self.flush()
        self._remove_payloads(self._numbers_for_write(branch).namespace, versions, "thinned", record_id)

    def _remove_payloads(self, namespace: int, versions: Sequence[bytes], cause: str, record_id: str | None) -> None:
        """Remove the payloads of versions that have one, and note why."""
        assert cause in ("erased", "thinned")
        noted = (
            f"INSERT INTO removed_payloads SELECT number, '{cause}', ? FROM versions "
            "WHERE namespace = ? AND hash = ? AND payload IS NOT NULL"
        )
        keys = [(namespace, version) for version in versions]
        self._write(noted, [(record_id, *key) for key in keys])
        self._write("UPDATE versions SET payload = NULL WHERE namespace = ? AND hash = ?", keys)

    def put_removed(self, branch: Branch, version: bytes, removed: RemovedPayload) -> int:
        self.flush()
        branch_number, namespace = self._numbers_for_write(branch)[:2]
        key = namespace, version
        number = self._version_number(key, (branch_number, removed.id or ""))
        self._restored.pop(key, None)
        self._write("INSERT INTO versions VALUES (?, ?, ?, NULL) ON CONFLICT DO NOTHING", [(number, *key)])
        noted = "INSERT INTO removed_payloads VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        self._write(noted, [(number, *removed)])
        return number

    def redact(self, branch: Branch, seq: int, commitments: Mapping[str, bytes]) -> None:
        self.flush()
        number = self._numbers_for_write(branch).branch
        for name, commitment in commitments.items():
            assert name in ("actor", "reason")
            self._write(f"UPDATE commits SET {name} = NULL WHERE branch = ? AND seq = ?", [(number, seq)])
            self._write("INSERT INTO redactions VALUES (?, ?, ?, ?)", [(number, seq, name, commitment)])

    # Flushing

    def _grow(self, size: int) -> None:
        self._bytes += size
        if self._bytes > _STAGED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write everything that is staged to the tables."""
        self._flushed_versions = self._flushed_versions or bool(self._versions)
        self._write_staged(self._versions)

    def finish(self) -> None:
        """Flush for the last time. Versions that were replaced or dropped before a commit named them are not stored."""
        self._write_staged({key: each for key, each in self._versions.items() if key not in self._unnamed})
        if self._flushed_versions and self._next_version and self._unnamed:
            own = "DELETE FROM versions WHERE namespace = ? AND hash = ? AND number > ?"
            self._write(own, [(*version, self._newest_before) for version in sorted(self._unnamed)])
        for version, number in self._restored.items():
            if version in self._unnamed:
                self._write("UPDATE versions SET payload = NULL WHERE number = ?", [(number,)])
            else:
                self._write("DELETE FROM removed_payloads WHERE version = ?", [(number,)])
        self.check_open()

    def _write_staged(self, versions: dict[tuple[int, bytes], tuple[int, bytes]]) -> None:
        if versions:
            self._write(_PUT_VERSION, [(number, *key, payload) for key, (number, payload) in versions.items()])
        if self._puts:
            dropped = [key for key, put in self._puts.items() if put is None]
            if dropped:
                self._write("DELETE FROM heads WHERE branch = ? AND id = ?", dropped)
            self._write(_PUT_HEAD, [_head_row(key, put) for key, put in self._puts.items() if put is not None])
        if self._nodes:
            self._write("INSERT INTO nodes (place, body) VALUES (?, ?)", list(self._nodes.items()))
        if self._commits:
            columns = ", ".join("?" * len(self._commits[0]))
            self._write(f"INSERT INTO commits VALUES ({columns})", self._commits)
            self._write("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)", self._changes)
        for staged in (self._versions, self._puts, self._turns, self._nodes, self._commits, self._changes):
            staged.clear()
        self._bytes = 0


def _head_row(key: _Key, put: _Put) -> tuple[Any, ...]:
    record = put.record
    return (
        *key,
        put.number,
        *head_fields(record),
    )
