"""Which documents a filter may admit, and which it surely does, told by the index: nobody need read a record for that.

Each filter has two bounds, as it has for stores with columns (`stores.sqlite.filters`): an upper one that holds every
document which matches (and perhaps more), and a lower one that holds only documents which match (and perhaps not all).
So `~` turns one into the other, and what the index cannot tell only makes them wider.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from recollect.engine.index.filter_terms import key_term, session_term, tag_term, value_term
from recollect.engine.scope import Scope
from recollect.filters.tree import (
    AllOf,
    AnyOf,
    Custom,
    Everything,
    Filter,
    ImportanceAtLeast,
    Is,
    Meta,
    Not,
    Nothing,
    Tag,
    Time,
)
from recollect.indexes.documents.columns import FIELDS, NO_TIME, NONE, Flags
from recollect.indexes.documents.table import Table
from recollect.indexes.words.index import WordView
from recollect.records.codec import microseconds


class Bounds(NamedTuple):
    """The bounds of a filter among the documents of a view, its dead ones too.

    upper  None where the index says nothing of it: it may admit any document
    lower  None where the index is sure of none
    """

    upper: Flags | None
    lower: Flags | None

    @property
    def exact(self) -> bool:
        """Whether the index says just what the filter says."""
        return self.upper is not None and self.upper is self.lower


#: So many records a store is asked for by their ids, at the most.
MAX_IDS = 200
#: So many that tie are put in the order of their ids, at the most.
_MAX_TIES = 10_000
#: What stores find by an index of their own, and mostly few have.
_SELECTIVE_FIELDS = ("id", "user", "conversation", "entity")
#: Of what the index says nothing.
UNBOUNDED = Bounds(None, None)


def bounds(where: Filter, view: WordView) -> Bounds:
    """What the index says of a filter.

    Cost: O(documents) bytes for each condition: one comparison of a column, or the postings of a mark.
    """
    match where:
        case Everything():
            return _exactly(np.ones(view.table.count, dtype=np.bool_))
        case Nothing():
            return _exactly(np.zeros(view.table.count, dtype=np.bool_))
        case AllOf() | AnyOf():
            return _joined(where, view)
        case Not():
            return _negated(bounds(where.part, view))
        case Meta() if where.test != "has":
            term = value_term(where.key, where.value) if where.test == "equals" else None
            return Bounds(view.having([term or key_term(where.key)]), None)
    limits = _exact_flags(where, view)
    return UNBOUNDED if limits is None else _exactly(limits)


def uses_filter_terms(where: Filter) -> bool:
    """Whether a filter asks for what stores have no column for, but the index has marks; and not for some ids."""
    match where:
        case AllOf():
            named = any(isinstance(part, Is) and part.name == "id" for part in where.parts)
            return not named and any(map(uses_filter_terms, where.parts))
        case AnyOf():
            return any(map(uses_filter_terms, where.parts))
        case Not():
            return uses_filter_terms(where.part)
    return isinstance(where, (Tag, Meta))


def selective(where: Filter) -> bool:
    """Whether stores find what a filter may match by an index of their own: then no index of ours need be read."""
    if isinstance(where, AllOf):
        return any(map(selective, where.parts))
    return isinstance(where, Is) and where.name in _SELECTIVE_FIELDS


def most_important(limits: Bounds, view: WordView, count: int) -> Bounds:
    """Of what a filter admits, if the index tells just that, the most important, as many as are wanted: by importance,
    then by id. Cost: O(documents), and O(n log n) of those that tie with the last.
    """
    if limits.upper is None or not limits.exact:
        return limits
    numbers = np.flatnonzero(_live(limits.upper, view))
    if len(numbers) <= count:
        return limits
    importance = view.table.importance[numbers]
    least = np.partition(importance, -count)[-count]
    above, ties = numbers[importance > least], numbers[importance == least].tolist()
    if len(ties) > _MAX_TIES:
        return limits
    ties.sort(key=lambda number: view.table.id(number).encode("utf-8"))
    out: Flags = np.zeros(view.table.count, dtype=np.bool_)
    out[above] = True
    out[ties[: count - len(above)]] = True
    return _exactly(out)


def exact_count(limits: Bounds, view: WordView) -> int | None:
    """How many live documents a filter matches; None where the index does not tell all of it. Cost: O(documents)."""
    return int(np.count_nonzero(_live(limits.upper, view))) if limits.exact and limits.upper is not None else None


def as_ids(where: Filter, limits: Bounds, view: WordView) -> Filter:
    """A filter that matches the same live records and names them, for stores to find; the same where they are many.

    Cost: O(documents) bytes.
    """
    if limits.upper is None:
        return where
    numbers = np.flatnonzero(_live(limits.upper, view))
    if not len(numbers):
        return Nothing()
    if len(numbers) > MAX_IDS:
        return where
    # Of the filter only the meaning stays, so that a store has the ids to go by and nothing else.
    return AllOf.of(Is("id", tuple(map(view.table.id, numbers.tolist()))), Custom(where.matches))


def _live(flags: Flags, view: WordView) -> Flags:
    out: Flags = flags & view.table.alive[: view.table.count]
    return out


def _exactly(flags: Flags | None) -> Bounds:
    return Bounds(flags, flags)


def _negated(part: Bounds) -> Bounds:
    upper = None if part.lower is None else ~part.lower
    lower = upper if part.exact else None if part.upper is None else ~part.upper
    return Bounds(upper, lower)


def _joined(where: AllOf | AnyOf, view: WordView) -> Bounds:
    """The bounds of several conditions: one after the other, as there may be thousands."""
    upper = lower = _Joined(np.logical_and if isinstance(where, AllOf) else np.logical_or)
    for part in where.parts:
        limits = bounds(part, view)
        if lower is upper and not limits.exact:  # the same until now
            lower = upper.copy()
        if lower is not upper:
            lower.add(limits.lower)
        upper.add(limits.upper)
    if lower is upper:
        return _exactly(upper.flags)
    # One condition that is told bounds a conjunction from above, and a disjunction from below.
    if isinstance(where, AllOf):
        return Bounds(upper.flags, lower.flags if lower.all_known else None)
    return Bounds(upper.flags if upper.all_known else None, lower.flags)


class _Joined:
    """Flags joined with others; those that are not told leave it as it is."""

    def __init__(self, join: Any) -> None:
        self.flags: Flags | None = None
        self.all_known = True
        self._join = join

    def copy(self) -> _Joined:
        copy = _Joined(self._join)
        copy.flags, copy.all_known = None if self.flags is None else self.flags.copy(), self.all_known
        return copy

    def add(self, flags: Flags | None) -> None:
        if flags is None:
            self.all_known = False
        elif self.flags is None:
            self.flags = flags.copy()  # what it was taken from may be both bounds of a part
        else:
            self._join(self.flags, flags, out=self.flags)


def _exact_flags(where: Filter, view: WordView) -> Flags | None:
    """The documents that a condition admits, neither more nor less; None where the index cannot tell."""
    table = view.table
    match where:
        case Is("id"):
            return table.mask(where.values)
        case Is("session"):
            return view.having(map(session_term, where.values))
        case Is("speaker") if not any(value.startswith("\0") for value in where.values):
            # (What begins so is the role of those whom nobody names.)
            numbers = [table.speakers.number.get(value, NONE) for value in where.values]
            return np.isin(table.speaker[: table.count], [number for number in numbers if number != NONE])
        case Is() if where.name in FIELDS:
            return table.having(where.name, where.values)
        case Tag():
            return view.having([tag_term(where.tag)])
        case Meta():
            return view.having([key_term(where.key)])
        case ImportanceAtLeast():
            out: Flags = table.importance[: table.count] >= max(where.least, 0.0)  # those with none are below
            return out
        case Time():
            return _in_time(where, table)
    return None


def _in_time(where: Time, table: Table) -> Flags:
    """The documents whose time is in an interval."""
    micros = table.micros[: table.count]
    out: Flags = micros != NO_TIME
    if where.test != "before":
        assert where.start is not None
        start = microseconds(where.start)
        out &= micros > start if where.test == "after" else micros >= start
    if where.test != "after":
        assert where.end is not None
        end = microseconds(where.end)
        out &= micros < end if where.test == "before" else micros <= end
    return out


def of_scope(scope: Scope, table: Table) -> Flags:
    """The documents of a scope that fixes something, neither more nor less: each of its fields has a column."""
    return reduce(np.logical_and, [table.having(name, [value]) for name, value in scope.fixed])
