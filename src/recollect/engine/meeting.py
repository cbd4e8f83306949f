"""What two branches of a memory have in common: the states from which a merge tells what either has changed.

That is where one continues the other, or what the last merge took over, in either direction. If each has merged an
older state of the other one, there are two such states, neither of which has all of the other. A record that is the
same in both began as that. One that differs began as what the side has that has changed it since the two had something
in common before; if both have, each has decided for itself, and there is nothing that both began with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recollect.engine.family import chosen
from recollect.engine.read.targets import seq_in
from recollect.engine.settings import Taken, merged_into, merged_upto
from recollect.engine.write.drafts import is_turn
from recollect.ledger.commits import Branch
from recollect.records.record import Record
from recollect.stores.base import View

#: Where a branch was: the number of its newest commit then.
Point = tuple[Branch, int]


class Meeting(NamedTuple):
    """What two branches have in common.

    Attributes:
        bases: The newest states that both have: one, or two of which neither has all of the other; the first one is
            then of the other branch, the second one of this branch.
        before: What both had before those: where one continues the other, or what an earlier merge began with.
        theirs: The newest commit of the other branch that this one has: what came later is merged.
        ours: The newest commit of this branch that the other one has.
    """

    bases: tuple[Point, ...]
    before: Point
    theirs: int
    ours: int

    @property
    def taken(self) -> Point:
        """The one state to which a later merge goes back if there are two by then."""
        return self.bases[0] if len(self.bases) == 1 else self.before


def meeting_of(view: View, ours: Branch, theirs: Branch) -> Meeting:
    """Return what two branches of a memory have in common.

    Cost:
        O(log n) for each branch that they continue.
    """
    own, other = line_upto(view, ours), line_upto(view, theirs)
    forks = [(branch, min(seq, other[branch])) for branch, seq in own.items() if branch in other]
    fork = max(forks, key=lambda each: each[1], default=(theirs, 0))
    taken, given = _newest(view, other, own, fork[1]), _newest(view, own, other, fork[1])
    known = fork[1] if taken is None else taken[0][1], fork[1] if given is None else given[0][1]
    if taken is None or given is None:
        points = [each[0] for each in (taken, given) if each is not None]
        return Meeting(tuple(points or [fork]), fork, *known)
    if known[1] >= taken[1].at:
        return Meeting((given[0],), fork, *known)
    if known[0] >= given[1].at:
        return Meeting((taken[0],), fork, *known)
    before = fork
    if taken[0] == (theirs, taken[1].seq) and taken[1].base is not None:
        base = Branch(ours.namespace, taken[1].base[0]), taken[1].base[1]
        before = base if base[1] <= max(own.get(base[0], 0), other.get(base[0], 0)) else fork
    return Meeting((taken[0], given[0]), before, *known)


def _newest(
    view: View, branches: Mapping[Branch, int], into: Mapping[Branch, int], after: int
) -> tuple[Point, Taken] | None:
    """Return the newest state of a branch that was merged into another one, unless it is as old as a commit.

    Args:
        branches: The branches whose commits the first one has (`line_upto`).
        into: The branches whose commits the second one has.
        after: The commit.
    """
    found = [
        ((branch, min(taken.seq, seq)), taken)
        for branch, seq in branches.items()
        for other, newest in into.items()
        if branch != other and (taken := merged_upto(view, branch, other)) is not None and taken.at <= newest
    ]
    best = max(found, key=lambda each: each[0][1], default=None)
    return best if best is not None and best[0][1] > after else None


def line_upto(view: View, branch: Branch) -> dict[Branch, int]:
    """Return the branches whose commits a branch has, with the newest of these commits."""
    out, seq, following = dict[Branch, int](), view.head(branch).seq, branch
    while True:
        out[following] = seq
        base = view.base(following)
        if base is None:
            return out
        following, seq = base.branch, min(seq, base.seq)


def known_with(view: View, ours: Branch, theirs: Branch, at: int) -> dict[Branch, Taken]:
    """Return what a branch has of further ones when it has merged another one: of those that were merged into that.

    Args:
        at: The first commit of this branch that has them.
    """
    own, out = line_upto(view, ours), dict[Branch, Taken]()
    for branch, seq in line_upto(view, theirs).items():
        there = {branch: seq} | {
            each: taken.seq for each, taken in merged_into(view, branch).items() if taken.at <= seq
        }
        for each, newest in there.items():
            known = out.get(each) or merged_upto(view, each, ours)
            if each not in (ours, theirs) and newest > max(own.get(each, 0), 0 if known is None else known.seq):
                out[each] = Taken(newest, at)
    return out


def learns_of_others(view: View, ours: Branch, theirs: Branch) -> bool:
    """Return whether another branch has merged further ones that a branch has not merged."""
    line = line_upto(view, theirs)
    return any(each not in line for each in known_with(view, ours, theirs, 0))


class Begun(NamedTuple):
    """What both branches began with.

    Attributes:
        payloads: The payload of each record; None for one that was not live, or was erased.
        split: Those of which each branch has decided for itself. Their payload is that of before.
    """

    payloads: dict[str, bytes | None]
    split: frozenset[str]


def begun_with(view: View, part: str, meeting: Meeting, ids: Sequence[str]) -> Begun:
    """Return what both branches began with.

    Args:
        part: The name of the part of the memory.
        ids: The ids of its records.
    """
    found = [_payloads(view, part, each, ids) for each in meeting.bases]
    if len(found) == 1:
        return Begun(found[0], frozenset())
    other, own = found
    differing = [each for each in ids if not _is_same(other[each], own[each])]
    before = _payloads(view, part, meeting.before, differing)
    payloads, split = dict(own), set[str]()
    for each in differing:
        if _is_same(own[each], before[each]):
            payloads[each] = other[each]
        elif not _is_same(other[each], before[each]):
            payloads[each] = before[each]
            split.add(each)
    return Begun(payloads, frozenset(split))


def _payloads(view: View, part: str, point: Point, ids: Sequence[str]) -> dict[str, bytes | None]:
    branch = chosen(point[0], [part])[part]
    seq = seq_in(view, branch, *point)
    versions = view.versions_at(branch, ids, seq) if seq and ids else {}
    payloads = view.payloads(branch, [each for each in versions.values() if each is not None])
    return {each: None if (version := versions.get(each)) is None else payloads.get(version) for each in ids}


def _is_same(one: bytes | None, other: bytes | None) -> bool:
    """Return whether two payloads are of the same record, wherever it is in its conversation."""
    if one is None or other is None or one == other:
        return one == other
    record, there = Record.load(one), Record.load(other)
    return is_turn(record) and is_turn(there) and record.changed(position=there.position) == there
