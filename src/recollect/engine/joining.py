"""Joining a copy of this store that went on elsewhere: its commits become branches here, with the entries they have.

The common history of two branches is found by comparing entries. What the copy has committed since is written again,
after the same commit, as a branch of its own, so its log is the log that the copy has, and what was proved of it stays
true. If nothing was committed here since, it is the branch of the same name that goes on. The branch of a copy is kept,
so the next time only the commits since are written.

What was erased on one side is erased on the other one, too, unless that side knew of it and stored it again: an erasure
is known to a copy that has its commit, or one that repeats it. Where both have erased a record, each by itself, what
either has stored since stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from recollect.engine.answers import erase_answers
from recollect.engine.branch_results import Joined
from recollect.engine.branches import check_room, joined_branches, name_of_joined, note_joined, notes_of
from recollect.engine.core import Core
from recollect.engine.erasing import commits_with, lines_of, names_of_copies, parts_with, redact_notes
from recollect.engine.erasures import Erasures
from recollect.engine.family import chosen
from recollect.engine.read.log import together
from recollect.engine.scope import Place
from recollect.engine.settings import merge_setting, merged_upto, repeated_by, set_repeated
from recollect.engine.write.batch import Writing
from recollect.errors import DamagedStoreError, InvalidArgumentError, OriginError, UnsupportedError
from recollect.ledger.commits import MAIN, Branch, Change, Commit, Stored
from recollect.ledger.entries import note_hashes
from recollect.ledger.merkle import is_redacted, redacted_id, version_hash
from recollect.ledger.parts import RECORDS
from recollect.records.codec import microseconds
from recollect.records.origins import RANKS, USER
from recollect.records.record import Record
from recollect.stores import branches
from recollect.stores.base import Store, Transaction, View
from recollect.stores.branches import line_of, settle
from recollect.stores.replaying import Replayer
from recollect.stores.roots import newest_trie
from recollect.stores.values import RemovedPayload

#: Number of versions whose texts are read at once.
_AT_ONCE = 1000
#: Maximum number of branches that continue one another for which the branch of a copy continues an earlier one. Beyond
#: it, its commits are written again from the common history on.
_DEEP = 8
#: A record by the part of the memory that it belongs to, and its id as a redacted log has it.
_Item = tuple[str, str]


def join(core: Core, place: Place, other: Store, device: str) -> list[Joined]:
    """Write what a copy of this store has committed to a namespace since the common history.

    Args:
        place: The main branch of the namespace, and who joins.
        other: The copy. It is only read.
        device: How the branches of the copy are called here.

    Returns:
        The branches of the copy which have commits that the branch of the same name here does not have.

    Raises:
        OriginError: The caller is less than the user.
        InvalidArgumentError: It is no copy of this store.
        BranchLimitError: The namespace has as many branches as it can have.
        DamagedStoreError: The copy is corrupt.

    Cost:
        Reads the entries of both, and writes the commits that are new here, in one transaction for each branch.
    """
    if RANKS[place.origin] < RANKS[USER]:
        raise OriginError("joining a copy of the store", place.origin)
    _check_copy(core.store, other)
    with other.read() as view:
        lines = _lines(view, place.branch.namespace)
        joined = (_Joining(core, place, view, theirs, device).run() for theirs in lines)
        return [each for each in joined if each is not None]


def _check_copy(store: Store, other: Store) -> None:
    facts = store.facts(), other.facts()
    if facts[0].get("uuid") != facts[1].get("uuid") or store.key != other.key:
        raise InvalidArgumentError("copy", other.path, "is no copy of this store: it has another id or another key")
    if facts[0].get("path") == facts[1].get("path"):
        raise InvalidArgumentError("copy", other.path, "is this store itself")


def namespaces_of(other: Store) -> list[str]:
    """Return the namespaces of a store."""
    with other.read() as view:
        return sorted({branch.owner.namespace for branch in view.branches()})


def _lines(view: View, namespace: str) -> list[Branch]:
    """Return the branches of a namespace that have commits of their own, and belong to this copy of the store."""
    copies = {branch for branch, _ in joined_branches(view, namespace)}
    others = [each for each in view.continuing(namespace) if each.base.own_heads and each.branch not in copies]
    depths = {each.branch: sum(1 for _ in line_of(view, each.branch)) for each in others}
    return [Branch(namespace, MAIN), *sorted(depths, key=lambda each: (depths[each], each))]


def _all_lines(view: View, namespace: str) -> list[Branch]:
    return [Branch(namespace, MAIN), *(each.branch for each in view.continuing(namespace))]


def _common(here: View, ours: Branch, view: View, theirs: Branch) -> int:
    """Return the number of the first commits of two branches that are the same."""
    count = 0
    for one, other in zip(here.entries(ours, 0), view.entries(theirs, 0), strict=False):
        if one != other:
            break
        count += 1
    return count


def _commits(view: View, memory: Branch, since: int) -> Iterator[tuple[Commit, list[Commit]]]:
    """Yield the commits of a memory after one, each with those to other parts that it states."""
    heads = _part_heads(view, memory, since)
    parts = {name: view.commits(memory.reserved(name), since=seq) for name, seq in heads.items()}
    for commit in view.commits(memory, since=since):
        own: list[Commit] = []
        for part in commit.parts or ():
            while heads[part.name] < part.seq:
                own.append(next(parts[part.name]))
                heads[part.name] = own[-1].seq
        yield commit, own


def _part_heads(view: View, memory: Branch, seq: int) -> dict[str, int]:
    """Return the newest commit of each part of a memory after one of the memory; 0 for none."""
    head = view.head_at(memory, seq) if seq else None
    stated = {} if head is None else {each.name: each.seq for each in head.parts or ()}
    return {name: stated.get(name, 0) for name in chosen(memory, None) if name != RECORDS}


class _Erased(NamedTuple):
    """The erasure of a record.

    Attributes:
        id: Its id, as the log has it.
        entry: The entry of the commit of the memory that erased it, or of the one that this repeats.
    """

    id: str
    entry: bytes


def _erasures(view: View, memory: Branch, commit: Commit, parts: Iterable[Commit]) -> dict[_Item, _Erased]:
    """Return what a commit of a memory has erased, with its parts."""
    found = {
        (each.part, redacted_id(change.id)): change.id
        for each in (commit, *parts)
        for change in each.changes
        if change.cause == "erased"
    }
    repeats = repeated_by(view, memory).get(commit.seq, {}) if found else {}
    return {
        key: _Erased(record_id, bytes.fromhex(repeats[_key(key)]) if _key(key) in repeats else commit.entry)
        for key, record_id in found.items()
    }


def _with(earlier: _Erased | None, erased: _Erased) -> _Erased:
    """Return an erasure with an earlier one of the same record: redacted if one of them is."""
    return erased if earlier is None or not is_redacted(earlier.id) else erased._replace(id=earlier.id)


def _key(item: _Item) -> str:
    return f"{item[0]}:{item[1]}"


class _Begun(NamedTuple):
    """Where the commits of a branch of a copy go on here.

    Attributes:
        branch: The branch here that gets them.
        common: How many commits both have.
        ours: The branch here that has these; None if it is `branch` itself.
    """

    branch: Branch
    common: int
    ours: Branch | None


class _Planned(NamedTuple):
    """An erasure of the copy, as it is repeated here.

    Attributes:
        item: The record.
        id: Its id.
        versions: Those that lose their texts: the copy has not stored them again.
        redact: Whether the id is redacted. It is not if the record was stored again.
        entry: See `_Erased`.
    """

    item: _Item
    id: str
    versions: list[bytes]
    redact: bool
    entry: bytes


class _Joining:
    """The commits of a branch of a copy, as they are written here."""

    def __init__(self, core: Core, place: Place, view: View, theirs: Branch, device: str) -> None:
        self._core = core
        self._place = place
        self._view = view
        self._theirs = theirs
        self._device = device
        self._found: _Begun | None = None
        self._erased: dict[_Item, _Erased] = {}
        self._plan: list[_Planned] = []
        self._gone: dict[_Item, _Erased] = {}
        self._left: dict[str, dict[str, bytes]] = {}
        self._commits = 0

    def run(self) -> Joined | None:
        """Write them. Return None if the branch of the same name here has all of them."""
        newest = self._view.head(self._theirs).seq
        with self._core.store.read() as here:
            self._found = self._find(here)
        if self._found is not None and self._found.common < newest:
            touched: set[Branch] = set()
            with self._core.writing(self._place, first=self._replay) as writing:
                if self._found is not None:
                    touched = self._erase_here(writing, self._found.branch)
            if self._erased and self._found is not None:
                self._core.erasures.erased(sorted(touched | set(self._found.branch.family)))
            for part in () if self._found is None else self._found.branch.family:
                self._core.feed.wake(part)
        if self._found is None:
            return None
        branch, erased = self._found.branch.name, len(self._erased)
        return Joined(branch=branch, into=self._theirs.name, commits=self._commits, erased=erased)

    # Where they go on

    def _find(self, here: View) -> _Begun | None:
        """Return where the commits go on; None if the branch of the same name has all of them."""
        theirs, namespace = self._theirs, self._theirs.namespace
        exists = theirs.name == MAIN or here.base(theirs) is not None
        own = self._common(here, theirs) if exists else -1
        dropped = (notes_of(here, theirs) or {}).get("dropped")
        if own == self._view.head(theirs).seq or (dropped is not None and self._is_as(dropped)):
            return None
        joined = [branch for branch, of in joined_branches(here, namespace) if of == theirs.name]
        counts = [*([(own, theirs)] if exists else []), *((self._common(here, each), each) for each in joined)]
        if not counts:  # it is new in the copy: its commits begin with those of another one
            counts = [(self._common(here, each), each) for each in _all_lines(here, namespace)]
            joined = []
        common, ours = max(counts, key=lambda each: each[0])
        if (ours in joined or ours == theirs) and here.head(ours).seq == common:
            return _Begun(ours, common, None)
        if ours in joined and exists and sum(1 for _ in line_of(here, ours)) >= _DEEP:
            common, ours = own, theirs
        return _Begun(Branch(namespace, name_of_joined(here, theirs, self._device)), common, ours)

    def _common(self, here: View, ours: Branch) -> int:
        return _common(here, ours, self._view, self._theirs)

    def _is_as(self, dropped: Mapping[str, object]) -> bool:
        """Return whether the branch is the one that was dropped here, without later commits."""
        seq = self._view.head(self._theirs).seq
        entry = next(iter(self._view.entries(self._theirs, seq - 1)), b"")
        return (dropped.get("seq"), dropped.get("entry")) == (seq, entry.hex())

    # The commits

    def _replay(self, transaction: Transaction) -> None:
        """Write the commits that are new here, in the transaction of what follows them."""
        self._found = found = self._find(transaction)
        if found is None:  # another process has written them
            return
        known_here = _Known(transaction, found.branch.namespace)
        self._gone = self._erased_here(transaction)
        gone = dict(self._gone)
        self._begin(transaction, found)
        news: dict[int, dict[_Item, _Erased]] = {}
        for commit, parts in _commits(self._view, self._theirs, found.common):
            for item, erased in _erasures(self._view, self._theirs, commit, parts).items():
                if erased.entry not in known_here.entries:
                    news.setdefault(commit.seq, {})[item] = erased
        for erasures in news.values():
            for item, erased in erasures.items():
                self._erased[item] = _with(self._erased.get(item), erased)
        self._plan = list(self._planned(transaction, gone.keys()))
        redacted = {each.item for each in self._plan if each.redact}
        replay = _Replay(self._core.store.key, self._view, transaction, found.branch, self._theirs, gone, redacted)
        for commit, parts in _commits(self._view, self._theirs, found.common):
            replay.add(commit, parts)
            self._commits += 1
            if ended := gone.keys() & news.get(commit.seq, {}).keys():  # what follows was stored again
                replay.flush()
                for item in ended:
                    del gone[item]
        replay.flush()
        self._left = replay.left()
        self._take_snapshots(transaction, found)
        if found.branch != self._theirs:
            self._take_merges(transaction, found)

    def _begin(self, transaction: Transaction, found: _Begun) -> None:
        if not transaction.binds_parts:
            raise UnsupportedError("joining a copy", "the store is of format 3: convert it first (`recollect migrate`)")
        if found.ours is None:
            return
        branches.begin(transaction, found.branch, found.ours, found.common)
        check_room(transaction, found.branch)
        copy_of = None if found.branch == self._theirs else self._theirs.name
        note_joined(transaction, found.branch, copy_of, microseconds(self._core.now()))

    def _take_snapshots(self, transaction: Transaction, found: _Begun) -> None:
        """Mark the commits that were marked in the copy."""
        number = max((each.number for each in transaction.snapshots(found.branch)), default=0)
        for snapshot in reversed(self._view.snapshots(self._theirs)):
            if snapshot.seq > found.common:
                number += 1
                transaction.put_snapshot(found.branch, replace(snapshot, number=number))

    def _take_merges(self, transaction: Transaction, found: _Begun) -> None:
        """Note what was merged before: of an earlier branch of the copy here, and of branches of this store there."""
        into = Branch(self._theirs.namespace, self._theirs.name)
        if found.ours is not None and found.ours != into and (taken := merged_upto(transaction, found.ours, into)):
            transaction.set_setting(merge_setting(into, found.branch), str(min(taken, found.common)))
        given = merged_upto(transaction, into, found.branch)
        for there, of in joined_branches(self._view, into.namespace):
            if of == into.name and (upto := merged_upto(self._view, there, self._theirs)) > given:
                given = max(given, min(upto, _common(transaction, into, self._view, there)))
        if given:
            transaction.set_setting(merge_setting(found.branch, into), str(given))

    # What was erased

    def _erased_here(self, transaction: Transaction) -> dict[_Item, _Erased]:
        """Return what was erased here and the copy does not know."""
        namespace = self._theirs.namespace
        known, gone = _Known(self._view, namespace), dict[_Item, _Erased]()
        copies = names_of_copies(transaction, namespace)
        for line in _all_lines(transaction, namespace):
            if line.name in copies:
                continue  # see `parts_with`
            base = transaction.base(line)  # what a branch continues is examined there
            since = self._common(transaction, line) if base is None else base.seq
            for commit, parts in _commits(transaction, line, since):
                for item, erased in _erasures(transaction, line, commit, parts).items():
                    if erased.entry not in known.entries:
                        gone[item] = _with(gone.get(item), erased)
        return gone

    def _planned(self, transaction: Transaction, gone: Set[_Item]) -> Iterator[_Planned]:
        """Yield what is erased here.

        Args:
            gone: What was erased here and the copy does not know.
        """
        lines = lines_of(transaction, Branch(self._theirs.namespace, MAIN))
        for item, erased in sorted(self._erased.items()):
            parts, theirs = (
                [chosen(line, [item[0]])[item[0]] for line in lines],
                chosen(self._theirs, [item[0]])[item[0]],
            )
            for record_id in _ids(transaction, parts, erased.id):
                stored = [each for part in parts for each in transaction.versions_of(part, record_id)]
                found = list(dict.fromkeys(each.version for each in stored if each.payload is not None))
                again = self._view.payloads(theirs, found)
                versions = [each for each in found if each not in again]
                if versions and item in gone:
                    continue  # both have erased it, and it was stored again here
                redact = is_redacted(erased.id) and not again
                if versions or redact:
                    yield _Planned(item, record_id, versions, redact, erased.entry)

    def _erase_here(self, writing: Writing, own: Branch) -> set[Branch]:
        """Erase what the copy has erased, and what was erased here in its commits. Return the branches with commits.

        Args:
            own: The branch that has the commits of the copy.
        """
        transaction, memory = writing.transaction, Branch(own.namespace, MAIN)
        repeats: dict[Branch, dict[str, str]] = {}
        for name, left in self._left.items():
            writing.in_part(chosen(own, [name])[name]).writer.state_erased(left)
            items = [(name, redacted_id(record_id)) for record_id in left]
            repeats[own] = repeats.get(own, {}) | {
                _key(item): self._gone[item].entry.hex() for item in items if item in self._gone
            }
        copies = names_of_copies(transaction, own.namespace)
        touched: set[Branch] = set()
        noted: dict[tuple[Branch, int], Commit] = {}
        for (name, path), record_id, versions, redact, entry in self._plan:
            parts = {line: chosen(line, [name])[name] for line in lines_of(transaction, memory)}
            if redact:
                noted |= commits_with(transaction, parts.values(), record_id)
            # The log of the copy itself has the erasure, and what was redacted before it.
            others = [part for line, part in parts.items() if line != own]
            for part in parts_with(transaction, others, copies, record_id):
                writing.in_part(part).writer.erase(record_id, versions, redact=redact)
                touched.add(part)
                repeats.setdefault(Branch(own.namespace, part.name), {})[_key((name, path))] = entry.hex()
            if transaction.known(parts[own], record_id):
                transaction.erase(parts[own], record_id, versions, redact=False)
        for commit in noted.values():
            redact_notes(transaction, together(transaction, commit), self._core.store.key)
        for line, entries in repeats.items():
            set_repeated(transaction, line, transaction.head(line).seq + 1, entries)
        if self._erased:
            every = [part for line in _all_lines(transaction, own.namespace) for part in line.family]
            Erasures.note(transaction, every)
            erase_answers(transaction, memory, self._core.store.key)
            self._core.erasures.pending = True
        return touched


def _ids(view: View, parts: Iterable[Branch], in_log: str) -> list[str]:
    """Return the ids here of an id in the log of a copy, which may be redacted."""
    if not is_redacted(in_log):
        return [in_log]
    known = {each for part in parts for each in view.changed(part, 0)}
    return sorted((each for each in known if redacted_id(each) == in_log != each), key=str.encode)


class _Known:
    """The entries that a store has in any branch of a namespace, and those whose erasures it repeats."""

    def __init__(self, view: View, namespace: str) -> None:
        self._view = view
        self._namespace = namespace

    @cached_property
    def entries(self) -> frozenset[bytes]:
        """All of them."""
        found: set[bytes] = set()
        for line in _all_lines(self._view, self._namespace):
            base = self._view.base(line)
            found.update(self._view.entries(line, 0 if base is None else base.seq))
            for repeats in repeated_by(self._view, line).values():
                found.update(map(bytes.fromhex, repeats.values()))
        return frozenset(found)


class _Replay:
    """The commits of a branch of a copy and of its parts, written again.

    Args:
        key: The key of both stores.
        view: The copy.
        transaction: A transaction of this store.
        own: The branch that gets them.
        theirs: The branch of the copy.
        gone: What was erased here and the copy does not know. It can change after `flush`.
        redacted: What the copy has redacted, and is redacted here with these commits.
    """

    def __init__(
        self,
        key: bytes,
        view: View,
        transaction: Transaction,
        own: Branch,
        theirs: Branch,
        gone: Mapping[_Item, _Erased],
        redacted: Set[_Item],
    ) -> None:
        self._key = key
        self._view = view
        self._transaction = transaction
        self._own = chosen(own, None)
        self._theirs = chosen(theirs, None)
        self._gone = gone
        self._redacted = redacted
        self._waiting: list[tuple[Commit, bool]] = []
        self._size = 0
        self._versions: dict[tuple[str, bytes], Stored | RemovedPayload] = {}
        self._replayers: dict[str, Replayer] = {}
        self._names: dict[str, dict[str, str]] = {}
        self._redacted_before: set[_Item] = set()
        self._live_ids: dict[tuple[str, str], str] = {}  # of what is live and called by its redacted id
        self._live_redacted: dict[str, set[str]] = {}
        self._began_without: dict[str, frozenset[bytes]] = {}
        # By part and redacted id, the id and the version of what is live in the copy, and has no text here.
        self._live: dict[str, dict[str, tuple[str, bytes]]] = {}

    def add(self, commit: Commit, parts: list[Commit]) -> None:
        """Write a commit of the memory, after those to its parts."""
        together = [*parts, commit]
        redact = any(self._is_redacted(each.part, change.id) for each in together for change in each.changes)
        self._waiting += [(each, redact) for each in together]
        self._size += sum(len(each.changes) for each in together)
        if self._size >= _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        self._read()
        for commit, redact in self._waiting:
            self._write(commit, redact)
        self._waiting, self._size = [], 0

    def left(self) -> dict[str, dict[str, bytes]]:
        """Return what the commits have left live that was erased here, by part: id -> version.

        Raises:
            DamagedStoreError: Another record that is live has no text in the copy.
        """
        for part, live in self._live.items():
            for path, (record_id, version) in live.items():
                if (part, path) not in self._gone and version not in self._began_without[part]:
                    rule = f"record {record_id!r} of {part} is live, and has no text"
                    raise DamagedStoreError("the copy", rule)
        return {part: dict(live.values()) for part, live in self._live.items() if live}

    def _is_redacted(self, part: str, record_id: str) -> bool:
        """Return whether a record was erased and redacted here, and the copy does not know."""
        erased = self._gone.get(self._item(part, record_id))
        return erased is not None and is_redacted(erased.id)

    @staticmethod
    def _item(part: str, record_id: str) -> _Item:
        return part, redacted_id(record_id)

    def _read(self) -> None:
        """Read the versions that the waiting commits name."""
        self._versions.clear()
        named: dict[str, dict[bytes, str]] = {}
        for commit, _ in self._waiting:
            for change in commit.changes:
                if change.after is not None:
                    named.setdefault(commit.part, {})[change.after] = change.id
        for part, ids in named.items():
            theirs = self._theirs[part]
            payloads = self._view.payloads(theirs, list(ids))
            removed = self._view.removed(theirs, [each for each in ids if each not in payloads])
            here = self._transaction.payloads(self._own[part], list(ids))
            for version, record_id in ids.items():
                found: Stored | RemovedPayload
                if version in here:  # what is erased is removed at the end
                    found = Stored(version, here[version])
                elif self._item(part, record_id) in self._gone:  # never restored
                    found = RemovedPayload("erased", None if is_redacted(record_id) else record_id)
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
            erased = settle(self._transaction, own)
            self._began_without[part] = frozenset(erased.values())
            self._live_redacted[part] = {each for each in erased if is_redacted(each)}
            self._live[part] = {redacted_id(each): (each, version) for each, version in erased.items()}
            trie = newest_trie(self._transaction, own)
            self._replayers[part] = Replayer(own, self._key, lambda each: self._versions[part, each], trie)
        return self._replayers[part]

    def _named(self, part: str) -> dict[str, str]:
        """Return the ids that are known here, by redacted id."""
        if part not in self._names:
            lines = [chosen(each, [part])[part] for each in _all_lines(self._transaction, self._own[RECORDS].namespace)]
            known = {record_id for each in lines for record_id in self._transaction.changed(each, 0)}
            self._names[part] = {redacted_id(each): each for each in known if not is_redacted(each)}
        return self._names[part]

    def _id(self, part: str, record_id: str) -> str:
        """Return what the log has here in place of an id in the log of the copy.

        While a record is live, the commits of a branch call it the same.
        """
        item = self._item(part, record_id)
        if self._is_redacted(part, record_id) or item[1] in self._live_redacted[part]:
            return item[1]
        if not is_redacted(record_id) or item in self._redacted:
            return record_id
        return self._named(part).get(record_id, record_id)

    def _redact(self, part: str, change: Change) -> None:
        """Redact what was joined before under an id, and drop what is live under it."""
        own, item = self._own[part], (part, change.id)
        named = self._named(part).get(change.id) if item in self._redacted else None
        if named is not None and item not in self._redacted_before:
            self._redacted_before.add(item)
            self._transaction.drop(own, named)
            self._transaction.erase(own, named, [], redact=True)
        if (live := self._live_ids.pop(item, None)) is not None:
            self._transaction.drop(own, live)
        found = None if change.after is None else self._versions[part, change.after]
        if isinstance(found, Stored):
            self._live_ids[item] = Record.load(found.payload).id
        elif found is not None and change.after is not None:
            self._versions[part, change.after] = found._replace(id=None)

    def _write(self, commit: Commit, redact: bool) -> None:
        part, own, replayer = commit.part, self._own[commit.part], self._replayer(commit.part)
        changes = tuple(change._replace(id=self._id(part, change.id)) for change in commit.changes)
        for change in changes:
            if is_redacted(change.id):
                self._redact(part, change)
        redactions = dict(self._view.redactions(self._theirs[part], commit.seq))
        if redact:
            redactions |= note_hashes(commit, self._key)
            commit = replace(commit, actor=None, reason=None)
        written = replayer.write(self._transaction, replace(commit, branch=own.name, changes=changes), redactions)
        if (written.root.hash, written.entry) != (commit.root.hash, commit.entry):
            raise DamagedStoreError("the copy", f"commit {commit.seq} of {part} does not have its root or entry")
        live = self._live[part]
        for change in changes:
            live.pop(redacted_id(change.id), None)
            if change.after is None:
                self._live_redacted[part].discard(change.id)
            if change.after is not None and isinstance(self._versions[part, change.after], RemovedPayload):
                live[redacted_id(change.id)] = change.id, change.after
