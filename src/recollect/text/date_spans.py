"""The days that a phrase of time means, on a calendar: the last Monday, two weeks ago, the first week of October.

A phrase that could mean many days means the last of them that began before the reference day or on it, since questions
to a memory are about the past.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable
from datetime import date, timedelta
from typing import TypeAlias

#: The first and last day of a span.
Span: TypeAlias = tuple[date, date]


def one(day: date) -> Span:
    """Return the span of one day."""
    return day, day


def back(today: date, count: int, step: str) -> Span:
    """Return the span `count` steps ago, as people mean it: a day, seven days around a day, a month or a year."""
    if step == "day":
        return one(today - timedelta(count))
    if step in ("week", "fortnight"):
        middle = today - timedelta((7 if step == "week" else 14) * count)
        return middle - timedelta(3), middle + timedelta(3)
    return month(today, -count) if step == "month" else year(today.year - count)


def within(today: date, count: int, step: str) -> Span:
    """Return the span of the last `count` steps."""
    if step == "fortnight":
        count, step = 2 * count, "week"
    if step == "weekend":
        step = "week"
    return back(today, count, step)[0], today


def shifted(today: date, by: int, unit: str) -> Span:
    """Return the week, weekend, month or year that is `by` units after this one."""
    if unit == "day":
        return one(today + timedelta(by))
    monday = today - timedelta(today.weekday()) + timedelta((14 if unit == "fortnight" else 7) * by)
    if unit == "week":
        return monday, monday + timedelta(6)
    if unit == "fortnight":
        return monday, monday + timedelta(13)
    if unit == "weekend":
        return monday + timedelta(5), monday + timedelta(6)
    return month(today, by) if unit == "month" else year(today.year + by)


def weekday(today: date, number: int, by: int) -> Span:
    """Return the last, this or next day of a name: the one before today, the one from today on, the one after today."""
    ahead = (number - today.weekday()) % 7
    return one(today + timedelta(ahead - 7 if by < 0 else ahead or (7 if by else 0)))


def day_of_week(today: date, number: int, by: int) -> Span:
    """Return a day of the week that is `by` weeks after this one."""
    return one(today + timedelta(number - today.weekday() + 7 * by))


def last_weekend(today: date) -> Span:
    """Return the last weekend that began by today."""
    saturday = today - timedelta((today.weekday() - 5) % 7)
    return saturday, saturday + timedelta(1)


def day_of_month(today: date, number: int) -> Span:
    """Return the last day with a number in its month."""
    at = today
    for _ in range(4):  # at most two months in a row lack it
        if number <= calendar.monthrange(at.year, at.month)[1] and at.replace(day=number) <= today:
            return one(at.replace(day=number))
        at = at.replace(day=1) - timedelta(1)
    raise ValueError(f"no month has a day {number}")


def week_of(today: date, ordinal: int, number: int, of: int | None) -> Span:
    """Return a week of a month: seven days from its 1st, 8th, 15th or 22nd, or its last seven (ordinal -1)."""

    def span(at: int) -> Span:
        last = calendar.monthrange(at, number)[1]
        first = last - 6 if ordinal < 0 else 7 * ordinal + 1
        return date(at, number, first), date(at, number, min(first + 6, last))

    return span(of) if of else _last(today, span)


def days_between(today: date, first: tuple[int, int], last: tuple[int, int], of: int | None) -> Span:
    """Return the span from a month and day to another."""

    def span(at: int) -> Span:
        return date(at - (first > last), *first), date(at, *last)

    return span(of) if of else _last(today, span)


def month(today: date, by: int) -> Span:
    """Return the month that is `by` months after this one."""
    at, number = divmod(12 * today.year + today.month - 1 + by, 12)
    return month_of(at, number + 1)


def month_of(at: int, number: int) -> Span:
    """Return a month of a year."""
    return date(at, number, 1), date(at, number, calendar.monthrange(at, number)[1])


def year(at: int) -> Span:
    """Return a year."""
    return date(at, 1, 1), date(at, 12, 31)


def _last(today: date, span: Callable[[int], Span]) -> Span:
    """Return the last of the spans of each year that began by today."""
    for at in (today.year, *range(today.year - 1, today.year - 8, -1)):  # eight years: 29 February is rare
        try:
            found = span(at)
        except ValueError:
            continue
        if found[0] <= today:
            return found
    raise ValueError("no such days")


def last_of(today: date, number: int, day: int | None) -> Span:
    """Return the last month with a number, or the last such day of it."""
    return _last(today, lambda at: one(date(at, number, day)) if day else month_of(at, number))
