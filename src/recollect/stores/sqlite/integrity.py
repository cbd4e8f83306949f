"""The integrity check of an SQLite store: it verifies every stored byte and names what is corrupt.

SQLite verifies the checksums of pages, the order of b-trees, and indexes against their tables. This module verifies the
rest: payloads against their hashes, the copied fields of heads against the payloads, the log against itself and the
versions, and the pages of the tries against the hashes that refer to them. Each part runs even if another one has found
problems. docs/file-format.md lists which check covers which bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import apsw

from recollect.errors import CodecError, DamagedStoreError, StoreError
from recollect.ledger.commits import CAUSES
from recollect.ledger.merkle import EMPTY, Child, Leaf, decode_page, leaf_hash, page_hash, path_of, version_hash
from recollect.records.record import Record
from recollect.stores.sqlite import schema
from recollect.stores.sqlite.salvage import Salvage
from recollect.stores.sqlite.transaction import HEAD_COLUMNS, head_fields
from recollect.stores.sqlite.view import decoded_parents
from recollect.stores.sqlite_base.errors import translated

#: Maximum number of problems that are reported for each part; the others are counted.
NAMED = 20
_HASH_BYTES = 32


class Examination:
    """The check of one file.

    Args:
        connection: A connection to the file.
        path: The file.
        key: The store's key.
    """

    def __init__(self, connection: apsw.Connection, path: str, key: bytes) -> None:
        self._connection = connection
        self._path = path
        self._key = key
        self._unreadable = False
        self._named: dict[tuple[int, bytes], str] = {}  # ids by namespace and version, for all versions in the log
        self._erased: set[tuple[int, str]] = set()
        self._live: dict[int, dict[str, bytes]] = {}  # the live versions that result from the log, by branch
        self._roots: list[tuple[str, bytes, int]] = []
        self._namespace_of: dict[int, int] = {}
        self._labels: dict[int, str] = {}  # names of branches for messages

    def problems(self) -> list[str]:
        """Return a message for each problem; [] if there are none.

        Cost:
            Reads and hashes everything.
        """
        found: list[str] = []
        for part in (self._sqlite, self._meta, self._schema, self._branches, self._log, self._versions, self._heads):
            found.extend(self._limited(part))
        found.extend(self._limited(self._nodes))
        if self._unreadable:
            found.extend(self._corrupt_parts())
        return found

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
            salvage = Salvage(self._path, self._key)
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
            name for name in meta.keys() - schema.META - {"probe"} if not name.startswith(schema.SETTING)
        ):
            yield f"the table meta contains {name!r}, which no release writes"

    def _schema(self) -> Iterator[str]:
        (version,) = next(self._rows("PRAGMA user_version"))
        if version not in (1, 2):
            return  # the file is from a later release, whose tables are unknown
        reference = apsw.Connection(":memory:")
        reference.execute(schema.TABLES).fetchall()
        expected, actual = _structure(reference), _structure(self._connection)
        reference.close()
        for name in sorted(expected.keys() | actual.keys()):
            if expected.get(name) != actual.get(name):
                known = name in expected
                how = "is missing" if name not in actual else "differs" if known else "does not belong to a store"
                yield f"{name} {how}"

    def _branches(self) -> Iterator[str]:
        namespaces = dict(self._rows("SELECT number, name FROM namespaces"))
        for number, namespace, name in self._rows("SELECT number, namespace, name FROM branches"):
            if namespace not in namespaces:
                yield f"branch {number} belongs to namespace {namespace}, which is missing"
            self._namespace_of[number] = namespace
            label = f"namespace {namespaces.get(namespace, namespace)!r}"
            self._labels[number] = label if name == "main" else f"{label}, branch {name!r}"

    def _branch(self, branch: int) -> str:
        return self._labels.get(branch, f"branch {branch}, which is missing,")

    def _log(self) -> Iterator[str]:
        changes = self._rows("SELECT branch, seq, place, id, before, after, cause FROM changes ORDER BY 1, 2, 3")
        change = next(changes, None)
        last: tuple[int, int, int] | None = None
        for branch, seq, parents, micros, actor, reason, root, page in self._rows(
            "SELECT branch, seq, parents, time, actor, reason, root, page FROM commits ORDER BY branch, seq"
        ):
            while change is not None and change[:2] < (branch, seq):
                where = self._branch(change[0])
                yield f"{where}: a change of {change[3]!r} belongs to commit {change[1]}, which is missing"
                change = next(changes, None)
            at = f"{self._branch(branch)}: commit {seq}"
            before = last if last is not None and last[0] == branch else (branch, 0, -(2**63))
            last = (branch, seq, micros)
            if seq != before[1] + 1:
                yield f"{at} follows commit {before[1]}: the commits between them are missing"
            if micros <= before[2]:
                yield f"{at} is not later than the previous one"
            if parents is not None:
                try:
                    decoded_parents(parents)
                except ValueError as error:
                    yield f"{at}: {error}"
            if "\0" * 8 in (actor or "") + (reason or ""):
                yield f"{at} has zeros in its actor or reason"
            self._roots.append((at, root, page))
            count = 0
            while change is not None and change[:2] == (branch, seq):
                yield from self._change(at, count, *change)
                count += 1
                change = next(changes, None)
            if not count:
                yield f"{at} has lost its changes"
        while change is not None:
            where = self._branch(change[0])
            yield f"{where}: a change of {change[3]!r} belongs to commit {change[1]}, which is missing"
            change = next(changes, None)

    def _change(
        self,
        at: str,
        expected_number: int,
        branch: int,
        seq: int,
        number: int,
        record_id: str,
        before: Any,
        after: Any,
        cause: str,
    ) -> Iterator[str]:
        live = self._live.setdefault(branch, {})
        namespace = self._namespace_of.get(branch, 0)
        if number != expected_number:
            yield f"{at} lacks a change before that of {record_id!r}"
        if cause not in CAUSES:
            yield f"{at}: the change of {record_id!r} has the unknown cause {cause!r}"
        if before != live.get(record_id):
            yield f"{at}: the change of {record_id!r} does not start from the version that was live"
        if cause == "erased":
            self._erased.add((namespace, record_id))
        if after is None:
            live.pop(record_id, None)
        elif len(after) != _HASH_BYTES:
            yield f"{at}: the change of {record_id!r} has an invalid version hash"
        else:
            live[record_id] = after
            self._named[namespace, after] = record_id

    def _versions(self) -> Iterator[str]:
        seen = 0
        for number, namespace, digest, payload in self._rows("SELECT number, namespace, hash, payload FROM versions"):
            named = self._named.get((namespace, digest))
            at = f"version {number}" if named is None else f"version {number} of record {named!r}"
            seen += named is not None
            if named is None:
                yield f"{at} is named by no commit"
            if payload is None:
                if (namespace, named) not in self._erased:
                    yield f"{at} has lost its payload, and no commit erased it"
                continue
            try:
                record_id = Record.from_bytes(payload).id
            except CodecError as error:
                yield f"{at}: {error}"
                continue
            if version_hash(record_id, payload, self._key) != digest:
                yield f"{at} does not match its hash"
            elif named is not None and named != record_id:
                yield f"{at} belongs to record {record_id!r}"
        if seen < len(self._named):
            yield f"{len(self._named) - seen} versions that commits name are missing"

    def _heads(self) -> Iterator[str]:
        heads: dict[int, dict[str, bytes]] = {}
        columns = ", ".join(f'h."{name}"' for name in HEAD_COLUMNS)
        for branch, record_id, version, namespace, digest, payload, *copied in self._rows(
            f"SELECT h.branch, h.id, h.version, v.namespace, v.hash, v.payload, {columns} "
            "FROM heads h LEFT JOIN versions v ON v.number = h.version"
        ):
            at = f"{self._branch(branch)}: the head of record {record_id!r}"
            if digest is None or payload is None:
                yield f"{at} names version {version}, which is missing"
                continue
            heads.setdefault(branch, {})[record_id] = digest
            if namespace != self._namespace_of.get(branch):
                yield f"{at} names a version of another namespace"
            with suppress(CodecError):  # `_versions` reports it
                record = Record.from_bytes(payload)
                if record.id != record_id:
                    yield f"{at} names a version of record {record.id!r}"
                fields = head_fields(record)
                wrong = [each for each, ours, its in zip(HEAD_COLUMNS, copied, fields, strict=True) if ours != its]
                if wrong:
                    yield f"{at} has another {', '.join(wrong)} than its version"
        for branch in sorted(self._live.keys() | heads.keys()):
            expected, actual = self._live.get(branch, {}), heads.get(branch, {})
            for record_id in sorted(expected.keys() | actual.keys()):
                if expected.get(record_id) != actual.get(record_id):
                    how = "is missing" if record_id not in actual else "differs from the log"
                    yield f"{self._branch(branch)}: the head of record {record_id!r} {how}"

    def _nodes(self) -> Iterator[str]:
        """Verify every page of the tries, including those of earlier roots."""
        leaves = {leaf_hash(record_id, digest): record_id for (_, digest), record_id in self._named.items()}
        hashes: dict[int, bytes] = {0: EMPTY}
        children: list[tuple[int, Child]] = []
        for number, body in self._rows("SELECT place, body FROM nodes ORDER BY place"):
            try:
                page = decode_page(body)
            except ValueError as error:
                yield f"page {number} of the Merkle trie: {error}"
                continue
            hashes[number] = page_hash(page)[0]
            for item in page:
                if isinstance(item, Child) and hashes.get(item.page) != item.hash:
                    children.append((number, item))
                elif isinstance(item, Leaf):
                    named = leaves.get(item.hash)
                    if named is None or path_of(named) != item.path:
                        yield f"page {number} of the Merkle trie has a leaf that belongs to no commit"
        for number, item in children:
            if hashes.get(item.page) != item.hash:
                yield f"page {number} of the Merkle trie names page {item.page}, which has another hash"
        for at, root, number in self._roots:
            if hashes.get(number) != root:
                yield f"{at} names page {number} of the Merkle trie, which has another hash than its root"


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


def problems_in(connection: apsw.Connection, path: str, key: bytes) -> list[str]:
    """Return a message for each problem of a file. The contents of the file raise no error."""
    try:
        return Examination(connection, path, key).problems()
    except DamagedStoreError as error:
        return [str(error)]
