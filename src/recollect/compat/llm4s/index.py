"""The vectors of a memory's records, in memory, ordered by their similarity to a query.

The index is built from the records at the first search and then follows the log, so it sees what other threads and
processes write. It only decides which records are read, in which order: scores are computed from the records that were
read, with sums that are correctly rounded. So an answer depends neither on the machine nor on the age of the index.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence, Set
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import recollect
from recollect import Record
from recollect import filters as f
from recollect.compat.llm4s.vectors import Floats, VectorLike, floats_of

#: Number of records that are read at a time.
PAGE = 200
#: Number of commits that are read at a time.
_COMMITS = 256


class Ranking(NamedTuple):
    """Records in the order of their similarity.

    Attributes:
        ids: The ids of the records, by row.
        order: The rows, the most similar first.
        cosines: The approximate cosine of each row, in that order.
    """

    ids: list[str]
    order: NDArray[np.intp]
    cosines: Floats

    def page(self, start: int, size: int) -> list[str]:
        """Return the ids of some records of the order."""
        return [self.ids[row] for row in self.order[start : start + size].tolist()]

    def among(self, admitted: Set[str], start: int) -> Ranking:
        """Return the records of the order that are in a set, from an index on."""
        rows = self.order[start:]
        kept = np.fromiter((self.ids[row] in admitted for row in rows.tolist()), dtype=np.bool_, count=len(rows))
        return Ranking(self.ids, rows[kept], self.cosines[start:][kept])


def margin(dimension: int) -> float:
    """Return four times the greatest error of an approximate cosine of two vectors with `dimension` components."""
    return (dimension + 8) * 2.0**-22


class _Rows:
    """The vectors of one size, scaled to length 1; those of length 0 remain zero."""

    def __init__(self, dimension: int) -> None:
        self.ids: list[str] = []
        self._matrix: Floats = np.zeros((16, dimension), dtype=np.float32)
        self._row_of: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._row_of)

    def put(self, record_id: str, vector: Floats) -> None:
        row = self._row_of[record_id] = len(self.ids)
        self.ids.append(record_id)
        if row == len(self._matrix):
            self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
        self._matrix[row] = _unit(vector)

    def drop(self, record_id: str) -> None:
        row, last = self._row_of.pop(record_id), self.ids.pop()
        if last != record_id:  # the last row takes its place
            self.ids[row], self._row_of[last] = last, row
            self._matrix[row] = self._matrix[len(self.ids)]

    def cosines(self, query: VectorLike) -> Floats:
        """Return the approximate cosine of each row with a query."""
        out: Floats = self._matrix[: len(self.ids)] @ _unit(np.asarray(query, dtype=np.float32))
        return out


def _unit(vector: Floats) -> Floats:
    """Return a vector scaled to length 1, or zeros."""
    fine = vector.astype(np.float64)  # in which no square of a float32 overflows, and none is lost
    out: Floats = (fine / (np.sqrt(np.square(fine).sum()) or 1.0)).astype(np.float32)
    return out


class RecordVectors:
    """The finite vectors of the records of a memory, by size. Thread-safe.

    Cost:
        The first use reads all records; later ones read what was written since.
    """

    def __init__(self, memory: recollect.Memory) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._rows: dict[int, _Rows] = {}
        self._size_of: dict[str, int] = {}
        self._cursor: str | int | None = None

    def sizes(self) -> dict[int, int]:
        """Return the number of vectors of each number of components."""
        with self._lock:
            self._catch_up()
            return {size: len(rows) for size, rows in sorted(self._rows.items()) if len(rows)}

    def ranked(self, query: Sequence[float]) -> Ranking:
        """Return the records whose vectors have the size of a query, the most similar first.

        Cost:
            O(vectors x components), and O(n log n) for the n records.
        """
        with self._lock:
            self._catch_up()
            rows = self._rows.get(len(query))
            if rows is None:
                return Ranking([], np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.float32))
            cosines, ids = rows.cosines(query), list(rows.ids)
        order = np.argsort(-cosines, kind="stable")
        return Ranking(ids, order, cosines[order])

    def _catch_up(self) -> None:
        try:
            if self._cursor is None:
                self._cursor = self._start()
            while commits := self._memory.changes(self._cursor, _COMMITS):
                ids = list({change.id: None for commit in commits for change in commit.changes})
                for start in range(0, len(ids), PAGE):
                    self._refresh(ids[start : start + PAGE])
                self._cursor = commits[-1].cursor
        except BaseException:  # half of an update may have been made
            self._cursor = None
            raise

    def _start(self) -> str | int:
        """Read all records, and return the cursor from which the log must be followed."""
        self._rows, self._size_of = {}, {}
        newest = self._memory.changes(limit=1, newest_first=True)
        with self._memory.open_export(parts=["records"]) as export:
            for record in export.records:
                self._put(record)
        return newest[0].cursor if newest else 0

    def _refresh(self, ids: Sequence[str]) -> None:
        """Read some records again."""
        found = {record.id: record for record in self._memory.find(f.id(*ids))}
        for each in ids:
            size = self._size_of.pop(each, None)
            if size is not None:
                self._rows[size].drop(each)
            if each in found:
                self._put(found[each])

    def _put(self, record: Record) -> None:
        vector = floats_of(record)
        if vector is not None and np.isfinite(vector).all():
            self._rows.setdefault(len(vector), _Rows(len(vector))).put(record.id, vector)
            self._size_of[record.id] = len(vector)
