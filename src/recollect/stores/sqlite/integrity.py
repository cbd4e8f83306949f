"""The integrity check of an SQLite store: it verifies every stored byte and names what is corrupt.

SQLite verifies the checksums of pages, the order of b-trees, and indexes against their tables. This module verifies the
rest: payloads against their hashes, the copied fields of heads against the payloads, the log against itself and the
versions, the records against the newest root, and the pages of the tries against the hashes that refer to them. Each
part runs even if another one has found problems. docs/file-format.md lists which check covers which bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice, pairwise
from typing import Any, NamedTuple

import apsw

from recollect.errors import CodecError, DamagedStoreError, StoreError
from recollect.ledger.commits import CAUSES, RESERVED, Branch, Change, Commit, Parent, reserved_namespace
from recollect.ledger.entries import entry_hash
from recollect.ledger.merkle import (
    CHILD_BYTES,
    EMPTY,
    Child,
    Root,
    is_redacted,
    leaf_hash_at,
    page_items,
    path_in_log,
    root_of,
    version_hash,
)
from recollect.ledger.parts import PartHead, decode_parts
from recollect.ledger.proofs import Walk
from recollect.records.names import NAMES
from recollect.records.record import Record
from recollect.stores.sealing.pages import PageCipher
from recollect.stores.sql.columns import (
    HEAD_COLUMNS,
    SETTING,
    decode_pages,
    decoded_parents,
    head_fields,
    implicit_parents,
)
from recollect.stores.sqlite import schema
from recollect.stores.sqlite.salvage import Salvage
from recollect.stores.sqlite_base.errors import translated
from recollect.stores.values import CheckReport, Trimmed
from recollect.text.unicode import nfc


class _StoredRoot(NamedTuple):
    """A root with stored pages.

    Attributes:
        at: The commit, for messages.
        seq: Its number.
        replaced: The pages of the previous root that this one does not have, encoded.
    """

    at: str
    branch: int
    seq: int
    root: Root
    replaced: bytes


#: Maximum number of problems that are reported for each part; the others are counted.
NAMED = 20
_HASH_BYTES = 32
#: The indexes that a file need not have begin with this: queries only get slower without them.
_OPTIONAL = "heads_by_"
#: Why a version may have no payload.
_REMOVALS = ("erased", "thinned")


class Examination:
    """The check of one file.

    Args:
        connection: A connection to the file.
        path: The file.
        key: The store's key.
        cipher: The cipher of an encrypted file.
    """

    def __init__(self, connection: apsw.Connection, path: str, key: bytes, cipher: PageCipher | None = None) -> None:
        self._cipher = cipher
        self._connection = connection
        self._path = path
        self._key = key
        self._format = connection.pragma("user_version")
        self._unreadable = False
        self._named: dict[tuple[int, bytes], str] = {}  # ids by namespace and version, for all versions in the log
        self._live: dict[int, dict[str, bytes]] = {}  # the live versions that result from the log, by branch
        self._live_heads: dict[int, dict[str, bytes]] = {}  # the versions that the heads name, by branch
        self._newest: dict[int, bytes] = {}  # the newest root, by branch
        self._roots: list[_StoredRoot] = []
        self._leaves: dict[int, bytes] = {}  # the leaf of each version, by its number
        self._namespace_of: dict[int, int] = {}
        self._trimmed: dict[int, Trimmed] = {}
        self._names: dict[int, str] = {}  # names of branches
        self._labels: dict[int, str] = {}  # names of branches for messages
        self._snapshots: dict[int, set[int]] = {}  # commits with a snapshot, by branch
        self._spaces: dict[int, str] = {}  # names of namespaces
        self._stated: dict[
            tuple[int, str], dict[PartHead, str]
        ] = {}  # with the commits that state them, by branch and part
        self._heads_of_parts: dict[int, tuple[PartHead, ...] | None] = {}  # what the newest commit of a branch states
        self._bases: dict[int, tuple[int, int]] = {}  # the branch and the commit that a branch continues
        self._own_heads: set[int] = set()  # those of them that have heads of their own
        self._first_roots: dict[int, Root] = {}  # the root that the first own commit of a branch follows
        self._commits = 0
        self._removals = Counter[str]()  # versions without a payload, by cause
        self._redacted: dict[tuple[int, int], dict[str, bytes]] = {}  # commitments by branch and commit
        self._erased: set[tuple[int, bytes]] = set()  # paths of the ids that were erased, with their namespaces

    def report(self) -> CheckReport:
        """Return a message for each problem; [] if there are none.

        Cost:
            Reads and hashes everything.
        """
        found: list[str] = []
        parts = (self._sqlite, self._meta, self._schema, self._branches, self._marks, self._log, self._parts)
        for part in (*parts, self._versions, self._heads, self._nodes):
            found.extend(self._limited(part))
        if self._unreadable:
            found.extend(self._corrupt_parts())
        return CheckReport(
            found,
            commits=self._commits,
            dropped=self._commits - len(self._roots),
            erased=self._removals["erased"],
            thinned=self._removals["thinned"],
        )

    def _limited(self, part: Callable[[], Iterator[str]]) -> Iterator[str]:
        """Yield the first problems that a part finds, and the number of the others."""
        problems = part()
        try:
            with translated(self._path):
                yield from islice(problems, NAMED)
                more = sum(1 for _ in problems)
                if more:
                    yield f"and {more} more like these"
        except StoreError as error:
            self._unreadable = True
            what = part.__name__.strip("_")
            yield f"{error.args[1]}, while reading {_PARTS.get(what, 'the table ' + what)}"
        except (TypeError, ValueError, LookupError, AttributeError):
            # A column has a wrong type: SQLite checks types only when it writes.
            self._unreadable = True
            what = part.__name__.strip("_")
            yield f"a row does not fit its table, while reading {_PARTS.get(what, 'the table ' + what)}"

    def _rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        yield from self._connection.execute(sql)

    def _corrupt_parts(self) -> Iterator[str]:
        """Yield what cannot be read: corrupt pages, then lost records and commits."""
        with suppress(OSError):
            salvage = Salvage(self._path, self._key, self._cipher)
            yield from _truncated(salvage.corrupt_pages())
            for _, saved in salvage.branches():
                yield from _truncated(map(str, saved.lost))

    # The parts

    def _sqlite(self) -> Iterator[str]:
        for (message,) in self._rows("PRAGMA integrity_check(1000)"):
            if message != "ok":
                self._unreadable = True
                yield str(message)

    def _meta(self) -> Iterator[str]:
        meta = dict(self._rows("SELECT name, value FROM meta"))
        (version,) = next(self._rows("PRAGMA user_version"))
        if version != meta.get("format"):
            yield f"the header says format {version}, the table meta {meta.get('format')}"
        (encoding,) = next(self._rows("PRAGMA encoding"))
        if encoding != "UTF-8":
            yield f"the header says that the text encoding is {encoding}"
        for name in sorted(schema.META - meta.keys()):
            yield f"the table meta lacks {name}"
        for name in sorted(
            name for name in meta.keys() - schema.META - schema.NEWER_META - {"probe"} if not name.startswith(SETTING)
        ):
            yield f"the table meta contains {name!r}, which no release writes"

    def _schema(self) -> Iterator[str]:
        (version,) = next(self._rows("PRAGMA user_version"))
        if version not in schema.FORMATS:
            return  # the file is from a later release, whose tables are unknown
        reference = apsw.Connection(":memory:")
        reference.execute(schema.tables_of(version)).fetchall()
        expected, actual = _structure(reference), _structure(self._connection)
        reference.close()
        for name in sorted(expected.keys() | actual.keys()):
            if name not in actual and name.startswith(_OPTIONAL):
                continue
            if expected.get(name) != actual.get(name):
                known = name in expected
                how = "is missing" if name not in actual else "differs" if known else "does not belong to a store"
                yield f"{name} {how}"

    def _branches(self) -> Iterator[str]:
        namespaces = self._spaces = dict(self._rows("SELECT number, name FROM namespaces"))
        for number, namespace, name, base, base_seq, *trimmed in self._rows(
            "SELECT number, namespace, name, base_branch, base_seq, trimmed, kept, trimmed_changes FROM branches "
            "ORDER BY number"
        ):
            if namespace not in namespaces:
                yield f"branch {number} belongs to namespace {namespace}, which is missing"
            if (base is None) != (base_seq is None) or (base is not None and base not in self._namespace_of):
                yield f"branch {number} continues branch {base}, which is missing"
            self._namespace_of[number], self._names[number] = namespace, name
            self._trimmed[number] = Trimmed(*trimmed)
            if base in self._namespace_of and base_seq is not None:
                self._bases[number] = base, base_seq
                if self._trimmed[number].kept >= base_seq:
                    self._own_heads.add(number)
            label = f"namespace {namespaces.get(namespace, namespace)!r}"
            self._labels[number] = label if name == "main" else f"{label}, branch {name!r}"

    def _branch(self, branch: int) -> str:
        return self._labels.get(branch, f"branch {branch}, which is missing,")

    def _marks(self) -> Iterator[str]:
        """Read what refers to commits: snapshots and redactions."""
        for branch, number, seq in self._rows("SELECT branch, number, seq FROM snapshots WHERE seq > 0"):
            found = "SELECT 1 FROM commits WHERE branch = ? AND seq = ?"
            if not self._connection.execute(found, (self._where(branch, seq), seq)).fetchall():
                yield f"{self._branch(branch)}: snapshot {number} is of commit {seq}, which is missing"
        for branch, seq in self._rows("SELECT branch, seq FROM snapshots"):
            self._snapshots.setdefault(branch, set()).add(seq)
        for branch, seq, name, commitment in self._rows("SELECT branch, seq, name, commitment FROM redactions"):
            self._redacted.setdefault((branch, seq), {})[name] = commitment

    def _log(self) -> Iterator[str]:
        changes = self._rows("SELECT branch, seq, place, id, before, after, cause FROM changes ORDER BY 1, 2, 3")
        change = next(changes, None)
        last: tuple[int, int, int] | None = None
        for branch, seq, parents, micros, actor, reason, root, entry, page, replaced, raw in self._rows(
            f"SELECT branch, seq, parents, time, actor, reason, root, entry, page, replaced, {self._parts_column()} "
            "FROM commits ORDER BY branch, seq"
        ):
            while change is not None and change[:2] < (branch, seq):
                where = self._branch(change[0])
                yield f"{where}: a change of {change[3]!r} belongs to commit {change[1]}, which is missing"
                change = next(changes, None)
            at = f"{self._branch(branch)}: commit {seq}"
            before = last if last is not None and last[0] == branch else self._begin(branch)
            last = (branch, seq, micros)
            if seq != before[1] + 1:
                yield f"{at} follows commit {before[1]}: the commits between them are missing"
            if micros <= before[2]:
                yield f"{at} is not later than the previous one"
            own = Branch("", self._names.get(branch, ""))
            try:
                decoded = implicit_parents(own, seq) if parents is None else decoded_parents(parents)
            except ValueError as error:
                decoded = ()
                yield f"{at}: {error}"
            if branch in self._bases and seq == self._bases[branch][1] + 1:
                yield from (f"{at} {problem}" for problem in self._first_parent(branch, decoded))
            self._newest[branch] = root
            self._commits += 1
            if page is not None:
                self._roots.append(_StoredRoot(at, branch, seq, Root(root, page), replaced))
            elif not self._may_lack_pages(branch, seq):
                yield f"{at} has lost the pages of its root"
            made: list[Change] = []
            while change is not None and change[:2] == (branch, seq):
                made.append(Change(*change[3:]))
                if problems := self._change(at, len(made) - 1, branch, change[2], made[-1]):
                    yield from problems
                change = next(changes, None)
            try:
                parts = None if raw is None else decode_parts(raw)
            except ValueError as error:
                parts = None
                yield f"{at}: {error}"
            if (
                not made
                and len(decoded) < 2
                and (parts is None or parts == (self._heads_of_parts.get(branch) if seq > 1 else ()))
            ):
                yield f"{at} has lost its changes"
            self._heads_of_parts[branch] = parts
            for each in parts or ():
                stated = self._stated.setdefault((branch, each.name), {})
                if any(other.seq >= each.seq and other != each for other in islice(reversed(stated), 1)):
                    stated.clear()  # after a rescue, which could not save all of this part's log, and which says so
                stated.setdefault(each, at)
            commit = Commit(
                namespace="",
                branch=own.name,
                seq=seq,
                parents=decoded,
                micros=micros,
                actor=actor,
                reason=reason,
                root=Root(root),
                changes=tuple(made),
                parts=parts,
            )
            if entry_hash(commit, self._key, self._redacted.get((branch, seq))) != entry:
                yield f"{at} does not match its entry"
        while change is not None:
            where = self._branch(change[0])
            yield f"{where}: a change of {change[3]!r} belongs to commit {change[1]}, which is missing"
            change = next(changes, None)
        for branch in sorted(self._own_heads - self._newest.keys()):
            self._begin(branch)

    def _where(self, branch: int, seq: int) -> int:
        """Return the branch whose rows have a commit of a branch: it, or one that it continues."""
        while branch in self._bases and seq <= self._bases[branch][1]:
            branch = self._bases[branch][0]
        return branch

    def _begin(self, branch: int) -> tuple[int, int, int]:
        """Begin a branch with what the commits that it continues have led to. Return it, and the seq and time of these.

        Cost:
            Reads their changes.
        """
        if branch not in self._bases:
            return branch, 0, -(2**63)
        spans, below, seq = list[tuple[int, int]](), branch, 2**62
        while below in self._bases:
            below, base_seq = self._bases[below]
            seq = min(seq, base_seq)
            spans.append((below, seq))
        live: dict[str, bytes] = {}
        for span in reversed(spans):
            changes = "SELECT id, after FROM changes WHERE branch = ? AND seq <= ? ORDER BY seq, place"
            for record_id, after in self._connection.execute(changes, span):
                if after is None:
                    live.pop(record_id, None)
                else:
                    live[record_id] = after
        self._live[branch] = live
        seq = self._bases[branch][1]
        commit = f"SELECT time, root, page, {self._parts_column()} FROM commits WHERE branch = ? AND seq = ?"
        for micros, root, page, parts in self._connection.execute(commit, (self._where(branch, seq), seq)):
            self._newest[branch], self._first_roots[branch] = root, Root(root, page or 0)
            self._heads_of_parts[branch] = None if parts is None else decode_parts(parts)
            return branch, seq, micros
        return branch, seq, -(2**63)

    def _first_parent(self, branch: int, parents: tuple[Parent, ...]) -> Iterator[str]:
        """Yield what is wrong with the parent of the first own commit of a branch that continues another one."""
        base, seq = self._bases[branch]
        if not seq:
            return
        found = self._connection.execute(
            "SELECT entry FROM commits WHERE branch = ? AND seq = ?", (self._where(branch, seq), seq)
        ).fetchall()
        if not found:
            yield f"continues commit {seq} of {self._branch(base)}, which is missing"
        elif any(entry != found[0][0] for _, number, *entries in parents[:1] for entry in entries if number == seq):
            yield f"states another commit than the one of {self._branch(base)} that it continues"

    def _parts_column(self) -> str:
        """Return the column of the parts; format 3 has none."""
        (version,) = next(self._rows("PRAGMA user_version"))
        return "NULL" if version == 3 else "parts"

    def _parts(self) -> Iterator[str]:
        """Compare what memories state of their parts with the logs of these."""
        numbers = {(self._spaces.get(each), self._names[branch]): branch for branch, each in self._namespace_of.items()}
        for branch, part, at in (
            (branch, part, at) for (branch, _), stated in self._stated.items() for part, at in stated.items()
        ):
            memory = Branch(self._spaces.get(self._namespace_of[branch], ""), self._names[branch])
            own = numbers.get((reserved_namespace(memory.namespace, part.name), memory.name))
            found = self._connection.execute(
                "SELECT root, entry FROM commits WHERE branch = ? AND seq = ?",
                (None if own is None else self._where(own, part.seq), part.seq),
            ).fetchall()
            if found != [(part.root, part.entry)]:
                yield f"{at} states commit {part.seq} of its {part.name}, which is missing or another one"
        for branch, parts in self._heads_of_parts.items():
            memory = Branch(self._spaces.get(self._namespace_of[branch], ""), self._names[branch])
            for each in () if parts is None else RESERVED:
                own = numbers.get((reserved_namespace(memory.namespace, each), memory.name))
                count = "SELECT coalesce(max(seq), ?) FROM commits WHERE branch = ?"
                begins = (self._bases[own][1] or None) if own in self._bases else None
                newest = self._connection.execute(count, (begins, own)).fetchall()
                stated = next((part.seq for part in parts or () if part.name == each), None)
                if newest != [(stated,)]:
                    yield f"{self._branch(branch)}: its newest commit does not state the newest one of its {each}"

    def _may_lack_pages(self, branch: int, seq: int) -> bool:
        """Return whether the pages of a commit's root may have been dropped."""
        trimmed = self._trimmed.get(branch, Trimmed())
        return seq < trimmed.seq and seq != trimmed.kept and seq not in self._snapshots.get(branch, ())

    def _change(self, at: str, expected_number: int, branch: int, number: int, change: Change) -> list[str]:
        """Return what is wrong with a change, and apply it."""
        record_id, before, after, cause = change
        problems = []
        live = self._live.setdefault(branch, {})
        if number != expected_number:
            problems.append(f"{at} lacks a change before that of {record_id!r}")
        if cause not in CAUSES:
            problems.append(f"{at}: the change of {record_id!r} has the unknown cause {cause!r}")
        if before != live.get(record_id):
            problems.append(f"{at}: the change of {record_id!r} does not start from the version that was live")
        if cause == "erased":
            self._erased.add((self._namespace_of.get(branch, 0), path_in_log(record_id)))
        if after is None:
            live.pop(record_id, None)
        elif len(after) != _HASH_BYTES:
            problems.append(f"{at}: the change of {record_id!r} has an invalid version hash")
        else:
            live[record_id] = after
            key = self._namespace_of.get(branch, 0), after
            if not is_redacted(record_id) or key not in self._named:  # another branch may have stored it again
                self._named[key] = record_id
        return problems

    def _versions(self) -> Iterator[str]:
        """Verify each version, and each head that names it."""
        removed = {number: rest for number, *rest in self._rows("SELECT version, cause, id FROM removed_payloads")}
        columns = ", ".join(f'h."{name}"' for name in HEAD_COLUMNS)
        seen = 0
        last: int | None = None
        record: Record | None = None
        for number, namespace, digest, payload, branch, head_id, *copied in self._rows(
            f"SELECT v.number, v.namespace, v.hash, v.payload, h.branch, h.id, {columns} "
            "FROM versions v LEFT JOIN heads h ON h.version = v.number ORDER BY v.number"
        ):
            if number != last:  # otherwise it is another head of the same version
                last = number
                named = self._named.get((namespace, digest))
                seen += named is not None
                cause, removed_id = removed.pop(number, (None, None)) if payload is None else (None, None)
                if cause in _REMOVALS:
                    record = None
                    self._removals[cause] += 1
                    problem = "" if branch is None else " has no payload, but is live"
                    if cause == "erased" and named and (namespace, path_in_log(named)) not in self._erased:
                        problem = " has no payload, but no commit erased it"
                    if removed_id not in (None, named):
                        problem = f" is noted as one of record {removed_id!r}"
                else:
                    record, problem = self._record(payload, digest, named)
                if named is not None:
                    path = path_in_log(named)
                    self._leaves[number] = path + number.to_bytes(8, "big") + leaf_hash_at(path, digest)
                if named is None:
                    yield f"version {number} is named by no commit"
                if problem:
                    yield f"version {number}{f' of record {named!r}' if named else ''}{problem}"
            if branch is not None:
                yield from self._head(branch, head_id, namespace, digest, record, copied)
        for number in sorted(removed):
            yield f"version {number} is missing, or has a payload although it was removed"
        if seen < len(self._named):
            yield f"{len(self._named) - seen} versions that commits name are missing"

    def _record(self, payload: bytes | None, digest: bytes, named: str | None) -> tuple[Record | None, str]:
        """Return the record of a version, and what is wrong with it, as the end of a message."""
        if payload is None:
            return None, " has lost its payload"
        try:
            record = Record.from_bytes(payload)
        except CodecError as error:
            return None, f": {error}"
        if version_hash(record.id, payload, self._key) != digest:
            return record, " does not match its hash"
        return record, "" if named in (None, record.id) else f" belongs to record {record.id!r}"

    def _head(
        self, branch: int, record_id: str, namespace: int, digest: bytes, record: Record | None, copied: list[Any]
    ) -> Iterator[str]:
        self._live_heads.setdefault(branch, {})[record_id] = digest
        wrong: list[str] = []
        if record is not None:  # otherwise the version is reported
            fields = head_fields(record)
            wrong = [
                each
                for each, ours, its in zip(HEAD_COLUMNS, copied, fields, strict=True)
                # Before format 4, a name was copied as it was stored.
                if ours != its
                and not (self._format < 4 and isinstance(ours, str) and each in NAMES and nfc(ours) == its)
            ]
        if wrong or namespace != self._namespace_of.get(branch) or (record is not None and record.id != record_id):
            at = f"{self._branch(branch)}: the head of record {record_id!r}"
            if namespace != self._namespace_of.get(branch):
                yield f"{at} names a version of another namespace"
            if record is not None and record.id != record_id:
                yield f"{at} names a version of record {record.id!r}"
            if wrong:
                yield f"{at} has another {', '.join(wrong)} than its version"

    def _heads(self) -> Iterator[str]:
        """Compare the heads with the log, and the records with the newest root."""
        for branch, record_id, version in self._rows(
            "SELECT h.branch, h.id, h.version FROM heads h LEFT JOIN versions v ON v.number = h.version "
            "WHERE v.number IS NULL"
        ):
            yield f"{self._branch(branch)}: the head of record {record_id!r} names version {version}, which is missing"
        for branch in sorted(self._live.keys() | self._live_heads.keys()):
            expected, actual = self._live.get(branch, {}), self._live_heads.get(branch, {})
            if expected != actual:
                for record_id in sorted(expected.keys() | actual.keys()):
                    if expected.get(record_id) != actual.get(record_id):
                        how = "is missing" if record_id not in actual else "differs from the log"
                        yield f"{self._branch(branch)}: the head of record {record_id!r} {how}"
            if root_of(actual) != self._newest.get(branch, EMPTY):
                yield f"{self._branch(branch)}: the records do not have the root of the newest commit"

    def _nodes(self) -> Iterator[str]:
        """Verify every page of the tries, including those of earlier roots."""
        hashes: dict[int, bytes] = {0: EMPTY}
        children: list[tuple[int, Child]] = []
        unused: set[int] = set()  # pages that nothing refers to so far: what refers to a page has a higher number
        for number, body in self._rows("SELECT place, body FROM nodes ORDER BY place"):
            unused.add(number)
            try:
                digest, items = page_items(body)
            except ValueError as error:
                yield f"page {number} of the Merkle trie: {error}"
                continue
            hashes[number] = digest
            for item in items:
                if len(item) == CHILD_BYTES:
                    child = Child(item[:32], int.from_bytes(item[32:], "big"))
                    unused.discard(child.page)
                    if hashes.get(child.page) != child.hash:
                        children.append((number, child))
                elif self._leaves.get(int.from_bytes(item[32:40], "big")) != item:
                    yield f"page {number} of the Merkle trie has a leaf that belongs to no commit"
        for number, child in children:
            if hashes.get(child.page) != child.hash:
                yield f"page {number} of the Merkle trie names page {child.page}, which has another hash"
        for stored in self._roots:
            number = stored.root.page
            unused.discard(number)
            if hashes.get(number) != stored.root.hash:
                yield f"{stored.at} names page {number} of the Merkle trie, which has another hash than its root"
        for number in sorted(unused):
            yield f"page {number} of the Merkle trie belongs to no root"
        yield from self._replaced()

    def _replaced(self) -> Iterator[str]:
        """Compare the pages that each untrimmed commit has replaced with those that differ."""

        def node(page: int) -> bytes:
            return bytes(next(self._connection.execute("SELECT body FROM nodes WHERE place = ?", (page,)), (b"",))[0])

        walk = Walk(node)
        first = _StoredRoot("", 0, 0, Root(), b"")
        for before, after in pairwise([first, *self._roots]):
            root = before.root if before.branch == after.branch else self._first_roots.get(after.branch, Root())
            if after.seq > self._trimmed[after.branch].seq and sorted(
                walk.pages_only_in(root, after.root)
            ) != decode_pages(after.replaced):
                yield f"{after.at} does not name the pages that it has replaced"


#: What each part reads, for messages; by default a table of its name.
_PARTS = {"sqlite": "its structure", "branches": "the namespaces", "schema": "the schema", "log": "the commits"}


def _truncated(problems: Iterable[str]) -> Iterator[str]:
    """Yield the first problems, and the number of the others."""
    problems = iter(problems)
    yield from islice(problems, NAMED)
    more = sum(1 for _ in problems)
    if more:
        yield f"and {more} more like these"


def _structure(connection: apsw.Connection) -> dict[str, Any]:
    """Return the objects of a database by name: the columns of each table, the definition of each index."""
    out: dict[str, Any] = {}
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall():
        if kind == "table":
            facts = connection.execute("SELECT type, wr, strict FROM pragma_table_list(?)", (name,)).fetchall()
            columns = connection.execute('SELECT name, type, "notnull", pk FROM pragma_table_xinfo(?)', (name,))
            out[f"table {name}"] = (facts, columns.fetchall())
        else:
            out[f"{kind} {name}"] = sql
    return out


def examined(connection: apsw.Connection, path: str, key: bytes, cipher: PageCipher | None = None) -> CheckReport:
    """Return a message for each problem of a file. The contents of the file raise no error."""
    try:
        with translated(path):
            return Examination(connection, path, key, cipher).report()
    except DamagedStoreError as error:
        return CheckReport([str(error)])
