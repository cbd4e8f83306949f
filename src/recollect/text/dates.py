"""Dates named in a question, in a form that can be compared with the day of a record.

A question names a date absolutely ("in May 2023", "on 7 May") or relatively ("yesterday", "two weeks ago"); a reference
day turns a relative one into a span of days. The interface is independent of the language: a function from a question
and a day to the dates that it names. Only English is implemented.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from datetime import date, timedelta
from typing import NamedTuple

from recollect.text.words import letters

_MONTHS = "january february march april may june july august september october november december".split()
_NUMBER = (
    {name: number for number, name in enumerate(_MONTHS, 1)}
    | {name[:3]: number for number, name in enumerate(_MONTHS, 1) if name != "may"}
    | {"sept": 9}
)
_MONTH = re.compile(r"\b(" + "|".join(sorted(_NUMBER, key=len, reverse=True)) + r")\b", re.IGNORECASE)
#: "may" is a month only next to a preposition or a number.
_MAY = re.compile(
    r"(?:\b(?:in|on|of|during|since|until|before|after)|\d(?:st|nd|rd|th)?,?)\s+may\b|\bmay\s+\d", re.IGNORECASE
)
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
_NAMES = "|".join(sorted(_NUMBER, key=len, reverse=True))
#: "7 May", "the 7th of May"; "May 7", "May the 7th".
_MONTH_DAY = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_NAMES})\b|\b({_NAMES})\.? (?:the )?(\d{{1,2}})(?:st|nd|rd|th)?\b",
    re.IGNORECASE,
)
_ISO = re.compile(r"\b((?:19|20)\d\d)-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])\b")

_WEEKDAYS = {
    name: number
    for number, names in enumerate(
        "monday mon|tuesday tue tues|wednesday wed|thursday thu thurs|friday fri|saturday sat|sunday sun".split("|")
    )
    for name in names.split()
}
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
           "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "a couple of": 2, "a few": 3}  # fmt: skip
_NEAR = {"the day before yesterday": -2, "yesterday": -1, "last night": -1, "today": 0, "this morning": 0,
         "this afternoon": 0, "this evening": 0, "tonight": 0, "tomorrow": 1, "the day after tomorrow": 2}  # fmt: skip


def _any_of(names: Iterable[str]) -> str:
    return "|".join(sorted(names, key=len, reverse=True))


_COUNT, _STEP = rf"\d{{1,3}}|{_any_of(_COUNTS)}", "day|week|month|year"
_RELATIVE = re.compile(
    rf"\b(?:(?P<near>{_any_of(_NEAR)})"
    rf"|(?P<which>last|past|previous|this|next)\s+(?P<unit>week|weekend|month|year|{_any_of(_WEEKDAYS)})"
    rf"|(?P<count>{_COUNT})\s+(?P<step>{_STEP})s?\s+ago"
    rf"|(?:in |over |during )?the (?:last|past)\s+(?P<within>{_COUNT})\s+(?P<length>{_STEP})s?)\b",
    re.IGNORECASE,
)
#: A question without any of these words or digits names no date.
_DATE_WORDS = frozenset(
    [*"0123456789", *_NUMBER, *" ".join(_NEAR).split(), "last", "past", "previous", "this", "next", "ago"]
) - {"the", "day"}


class Named(NamedTuple):
    """The dates that a question names.

    Attributes:
        months: Months by number, 1 to 12.
        years: Years.
        days: Days of the year, as (month, day).
        spans: First and last day of each relative or ISO date.
        relative: The phrases of the relative dates.
    """

    months: frozenset[int]
    years: frozenset[int]
    days: frozenset[tuple[int, int]]
    spans: tuple[tuple[date, date], ...] = ()
    relative: tuple[str, ...] = ()


_NOTHING = Named(frozenset(), frozenset(), frozenset())


def named(question: str, reference: date) -> Named:
    """Return the dates named in an English question that is asked on the reference day.

    >>> named("What did we buy on 7 May 2023?", date(2024, 1, 1)).months
    frozenset({5})
    >>> named("Whom did I meet the day before yesterday?", date(2024, 1, 1)).spans
    ((datetime.date(2023, 12, 30), datetime.date(2023, 12, 30)),)
    """
    present = letters(question)
    if present is not None and _DATE_WORDS.isdisjoint(present):  # most questions stop here
        return _NOTHING
    question = " ".join(question.split())
    spans, phrases = [], []
    for found in _RELATIVE.finditer(question):
        try:
            spans.append(_span(found, reference))
        except (ValueError, OverflowError):  # before the first year of the calendar
            continue
        phrases.append(found.group())
    for year, month, day in _ISO.findall(question):
        try:
            exact = date(int(year), int(month), int(day))
        except ValueError:  # 30 February
            continue
        spans.append((exact, exact))
    rest = _ISO.sub(" ", question)
    for phrase in dict.fromkeys(phrases):
        rest = rest.replace(phrase, " ")
    may = _MAY.search(rest) is not None
    numbers = (_NUMBER[found.lower()] for found in _MONTH.findall(rest))
    months = {number for number in numbers if number != 5 or may}
    years = {int(found) for found in _YEAR.findall(rest)}
    days = set()
    for before, name, other, after in _MONTH_DAY.findall(rest):
        month, day = _NUMBER[(name or other).lower()], int(before or after)
        if 1 <= day <= 31 and month in months:
            days.add((month, day))
    return Named(frozenset(months), frozenset(years), frozenset(days), tuple(spans), tuple(phrases))


def _span(found: re.Match[str], today: date) -> tuple[date, date]:
    """Return the first and last day of a relative phrase."""
    parts = {name: value.lower() for name, value in found.groupdict().items() if value}
    if "near" in parts:
        day = today + timedelta(_NEAR[" ".join(parts["near"].split())])
        return day, day
    if "count" in parts:
        return _back(today, _count(parts["count"]), parts["step"])
    if "within" in parts:
        return _back(today, _count(parts["within"]), parts["length"])[0], today
    by = {"this": 0, "next": 1}.get(parts["which"], -1)
    unit = parts["unit"]
    if unit in _WEEKDAYS:
        ahead = (_WEEKDAYS[unit] - today.weekday()) % 7
        day = today + timedelta(ahead - 7 if by < 0 else ahead or (7 if by else 0))
        return day, day
    monday = today - timedelta(today.weekday()) + timedelta(7 * by)
    if unit == "week":
        return monday, monday + timedelta(6)
    if unit == "weekend":
        return monday + timedelta(5), monday + timedelta(6)
    return _month(today, by) if unit == "month" else (date(today.year + by, 1, 1), date(today.year + by, 12, 31))


def _count(text: str) -> int:
    return _COUNTS[" ".join(text.split())] if not text.isdigit() else int(text)


def _back(today: date, count: int, step: str) -> tuple[date, date]:
    """Return the span `count` steps ago, as people mean it: a day, seven days around a day, a month or a year."""
    if step == "day":
        return today - timedelta(count), today - timedelta(count)
    if step == "week":
        middle = today - timedelta(7 * count)
        return middle - timedelta(3), middle + timedelta(3)
    return (
        _month(today, -count) if step == "month" else (date(today.year - count, 1, 1), date(today.year - count, 12, 31))
    )


def _month(today: date, by: int) -> tuple[date, date]:
    year, month = divmod(12 * today.year + today.month - 1 + by, 12)
    return date(year, month + 1, 1), date(year, month + 1, calendar.monthrange(year, month + 1)[1])
