"""What can be saved of a store that is hurt, and the names of what cannot.

Every page is read by itself (`pages`). A version counts where its payload has the hash that it is under; which
version of an id was live is told by the heads, by the log, and by the leaves of the Merkle trie under the newest root,
whichever of them are left. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from recollect.errors import CodecError
from recollect.ledger.commits import CAUSES, Branch, Change, Commit, Stored
from recollect.ledger.merkle import EMPTY, Child, Leaf, Root, decode_page, leaf_hash, page_hash, path_of, version_hash
from recollect.records.record import Record
from recollect.stores.sqlite.header import wal_path
from recollect.stores.sqlite.pages import INDEX_INTERIOR, INDEX_LEAF, TABLE_LEAF, Pages, Row, Value
from recollect.stores.sqlite.view import usual_parents, written_parents

_HASH_BYTES = 32
#: Besides the tables whose rows are known by their shape.
_READ_TOO = ("meta", *(f"sqlite_autoindex_{table}_1" for table in ("namespaces", "branches", "heads", "versions")))
_UNSURE = "nothing is left that tells which version was live, if any: the newest that can be read is taken for it"
_HEAD_COLUMNS, _COMMIT_COLUMNS, _CHANGE_COLUMNS = 17, 8, 7


class Lost(NamedTuple):
    """What cannot be saved.

    what     "record", "commit" or "namespace"
    name     the id of the record, the seq of the commit, the name that the namespace is given
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
    versions  every version of the store that can be read, by its hash
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
        # By the hash that is computed, not by the one that stands beside, nor by namespace: those may be hurt where the
        # payload is not. A payload that is hurt comes to a hash that nothing names.
        self._versions: dict[bytes, Stored] = {}
        self._ids: dict[bytes, str] = {}
        self._of_id: dict[tuple[int, str], dict[int, bytes]] = {}  # the versions of an id, by number
        self._numbers: dict[int, tuple[int, bytes]] = {}  # of versions
        self._hurt: set[bytes] = set()  # hashes beside which there is something else
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
            case (None, int(branch_number), str(head), int(version), *_) as values if (
                kind == TABLE_LEAF and len(values) == _HEAD_COLUMNS and not free
            ):
                self._heads[branch_number, head] = version
            case (None, str(name)) if kind == TABLE_LEAF and row.number:
                self._namespaces[row.number] = name
            case (None, int(namespace), str(name)) if kind == TABLE_LEAF and row.number:
                self._branches[row.number] = (namespace, name)
            case (int(branch_number), int(seq), *_) as values if kind in (INDEX_LEAF, INDEX_INTERIOR):
                if len(values) == _COMMIT_COLUMNS and isinstance(values[6], bytes):
                    self._commits.setdefault(branch_number, {})[seq] = values
                elif len(values) == _CHANGE_COLUMNS and values[6] in CAUSES:
                    _, _, place, record_id, before, after, cause = values
                    if isinstance(place, int) and isinstance(record_id, str):
                        places = self._changes.setdefault(branch_number, {}).setdefault(seq, {})
                        places[place] = Change(record_id, before, after, cause)  # type: ignore[arg-type]

    def _take_version(
        self, number: int | None, namespace: int, digest: bytes, payload: bytes | None, *, whole: bool
    ) -> None:
        at = (namespace, digest)
        if number is not None and whole:
            self._numbers[number] = at
        if payload is None or digest in self._versions:
            return
        try:
            record_id = Record.from_bytes(payload).id
        except CodecError:
            self._hurt.add(digest)
            return
        computed = version_hash(record_id, payload, self.key)
        self._versions[computed] = Stored(computed, payload)
        self._ids[computed] = record_id
        if computed != digest:
            self._hurt.add(digest)
            return
        self._of_id.setdefault((namespace, record_id), {})[number or 0] = digest
        if number is not None:
            self._numbers.setdefault(number, at)

    def _take_indexes(self) -> None:
        """Take from the indexes what the tables have lost: names, ids, and the numbers of versions."""
        for name, root in self.trees().items():
            for page in self.pages.below(root) if name in _READ_TOO else ():
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
                        case "sqlite_autoindex_heads_1", (int(branch_number), str(record_id), int()):
                            self._heads.setdefault((branch_number, record_id), None)
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

    def branches(self) -> Iterator[tuple[Branch, Saved]]:
        """Every line with what can be saved of it."""
        branches = {branch_number for branch_number, _ in self._heads} | self._changes.keys() | self._commits.keys()
        for branch_number in sorted(branches | self._branches.keys()):
            namespace, name = self._branches.get(branch_number, (branch_number, "main"))
            branch = Branch(self._namespaces.get(namespace) or self._given(namespace), name)
            saved = self._saved(branch_number, namespace, branch)
            if namespace not in self._namespaces:
                why = "its name cannot be read: it is given this one"
                saved.lost.insert(0, Lost(branch.namespace, "namespace", branch.namespace, "", why))
            yield branch, saved

    def _given(self, namespace: int) -> str:
        """A name for a namespace that has lost its own, and that no other has."""
        name = f"namespace-{namespace}"
        while name in self._namespaces.values():
            name += "-lost"
        return name

    def _saved(self, branch_number: int, namespace: int, branch: Branch) -> Saved:
        log = self._changes.get(branch_number, {})
        commits = self._commits.get(branch_number, {})
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
        heads = {record_id: number for (of, record_id), number in self._heads.items() if of == branch_number}
        root = self._newest_root(commits, log)
        trie = _Leaves(root, self._nodes)
        trie.explain(self._ids.items())
        trie.explain((change.after, change.id) for at in log.values() for change in at.values() if change.after)
        own = {record_id for of, record_id in self._of_id if of == namespace}
        digest: bytes | None
        for record_id in sorted({*newest, *heads, *own, *trie.found}):
            pointed = self._numbers.get(heads.get(record_id) or 0)
            versions = self._of_id.get((namespace, record_id), {})
            leaf = trie.of(record_id)
            if leaf is not None:  # what the root covers is certain
                digest = trie.versions[leaf]
            elif trie.says_all(record_id):
                continue
            else:
                # A head that the log has left behind is an old row in a page that nothing leads to any more.
                led = pointed is not None and pointed[1] not in earlier.get(record_id, ())
                digest = pointed[1] if pointed is not None and led else newest.get(record_id)
                if digest is None and record_id in newest and record_id not in heads:
                    continue  # forgotten
                if not led:
                    each = digest if digest in self._ids else versions[max(versions)] if versions else None
                    if each is not None:
                        live[record_id] = self._versions[each]
                        lost.append(Lost(branch.namespace, "record", record_id, "", _UNSURE))
                        continue
            if digest is None:
                lost.append(Lost(branch.namespace, "record", record_id, "", "its version cannot be read"))
            elif self._ids.get(digest) == record_id:
                live[record_id] = self._versions[digest]
            else:
                why = "does not have the hash that it is under" if digest in self._hurt else "cannot be read"
                older = [each.hex()[:16] for each in versions.values()]
                also = f"; of its other versions {', '.join(older)} can be read" if older else ""
                lost.append(Lost(branch.namespace, "record", record_id, digest.hex(), f"its version {why}{also}"))
        last = max((*commits, *log), default=0)
        lost.extend(
            Lost(branch.namespace, "commit", str(seq), "", "it cannot be read, or not all of what it changed")
            for seq in range(1, last + 1)
            if seq not in commits or sorted(log.get(seq, {})) != list(range(len(log.get(seq, {})))) or seq not in log
        )
        return Saved(
            live, self._versions, list(self._log(branch_number, branch)), None if root is None else root.hash, lost
        )

    @staticmethod
    def _newest_root(commits: dict[int, tuple[object, ...]], log: Iterable[int]) -> Root | None:
        """The root of the newest commit; None where that is lost."""
        last = max(commits, default=0)
        if not last or max(log, default=0) > last:
            return None
        _, _, _, _, _, _, digest, place = commits[last]
        return Root(digest, place) if isinstance(digest, bytes) and isinstance(place, int) else None

    def _log(self, branch_number: int, branch: Branch) -> Iterator[Commit]:
        """The commits from the first on, up to the first that is not all there."""
        commits, log = self._commits.get(branch_number, {}), self._changes.get(branch_number, {})
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
                        followed = usual_parents(branch, seq) if parents is None else written_parents(parents)
                    except ValueError:
                        return
                    yield Commit(
                        namespace=branch.namespace,
                        branch=branch.name,
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

    def corrupt_pages(self) -> Iterator[str]:
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


class _Leaves:
    """The leaves under a root, as far as the pages of the trie have their hashes.

    Those hashes do not cover where a leaf says that it belongs. So a leaf counts as the one of an id where it is the
    leaf of the id and a version that is known; any other leaves it open what is at its place.

    found  the leaves that count, by id
    """

    def __init__(self, root: Root | None, nodes: dict[int, bytes]) -> None:
        self._open: dict[bytes, str] = {}  # the ways to leaves that nothing explains
        self.found: dict[str, bytes] = {}
        self.versions: dict[bytes, bytes] = {}  # by leaf
        self._broken: set[str] = {""} if root is None else set()  # the ways, in hex, to pages that are lost
        ahead: list[tuple[str, Root | Child]] = [] if root is None or root.hash == EMPTY else [("", root)]
        while ahead:
            way, child = ahead.pop()
            try:
                page = decode_page(nodes[child.page])
            except (KeyError, ValueError):
                self._broken.add(way)
                continue
            if page_hash(page)[0] != child.hash:
                self._broken.add(way)
                continue
            for slot, item in enumerate(page):
                if isinstance(item, Leaf):
                    self._open[item.hash] = f"{way}{slot:x}"
                elif item is not None:
                    ahead.append((f"{way}{slot:x}", item))

    def explain(self, versions: Iterable[tuple[bytes, str]]) -> None:
        """Know the leaves of these versions of these ids."""
        for digest, record_id in versions:
            leaf = leaf_hash(record_id, digest)
            if self._open.pop(leaf, None) is not None:
                self.found[record_id] = leaf
                self.versions[leaf] = digest

    def of(self, record_id: str) -> bytes | None:
        """The leaf of an id, where there is one that can be read."""
        return self.found.get(record_id)

    def says_all(self, record_id: str) -> bool:
        """Whether all pages on the way to an id can be read, so that it has no leaf where none is found."""
        if self._open:
            self._broken.update(self._open.values())
            self._open.clear()
        way = path_of(record_id).hex()
        return not any(way[:length] in self._broken for length in range(len(way)))


def _read(path: str) -> Pages:
    """The pages of a file and its log; of a log alone, where the file is lost."""
    log = Path(wal_path(path))
    logged = log.read_bytes() if log.exists() else b""
    data = b"" if logged and not Path(path).exists() else Path(path).read_bytes()
    return Pages(data, logged)
