"""Targets: what callers name a past moment by, and the moment that it is.

A target is resolved once, to a commit and a time. The token of a moment contains both, encrypted and authenticated, so
it can be passed to callers within a scope; later commits do not change what it shows.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime
from typing import NamedTuple

from recollect.common.regexes import regex
from recollect.engine.cursors import Cursors
from recollect.engine.read.log import VisibleLog, in_pages
from recollect.engine.read.past_view import PastView
from recollect.engine.results import Moment
from recollect.engine.scope import Scope
from recollect.errors import InvalidArgumentError, ScopeError, UnknownTargetError
from recollect.ledger.commits import Branch, Head, Snapshot
from recollect.ledger.merkle import EMPTY
from recollect.operations import Pin, target_of
from recollect.records.codec import TIMES, datetime_of, microseconds
from recollect.stores.base import View
from recollect.text.unicode import nfc

_ROOT = regex("[0-9a-fA-F]{64}")
#: The order that cursors of moments are tokens of (`Cursors.after`).
_ORDER = "at"


class PastPoint(NamedTuple):
    """A resolved moment.

    Attributes:
        seq: The newest commit of the moment; 0 before the first.
        root: The root after it.
        now: The time of the moment, in microseconds since 1970: it decides which records have expired.
    """

    seq: int
    root: bytes
    now: int

    def head_in(self, view: View, branch: Branch) -> Head:
        """Return the commit in a view.

        Raises:
            UnknownTargetError: The store has another history.
        """
        head = view.head_at(branch, self.seq) if self.seq else Head()
        if head is None or head.root.hash != self.root:
            raise UnknownTargetError(self.seq, "the store has another history since: an older copy was restored")
        return head

    def moment(self, branch: Branch, cursors: Cursors) -> Moment:
        """Return the moment as callers see it."""
        key = (f"{self.seq:016x}{self.root.hex()}", self.now)
        return Moment(cursors.after(key, _ORDER, branch, Scope()), datetime_of(self.now).astimezone(UTC))


def point_of(token: str, branch: Branch, cursors: Cursors) -> PastPoint:
    """Return the moment of a token.

    Raises:
        InvalidArgumentError: It is not the token of a moment of this branch.
    """
    try:
        where, now = cursors.sort_key(token, _ORDER, branch, Scope())
    except InvalidArgumentError:
        raise InvalidArgumentError("moment", token, "must be the token of a moment of this memory") from None
    return PastPoint(int(str(where)[:16], 16), bytes.fromhex(str(where)[16:]), int(now))


def resolve(target: Pin, view: View, branch: Branch, scope: Scope, cursors: Cursors, now: int) -> PastPoint:
    """Return the moment that a target names.

    Args:
        view: A view of the store.
        scope: The scope of the caller. Within one, only times and cursors name moments.
        cursors: The cursors of the store.
        now: The time that decides in the present which records have expired (`Core.reads_at`).

    Raises:
        UnknownTargetError: There is no such moment.
        ScopeError: The target would reveal something of the namespace outside the scope.
        InvalidArgumentError: Within a scope, the target is not a cursor of it.

    Cost:
        O(log commits) for a time, O(1) for a seq, and O(commits) for a root.
    """
    if target.of is not None:
        return point_in(view, branch, branch.owner, point_of(target.of, branch.owner, cursors))
    if target.time is not None:
        return _at_time(view, branch, microseconds(target.time), now)
    if scope.fixed and target.seq != 0:
        if target.named is None or _ROOT.fullmatch(target.named):
            what = "a seq, root or snapshot, which covers the whole namespace (pass a time or a cursor),"
            raise ScopeError(what, str(scope))
        reached = cursors.reached(target.named, branch, scope, view.head(branch).seq)
        return _at_seq(view, branch, _newest_visible(view, branch, scope, cursors, reached), now)
    if scope.fixed and target.seq is not None:
        return PastPoint(0, EMPTY, TIMES.start)  # the time of the first commit would reveal it
    if target.seq is not None:
        newest = view.head(branch).seq
        if not 0 <= target.seq <= newest:
            raise UnknownTargetError(target.seq, f"its commits have the numbers 1 to {newest}")
        point = _at_seq(view, branch, target.seq, now)
        stated = view.head_at(branch, target.seq) or Head()
        if target.root not in (None, point.root.hex(), stated.memory_root.hex()):
            raise UnknownTargetError(target.seq, "the store has another history: this commit has another root")
        if target.root is not None:  # a snapshot as an object
            marked = (each for each in view.snapshots(branch) if (each.seq, each.root) == (target.seq, target.root))
            return next((_of_snapshot(point, each) for each in marked), point)
        return point
    if target.named is not None and _ROOT.fullmatch(target.named):
        return _at_root(view, branch, bytes.fromhex(target.named), now)
    return _at_snapshot(target, view, branch, now)


def _at_seq(view: View, branch: Branch, seq: int, now: int) -> PastPoint:
    """Return the moment of a commit; that of 0 is just before the first commit."""
    head = view.head_at(branch, seq or 1)
    if seq and head is not None:
        return PastPoint(seq, head.root.hash, head.micros)
    return PastPoint(0, EMPTY, now if head is None else head.micros - 1)


def point_in(view: View, part: Branch, memory: Branch, point: PastPoint) -> PastPoint:
    """Return a moment of a memory as one of its parts has it: as its commit states, or of its time in format 3."""
    if part == memory:
        return point
    stated = view.head_at(memory, point.seq) if point.seq else None
    if stated is None or stated.parts is None:
        return _at_time(view, part, point.now, point.now)
    seq = next((each.seq for each in stated.parts if each.name == part.reserved_name), 0)
    return _at_seq(view, part, seq, point.now)._replace(now=point.now)


def seq_in(view: View, part: Branch, memory: Branch, seq: int) -> int:
    """Return the newest commit of a part of a memory after one of the memory; 0 for none."""
    head = view.head_at(memory, seq) if seq else None
    if head is None:
        return 0
    return point_in(view, part, memory, PastPoint(seq, head.root.hash, head.micros)).seq


def _at_time(view: View, branch: Branch, micros: int, now: int) -> PastPoint:
    """Return the moment of a time; that of a time in the future is the present."""

    def time_of(seq: int) -> int:
        head = view.head_at(branch, seq)
        assert head is not None, "the log has no gaps"
        return head.micros

    seq = bisect_right(range(1, view.head(branch).seq + 1), micros, key=time_of)
    return _at_seq(view, branch, seq, now)._replace(now=min(micros, now))


def _at_root(view: View, branch: Branch, root: bytes, now: int) -> PastPoint:
    """Return the moment of the newest commit with a root."""
    is_empty = root in (EMPTY, Head().memory_root) and not view.head(branch).seq
    seq = 0 if is_empty else view.newest_with(branch, root)
    if seq is None:
        raise UnknownTargetError(root.hex(), "no commit has this root")
    return _at_seq(view, branch, seq, now)


def _at_snapshot(target: Pin, view: View, branch: Branch, now: int) -> PastPoint:
    """Return the moment of a snapshot: the one place where names and indexes are looked up."""
    snapshots = view.snapshots(branch)
    if target.index is not None:
        found = snapshots[target.index] if 0 <= target.index < len(snapshots) else None
    else:
        wanted = nfc(target.named or "")
        found = next((each for each in snapshots if each.name is not None and nfc(each.name) == wanted), None)
    if found is None:
        meant = None if target.named is None else target_of(target.named, UTC)
        hint = " (the number of a commit is an int)" if isinstance(meant, int) else ""
        hint = " (a time is passed as a datetime: datetime.fromisoformat)" if isinstance(meant, datetime) else hint
        raise UnknownTargetError(target.target, f"there is no such snapshot{hint}")
    return _of_snapshot(_at_seq(view, branch, found.seq, now), found)


def _of_snapshot(point: PastPoint, snapshot: Snapshot) -> PastPoint:
    """Return the moment of a snapshot. What lies beside the records is read by its time: a commit may be much older."""
    return point._replace(now=max(point.now, snapshot.micros) if point.seq else snapshot.micros)


def _newest_visible(view: View, branch: Branch, scope: Scope, cursors: Cursors, seq: int) -> int:
    """Return the newest commit up to `seq` that a scope sees: the time of any other would reveal that there is one.

    Cost:
        The commits after it.
    """
    head = (view.head_at(branch, seq) if seq else None) or Head()
    past = PastView(view, branch, head, head.micros)
    commits = in_pages(past, branch, 0, None, None, newest_first=True)
    seen = VisibleLog(past, branch, scope, cursors)
    return next((each.seq for each in commits if seen.of(each) is not None), 0)
