"""Merges of branches: in one commit with two parents, which has what the other branch has changed.

Only the records that the other branch has changed since the last common commit are looked at. Nothing is written before
all conflicts are decided (`merge_plans`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from recollect.engine.branch_results import Merged
from recollect.engine.branches import learns_of_copies, note_merged
from recollect.engine.core import Core, check_branch
from recollect.engine.family import chosen
from recollect.engine.meeting import Meeting, is_shared, known_with, learns_of_others, meeting_of
from recollect.engine.merge_plans import Decisions, MergePlan, plans_of
from recollect.engine.read.log import last_effect
from recollect.engine.scope import Place
from recollect.engine.settings import Taken, set_merged
from recollect.engine.write.batch import Writing
from recollect.errors import ConflictError, InvalidArgumentError, OriginError
from recollect.ledger.commits import Branch
from recollect.ledger.parts import RECORDS
from recollect.operations import MergeBranch
from recollect.records.origins import RANKS, USER
from recollect.stores.base import Transaction, View


def merge(core: Core, place: Place, operation: MergeBranch) -> Merged:
    """Merge another branch into that of a place.

    Raises:
        UnknownBranchError: There is no such branch.
        InvalidArgumentError: It is the branch itself, or a resolution is of no conflict.
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
        if end.same is not None:
            with core.store.write(ours) as transaction:
                _note(transaction, theirs, ours, end.same)
        return end.result
    return replace(result, seq=writing.seq)


class _NothingWritten(Exception):
    """Ends the transaction of a merge that writes nothing: it is undone, as other writes to a branch are part of it.

    Attributes:
        result: The result of the merge.
        same: What this branch has of the other one, if that has new commits and all that they changed is the same here.
    """

    def __init__(self, result: Merged, same: Taken | None = None) -> None:
        self.result = result
        self.same = same


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
    if heads[1] <= meeting.theirs:
        raise _NothingWritten(result)
    decisions = Decisions(transaction, ours, theirs, operation)
    learns = learns_of_others(transaction, ours, theirs) or learns_of_copies(transaction, ours, theirs)
    shared = is_shared(transaction, ours, theirs, meeting.theirs)
    plans = dict(plans_of(transaction, ours, theirs, meeting, decisions, learns=learns, shared=shared))
    decisions.check_used()
    result = _summary(result, plans)
    if result.conflicts or operation.dry_run:
        raise _NothingWritten(result)
    if not any(plan.writes for plan in plans.values()):
        # Without a commit: two copies that merge each other would make one for each other's for ever.
        raise _NothingWritten(result, _taken(heads[1], heads[0], meeting))
    for name, plan in plans.items():
        _write(writing, chosen(ours, [name])[name], chosen(theirs, [name])[name], plan)
    entry = next(iter(transaction.entries(theirs, heads[1] - 1)))
    writing.writer.follow((theirs.name, heads[1], entry))
    _note(transaction, theirs, ours, _taken(heads[1], heads[0] + 1, meeting))
    return result


def _note(transaction: Transaction, branch: Branch, into: Branch, taken: Taken) -> None:
    """Note what was merged: of a branch, and with it of those that were merged into that."""
    for each, known in known_with(transaction, into, branch, taken.at).items():
        set_merged(transaction, each, into, known)
    note_merged(transaction, branch, into, taken)


def _taken(seq: int, at: int, meeting: Meeting) -> Taken:
    return Taken(seq, at, None if meeting.taken is None else (meeting.taken[0].name, meeting.taken[1]))


def _write(writing: Writing, own: Branch, other: Branch, plan: MergePlan) -> None:
    """Write what a merge does to a part of a memory."""
    writer = writing.in_part(own).writer
    for record_id, record in plan.puts.items():
        writer.take(record_id, record, _cause(writing.transaction, other, record_id) if record is None else "written")
    for record in plan.beside:
        writer.add_beside(record, other.name)
    for record_id in plan.decided:
        writer.state_kept(record_id)
    if own.is_reserved:  # the commit of the memory binds the hashes
        writer.follow((other.name, writing.transaction.head(other).seq))


def _summary(result: Merged, plans: Mapping[str, MergePlan]) -> Merged:
    return replace(
        result,
        taken=plans[RECORDS].taken,
        joined=sum(plan.joined for plan in plans.values()),
        kept=sum(plan.kept for plan in plans.values()),
        conflicts=tuple(conflict for plan in plans.values() for conflict in plan.conflicts),
        parts={name: plan.taken for name, plan in plans.items() if name != RECORDS and plan.taken},
    )


def _cause(view: View, branch: Branch, record_id: str) -> str:
    """Return why a record was removed."""
    found = last_effect(view, branch, record_id)
    return "forgotten" if found is None else found[1].cause
