"""A view of a branch as it was after one of its commits, for the reading operations.

It is written on the methods of `View`, so every store has it. Records are read by their versions at that commit. What
looks for records (select, count, tally) reads the word index of the moment: its columns and filter terms narrow the
records, and the filter itself decides. Settings, such as the quota, have no history: they are those of the present.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.engine.index.past import past_versions
from recollect.engine.read.filter_bounds import bounds, exact_count
from recollect.engine.read.record_loader import Records
from recollect.filters.tree import EVERYTHING, Filter
from recollect.indexes.documents.columns import NO_TIME, NONE, Flags, Ints, Numbers
from recollect.indexes.documents.table import Table
from recollect.indexes.words.index import WordView
from recollect.ledger.commits import Branch, Commit, Head, Stored
from recollect.records.record import Record
from recollect.stores.base import View
from recollect.stores.values import SortKey, Tally, in_order, sort_key, tally_of

#: Number of records that are loaded at first if there is no limit.
_PAGE = 1000


class PastView:
    """A `ReadView` of one branch at a moment.

    Args:
        view: A view of the store, which has the moment in its history.
        head: The commit that is the newest one of the moment; `Head()` before the first.
        now: The time of the moment, in microseconds since 1970.
        words: The word index at that commit; only `select`, `count` and `tally` need it.
    """

    def __init__(self, view: View, branch: Branch, head: Head, now: int, words: WordView | None = None) -> None:
        self._view = view
        self._branch = branch
        self._head = head
        self._now = now
        self._words = words

    def branches(self) -> list[Branch]:
        """Return the branches that had a commit at the time of the moment."""
        firsts = [(branch, self._view.head_at(branch, 1)) for branch in self._view.branches()]
        return [branch for branch, first in firsts if first is not None and first.micros <= self._now]

    def head(self, branch: Branch) -> Head:
        return self._head

    def head_at(self, branch: Branch, seq: int) -> Head | None:
        return self._view.head_at(branch, seq) if seq <= self._head.seq else None

    def get(self, branch: Branch, record_id: str) -> Stored | None:
        return self.several(branch, [record_id]).get(record_id)

    def several(self, branch: Branch, record_ids: Sequence[str]) -> dict[str, Stored]:
        versions = self._view.versions_at(self._branch, record_ids, self._head.seq)
        stored = past_versions(self._view, self._branch, versions)
        return {record_id: each for record_id, each in stored.items() if each is not None}

    def known(self, branch: Branch, record_id: str) -> bool:
        return record_id in self._view.versions_at(self._branch, [record_id], self._head.seq)

    def select(
        self,
        branch: Branch,
        where: Filter,
        *,
        order: str = "newest",
        limit: int | None = None,
        after: SortKey | None = None,
        now: int,
    ) -> Iterator[Record]:
        """Yield the records that match, in an order. See `ReadView.select`.

        Cost:
            O(documents) bytes, and the records that may match: with a limit, by time, importance or id, about as many
            as the limit.
        """
        words = self._at(now)
        table, upper = words.table, bounds(where, words).upper
        live = table.alive[: table.count]
        numbers = np.flatnonzero(live if upper is None else live & upper)
        ordered = _ordered(numbers, table, order, after)
        every = ((index, 0) for index in range(len(ordered)))  # there are no scores
        loaded = Records(self, branch, table).of(ordered, every, limit or _PAGE)
        matching = (record for _, _, record in loaded if where.matches(record))
        if order in ("position", "last"):  # by the text of the conversation first, which is no number
            yield from islice(in_order(matching, order, after), limit)
            return
        # The columns decide the order except among ties, which the ids do.
        ties = groupby(matching, key=lambda record: sort_key(record, order)[:-1] or record.id)
        found = (record for _, tied in ties for record in in_order(tied, order, after))
        yield from islice(found, limit)

    def last_commits(self, branch: Branch, record_ids: Sequence[str]) -> dict[str, int]:
        return self._view.last_commits(self._branch, record_ids, self._head.seq)

    def count(self, branch: Branch, where: Filter, *, now: int) -> int:
        words = self._at(now)
        counted = exact_count(bounds(where, words), words)
        return sum(1 for _ in self.select(branch, where, order="position", now=now)) if counted is None else counted

    def tally(self, branch: Branch, where: Filter, *, now: int) -> Tally:
        words = self._at(now)
        limits = bounds(where, words)
        if limits.upper is None or not limits.exact:
            return tally_of(self.select(branch, where, order="position", now=now))
        table = words.table
        numbers = np.flatnonzero(table.alive[: table.count] & limits.upper)
        kinds, counts = np.unique(table.kind[numbers], return_counts=True)
        named = {table.values[kind]: count for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True)}
        times = table.micros[numbers]
        times = times[times != NO_TIME]
        oldest, newest = (int(times.min()), int(times.max())) if len(times) else (None, None)
        return Tally(
            dict(sorted(named.items())),
            _distinct(table.user[numbers]),
            _distinct(table.conversation[numbers]),
            _distinct(table.entity[numbers]),
            oldest,
            newest,
        )

    def payload(self, branch: Branch, version: bytes) -> bytes | None:
        return self._view.payload(branch, version)

    def commits(
        self,
        branch: Branch,
        since: int = 0,
        limit: int | None = None,
        record_id: str | None = None,
        *,
        before: int | None = None,
        newest_first: bool = False,
    ) -> Iterator[Commit]:
        if branch != self._branch:  # a commit to another part, which one of this branch follows
            return self._view.commits(branch, since, limit, record_id, before=before, newest_first=newest_first)
        end = self._head.seq + 1 if before is None else min(before, self._head.seq + 1)
        return self._view.commits(self._branch, since, limit, record_id, before=end, newest_first=newest_first)

    def root_at(self, branch: Branch, seq: int) -> bytes | None:
        return self._view.root_at(self._branch, seq) if seq <= self._head.seq else None

    def setting(self, name: str) -> str | None:
        return self._view.setting(name)

    def setting_names(self, first: str, before: str, limit: int | None = None) -> list[str]:
        return self._view.setting_names(first, before, limit)

    def nbytes(self, branch: Branch) -> int:
        stored = self.select(branch, EVERYTHING, order="position", now=NO_TIME)
        return sum(len(record.to_bytes()) for record in stored)

    def _at(self, now: int) -> WordView:
        assert self._words is not None, "the caller passes the index to an operation that looks for records"
        return self._words.at(now)


def _distinct(values: Numbers) -> int:
    return int(np.count_nonzero(np.unique(values) != NONE))


def _ordered(numbers: Ints, table: Table, order: str, after: SortKey | None) -> Ints:
    """Return documents in an order, except for ties, without most of those that do not follow `after`."""
    if order == "id":
        ids = {number: table.id(number).encode("utf-8") for number in numbers.tolist()}
        first = b"" if after is None else str(after[0]).encode("utf-8")
        return np.array(sorted((each for each in ids if ids[each] > first), key=ids.__getitem__), dtype=np.int64)
    if order in ("position", "last"):
        return numbers
    columns: tuple[NDArray[Any], ...] = (table.importance,) if order == "importance" else (table.position, table.micros)
    keys = tuple(column[numbers] for column in columns)
    ascending = np.lexsort(keys)
    if after is not None:
        ascending = ascending[_reaches(keys, after, descending=order != "oldest")[ascending]]
    return numbers[ascending if order == "oldest" else ascending[::-1]]


def _reaches(keys: tuple[NDArray[Any], ...], after: SortKey, *, descending: bool) -> Flags:
    """Return which documents have at least these values, the last column first; all but the id are compared."""
    reached: Flags = np.ones(len(keys[0]), dtype=np.bool_)
    for column, value in zip(keys, reversed(after[:-1]), strict=True):
        beyond = column < value if descending else column > value
        reached = beyond | (column == value) & reached
    return reached
