"""Pre-filtering: a superset and a subset of the documents that match a filter, computed from the index only.

They are the bounds of the filter (`filters.bounds`); the index cannot evaluate every condition.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np

from recollect.engine.index.filter_terms import (
    PINNED_TERM,
    UNSEARCHED_TERM,
    key_term,
    link_term,
    links_term,
    origin_term,
    session_term,
    tag_term,
    value_term,
)
from recollect.engine.read.metadata_columns import columns_of
from recollect.engine.scope import Scope, linked_id, qualifier_of, unqualified
from recollect.filters.bounds import BoundsOf
from recollect.filters.tree import (
    LINK_FIELDS,
    AllOf,
    AnyOf,
    Custom,
    Filter,
    Has,
    ImportanceAtLeast,
    Is,
    Links,
    Meta,
    Not,
    Nothing,
    Originates,
    Tag,
    Time,
    Under,
    ValidAt,
)
from recollect.indexes.documents.columns import FIELDS, NEVER, NO_TIME, NONE, Flags
from recollect.indexes.documents.table import Table
from recollect.indexes.words.index import WordView
from recollect.ledger.commits import Branch
from recollect.records.codec import microseconds
from recollect.records.origins import ORIGINS
from recollect.records.record import Record
from recollect.stores.base import FIELDS_WITHOUT_COLUMN, ReadView


class Bounds(NamedTuple):
    """The bounds of a filter among the documents of a view, including removed ones.

    Attributes:
        upper: Superset of the matching documents; None if any document may match.
        lower: Subset of the matching documents; None if no document is known to match.
    """

    upper: Flags | None
    lower: Flags | None

    @property
    def exact(self) -> bool:
        """True if both bounds are exactly the matching documents."""
        return self.upper is not None and self.upper is self.lower


#: Maximum number of records that are read from a store by their ids.
MAX_IDS = 200
#: Reading a record by its id takes as long as reading this many in their order.
_SCAN = 4
#: Maximum number of ties that are ordered by their ids.
_MAX_TIES = 10_000
#: Fields that stores have an index on, and whose values usually match few records.
_SELECTIVE_FIELDS = ("id", "user", "conversation", "entity")
#: The columns that an order sorts by, all but the id.
_COLUMNS_OF = {
    "newest": ("micros", "position"),
    "oldest": ("micros", "position"),
    "importance": ("importance",),
    "last": ("position", "micros"),
}
#: How many records are decoded to decide a condition where a question can be answered without that, and where else the
#: records would be read from the store, which takes several times as long.
DECODED, DECODED_TO_FIND = 500, 10_000
#: The bounds of a condition that the index cannot evaluate.
UNBOUNDED = Bounds(None, None)


def bounds(where: Filter, view: WordView, *, decode: int | None = DECODED) -> Bounds:
    """Return the bounds of a filter.

    Args:
        where: The filter, without `Under`, for records as they are stored.
        view: The view of the index.
        decode: For a condition on a value of the metadata, at most this many records are decoded, besides those that
            were before; None: any number. For the others only the key and the hash of the value decide.

    Cost:
        O(documents) bytes per condition: one comparison of a column, or the postings of a filter term. For a value of
        the metadata, the decoding of records, once, and a comparison for each that has the key.
    """
    upper, lower = _DocumentBounds(view, decode).of(where)
    if isinstance(upper, bool) and upper is lower:
        return _exactly(np.full(view.table.count, upper, dtype=np.bool_))
    return Bounds(None if isinstance(upper, bool) else upper, None if isinstance(lower, bool) else lower)


class _DocumentBounds(BoundsOf[Flags]):
    """Bounds among the documents of a view."""

    def __init__(self, view: WordView, decode: int | None) -> None:
        self._view = view
        self._decode = decode

    def condition(self, where: Filter) -> tuple[Flags | bool, Flags | bool]:
        if isinstance(where, Meta) and (where.test != "has" or len(where.path) > 1):
            return self._by_value(where)
        exact = _exact_flags(where, self._view)
        return (True, False) if exact is None else (exact, exact)

    def _by_value(self, where: Meta) -> tuple[Flags, Flags | bool]:
        """Return the bounds of a condition on a value of the metadata."""
        table = self._view.table
        admitted = self._view.having(_terms_of(where))
        documents = np.flatnonzero(admitted & table.alive[: table.count])
        met, unknown = columns_of(table.rows).decide(where, table, documents, self._decode)
        return (met | unknown, met) if unknown.any() else (met, met)

    def join(self, every: bool, one: Flags, other: Flags) -> Flags:
        return one & other if every else one | other

    def negate(self, part: Flags) -> Flags:
        return ~part


def index_helps(where: Filter) -> bool:
    """Return whether a filter has a condition that the index can evaluate, and for which stores have no column.

    False if the filter is restricted to certain ids.
    """
    match where:
        case AllOf():
            named = any(isinstance(part, Is) and part.name == "id" for part in where.parts)
            return not named and any(map(index_helps, where.parts))
        case AnyOf():
            return any(map(index_helps, where.parts))
        case Not():
            return index_helps(where.part)
        case Has():
            return where.name in FIELDS_WITHOUT_COLUMN
    return isinstance(where, (Links, Meta, Tag, Under, ValidAt))


def selective(where: Filter) -> bool:
    """Return whether stores can use an index of their own for a filter, so that ours need not be loaded."""
    if isinstance(where, AllOf):
        return any(map(selective, where.parts))
    return isinstance(where, Is) and where.name in _SELECTIVE_FIELDS


def leading(limits: Bounds, view: WordView, order: str, count: int) -> Bounds:
    """Narrow exact bounds to the first `count` live documents in one of `operations.ORDERS`.

    Bounds are returned unchanged if they are not exact, if they have too many ties, or if the store finds the first
    records in this order without reading many others.

    Cost:
        O(documents), and O(n log n) for the n documents that tie with the last one.
    """
    columns = _COLUMNS_OF.get(order)
    if columns is None or limits.upper is None or not limits.exact:
        return limits
    table, numbers = view.table, np.flatnonzero(live(limits, view))
    if len(numbers) <= count or (order in ("newest", "oldest") and len(numbers) > table.count // _SCAN):
        return limits
    if order == "last" and (table.conversation[numbers] != table.conversation[numbers[0]]).any():
        return limits  # the names of conversations come first, which are no numbers
    out: Flags = np.zeros(table.count, dtype=np.bool_)
    for name in columns:
        column = getattr(table, name)[numbers]
        ascending = column if order == "oldest" else -column if name == "importance" else ~column
        edge = np.partition(ascending, count - 1)[count - 1]
        first = ascending < edge
        out[numbers[first]] = True
        count -= int(np.count_nonzero(first))
        numbers = numbers[ascending == edge]
    if len(numbers) > max(count, _MAX_TIES):
        return limits
    ties = sorted(numbers.tolist(), key=lambda number: view.table.id(number).encode("utf-8"))
    out[ties[:count]] = True
    return _exactly(out)


def exact_count(limits: Bounds, view: WordView) -> int | None:
    """Return how many live documents a filter matches; None if its bounds are not exact.

    Cost:
        O(documents).
    """
    return int(np.count_nonzero(live(limits, view))) if limits.exact and limits.upper is not None else None


def as_ids(where: Filter, limits: Bounds, view: WordView) -> Filter:
    """Return a filter that matches the same live records and lists the candidate ids; unchanged if there are too many.

    Cost:
        O(documents) bytes.
    """
    if limits.upper is None:
        return where
    numbers = np.flatnonzero(live(limits, view))
    if not len(numbers):
        return Nothing()
    if len(numbers) > MAX_IDS:
        return where
    # The filter itself becomes a Custom condition, so that stores search by the ids only.
    return AllOf.of(Is("id", tuple(map(view.table.id, numbers.tolist()))), Custom(where.matches))


def live(limits: Bounds, view: WordView) -> Flags:
    """Return the live documents that a filter may match."""
    alive = view.table.alive[: view.table.count]
    return alive if limits.upper is None else limits.upper & alive


def in_parts(where: Filter, limits: Bounds, view: WordView) -> list[Filter]:
    """Return filters that together match the same live records, each of few candidate ids; `where` if there are many.

    Cost:
        O(documents) bytes.
    """
    if limits.upper is not None:
        numbers = np.flatnonzero(live(limits, view)).tolist()
        if MAX_IDS < len(numbers) < view.table.count // _SCAN:
            ids = list(map(view.table.id, numbers))
            custom = Custom(where.matches)
            parts = (tuple(ids[start : start + MAX_IDS]) for start in range(0, len(ids), MAX_IDS))
            return [AllOf.of(Is("id", part), custom) for part in parts]
    return [as_ids(where, limits, view)]


def _exactly(flags: Flags) -> Bounds:
    return Bounds(flags, flags)


def _exact_flags(where: Filter, view: WordView) -> Flags | None:
    """Return exactly the documents that match a condition; None if the index cannot evaluate it."""
    table = view.table
    match where:
        case Is("id"):
            return table.mask(where.values)
        case Is("session"):
            return view.having(map(session_term, where.values))
        case Is("speaker") if not any(value.startswith("\0") for value in where.values):
            # A speaker beginning with \0 stands for a role: the record has no speaker.
            numbers = [table.speakers.number.get(value, NONE) for value in where.values]
            return np.isin(table.speaker[: table.count], [number for number in numbers if number != NONE])
        case Is() if where.name in FIELDS:
            return table.having(where.name, where.values)
        case Has("pinned"):
            return view.having([PINNED_TERM])
        case Has("searchable"):
            return ~view.having([UNSEARCHED_TERM])
        case Has("importance"):
            return np.greater_equal(table.importance[: table.count], 0.0)  # records without one have -1
        case Has("time"):
            return np.not_equal(table.micros[: table.count], NO_TIME)
        case Has() if where.name in FIELDS:
            return table.present(where.name)
        case Has("valid_from"):
            return np.not_equal(table.valid_from[: table.count], NO_TIME)
        case Has("valid_to"):
            return np.not_equal(table.valid_to[: table.count], NEVER)
        case Has() if where.name in LINK_FIELDS:
            return view.having([links_term(where.name)])
        case Links():
            return view.having([link_term(where.name, each) for each in where.ids])
        case ValidAt():
            time = microseconds(where.time)
            return (table.valid_from[: table.count] <= time) & (table.valid_to[: table.count] > time)
        case Tag():
            return view.having([tag_term(where.tag)])
        case Originates():
            return _of_origins(where.origins, view)
        case Meta():
            return view.having([key_term(where.path[0])])  # whether it has the key; values: `_by_value`
        case ImportanceAtLeast():
            out: Flags = table.importance[: table.count] >= max(where.least, 0.0)  # records without one have -1
            return out
        case Time():
            return _in_time(where, table)
    return None


def _of_origins(origins: Collection[str], view: WordView) -> Flags:
    """Return the documents of some classes of origin. The commonest has no term: the others are taken away."""
    terms = [origin_term(each) for each in origins]
    if None not in terms:
        return view.having([term for term in terms if term is not None])
    others = [origin_term(each) for each in ORIGINS if each not in origins]
    return ~view.having([term for term in others if term is not None])


def _terms_of(where: Meta) -> list[str]:
    """Return terms of which every record that meets a condition on its metadata has at least one."""
    key, values = where.path[0], where.value if where.test == "one_of" else [where.value]
    if where.test in ("equals", "one_of") and len(where.path) == 1:
        terms = [value_term(key, each) for each in values]
        if all(term is not None for term in terms):
            return [term for term in terms if term is not None]
    return [key_term(key)]


def _in_time(where: Time, table: Table) -> Flags:
    """Return the documents whose time is in an interval."""
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


def searched(view: WordView) -> WordView:
    """Return a view without the records that are not searched (`Record.searchable`)."""
    if not view.in_use(UNSEARCHED_TERM):
        return view
    return view.narrowed(UNSEARCHED_TERM, lambda: ~view.having([UNSEARCHED_TERM]))


def of_scope(scope: Scope, table: Table) -> Flags:
    """Return exactly the documents of a scope with at least one fixed field. Each such field has a column."""
    return reduce(np.logical_and, [table.having(name, [value]) for name, value in scope.fixed])


# Which records lie below others in a tree: level by level, by the index where it is loaded.


@dataclass(frozen=True, slots=True)
class Below:
    """The trees of a branch, as a scope sees them at a time.

    Attributes:
        view: The view of the store.
        scope: The scope of the caller.
        words: The index at that view; None: records are read.
        now: Records that expire at or before this time do not count.
    """

    view: ReadView
    branch: Branch
    scope: Scope
    words: WordView | None
    now: int

    def __call__(self, ids: tuple[str, ...]) -> Filter:
        """Return the filter that the records below some records match. A cycle of parents ends where it began.

        A parent that was named in a scope is one of that scope.

        Cost:
            With the index, one look-up for each record that is found; without, all records once for each level.
        """
        found: dict[str, None] = {}
        level, strangers = list(ids), False
        while level:
            children, others = self._children(level)
            strangers = strangers or others
            level = [each for each in dict.fromkeys(children) if each not in found]
            found |= dict.fromkeys(level)
        parents = frozenset((*ids, *found))
        named = Links("parent", tuple(sorted({unqualified(each) for each in parents})))
        # Only where records of other scopes name parents with the same ids, as each record must then be looked at.
        return AllOf.of(named, Custom(lambda record: _parent(record.id, record) in parents)) if strangers else named

    def _children(self, ids: list[str]) -> tuple[list[str], bool]:
        """Return the ids of the children of some records, and whether others name parents with the same ids."""
        above, names = set(ids), [unqualified(each) for each in ids]
        if self.words is None:
            where = AllOf.of(self.scope.filter, Links("parent", tuple(dict.fromkeys(names))))
            records = self.view.select(self.branch, where, order="id", now=self.now)
            shown = {
                shown_id: _parent(shown_id, each) for each in records for shown_id in (self.scope.shown_id(each.id),)
            }
            children = [each for each, parent in shown.items() if parent in above]
            return children, len(children) < len(shown)
        words = self.words.at(self.now)
        table = words.table
        seen = table.alive[: table.count]
        for name, value in self.scope.fixed:
            seen = seen & table.having(name, [value])
        of_qualifier: dict[str, list[str]] = {}
        for each in ids:
            of_qualifier.setdefault(qualifier_of(each), []).append(unqualified(each))
        out: list[str] = []
        others = False
        for qualifier, parents in of_qualifier.items():
            flags = words.having([link_term("parent", each) for each in parents]) & seen
            children = [self.scope.shown_id(table.id(number)) for number in np.flatnonzero(flags).tolist()]
            own = [each for each in children if qualifier_of(each) == qualifier]
            others = others or len(own) < len(children)
            out += own
        return sorted(out), others


def _parent(shown_id: str, record: Record) -> str | None:
    return linked_id(shown_id, record.parent)
