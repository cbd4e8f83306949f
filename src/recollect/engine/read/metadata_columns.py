"""Values of metadata, and tags, by document, so that the index alone decides conditions on them and lists them.

The values of a key are decoded from the payloads in the index when filters need them: some with each question, or all
at once where all records would be read otherwise. A document is one version of a record, so a value stays valid as long
as the index is in memory, and only new documents are decoded later. A long record has no payload in the index: for its
document the index does not decide.
"""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from sys import getsizeof
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recollect.common.deadlines import check, checked
from recollect.engine.index.caches import METADATA
from recollect.engine.read.record_loader import record_in
from recollect.filters.metadata import ABSENT, TESTS, value_at
from recollect.filters.tree import Meta
from recollect.indexes.documents.columns import Flags, Ints
from recollect.indexes.documents.row_data import Rows
from recollect.indexes.documents.table import Table
from recollect.records.record import Record

#: Maximum number of fields of an index whose values are cached.
_MOST_FIELDS = 16
#: Documents that are decoded between two looks at the deadline.
_PAGE = 1000
#: Up to here every integer is a float.
_EXACT = 2**53
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "above": operator.gt,
    "at_least": operator.ge,
    "below": operator.lt,
    "at_most": operator.le,
}
#: In place of the value of a document whose payload is not in the index, or that is not decoded.
UNKNOWN: Any = object()
_NOT_DECODED: Any = object()
#: A key of metadata and those below it, or the name of a field: "tag", or one of TEXT_FIELDS.
Field: TypeAlias = tuple[str, ...] | str


class _Column:
    """The values of one field.

    Attributes:
        nbytes: The memory of both, in bytes, about.
        values: The value of each document, by its number.
        numbers: The same, where it is a number that a float has exactly; otherwise NaN.
    """

    def __init__(self) -> None:
        self.nbytes = 0
        self.values: NDArray[np.object_] = np.empty(0, dtype=np.object_)
        self.numbers: NDArray[np.float64] = np.empty(0, dtype=np.float64)

    def grow(self, count: int) -> None:
        more = count - len(self.values)
        if more > 0:
            self.values = np.concatenate([self.values, np.full(more + count // 8, _NOT_DECODED, dtype=np.object_)])
            self.numbers = np.concatenate([self.numbers, np.full(more + count // 8, np.nan)])
            self.nbytes += 16 * (more + count // 8)

    def missing(self, documents: Ints) -> Ints:
        """Return those of some documents that are not decoded."""
        found: Ints = documents[np.equal(self.values[documents], _NOT_DECODED).astype(np.bool_)]
        return found

    def put(self, number: int, value: Any) -> None:
        if self.values[number] is _NOT_DECODED:
            self.nbytes += _memory(value)
        self.values[number] = value
        if type(value) is float or (type(value) is int and -_EXACT <= value <= _EXACT):
            self.numbers[number] = value


class MetadataColumns:
    """The columns of an index. Thread-safe."""

    def __init__(self) -> None:
        self._columns: OrderedDict[Field, _Column] = OrderedDict()
        self._lock = threading.Lock()

    def values(
        self, field: Field, table: Table, documents: Ints, most: int | None = None
    ) -> tuple[NDArray[np.object_], NDArray[np.float64]]:
        """Return the values of a field in some documents: ABSENT, UNKNOWN, or what `value_in` returns.

        Args:
            field: A key of metadata and those below it, "tag", or the name of a text field.
            table: The documents of the index.
            documents: The numbers of documents, ascending.
            most: Decode at most this many, the newest first; the others are not known yet. None: any number.

        Returns:
            The values, and those that are a number which a float has exactly; NaN for others.
        """
        with self._lock:
            column = self._columns.setdefault(field, _Column())
            self._columns.move_to_end(field)
            if len(self._columns) > _MOST_FIELDS:
                self._columns.popitem(last=False)
            column.grow(table.count)
            missing = column.missing(documents)
        missing = missing if most is None else missing[-most:] if most else missing[:0]
        for start in range(0, len(missing), _PAGE):
            check()
            page = missing[start : start + _PAGE].tolist()
            decoded = [_decoded(table, number, field) for number in page]  # without the lock: others need not wait
            with self._lock:
                for number, value in zip(page, decoded, strict=True):
                    column.put(number, value)
        with self._lock:
            return column.values[documents], column.numbers[documents]

    @property
    def nbytes(self) -> int:
        """The memory of the columns, in bytes, about."""
        with self._lock:
            return sum(column.nbytes for column in self._columns.values())

    def decide(self, where: Meta, table: Table, documents: Ints, most: int | None) -> tuple[Flags, Flags]:
        """Return which documents meet a condition, and of which that is not known.

        Args:
            where: The condition, with any of the tests of `filters.metadata`.
            table: The documents of the index.
            documents: The numbers of those that may meet it, ascending. All others do not.
            most: As for `values`.

        Returns:
            Two flags for each document of the table.
        """
        values, numbers = self.values(where.path, table, documents, most)
        met: Flags = np.zeros(table.count, dtype=np.bool_)
        unknown: Flags = np.zeros(table.count, dtype=np.bool_)
        met[documents] = _met(where, values, numbers)
        unknown[documents] = (np.equal(values, UNKNOWN) | np.equal(values, _NOT_DECODED)).astype(np.bool_)
        return met, unknown


def _memory(value: Any) -> int:
    """Return about how many bytes a value takes."""
    if isinstance(value, (list, tuple)):
        return getsizeof(value) + sum(map(_memory, value))
    if isinstance(value, Mapping):
        return getsizeof(value) + sum(getsizeof(key) + _memory(each) for key, each in value.items())
    return 0 if value is ABSENT or value is UNKNOWN else getsizeof(value)


def value_in(record: Record, field: Field) -> Any:
    """Return the value of a field of a record; ABSENT if it has none, or an empty one."""
    if isinstance(field, tuple):
        return value_at(record.metadata, field)
    value = record.tags if field == "tag" else getattr(record, field)
    return ABSENT if value is None or value == () else value


def _decoded(table: Table, number: int, field: Field) -> Any:
    payload = table.rows.payload(number)
    record = record_in(payload) if payload else None
    if record is None or record.id != table.id(number):  # long, or the index file was tampered with
        return UNKNOWN
    return value_in(record, field)


def _met(where: Meta, values: NDArray[np.object_], numbers: NDArray[np.float64]) -> Flags:
    """Return which values meet a condition."""
    compare, stated, holds = _COMPARED.get(where.test), where.value, TESTS[where.test].holds
    if compare is not None and (type(stated) is float or (type(stated) is int and -_EXACT <= stated <= _EXACT)):
        out: Flags = compare(numbers, stated)
        rest = np.flatnonzero(np.isnan(numbers))
    else:
        out, rest = np.zeros(len(values), dtype=np.bool_), np.arange(len(values))
    for at in checked(rest.tolist()):
        value = values[at]
        if value is not ABSENT and value is not UNKNOWN and value is not _NOT_DECODED:
            out[at] = holds(value, stated)
    return out


def columns_of(rows: Rows) -> MetadataColumns:
    """Return the columns that belong to the rows of an index."""
    found: MetadataColumns | None = rows.kept.get(METADATA)
    return rows.kept.setdefault(METADATA, MetadataColumns()) if found is None else found
