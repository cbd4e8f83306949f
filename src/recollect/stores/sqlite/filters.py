"""Filters as SQL, for stores that have columns for some fields: bounds, not translations.

For each filter there are two conditions: an upper one, true for every record that matches (and perhaps for more), and
a lower one, true only for records that match (and perhaps not for all). What SQL cannot say is 1 above and 0 below, so
`NOT` turns one into the other and a custom predicate is never lost: it only makes the bounds wider. Within a `NOT`
every condition is made true or false, never NULL, so a missing value means what it means to Python.

SQLite limits how many values and how deep an expression a statement may have. So the values are counted over the whole
filter, and a part that does not fit is one of those that SQL cannot say.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from recollect.filters.tree import AllOf, AnyOf, Everything, Filter, ImportanceAtLeast, Is, Not, Nothing, Time
from recollect.records.codec import microseconds

#: Maximum number of values that one statement compares with. A conjunction of n conditions is an expression n deep, and
#: each of the at most MAX_DEPTH levels of a filter adds up to three; SQLite stops at 1,000, and at 32,766 values.
MOST_VALUES = 500


class Sql(NamedTuple):
    """A condition and its parameters."""

    text: str
    parameters: tuple[Any, ...] = ()


class Bounds(NamedTuple):
    upper: Sql
    lower: Sql


TRUE, FALSE = Sql("1"), Sql("0")


def bounds(where: Filter) -> Bounds:
    """The upper and lower conditions of a filter on the columns of `heads`, under the alias `h`.

    Of a filter with more than MOST_VALUES values, the parts of its outermost conjunction with the fewest values are
    said, as far as they fit: what the others ask is left to the predicate.

    Cost: O(distinct parts of the filter).
    """
    sizes: dict[int, int] = {}
    if _size(where, sizes) <= MOST_VALUES:
        return _bounds(where)
    if not isinstance(where, AllOf):
        return Bounds(TRUE, FALSE)
    said: set[int] = set()
    room = MOST_VALUES
    for place in sorted(range(len(where.parts)), key=lambda place: sizes[id(where.parts[place])]):
        room -= sizes[id(where.parts[place])]
        if room < 0:
            break
        said.add(place)
    parts = [_bounds(part) for place, part in enumerate(where.parts) if place in said]
    return Bounds(_joined("AND", [part.upper for part in parts]), FALSE)


def _size(where: Filter, sizes: dict[int, int]) -> int:
    """How many values a filter compares with, every condition counting at least as one.

    sizes  of the parts that are known, by `id`: a part that stands in many places is looked at once
    """
    size = sizes.get(id(where))
    if size is None:
        if isinstance(where, AllOf | AnyOf):
            size = 1 + sum(_size(part, sizes) for part in where.parts)
        elif isinstance(where, Not):
            size = _size(where.part, sizes)
        elif isinstance(where, Is):
            size = len(where.values)
        else:
            size = 2 if isinstance(where, Time) else 1
        sizes[id(where)] = size
    return size


def _bounds(where: Filter) -> Bounds:
    """`bounds`, of a filter that fits into a statement."""
    if isinstance(where, Everything):
        return Bounds(TRUE, TRUE)
    if isinstance(where, Nothing):
        return Bounds(FALSE, FALSE)
    if isinstance(where, AllOf | AnyOf):
        word = "AND" if isinstance(where, AllOf) else "OR"
        parts = [_bounds(part) for part in where.parts]
        return Bounds(_joined(word, [part.upper for part in parts]), _joined(word, [part.lower for part in parts]))
    if isinstance(where, Not):
        inner = _bounds(where.part)
        return Bounds(_negated(inner.lower), _negated(inner.upper))
    exact = _exact(where)
    return Bounds(exact, exact) if exact else Bounds(TRUE, FALSE)


def _exact(where: Filter) -> Sql | None:
    """The condition that says just what the filter says, where the columns can."""
    if isinstance(where, Is):
        marks = ",".join("?" * len(where.values))
        test = "= ?" if len(where.values) == 1 else f"IN ({marks})"
        return Sql(f'h."{where.name}" {test}', where.values)
    if isinstance(where, ImportanceAtLeast):
        return Sql("h.importance >= ?", (where.least,))
    if isinstance(where, Time):
        parts = []
        if where.start is not None:
            parts.append(Sql(f"h.time {'>' if where.test == 'after' else '>='} ?", (microseconds(where.start),)))
        if where.end is not None:
            parts.append(Sql(f"h.time {'<' if where.test == 'before' else '<='} ?", (microseconds(where.end),)))
        return _joined("AND", parts)
    return None


def _joined(word: str, parts: list[Sql]) -> Sql:
    """The conjunction or disjunction, with what is known to be true or false taken out."""
    decisive, idle = (FALSE, TRUE) if word == "AND" else (TRUE, FALSE)
    parts = [part for part in parts if part.text != idle.text]
    if any(part.text == decisive.text for part in parts):
        return decisive
    if len(parts) <= 1:
        return parts[0] if parts else idle
    text = f" {word} ".join(part.text for part in parts)
    return Sql(f"({text})", tuple(value for part in parts for value in part.parameters))


def _negated(part: Sql) -> Sql:
    if part.text in ("0", "1"):
        return TRUE if part.text == "0" else FALSE
    return Sql(f"NOT coalesce({part.text}, 0)", part.parameters)
