"""Salvage: everything that can be read from a corrupt store, and a list of what is lost.

Every page is read separately (`pages`). A version is accepted if the hash of its payload is the address it is stored
under, and a commit from a page that does not match its checksum if it has the hash of its entry: another SQLite writes
pages without checksums (`renewing`). Which version of an id was live is determined from the leaves of the Merkle trie
under the newest root, the heads and the log, as far as they are readable. Nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from recollect.errors import CodecError
from recollect.ledger.commits import CAUSES, MAIN, Branch, Change, Commit, Snapshot, Stored
from recollect.ledger.entries import entry_hash
from recollect.ledger.merkle import (
    EMPTY,
    Root,
    path_in_log,
    version_hash,
)
from recollect.ledger.parts import decode_parts
from recollect.records.record import Record
from recollect.stores.sealing.pages import PageCipher
from recollect.stores.sql.columns import SETTING, decoded_parents, implicit_parents
from recollect.stores.sqlite.encryption import key_check
from recollect.stores.sqlite.header import wal_path
from recollect.stores.sqlite.leaves import SavedLeaves
from recollect.stores.sqlite.pages import INDEX_INTERIOR, INDEX_LEAF, TABLE_LEAF, FilePages, Row, Value
from recollect.stores.sqlite_base.descriptors import read
from recollect.stores.values import Base, RemovedPayload

R = TypeVar("R")

_HASH_BYTES = 32
#: What is taken of a page: all of it, or only what its own hash verifies, or what that does not.
_INTACT, _BY_HASH, _UNVERIFIED = range(3)
#: The beginnings of the names of settings that are saved: quotas, and what is noted of branches and their merges.
_SAVED_SETTINGS = ("quota/", "branch/", "merge/", "repeated/")
#: The b-trees that are read by name, in addition to the tables whose rows are recognised by their shape.
_READ_BY_NAME = ("meta", *(f"sqlite_autoindex_{table}_1" for table in ("namespaces", "branches", "heads", "versions")))
_UNSURE = "it is not known which version was live, if any: the newest readable one was saved"
_HEAD_COLUMNS, _CHANGE_COLUMNS, _BRANCH_COLUMNS = 17, 7, 8
#: Rows of format 3 have no parts.
_COMMIT_COLUMNS_3, _COMMIT_COLUMNS = 10, 11


class Lost(NamedTuple):
    """Something that cannot be saved.

    Attributes:
        what: "record", "commit", "namespace", or "settings" (quotas).
        name: The id of the record, the seq of the commit, or the substitute name of the namespace.
        version: For a record, the hash of its live version in hex; "" if it is unknown.
        reason: The reason, for people.
    """

    namespace: str
    what: str
    name: str
    version: str
    reason: str

    def __str__(self) -> str:
        return f"namespace {self.namespace!r}, {self.what} {self.name!r}: {self.reason}"


class Saved(NamedTuple):
    """The contents of a branch that can be saved.

    Attributes:
        live: The live versions by id.
        versions: Every readable version of the store, by its hash.
        removed: The versions whose payload was removed, by their hash.
        log: The commits from the first one on, up to the first that is incomplete; of a branch that continues another
            one, with those of that one.
        redacted: The commitments to redacted actors and reasons, by seq and name.
        seq: The number of the newest commit that anything was read of; 0 if there is none.
        root: The newest root; None if it is lost.
        lost: What cannot be saved.
        base: Where it begins, if it continues another branch.
    """

    live: dict[str, Stored]
    versions: dict[bytes, Stored]
    removed: dict[bytes, RemovedPayload]
    log: list[Commit]
    redacted: dict[int, dict[str, bytes]]
    seq: int
    root: bytes | None
    snapshots: list[Snapshot]
    lost: list[Lost]
    base: Base | None = None


class Salvage:
    """The readable rows of a file, by table.

    Args:
        path: The file. It is only read, together with its WAL.
        key: The store's key.
        cipher: The cipher of an encrypted file.

    Raises:
        OSError: The file cannot be read.
    """

    def __init__(self, path: str, key: bytes, cipher: PageCipher | None = None) -> None:
        self.key = key
        self.pages = _read(path, cipher)
        self._encrypted = cipher is not None
        self._namespaces: dict[int, str] = {}
        self._branches: dict[int, tuple[int, str]] = {}
        self._bases: dict[int, tuple[int, int, bool]] = {}  # the base, its commit, and whether there are own heads
        self._meta: dict[str, Value] = {}
        # By computed hash, not by stored hash or namespace, which may be corrupt although the payload is intact. A
        # corrupt payload has a computed hash that nothing refers to.
        self._versions: dict[bytes, Stored] = {}
        self._ids: dict[bytes, str] = {}
        self._of_id: dict[tuple[int, str], dict[int, bytes]] = {}  # the versions of an id, by number
        self._numbers: dict[int, tuple[int, bytes]] = {}  # namespaces and hashes of versions, by number
        self._corrupt: set[bytes] = set()  # stored hashes that their payloads do not match
        self._heads: dict[tuple[int, str], int | None] = {}
        self._commits: dict[int, dict[int, tuple[object, ...]]] = {}
        self._changes: dict[int, dict[int, dict[int, Change]]] = {}
        self._nodes: dict[int, bytes] = {}
        self._snapshots: dict[int, list[tuple[int, str | None, int, int]]] = {}
        self._removed: dict[int, RemovedPayload] = {}  # by the number of the version
        self._redacted: dict[int, dict[int, dict[str, bytes]]] = {}  # commitments by branch and seq
        # The rows of commits (None) and changes (their index) in pages without their checksums, by branch and seq.
        self._unsure: dict[tuple[int, int], list[int | None]] = {}
        free = self.pages.free()
        others = [number for number in range(1, self.pages.count + 1) if not self._take_page(number, free)]
        self._take_indexes(self.pages.intact)
        for number in others:  # what other pages have is not replaced
            for row in self.pages.rows(number):
                self._take(self.pages.kind(number), row, trust=_BY_HASH, free=number in free)
            if not self.pages.is_damaged(number):
                for row in self.pages.rows(number):
                    self._take(self.pages.kind(number), row, trust=_UNVERIFIED, free=number in free)
        self._take_indexes(lambda number: not self.pages.is_damaged(number))
        self._drop_unproved()

    def _take_page(self, number: int, free: Container[int]) -> bool:
        """Store the rows of a page if it is intact, and return whether it is."""
        if not self.pages.intact(number):
            return False
        for row in self.pages.rows(number):
            self._take(self.pages.kind(number), row, trust=_INTACT, free=number in free)
        return True

    def _take(self, kind: int, row: Row, *, trust: int, free: bool) -> None:
        """Store a row in the attribute of its table, which is recognised by the row's shape: no two tables share one.

        Args:
            kind: The kind of its page.
            trust: Whether its page is intact (_INTACT), or only rows that have a hash are taken (_BY_HASH), or all
                others (_UNVERIFIED), unless an intact page has them.
            free: Whether its page is on the freelist.
        """
        intact = trust == _INTACT
        match row.values:
            case (None, int(namespace), bytes(digest), bytes() | None as payload) if kind == TABLE_LEAF:
                self._take_version(row.number, namespace, digest, payload, intact=intact)
            case (None, bytes(body)) if kind == TABLE_LEAF and row.number:
                if intact or row.number not in self._nodes:  # its hash is verified when it is used
                    self._nodes[row.number] = body
            case _ if trust == _BY_HASH:
                return
            case (None, int(branch_number), str(head), int(version), *_) as values if (
                kind == TABLE_LEAF and len(values) == _HEAD_COLUMNS and not free
            ):
                self._heads.setdefault((branch_number, head), version)
            case (None, str(name)) if kind == TABLE_LEAF and row.number:
                self._namespaces.setdefault(row.number, name)
            case (None, ("erased" | "thinned") as why, str() | None as removed_id) if kind == TABLE_LEAF and row.number:
                self._removed.setdefault(row.number, RemovedPayload(why, removed_id))
            case (int(branch_number), int(seq), str(name), bytes(commitment)) if kind in (INDEX_LEAF, INDEX_INTERIOR):
                self._redacted.setdefault(branch_number, {}).setdefault(seq, {}).setdefault(name, commitment)
            case (None, int(namespace), str(name), *_) as values if (
                kind == TABLE_LEAF and row.number and len(values) == _BRANCH_COLUMNS
            ):
                self._branches.setdefault(row.number, (namespace, name))
                base, base_seq, kept = values[3], values[4], values[6]
                if isinstance(base, int) and isinstance(base_seq, int) and isinstance(kept, int):
                    self._bases.setdefault(row.number, (base, base_seq, kept >= base_seq))
            case (int(branch_number), int(number), str() | None as name, int(seq), int(micros)) if kind == INDEX_LEAF:
                known = self._snapshots.setdefault(branch_number, [])
                if intact or all(each[0] != number for each in known):
                    known.append((number, name, seq, micros))
            case (int(branch_number), int(seq), *_) as values if kind in (INDEX_LEAF, INDEX_INTERIOR):
                commits = self._commits.setdefault(branch_number, {})
                if len(values) in (_COMMIT_COLUMNS_3, _COMMIT_COLUMNS) and isinstance(values[6], bytes):
                    if intact or seq not in commits:
                        self._note(branch_number, seq, None, intact=intact)
                        commits[seq] = (*values, None)[:_COMMIT_COLUMNS]
                elif len(values) == _CHANGE_COLUMNS and values[6] in CAUSES:
                    _, _, index, record_id, before, after, cause = values
                    if isinstance(index, int) and isinstance(record_id, str) and _has_path(record_id):
                        changes = self._changes.setdefault(branch_number, {}).setdefault(seq, {})
                        if intact or index not in changes:
                            self._note(branch_number, seq, index, intact=intact)
                            changes[index] = Change(record_id, before, after, cause)  # type: ignore[arg-type]

    def _note(self, branch_number: int, seq: int, index: int | None, *, intact: bool) -> None:
        if not intact:
            self._unsure.setdefault((branch_number, seq), []).append(index)

    def _drop_unproved(self) -> None:
        """Drop rows of the log in pages without their checksums if their commit does not have the hash of its entry."""
        for (branch_number, seq), rows in self._unsure.items():
            _, name = self._branches.get(branch_number, (0, "main"))
            commit = self._commit(branch_number, Branch("", name), seq)
            redacted = self._redacted.get(branch_number, {}).get(seq)
            if commit is not None and entry_hash(commit, self.key, redacted) == commit.entry:
                continue
            for index in rows:
                if index is None:
                    del self._commits[branch_number][seq]
                else:
                    del self._changes[branch_number][seq][index]
            if not self._changes.get(branch_number, {}).get(seq, True):
                del self._changes[branch_number][seq]

    def _take_version(
        self, number: int | None, namespace: int, digest: bytes, payload: bytes | None, *, intact: bool
    ) -> None:
        at = (namespace, digest)
        if number is not None and intact:
            self._numbers[number] = at
        if payload is None or digest in self._versions:
            return
        try:
            record_id = Record.from_bytes(payload).id
        except CodecError:
            self._corrupt.add(digest)
            return
        computed = version_hash(record_id, payload, self.key)
        self._versions[computed] = Stored(computed, payload)
        self._ids[computed] = record_id
        if computed != digest:
            self._corrupt.add(digest)
            return
        self._of_id.setdefault((namespace, record_id), {})[number or 0] = digest
        if number is not None:
            self._numbers.setdefault(number, at)

    def _take_indexes(self, may_read: Callable[[int], bool]) -> None:
        """Read from the indexes what the tables have lost: names, ids, and the numbers of versions."""
        for name, root in self.trees().items():
            for page in self.pages.below(root) if name in _READ_BY_NAME else ():
                if not may_read(page):
                    continue
                for row in self.pages.rows(page):
                    match name, row.values:
                        case "meta", (str(text), value):
                            self._meta.setdefault(text, value)
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
        """The stored bytes by which a wrong key is detected; None if they are lost."""
        return self._meta.get("key_check")

    @property
    def format(self) -> int | None:
        """The number of the file's format; None if it is lost."""
        found = self._meta.get("format")
        return found if isinstance(found, int) else None

    @property
    def empty(self) -> bool:
        """True if the file contains no part of a store."""
        return not (self._versions or self._heads or self._changes or self._commits or self._branches or self._corrupt)

    @property
    def zone(self) -> str | None:
        """The name of the time zone; None if it is lost or the store has none."""
        found = self._meta.get("zone")
        return found if isinstance(found, str) else None

    def settings(self) -> tuple[dict[str, str], list[Lost]]:
        """Return the settings that are saved, by name, and what is lost of them."""
        saved: dict[str, str] = {}
        lost: list[Lost] = []
        root = self.trees().get("meta")
        if root is None or any(map(self.pages.is_damaged, self.pages.below(root))):
            lost.append(Lost("", "settings", "", "", "a page that can contain quotas and the time zone cannot be read"))
        for name, value in self._meta.items():
            setting = name.removeprefix(SETTING)
            if name.startswith(SETTING) and setting.startswith(_SAVED_SETTINGS):
                try:
                    if not isinstance(json.loads(str(value)), (dict, int)):
                        raise ValueError
                except ValueError:
                    kind, _, namespace = setting.partition("/")
                    lost.append(Lost(namespace, "settings", name, "", f"the {kind} cannot be read"))
                else:
                    saved[setting] = str(value)
        return saved, lost

    def trees(self) -> dict[str, int]:
        """Return the root page of each table and index by name, as far as the schema can be read."""
        return self.pages.trees()

    def branches(self) -> Iterator[tuple[Branch, Saved]]:
        """Yield every branch with what can be saved of it."""
        branches = {branch_number for branch_number, _ in self._heads} | self._changes.keys() | self._commits.keys()
        for branch_number in sorted(branches | self._branches.keys()):
            namespace, name = self._branches.get(branch_number, (branch_number, "main"))
            branch = Branch(self._namespaces.get(namespace) or self._substitute_name(namespace), name)
            saved = self._saved(branch_number, namespace, branch)
            if namespace not in self._namespaces:
                why = "its name cannot be read: it is saved under this one"
                saved.lost.insert(0, Lost(branch.namespace, "namespace", branch.namespace, "", why))
            yield branch, saved

    def _substitute_name(self, namespace: int) -> str:
        """Return an unused name for a namespace whose own name is lost."""
        name = f"namespace-{namespace}"
        while name in self._namespaces.values():
            name += "-lost"
        return name

    def _saved(self, branch_number: int, namespace: int, branch: Branch) -> Saved:
        begins, own_heads = self._bases[branch_number][1:] if branch_number in self._bases else (0, True)
        log, commits = self._with_base(self._changes, branch_number), self._with_base(self._commits, branch_number)
        newest: dict[str, bytes | None] = {}
        earlier: dict[str, set[bytes | None]] = {}
        for seq in sorted(log):
            for index in sorted(log[seq]):
                change = log[seq][index]
                if change.id in newest:
                    earlier.setdefault(change.id, set()).add(newest[change.id])
                newest[change.id] = change.after
        live: dict[str, Stored] = {}
        lost: list[Lost] = []
        heads = {record_id: number for (branch_, record_id), number in self._heads.items() if branch_ == branch_number}
        root = self._newest_root(commits, log)
        trie = SavedLeaves(root, self._nodes)
        trie.identify(self._ids.items())
        trie.identify((change.after, change.id) for at in log.values() for change in at.values() if change.after)
        own = {record_id for namespace_, record_id in self._of_id if namespace_ == namespace}
        digest: bytes | None
        for record_id in sorted({*newest, *heads, *own, *trie.found}) if own_heads else ():
            pointed = self._numbers.get(heads.get(record_id) or 0)
            versions = self._of_id.get((namespace, record_id), {})
            leaf = trie.leaf_of(record_id)
            if leaf is not None:  # certain, because the root covers it
                digest = trie.versions[leaf]
            elif trie.proves_absence(record_id):
                continue
            else:
                # A head with a version that the log has replaced is a stale row in a page that is no longer in use.
                current = pointed is not None and pointed[1] not in earlier.get(record_id, ())
                digest = pointed[1] if pointed is not None and current else newest.get(record_id)
                if digest is None and record_id in newest and record_id not in heads:
                    continue  # forgotten
                if not current:
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
                why = "does not match its hash" if digest in self._corrupt else "cannot be read"
                older = [each.hex()[:16] for each in versions.values()]
                also = f"; its other readable versions are {', '.join(older)}" if older else ""
                lost.append(Lost(branch.namespace, "record", record_id, digest.hex(), f"its version {why}{also}"))
        last = max((*commits, *log), default=begins)
        lost.extend(
            Lost(branch.namespace, "commit", str(seq), "", "it or some of its changes cannot be read")
            for seq in range(begins + 1, last + 1)
            if (commit := self._commit(branch_number, branch, seq)) is None
            or (seq not in log and not self._changes_nothing(branch_number, commit))
        )
        history = list(self._log(branch_number, branch))
        removed = {
            digest: each
            for number, each in self._removed.items()
            for owner, digest in [self._numbers.get(number, (None, b""))]
            if owner == namespace and digest not in self._versions
        }
        return Saved(
            live=live,
            versions=self._versions,
            removed=removed,
            log=history,
            redacted=self._with_base(self._redacted, branch_number),
            seq=last,
            root=None if root is None else root.hash,
            snapshots=self._snapshots_of(branch_number, history),
            lost=lost,
            base=self._base(branch_number, branch),
        )

    def _base(self, branch_number: int, branch: Branch) -> Base | None:
        if branch_number not in self._bases:
            return None
        number, seq, own_heads = self._bases[branch_number]
        return Base(branch._replace(name=self._branches.get(number, (0, MAIN))[1]), seq, own_heads)

    def _where(self, branch_number: int, seq: int) -> int:
        """Return the branch whose rows have a commit of a branch: it, or one that it continues."""
        while branch_number in self._bases and seq <= self._bases[branch_number][1]:
            branch_number = self._bases[branch_number][0]
        return branch_number

    def _with_base(self, rows: Mapping[int, Mapping[int, R]], branch_number: int) -> dict[int, R]:
        """Return the rows of a branch by seq, with those of the branches that it continues."""
        out = dict(rows.get(branch_number, {}))
        if branch_number in self._bases:
            base, seq, _ = self._bases[branch_number]
            out |= {at: row for at, row in self._with_base(rows, base).items() if at <= seq}
        return out

    def _snapshots_of(self, branch_number: int, history: list[Commit]) -> list[Snapshot]:
        roots = {0: EMPTY} | {commit.seq: commit.root.hash for commit in history}
        return [
            Snapshot(number=number, name=name, seq=seq, root=roots[seq].hex(), micros=micros)
            for number, name, seq, micros in sorted(self._snapshots.get(branch_number, ()))
            if seq in roots
        ]

    @staticmethod
    def _newest_root(commits: dict[int, tuple[object, ...]], log: Iterable[int]) -> Root | None:
        """Return the root of the newest commit; None if it is lost."""
        last = max(commits, default=0)
        if not last or max(log, default=0) > last:
            return None
        *_, digest, _, page, _, _ = commits[last]
        return Root(digest, page) if isinstance(digest, bytes) and isinstance(page, int) else None

    def _log(self, branch_number: int, branch: Branch) -> Iterator[Commit]:
        """Yield the commits from the first one on, up to the first that is incomplete."""
        for seq in range(1, len(self._with_base(self._commits, branch_number)) + 1):
            commit = self._commit(branch_number, branch, seq)
            if commit is None:
                return
            yield commit

    def _changes_nothing(self, branch_number: int, commit: Commit) -> bool:
        """Return whether a commit without readable changes has none, as one that only follows another part."""
        redacted = self._redacted.get(branch_number, {}).get(commit.seq)
        return commit.parts is not None and entry_hash(commit, self.key, redacted) == commit.entry

    def _commit(self, branch_number: int, branch: Branch, seq: int) -> Commit | None:
        """Return a commit; None if it is incomplete."""
        branch_number = self._where(branch_number, seq)
        named = branch._replace(name=self._branches.get(branch_number, (0, branch.name))[1])
        changes = self._changes.get(branch_number, {}).get(seq, {})
        row = self._commits.get(branch_number, {}).get(seq)
        if row is None or sorted(changes) != list(range(len(changes))):
            return None
        match row:
            case (
                _,
                _,
                str() | None as parents,
                int(micros),
                str() | None as actor,
                str() | None as reason,
                bytes(root),
                bytes(entry),
                int() | None as page,
                _,
                bytes() | None as parts,
            ):
                try:
                    decoded = implicit_parents(named, seq) if parents is None else decoded_parents(parents)
                    stated = None if parts is None else decode_parts(parts)
                except ValueError:
                    return None
                return Commit(
                    namespace=branch.namespace,
                    branch=branch.name,
                    seq=seq,
                    parents=decoded,
                    micros=micros,
                    actor=actor,
                    reason=reason,
                    root=Root(root, page or 0),
                    changes=tuple(changes[index] for index in sorted(changes)),
                    entry=entry,
                    parts=stated,
                )
        return None

    def corrupt_pages(self) -> Iterator[str]:
        """Yield a message for each corrupt page, with the table that it belongs to."""
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
            intact, zeros = self.pages.intact(number), not self.pages.page(number).strip(b"\0")
            if zeros or not intact:
                owner = owners.get(number, "sqlite_schema" if number == 1 else "an unknown table")
                wrong = "is not authentic" if self._encrypted else "does not match its checksum"
                yield f"page {number}, of {owner}, {'is all zeros' if zeros and intact else wrong}"


def _has_path(record_id: str) -> bool:
    """Return whether an id from the log is not redacted, or is a valid redacted id."""
    try:
        path_in_log(record_id)
    except ValueError:
        return False
    return True


def _read(path: str, cipher: PageCipher | None) -> FilePages:
    """Return the pages of a file and its WAL; only those of the WAL, if the file is missing."""
    wal_file = Path(wal_path(path))
    wal = wal_file.read_bytes() if wal_file.exists() else b""
    data = b"" if wal and not Path(path).exists() else read(path)
    return FilePages(data, wal, cipher)


def salvaged(path: str, candidates: Sequence[bytes], cipher: PageCipher | None = None) -> Salvage:
    """Return the readable rows of a file that was created with one of these store keys, the likeliest one first.

    If the file does not tell with which, it is the one with which most records verify.
    """
    found = [Salvage(path, candidates[0], cipher)]
    if len(candidates) > 1 and found[0].key_check != key_check(candidates[0]):
        found += [Salvage(path, each, cipher) for each in candidates[1:]]
        stated = [each for each in found if each.key_check == key_check(each.key)]
        found = stated or sorted(found, key=_verifying, reverse=True)
    return found[0]


def _verifying(salvage: Salvage) -> int:
    return sum(len(saved.live) for _, saved in salvage.branches())
