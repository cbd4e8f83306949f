"""What can be saved of a store that is hurt, and the names of what cannot.

Every page is read by itself (`stores.pages`). A version counts where its payload has the hash that it is under; which
version of an id was live is told by the heads, by the log, and by the leaves of the Merkle trie under the newest root,
whichever of them are left. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from recollect.errors import CodecError
from recollect.indexes.merkle import EMPTY, Child, Leaf, Root, decode_page, leaf_hash, page_hash, version_hash
from recollect.records.record import Record
from recollect.stores.base import CAUSES, Change, Commit, Line, Stored
from recollect.stores.pages import INDEX_INTERIOR, INDEX_LEAF, TABLE_LEAF, Pages, Row, Value
from recollect.stores.sqlite_view import usual_parents, written_parents

_HASH_BYTES = 32
_HEAD_COLUMNS, _COMMIT_COLUMNS, _CHANGE_COLUMNS = 17, 8, 7


class Lost(NamedTuple):
    """What cannot be saved.

    what     "record" or "commit"
    name     the id of the record, the seq of the commit
    version  of the record: the hash of the one that was live, in hex; "" where that is not known
    reason   in words
    """

    namespace: str
    what: str
    name: str
    version: str
    reason: str

    def __str__(self) -> str:
        return f"namespace {self.namespace!r}, {self.what} {self.name!r}: {self.reason}"


class Saved(NamedTuple):
    """What can be saved of a line: what is live by id, the commits from the first on that can be told whole.

    root      the newest that is known; None where none is
    versions  every version of the namespace that is whole, by its hash
    """

    live: dict[str, Stored]
    versions: dict[bytes, Stored]
    log: list[Commit]
    root: bytes | None
    lost: list[Lost]


class Salvage:
    """A file's rows, table by table. Raises: OSError where it cannot be read.

    path  of the file, which is only read; a log beside it is read with it
    key   of the store
    """

    def __init__(self, path: str, key: bytes) -> None:
        self.key = key
        self.pages = _read(path)
        self._namespaces: dict[int, str] = {}
        self._branches: dict[int, tuple[int, str]] = {}
        self._meta: dict[str, Value] = {}
        self._versions: dict[int, dict[bytes, Stored]] = {}  # by namespace and hash
        self._ids: dict[int, dict[bytes, str]] = {}  # of those
        self._of_id: dict[int, dict[str, list[bytes]]] = {}
        self._numbers: dict[int, tuple[int, bytes]] = {}  # of versions
        self._hurt: set[tuple[int, bytes]] = set()  # versions that are there without having their hash
        self._heads: dict[tuple[int, str], int | None] = {}
        self._commits: dict[int, dict[int, tuple[object, ...]]] = {}
        self._changes: dict[int, dict[int, dict[int, Change]]] = {}
        self._nodes: dict[int, bytes] = {}
        free = self.pages.free()
        for number in range(1, self.pages.count + 1):
            whole = self.pages.whole(number)
            for row in self.pages.rows(number):
                self._take(self.pages.kind(number), row, whole=whole, free=number in free)
        self._take_indexes()

    def _take(self, kind: int, row: Row, *, whole: bool, free: bool) -> None:
        """Know a row by its shape: no two tables have the same."""
        match row.values:
            case (None, int(namespace), bytes(digest), bytes() | None as payload) if kind == TABLE_LEAF:
                self._take_version(row.number, namespace, digest, payload, whole=whole)
            case (None, bytes(body)) if kind == TABLE_LEAF and row.number:
                if whole or row.number not in self._nodes:  # whoever reads one compares its hash
                    self._nodes[row.number] = body
            case _ if not whole:
                return
            case (None, int(branch), str(head), int(version), *_) as values if (
                kind == TABLE_LEAF and len(values) == _HEAD_COLUMNS and not free
            ):
                self._heads[branch, head] = version
            case (None, str(name)) if kind == TABLE_LEAF and row.number:
                self._namespaces[row.number] = name
            case (None, int(namespace), str(name)) if kind == TABLE_LEAF and row.number:
                self._branches[row.number] = (namespace, name)
            case (int(branch), int(seq), *_) as values if kind in (INDEX_LEAF, INDEX_INTERIOR):
                if len(values) == _COMMIT_COLUMNS and isinstance(values[6], bytes):
                    self._commits.setdefault(branch, {})[seq] = values
                elif len(values) == _CHANGE_COLUMNS and values[6] in CAUSES:
                    _, _, place, record_id, before, after, cause = values
                    if isinstance(place, int) and isinstance(record_id, str):
                        places = self._changes.setdefault(branch, {}).setdefault(seq, {})
                        places[place] = Change(record_id, before, after, cause)  # type: ignore[arg-type]

    def _take_version(
        self, number: int | None, namespace: int, digest: bytes, payload: bytes | None, *, whole: bool
    ) -> None:
        at = (namespace, digest)
        if number is not None and whole:
            self._numbers[number] = at
        if payload is None or digest in self._versions.get(namespace, ()):
            return
        record_id: str | None = None
        with suppress(CodecError):
            record_id = Record.from_bytes(payload).id
        if record_id is not None and version_hash(record_id, payload, self.key) == digest:
            self._versions.setdefault(namespace, {})[digest] = Stored(digest, payload)
            self._ids.setdefault(namespace, {})[digest] = record_id
            self._of_id.setdefault(namespace, {}).setdefault(record_id, []).append(digest)
            if number is not None:
                self._numbers.setdefault(number, at)
        elif len(digest) == _HASH_BYTES:
            self._hurt.add(at)

    def _take_indexes(self) -> None:
        """Take from the indexes what the tables have lost: names, ids, and the numbers of versions."""
        for name, root in self.trees().items():
            for page in self.pages.below(root):
                if not self.pages.whole(page):
                    continue
                for row in self.pages.rows(page):
                    match name, row.values:
                        case "meta", (str(text), value):
                            self._meta[text] = value
                        case "sqlite_autoindex_namespaces_1", (str(text), int(number)):
                            self._namespaces.setdefault(number, text)
                        case "sqlite_autoindex_branches_1", (int(namespace), str(text), int(number)):
                            self._branches.setdefault(number, (namespace, text))
                        case "sqlite_autoindex_heads_1", (int(branch), str(record_id), int()):
                            self._heads.setdefault((branch, record_id), None)
                        case "sqlite_autoindex_versions_1", (int(namespace), bytes(digest), int(number)):
                            self._numbers.setdefault(number, (namespace, digest))

    @property
    def key_check(self) -> Value:
        """What tells the right key from a wrong one; None where it is lost."""
        return self._meta.get("key_check")

    @property
    def empty(self) -> bool:
        """Whether there is nothing that a store is made of."""
        return not (self._versions or self._heads or self._changes or self._commits or self._branches or self._hurt)

    def trees(self) -> dict[str, int]:
        """The first page of each table and index by name, as far as the schema can be read."""
        out: dict[str, int] = {}
        for page in self.pages.below(1):
            for row in self.pages.rows(page):
                match row.values:
                    case (("table" | "index"), str(name), str(), int(root), *_):
                        out[name] = root
        return out

    def lines(self) -> Iterator[tuple[Line, Saved]]:
        """Every line with what can be saved of it."""
        branches = {branch for branch, _ in self._heads} | self._changes.keys() | self._commits.keys()
        for branch in sorted(branches | self._branches.keys()):
            namespace, name = self._branches.get(branch, (branch, "main"))
            line = Line(self._namespaces.get(namespace, f"namespace-{namespace}"), name)
            yield line, self._saved(branch, namespace, line)

    def _saved(self, branch: int, namespace: int, line: Line) -> Saved:
        log = self._changes.get(branch, {})
        commits = self._commits.get(branch, {})
        newest: dict[str, bytes | None] = {}
        earlier: dict[str, set[bytes | None]] = {}
        for seq in sorted(log):
            for place in sorted(log[seq]):
                change = log[seq][place]
                if change.id in newest:
                    earlier.setdefault(change.id, set()).add(newest[change.id])
                newest[change.id] = change.after
        live: dict[str, Stored] = {}
        lost: list[Lost] = []
        versions, ids = self._versions.get(namespace, {}), self._ids.get(namespace, {})
        heads = {record_id: number for (of, record_id), number in self._heads.items() if of == branch}
        for record_id in sorted(newest.keys() | heads.keys()):
            digest = newest.get(record_id)
            if record_id in heads:
                pointed = self._numbers.get(heads[record_id] or 0)
                # A head that the log has left behind is an old row in a page that nothing leads to any more.
                if pointed is not None and pointed[1] not in earlier.get(record_id, ()):
                    digest = pointed[1]
                elif digest is None:
                    lost.append(Lost(line.namespace, "record", record_id, "", self._why_unknown(namespace, record_id)))
                    continue
            if digest is None:
                continue  # forgotten
            if ids.get(digest) == record_id:
                live[record_id] = versions[digest]
            else:
                why = self._why_lost(namespace, record_id, digest)
                lost.append(Lost(line.namespace, "record", record_id, digest.hex(), why))
        root = self._newest_root(commits)
        leaves = self._leaves(root)
        for each, record_id in ids.items():
            # All that named it is lost, so only the trie can tell whether it was live.
            unnamed = record_id not in newest and record_id not in heads
            if unnamed and leaf_hash(record_id, each) in leaves:
                live[record_id] = versions[each]
        last = max((*commits, *log), default=0)
        lost.extend(
            Lost(line.namespace, "commit", str(seq), "", "it cannot be read, or not all of what it changed")
            for seq in range(1, last + 1)
            if seq not in commits or sorted(log.get(seq, {})) != list(range(len(log.get(seq, {})))) or seq not in log
        )
        return Saved(live, versions, list(self._log(branch, line)), None if root is None else root.hash, lost)

    def _why_lost(self, namespace: int, record_id: str, digest: bytes) -> str:
        hurt = (namespace, digest) in self._hurt
        what = "its version does not have the hash that it is under" if hurt else "its version cannot be read"
        return what + self._older(namespace, record_id)

    def _why_unknown(self, namespace: int, record_id: str) -> str:
        return "nothing is left that tells which version was live" + self._older(namespace, record_id)

    def _older(self, namespace: int, record_id: str) -> str:
        """The other versions of an id that are whole, in words."""
        whole = [digest.hex()[:16] for digest in self._of_id.get(namespace, {}).get(record_id, ())]
        return f"; of its other versions {', '.join(whole)} can be read" if whole else ""

    @staticmethod
    def _newest_root(commits: dict[int, tuple[object, ...]]) -> Root | None:
        if not commits:
            return None
        _, _, _, _, _, _, digest, place = commits[max(commits)]
        return Root(digest, place) if isinstance(digest, bytes) and isinstance(place, int) else None

    def _leaves(self, root: Root | None) -> set[bytes]:
        """The leaves under a root, as far as the pages of the trie have their hashes."""
        out: set[bytes] = set()
        ahead: list[Root | Child] = [] if root is None or root.hash == EMPTY else [root]
        while ahead:
            child = ahead.pop()
            try:
                page = decode_page(self._nodes[child.place])
            except (KeyError, ValueError):
                continue
            if page_hash(page)[0] == child.hash:
                out.update(item.hash for item in page if isinstance(item, Leaf))
                ahead.extend(item for item in page if isinstance(item, Child))
        return out

    def _log(self, branch: int, line: Line) -> Iterator[Commit]:
        """The commits from the first on, up to the first that is not all there."""
        commits, log = self._commits.get(branch, {}), self._changes.get(branch, {})
        for seq in range(1, len(commits) + 1):
            changes = log.get(seq, {})
            row = commits.get(seq)
            if row is None or sorted(changes) != list(range(len(changes))):
                return
            match row:
                case (
                    _,
                    _,
                    str() | None as parents,
                    int(micros),
                    str() | None as actor,
                    str() | None as reason,
                    bytes(root),
                    int(place),
                ):
                    try:
                        followed = usual_parents(line, seq) if parents is None else written_parents(parents)
                    except ValueError:
                        return
                    yield Commit(
                        namespace=line.namespace,
                        branch=line.branch,
                        seq=seq,
                        parents=followed,
                        micros=micros,
                        actor=actor,
                        reason=reason,
                        root=Root(root, place),
                        changes=tuple(changes[place] for place in sorted(changes)),
                    )
                case _:
                    return

    def hurt_pages(self) -> Iterator[str]:
        """The pages that are not what was written, and what of which table stands in them, in words."""
        owners: dict[int, str] = {}
        for name, root in self.trees().items():
            for page in self.pages.below(root):
                owners[page] = name
                for first in self.pages.overflows(page):
                    owners.update(dict.fromkeys(self.pages.chain(first), name))
        free = self.pages.free()
        for number in range(1, self.pages.count + 1):
            if number in free:
                continue
            zeros = not self.pages.page(number).strip(b"\0")
            if zeros or not self.pages.whole(number):
                owner = owners.get(number, "sqlite_schema" if number == 1 else "a table that cannot be told")
                yield f"page {number}, of {owner}, {'is all zeros' if zeros else 'does not have its checksum'}"


def _read(path: str) -> Pages:
    data = Path(path).read_bytes()
    log = Path(f"{path}-wal")
    return Pages(data, log.read_bytes() if log.exists() else b"")
