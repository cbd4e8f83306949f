"""The execution of retention: plans what is due (`retention`), and forgets, erases and thins it in small commits.

A plan is made on one view. Each transaction then looks at what others have committed since: what they changed stays
until the next run, and a change of the rules ends the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from recollect.engine.branches import joined_branches
from recollect.engine.core import Core
from recollect.engine.erasing import erase, lines_of
from recollect.engine.read.filter_bounds import Below
from recollect.engine.reader import check_whole
from recollect.engine.retention import (
    DueRecord,
    FormerVersion,
    FormerVersions,
    ResolvedRule,
    Times,
    due_records,
    possibly_due,
    rules_of_part,
)
from recollect.engine.scope import Place, Scope
from recollect.engine.settings import examined, retention_of, set_examined, set_retention
from recollect.engine.write.classes import QUARANTINED
from recollect.errors import OriginError
from recollect.filters.tree import Is, resolved
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import redacted_id
from recollect.ledger.parts import RECORDS
from recollect.operations import Erase
from recollect.operations.retention import FORMER_VERSIONS, ApplyRetention, Due, Retention, RetentionRule, SetRetention
from recollect.records.codec import datetime_of
from recollect.records.origins import RANKS, USER
from recollect.stores.base import Transaction, View

#: Maximum number of records that one commit forgets.
AT_ONCE = 1000
#: What is examined of the log without a version that is due is noted after this number of commits, so that a run that
#: finds nothing seldom writes.
_NOTED_AFTER = 1000


def set_rules(core: Core, place: Place, operation: SetRetention) -> None:
    """Set the retention of the namespace.

    Raises:
        OriginError: The caller is less than the user.
        ScopeError: The caller is a scope.
    """
    if RANKS[place.origin] < RANKS[USER]:  # a rule removes what the user said
        raise OriginError("setting the retention of the namespace", place.origin)
    check_whole(place.scope, "the retention of the namespace")
    with core.store.write(place.branch) as transaction:
        set_retention(transaction, place.branch, operation.retention)
    core.counts_uses.pop(place.branch, None)


def apply_retention(core: Core, place: Place, operation: ApplyRetention) -> list[Due]:
    """Return what is due by the retention of the namespace; or do it, unless it is a dry run, and return what was done.

    Raises:
        OriginError: The caller is less than the user, and it is no dry run.
        ScopeError: The caller is a scope.
    """
    check_whole(place.scope, "the retention of the namespace")
    if not operation.dry_run and RANKS[place.origin] < RANKS[USER]:
        raise OriginError("applying the retention of the namespace", place.origin)
    core.now()
    with core.read(place.branch) as view:
        retention = retention_of(view, place.branch) if operation.planned is None else operation.planned
        if not retention:
            return []
        plan = _Plan.made(core, view, place.branch, retention)
        if operation.dry_run:
            # What is erased before has no former versions any more.
            erased = {(work.branch, each.id) for work in plan.works if work.rule.action == "erase" for each in work.due}
            former = [
                each for part in plan.former for each in part.all_due(view) if (part.branch, each.id) not in erased
            ]
            return _shown(plan.works, former, operation.samples)
    run = _Run(core, place._replace(key=None), retention, plan.seqs, operation.limit)
    done = [run.perform(each) for each in plan.works]
    former = [each for part in plan.former for each in run.thin(part)]
    if any(each.rule.since == "used" and each.due for each in done):
        _drop_uses(core, place.branch)
    if former:
        core.past.clear()  # the indexes of past moments have the texts
    return _shown(done, former, operation.samples)


def _drop_uses(core: Core, branch: Branch) -> None:
    """Remove the uses of records that are not live any more. Without a quota, nothing else does."""
    uses = list(core.uses.of(branch))
    with core.read(branch) as view:
        found = view.versions_at(branch, uses, view.head(branch).seq)
    core.uses.keep_only(branch, {each for each, version in found.items() if version is not None})


class _Work(NamedTuple):
    """Records of a part of the memory that are due by a rule, the oldest first."""

    branch: Branch
    rule: RetentionRule
    due: list[DueRecord]


@dataclass(frozen=True)
class _FormerOfPart:
    """The former versions of a part of the memory.

    Attributes:
        begin: The commit up to which they were examined before.
    """

    branch: Branch
    versions: FormerVersions
    begin: int

    def all_due(self, view: View) -> Iterator[FormerVersion]:
        """Yield those that are due."""
        seq = self.begin
        while seq < self.versions.upto:
            seq, piece = self.versions.piece(view, seq)
            yield from self.versions.due(view, piece)


@dataclass(frozen=True)
class _Plan:
    """What is due at a view.

    Attributes:
        works: The records, by rule and part.
        former: The former versions, by part.
        seqs: The newest commit of each part at the view.
    """

    works: list[_Work]
    former: list[_FormerOfPart]
    seqs: dict[Branch, int]

    @classmethod
    def made(cls, core: Core, view: View, branch: Branch, retention: Retention) -> _Plan:
        """Return what is due by a retention."""
        now = core.reads_at(view, branch)
        below = Below(view, branch, Scope(), None, now)
        rules = [ResolvedRule(each, resolved(each.condition, below)) for each in retention.rules]
        works = []
        for part in (branch, branch.reserved(QUARANTINED)):
            for rule, due in _due(core, view, part, rules, now):
                if rule.action == "erase":
                    spared = _spared(core, view, part, rules, now, [each.id for each in due])
                    due = [each for each in due if each.id not in spared]
                works += [_Work(part, rule, due)] if due else []
        former = []
        if retention.keep_versions is not None:
            holds = [each.where for each in rules if each.rule.action == "hold"]
            for part in branch.family:
                if view.head(part).seq:
                    versions = FormerVersions(view, part, retention.keep_versions, holds, now)
                    former.append(_FormerOfPart(part, versions, examined(view, part)))
        return cls(works, former, {part: view.head(part).seq for part in branch.family})


def _due(
    core: Core, view: View, part: Branch, rules: Sequence[ResolvedRule], now: int
) -> Iterator[tuple[RetentionRule, list[DueRecord]]]:
    """Yield the records of a part of the memory that are due, by rule."""
    own = rules_of_part(rules, part)
    where = possibly_due(own, now)
    if where is None or not view.head(part).seq:
        return
    times = Times(partial(view.last_commits, part), partial(core.uses.of, part))
    due = due_records(own, view.select(part, where, order="id", now=now), times, now)
    yield from ((rule, due[rule.name]) for rule, _ in own if rule.name in due)


def _spared(
    core: Core, view: View, part: Branch, rules: Sequence[ResolvedRule], now: int, record_ids: Sequence[str]
) -> set[str]:
    """Return the records that another branch has and does not erase, too: an erasure would reach that branch.

    Branches with the commits of copies do not count: they only show what those had.
    """
    spared: set[str] = set()
    copies = {each for each, _ in joined_branches(view, part.owner.namespace)}
    for line in lines_of(view, part.owner):
        other = Branch(part.namespace, line.name)
        if other != part and line not in copies and (live := view.several(other, record_ids)):
            due = {
                each.id
                for rule, found in _due(core, view, other, rules, now)
                for each in found
                if rule.action == "erase"
            }
            spared.update(live.keys() - due)
    return spared


def _shown(works: Sequence[_Work], former: Sequence[FormerVersion], samples: int | None) -> list[Due]:
    """Return what is due, or was done, by rule, with at most `samples` ids of each."""
    by_rule: dict[str, tuple[str, list[DueRecord] | list[FormerVersion]]] = {}
    for each in works:
        _, before = by_rule.get(each.rule.name, ("", []))
        by_rule[each.rule.name] = each.rule.action, sorted([*before, *each.due])
    by_rule[FORMER_VERSIONS] = "thin", sorted(former)
    return [
        Due(
            rule=name,
            action=action,
            count=len(due),
            bytes=sum(each.nbytes for each in due),
            oldest=datetime_of(due[0].since),
            samples=tuple(dict.fromkeys(each.id for each in due))[:samples],
        )
        for name, (action, due) in by_rule.items()
        if due
    ]


@dataclass
class _Run:
    """The commits of one run.

    Attributes:
        place: Where, for whom and by whom it is executed.
        retention: The retention by which it was planned.
        seen: By part, the newest commit that is the plan's or its own, or of which `changed` has the ids.
        left: How many more records and versions it may change; None: all.
        changed: By part, the ids that others have changed since the plan.
        ended: Whether the retention has changed meanwhile.
    """

    core: Core
    place: Place
    retention: Retention
    seen: dict[Branch, int]
    left: int | None
    changed: dict[Branch, set[str]] = field(default_factory=dict)
    ended: bool = False

    def perform(self, work: _Work) -> _Work:
        """Do what a rule asks for, and return the work with the records with which it was done."""
        if work.rule.action == "consolidate":
            return work  # by the caller, on the public calls (`memory.retention`)
        due = work.due if self.left is None else work.due[: self.left]
        place = self.place._replace(branch=work.branch, reason=f"retention: {work.rule.name}")
        act = self._erase if work.rule.action == "erase" else self._forget
        done = act(place, work.rule, [each.id for each in due])
        if self.left is not None:
            self.left -= len(done)
        return work._replace(due=[each for each in due if each.id in done])

    def _forget(self, place: Place, rule: RetentionRule, record_ids: Sequence[str]) -> set[str]:
        done: set[str] = set()
        for begin in range(0, len(record_ids), AT_ONCE):
            with self.core.writing(place) as writing:
                some = self._still_due(rule, place.branch, writing.transaction, record_ids[begin : begin + AT_ONCE])
                writing.writer.expire(some)
            self.seen[place.branch] = writing.seq
            done.update(some)
            if self.ended:
                break
        return done

    def _erase(self, place: Place, rule: RetentionRule, record_ids: Sequence[str]) -> set[str]:
        if not record_ids:
            return set()
        own: set[str] = set()  # what its own commits change

        def still_due(transaction: Transaction, selected: set[str]) -> set[str]:
            some = self._still_due(rule, place.branch, transaction, sorted(selected), own)
            own.update(some, map(redacted_id, some))
            return set(some)

        parts = None if place.branch.is_reserved else (RECORDS,)
        operation = Erase(where=Is("id", tuple(record_ids)), redact=True, parts=parts)
        erased = erase(self.core, place, operation, still_due)
        if erased.commits:
            self.seen[place.branch] = max(self.seen[place.branch], *erased.commits)
        return set(erased.ids)

    def _still_due(
        self,
        rule: RetentionRule,
        branch: Branch,
        transaction: Transaction,
        record_ids: Sequence[str],
        own: Collection[str] = (),
    ) -> list[str]:
        """Return which of some records may be removed: no other writer has changed them, nor the retention.

        Where another writer has changed anything, a rule that keeps the newest records waits for the next run, since
        others may be the newest now.
        """
        if self.ended or retention_of(transaction, self.place.branch) != self.retention:
            self.ended = True
            return []
        changed = self.changed.setdefault(branch, set())
        changed.update(each for each in transaction.changed(branch, self.seen[branch]) if each not in own)
        self.seen[branch] = transaction.head(branch).seq
        if changed and rule.keep_newest is not None:
            return []
        return [each for each in record_ids if each not in changed]

    def thin(self, part: _FormerOfPart) -> list[FormerVersion]:
        """Remove the payloads of former versions, and return which. The log stays as it is, so there is no commit."""
        done: list[FormerVersion] = []
        branch, versions, seq = part.branch, part.versions, part.begin
        while seq < versions.upto and not self.ended and self.left != 0:
            with self.core.read(branch) as view:
                following, piece = versions.piece(view, seq)
                due = versions.due(view, piece)
            if due:
                some = self._thin(part, piece)
                done += some
                if self.left is not None:
                    self.left -= len(some)
                    if self.left == 0:
                        break  # the rest of the piece may be due
            seq = following
        if (done or seq - part.begin >= _NOTED_AFTER) and not self.ended:
            with self.core.store.write(branch) as transaction:
                if retention_of(transaction, self.place.branch) == self.retention:
                    set_examined(transaction, branch, seq)
        return done

    def _thin(self, part: _FormerOfPart, piece: Mapping[bytes, tuple[int, str]]) -> list[FormerVersion]:
        branch = part.branch
        with self.core.store.write(branch) as transaction:
            if retention_of(transaction, self.place.branch) != self.retention:
                self.ended = True
                return []
            part.versions.refresh(transaction)
            due = part.versions.due(transaction, piece)[: self.left]
            for each in due:
                transaction.thin(branch, each.id, [each.version])
        return due
