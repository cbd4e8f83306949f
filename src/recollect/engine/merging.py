"""Merges of branches, in three ways: what both began with, what this branch has, and what the other one has.

Only the records that the other branch has changed since the last common commit are looked at. One that this branch has
not changed becomes what it is there. Where both have changed it, their changes are joined if they are of different
fields (`write.three_way`); otherwise it is a conflict. Nothing is written before all conflicts are decided; then it is
one commit with two parents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from recollect.engine.branch_results import Conflict, Merged
from recollect.engine.branches import note_merged
from recollect.engine.core import Core, check_branch
from recollect.engine.family import chosen, counted, kept_kinds
from recollect.engine.read.targets import seq_in
from recollect.engine.scope import Place
from recollect.engine.settings import merged_upto
from recollect.engine.write.batch import Writing
from recollect.engine.write.drafts import is_turn
from recollect.engine.write.three_way import three_way
from recollect.errors import ConflictError, InvalidArgumentError, InvalidRecordError, OriginError, UnknownRecordError
from recollect.ledger.commits import Branch, Head, Stored
from recollect.operations import MergeBranch
from recollect.operations.branches import Choice
from recollect.records.origins import RANKS, USER
from recollect.records.record import Record
from recollect.stores.base import View

#: Where a branch was when it had its last common commit with another one.
_Point = tuple[Branch, int]


class Meeting(NamedTuple):
    """What two branches have in common.

    Attributes:
        base: The newest state that both have: a branch, and the number of a commit.
        since: The newest commit of the other branch that this one has: what came later is merged.
    """

    base: _Point
    since: int


def meeting_of(view: View, ours: Branch, theirs: Branch) -> Meeting:
    """Return what two branches of a memory have in common: where one continues the other, or the last merge.

    Cost:
        O(log n) for each branch that they continue.
    """
    own, other = _line(view, ours), _line(view, theirs)
    forks = [(branch, min(seq, other[branch])) for branch, seq in own.items() if branch in other]
    base = max(forks, key=lambda each: each[1], default=(theirs, 0))
    since = base[1]
    taken, given = merged_upto(view, theirs, ours), merged_upto(view, ours, theirs)
    if taken > since:
        base = _newer(view, base, (theirs, taken))
        since = taken
    return Meeting(_newer(view, base, (ours, given)) if given else base, since)


def _line(view: View, branch: Branch) -> dict[Branch, int]:
    """Return the branches whose commits a branch has, with the newest of these commits."""
    out, seq, following = dict[Branch, int](), view.head(branch).seq, branch
    while True:
        out[following] = seq
        base = view.base(following)
        if base is None:
            return out
        following, seq = base.branch, min(seq, base.seq)


def _newer(view: View, one: _Point, other: _Point) -> _Point:
    times = [(view.head_at(*each) or Head()).micros for each in (one, other)]
    return other if times[1] > times[0] else one


@dataclass
class _Item:
    """A record that the other branch has changed since the last common commit.

    Attributes:
        id: Its id.
        base: What both had; None if it was new, or was erased.
        ours: What this branch has.
        theirs: What the other branch has.
    """

    id: str
    base: Record | None
    ours: Record | None
    theirs: Record | None

    @property
    def is_taken(self) -> bool:
        """True if only the other branch has changed it."""
        return _bytes(self.ours) == _bytes(self.base)


@dataclass
class _Plan:
    """What a merge does to a part of a memory.

    Attributes:
        puts: The records that are stored, by id; None: it is removed.
        added: Records of the other branch that are stored under another id.
        conflicts: What is not decided.
    """

    puts: dict[str, Record | None] = field(default_factory=dict)
    added: list[Record] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    taken: int = 0
    joined: int = 0
    kept: int = 0


def merge(core: Core, place: Place, operation: MergeBranch) -> Merged:
    """Merge another branch into that of a place.

    Raises:
        UnknownBranchError: There is no such branch.
        ConflictError: A branch has newer commits than the caller expects.
        OriginError: The caller is less than the user.
        RejectedError: A policy refuses a text of the other branch.
        QuotaError: Its records do not fit in the quota.
    """
    if RANKS[place.origin] < RANKS[USER]:
        raise OriginError("merging a branch", place.origin)
    ours, theirs = place.branch, Branch(place.branch.namespace, operation.branch)
    if ours == theirs:
        raise InvalidArgumentError("name", operation.branch, "is the branch itself")
    with core.read(ours) as view:
        check_branch(view, theirs)
    try:
        with core.writing(place) as writing:
            result = _merge(writing, ours, theirs, operation)
    except _NothingWritten as end:
        if end.is_same:
            with core.store.write(ours) as transaction:
                note_merged(transaction, theirs, end.result.theirs, ours)
        return end.result
    return replace(result, seq=writing.seq)


class _NothingWritten(Exception):
    """Ends the transaction of a merge that writes nothing: it is undone, as other writes to a branch are part of it.

    Attributes:
        result: The result of the merge.
        is_same: Whether the other branch has new commits, and all that they changed is the same in both.
    """

    def __init__(self, result: Merged, *, is_same: bool = False) -> None:
        self.result = result
        self.is_same = is_same


def _merge(writing: Writing, ours: Branch, theirs: Branch, operation: MergeBranch) -> Merged:
    """Merge another branch in a transaction.

    Raises:
        _NothingWritten: There is nothing to merge, or something must be decided first.
    """
    transaction = writing.transaction
    check_branch(transaction, theirs)
    heads = transaction.head(ours).seq, transaction.head(theirs).seq
    for each, seq, expected in zip((ours, theirs), heads, (operation.ours, operation.theirs), strict=True):
        if expected is not None and seq != expected:
            raise ConflictError(f"the head of branch {each.name!r}", str(expected), str(seq))
    meeting = meeting_of(transaction, ours, theirs)
    result = Merged(branch=theirs.name, ours=heads[0], theirs=heads[1])
    if heads[1] <= meeting.since:
        raise _NothingWritten(result)
    decided = _Decisions(transaction, ours, theirs, operation)
    plans = dict(_plans(writing, ours, theirs, meeting, decided))
    decided.check_used()
    result = _summary(result, plans)
    if result.conflicts or operation.dry_run:
        raise _NothingWritten(result)
    if not any(plan.puts or plan.added or plan.kept for plan in plans.values()):
        # Without a commit: two copies that merge each other would make one for each other's for ever.
        raise _NothingWritten(result, is_same=True)
    for name, plan in plans.items():
        part = chosen(ours, [name])[name]
        other, writer = chosen(theirs, [name])[name], writing.in_part(part).writer
        for record_id, record in plan.puts.items():
            writer.take(record_id, record, _cause(transaction, other, record_id) if record is None else "written")
        for record in plan.added:
            writer.add_beside(record, theirs.name)
        if part != ours:  # the commit of the memory binds the hashes
            writer.follow((theirs.name, transaction.head(other).seq))
    entry = next(iter(transaction.entries(theirs, heads[1] - 1)))
    writing.writer.follow((theirs.name, heads[1], entry))
    note_merged(transaction, theirs, heads[1], ours)
    return result


def _summary(result: Merged, plans: Mapping[str, _Plan]) -> Merged:
    return replace(
        result,
        taken=plans["records"].taken,
        joined=sum(plan.joined for plan in plans.values()),
        kept=sum(plan.kept for plan in plans.values()),
        conflicts=tuple(conflict for plan in plans.values() for conflict in plan.conflicts),
        parts={name: plan.taken for name, plan in plans.items() if name != "records" and plan.taken},
    )


class _Decisions:
    """What becomes of conflicts: as a rule, and of those that the caller has resolved.

    Args:
        view: The transaction.
        ours: This branch.
        theirs: The other branch.
        operation: The merge.
    """

    def __init__(self, view: View, ours: Branch, theirs: Branch, operation: MergeBranch) -> None:
        self._view = view
        self._branches = ours, theirs
        self._rule = operation.on_conflict
        self._choices = {(part, record_id): choice for part, record_id, choice in operation.resolutions}
        self._unused = set(self._choices)

    def of(self, conflict: Conflict) -> Choice | Record | None:
        """Return what becomes of a conflict; None if that is not decided."""
        key = conflict.part, conflict.id
        self._unused.discard(key)
        if key in self._choices:
            return self._choices[key]
        if self._rule == "list":
            return None
        if self._rule == "newest":
            times = [
                self._view.last_commits(chosen(each, [conflict.part])[conflict.part], [conflict.id])
                for each in self._branches
            ]
            return "theirs" if times[1].get(conflict.id, 0) > times[0].get(conflict.id, 0) else "ours"
        return self._rule

    def check_used(self) -> None:
        """Raise UnknownRecordError if a resolution is of no conflict."""
        for _, record_id in sorted(self._unused):
            raise UnknownRecordError(record_id, "the conflicts of this merge")


def _plans(
    writing: Writing, ours: Branch, theirs: Branch, meeting: Meeting, decisions: _Decisions
) -> Iterator[tuple[str, _Plan]]:
    """Yield what a merge does to each part of a memory that the other branch has changed, and to the records."""
    view = writing.transaction
    for name, part in chosen(theirs, None).items():
        own = chosen(ours, [name])[name]
        since = seq_in(view, part, theirs, meeting.since)
        base = chosen(meeting.base[0], [name])[name], seq_in(view, *_parted(meeting.base, name))
        if name == "records" or view.head(part).seq > since:
            items = list(_items(view, own, part, base, since))
            yield name, _planned(items, name, own, part, decisions, _last_positions(view, own, items))


def _parted(point: _Point, name: str) -> tuple[Branch, Branch, int]:
    return chosen(point[0], [name])[name], point[0], point[1]


def _items(view: View, ours: Branch, theirs: Branch, base: _Point, since: int) -> Iterator[_Item]:
    """Yield the records that the other branch has changed since a commit and that are not the same in both."""
    # Also those that are again as they were then: the common state may be newer, and differ.
    ids = sorted(view.changed(theirs, since), key=str.encode)
    before = view.versions_at(base[0], ids, base[1]) if base[1] else {}
    versions = [version for version in before.values() if version is not None]
    payloads = view.payloads(base[0], versions)
    own, other = view.several(ours, ids), view.several(theirs, ids)
    for record_id in ids:
        version = before.get(record_id)
        payload = None if version is None else payloads.get(version)
        item = _Item(
            record_id,
            None if payload is None else Record.load(payload),
            _loaded(own.get(record_id)),
            _loaded(other.get(record_id)),
        )
        if _bytes(item.theirs) not in (_bytes(item.ours), _bytes(item.base)):
            yield item


def _loaded(stored: Stored | None) -> Record | None:
    return None if stored is None else Record.load(stored.payload)


def _bytes(record: Record | None) -> bytes | None:
    return None if record is None else record.to_bytes()


def _planned(
    items: list[_Item], name: str, ours: Branch, theirs: Branch, decisions: _Decisions, last: Mapping[str, int]
) -> _Plan:
    plan, kept = _Plan(), kept_kinds(ours)
    for item in items:
        if item.is_taken:
            plan.puts[item.id] = item.theirs
            plan.taken += 1
        elif item.ours is not None and item.theirs is not None and item.ours.kind in kept:
            if counted(item.theirs) > counted(item.ours):  # a counter never goes back
                plan.puts[item.id] = item.theirs
                plan.taken += 1
        else:
            _decide(plan, item, name, decisions)
    _renumber(plan, items, last)
    return plan


def _decide(plan: _Plan, item: _Item, name: str, decisions: _Decisions) -> None:
    """Decide about a record that both branches have changed."""
    base, ours, theirs = item.base, item.ours, item.theirs
    fields: tuple[str, ...] = ()
    joined: Record | None = None
    if base is not None and ours is not None and theirs is not None:
        try:
            joined, fields = three_way(base, ours, theirs)
        except InvalidRecordError as error:
            joined, fields = None, (str(error.args[0]),)
        if joined is not None and not fields:
            plan.puts[item.id] = joined
            plan.joined += 1
            return
    if base is None and ours is not None and theirs is not None and is_turn(ours) and is_turn(theirs):
        plan.added.append(theirs)  # the same was said twice
        plan.taken += 1
        return
    conflict = Conflict(id=item.id, part=name, base=base, ours=ours, theirs=theirs, fields=fields)
    choice = decisions.of(conflict)
    if choice is None:
        plan.conflicts.append(conflict)
    elif isinstance(choice, Record):
        plan.puts[item.id] = choice.changed(id=item.id)
        plan.joined += 1
    elif choice == "theirs":
        plan.puts[item.id] = theirs
        plan.taken += 1
    else:
        plan.kept += 1
        if choice == "both" and theirs is not None:
            plan.added.append(theirs)


def _last_positions(view: View, ours: Branch, items: list[_Item]) -> dict[str, int]:
    """Return the last position that this branch has in each conversation with a new turn of the other branch."""
    new = {item.theirs.conversation for item in items if item.base is None and item.theirs and is_turn(item.theirs)}
    found = {each: view.last_position(ours, each) for each in new if each is not None}
    return {each: last for each, last in found.items() if last is not None}


def _renumber(plan: _Plan, items: list[_Item], last: Mapping[str, int]) -> None:
    """Put the new turns of the other branch after those of this one, if both have added some to a conversation."""
    turns: dict[str, list[Record]] = {}
    for item in items:
        new = plan.puts.get(item.id)
        if item.base is None and item.ours is None and new is not None and new.conversation in last and is_turn(new):
            turns.setdefault(str(new.conversation), []).append(new)
    for conversation, added in turns.items():
        added.sort(key=lambda turn: (turn.position or 0, turn.id))
        if (added[0].position or 0) > last[conversation]:
            continue  # this branch has added none
        for number, turn in enumerate(added, last[conversation] + 1):
            plan.puts[turn.id] = turn.changed(position=number)


def _cause(view: View, branch: Branch, record_id: str) -> str:
    """Return why a record was removed."""
    newest = next(view.commits(branch, record_id=record_id, limit=1, newest_first=True))
    return next(change.cause for change in newest.changes if change.id == record_id)
