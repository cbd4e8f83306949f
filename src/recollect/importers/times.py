"""Parsing of the times that people write in sources. Independent of the locale and the clock."""

from __future__ import annotations

from datetime import datetime, tzinfo

from recollect.errors import printable
from recollect.messages.values import UnreadableError, within_years

#: English month names. `strptime("%B")` reads those of the locale.
_MONTHS = "january february march april may june july august september october november december".split()
_NUMBER_OF = {name: number for number, full in enumerate(_MONTHS, 1) for name in (full, full[:3])}


def local(year: int, month: str, day: int, hour: int, minute: int, zone: tzinfo) -> datetime:
    """Return the time of a clock in `zone`, with the month by its English name. Raises UnreadableError."""
    number = _NUMBER_OF.get(month.lower())
    if number is None:
        raise UnreadableError(f"{printable(month)!r} is not a month")
    try:
        return within_years(datetime(year, number, day, hour, minute, tzinfo=zone))
    except ValueError as error:
        raise UnreadableError(str(error)) from None
