"""Similarity of records to a text, by the cosine of their vectors.

Cosines are integers (`indexes.scoring.dense`) and are rounded to thousandths, since the vectors that they are computed
from have about four digits. So a minimum similarity is inclusive, and the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from recollect.engine.index.vectors import QuestionVector
from recollect.engine.read.filter_bounds import bounds, live, of_scope, searched
from recollect.engine.read.record_loader import Records
from recollect.engine.results import Similar, SimilarRecord
from recollect.engine.scope import Scope
from recollect.filters.tree import AllOf, Filter
from recollect.indexes.documents.columns import Flags, Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.scoring.dense import COSINE_BITS
from recollect.indexes.scoring.ranking import ranked
from recollect.indexes.words.index import WordView
from recollect.ledger.commits import Branch
from recollect.operations import FindSimilar
from recollect.records.record import Record
from recollect.stores.base import ReadView

#: Similarities have three digits.
_UNIT = 1000
_PAGE = 1000


class Candidates:
    """The records that a filter and a scope admit, by document number.

    Args:
        where: The filter, for records as they are stored.
        view: The view of the store.
        words: The index at that view.
        scope: The scope of the caller.
        now: Records that expire at or before this time are ignored, in microseconds since 1970.
    """

    def __init__(self, where: Filter, view: ReadView, branch: Branch, words: WordView, scope: Scope, now: int) -> None:
        words = searched(words.at(now))
        if scope.fixed:
            every = words.table
            words = words.narrowed(scope, lambda: of_scope(scope, every))
        self.table: Table = words.table
        self._where = AllOf.of(scope.filter, where)
        self._records = Records(view, branch, self.table)
        self._upper: Flags = live(bounds(where, words), words)

    def without_vector(self, rows: Flags) -> Iterator[Record]:
        """Yield those whose text has no vector.

        Args:
            rows: Whether each document has one.
        """
        numbers = np.flatnonzero(self._upper & ~rows)
        texts = np.array([number for number in numbers.tolist() if self.table.rows.text(number)], dtype=np.int64)
        order = ((index, 0) for index in range(len(texts)))
        for _, _, record in self._records.of(texts, order, _PAGE):
            if self._where.matches(record):
                yield record

    def nearest(self, cosines: Ints, minimum: float, k: int) -> Iterator[SimilarRecord]:
        """Yield the best, in their stored form: by cosine, then newest first, then by id.

        Args:
            cosines: The cosine of each document, with COSINE_BITS of fraction.
            minimum: The least similarity.
            k: Maximum number of records.
        """
        rounded = cosines * _UNIT + (1 << COSINE_BITS - 1) >> COSINE_BITS
        numbers = np.flatnonzero(self._upper & (rounded >= math.ceil(minimum * _UNIT - 1e-6)))
        totals = cosines[numbers] + (1 << COSINE_BITS)  # above 0, as ranking requires
        if not len(numbers):
            return

        def best(count: int) -> tuple[Ints, Ints]:
            # In the order of ranking, ties by time and id are decided among all that tie with the last.
            least = np.partition(totals, len(totals) - count)[len(totals) - count]
            indexes = np.flatnonzero(totals >= least)
            return indexes, totals[indexes]

        for index, _, record in self._records.of(numbers, ranked(best, numbers, self.table, k), k):
            if self._where.matches(record):
                yield SimilarRecord(record, int(rounded[numbers[index]]) / _UNIT)
                k -= 1
                if not k:
                    return


def by_cosine(
    operation: FindSimilar, candidates: Candidates, branch: Branch, scope: Scope, vector: QuestionVector
) -> tuple[Similar | None, str]:
    """Return what is most similar to a text, and a note; None and the reason if there are no vectors.

    Cost:
        O(vectors x dimension).
    """
    cosines, note = vector.cosines(branch, candidates.table)
    if cosines is None:
        return None, note
    found = candidates.nearest(cosines, operation.minimum, operation.k)
    shown = tuple(SimilarRecord(scope.shown(each.record), each.similarity) for each in found)
    return Similar("cosine", shown, (note,) if note else ()), note
