"""Copying a store into another one, of the same kind or another: a file becomes a database, and a database a file.

The whole history is written again through the store contract (`stores.replaying`), so every commit of the copy has the
root and the entry that it has in the source, which is verified as it is written. A copy that was interrupted, or that
is older than the source, is continued where it ends. What is derived (indexes, vectors, uses) is not copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from recollect.arguments.json_form import JsonForm
from recollect.errors import DamagedStoreError, InvalidArgumentError
from recollect.ledger.commits import Branch, Commit, Stored
from recollect.ledger.merkle import Root
from recollect.stores.base import Store, Transaction, View
from recollect.stores.branches import line_of, remove, settle
from recollect.stores.replaying import Replayer
from recollect.stores.roots import disagreements, newest_trie
from recollect.stores.values import RemovedPayload

#: Maximum number of changes in one transaction; only a single larger commit exceeds it.
_AT_ONCE = 1000
#: Settings that say what is left to do in the files of the source, of which the copy has none.
_NOT_COPIED = ("erasing", "probe")


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport(JsonForm, what="a copy of a store"):
    """The result of a copy.

    Attributes:
        branches: The number of branches, those of parts of memories included.
        commits: The number of commits that were written now.
        there: The number of commits that the target had already.
        settings: The number of settings, such as quotas and the answers to writes with a key.
    """

    branches: int
    commits: int
    there: int
    settings: int


def copy_store(source: Store, target: Store, progress: Callable[[int], Any] = lambda commits: None) -> CopyReport:
    """Copy the newest state of a store, with its history, into another one.

    Args:
        source: The store that is read. Others can write to it meanwhile, where it has snapshots.
        target: The store that is written: an empty one, or an earlier copy. Nobody else should write to it.
        progress: Called with the number of commits that were written, from time to time.

    Raises:
        InvalidArgumentError: The target has another history, key or time zone, so it is no copy of the source.
        DamagedStoreError: The source is corrupt: what is written does not have its roots.
        StoreError: Reading or writing failed. What was copied stays, and the next call continues.
    """
    if source.key != target.key or source.id_key != target.id_key:
        raise InvalidArgumentError("target", target.path, "was created with another key than the source")
    if source.zone != target.zone:
        rule = f"has the time zone {target.zone}, and the source has {source.zone}: create it with that one"
        raise InvalidArgumentError("target", target.path, rule)
    commits = there = 0
    with source.read() as view:
        branches = _all_branches(view)
        with target.read() as own:
            there_already = _all_branches(own)
            strange = [each for each in there_already if each not in branches and own.base(each) is None]
            dropped = [each for each in reversed(there_already) if each not in branches and not each.is_reserved]
        for branch in dropped if not strange else ():
            with target.write(branch) as transaction:
                remove(transaction, branch)
        if strange:
            rule = f"has the namespace {strange[0].owner.namespace!r}, which the source has not"
            raise InvalidArgumentError("target", target.path, rule)
        for branch in branches:
            copying = _Branch(source, target, view, branch)
            copying.begin()
            there += copying.compare()
            for written in copying.write():
                commits += written
                progress(commits)
            copying.write_snapshots()
        settings = _write_settings(view, target)
        _verify(view, target, branches)
    return CopyReport(branches=len(branches), commits=commits, there=there, settings=settings)


def _all_branches(view: View) -> list[Branch]:
    """Return all branches: those that others continue first, and the parts of a memory before it states their heads."""
    found = dict.fromkeys(view.branches(), 0)
    for namespace in sorted({branch.owner.namespace for branch in found}):
        for part in Branch(namespace).family:
            for each in view.continuing(part.namespace):
                found[each.branch] = sum(1 for _ in line_of(view, each.branch)) - 1

    def order(branch: Branch) -> tuple[Any, ...]:
        depth = found.get(branch.owner, found[branch])  # a copy that was interrupted has parts without their memory
        return branch.owner.namespace, depth, not branch.is_reserved, branch

    return sorted(found, key=order)


class _Branch:
    """The copy of one branch."""

    def __init__(self, source: Store, target: Store, view: View, branch: Branch) -> None:
        self._source = source
        self._target = target
        self._view = view
        self._branch = branch
        self._versions: dict[bytes, Stored | RemovedPayload] = {}

    def begin(self) -> None:
        """Let the branch continue the one that it continues in the source."""
        base = self._view.base(self._branch)
        if base is None:
            return
        with self._target.write(self._branch) as transaction:
            found = transaction.base(self._branch)
            if found is None:
                if transaction.head(self._branch).seq:
                    raise self._differs("has a branch that begins empty, and continues another one in the source")
                transaction.continue_from(self._branch, base.branch, base.seq)
            elif found[:2] != base[:2]:
                raise self._differs("has a branch that continues another commit than in the source")
            if base.own_heads:
                settle(transaction, self._branch)

    def compare(self) -> int:
        """Return the number of commits of its own that the target has. Raise InvalidArgumentError if one is another."""
        with self._target.read() as own:
            head = own.head(self._branch)
            theirs = self._view.commits(self._branch, before=head.seq + 1)
            for mine, other in zip_longest(own.commits(self._branch), theirs):
                if mine is None or other is None or _plain(mine) != _plain(other):
                    raise self._differs("has another history, or texts that were erased in the source since")
                self._read([mine])
                for change in mine.changes:
                    version = change.after
                    kept = version is not None and own.payload(self._branch, version) is not None
                    if version is not None and kept and not isinstance(self._versions[version], Stored):
                        raise self._differs("has texts that were erased in the source since")
                    if version is not None and not kept and isinstance(self._versions[version], Stored):
                        raise self._differs("has erased texts that the source still has")
        base = self._view.base(self._branch)
        return head.seq - (0 if base is None else base.seq)

    def _differs(self, rule: str) -> InvalidArgumentError:
        name = self._branch.owner.namespace
        return InvalidArgumentError("target", self._target.path, f"{rule} (namespace {name!r}): copy into an empty one")

    def write(self) -> Iterator[int]:
        """Write the commits that the target lacks, and yield the number of those of each transaction."""
        with self._target.read() as own:
            head, trie = own.head(self._branch), newest_trie(own, self._branch)
        replayer = Replayer(self._branch, self._source.key, self._versions.__getitem__, trie)
        waiting: list[Commit] = []
        for commit in self._view.commits(self._branch, since=head.seq):
            if waiting and sum(len(each.changes) for each in waiting) + len(commit.changes) > _AT_ONCE:
                yield self._write_some(replayer, waiting)
                waiting = []
            waiting.append(commit)
        if waiting:
            yield self._write_some(replayer, waiting)

    def _write_some(self, replayer: Replayer, commits: list[Commit]) -> int:
        self._read(commits)
        with self._target.write(self._branch) as transaction:
            for commit in commits:
                written = replayer.write(transaction, commit, self._view.redactions(self._branch, commit.seq))
                if (written.root.hash, written.entry) != (commit.root.hash, commit.entry):
                    name = self._branch.owner.namespace
                    rule = f"namespace {name!r}: commit {commit.seq} does not have its root or entry"
                    raise DamagedStoreError(self._source.path, rule)
        return len(commits)

    def _read(self, commits: list[Commit]) -> None:
        """Read the versions that some commits name."""
        named = {change.after: None for commit in commits for change in commit.changes if change.after is not None}
        payloads = self._view.payloads(self._branch, list(named))
        removed = self._view.removed(self._branch, [version for version in named if version not in payloads])
        self._versions.clear()
        for version in named:
            found = payloads.get(version)
            if found is None and version not in removed:
                rule = f"namespace {self._branch.owner.namespace!r}: version {version.hex()[:16]} is missing"
                raise DamagedStoreError(self._source.path, rule)
            self._versions[version] = removed[version] if found is None else Stored(version, found)

    def write_snapshots(self) -> None:
        """Give the target the snapshots of the source, and no others."""
        wanted = {each.number: each for each in self._view.snapshots(self._branch)}
        with self._target.read() as own:
            found = {each.number: each for each in own.snapshots(self._branch)}
        if wanted == found:
            return
        with self._target.write(self._branch) as transaction:
            for number, each in found.items():
                if wanted.get(number) != each:
                    transaction.drop_snapshot(self._branch, number)
            for number, each in sorted(wanted.items()):
                if found.get(number) != each:
                    transaction.put_snapshot(self._branch, each)


def _plain(commit: Commit) -> Commit:
    """Return a commit without the number of the page of its root, which each store has of its own."""
    return replace(commit, root=Root(commit.root.hash))


def _write_settings(view: View, target: Store) -> int:
    wanted = {
        name: value
        for name, value in view.settings("", "\U0010ffff").items()
        if name.partition("/")[0] not in _NOT_COPIED
    }
    with target.read() as own:
        found = own.settings("", "\U0010ffff")
    owners = {branch.owner.namespace for branch in view.branches()}
    by_owner: dict[str, list[tuple[str, str | None]]] = {}
    for name in wanted.keys() | found.keys():
        if wanted.get(name) != found.get(name) and name.partition("/")[0] not in _NOT_COPIED:
            owner = Branch(name.partition("/")[2] or name).owner.namespace
            # Those of no memory, such as the answers to writes with a key, go with one that is there.
            owner = owner if owner in owners or not owners else min(owners)
            by_owner.setdefault(owner, []).append((name, wanted.get(name)))
    for owner, settings in sorted(by_owner.items()):
        with target.write(Branch(owner)) as transaction:
            _set(transaction, settings)
    return len(wanted)


def _set(transaction: Transaction, settings: list[tuple[str, str | None]]) -> None:
    for name, value in sorted(settings):
        transaction.set_setting(name, value)


def _verify(view: View, target: Store, branches: list[Branch]) -> None:
    """Raise DamagedStoreError unless the target has the heads of the source, and records that lead to its roots."""
    with target.read() as own:
        for branch in branches:
            wanted, found = view.head(branch), own.head(branch)
            if (wanted.seq, wanted.memory_root, wanted.micros) != (found.seq, found.memory_root, found.micros):
                rule = f"the copy of namespace {branch.owner.namespace!r} does not have the root of the source"
                raise DamagedStoreError(target.path, rule)
    problems = disagreements(target)
    if problems:
        raise DamagedStoreError(target.path, f"the copy is not complete: {problems[0]}")
