"""Holidays: when a day with a name is in a year, by its date, by a day of the week, or by its distance from Easter.

words/holidays.json has the rules: a date, "easter" or "advent" (the last Sunday before Christmas) with a distance in
days, a day of the week in a month ("4thu11" is the fourth Thursday of November), or a name of movable.json, which has
the holidays that follow the moon. "A to B" is several days; "main" is the most important of them; a day with "!sun" is
the one before if it is a Sunday. Tests compare them with a library of holidays; they are not read from it, because an
answer must not depend on the version of a library.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from recollect.common.regexes import regex
from recollect.text.dates import spans
from recollect.text.dates.spans import Span


def words_file(name: str) -> Mapping[str, Any]:
    """Return the content of a file of the folder words."""
    return json.loads((Path(__file__).parent / "words" / f"{name}.json").read_text("utf-8"))  # type: ignore[no-any-return]


_RULES = words_file("holidays")
#: The days of holidays that follow the moon, as month and day of each year from `_FIRST_YEAR` on.
_MOVABLE = words_file("movable")
_FIRST_YEAR = 1990
_SUNDAY = 6
_WEEKDAYS = "mon tue wed thu fri sat sun".split()
_RULE = regex(
    r"(?:(?P<month>\d\d)-(?P<day>\d\d)|(?P<easter>easter)|(?P<advent>advent)|(?P<moon>[a-z_]{5,})|(?P<ordinal>-?\d)(?P<weekday>[a-z]{3})(?P<of>\d\d))"
    r"(?P<days>[+-]\d+)?(?P<moved>!sun)?"
)


class Holiday(NamedTuple):
    """A holiday: the rules of its first and last day, and of its main day, if it is one of several."""

    first: str
    last: str
    main: str

    def days(self, year: int) -> Span:
        """Return its first and last day. Winter holidays may end in the next year."""
        first, last = _day(self.first, year), _day(self.last, year)
        return first, last if last >= first else _day(self.last, year + 1)

    def main_day(self, year: int) -> Span | None:
        """Return its main day."""
        return spans.one(_day(self.main, year)) if self.main else None


@cache
def holiday(name: str) -> Holiday:
    """Return a holiday of words/holidays.json."""
    first, _, rest = _RULES[name].partition(" to ")
    last, _, main = rest.partition(" main ")
    return Holiday(first, last or first, main)


def easter(year: int) -> date:
    """Return Easter Sunday in the Gregorian calendar.

    Source:
        J. Meeus, Astronomical Algorithms (1991), chapter 8.

    >>> easter(2026)
    datetime.date(2026, 4, 5)
    """
    a, (b, c) = year % 19, divmod(year, 100)
    d, e = divmod(b, 4)
    g = (b - (b + 8) // 25 + 1) // 3
    h = (19 * a + b - d - g + 15) % 30
    i, k = divmod(c, 4)
    m = (32 + 2 * e + 2 * i - h - k) % 7
    n = (a + 11 * h + 22 * m) // 451
    month, day = divmod(h + m - 7 * n + 114, 31)
    return date(year, month, day + 1)


def _day(rule: str, year: int) -> date:
    """Return the day of a rule: "12-24", "easter-2", "4thu11" (the fourth Thursday of November), "ramadan+1"."""
    found = _RULE.fullmatch(rule)
    assert found is not None, rule
    if found["easter"]:
        day = easter(year)
    elif found["advent"]:
        day = spans.beside(spans.one(date(year, 12, 25)), 6, -1)[0]
    elif found["month"]:
        day = date(year, int(found["month"]), int(found["day"]))
    elif found["moon"]:
        day = _movable(found["moon"], year)
    else:
        month = spans.month_of(year, int(found["of"]))
        day = spans.nth(month, int(found["ordinal"]), _WEEKDAYS.index(found["weekday"]))[0]
    day += timedelta(int(found["days"] or 0))
    return day - timedelta(1) if found["moved"] and day.weekday() == _SUNDAY else day


def _movable(name: str, year: int) -> date:
    """Return the day of a holiday of words/movable.json.

    Raises:
        ValueError: It has no such year.
    """
    days = _MOVABLE[name].split()
    if not 0 <= year - _FIRST_YEAR < len(days):
        raise ValueError("no such year")
    return date(year, int(days[year - _FIRST_YEAR][:2]), int(days[year - _FIRST_YEAR][2:]))
