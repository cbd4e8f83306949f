"""Filters and orders as SQL: bounds of a filter on the columns of some fields, and the rest of an order.

A condition that SQL cannot express is TRUE in the upper bound and FALSE in the lower one (`filters.bounds`). Inside a
`NOT` every condition is made true or false, never NULL, so that a missing value means the same as in Python.

SQLite limits the number of values in a statement and the depth of an expression. The values of the whole filter are
counted, and a part that exceeds the limit is treated as one that SQL cannot express.

The rest of an order is selected by value instead of counting rows, so a page costs the same wherever it begins, and a
record that is inserted or removed before it shifts nothing. Records in order of time are read from an index on time,
which a range of it bounds; the other orders are sorted for each page.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

from recollect.filters.bounds import BoundsOf
from recollect.filters.tree import AllOf, AnyOf, Filter, Has, ImportanceAtLeast, Is, Not, Time
from recollect.records.codec import microseconds
from recollect.stores.base import FIELDS_WITHOUT_COLUMN
from recollect.stores.values import NO_IMPORTANCE, NO_POSITION, NO_TIME, SortKey

#: Maximum number of values in one statement. A conjunction of n conditions has depth n, and each of the at most
#: MAX_DEPTH levels of a filter adds up to three; SQLite's limits are a depth of 1,000 and 32,766 values.
MOST_VALUES = 500


_TIME = f"coalesce(h.time, {NO_TIME})"
_POSITION = f"coalesce(h.position, {NO_POSITION})"
_IMPORTANCE = f"coalesce(h.importance, {NO_IMPORTANCE})"


class Sql(NamedTuple):
    """An SQL condition and its parameters; and, if it needs parentheses, the word that joins its parts."""

    text: str
    parameters: tuple[Any, ...] = ()
    joined_by: str = ""


class SqlBounds(NamedTuple):
    """The upper and the lower bound of a filter."""

    upper: Sql
    lower: Sql


TRUE, FALSE = Sql("TRUE"), Sql("FALSE")


def bounds(where: Filter) -> SqlBounds:
    """Return the bounds of a filter on the columns of `heads`, under the alias `h`.

    If a filter has more than MOST_VALUES values, only those parts of its outermost conjunction that have the fewest
    values are used, as far as they fit. The caller must evaluate the others on each record.

    Cost:
        O(distinct parts of the filter).
    """
    sizes: dict[int, int] = {}
    if _size(where, sizes) <= MOST_VALUES:
        return SqlBounds(*map(_closed, _ColumnBounds().of(where)))
    if not isinstance(where, AllOf):
        return SqlBounds(TRUE, FALSE)
    chosen: set[int] = set()
    room = MOST_VALUES
    for number in sorted(range(len(where.parts)), key=lambda number: sizes[id(where.parts[number])]):
        room -= sizes[id(where.parts[number])]
        if room < 0:
            break
        chosen.add(number)
    fitting = AllOf(tuple(part for number, part in enumerate(where.parts) if number in chosen))
    return SqlBounds(_closed(_ColumnBounds().of(fitting)[0]), FALSE)


def _size(where: Filter, sizes: dict[int, int]) -> int:
    """Return the number of values in a filter. Every condition counts as at least one.

    Args:
        where: The filter.
        sizes: The sizes of known parts by `id`, so that a part that occurs several times is visited once.
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


class _ColumnBounds(BoundsOf[Sql]):
    """Bounds on the columns of `heads`."""

    def condition(self, where: Filter) -> tuple[Sql | bool, Sql | bool]:
        exact = _exact(where)
        return (exact, exact) if exact else (True, False)

    def join(self, every: bool, one: Sql, other: Sql) -> Sql:
        return _joined("AND" if every else "OR", one, other)

    def negate(self, part: Sql) -> Sql:
        return Sql(f"NOT coalesce({part.text}, FALSE)", part.parameters)


def _exact(where: Filter) -> Sql | None:
    """Return the SQL condition equivalent to a filter; None if the columns cannot express it."""
    if isinstance(where, Is):
        placeholders = ",".join("?" * len(where.values))
        test = "= ?" if len(where.values) == 1 else f"IN ({placeholders})"
        return Sql(f'h."{where.name}" {test}', where.values)
    if isinstance(where, Has) and where.name not in FIELDS_WITHOUT_COLUMN:
        return Sql(f'h."{where.name}" IS NOT NULL')
    if isinstance(where, ImportanceAtLeast):
        return Sql("h.importance >= ?", (where.least,))
    if isinstance(where, Time):
        parts = []
        if where.start is not None:
            parts.append(Sql(f"h.time {'>' if where.test == 'after' else '>='} ?", (microseconds(where.start),)))
        if where.end is not None:
            parts.append(Sql(f"h.time {'<' if where.test == 'before' else '<='} ?", (microseconds(where.end),)))
        return reduce(lambda one, other: _joined("AND", one, other), parts)
    return None


def _joined(word: str, one: Sql, other: Sql) -> Sql:
    """Join conditions with AND or OR. Equal words share their parentheses: SQLite limits the depth of these."""
    texts = [each.text if each.joined_by in ("", word) else f"({each.text})" for each in (one, other)]
    return Sql(f" {word} ".join(texts), one.parameters + other.parameters, word)


def _closed(part: Sql | bool) -> Sql:
    """Return a condition that can be part of any other one."""
    if isinstance(part, bool):
        return TRUE if part else FALSE
    return Sql(f"({part.text})", part.parameters) if part.joined_by else part


def of_one_conversation(where: Filter) -> bool:
    """Return whether a filter admits only the records of one conversation, and says so with an outermost part."""
    if isinstance(where, AllOf):
        return any(map(of_one_conversation, where.parts))
    return isinstance(where, Is) and where.name == "conversation" and len(where.values) == 1


def rest(order: str, after: SortKey | None, where: Filter) -> list[Sql]:
    """Return conditions on `heads h`, under which the rows that follow `after` are found one condition after the other.

    Args:
        order: One of `operations.ORDERS`.
        after: The sort key (`stores.values.sort_key`); None: the whole order follows.
        where: The filter of the rows.
    """
    if order == "last":
        following = TRUE
        if after is not None:
            # ~x is -1 - x, which descends as -x does, and is a 64-bit integer for each of these.
            conversation, position, time, record_id = after
            following = Sql(
                f"(coalesce(h.conversation, ''), ~{_POSITION}, ~{_TIME}, h.id) > (?, ?, ?, ?)",
                (conversation, ~int(position), ~int(time), record_id),
            )
        if not of_one_conversation(where):
            return [following]
        # In databases that sort NULL last, one statement of both could not use the index of conversations.
        return [following._replace(text=f"h.position IS {has} AND {following.text}") for has in ("NOT NULL", "NULL")]
    if after is None:
        return [TRUE]
    if order == "newest":
        time, position, record_id = after
        ties = Sql(f"(-{_POSITION}, h.id) > (-?, ?)", (position, record_id))
        if time == NO_TIME:
            return [Sql(f"h.time IS NULL AND {ties.text}", ties.parameters)]
        earlier = Sql(f"h.time <= ? AND (h.time < ? OR {ties.text})", (time, time, *ties.parameters))
        return [earlier, Sql("h.time IS NULL")]  # one statement of both could not use the range of the index
    if order == "oldest":
        later = Sql(f"({_TIME}, {_POSITION}, h.id) > (?, ?, ?)", after)
        return [later if after[0] == NO_TIME else Sql(f"h.time >= ? AND {later.text}", (after[0], *after))]
    if order == "importance":
        return [Sql(f"(-{_IMPORTANCE}, h.id) > (-?, ?)", after)]
    if order == "position":
        return [Sql(f"(coalesce(h.conversation, ''), {_POSITION}, {_TIME}, h.id) > (?, ?, ?, ?)", after)]
    return [Sql("h.id > ?", after)]
