"""The search of a bisection: which commits are judged, and in which order.

An interval whose ends have different verdicts contains a commit whose verdict differs from that of the commit before
it. Halving finds one: each step keeps the half whose ends differ, and that is true whether or not the verdicts change
only once. Commits that cannot be judged are passed over for the nearest ones that can.

The commits that follow each other are near each other, except for the first halvings, because the index of a past
moment is derived from the nearest one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from recollect.common.deadlines import check

#: Two commits whose verdicts differ, the earlier first, with none between them that was judged.
Interval = tuple[int, int]


class Halving:
    """The verdicts on commits. Each commit is judged once.

    Args:
        judge: Returns the verdict on a commit; None if it cannot be judged.
    """

    def __init__(self, judge: Callable[[int], bool | None]) -> None:
        self._judge = judge
        self.verdicts: dict[int, bool | None] = {}

    def verdict(self, seq: int) -> bool | None:
        """Return the verdict on a commit."""
        if seq not in self.verdicts:
            check()
            self.verdicts[seq] = self._judge(seq)
        return self.verdicts[seq]

    @property
    def skipped(self) -> tuple[int, ...]:
        """The commits that could not be judged, ascending."""
        return tuple(sorted(seq for seq, verdict in self.verdicts.items() if verdict is None))

    @property
    def intervals(self) -> list[Interval]:
        """The intervals whose ends differ, the oldest first."""
        judged = sorted(seq for seq, verdict in self.verdicts.items() if verdict is not None)
        return [(low, high) for low, high in pairwise(judged) if self.verdicts[low] != self.verdicts[high]]

    def probe(self, low: int, high: int, count: int) -> None:
        """Judge `count` commits between two others, at equal distances, the newest first."""
        count = min(count, high - low - 1)
        for number in range(count, 0, -1):
            self.verdict(low + (high - low) * number // (count + 1))

    def halve(self, low: int, high: int) -> Interval:
        """Halve an interval whose ends differ, until no commit is left in it that can be judged."""
        while (seq := self._judged_near((low + high) // 2, low, high)) is not None:
            if self.verdict(seq) == self.verdict(low):
                low = seq
            else:
                high = seq
        return low, high

    def gallop(self, low: int, high: int) -> Interval:
        """Search the newest change of an interval whose ends differ.

        Commits 1, 2, 4, ... before its end are judged until one differs from it, and the rest is halved. If the
        verdicts change twice between two of these commits, both changes are passed over.
        """
        end, distance = high, 1
        while end - distance > low:
            seq = self._judged_near(min(end - distance, high - 1), low, high)
            if seq is None:
                break
            if self.verdict(seq) != self.verdict(end):
                low = seq
                break
            high = seq
            distance *= 2
        return self.halve(low, high)

    def _judged_near(self, middle: int, low: int, high: int) -> int | None:
        """Return the nearest commit to `middle` between two others that can be judged; None if there is none."""
        return next((seq for seq in _outward(middle, low, high) if self.verdict(seq) is not None), None)


def _outward(middle: int, low: int, high: int) -> Iterator[int]:
    """Yield the numbers between two others by their distance from `middle`.

    >>> list(_outward(5, 3, 9))
    [5, 4, 6, 7, 8]
    """
    for distance in range(high - low):
        for number in dict.fromkeys((middle - distance, middle + distance)):
            if low < number < high:
                yield number
