"""The check of an SQLite store: every byte of what it keeps, and the name of what is hurt.

What SQLite knows of is compared by SQLite (the checksums of pages, the order of trees, indexes with their tables); the
rest here: payloads with their hashes, the copied fields of heads with the payloads, the log with itself and with the
versions, the pages of the tries with the hashes that name them. Each part goes on where another has found something.
docs/file-format.md says which bytes are covered by what.
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
from recollect.stores.sqlite.errors import translated
from recollect.stores.sqlite.salvage import Salvage
from recollect.stores.sqlite.transaction import HEAD_COLUMNS, head_fields
from recollect.stores.sqlite.view import written_parents

#: So many problems of a part are named; the rest are counted.
NAMED = 20
_HASH_BYTES = 32


class Examination:
    """What is wrong with a file, read through a connection.

    path  of the file
    key   of the store
    """

    def __init__(self, connection: apsw.Connection, path: str, key: bytes) -> None:
        self._connection = connection
        self._path = path
        self._key = key
        self._unreadable = False
        self._named: dict[tuple[int, bytes], str] = {}  # versions that a commit names, with the id
        self._erased: set[tuple[int, str]] = set()
        self._live: dict[int, dict[str, bytes]] = {}  # what the log comes to, by branch
        self._roots: list[tuple[str, bytes, int]] = []
        self._namespace_of: dict[int, int] = {}
        self._called: dict[int, str] = {}  # branches, for people

    def problems(self) -> list[str]:
        """In words, each; [] where nothing is wrong. Cost: reads and hashes everything."""
        found: list[str] = []
        for part in (self._sqlite, self._meta, self._schema, self._branches, self._log, self._versions, self._heads):
            found.extend(self._some(part))
        found.extend(self._some(self._nodes))
        if self._unreadable:
            found.extend(self._names())
        return found

    def _some(self, part: Callable[[], Iterator[str]]) -> Iterator[str]:
        """The problems that a part finds: the first of them, and how many more."""
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
            # Not even the types of the columns are right: SQLite looks at them only when it writes.
            self._unreadable = True
            what = part.__name__.strip("_")
            yield f"a row is none of its table's, while reading {_PARTS.get(what, 'the table ' + what)}"

    def _rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        yield from self._connection.execute(sql)

    def _names(self) -> Iterator[str]:
        """What cannot be read, by page and by name."""
        with suppress(OSError):
            salvage = Salvage(self._path, self._key)
            yield from _first(salvage.corrupt_pages())
            for _, saved in salvage.branches():
                yield from _first(map(str, saved.lost))

    # The parts

    def _sqlite(self) -> Iterator[str]:
        for (told,) in self._rows("PRAGMA integrity_check(1000)"):
            if told != "ok":
                self._unreadable = True
                yield str(told)

    def _meta(self) -> Iterator[str]:
        meta = dict(self._rows("SELECT name, value FROM meta"))
        (version,) = next(self._rows("PRAGMA user_version"))
        if version != meta.get("format"):
            yield f"the header says format {version}, the table meta {meta.get('format')}"
        (encoding,) = next(self._rows("PRAGMA encoding"))
        if encoding != "UTF-8":
            yield f"the header says that text is {encoding}"
        for name in sorted(schema.META - meta.keys()):
            yield f"the table meta lacks {name}"
        for name in sorted(
            name for name in meta.keys() - schema.META - {"probe"} if not name.startswith(schema.SETTING)
        ):
            yield f"the table meta holds {name!r}, which no release writes"

    def _schema(self) -> Iterator[str]:
        (version,) = next(self._rows("PRAGMA user_version"))
        if version not in (1, 2):
            return  # a later release's, whose tables are not known here
        fresh = apsw.Connection(":memory:")
        fresh.execute(schema.TABLES).fetchall()
        wanted, held = _structure(fresh), _structure(self._connection)
        fresh.close()
        for name in sorted(wanted.keys() | held.keys()):
            if wanted.get(name) != held.get(name):
                how = "is missing" if name not in held else "is not one of a store" if name not in wanted else "differs"
                yield f"{name} {how}"

    def _branches(self) -> Iterator[str]:
        namespaces = dict(self._rows("SELECT number, name FROM namespaces"))
        for number, namespace, name in self._rows("SELECT number, namespace, name FROM branches"):
            if namespace not in namespaces:
                yield f"branch {number} is of namespace {namespace}, which is not there"
            self._namespace_of[number] = namespace
            called = f"namespace {namespaces.get(namespace, namespace)!r}"
            self._called[number] = called if name == "main" else f"{called}, branch {name!r}"

    def _branch(self, branch: int) -> str:
        return self._called.get(branch, f"branch {branch}, which is not there,")

    def _log(self) -> Iterator[str]:
        changes = self._rows("SELECT branch, seq, place, id, before, after, cause FROM changes ORDER BY 1, 2, 3")
        change = next(changes, None)
        last: tuple[int, int, int] | None = None
        for branch, seq, parents, micros, actor, reason, root, page in self._rows(
            "SELECT branch, seq, parents, time, actor, reason, root, page FROM commits ORDER BY branch, seq"
        ):
            while change is not None and change[:2] < (branch, seq):
                where = self._branch(change[0])
                yield f"{where}: a change of {change[3]!r} is of commit {change[1]}, which is not there"
                change = next(changes, None)
            at = f"{self._branch(branch)}: commit {seq}"
            before = last if last is not None and last[0] == branch else (branch, 0, -(2**63))
            last = (branch, seq, micros)
            if seq != before[1] + 1:
                yield f"{at} follows commit {before[1]}: what is between is missing"
            if micros <= before[2]:
                yield f"{at} is not later than the one before"
            if parents is not None:
                try:
                    written_parents(parents)
                except ValueError as error:
                    yield f"{at}: {error}"
            if "\0" * 8 in (actor or "") + (reason or ""):
                yield f"{at} has zeros in its actor or reason"
            self._roots.append((at, root, page))
            places = 0
            while change is not None and change[:2] == (branch, seq):
                yield from self._change(at, places, *change)
                places += 1
                change = next(changes, None)
            if not places:
                yield f"{at} has lost its changes"
        while change is not None:
            yield f"{self._branch(change[0])}: a change of {change[3]!r} is of commit {change[1]}, which is not there"
            change = next(changes, None)

    def _change(
        self,
        at: str,
        wanted: int,
        branch: int,
        seq: int,
        place: int,
        record_id: str,
        before: Any,
        after: Any,
        cause: str,
    ) -> Iterator[str]:
        live = self._live.setdefault(branch, {})
        namespace = self._namespace_of.get(branch, 0)
        if place != wanted:
            yield f"{at} lacks a change before that of {record_id!r}"
        if cause not in CAUSES:
            yield f"{at}: the change of {record_id!r} has the cause {cause!r}, which there is not"
        if before != live.get(record_id):
            yield f"{at}: the change of {record_id!r} does not begin with the version that was held"
        if cause == "erased":
            self._erased.add((namespace, record_id))
        if after is None:
            live.pop(record_id, None)
        elif len(after) != _HASH_BYTES:
            yield f"{at}: the change of {record_id!r} names no version"
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
                yield f"{at} does not have the hash it is filed under"
            elif named is not None and named != record_id:
                yield f"{at} is of record {record_id!r}"
        if seen < len(self._named):
            yield f"{len(self._named) - seen} versions that commits name are not there"

    def _heads(self) -> Iterator[str]:
        held: dict[int, dict[str, bytes]] = {}
        columns = ", ".join(f'h."{name}"' for name in HEAD_COLUMNS)
        for branch, record_id, version, namespace, digest, payload, *copied in self._rows(
            f"SELECT h.branch, h.id, h.version, v.namespace, v.hash, v.payload, {columns} "
            "FROM heads h LEFT JOIN versions v ON v.number = h.version"
        ):
            at = f"{self._branch(branch)}: the head of record {record_id!r}"
            if digest is None or payload is None:
                yield f"{at} names version {version}, which is not there"
                continue
            held.setdefault(branch, {})[record_id] = digest
            if namespace != self._namespace_of.get(branch):
                yield f"{at} names a version of another namespace"
            with suppress(CodecError):  # told of the version
                record = Record.from_bytes(payload)
                if record.id != record_id:
                    yield f"{at} names a version of record {record.id!r}"
                fields = head_fields(record)
                wrong = [each for each, ours, its in zip(HEAD_COLUMNS, copied, fields, strict=True) if ours != its]
                if wrong:
                    yield f"{at} has another {', '.join(wrong)} than its version"
        for branch in sorted(self._live.keys() | held.keys()):
            told, there = self._live.get(branch, {}), held.get(branch, {})
            for record_id in sorted(told.keys() | there.keys()):
                if told.get(record_id) != there.get(record_id):
                    how = "is not there" if record_id not in there else "is not what the log comes to"
                    yield f"{self._branch(branch)}: the head of record {record_id!r} {how}"

    def _nodes(self) -> Iterator[str]:
        """Every page of the tries, those of earlier roots too."""
        leaves = {leaf_hash(record_id, digest): record_id for (_, digest), record_id in self._named.items()}
        hashes: dict[int, bytes] = {0: EMPTY}
        children: list[tuple[int, Child]] = []
        for place, body in self._rows("SELECT place, body FROM nodes ORDER BY place"):
            try:
                page = decode_page(body)
            except ValueError as error:
                yield f"page {place} of the Merkle trie: {error}"
                continue
            hashes[place] = page_hash(page)[0]
            for item in page:
                if isinstance(item, Child) and hashes.get(item.page) != item.hash:
                    children.append((place, item))
                elif isinstance(item, Leaf):
                    named = leaves.get(item.hash)
                    if named is None or path_of(named) != item.path:
                        yield f"page {place} of the Merkle trie has a leaf that no commit made"
        for place, item in children:
            if hashes.get(item.page) != item.hash:
                yield f"page {place} of the Merkle trie names page {item.page}, which has another hash"
        for at, root, page_number in self._roots:
            if hashes.get(page_number) != root:
                yield f"{at} names page {page_number} of the Merkle trie, which does not have its root"


#: What the parts read, where it is not a table of their name.
_PARTS = {"sqlite": "its structure", "lines": "the namespaces", "schema": "the schema", "log": "the commits"}


def _first(problems: Iterable[str]) -> Iterator[str]:
    """The first problems, and how many more there are."""
    problems = iter(problems)
    yield from islice(problems, NAMED)
    more = sum(1 for _ in problems)
    if more:
        yield f"and {more} more like these"


def _structure(connection: apsw.Connection) -> dict[str, Any]:
    """What a database is made of, by name: of each table its columns, of each index what it says."""
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
    """What is wrong with a file. Raises: nothing that has to do with what is in it."""
    try:
        return Examination(connection, path, key).problems()
    except DamagedStoreError as error:
        return [str(error)]
