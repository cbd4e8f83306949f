"""The dictionaries of mem0: what a memory, a result of a search and an entry of the history look like."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from recollect import Hit, Record, RecordVersion
from recollect.compat.mem0.filters import FIELDS, OWNERS, value_of
from recollect.compat.searching import own_metadata
from recollect.errors import InvalidArgumentError

#: The metadata that mem0 shows beside the text.
EXPIRATION = "expiration_date"


def memory_of(record: Record, changed: datetime | None) -> dict[str, Any]:
    """Return a record as a memory.

    Args:
        record: The record.
        changed: When it was last changed; None if that is not known.
    """
    created = iso(record.time)
    updated = max(each for each in (created, iso(changed)) if each is not None) if created or changed else None
    metadata = {key: value for key, value in own_metadata(record).items() if key != EXPIRATION}
    shown: dict[str, Any] = {
        "id": record.id,
        "memory": record.text,
        "hash": hashlib.md5(record.text.encode("utf-8"), usedforsecurity=False).hexdigest(),
        "metadata": metadata or None,
        "created_at": created,
        "updated_at": updated,
    }
    stated = {key: value_of(record, key) for key in FIELDS if key != "id"}
    shown |= {key: value for key, value in stated.items() if value is not None}
    if EXPIRATION in record.metadata:
        shown[EXPIRATION] = record.metadata[EXPIRATION]
    return shown


def found_of(hit: Hit, changed: datetime | None, *, explain: bool) -> dict[str, Any]:
    """Return a hit as a result of a search: a memory with its score, and with `explain` the parts of the score."""
    shown = {**memory_of(hit.record, changed), "score": hit.confidence}
    if explain:
        shown["score_details"] = {"score": hit.score, "confidence": hit.confidence, **hit.why.to_json()}
    return shown


def history_of(memory_id: str, versions: Iterable[RecordVersion]) -> list[dict[str, Any]]:
    """Return the versions of a record as the history of a memory, oldest first."""
    entries: list[dict[str, Any]] = []
    last: Record | None = None
    created: str | None = None
    for version in versions:
        if version.record is None and last is None:
            continue
        record = version.record
        event = "ADD" if last is None else "UPDATE" if record is not None else "DELETE"
        at = iso(version.commit.time)
        created = iso(record.time) or at if event == "ADD" and record is not None else created
        known = record or last
        assert known is not None, "one of them is there"
        entries.append(
            {
                "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"recollect:{version.commit.seq}/{memory_id}")),
                "memory_id": memory_id,
                "old_memory": None if last is None else last.text,
                "new_memory": None if record is None else record.text,
                "event": event,
                "created_at": created,
                "updated_at": at,
                "is_deleted": event == "DELETE",
                "actor_id": known.speaker,
                "role": known.role,
            }
        )
        last = record
    return entries


def iso(value: datetime | None) -> str | None:
    """Return a time as mem0 states it: ISO 8601, in UTC."""
    return None if value is None else value.astimezone(UTC).isoformat()


def day_of(value: Any) -> date:
    """Return the day that an `expiration_date` states.

    Raises:
        InvalidArgumentError: It is no date.
    """
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        rule = 'must be a date, such as "2026-12-31", or None'
        raise InvalidArgumentError(EXPIRATION, value, rule) from None


def end_of(day: date) -> datetime | None:
    """Return the end of a day in UTC, when a memory with this `expiration_date` is not true any more.

    None for the last day that there is, 9999-12-31, which says never.
    """
    if day == date.max:
        return None
    return datetime.combine(day + timedelta(days=1), time(), UTC)


def instant_of(name: str, value: Any) -> datetime | str | None:
    """Return a time that is stated as seconds since 1970, ISO 8601 text or a datetime.

    Raises:
        InvalidArgumentError: It is none of these.
    """
    if value is None or isinstance(value, (str, datetime)):
        return value
    if isinstance(value, date):
        return value.isoformat()
    try:
        return datetime.fromtimestamp(float(value), UTC)
    except (OverflowError, OSError, TypeError, ValueError):
        rule = "must be a time: seconds since 1970, ISO 8601 text or a datetime"
        raise InvalidArgumentError(name, value, rule) from None


def without_identity(metadata: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return metadata without the names of ids, which cannot be set through it, and the names that it had."""
    names = {*OWNERS, "actor_id"}
    return {key: value for key, value in metadata.items() if key not in names}, sorted(names & metadata.keys())
