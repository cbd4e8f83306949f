"""Links: which records of an index name which ids in `derived_from`, as arrays, to follow thousands of them at once.

An id that was chosen in a scope is looked for in the forms in which it may be stored. So a link has several candidates,
and holds if one of them is the other record. What a record names never changes for its row in the index: the arrays are
cached with the rows, and only grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from recollect.common.regexes import regex
from recollect.engine.index.filter_terms import links_term
from recollect.engine.read.record_loader import Records
from recollect.engine.scope import linked_id, scopes_of
from recollect.errors import InvalidRecordError
from recollect.indexes.documents.columns import Flags, Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.words.index import WordView
from recollect.indexes.words.segment import POSITION_BITS
from recollect.records.record import Record

#: An id that was made from the content of a record: no scope can have chosen it.
_MADE = regex("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: The name under which links are cached with the rows of an index.
_CACHE = "derived from"


def stored_ids(record: Record, target: str) -> Iterator[str]:
    """Yield the ids under which a record may be stored that another one names, most likely first."""
    if _MADE.fullmatch(target):
        yield target
        return
    own = linked_id(record.id, target)
    out = [] if own is None else [own]
    for scope in scopes_of(record):
        with suppress(InvalidRecordError):  # it is too long for an id of that scope, or is one of a scope itself
            out.append(scope.qualified(target))
    yield from dict.fromkeys((*out, target))


class LinkTable(NamedTuple):
    """The links of the rows that were read so far. Every id has a number.

    Attributes:
        ids: The ids that derive from others, and that may be named, by number.
        numbers: The number of each id.
        rows: For each candidate of a link, the row of the record that has the link, ascending by link.
        own: The number of that record's id.
        targets: The number of the id that it may name.
        link: The number of the link.
        row_of: For each id, the row in which it was found last; negative if it was not found.
        read: The rows whose links are here.
    """

    ids: list[str]
    numbers: dict[str, int]
    rows: Ints
    own: Ints
    targets: Ints
    link: Ints
    row_of: Ints
    read: Ints

    def with_rows(self, rows: Ints, records: Iterable[tuple[int, Record]]) -> LinkTable:
        """Return the links with those of more rows."""
        ids, numbers = self.ids.copy(), self.numbers.copy()
        more: list[tuple[int, int, int, int]] = []
        link = int(self.link[-1]) + 1 if len(self.link) else 0

        def number_of(record_id: str) -> int:
            number = numbers.setdefault(record_id, len(ids))
            if number == len(ids):
                ids.append(record_id)
            return number

        for row, record in records:
            own = number_of(record.id)
            for target in record.derived_from:
                more += [(row, own, number_of(each), link) for each in stored_ids(record, target)]
                link += 1
        added = np.array(more, dtype=np.int64).reshape(-1, 4).T
        return LinkTable(
            ids=ids,
            numbers=numbers,
            rows=np.concatenate((self.rows, added[0])),
            own=np.concatenate((self.own, added[1])),
            targets=np.concatenate((self.targets, added[2])),
            link=np.concatenate((self.link, added[3])),
            row_of=np.concatenate((self.row_of, np.full(len(ids) - len(self.ids), -1))),
            read=np.union1d(self.read, rows),
        )


_NONE = np.empty(0, dtype=np.int64)
_NO_LINKS = LinkTable([], {}, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE)


def _flags(numbers: Ints, count: int) -> Flags:
    out = np.zeros(count, dtype=bool)
    out[numbers] = True
    return out


class LinkSearch:
    """A search among the links that are open: those of live records in the scope that were not found yet.

    Attributes:
        open: The rows that may still be found.
        links: The links.

    Args:
        words: The index.
        records: Reads its records.
        visible: The rows of live records in the scope.
    """

    def __init__(self, words: WordView, records: Records, visible: Flags) -> None:
        table: Table = words.table
        self.open = visible
        rows = words.occurrences(links_term("derived_from")) >> POSITION_BITS
        links: LinkTable = table.rows.kept.get(_CACHE, _NO_LINKS)
        unread = _flags(rows[rows < table.count], table.count) & visible
        unread[links.read[links.read < table.count]] = False
        missing = np.flatnonzero(unread)
        if len(missing):
            links = links.with_rows(missing, records.all(missing))
        links = self._with_places(links, table)
        self.links = table.rows.kept[_CACHE] = links
        self._table = table
        live = _flags(links.link[links.row_of[links.targets] >= 0], int(links.link[-1]) + 1 if len(links.link) else 0)
        #: The candidates of links to records that are not live.
        self._former = np.flatnonzero(~live[links.link])

    @staticmethod
    def _with_places(links: LinkTable, table: Table) -> LinkTable:
        """Return the links with the rows of all ids, as this state of the table has them."""
        rows = links.row_of
        known = (rows >= 0) & (rows < table.count)
        known[known] = table.alive[rows[known]]
        if known.all():
            return links
        rows = rows.copy()
        for number in np.flatnonzero(~known).tolist():
            rows[number] = table.number(links.ids[number])
        return links._replace(row_of=rows)

    def children(self, ids: Iterable[str]) -> list[str]:
        """Close the open records that name one of some ids, and return their ids."""
        links = self.links
        numbers = [number for each in ids if (number := links.numbers.get(each)) is not None]
        named = _flags(np.array(numbers, dtype=np.int64), len(links.ids))
        found = np.flatnonzero(named[links.targets] & self._is_open(links.rows))
        self.open[links.rows[found]] = False
        return list(map(links.ids.__getitem__, np.flatnonzero(_flags(links.own[found], len(links.ids))).tolist()))

    def to_former(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the open records that name one that is not live: the id, and the candidates of the link."""
        links, some = self.links, self._former
        some = some[self._is_open(links.rows[some])]
        for one in np.split(some, np.flatnonzero(np.diff(links.link[some])) + 1):
            if len(one):
                yield links.ids[links.own[one[0]]], tuple(links.ids[number] for number in links.targets[one].tolist())

    def close(self, ids: Iterable[str]) -> None:
        """Note that records were found otherwise."""
        for each in ids:
            row = self._table.number(each)
            if 0 <= row < len(self.open):
                self.open[row] = False

    def _is_open(self, rows: Ints) -> Flags:
        within = rows < len(self.open)
        out = np.zeros(len(rows), dtype=bool)
        out[within] = self.open[rows[within]]
        return out
