"""Parsing of the times in sources. Independent of the locale and the clock."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from recollect.errors import printable
from recollect.importers.base import UnreadableError, kind_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: English month names. `strptime("%B")` reads those of the locale.
_MONTHS = "january february march april may june july august september october november december".split()
_NUMBER_OF = {name: number for number, full in enumerate(_MONTHS, 1) for name in (full, full[:3])}
#: The years that are valid in a record.
_YEARS = range(2, 9999)


def local(year: int, month: str, day: int, hour: int, minute: int, zone: tzinfo) -> datetime:
    """Return the time of a clock in `zone`, with the month by its English name. Raises UnreadableError."""
    number = _NUMBER_OF.get(month.lower())
    if number is None:
        raise UnreadableError(f"{printable(month)!r} is not a month")
    try:
        return _within(datetime(year, number, day, hour, minute, tzinfo=zone))
    except ValueError as error:
        raise UnreadableError(str(error)) from None


def instant(value: Any, zone: tzinfo) -> datetime:
    """Parse seconds since 1970 or ISO 8601 text. Raises UnreadableError.

    >>> instant("2026-03-01T09:30:00Z", UTC).isoformat(), instant(0.5, UTC).isoformat()
    ('2026-03-01T09:30:00+00:00', '1970-01-01T00:00:00.500000+00:00')
    """
    if isinstance(value, str):
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            raise UnreadableError(f"the time {printable(value)[:80]!r} is not ISO 8601") from None
        return _within(time if time.utcoffset() is not None else time.replace(tzinfo=zone))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UnreadableError(f"the time is {kind_of(value)}, not seconds since 1970 or ISO 8601 text")
    try:
        if math.isfinite(value):
            return _within(_EPOCH + timedelta(seconds=value))
    except OverflowError:
        pass
    raise UnreadableError("the time is outside the years 2 to 9998")


def _within(value: datetime) -> datetime:
    if value.year not in _YEARS:
        raise UnreadableError("the time is outside the years 2 to 9998")
    return value
