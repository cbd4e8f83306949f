"""Bounds of a filter, for what can evaluate only some conditions on records, or only exactly a part of a filter.

The upper bound is true for every record that matches and possibly for more; the lower bound is true only for records
that match and possibly not for all of them. A condition that cannot be evaluated is always true in the upper bound and
never in the lower one. Negation therefore swaps the bounds, and such conditions only widen them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from recollect.filters.tree import AllOf, AnyOf, Everything, Filter, Not, Nothing

T = TypeVar("T")


class BoundsOf(ABC, Generic[T]):
    """Computes bounds in some form, in which True and False stand for what is always or never true."""

    @abstractmethod
    def condition(self, where: Filter) -> tuple[T | bool, T | bool]:
        """Return the upper and the lower bound of a condition without parts: one object twice if it is exact."""

    @abstractmethod
    def join(self, every: bool, one: T, other: T) -> T:
        """Return what is true where both are (`every`), or where one is."""

    @abstractmethod
    def negate(self, part: T) -> T:
        """Return what is true where a part is not."""

    def of(self, where: Filter) -> tuple[T | bool, T | bool]:
        """Return the upper and the lower bound of a filter: one object twice if it is exact."""
        match where:
            case Everything():
                return True, True
            case Nothing():
                return False, False
            case Not():
                upper, lower = self.of(where.part)
                outside = self._negated(lower)
                return outside, outside if upper is lower else self._negated(upper)
            case AllOf() | AnyOf():
                return self._of_parts(where.parts, every=isinstance(where, AllOf))
        return self.condition(where)

    def _of_parts(self, parts: tuple[Filter, ...], *, every: bool) -> tuple[T | bool, T | bool]:
        upper: T | bool = every
        lower: T | bool = every
        for part in parts:  # one after the other, to save memory: there may be thousands
            above, below = self.of(part)
            exact = upper is lower and above is below
            joined = self._joined(every, upper, above)
            lower = joined if exact else self._joined(every, lower, below)
            upper = joined
        return upper, lower

    def _joined(self, every: bool, one: T | bool, other: T | bool) -> T | bool:
        if isinstance(one, bool):
            return other if one is every else one
        if isinstance(other, bool):
            return one if other is every else other
        return self.join(every, one, other)

    def _negated(self, part: T | bool) -> T | bool:
        return not part if isinstance(part, bool) else self.negate(part)
