"""Joining a copy of this store that went on elsewhere: its commits become branches here, with the entries they have.

The common history of two branches is found by comparing entries. What the copy has committed since is written again,
after the same commit, as a branch of its own, so its log is the log that the copy has, and what was proved of it stays
true. If nothing was committed here since, it is the branch of the same name that goes on. The branch of a copy is kept,
so the next time only the commits since are written.

What was erased on one side is erased on the other one, too, unless that side knew of it and stored it again. Where both
have erased a record, neither knowing of the other, what either has stored since stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import NamedTuple

from recollect.engine.answers import erase_answers
from recollect.engine.branches import (
    check_room,
    is_at,
    joined_branches,
    merged_of_copies,
    name_of_joined,
    note_joined,
    note_merged_there,
    notes_of,
)
from recollect.engine.core import Core
from recollect.engine.erasing import commits_with, lines_of, parts_with, redact_notes
from recollect.engine.erasures import Erasures
from recollect.engine.family import chosen
from recollect.engine.known_erasures import ErasuresOfBoth, commits_with_parts, erasures_of_both, key
from recollect.engine.read.log import together
from recollect.engine.rewriting import Planned, Rewriting
from recollect.engine.scope import Place
from recollect.engine.settings import (
    Policies,
    Taken,
    merged_upto,
    policies_of,
    quota_of,
    repeated_by,
    set_merged,
    set_repeated,
)
from recollect.engine.write.batch import Writing
from recollect.errors import InvalidArgumentError, OriginError, UnsupportedError
from recollect.ledger.commits import MAIN, Branch, Commit
from recollect.ledger.merkle import is_redacted, redacted_id
from recollect.ledger.parts import RECORDS
from recollect.records.codec import microseconds
from recollect.records.origins import RANKS, USER
from recollect.stores import branches
from recollect.stores.base import Store, Transaction, View
from recollect.stores.branches import line_of

#: Maximum number of branches that continue one another for which the branch of a copy continues an earlier one. Beyond
#: it, its commits are written again from the common history on.
_DEEP = 8


class Joined(NamedTuple):
    """A branch of a copy, as it is here.

    Attributes:
        branch: The name of the branch that has its commits here.
        into: Its own name.
        commits: How many commits were written now.
        is_merged: Whether there is a branch of its own name here, which is not that of the commits.
    """

    branch: str
    into: str
    commits: int
    is_merged: bool


def join(core: Core, place: Place, other: Store, device: str) -> tuple[list[Joined], int]:
    """Write what a copy of this store has committed to a namespace since the common history.

    Args:
        place: The main branch of the namespace, and who joins.
        other: The copy. It is only read.
        device: How the branches of the copy are called here.

    Returns:
        The branches of the copy which have commits that the branch of the same name here does not have; and how many
        records the copy has erased, and were erased here.

    Raises:
        OriginError: The caller is less than the user.
        InvalidArgumentError: It is no copy of this store.
        UnsupportedError: One of both has no branches.
        BranchLimitError: The namespace has as many branches as it can have.
        DamagedStoreError: The copy is corrupt.

    Cost:
        Reads the entries of both, and writes the commits that are new here, in one transaction.
    """
    if RANKS[place.origin] < RANKS[USER]:
        raise OriginError("joining a copy of the store", place.origin)
    _check_copy(core.store, other)
    with other.read() as view:
        return _Joining(core, place, view, device).run()


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


def _copies(view: View, namespace: str) -> dict[Branch, str]:
    """Return the branches that have commits of other copies, each with the name that it has there."""
    return dict(joined_branches(view, namespace))


def _own_lines(view: View, namespace: str) -> list[Branch]:
    """Return the branches of a namespace that have commits of their own, and belong to this copy of the store.

    Each comes after the one that it continues.
    """
    copies = _copies(view, namespace)
    others = [each.branch for each in view.continuing(namespace) if each.base.own_heads and each.branch not in copies]
    depths = {each: sum(1 for _ in line_of(view, each)) for each in others}
    return [Branch(namespace, MAIN), *sorted(depths, key=lambda each: (depths[each], each))]


class _Common:
    """How many of the first commits of a branch here and of one of the copy are the same."""

    def __init__(self, here: View, view: View) -> None:
        self._views = here, view
        self._found: dict[tuple[Branch, Branch], int] = {}

    def of(self, ours: Branch, theirs: Branch) -> int:
        """Return it. Entries that a branch shares with the one that it continues are compared once."""
        if (ours, theirs) not in self._found:
            bases = [view.base(each) for view, each in zip(self._views, (ours, theirs), strict=True)]
            since = 0
            for base, pair in (
                (bases[0], (ours if bases[0] is None else bases[0].branch, theirs)),
                (bases[1], (ours, theirs if bases[1] is None else bases[1].branch)),
            ):
                if base is not None:
                    found = self.of(*pair)
                    if found < base.seq:
                        since = found
                        break
                    since = max(since, base.seq)
            else:
                here, view = self._views
                for one, other in zip(here.entries(ours, since), view.entries(theirs, since), strict=False):
                    if one != other:
                        break
                    since += 1
            self._found[ours, theirs] = since
        return self._found[ours, theirs]

    def forget(self, ours: Branch) -> None:
        """Forget what was found of a branch here that has got commits since."""
        self._found = {pair: found for pair, found in self._found.items() if pair[0] != ours}


def _note_newest(transaction: Transaction, branch: Branch, into: Branch, found: Iterable[Taken]) -> None:
    """Note the newest of some states of a branch as merged into another one, unless a later one is noted."""
    known = merged_upto(transaction, branch, into)
    newest = max(found, key=lambda each: each.seq, default=None)
    if newest is not None and (known is None or newest.seq > known.seq):
        set_merged(transaction, branch, into, newest)


class _Begun(NamedTuple):
    """Where the commits of a branch of a copy go on here.

    Attributes:
        theirs: The branch of the copy.
        branch: The branch here that has them, or gets them.
        common: How many commits both have.
        ours: The branch here that has these; None if it is `branch` itself.
        is_merged: See `Joined`.
    """

    theirs: Branch
    branch: Branch
    common: int
    ours: Branch | None
    is_merged: bool


class _Joining:
    """The branches of a namespace of a copy, as they are written here."""

    def __init__(self, core: Core, place: Place, view: View, device: str) -> None:
        self._core = core
        self._place = place
        self._view = view
        self._device = device
        self._main = Branch(place.branch.namespace)
        self._names: dict[str, dict[str, str]] = {}

    def run(self) -> tuple[list[Joined], int]:
        """Write them."""
        lines = _own_lines(self._view, self._main.namespace)
        with self._core.store.read() as here:
            if not here.binds_parts or not self._view.binds_parts:
                raise UnsupportedError("joining a copy", "one of both is of format 3: convert it (`recollect migrate`)")
            common = _Common(here, self._view)
            found = [each for theirs in lines if (each := self._find(here, common, theirs)) is not None]
        if all(each.common == self._newest(each.theirs) for each in found):
            return [Joined(each.branch.name, each.theirs.name, 0, each.is_merged) for each in found], 0
        self._names.clear()
        with self._core.writing(self._place) as writing:
            done, erased, touched = self._write(writing, lines)
        if touched:
            self._core.erasures.erased(sorted(touched))
        for joined in done:
            for part in Branch(self._main.namespace, joined.branch).family if joined.commits else ():
                self._core.feed.wake(part)
        return done, erased

    def _newest(self, theirs: Branch) -> int:
        return self._view.head(theirs).seq

    # Where they go on

    def _find(self, here: View, common: _Common, theirs: Branch) -> _Begun | None:
        """Return where the commits of a branch go on; None if the branch of the same name here has all of them."""
        namespace, newest = theirs.namespace, self._newest(theirs)
        copies = _copies(here, namespace)
        exists = theirs not in copies and (theirs.name == MAIN or here.base(theirs) is not None)
        own = common.of(theirs, theirs) if exists else -1
        dropped = (notes_of(here, theirs) or {}).get("dropped") if not exists else None
        if own == newest or (dropped is not None and self._is_as(theirs, dropped)):
            return None
        counts = {each: common.of(each, theirs) for each, of in copies.items() if of == theirs.name}
        best = max(counts, key=lambda each: (counts[each], each), default=None)
        if best is not None and counts[best] == newest:
            return _Begun(theirs, best, newest, None, exists)
        if exists and here.head(theirs).seq == own and not self._is_restricted(here):
            return _Begun(theirs, theirs, own, None, False)
        if best is not None and here.head(best).seq == counts[best]:
            return _Begun(theirs, best, counts[best], None, exists)
        if best is not None and sum(1 for _ in line_of(here, best)) >= _DEEP:
            best = None
        if exists and (best is None or own >= counts[best]):
            best, counts[theirs] = theirs, own
        if best is None:  # it is new in the copy, or was dropped here: its commits begin with those of another one
            counts = {}
            for each in (self._main, *(each.branch for each in here.continuing(namespace))):
                if each not in copies or sum(1 for _ in line_of(here, each)) < _DEEP:
                    counts[each] = common.of(each, theirs)
            best = max(counts, key=lambda each: (counts[each], each == self._main))
        branch = Branch(namespace, name_of_joined(here, theirs, self._device))
        return _Begun(theirs, branch, counts[best], best, exists and branch != theirs)

    def _is_restricted(self, here: View) -> bool:
        """Return whether what is taken over has to be examined, as a merge does."""
        return quota_of(here, self._main) is not None or policies_of(here, self._main) != Policies()

    def _is_as(self, theirs: Branch, dropped: Mapping[str, object]) -> bool:
        """Return whether a branch is the one that was dropped here, without later commits."""
        seq = self._newest(theirs)
        entry = next(iter(self._view.entries(theirs, seq - 1)), b"") if seq else b""
        return (dropped.get("seq"), dropped.get("entry")) == (seq, entry.hex())

    # The commits

    def _write(self, writing: Writing, lines: list[Branch]) -> tuple[list[Joined], int, set[Branch]]:
        """Write the commits that are new here.

        Returns:
            The branches; the number of records that are erased here; and what is derived of which branches is erased.
        """
        transaction, main = writing.transaction, self._main
        common = _Common(transaction, self._view)
        begun = common.of(main, main)
        both = erasures_of_both(transaction, self._view, main, begun)
        at_first = [each for theirs in lines if (each := self._find(transaction, common, theirs)) is not None]
        # They go on with the commits of the copy, which erase what it has erased.
        extended = {each.branch for each in at_first if each.ours is None and each.common < self._newest(each.theirs)}
        plan = list(self._planned(transaction, both))
        found: list[_Begun] = []
        touched = self._erase(writing, plan, extended)
        self._remove(transaction, plan)
        done: list[Joined] = []
        for theirs in lines:
            each = self._find(transaction, common, theirs)
            if each is None:
                continue
            found.append(each)
            commits = 0
            if each.common < self._newest(theirs):
                common.forget(each.branch)
                commits, left = self._rewrite(transaction, each, begun, both, plan)
                for name, versions in left.items():
                    writing.in_part(chosen(each.branch, [name])[name]).writer.state_erased(versions)
                    touched.add(each.branch)
                self._take_snapshots(transaction, each)
                if each.branch != theirs:
                    self._take_merges(transaction, each, common)
            done.append(Joined(each.branch.name, theirs.name, commits, each.is_merged))
        if main in extended:
            for seq, items in repeated_by(self._view, main).items():
                if seq > begun:
                    set_repeated(transaction, main, seq, items)
        elif plan:
            repeats = {key(each.item): both.learned[each.item].entries for each in plan}
            set_repeated(transaction, main, transaction.head(main).seq + 1, repeats)
        if plan or both.unknown:
            every = [main, *(each.branch for each in transaction.continuing(main.namespace))]
            Erasures.note(transaction, [part for line in every for part in line.family])
            erase_answers(transaction, main, self._core.store.key)
            self._core.erasures.pending = True
            touched.update(part for each in found for part in each.branch.family)
        return done, sum(bool(each.versions) or each.redact for each in plan), touched

    def _rewrite(
        self, transaction: Transaction, begun: _Begun, since: int, both: ErasuresOfBoth, plan: list[Planned]
    ) -> tuple[int, dict[str, dict[str, bytes]]]:
        """Write the commits of a branch of the copy. Return their number, and what they leave live without a text.

        Args:
            since: How many commits of the main branch both have.
        """
        self._begin(transaction, begun)
        theirs, commits = begun.theirs, 0
        written = Rewriting(self._core.store.key, self._view, transaction, begun.branch, theirs, both, plan)
        base = self._view.base(theirs)
        since = since if base is None else min(since, base.seq)
        for commit, parts in commits_with_parts(self._view, theirs, since) if both.unknown else ():
            if commit.seq > begun.common:
                break
            written.pass_by(commit, parts)
        own = chosen(begun.branch, None).items()
        heads = {name: transaction.head(part).seq for name, part in own if name != RECORDS}
        for commit, parts in commits_with_parts(self._view, theirs, begun.common, heads):
            written.add(commit, parts)
            commits += 1
        written.flush()
        return commits, written.left()

    def _begin(self, transaction: Transaction, begun: _Begun) -> None:
        if begun.ours is None:
            return
        branches.begin(transaction, begun.branch, begun.ours, begun.common)
        check_room(transaction, begun.branch)
        copy_of = None if begun.branch == begun.theirs else begun.theirs.name
        note_joined(transaction, begun.branch, copy_of, microseconds(self._core.now()))

    def _take_snapshots(self, transaction: Transaction, begun: _Begun) -> None:
        """Mark the commits that were marked in the copy. Of two snapshots of one name, the later one stays."""
        there = {each.name: each for each in transaction.snapshots(begun.branch) if each.name is not None}
        number = max((each.number for each in transaction.snapshots(begun.branch)), default=0)
        for snapshot in reversed(self._view.snapshots(begun.theirs)):
            if snapshot.seq <= begun.common:
                continue
            same = there.get(snapshot.name) if snapshot.name is not None else None
            if same is not None and same.micros >= snapshot.micros:
                continue
            if same is not None:
                transaction.drop_snapshot(begun.branch, same.number)
            number += 1
            transaction.put_snapshot(begun.branch, replace(snapshot, number=number))

    def _take_merges(self, transaction: Transaction, begun: _Begun, common: _Common) -> None:
        """Note what was merged before: of the branch of the copy here, and of branches of any copy there."""
        into, theirs = begun.theirs, merged_of_copies(self._view, begun.theirs)
        taken = [
            each for each, entry in merged_of_copies(transaction, into) if is_at(self._view, into, each.seq, entry)
        ]
        if begun.ours is not None and begun.ours != into:
            before = merged_upto(transaction, begun.ours, into)
            if before is not None:
                clipped = before.seq > begun.common
                taken.append(Taken(begun.common, before.at) if clipped else before)
        _note_newest(transaction, begun.branch, into, taken)
        given = [each for each, entry in theirs if is_at(transaction, into, each.seq, entry)]
        for there, of in joined_branches(self._view, into.namespace):
            if of == into.name and (merged := merged_upto(self._view, there, into)) is not None:
                given.append(merged._replace(seq=min(merged.seq, common.of(into, there)), base=None))
        _note_newest(transaction, into, begun.branch, given)
        known = [into, begun.branch]
        for each, of in _copies(transaction, into.namespace).items():
            if of == into.name and each != begun.branch:
                known.append(each)
                found = [taken for taken, entry in theirs if is_at(transaction, each, taken.seq, entry)]
                _note_newest(transaction, each, begun.branch, found)
        others = [
            (taken, entry)
            for taken, entry in theirs
            if not any(is_at(transaction, branch, taken.seq, entry) for branch in known)
        ]
        note_merged_there(transaction, begun.branch, others)

    # What was erased

    def _planned(self, transaction: Transaction, both: ErasuresOfBoth) -> Iterator[Planned]:
        """Yield what is erased here."""
        lines = lines_of(transaction, self._main)
        for item, erased in sorted(both.learned.items()):
            name, path = item
            parts, theirs = [chosen(line, [name])[name] for line in lines], chosen(self._main, [name])[name]
            plain = self._plain(transaction, name, path) if is_redacted(erased.id) else erased.id
            record_id = path if plain is None else plain
            stored = [each for part in parts for each in transaction.versions_of(part, record_id)]
            found = list(dict.fromkeys(each.version for each in stored if each.payload is not None))
            if item in both.kept:  # both have erased it: what was stored since stays, unless it was erased there
                removed = self._view.removed(theirs, found)
                versions = [each for each in found if each in removed and removed[each].cause == "erased"]
            else:
                again = self._view.payloads(theirs, found)
                versions = [each for each in found if each not in again]
            yield Planned(item, record_id, versions, is_redacted(erased.id) and len(versions) == len(found))

    def _erase(self, writing: Writing, plan: Iterable[Planned], extended: Set[Branch]) -> set[Branch]:
        """Erase in the branches of this store what the copy has erased. Return the branches with commits.

        Args:
            extended: The branches that go on with the commits of the copy.
        """
        transaction = writing.transaction
        lines = [each for each in lines_of(transaction, self._main) if each not in extended]
        touched: set[Branch] = set()
        noted: dict[tuple[Branch, int], Commit] = {}
        for (name, _), record_id, versions, redact in plan:
            parts = [chosen(line, [name])[name] for line in lines]
            if redact:
                noted |= commits_with(transaction, parts, record_id)
            for part in parts_with(transaction, parts, record_id):
                writing.in_part(part).writer.erase(record_id, versions, redact=redact)
                touched.add(part)
        for commit in noted.values():
            redact_notes(transaction, together(transaction, commit), self._core.store.key)
        return touched

    def _remove(self, transaction: Transaction, plan: Iterable[Planned]) -> None:
        """Remove the texts of what is erased, also where no branch has a commit for it."""
        for (name, path), record_id, versions, redact in plan:
            named = path if redact else record_id
            transaction.erase(chosen(self._main, [name])[name], named, versions, redact=redact)

    def _plain(self, view: View, part: str, path: str) -> str | None:
        """Return the id that is known here of a record, by its redacted id."""
        if part not in self._names:
            lines = [self._main, *(each.branch for each in view.continuing(self._main.namespace))]
            known = {each for line in lines for each in view.changed(chosen(line, [part])[part], 0)}
            self._names[part] = {redacted_id(each): each for each in known if not is_redacted(each)}
        return self._names[part].get(path)
