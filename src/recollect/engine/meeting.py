"""What two branches of a memory have in common: the states from which a merge tells what either has changed.

That is where one continues the other, or what the last merge took over, in either direction. If each has merged an
older state of the other one, there are two such states, neither of which has all of the other. A record that is the
same in both began as that. One that differs began as what the side has that has changed it since the two had something
in common before; if both have, each has decided for itself, and there is nothing that both began with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recollect.engine.branches import joined_branches
from recollect.engine.family import chosen
from recollect.engine.read.targets import seq_in
from recollect.engine.settings import Taken, merged_elsewhere, merged_into, merged_upto
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
        before: What both had before those: what the last merge began with. None if that is not known.
        theirs: The newest commit of the other branch that this one has: what came later is merged.
        ours: The newest commit of this branch that the other one has.
    """

    bases: tuple[Point, ...]
    before: Point | None
    theirs: int
    ours: int

    @property
    def taken(self) -> Point | None:
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
    before = None
    if taken[0][1] == taken[1].seq and taken[1].base is not None:
        base = Branch(ours.namespace, taken[1].base[0]), taken[1].base[1]
        before = base if base[1] <= max(own.get(base[0], 0), other.get(base[0], 0)) else None
    return Meeting((taken[0], given[0]), before, *known)


def _newest(
    view: View, branches: Mapping[Branch, int], into: Mapping[Branch, int], after: int
) -> tuple[Point, Taken] | None:
    """Return the newest state of a branch that was merged into another one, if it is newer than what both have anyway.

    Args:
        branches: The branches whose commits the first one has (`line_upto`).
        into: The branches whose commits the second one has.
        after: The newest commit that both have since one continues the other.
    """
    found = [
        ((branch, min(taken.seq, seq)), taken)
        for branch, seq in branches.items()
        for other, newest in into.items()
        if branch != other and (taken := merged_upto(view, branch, other)) is not None and taken.at <= newest
    ]
    best = max(found, key=lambda each: (each[0][1], each[1].base is not None), default=None)
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


def is_shared(view: View, ours: Branch, theirs: Branch, since: int) -> bool:
    """Return whether further branches or copies may have states of another branch that are newer than a commit."""
    if any(each == theirs for each, _ in joined_branches(view, theirs.namespace)):
        return True
    continuing = (each for each in view.continuing(theirs.namespace) if each.branch != ours)
    if any(each.base.branch == theirs and each.base.seq > since for each in continuing):
        return True
    return any(each != ours and taken.seq > since for each, taken in merged_elsewhere(view, theirs).items())


class Begun(NamedTuple):
    """A record as both branches began with it.

    Attributes:
        version: Its version; None if it was not live, or was erased.
        payload: The payload of that, unless it was thinned.
        split: Whether each branch has decided for itself since. The version is then that of before, if it is known.
    """

    version: bytes | None
    payload: bytes | None
    split: bool = False

    def is_as(self, other: Begun) -> bool:
        """Return whether it is the same record, wherever that is in its conversation."""
        if self.payload is None or other.payload is None or self.version == other.version:
            return self.version == other.version
        record, there = Record.load(self.payload), Record.load(other.payload)
        return is_turn(record) and is_turn(there) and record.changed(position=there.position) == there


_NOTHING = Begun(None, None)


def begun_with(view: View, part: str, meeting: Meeting, ids: Sequence[str]) -> dict[str, Begun]:
    """Return what both branches began with, by id.

    Args:
        part: The name of the part of the memory.
        ids: The ids of its records.
    """
    found = [_state(view, part, each, ids) for each in meeting.bases]
    if len(found) == 1:
        return found[0]
    other, own = found
    differing = [each for each in ids if not other[each].is_as(own[each])]
    before = None if meeting.before is None else _state(view, part, meeting.before, differing)
    out = dict(own)
    for each in differing:
        if before is None:
            out[each] = _NOTHING._replace(split=True)
        elif own[each].is_as(before[each]):
            out[each] = other[each]
        elif not other[each].is_as(before[each]):
            out[each] = before[each]._replace(split=True)
    return out


def _state(view: View, part: str, point: Point, ids: Sequence[str]) -> dict[str, Begun]:
    """Return records as they were."""
    branch = chosen(point[0], [part])[part]
    seq = seq_in(view, branch, *point)
    versions = view.versions_at(branch, ids, seq) if seq and ids else {}
    named = [each for each in versions.values() if each is not None]
    payloads = view.payloads(branch, named)
    removed = view.removed(branch, [each for each in named if each not in payloads])
    erased = {each for each, found in removed.items() if found.cause == "erased"}
    live = {each: version for each, version in versions.items() if version is not None and version not in erased}
    return {each: Begun(live[each], payloads.get(live[each])) if each in live else _NOTHING for each in ids}
