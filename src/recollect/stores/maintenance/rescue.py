"""Rescue: a new store with everything that can be saved from a corrupt one, and a list of the rest.

The old file is only read. The history is copied up to the first commit that does not match its root; versions that were
erased are copied without their payloads. Records that became live later are written in one more commit, whose actor is
"recollect rescue". Settings, such as quotas, and snapshots of copied commits are copied.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import apsw

from recollect.arguments.checks import file_path
from recollect.arguments.signatures import named
from recollect.errors import (
    InvalidArgumentError,
    NotAStoreError,
    OlderFormatError,
    StoreIOError,
    StoreMissingError,
    WrongKeyError,
)
from recollect.ledger.commits import Branch, Change, Commit, Stored
from recollect.ledger.entries import entry_hash
from recollect.ledger.merkle import Live, Root, Trie
from recollect.records.codec import microseconds
from recollect.records.record import utc_now
from recollect.stores.branches import parents_of, settle
from recollect.stores.parts import newest_parts, state
from recollect.stores.replaying import Replayer
from recollect.stores.roots import newest_trie, trim
from recollect.stores.sealing.keys import Secret
from recollect.stores.sealing.pages import PageCipher
from recollect.stores.sealing.secrets import secret_or_default
from recollect.stores.sqlite import schema
from recollect.stores.sqlite.encryption import key_check, key_file_beside, keys_at, store_keys
from recollect.stores.sqlite.header import has_wal, part_path, replace_durably
from recollect.stores.sqlite.salvage import Lost, Salvage, Saved, salvaged
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite.view import SqliteTransaction
from recollect.stores.sqlite_base import checksums
from recollect.stores.sqlite_base.errors import translated
from recollect.stores.values import RemovedPayload

ACTOR = "recollect rescue"
#: Maximum number of changes written in one transaction; only a single larger commit exceeds it.
_AT_ONCE = 1000


class RescuedBranch(NamedTuple):
    """The contents of a branch that were saved.

    Attributes:
        records: The number of live records saved.
        commits: The number of commits saved, from the first one on.
        without_history: The number of later commits of the old store. They are not saved one by one: a single commit
            leads to the state after them.
        same_root: Whether the root of what was saved equals the newest root of the old store. If so, no live record is
            lost.
    """

    records: int
    commits: int
    without_history: int
    same_root: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RescueReport:
    """The result of a rescue.

    Attributes:
        branches: What was saved, by branch.
        settings: The names of the settings saved, such as "quota/NAMESPACE".
        lost: What could not be saved, with reasons.
    """

    branches: Mapping[Branch, RescuedBranch]
    settings: tuple[str, ...]
    lost: tuple[Lost, ...]

    @property
    def records(self) -> int:
        """The number of live records saved in all branches."""
        return sum(each.records for each in self.branches.values())

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "branches": [
                {"namespace": branch.namespace, "branch": branch.name, **each._asdict()}
                for branch, each in self.branches.items()
            ],
            "settings": list(self.settings),
            "lost": [each._asdict() for each in self.lost],
        }


@named
def rescue(
    old: str | os.PathLike[str],
    new: str | os.PathLike[str],
    *,
    key: bytes | None = None,
    secret: Secret | None = None,
) -> RescueReport:
    """Save every record of the file `old` whose hash still verifies, into a new store at `new`.

    Other programs should not write to `old` meanwhile. The file and its WAL are only read. Records are searched page by
    page and verified by their hashes; whatever is corrupt is skipped.

    Args:
        old: The corrupt store.
        new: The path of the new store, which must not exist.
        key: The store key, if the store was created with its own.
        secret: The secret of an encrypted store, whose new store is encrypted with the same keys and gets a copy of the
            key file. Default: that in the file that RECOLLECT_SECRET_FILE names.

    Raises:
        SecretNeededError, WrongSecretError, KeyFileMissingError, NotEncryptedError: See `recollect.open`.
        StoreMissingError: There is neither a file at `old` nor a WAL next to it.
        NotAStoreError: Nothing in it belongs to a store.
        OlderFormatError: It has a format that this release cannot read.
        WrongKeyError: The store was created with another key.
        InvalidArgumentError: `new` exists.
        StoreError: Reading or writing failed.

    Cost:
        Reads everything into memory.
    """
    source, target = file_path("old", old), file_path("new", new)
    if os.path.lexists(target):
        raise InvalidArgumentError("new", target, "already exists: give another path")
    if not os.path.exists(source) and not has_wal(source):
        raise StoreMissingError(source, "the file does not exist")
    if os.path.exists(source) and not os.path.isfile(source):
        raise NotAStoreError(source, "it is not a regular file")
    keys = keys_at(source, secret_or_default(secret))
    cipher = None if keys is None else keys.pages("db")
    try:
        salvage = salvaged(source, store_keys(key, keys), cipher)
    except OSError as error:
        raise StoreIOError(source, error.strerror or str(error)) from error
    if salvage.format is not None and salvage.format < schema.READS_FROM:
        raise OlderFormatError(source, f"it has format {salvage.format}, which this release cannot rescue")
    if salvage.key_check not in (None, key_check(salvage.key)):
        raise WrongKeyError(source)
    if salvage.empty:
        raise NotAStoreError(source, "it contains no part of a store")
    part = part_path(target)
    try:
        store = SqliteStore(part, key=salvage.key, secret=keys, zone_of_new=lambda: salvage.zone or "UTC")
        try:
            report = _write_all(store, salvage)
        finally:
            store.close()
        _checkpoint(part, cipher)
        with key_file_beside(source, keys, target):
            replace_durably(part, target)
    finally:
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                os.unlink(part + suffix)
    return report


def _checkpoint(path: str, cipher: PageCipher | None) -> None:
    """Copy the rest of the WAL into the file. Closing a store does so, too, but does not report a failure.

    Raises:
        StoreFullError: The disk is full.
        StoreError: The checkpoint failed or is incomplete.
    """
    with (
        translated(path),
        closing(checksums.connect(path, apsw.SQLITE_OPEN_READWRITE, cipher=cipher)) as connection,
    ):
        connection.execute("SELECT name FROM meta").fetchall()  # makes SQLite open the WAL
        pages, checkpointed = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        if pages != checkpointed:
            raise StoreIOError(path, "its WAL could not be checkpointed completely")


def _write_all(store: SqliteStore, salvage: Salvage) -> RescueReport:
    branches: dict[Branch, RescuedBranch] = {}
    settings, lost = salvage.settings()
    with store.write(Branch("settings")) as transaction:
        for name, value in settings.items():
            transaction.set_setting(name, value)
    for branch, saved in salvage.branches():
        proved = _proved(saved, salvage)
        begun = _begin(store, branch, saved, proved)
        if saved.base is None or saved.base.own_heads or begun is None:
            _Writer(store, branch, saved, begun).write(proved)
        with store.read() as view:
            root, records = view.head(branch).root.hash, sum(1 for _ in view.versions(branch))
        later = max(saved.seq - len(proved), 0)
        branches[branch] = RescuedBranch(records, len(proved), later, root == saved.root or not later)
        lost.extend(saved.lost)
    for memory in {branch.owner for branch in branches}:
        _state_parts(store, memory)
    return RescueReport(branches=branches, settings=tuple(sorted(settings)), lost=tuple(lost))


class _Begun(NamedTuple):
    """A branch that continues another one again.

    Attributes:
        seq: The number of commits that it has from that one.
        erased: The versions of the ids that are live after these, but were erased since.
    """

    seq: int
    erased: dict[str, bytes]


def _begin(store: SqliteStore, branch: Branch, saved: Saved, proved: Sequence[Commit]) -> _Begun | None:
    """Let a branch continue the one that it has continued; None if the commits of that were not saved."""
    base = saved.base
    if base is None or len(proved) < base.seq:
        return None
    with store.write(branch) as transaction:
        head = transaction.head_at(base.branch, base.seq) if base.seq else None
        entries = transaction.entries(base.branch, base.seq - 1) if head is not None else iter(())
        if base.seq and next(iter(entries), b"") != proved[base.seq - 1].entry:
            return None
        transaction.continue_from(branch, base.branch, base.seq)
        return _Begun(base.seq, settle(transaction, branch) if base.own_heads else {})


def _state_parts(store: SqliteStore, memory: Branch) -> None:
    """Let the log of a memory state the parts as they were rescued, if it does not."""
    with store.write(memory) as transaction:
        parts, head = newest_parts(transaction, memory), transaction.head(memory)
        if head.parts is not None and head.parts != parts:
            micros = max(microseconds(utc_now()), head.micros + 1)
            state(transaction, memory, parts, micros, store.key, ACTOR, "parts of a corrupt store as they were rescued")


class _MemoryPages:
    """Trie pages in memory."""

    def __init__(self) -> None:
        self._bodies: list[bytes] = []

    def node(self, page: int) -> bytes:
        return self._bodies[page - 1]

    def nodes(self, pages: Sequence[int]) -> dict[int, bytes]:
        return {page: self.node(page) for page in pages}

    def add_node(self, body: bytes) -> int:
        self._bodies.append(body)
        return len(self._bodies)


def _proved(saved: Saved, salvage: Salvage) -> list[Commit]:
    """Return the commits before the first one that does not match its root or its entry."""
    trie, pages = Trie(Root()), _MemoryPages()
    out: list[Commit] = []
    for commit in saved.log:
        versions = [change.after for change in commit.changes if change.after is not None]
        if any(each not in saved.versions and each not in saved.removed for each in versions):
            break
        if out and commit.micros <= out[-1].micros:
            break
        changes = {each.id: None if each.after is None else Live(each.after, 0) for each in commit.changes}
        if trie.update(changes, pages).hash != commit.root.hash:
            break
        if entry_hash(commit, salvage.key, saved.redacted.get(commit.seq)) != commit.entry:
            break
        out.append(commit)
    return out


class _Writer:
    """Writes what was saved of one branch."""

    def __init__(self, store: SqliteStore, branch: Branch, saved: Saved, begun: _Begun | None) -> None:
        self._store = store
        self._branch = branch
        self._saved = saved
        self._begins = 0 if begun is None else begun.seq
        with store.read() as view:
            head, trie = view.head(branch), newest_trie(view, branch)
            live = {} if begun is None else {each: stored.version for each, stored in view.versions(branch)}
        self._replayer = Replayer(branch, store.key, self._version, trie)
        self._live = self._replayer.live
        self._live.update(live if begun is None else live | begun.erased)
        self._micros = head.micros

    def write(self, proved: Sequence[Commit]) -> None:
        """Write the verified commits, then one more with everything else that is live."""
        at = self._begins
        while at < len(proved):
            with self._store.write(self._branch) as transaction:
                changes = 0
                while at < len(proved) and (not changes or changes + len(proved[at].changes) <= _AT_ONCE):
                    self._commit(transaction, proved[at])
                    changes += len(proved[at].changes)
                    at += 1
        with self._store.write(self._branch) as transaction:
            for snapshot in self._saved.snapshots:
                if snapshot.seq <= len(proved):
                    transaction.put_snapshot(self._branch, snapshot)
        live = {record_id: stored.version for record_id, stored in self._saved.live.items()}
        differences = [
            Change(record_id, self._live.get(record_id), live.get(record_id), self._cause(record_id, live))
            for record_id in sorted(live.keys() | self._live.keys())
            if live.get(record_id) != self._live.get(record_id)
        ]
        if differences:
            seq = len(proved) + 1
            with self._store.read() as view:
                parents = parents_of(view, self._branch, view.head(self._branch))
            commit = Commit(
                namespace=self._branch.namespace,
                branch=self._branch.name,
                seq=seq,
                parents=parents,
                micros=max(microseconds(utc_now()), self._micros + 1),
                actor=ACTOR,
                reason="state of a corrupt store after its last verified commit",
                root=Root(),
                changes=tuple(differences),
            )
            with self._store.write(self._branch) as transaction:
                self._commit(transaction, commit)
        while trim(self._store, self._branch):
            pass

    def _commit(self, transaction: SqliteTransaction, commit: Commit) -> None:
        self._replayer.write(transaction, commit, self._saved.redacted.get(commit.seq, {}))
        self._micros = commit.micros

    def _version(self, version: bytes) -> Stored | RemovedPayload:
        return self._saved.versions.get(version) or self._saved.removed[version]

    def _cause(self, record_id: str, live: Mapping[str, bytes]) -> str:
        """Return the cause of the change that leads to what is live."""
        if record_id in live:
            return "written"
        return "erased" if self._live[record_id] in self._saved.removed else "forgotten"
