"""Filters as SQL, for stores that have columns for some fields: bounds, not translations.

For each filter there are two conditions: an upper one, true for every record that matches (and perhaps for more), and
a lower one, true only for records that match (and perhaps not for all). What SQL cannot say is 1 above and 0 below, so
`NOT` turns one into the other and a custom predicate is never lost: it only makes the bounds wider. Within a `NOT`
every condition is made true or false, never NULL, so a missing value means what it means to Python.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from recollect.filters.tree import AllOf, AnyOf, Everything, Filter, ImportanceAtLeast, Is, Not, Nothing, Time
from recollect.records.codec import microseconds

#: Beyond so many values in one condition SQL is not asked: statements have a limit, and an index no use.
_MOST_VALUES = 200


class Sql(NamedTuple):
    """A condition and its parameters."""

    text: str
    parameters: tuple[Any, ...] = ()


class Bounds(NamedTuple):
    upper: Sql
    lower: Sql


TRUE, FALSE = Sql("1"), Sql("0")


def bounds(where: Filter) -> Bounds:
    """The upper and lower conditions of a filter on the columns of `heads`, under the alias `h`."""
    if isinstance(where, Everything):
        return Bounds(TRUE, TRUE)
    if isinstance(where, Nothing):
        return Bounds(FALSE, FALSE)
    if isinstance(where, AllOf | AnyOf) and len(where.parts) > _MOST_VALUES:
        return Bounds(TRUE, FALSE)
    if isinstance(where, AllOf):
        parts = [bounds(part) for part in where.parts]
        return Bounds(_joined("AND", [part.upper for part in parts]), _joined("AND", [part.lower for part in parts]))
    if isinstance(where, AnyOf):
        parts = [bounds(part) for part in where.parts]
        return Bounds(_joined("OR", [part.upper for part in parts]), _joined("OR", [part.lower for part in parts]))
    if isinstance(where, Not):
        inner = bounds(where.part)
        return Bounds(_negated(inner.lower), _negated(inner.upper))
    exact = _exact(where)
    return Bounds(exact, exact) if exact else Bounds(TRUE, FALSE)


def _exact(where: Filter) -> Sql | None:
    """The condition that says just what the filter says, where the columns can."""
    if isinstance(where, Is) and len(where.values) <= _MOST_VALUES:
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
