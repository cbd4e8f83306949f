"""Loading the records of hits by document number. Most are stored in the index; long ones are read from the store."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any

from recollect.common.deadlines import check
from recollect.engine.index.caches import RecordCache, cache_of
from recollect.errors import DamagedStoreError
from recollect.filters.tree import TEXT_FIELDS
from recollect.indexes.documents.columns import NONE, Ints
from recollect.indexes.documents.table import Table
from recollect.ledger.commits import Branch
from recollect.records.codec import begins_with_id, may_supersede
from recollect.records.record import Record
from recollect.stores.base import ReadView

_MAX_PAGE = 1000
#: Memory of a record in addition to its payload, and of each of its texts in addition to its characters, in bytes.
_RECORD_BYTES, _TEXT_BYTES = 600, 80
#: Memory per payload byte: the byte itself, and a text whose characters may take four bytes each.
_MEMORY_PER_BYTE = 5
_texts = attrgetter(*TEXT_FIELDS, "media_type", "parent", "language")


class LateRecord:
    """A record that is decoded when it is needed: a program may look at the first hits only.

    It is not cached: the memory of a cache is counted when a call ends.

    Attributes:
        payload: Its canonical bytes.
    """

    __slots__ = ("_record", "payload")

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self._record: Record | None = None

    @property
    def supersedes(self) -> tuple[str, ...]:
        """The ids of the records that it replaces. Most replace none, and need not be decoded to know it."""
        return self.get().supersedes if self._record is not None or may_supersede(self.payload) else ()

    def get(self) -> Record:
        """Return the record.

        Raises:
            DamagedStoreError: It cannot be decoded: the index file was changed together with its digest.
        """
        if self._record is None:
            record = record_in(self.payload)
            if record is None:
                raise DamagedStoreError("the index", "a record in its file cannot be decoded: remove the folder .index")
            self._record = record
        return self._record


class Records:
    """The records of documents. A document stands for one version of a record, so cached records stay valid."""

    def __init__(self, view: ReadView, branch: Branch, table: Table) -> None:
        self._view = view
        self._branch = branch
        self._table = table

    def of(
        self, numbers: Ints, order: Iterator[tuple[int, int]], page_size: int, *, standing: bool = False
    ) -> Iterator[tuple[int, int, Record]]:
        """Yield (index, score, record) for each (index, score) of `order`; `numbers[index]` is the document number.

        Records are loaded in pages, at first of `page_size`, then of growing size. Those with standing tags have a
        cache of their own.
        """
        cache = cache_of(self._table.rows, standing)
        while ranks := list(islice(order, page_size)):
            check()
            records = self._of(numbers[[index for index, _ in ranks]].tolist(), cache)
            for (index, total), record in zip(ranks, records, strict=True):
                yield index, total, record
            page_size = min(page_size * 2, _MAX_PAGE)

    def late(self, numbers: Sequence[int]) -> list[Record | LateRecord]:
        """Return the records of some documents, of which those that are not cached are decoded when they are needed."""
        rows, cache = self._table.rows, cache_of(self._table.rows)
        found: dict[int, Record | LateRecord] = dict(cache.known(numbers))
        missing = [number for number in numbers if number not in found]
        if missing:
            payloads, ids = rows.payloads(missing), rows.ids(missing)
            for number, payload in payloads.items():
                if begins_with_id(payload, ids[number]):
                    found[number] = LateRecord(payload)
            others = [number for number in missing if number not in found]
            found |= zip(others, self._of(others, cache), strict=True)
        return [found[number] for number in numbers]

    def several(self, numbers: list[int], *, standing: bool = False) -> list[Record]:
        """Return the records of some documents, cached as by `of`."""
        return self._of(numbers, cache_of(self._table.rows, standing)) if numbers else []

    def all(self, numbers: Ints) -> Iterator[tuple[int, Record]]:
        """Yield the records of documents, each with its number. They are not cached."""
        for start in range(0, len(numbers), _MAX_PAGE):
            check()
            page = numbers[start : start + _MAX_PAGE].tolist()
            yield from zip(page, self._loaded(page), strict=True)

    def live(self, record_id: str) -> Record | None:
        """Return the live record of a stored id; None if there is none."""
        number = self._table.number(record_id)
        return None if number == NONE else self._of([number], cache_of(self._table.rows))[0]

    def _of(self, numbers: Sequence[int], cache: RecordCache[Record]) -> list[Record]:
        found = cache.known(numbers)
        missing = [number for number in numbers if number not in found]
        if missing:
            loaded = []
            for number, record in zip(missing, self._loaded(missing), strict=True):
                found[number] = record
                loaded.append((number, record, memory_bytes(record)))
            cache.keep(loaded)
        return [found[number] for number in numbers]

    def _loaded(self, numbers: Sequence[int]) -> Iterator[Record]:
        """Yield the records of documents."""
        rows = self._table.rows
        payloads, ids = rows.payloads(numbers), rows.ids(numbers)
        if not all(payloads.values()):
            payloads |= self._stored([number for number, payload in payloads.items() if not payload])
        for number in numbers:
            record = record_in(payloads[number])
            if record is None or record.id != ids[number]:  # the index file was tampered with
                record = self._listed(number)
            yield record

    def _listed(self, number: int) -> Record:
        """Return the record of a document from the store.

        Raises:
            DamagedStoreError: The record is missing, or its payload has another id.
        """
        record = Record.load(self._stored([number])[number])
        if record.id != self._table.id(number):
            detail = f"record {self._table.id(number)!r} has another id in its payload"
            raise DamagedStoreError(f"namespace {self._branch.namespace!r}", detail)
        return record

    def _stored(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """Read payloads from the store.

        Raises:
            DamagedStoreError: A record is missing.
        """
        ids = {number: self._table.id(number) for number in numbers}
        stored = self._view.several(self._branch, list(ids.values()))
        for record_id in ids.values():
            if record_id not in stored:
                raise DamagedStoreError(f"namespace {self._branch.namespace!r}", f"record {record_id!r} is missing")
        return {number: stored[record_id].payload for number, record_id in ids.items()}


def record_in(payload: bytes) -> Record | None:
    """Decode a payload from an index file; None if it is not a record."""
    try:
        return Record.load(payload)
    except (ValueError, AttributeError, TypeError):
        return None


def memory_bytes(record: Record) -> int:
    """Return an upper bound of the memory of a record, in bytes. Fast, as it is called for each cached record."""
    texts = _texts(record)
    fields = len(texts) - texts.count(None)
    listed = len(record.tags) + len(record.supersedes) + len(record.derived_from) + 3 * len(record.unknown)
    nbytes = _RECORD_BYTES + _MEMORY_PER_BYTE * len(record.to_bytes()) + _TEXT_BYTES * (fields + listed)
    return nbytes + _json_bytes(record.metadata) if record.metadata else nbytes


def _json_bytes(value: Any) -> int:
    """Return the memory of a JSON value, in bytes."""
    nbytes = sys.getsizeof(value)
    if isinstance(value, dict):
        return nbytes + sum(map(_json_bytes, value)) + sum(map(_json_bytes, value.values()))
    return nbytes + sum(map(_json_bytes, value)) if isinstance(value, list) else nbytes
