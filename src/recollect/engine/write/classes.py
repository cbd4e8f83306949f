"""The class of origin of what is written, and which records a writer may change.

A record is never above its writer, nor above the least trusted of the records that it derives from: what a page says
stays the word of a page through every summary. Only `Endorse` raises a class. A writer changes no record of a higher
class: what it wants to change is stored as a proposal (`Writer.propose`), which an endorsement makes true.
"""

from __future__ import annotations

from collections.abc import Iterable

from recollect.engine.scope import Place
from recollect.errors import OriginError
from recollect.records.origins import ASSISTANT, OWNER, RANKS, USER, Origin, implied, least
from recollect.records.record import Record

#: The part of a memory that has the records in quarantine.
QUARANTINED = "quarantined"
_SYSTEM_ROLES = ("system", "developer")
_IMPLYING = ("role", "source", "kind")


def class_of(record: Record, writer: Origin, sources: Iterable[Origin] = ()) -> Origin:
    """Return the class of a new record.

    Args:
        record: The record; its `origin` is what the caller states.
        writer: The class of the writer.
        sources: The classes of the records that it derives from.
    """
    said = implied(record.role, record.source, record.kind)
    states_nothing = said == USER if record.role is None else record.role in _SYSTEM_ROLES and said == ASSISTANT
    if writer == OWNER and states_nothing:
        said = OWNER
    stated = (record.origin,) if record.origin in RANKS else ()
    return least((said, writer, *sources, *stated))


def with_class(record: Record, origin: Origin) -> Record:
    """Return a record of a class, which is stored only where it is not what the fields imply."""
    stated = None if origin == implied(record.role, record.source, record.kind) else origin
    return record if record.origin == stated else record.changed(origin=stated)


def check_stated(record: Record, origin: Origin, writer: Origin) -> None:
    """Raise OriginError if a caller states a higher class than the record gets."""
    if record.origin is not None and RANKS.get(record.origin, 0) > RANKS[origin]:
        what = f"a record of the class {record.origin!r}"
        if RANKS[record.origin] > RANKS[writer]:
            raise OriginError(what, writer)
        raise OriginError(what, writer, f"it is from {origin}, also if you store it: endorse it afterwards")


def may_change(record: Record, writer: Origin) -> bool:
    """Return whether a writer may change a record."""
    if RANKS[writer] >= RANKS[USER] and record.origin != OWNER:  # most writers, and most records
        return True
    return RANKS[record.effective_origin] <= RANKS[writer]


def check_kept(place: Place) -> None:
    """Raise OriginError if a writer of a class below the user's would change what is in quarantine."""
    if RANKS[place.origin] < RANKS[USER] and place.branch.reserved_name == QUARANTINED:
        raise OriginError("what a policy keeps apart", place.origin)


def class_after(before: Record, record: Record, writer: Origin, sources: Iterable[Origin] = ()) -> Origin:
    """Return the class of a record after a change, which never raises it.

    Args:
        before: The record as it was.
        record: The record as it is to be.
        writer: The class of the writer.
        sources: The classes of the records that it derives from since the change.
    """
    kept = (before.effective_origin, writer, *sources)
    if any(getattr(before, name) != getattr(record, name) for name in _IMPLYING):
        kept += (implied(record.role, record.source, record.kind),)
    if record.origin != before.origin and record.origin in RANKS:
        kept += (record.origin,)
    return least(kept)
