"""Rescue: a new store with all that can be saved of one that is hurt, and a list of the rest.

The old file is read and never touched. The history is carried over up to the first commit that does not come to the
root it names; what is live beyond that is written in one more commit, whose actor is "recollect rescue".
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any

import apsw

from recollect.arguments import file_path, named
from recollect.errors import InvalidArgumentError, NotAStoreError, StoreIOError, StoreMissingError, WrongKeyError
from recollect.ledger.commits import Branch, Change, Commit, Stored
from recollect.ledger.merkle import PUBLIC_KEY, Root, Trie
from recollect.records.codec import microseconds
from recollect.records.record import Record, utc_now
from recollect.stores.base import Transaction
from recollect.stores.sqlite import checksums
from recollect.stores.sqlite.errors import translated
from recollect.stores.sqlite.header import has_wal, part_beside, replace_durably
from recollect.stores.sqlite.salvage import Lost, Salvage, Saved
from recollect.stores.sqlite.store import SqliteStore, key_check
from recollect.stores.sqlite.view import usual_parents

ACTOR = "recollect rescue"
#: So many changes are written in a transaction, and more only where a single commit has them.
_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RescueReport:
    """What became of a store.

    records  how many are saved, by namespace
    commits  how many of the history are, by namespace
    same     whether the root of what is saved is the newest of the old store, by namespace: then nothing live is lost
    lost     what could not be saved, with reasons
    """

    records: Mapping[str, int]
    commits: Mapping[str, int]
    same: Mapping[str, bool]
    lost: tuple[Lost, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "records": dict(self.records),
            "commits": dict(self.commits),
            "same_root": dict(self.same),
            "lost": [each._asdict() for each in self.lost],
        }


@named
def rescue(old: str | os.PathLike[str], new: str | os.PathLike[str], *, key: bytes | None = None) -> RescueReport:
    """Save every record of the file `old` whose hash still verifies, into a new store at `new`.

    key  the store's, where it was made with one of its own

    Other programs should not write to `old` meanwhile. It is only read, with the log beside it, and whatever is hurt
    in it is passed over: records are found page by page, and each is held to its hash.

    Raises: StoreMissingError, NotAStoreError, WrongKeyError; InvalidArgumentError where `new` is there; StoreError.
    Cost: reads everything, and holds it in memory.
    """
    source, target = file_path("old", old), file_path("new", new)
    if os.path.lexists(target):
        raise InvalidArgumentError("new", target, "is there already: give another path")
    if not os.path.exists(source) and not has_wal(source):
        raise StoreMissingError(source)
    if os.path.exists(source) and not os.path.isfile(source):
        raise NotAStoreError(source, "it is not a regular file")
    secret = key or PUBLIC_KEY
    try:
        salvage = Salvage(source, secret)
    except OSError as error:
        raise StoreIOError(source, error.strerror or str(error)) from error
    if salvage.key_check not in (None, key_check(secret)):
        raise WrongKeyError(source)
    if salvage.empty:
        raise NotAStoreError(source, "nothing that belongs to a store was found in it")
    part = part_beside(target)
    try:
        store = SqliteStore(part, key=secret)
        try:
            report = _written(store, salvage)
        finally:
            store.close()
        _in_one_file(part)
        replace_durably(part, target)
    finally:
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                os.unlink(part + suffix)
    return report


def _in_one_file(path: str) -> None:
    """Carry what the log still has into the file: closing a store does so where it can, and tells nobody where not.

    Raises: StoreFullError, other StoreErrors.
    """
    with translated(path), closing(checksums.connect(path, apsw.SQLITE_OPEN_READWRITE)) as connection:
        connection.execute("SELECT name FROM meta").fetchall()  # now it knows of the log
        pages, carried = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        if pages != carried:
            raise StoreIOError(path, "not all of its log could be carried into it")


def _written(store: SqliteStore, salvage: Salvage) -> RescueReport:
    records: dict[str, int] = {}
    commits: dict[str, int] = {}
    same: dict[str, bool] = {}
    lost: list[Lost] = []
    for branch, saved in salvage.branches():
        proved = _proved(saved)
        _Writer(store, branch, saved).write(proved)
        with store.read() as view:
            root = view.head(branch).root.hash
        name = branch.namespace
        records[name] = records.get(name, 0) + len(saved.live)
        commits[name] = commits.get(name, 0) + len(proved)
        same[name] = same.get(name, True) and root == saved.root
        lost.extend(saved.lost)
    return RescueReport(records=records, commits=commits, same=same, lost=tuple(lost))


class _Kept:
    """Pages of a trie in memory."""

    def __init__(self) -> None:
        self._bodies: list[bytes] = []

    def node(self, page: int) -> bytes:
        return self._bodies[page - 1]

    def add_node(self, body: bytes) -> int:
        self._bodies.append(body)
        return len(self._bodies)


def _proved(saved: Saved) -> list[Commit]:
    """The commits from the first on, up to the one before the first that does not come to the root it names."""
    trie, pages = Trie(Root()), _Kept()
    out: list[Commit] = []
    for commit in saved.log:
        if any(change.after is not None and change.after not in saved.versions for change in commit.changes):
            break
        if out and commit.micros <= out[-1].micros:
            break
        if trie.update({change.id: change.after for change in commit.changes}, pages).hash != commit.root.hash:
            break
        out.append(commit)
    return out


class _Writer:
    """Writes what is saved of a line."""

    def __init__(self, store: SqliteStore, branch: Branch, saved: Saved) -> None:
        self._store = store
        self._branch = branch
        self._saved = saved
        self._held: dict[str, bytes] = {}
        self._trie = Trie(Root())
        self._micros = -(2**63)

    def write(self, proved: Sequence[Commit]) -> None:
        """The commits that were proved, then one more with what else is live."""
        at = 0
        while at < len(proved):
            with self._store.write() as transaction:
                changes = 0
                while at < len(proved) and (not changes or changes + len(proved[at].changes) <= _AT_ONCE):
                    self._commit(transaction, proved[at])
                    changes += len(proved[at].changes)
                    at += 1
        live = {record_id: stored.version for record_id, stored in self._saved.live.items()}
        changes_ = [
            Change(record_id, self._held.get(record_id), live.get(record_id), _cause(live.get(record_id)))
            for record_id in sorted(live.keys() | self._held.keys())
            if live.get(record_id) != self._held.get(record_id)
        ]
        if changes_:
            seq = len(proved) + 1
            more = Commit(
                namespace=self._branch.namespace,
                branch=self._branch.name,
                seq=seq,
                parents=usual_parents(self._branch, seq),
                micros=max(microseconds(utc_now()), self._micros + 1),
                actor=ACTOR,
                reason="what was live in a store that was hurt",
                root=Root(),
                changes=tuple(changes_),
            )
            with self._store.write() as transaction:
                self._commit(transaction, more)

    def _commit(self, transaction: Transaction, commit: Commit) -> None:
        for change in commit.changes:
            if change.after is None:
                transaction.drop(self._branch, change.id)
                self._held.pop(change.id, None)
            else:
                stored: Stored = self._saved.versions[change.after]
                transaction.put(self._branch, Record.load(stored.payload), stored)
                self._held[change.id] = change.after
        root = self._trie.update({change.id: change.after for change in commit.changes}, transaction)
        transaction.append(replace(commit, root=root))
        self._micros = commit.micros


def _cause(after: bytes | None) -> str:
    return "forgotten" if after is None else "written"
