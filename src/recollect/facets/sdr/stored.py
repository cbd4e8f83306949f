"""The sparse codes of the texts of a namespace, derived from their records like every other index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from recollect.engine.facets import Execution, ExpiringIndex
from recollect.engine.reader import Reader
from recollect.engine.scope import Scope
from recollect.facets.sdr.index.texts import SdrTexts
from recollect.facets.sdr.operations import FoundSdr, RecallSdrs
from recollect.facets.sdr.records import is_sdr, number_of
from recollect.ledger.commits import Branch
from recollect.records.record import Record
from recollect.stores.base import ReadView

#: Approximate memory of a text with its record, and of an SDR.
_TEXT_BYTES, _ROW_BYTES = 2500, 1000


class SdrsOf(NamedTuple):
    """A key that says which texts an index has.

    Attributes:
        branch: The branch of the texts.
        scope: The scope of the caller.
    """

    branch: Branch
    scope: Scope


class StoredSdrs(ExpiringIndex):
    """The texts of a namespace as a scope sees them. Changed in place: a caller locks it.

    Without a scope, texts of a scope are not shown: their numbers are those of the scope.

    Args:
        key: What decides which texts these are.
        records: Records, of which the texts are taken.
    """

    def __init__(self, key: SdrsOf, records: Iterable[Record]) -> None:
        self._key = key
        self._numbers: dict[str, int] = {}  # by stored id
        self._records: dict[int, Record] = {}
        self._texts: SdrTexts | None = None  # built of all first records at once
        super().__init__(records)
        self._texts = SdrTexts({number: record.text for number, record in self._records.items()})

    def recall(self, operation: RecallSdrs) -> list[FoundSdr]:
        """Return the texts that are closest to a text."""
        assert self._texts is not None
        search = self._texts.nearest if operation.rule else self._texts.overlapping
        hits = search(operation.text, operation.limit)
        return [
            FoundSdr(self._records[hit.number], hit.score, hit.rule_score)
            for hit in hits
            if hit.score >= operation.minimum
        ]

    @property
    def nbytes(self) -> int:
        """The approximate memory of the texts, in bytes."""
        assert self._texts is not None
        return _TEXT_BYTES * len(self._texts) + _ROW_BYTES * self._texts.rows

    def _insert(self, record: Record) -> bool:
        if not is_sdr(record) or not self._key.scope.admits(record):
            return False
        shown = self._key.scope.shown(record)
        number = number_of(shown.id)
        if number is None:
            return False
        self._numbers[record.id] = number
        self._records[number] = shown
        if self._texts is not None:
            self._texts.put(number, record.text)
        return True

    def _discard(self, record_id: str) -> None:
        number = self._numbers.pop(record_id, None)
        if number is not None:
            del self._records[number]
            if self._texts is not None:
                self._texts.remove(number)


def _sdrs_at(view: ReadView, key: SdrsOf, now: int) -> StoredSdrs:
    return StoredSdrs(key, view.select(key.branch, key.scope.filter, order="id", now=now))


def _recall(reader: Reader, operation: RecallSdrs) -> list[FoundSdr]:
    reader.intake.limits.check_question(operation.text)
    key = SdrsOf(reader.branch, reader.scope)
    return reader.followed("sparse_codes", key, lambda sdrs, now: sdrs.at(now).recall(operation))


EXECUTION = Execution({RecallSdrs: _recall}, _sdrs_at)
