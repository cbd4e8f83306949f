"""Which documents a filter may admit, told by the columns of the index: nobody need read a record for that.

What the columns say is no more than a first choice, and never too narrow: a filter's own predicate has the last word.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from recollect.engine.scope import Scope
from recollect.filters.tree import AllOf, AnyOf, Filter, Is, Nothing, Time
from recollect.indexes.columns import FIELDS, NO_TIME, Flags
from recollect.indexes.documents import Table
from recollect.records.codec import microseconds


def admitted(where: Filter, table: Table) -> Flags | None:
    """The documents among which are all that a filter matches; None where the columns say nothing of it.

    Cost: O(documents) for each condition: one comparison of a column.
    """
    match where:
        case Is() if where.name in FIELDS:
            return table.having(where.name, where.values)
        case Time():
            return _in_time(where, table)
        case Nothing():
            return np.zeros(table.count, dtype=np.bool_)
        case AllOf():
            told = [part for each in where.parts if (part := admitted(each, table)) is not None]
            return reduce(np.logical_and, told) if told else None
        case AnyOf():
            parts = [admitted(each, table) for each in where.parts]
            told = [part for part in parts if part is not None]
            return reduce(np.logical_or, told) if len(told) == len(parts) else None
    return None


def _in_time(where: Time, table: Table) -> Flags:
    """The documents whose time is in an interval, neither more nor less."""
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
