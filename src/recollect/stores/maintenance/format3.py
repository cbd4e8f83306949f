"""The conversion of the tables of formats 1 and 2 into those of format 3.

In format 3, leaves of the Merkle trie bind paths instead of ids, so every root is another one. Each is recomputed from
the log, after the old one has been compared with it. Only the pages of some roots are stored (`stores.old_roots`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import apsw

from recollect.errors import CodecError, DamagedStoreError
from recollect.ledger.commits import Branch, Change, Commit
from recollect.ledger.entries import entry_hash
from recollect.ledger.former import former_leaf
from recollect.ledger.merkle import Live, Root, Trie, version_hash
from recollect.records.record import Record
from recollect.stores.old_roots import KEPT_EVERY
from recollect.stores.sqlite.schema import STATEMENTS
from recollect.stores.sqlite.view import decoded_parents, implicit_parents

#: The formats that are converted, and their tables.
FORMER = (1, 2)
FORMER_TABLES = """
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY
) STRICT, WITHOUT ROWID;

CREATE TABLE namespaces (
    number INTEGER PRIMARY KEY,
    name   TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE branches (
    number    INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL REFERENCES namespaces,
    name      TEXT NOT NULL,
    UNIQUE (namespace, name)
) STRICT;

CREATE TABLE commits (
    branch  INTEGER NOT NULL REFERENCES branches,
    seq     INTEGER NOT NULL,
    parents TEXT,
    time    INTEGER NOT NULL,
    actor   TEXT,
    reason  TEXT,
    root    BLOB NOT NULL,
    page    INTEGER NOT NULL,
    PRIMARY KEY (branch, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE changes (
    branch INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    place  INTEGER NOT NULL,
    id     TEXT NOT NULL,
    before BLOB,
    after  BLOB,
    cause  TEXT NOT NULL,
    PRIMARY KEY (branch, seq, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX changes_by_id ON changes (branch, id);

CREATE TABLE versions (
    number    INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL,
    hash      BLOB NOT NULL,
    payload   BLOB,
    UNIQUE (namespace, hash)
) STRICT;

CREATE TABLE heads (
    number       INTEGER PRIMARY KEY,
    branch       INTEGER NOT NULL,
    id           TEXT NOT NULL,
    version      INTEGER NOT NULL REFERENCES versions,
    kind         TEXT NOT NULL,
    role         TEXT,
    speaker      TEXT,
    user         TEXT,
    agent        TEXT,
    conversation TEXT,
    session      TEXT,
    position     INTEGER,
    entity       TEXT,
    source       TEXT,
    time         INTEGER,
    importance   REAL,
    expires      INTEGER,
    UNIQUE (branch, id)
) STRICT;
CREATE INDEX heads_by_time ON heads (branch, time);
CREATE INDEX heads_by_kind ON heads (branch, kind, time);
CREATE INDEX heads_by_user ON heads (branch, user, time) WHERE user IS NOT NULL;
CREATE INDEX heads_by_conversation ON heads (branch, conversation, position) WHERE conversation IS NOT NULL;
CREATE INDEX heads_by_expiry ON heads (branch, expires) WHERE expires IS NOT NULL;
CREATE INDEX heads_by_entity ON heads (branch, entity, time) WHERE entity IS NOT NULL;

CREATE TABLE nodes (
    place INTEGER PRIMARY KEY,
    body  BLOB NOT NULL
) STRICT;
"""
#: The tables that have another definition now, and the indexes of `heads`.
_CHANGED = ("branches", "commits", "heads", "nodes")
_HEAD_INDEXES = tuple(f"heads_by_{name}" for name in ("time", "kind", "user", "conversation", "expiry", "entity"))
#: Number of commits whose rows are inserted at a time.
_AT_ONCE = 1000


def move_tables(connection: apsw.Connection) -> None:
    """Rename the tables that change, and create the new ones."""
    connection.execute("PRAGMA legacy_alter_table = ON").fetchall()  # leave what refers to them as it is
    for name in _CHANGED:
        connection.execute(f"ALTER TABLE {name} RENAME TO former_{name}")
    connection.execute("PRAGMA legacy_alter_table = OFF").fetchall()
    for name in _HEAD_INDEXES:
        connection.execute(f"DROP INDEX {name}")
    present = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    for name, statement in STATEMENTS.items():
        if name not in present:
            connection.execute(statement)
    connection.execute("INSERT INTO branches (number, namespace, name) SELECT * FROM former_branches")
    connection.execute("INSERT INTO heads SELECT * FROM former_heads")


def drop_former_tables(connection: apsw.Connection) -> None:
    """Drop the renamed tables."""
    for name in reversed(_CHANGED):
        connection.execute(f"DROP TABLE former_{name}")


@dataclass
class _Pages:
    """The pages of a trie: those of the newest root that are not stored, in memory, and the stored ones."""

    connection: apsw.Connection
    number: int = 0  # of the newest page
    unsaved: dict[int, bytes] = field(default_factory=dict)

    def node(self, page: int) -> bytes:
        body = self.unsaved.get(page)
        if body is None:
            body = next(self.connection.execute("SELECT body FROM nodes WHERE place = ?", (page,)))[0]
        return bytes(body)

    def add_node(self, body: bytes) -> int:
        self.number += 1
        self.unsaved[self.number] = body
        return self.number

    def discard(self, pages: list[int]) -> None:
        """Discard pages that the newest root does not have, unless they are those of a stored one."""
        for page in pages:
            self.unsaved.pop(page, None)

    def save(self) -> None:
        """Store the pages of the newest root."""
        self.connection.executemany("INSERT INTO nodes VALUES (?, ?)", sorted(self.unsaved.items()))
        self.unsaved.clear()


class Recomputing:
    """The recomputation of all roots.

    Args:
        connection: A connection in a transaction, after `move_tables`.
        path: The file, for messages.
        key: The store's key.
        step: Called with a name before each batch of commits.
    """

    def __init__(self, connection: apsw.Connection, path: str, key: bytes, step: Callable[[str], object]) -> None:
        self._connection = connection
        self._path = path
        self._key = key
        self._step = step
        self._pages = _Pages(connection)

    def run(self) -> None:
        """Verify all versions and old roots, and write the commits with their new roots.

        Raises:
            DamagedStoreError: A version or a root does not match its hash.
        """
        self._verify_versions()
        for number, namespace, name in self._rows("SELECT number, namespace, name FROM branches ORDER BY number"):
            self._branch(number, namespace, name)

    def _rows(self, sql: str, *parameters: Any) -> Iterator[Any]:
        return iter(self._connection.execute(sql, parameters))

    def _verify_versions(self) -> None:
        for number, digest, payload in self._rows("SELECT number, hash, payload FROM versions"):
            try:
                intact = version_hash(Record.from_bytes(payload).id, payload, self._key) == digest
            except (CodecError, TypeError):
                intact = False
            if not intact:
                raise DamagedStoreError(self._path, f"version {number} does not match its hash")

    def _branch(self, number: int, namespace: int, name: str) -> None:
        former, former_pages = Trie(Root(), former_leaf), _Pages(self._connection)
        trie = Trie(Root())
        seq = kept = since_kept = 0
        rows: list[tuple[Any, ...]] = []
        changes = groupby(
            self._rows(
                "SELECT c.seq, c.id, c.before, c.after, c.cause, v.number FROM changes c "
                "LEFT JOIN versions v ON v.namespace = ? AND v.hash = c.after WHERE c.branch = ? "
                "ORDER BY c.seq, c.place",
                namespace,
                number,
            ),
            itemgetter(0),
        )
        sql = "SELECT seq, parents, time, actor, reason, root FROM former_commits WHERE branch = ? ORDER BY seq"
        for row, (changed_in, made) in zip(self._rows(sql, number), changes, strict=False):
            if row[0] != seq + 1 or changed_in != row[0]:
                raise DamagedStoreError(
                    self._path, f"commit {seq + 1} of branch {number}, or what it changed, is missing"
                )
            seq, parents, micros, actor, reason, root = row
            if rows and len(rows) % _AT_ONCE == 0:
                self._step(f"the commits up to {seq - 1} of branch {number}")
                self._insert(rows)
            each = list(made)
            if any(after is not None and version is None for _, _, _, after, _, version in each):
                raise DamagedStoreError(self._path, f"commit {seq} of branch {number} has lost a version")
            live = {
                record_id: None if after is None else Live(after, version)
                for _, record_id, _, after, _, version in each
            }
            if former.update(live, former_pages).hash != root:
                raise DamagedStoreError(self._path, f"commit {seq} of branch {number} does not lead to its root")
            former_pages.discard(former.replaced)
            trie.update(live, self._pages)
            self._pages.discard(trie.replaced)
            since_kept += len(each)
            keep = since_kept >= KEPT_EVERY
            if keep:
                self._pages.save()
                kept, since_kept = seq, 0
            commit = Commit(
                namespace="",
                branch=name,
                seq=seq,
                parents=implicit_parents(Branch("", name), seq) if parents is None else decoded_parents(parents),
                micros=micros,
                actor=actor,
                reason=reason,
                root=trie.root,
                changes=tuple(Change(*change[1:5]) for change in each),
            )
            entry = entry_hash(commit, self._key)
            page = trie.root.page if keep or not trie.root.page else None
            rows.append((number, seq, parents, micros, actor, reason, trie.root.hash, entry, page, b""))
        self._pages.save()
        if rows:
            rows[-1] = (*rows[-1][:8], trie.root.page, b"")
        self._insert(rows)
        state = "UPDATE branches SET trimmed = ?, kept = ?, trimmed_changes = ? WHERE number = ?"
        self._connection.execute(state, (seq, kept, since_kept, number))
        (expected,) = next(self._rows("SELECT coalesce(max(seq), 0) FROM former_commits WHERE branch = ?", number))
        if seq != expected:
            raise DamagedStoreError(self._path, f"commit {seq + 1} of branch {number}, or what it changed, is missing")

    def _insert(self, rows: list[tuple[Any, ...]]) -> None:
        self._connection.executemany("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        rows.clear()
