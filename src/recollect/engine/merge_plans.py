"""What a merge of branches does to each record, decided in three ways: what both began with, ours and theirs.

A record that this branch has not changed becomes what it is in the other one. Where both have changed it, their changes
are joined if they are of different fields (`write.three_way`); otherwise it is a conflict, which is listed or decided.
Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from recollect.engine.branch_results import Conflict
from recollect.engine.facets import facet_of
from recollect.engine.family import chosen, counted, kept_kinds
from recollect.engine.meeting import Meeting, begun_with
from recollect.engine.merged_trees import Trees
from recollect.engine.read.log import last_effect
from recollect.engine.read.targets import seq_in
from recollect.engine.turn_positions import renumbered, separated
from recollect.engine.write.drafts import is_turn
from recollect.engine.write.naming import id_beside
from recollect.engine.write.three_way import three_way
from recollect.errors import InvalidArgumentError, InvalidRecordError
from recollect.ledger.commits import Branch, Stored
from recollect.ledger.merkle import is_redacted
from recollect.ledger.parts import RECORDS
from recollect.operations import MergeBranch
from recollect.operations.branches import Choice
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.stores.base import View

#: Number of digits of the version that follow the id of a turn which was stored under the same id as another one.
_DIGITS = 16


@dataclass
class MergePlan:
    """What a merge does to a part of a memory.

    Attributes:
        puts: The records that are stored, by id; None: it is removed.
        new: The ids of the turns among them that are new here.
        beside: Records of the other branch that are stored under another id.
        decided: The ids of records that stay as they are, although the other branch has changed them. The log states
            that, so that the other branch becomes the same when it merges this one.
        conflicts: What is not decided.
        taken: How many records become what they are in the other branch.
        joined: How many have changes of both.
        kept: How many stay as they are, although the other branch has changed them.
    """

    puts: dict[str, Record | None] = field(default_factory=dict)
    new: set[str] = field(default_factory=set)
    beside: list[Record] = field(default_factory=list)
    decided: list[str] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    taken: int = 0
    joined: int = 0
    kept: int = 0

    @property
    def writes(self) -> bool:
        """True if there is anything to write."""
        return bool(self.puts or self.beside or self.decided)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """A record that the other branch has changed, and that is not the same in both.

    Attributes:
        id: Its id.
        base: What both began with; None if it was new, was erased, or its text was thinned.
        ours: What this branch has.
        theirs: What the other branch has.
        is_taken: Whether only the other branch has changed it.
        is_new: Whether they did not begin with it.
        split: Whether each branch has decided for itself what it is (`meeting.Begun`).
        versions: The versions of ours and theirs; b"" for none.
    """

    id: str
    base: Record | None
    ours: Record | None
    theirs: Record | None
    is_taken: bool
    is_new: bool
    split: bool
    versions: tuple[bytes, bytes]


class Decisions:
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
        return self._newest(conflict) if self._rule == "newest" else self._rule

    def _newest(self, conflict: Conflict) -> Choice:
        ours, theirs = (
            (self._changed_at(chosen(branch, [conflict.part])[conflict.part], conflict.id), _bytes(record) or b"")
            for branch, record in zip(self._branches, (conflict.ours, conflict.theirs), strict=True)
        )
        return "theirs" if theirs > ours else "ours"

    def _changed_at(self, branch: Branch, record_id: str) -> int:
        found = last_effect(self._view, branch, record_id)
        return 0 if found is None else found[0].micros

    def check_used(self) -> None:
        """Raise InvalidArgumentError if a resolution is of no conflict."""
        for part, record_id in sorted(self._unused):
            raise InvalidArgumentError("resolutions", f"{part}:{record_id}", "is no conflict of this merge")


def plans_of(
    view: View, ours: Branch, theirs: Branch, meeting: Meeting, decisions: Decisions, *, learns: bool, shared: bool
) -> Iterator[tuple[str, MergePlan]]:
    """Yield what a merge does to each part of a memory that the other branch has changed, and to the records.

    Args:
        learns: Whether this branch learns of further branches that the other one has merged. Then what is again as it
            was is stated in the log: a further branch may have it as it was in between.
        shared: Whether further branches may have states of the other one since. The same, for what it has changed.
    """
    for name, part in chosen(theirs, None).items():
        since = seq_in(view, part, theirs, meeting.theirs)
        if name == RECORDS or view.head(part).seq > since:
            planning = _Planning(view, ours, theirs, meeting, name, decisions, learns=learns, shared=shared)
            yield name, planning.plan(since)


class _Planning:
    """What is decided of the records of a part. See `plans_of`."""

    def __init__(
        self,
        view: View,
        ours: Branch,
        theirs: Branch,
        meeting: Meeting,
        name: str,
        decisions: Decisions,
        *,
        learns: bool,
        shared: bool,
    ) -> None:
        self._view = view
        self._memory = ours
        self._ours, self._theirs = (chosen(each, [name])[name] for each in (ours, theirs))
        self._meeting = meeting
        self._name = name
        self._decisions = decisions
        self._learns, self._shared = learns, shared
        self._facet = facet_of(name)
        self._kept_kinds = kept_kinds(self._ours)
        self._plan = MergePlan()

    def plan(self, since: int) -> MergePlan:
        """Return the plan.

        Args:
            since: The newest commit of the part of the other branch that this branch has.
        """
        items = list(self._items(since))
        for item in items:
            self._decide(item)
        self._place_turns()
        self._number()
        self._mend_trees()
        plan = self._plan
        unchanged = [
            each.id for each in items if each.id in plan.puts and _bytes(plan.puts[each.id]) == _bytes(each.ours)
        ]
        for record_id in unchanged:
            del plan.puts[record_id]
        plan.decided = [each for each in (*plan.decided, *unchanged) if each not in plan.puts]
        return plan

    def _items(self, since: int) -> Iterator[_Item]:
        """Yield the records that the other branch has changed since a commit and that are not the same in both."""
        view = self._view
        # Also those that are again as they were then: the common state may be newer, and differ.
        ids = sorted(view.changed(self._theirs, since), key=str.encode)
        begun = begun_with(view, self._name, self._meeting, ids)
        own, other = view.several(self._ours, ids), view.several(self._theirs, ids)
        former = view.versions_at(self._theirs, ids, since) if since else {}
        for record_id in ids:
            base, ours, theirs = begun[record_id], own.get(record_id), other.get(record_id)
            here, there = (None if each is None else each.version for each in (ours, theirs))
            if here == there and self._is_stated(record_id, here, base.version, former.get(record_id), since):
                self._plan.decided.append(record_id)
            if here == there or (there == base.version and not base.split):
                continue
            yield _Item(
                id=record_id,
                base=None if base.payload is None else Record.load(base.payload),
                ours=_loaded(ours),
                theirs=_loaded(theirs),
                is_taken=here == base.version and not base.split,
                is_new=base.version is None and (not base.split or self._meeting.before is not None),
                split=base.split,
                versions=(here or b"", there or b""),
            )

    def _is_stated(
        self, record_id: str, version: bytes | None, base: bytes | None, former: bytes | None, since: int
    ) -> bool:
        """Return whether the log states that a record is as it was, as a further branch may have it as it was between.

        Args:
            version: What both branches have.
            base: What both began with.
            former: What the other branch had at the newest commit of it that this one has.
            since: The number of that commit.
        """
        if is_redacted(record_id):  # an erasure is everywhere
            return False
        if self._learns:
            return version in (base, former)
        if not self._shared or version != former:
            return False
        found = last_effect(self._view, self._theirs, record_id)
        return found is not None and found[0].seq > since  # it was changed, and not only stated again

    def _decide(self, item: _Item) -> None:
        plan, ours, theirs = self._plan, item.ours, item.theirs
        if item.is_taken:
            self._take(item)
        elif ours is None or theirs is None:
            self._resolve(item, ())
        elif ours.kind in self._kept_kinds:
            if counted(theirs) > counted(ours):  # a counter never goes back
                self._take(item)
        elif is_turn(ours) and is_turn(theirs) and ours.changed(position=theirs.position) == theirs:
            # Where it is in its conversation is no conflict: the later place, in both branches.
            if (theirs.position or 0) > (ours.position or 0):
                self._take(item)
        elif item.is_new and is_turn(ours) and is_turn(theirs):
            self._take_both(item, ours, theirs)
        elif item.base is None:
            self._resolve(item, ())
        else:
            try:
                joined, fields = three_way(item.base, ours, theirs)
            except InvalidRecordError as error:
                self._resolve(item, (str(error.args[0]),))
                return
            if fields or item.split:
                self._resolve(item, fields)
            else:
                plan.puts[item.id] = joined
                plan.joined += 1

    def _take(self, item: _Item) -> None:
        self._plan.puts[item.id] = item.theirs
        self._plan.taken += 1
        if item.ours is None and item.is_new and item.theirs is not None and is_turn(item.theirs):
            self._plan.new.add(item.id)

    def _take_both(self, item: _Item, ours: Record, theirs: Record) -> None:
        """Keep two turns under one id, as the same was said twice: the earlier one has it in both branches."""
        earlier = _order(ours, item.versions[0]) < _order(theirs, item.versions[1])
        later_id = id_beside(item.id, item.versions[earlier].hex()[:_DIGITS])
        if earlier:
            self._plan.puts[later_id] = theirs.changed(id=later_id)
            self._plan.new.add(later_id)
        else:
            self._plan.puts[later_id] = ours.changed(id=later_id)
            self._plan.puts[item.id] = theirs
            self._plan.new.add(item.id)
        self._plan.taken += 1

    def _resolve(self, item: _Item, fields: tuple[str, ...]) -> None:
        plan = self._plan
        conflict = Conflict(
            id=item.id, part=self._name, base=item.base, ours=item.ours, theirs=item.theirs, fields=fields
        )
        choice = self._decisions.of(conflict)
        if choice is None:
            plan.conflicts.append(conflict)
        elif isinstance(choice, Record):
            plan.puts[item.id] = choice.changed(id=item.id)
            plan.joined += 1
        elif choice == "theirs":
            plan.puts[item.id] = item.theirs
            plan.taken += 1
        else:
            plan.kept += 1
            plan.decided.append(item.id)
            if choice == "both" and item.theirs is not None:
                if self._facet is not None and self._facet.named:
                    rule = 'cannot be "both", as only one can have its name: decide "ours" or "theirs"'
                    raise InvalidArgumentError("resolutions", f"{self._name}:{item.id}", rule)
                plan.beside.append(item.theirs)
                plan.taken += 1

    def _place_turns(self) -> None:
        puts, seq = self._plan.puts, seq_in(self._view, self._ours, self._memory, self._meeting.ours)
        taken = {each: record for each, record in puts.items() if record is not None}
        for turn in renumbered(self._view, self._ours, self._theirs, seq, taken, self._plan.new):
            puts[turn.id] = turn
        for turn in separated(self._view, self._ours, puts):
            puts[turn.id] = turn

    def _number(self) -> None:
        """Give records whose ids are numbers, and that are stored beside others, the next ones."""
        name = None if self._facet is None else self._facet.counter
        if name is None or not self._plan.beside:
            return
        counter = self._plan.puts.get(name) or _loaded(self._view.get(self._ours, name))
        number = 0 if counter is None else counted(counter)  # None: an import brought the numbers without it
        for record in self._plan.beside:
            number += 1
            while self._view.known(self._ours, str(number)) or self._view.known(self._theirs, str(number)):
                number += 1
            self._plan.puts[str(number)] = record.changed(id=str(number))
        self._plan.beside = []
        if counter is not None:
            self._plan.puts[name] = counter.changed(content=str(number))

    def _mend_trees(self) -> None:
        if self._facet is not None and self._facet.trees:
            seq = seq_in(self._view, self._ours, self._memory, self._meeting.ours)
            kept = Trees(self._view, self._ours, self._theirs, self._plan.puts).mend(seq)
            self._plan.decided += kept
            self._plan.kept += len(kept)
            self._plan.taken -= len(kept)


def _order(record: Record, version: bytes) -> tuple[int, bytes]:
    return -1 if record.time is None else microseconds(record.time), version


def _loaded(stored: Stored | None) -> Record | None:
    return None if stored is None else Record.load(stored.payload)


def _bytes(record: Record | None) -> bytes | None:
    return None if record is None else record.to_bytes()
