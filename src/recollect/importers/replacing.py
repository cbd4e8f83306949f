"""Replacement: a document that is imported again takes the place of what it was.

Pieces whose text is the same stay the records that they are; changed ones are updated, new ones stored, and those that
the document no longer has forgotten. Former versions stay in the history. Only records that an import of the same
source made are touched, for the same user, agent and conversation. What was added to them by other means stays: tags,
metadata, importance and other fields that the document does not state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect import filters as f
from recollect.errors import RecollectError, StoreError
from recollect.importers import front_matter
from recollect.importers.base import ImportedDocument, Item
from recollect.operations import SCOPED
from recollect.records.documents import free_ids, is_piece, take_former, with_added
from recollect.records.messages.values import UnreadableError
from recollect.records.record import Record

if TYPE_CHECKING:
    from recollect.engine.results import Outcome
    from recollect.memory import Batch, Memory

#: Maximum number of documents in one commit: their sources are looked up together.
MOST_DOCUMENTS = 400


#: The fields that a document states.
_STATED = ("content", "media_type", "metadata", "tags", "time")


class Replaced(NamedTuple):
    """The result of storing a document.

    Attributes:
        results: The outcome or the error of each item.
        forgotten: How many records were forgotten.
        former: How many records an earlier import had made.
    """

    results: list[Outcome | RecollectError]
    forgotten: int
    former: int

    @property
    def changed(self) -> bool:
        """True if it had been imported before, and is another now."""
        return self.former > 0 and (
            self.forgotten > 0 or any(getattr(each, "status", "unchanged") != "unchanged" for each in self.results)
        )


def replace(memory: Memory, documents: list[ImportedDocument], owner: Mapping[str, Any]) -> list[Replaced]:
    """Store documents in the place of what they were, in one commit.

    Args:
        memory: Where to store them.
        owner: The fields that all of their items have.

    Raises:
        StoreError: The store failed; nothing was changed.
    """
    with memory.batch() as batch:
        former = _pieces(batch, memory, f.source(*(each.source for each in documents)))
        return [_replace(batch, memory, each.items, former.get(each.source, []), owner) for each in documents]


def forget(memory: Memory, sources: Iterable[str], owner: Mapping[str, Any]) -> int:
    """Forget the pieces of some documents of an owner, and return how many.

    Raises:
        StoreError: The store failed. What was committed stays.
    """
    forgotten, left = 0, sorted(sources)
    while left:
        some, left = left[:MOST_DOCUMENTS], left[MOST_DOCUMENTS:]
        with memory.batch() as batch:
            for records in _pieces(batch, memory, f.source(*some)).values():
                forgotten += sum(batch.forget(record.id) for record in records if _owned(record, memory, owner))
    return forgotten


def sources(memory: Memory, owner: Mapping[str, Any]) -> set[str]:
    """Return the sources of the documents of an owner that were imported.

    Cost:
        Reads every record of kind "knowledge".
    """
    found = _pieces(memory, memory, f.everything())
    return {source for source, records in found.items() if any(_owned(record, memory, owner) for record in records)}


def _pieces(reader: Batch | Memory, memory: Memory, where: f.Filter) -> dict[str, list[Record]]:
    """Return the pieces that match a filter, by their sources."""
    out: dict[str, list[Record]] = {}
    for record in reader.find(f.kind("knowledge") & where, order="id"):
        if is_piece(record):
            out.setdefault(record.source or "", []).append(record)
    return out


def _owned(record: Record, memory: Memory, fields: Mapping[str, Any]) -> bool:
    """Return whether a record belongs to the user, agent and conversation that items with these fields get."""
    owners = {**fields, **memory.scope}
    return all(getattr(record, name) == owners.get(name) for name in SCOPED)


def _replace(
    batch: Batch, memory: Memory, items: tuple[Item, ...], former: list[Record], owner: Mapping[str, Any]
) -> Replaced:
    def is_own(record: Record) -> bool:
        return _owned(record, memory, owner)

    pieces = [item.fields for item in items]
    left = {record.id: record for record in former if is_own(record)}
    count = len(left)
    kept = take_former(pieces, left)
    forgotten = sum(batch.forget(record_id) for record_id in left)
    ids = free_ids(pieces, kept, lambda some: batch.find(f.id(*some)), is_own)
    results: list[Outcome | RecollectError] = []
    for fields, record_id, record in zip(pieces, ids, kept, strict=True):
        try:
            results.append(_stored(batch, {**fields, "id": record_id}, record))
        except StoreError:
            raise
        except RecollectError as error:
            results.append(error)
    return Replaced(results, forgotten, count)


def _stored(batch: Batch, fields: Mapping[str, Any], record: Record | None) -> Outcome:
    from recollect.calls.calls import remember_operation
    from recollect.engine.results import Outcome
    from recollect.operations import Update

    if record is None:
        outcome: Outcome = batch.execute(remember_operation({**fields, "standing": False}))
        return outcome
    wanted = with_added(fields, record, _tags_of(record.metadata.get("front_matter")))
    changes: dict[str, Any] = {name: wanted[name] for name in _STATED if name in wanted}
    if record.changed(**changes) == record:
        return Outcome(record, "unchanged")
    updated: Outcome = batch.execute(Update(id=record.id, changes=changes))
    return updated


def _tags_of(values: object) -> list[str]:
    with suppress(UnreadableError):
        return front_matter.tags_of(values) if isinstance(values, Mapping) else []
    return []
