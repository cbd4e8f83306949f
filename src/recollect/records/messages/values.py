"""Values from outside: plain JSON from the objects of an SDK, times, and the error for what cannot be read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from recollect.arguments.checks import is_number
from recollect.quoting import printable
from recollect.records.frozen import MAX_DEPTH
from recollect.records.record import LocalTime

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The years that are valid in a record.
_YEARS = range(2, 9999)
_SCALARS = (str, int, float, bool, type(None))


class UnreadableError(ValueError):
    """A value has a form that cannot be read. The message says what is wrong with it."""


def kind_of(value: object) -> str:
    """Return the type of a JSON value, for a message."""
    names: dict[type, str] = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return "missing" if value is None else names.get(type(value), "a number")


def plain(value: Any, depth: int = 0) -> Any:
    """Return a value of a caller as JSON: an object of an SDK becomes a dictionary without its absent fields.

    Raises:
        UnreadableError: It contains a value that has no JSON form.
    """
    kind = type(value)
    if kind is int and value.bit_length() > 63:
        raise UnreadableError("contains a number with more than 64 bits")
    if kind is float and not math.isfinite(value):
        raise UnreadableError("contains a number that is not finite")
    if kind in _SCALARS:
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if depth > MAX_DEPTH:
        raise UnreadableError("is nested too deeply")
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, str):  # a subclass, such as an enumeration of texts, whose `str` would be its name
        return str.__str__(value)
    if isinstance(value, (int, float)):
        return plain(int.__int__(value) if isinstance(value, int) else float.__float__(value))
    if isinstance(value, (bytes, bytearray)):
        return f"omitted: {len(value)} bytes"
    if callable(dump := getattr(value, "model_dump", None)):  # pydantic: the SDKs of OpenAI and Anthropic
        try:
            dumped = dump(mode="json", exclude_none=True)
        except Exception as error:  # noqa: BLE001 - the code of another library
            raise UnreadableError(f"contains a {type(value).__name__} that cannot be converted ({error!r})") from None
        return plain(dumped, depth + 1)
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name), depth + 1) for item in fields(value)}
    raise UnreadableError(f"contains a {type(value).__name__}, which is neither JSON nor a message of an SDK")


def instant(value: Any, zone: tzinfo | None) -> datetime:
    """Parse seconds since 1970 or ISO 8601 text. Raises UnreadableError.

    A text without an offset is in `zone`; None: it gives a naive time, in the time zone of the memory.

    >>> instant("2026-03-01T09:30:00Z", UTC).isoformat(), instant(0.5, UTC).isoformat()
    ('2026-03-01T09:30:00+00:00', '1970-01-01T00:00:00.500000+00:00')
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise UnreadableError(f"the time {printable(value)[:80]!r} is not ISO 8601") from None
    if isinstance(value, datetime):
        return within_years(value if value.utcoffset() is not None else _in_zone(value, zone))
    if not is_number(value):
        raise UnreadableError(f"the time is {kind_of(value)}, not seconds since 1970 or ISO 8601 text")
    try:
        if math.isfinite(value):
            return within_years(_EPOCH + timedelta(seconds=value))
    except OverflowError:
        pass
    raise UnreadableError("the time is outside the years 2 to 9998")


def _in_zone(value: datetime, zone: tzinfo | None) -> datetime:
    if zone is not None:
        return value.replace(tzinfo=zone)
    return LocalTime.combine(value.date(), value.time())


def within_years(value: datetime) -> datetime:
    """Return a time of the years that a record can have. Raises UnreadableError."""
    if value.year not in _YEARS:
        raise UnreadableError("the time is outside the years 2 to 9998")
    return value
