"""Durations as text: a number and a unit, such as "90d"."""

from __future__ import annotations

import re
from datetime import timedelta

from recollect.common.regexes import regex
from recollect.errors import InvalidArgumentError

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_TEXT = regex(r"([0-9]{1,9})([smhdw])", re.ASCII)
#: A hundred years, which is also the longest time to live of a record.
_LONGEST_S = 3_155_760_000


def duration_text(name: str, value: object) -> str:
    """Return a duration as text: that of a timedelta in its greatest unit, and a text as it is.

    >>> duration_text("after", timedelta(days=90)), duration_text("after", "36h")
    ('90d', '36h')

    Raises:
        InvalidArgumentError: It is neither, not positive, longer than 100 years, or a fraction of a second.
    """
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        unit = next((each for each in "dhm" if seconds % _SECONDS[each] == 0), "s")
        text = f"{int(seconds // _SECONDS[unit])}{unit}" if seconds == int(seconds) else ""
    else:
        text = value if isinstance(value, str) else ""
    found = _TEXT.fullmatch(text)
    if found is None or not 0 < int(found[1]) * _SECONDS[found[2]] <= _LONGEST_S:
        rule = "must be a duration such as '90d', in s, m, h, d or w, or a timedelta, of a second to 100 years"
        raise InvalidArgumentError(name, value, rule)
    return text


def duration(text: str) -> timedelta:
    """Return the duration that a text states, which `duration_text` has returned.

    >>> duration("2w")
    datetime.timedelta(days=14)
    """
    return timedelta(seconds=int(text[:-1]) * _SECONDS[text[-1]])
