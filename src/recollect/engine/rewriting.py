"""The commits of a branch of another copy of the store, written again with the entries that they have.

Of what was erased here and the copy does not know, no text is stored. The log of a branch calls a record the same as
long as it is live: its id, or what that was redacted to.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from recollect.engine.family import chosen
from recollect.engine.known_erasures import ErasuresOfBoth, Item, erased_in
from recollect.errors import DamagedStoreError, UnsupportedError
from recollect.ledger.commits import MAIN, Branch, Change, Commit, Stored
from recollect.ledger.entries import note_hashes
from recollect.ledger.merkle import is_redacted, redacted_id, version_hash
from recollect.records.record import Record
from recollect.stores.base import Transaction, View
from recollect.stores.branches import settle
from recollect.stores.replaying import Replayer
from recollect.stores.roots import newest_trie
from recollect.stores.values import RemovedPayload

#: Number of versions whose texts are read at once.
_AT_ONCE = 1000


class Planned(NamedTuple):
    """An erasure of the copy, as it is repeated here.

    Attributes:
        item: The record.
        id: Its id, or what it was redacted to if none is known here.
        versions: Those that lose their texts: the copy has not stored them again.
        redact: Whether the id is redacted. It is not if the record was stored again.
    """

    item: Item
    id: str
    versions: list[bytes]
    redact: bool


class Rewriting:
    """The commits of a branch of a copy and of its parts, as they are written.

    Args:
        key: The key of both stores.
        view: The copy.
        transaction: A transaction of this store, which has removed the texts that are erased.
        own: The branch that gets them.
        theirs: The branch of the copy.
        both: What was erased here, and in the copy.
        plan: What the copy has erased, and was not known here.
    """

    def __init__(
        self,
        key: bytes,
        view: View,
        transaction: Transaction,
        own: Branch,
        theirs: Branch,
        both: ErasuresOfBoth,
        plan: Sequence[Planned],
    ) -> None:
        self._key = key
        self._view = view
        self._transaction = transaction
        self._own = chosen(own, None)
        self._theirs = chosen(theirs, None)
        self._unknown = both.unknown
        self._gone = dict(both.unknown)  # until the copy has erased it, too: what it stored afterwards stays
        self._ends = both.ends
        self._plan = {each.item: each for each in plan}
        self._erased = {version for each in plan for version in each.versions}
        self._waiting: list[tuple[Commit, list[Commit]]] = []
        self._size = 0
        self._versions: dict[tuple[str, bytes], Stored | RemovedPayload] = {}
        self._replayers: dict[str, Replayer] = {}
        # By part and redacted id, the name and the version of what is live in the log, and has no text.
        self._bare: dict[str, dict[str, tuple[str, bytes]]] = {}
        self._began_bare: dict[str, frozenset[bytes]] = {}

    def add(self, commit: Commit, parts: list[Commit]) -> None:
        """Write a commit of the memory, after those to its parts."""
        self._waiting.append((commit, parts))
        self._size += sum(len(each.changes) for each in (commit, *parts))
        ends = any(item in self._gone and item in self._ends for item, _ in erased_in(commit, parts))
        if self._size >= _AT_ONCE or ends:
            self.flush()

    def pass_by(self, commit: Commit, parts: list[Commit]) -> None:
        """Note that a commit is written, or was before: what the copy has erased itself, it stores again on purpose."""
        is_main = commit.branch == MAIN
        for item, _ in erased_in(commit, parts):
            if item in self._ends and (not is_main or commit.seq >= self._ends[item]):
                self._gone.pop(item, None)

    def flush(self) -> None:
        """Write what waits."""
        self._read()
        for commit, parts in self._waiting:
            together = [*parts, commit]
            redact = any(self._is_redacted(each.part, change.id) for each in together for change in each.changes)
            for each in together:
                self._write(each, redact)
            self.pass_by(commit, parts)
        self._waiting, self._size = [], 0

    def left(self) -> dict[str, dict[str, bytes]]:
        """Return what is live at the end and has no text, as it was erased here, by part: name -> version.

        Raises:
            DamagedStoreError: Another record that is live has no text in the copy.
        """
        for part, bare in self._bare.items():
            for path, (record_id, version) in bare.items():
                if (part, path) not in self._unknown and version not in self._began_bare[part]:
                    rule = f"record {record_id!r} of {part} is live, and has no text"
                    raise DamagedStoreError("the copy", rule)
        return {part: dict(bare.values()) for part, bare in self._bare.items() if bare}

    def _is_redacted(self, part: str, record_id: str) -> bool:
        """Return whether a record was erased and redacted here, and the copy does not know or use its id again."""
        item = part, redacted_id(record_id)
        return item in self._gone and is_redacted(self._gone[item].id) and item not in self._ends

    def _read(self) -> None:
        """Read the versions that the waiting commits name."""
        self._versions.clear()
        named: dict[str, dict[bytes, str]] = {}
        for commit, parts in self._waiting:
            for each in (commit, *parts):
                for change in each.changes:
                    if change.after is not None:
                        named.setdefault(each.part, {})[change.after] = change.id
        for part, ids in named.items():
            theirs, own = self._theirs[part], self._own[part]
            payloads = self._view.payloads(theirs, list(ids))
            removed = self._view.removed(theirs, [each for each in ids if each not in payloads])
            here = self._transaction.payloads(own, list(ids))
            gone = self._transaction.removed(own, [each for each in ids if each not in here])
            for version, record_id in ids.items():
                item = part, redacted_id(record_id)
                was_erased = version in gone and gone[version].cause == "erased"
                found: Stored | RemovedPayload
                if version in self._erased:
                    found = RemovedPayload("erased", record_id)
                elif version in here:
                    found = Stored(version, here[version])
                elif item in self._gone or (item in self._unknown and was_erased):  # never restored
                    found = RemovedPayload("erased", record_id)
                elif version in payloads:
                    found = Stored(version, payloads[version])
                    if version_hash(Record.load(found.payload).id, found.payload, self._key) != version:
                        raise DamagedStoreError("the copy", f"a text of {part} does not match its hash")
                elif version in removed:
                    found = removed[version]
                else:
                    raise DamagedStoreError("the copy", f"version {version.hex()[:16]} of {part} is missing")
                self._versions[part, version] = found

    def _replayer(self, part: str) -> Replayer:
        if part not in self._replayers:
            own = self._own[part]
            bare = {redacted_id(each): (each, version) for each, version in settle(self._transaction, own).items()}
            self._bare[part], head = bare, self._transaction.head(own).seq
            for (name, path), each in self._plan.items():
                if name != part:
                    continue
                version = self._transaction.versions_at(own, [each.id], head).get(each.id)
                if version is not None and version in self._erased:
                    self._transaction.drop(own, each.id)
                    bare[path] = each.id, version
                if each.redact:  # what was written of the branch so far; what is stored under the id later keeps it
                    self._transaction.erase(own, each.id, [], redact=True)
                    if path in bare:
                        bare[path] = path, bare[path][1]
            self._began_bare[part] = frozenset(version for _, version in bare.values())
            trie = newest_trie(self._transaction, own)
            self._replayers[part] = Replayer(own, self._key, lambda each: self._versions[part, each], trie)
        return self._replayers[part]

    def _named(self, part: str, change: Change, dropped: Set[str]) -> str:
        """Return what the log here calls the record of a change.

        Args:
            dropped: What earlier changes of the commit have dropped, by redacted id.
        """
        item = part, redacted_id(change.id)
        if item[1] in self._bare[part] and item[1] not in dropped:
            name = self._bare[part][item[1]][0]
            if (
                is_redacted(name)
                and change.after is not None
                and isinstance(self._versions[part, change.after], Stored)
            ):
                rule = f"it goes on with a record that was redacted here ({name!r}): erase that in the copy, too"
                raise UnsupportedError("joining this copy", rule)
            return name
        if change.after is not None and isinstance(found := self._versions[part, change.after], Stored):
            record_id = Record.load(found.payload).id
            if redacted_id(record_id) != item[1]:
                raise DamagedStoreError("the copy", f"a commit of {part} calls record {record_id!r} {change.id!r}")
            return record_id
        if item in self._plan and not self._plan[item].redact and is_redacted(change.id):
            return self._plan[item].id
        return item[1] if self._is_redacted(part, change.id) else change.id

    def _write(self, commit: Commit, redact: bool) -> None:
        part, own, replayer = commit.part, self._own[commit.part], self._replayer(commit.part)
        changes: list[Change] = []
        dropped: set[str] = set()
        for change in commit.changes:
            changes.append(change._replace(id=self._named(part, change, dropped)))
            if change.after is None:
                dropped.add(redacted_id(change.id))
        for change in changes:
            if change.after is not None:
                found = self._versions[part, change.after]
                if isinstance(found, RemovedPayload):
                    named = None if is_redacted(change.id) else change.id
                    self._versions[part, change.after] = found._replace(id=named)
        redactions = dict(self._view.redactions(self._theirs[part], commit.seq))
        if redact:
            redactions |= note_hashes(commit, self._key)
            commit = replace(commit, actor=None, reason=None)
        written = replayer.write(
            self._transaction, replace(commit, branch=own.name, changes=tuple(changes)), redactions
        )
        if (written.root.hash, written.entry) != (commit.root.hash, commit.entry):
            raise DamagedStoreError("the copy", f"commit {commit.seq} of {part} does not have its root or entry")
        bare = self._bare[part]
        for change in changes:
            bare.pop(redacted_id(change.id), None)
            if change.after is not None and isinstance(self._versions[part, change.after], RemovedPayload):
                bare[redacted_id(change.id)] = change.id, change.after
