"""Check whether a history of calls on one record is linearizable.

Each call is an interval: it took effect at some point between its start and its end. A history is linearizable if these
points can be ordered so that every call returns what it returned (Herlihy and Wing, 1990). The search is that of Wing
and Gong (1993) with Lowe's cache of visited states (2017): a call that starts before any other has ended may be next;
if none may, the last choice is undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Call:
    """A call on a register: a read, a write, or a write on condition that it has some value.

    begun, ended   when, by one clock for all
    found          the value that it gave: of a read, or of a condition that did not hold
    expected       of a write with a condition: the value that it was to have
    written        the value that it has from then on; None where nothing was written
    """

    begun: int
    ended: int
    found: str | None = None
    expected: str | None = None
    written: str | None = None

    def after(self, value: str) -> str | None:
        """The value after the call, where it is `value` before; None where it cannot have given then what it gave."""
        if self.written is not None:
            return self.written if self.expected is None or self.expected == value else None
        if self.expected == value:
            return None  # the condition held, and yet it was refused
        return value if self.found == value else None


class _Moment:
    """The beginning of a call (`end` is its end), or an end, in the list of those that are left."""

    __slots__ = ("end", "last", "next", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.end: _Moment | None = None
        self.last: _Moment | None = None
        self.next: _Moment | None = None


def linearizable(calls: Sequence[Call], initial: str) -> bool:
    """Whether there is an order that explains all calls on a register that has the value `initial` at first.

    Cost: in proportion to the calls where few are at once; exponential in how many are, at worst.
    """
    first = _moments(calls)
    value, done = initial, 0
    tried: set[tuple[int, str]] = set()
    chosen: list[tuple[_Moment, str]] = []
    at = first.next
    while first.next is not None:
        assert at is not None, "each beginning has an end behind it"
        if at.end is None:  # a call has ended that was not given its moment
            if not chosen:
                return False
            at, value = chosen.pop()
            done &= ~(1 << at.number)
            _put_back(at)
            at = at.next
            continue
        after = calls[at.number].after(value)
        if after is not None and (done | 1 << at.number, after) not in tried:
            done |= 1 << at.number
            tried.add((done, after))
            chosen.append((at, value))
            value = after
            _take_out(at)
            at = first.next
        else:
            at = at.next
    return True


def _moments(calls: Sequence[Call]) -> _Moment:
    """The list of all beginnings and ends by time (of the same time, beginnings first), behind an empty first one."""
    moments = []
    for number, call in enumerate(calls):
        begin, end = _Moment(number), _Moment(number)
        begin.end = end
        moments += [(call.begun, 0, number, begin), (call.ended, 1, number, end)]
    moments.sort(key=lambda each: each[:3])
    first = last = _Moment(-1)
    for *_, moment in moments:
        last.next, moment.last = moment, last
        last = moment
    return first


def _take_out(begin: _Moment) -> None:
    for moment in (begin, begin.end):
        assert moment is not None
        assert moment.last is not None
        moment.last.next = moment.next
        if moment.next is not None:
            moment.next.last = moment.last


def _put_back(begin: _Moment) -> None:
    for moment in (begin.end, begin):
        assert moment is not None
        assert moment.last is not None
        moment.last.next = moment
        if moment.next is not None:
            moment.next.last = moment
