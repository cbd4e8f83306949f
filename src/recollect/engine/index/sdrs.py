"""The sparse codes of the texts of a namespace, derived from their records like every other index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from recollect.engine.follower import RecordFollower
from recollect.engine.scope import Scope
from recollect.engine.sdr_results import FoundSdr
from recollect.indexes.sdr.texts import SdrTexts
from recollect.ledger.commits import Branch
from recollect.operations.sdrs import RecallSdrs
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.records.sdrs import is_sdr, number_of
from recollect.stores.base import ReadView

#: Limit on the memory of all sparse codes together, in bytes.
_MOST_BYTES = 2**29
#: Approximate memory of a text with its record, and of an SDR.
_TEXT_BYTES, _ROW_BYTES = 2500, 1000


class SdrsOf(NamedTuple):
    """What decides which texts an index has.

    Attributes:
        branch: The branch of the texts.
        scope: The scope of the caller.
    """

    branch: Branch
    scope: Scope


class StoredSdrs:
    """The texts of a namespace as a scope sees them. Changed in place: a caller locks it.

    Args:
        key: What decides which texts these are.
        records: Records, of which the texts are taken.
    """

    def __init__(self, key: SdrsOf, records: Iterable[Record]) -> None:
        self._key = key
        self._numbers: dict[str, int] = {}  # by stored id
        self._records: dict[int, Record] = {}
        self._expiries: dict[str, int] = {}
        for record in records:
            self._note(record)
        self._texts = SdrTexts({number: record.text for number, record in self._records.items()})

    def put(self, record: Record) -> None:
        """Insert the text of a record, or replace it."""
        self.remove(record.id)
        if (number := self._note(record)) is not None:
            self._texts.put(number, record.text)

    def remove(self, record_id: str) -> None:
        """Remove the text of a record, if it is there."""
        self._expiries.pop(record_id, None)
        number = self._numbers.pop(record_id, None)
        if number is not None:
            del self._records[number]
            self._texts.remove(number)

    def at(self, now: int) -> StoredSdrs:
        """Return the texts without those that have expired at a time, in microseconds since 1970."""
        for record_id in [each for each, expiry in self._expiries.items() if expiry <= now]:
            self.remove(record_id)
        return self

    def recall(self, operation: RecallSdrs) -> list[FoundSdr]:
        """Return the texts that are closest to a text."""
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
        return _TEXT_BYTES * len(self._texts) + _ROW_BYTES * self._texts.rows

    def _note(self, record: Record) -> int | None:
        """Note a record, and return its number; None if it has no text, or one that the scope does not show.

        Without a scope, texts of a scope are not shown: their numbers are those of the scope.
        """
        if not is_sdr(record) or not self._key.scope.admits(record):
            return None
        shown = self._key.scope.shown(record)
        number = number_of(shown.id)
        if number is None:
            return None
        if record.expires is not None:
            self._expiries[record.id] = microseconds(record.expires)
        self._numbers[record.id] = number
        self._records[number] = shown
        return number


def sdrs_at(view: ReadView, key: SdrsOf, now: int) -> StoredSdrs:
    """Return the texts, read from all of their records."""
    return StoredSdrs(key, view.select(key.branch, key.scope.filter, order="id", now=now))


def sdrs_follower() -> RecordFollower[SdrsOf, StoredSdrs]:
    """Return the sparse codes of a store, caught up by the log."""
    return RecordFollower(_MOST_BYTES, sdrs_at)
