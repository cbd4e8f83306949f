"""Texts with sparse codes (SDRs) as records: their ids are numbers, and a record of its own counts them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from recollect.errors import InvalidRecordError
from recollect.records.record import Record

#: The kinds of a text, and of the record with the highest number that was given; its id.
SDR, COUNTER, COUNTER_ID = "sdr", "sdr_counter", "last"
#: The metadata key of what is not the caller's.
ABOUT = "@sdr"
#: Numbers are below this.
MAX_NUMBER = 1 << 40


def sdr_fields(metadata: Mapping[str, Any], created: datetime | None, updated: datetime | None) -> dict[str, Any]:
    """Return the fields of a text's record, except for its id and content.

    Args:
        metadata: The caller's.
        created: When it was stored; None: now.
        updated: When it was changed; None: never.

    Raises:
        InvalidRecordError: The metadata has the key that is not the caller's.
    """
    if ABOUT in metadata:
        raise InvalidRecordError("metadata", ABOUT, "is not a key of yours")
    about = {} if updated is None else {ABOUT: {"updated": updated.timestamp()}}
    fields: dict[str, Any] = {"kind": SDR, "metadata": {**metadata, **about}}
    return fields if created is None else {**fields, "time": created}


def number_of(record_id: str) -> int | None:
    """Return the number of an id; None if it is not that of a text.

    >>> number_of("12"), number_of("012"), number_of("last")
    (12, None, None)
    """
    if not (record_id.isascii() and record_id.isdecimal()) or record_id.startswith("0") or len(record_id) > 13:
        return None
    number = int(record_id)
    return number if number < MAX_NUMBER else None


def is_sdr(record: Record) -> bool:
    """Return whether a record is a text with a sparse code."""
    return record.kind == SDR and isinstance(record.content, str)


def metadata_of(record: Record) -> dict[str, Any]:
    """Return the caller's metadata."""
    return {name: value for name, value in record.metadata.items() if name != ABOUT}


def updated_of(record: Record) -> float | None:
    """Return when a text was changed, or else stored, in seconds since 1970."""
    about = record.metadata.get(ABOUT)
    updated = about.get("updated") if isinstance(about, Mapping) else None
    if isinstance(updated, (int, float)):
        return updated
    return None if record.time is None else record.time.timestamp()
