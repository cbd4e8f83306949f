"""Days on a calendar: the last Monday, two weeks ago, the first week of a month, the end of a year, ranges.

A span is its first and its last day. A time that recurs (a month, a holiday) is a function from a year to its span; the
one that is meant is the last that began before the reference day or on it, since questions to a memory are about the
past.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable
from datetime import date, timedelta
from typing import TypeAlias

#: The first and the last day.
Span: TypeAlias = tuple[date, date]
#: A time that recurs. It raises ValueError for a year that does not have it.
Yearly: TypeAlias = Callable[[int], Span]
#: A unit of the calendar: day, week, fortnight, weekend, month, season, quarter, half, year or decade.
Unit: TypeAlias = str

_DAY = timedelta(1)
#: Months of the units that consist of them.
_MONTHS = {"month": 1, "season": 3, "quarter": 3, "half": 6, "year": 12, "decade": 120}
#: Two digits from this on are a year of the last century: questions to a memory are about the past.
_PIVOT = 50
#: Decades by two digits up to this are of this century.
_LATE = 20
#: Years in which a time is looked for: 29 February may be eight years away.
_YEARS = 8


def one(day: date) -> Span:
    """Return the span of one day."""
    return day, day


def month_of(year: int, number: int) -> Span:
    """Return a month of a year."""
    return date(year, number, 1), date(year, number, calendar.monthrange(year, number)[1])


def year_of(number: int) -> Span:
    """Return a year."""
    return date(number, 1, 1), date(number, 12, 31)


def century(number: int) -> int:
    """Return the year that two digits mean: from 1950 to 2049."""
    return number + (2000 if number < _PIVOT else 1900)


def decade_of(number: int) -> int:
    """Return the first year of a decade by its two digits: from 1930 to 2020."""
    return number + (1900 if number > _LATE else 2000)


def months_from(day: date, by: int, count: int = 1) -> Span:
    """Return the `count` months of which the first is `by` months after that of a day."""
    first, last = (divmod(12 * day.year + day.month - 1 + each, 12) for each in (by, by + count - 1))
    return date(first[0], first[1] + 1, 1), month_of(last[0], last[1] + 1)[1]


def unit_around(day: date, unit: Unit, by: int = 0) -> Span:
    """Return the unit of the calendar that is `by` units after the one with a day.

    Weeks begin on Monday, winter is from December to February.
    """
    if unit == "day":
        return one(day + by * _DAY)
    if unit in ("week", "fortnight", "weekend"):
        days = 14 if unit == "fortnight" else 7
        monday = day - day.weekday() * _DAY + timedelta(days * by)
        return (monday + 5 * _DAY, monday + 6 * _DAY) if unit == "weekend" else (monday, monday + (days - 1) * _DAY)
    months = _MONTHS[unit]
    at = 12 * day.year + day.month - 1
    begin = (at + (unit == "season")) % months
    return months_from(day, months * by - begin, months)


def back(today: date, count: float, unit: Unit) -> Span:
    """Return the span `count` units ago, as people mean it: a day, seven days around a day, a month or a year."""
    if unit == "day":
        return one(today - timedelta(int(count)))
    if unit in ("week", "fortnight", "weekend"):
        middle = today - timedelta(int((14 if unit == "fortnight" else 7) * count))
        return (middle - 3 * _DAY, middle + 3 * _DAY) if unit != "weekend" else unit_around(today, unit, -int(count))
    if count != int(count) and unit in ("year", "decade"):
        count, unit = count * _MONTHS[unit], "month"
    return unit_around(today, unit, -int(count))


def same_day(today: date, count: float, unit: Unit) -> Span:
    """Return the day that is `count` units before a day: of a month or year the same number, or the last day of it."""
    if unit in ("day", "week", "fortnight", "weekend"):
        return one(today - timedelta(int({"day": 1, "fortnight": 14}.get(unit, 7) * count)))
    first, last = months_from(today, -int(count * _MONTHS[unit]))
    return one(first.replace(day=min(today.day, last.day)))


def within(today: date, count: float, unit: Unit) -> Span:
    """Return the span of the last `count` units until today."""
    if unit == "fortnight":
        count, unit = 2 * count, "week"
    return back(today, count, "week" if unit == "weekend" else unit)[0], today


def weekday(today: date, number: int, by: int) -> Span:
    """Return a day by its name: `by` -1 is the last before today, 0 the one from today on, 1 the next after today.

    Further numbers count weeks from these.
    """
    ahead = (number - today.weekday()) % 7
    if by > 0:
        ahead = (ahead or 7) - 7
    return one(today + timedelta(ahead + 7 * by))


def last_weekend(today: date) -> Span:
    """Return the last weekend that began by today."""
    saturday = today - timedelta((today.weekday() - 5) % 7)
    return saturday, saturday + _DAY


def last_of(today: date, times: Yearly, by: int | None = None) -> Span:
    """Return the last of a time of each year that began by today.

    Args:
        by: -1 is the last that is over, 0 the one of this year, 1 the next that has not begun; None: see above.

    Raises:
        ValueError: There is none within eight years.
    """
    ahead = by is not None and by > 0
    years = range(today.year - 1, today.year + _YEARS) if ahead else range(today.year + 1, today.year - _YEARS, -1)
    for year in (today.year,) if by == 0 else years:
        try:
            first, last = times(year)
        except (ValueError, OverflowError):  # of 29 February, or before the first year
            continue
        if ahead and first <= today:
            continue
        if not ahead and by != 0 and (first > today if by is None else last >= today):
            continue
        return first, last
    raise ValueError("no such days")


def last_day(today: date, number: int) -> Span:
    """Return the last day with a number in its month.

    Raises:
        ValueError: No month has it.
    """
    at = today
    for _ in range(4):  # at most two months in a row lack it
        if number <= calendar.monthrange(at.year, at.month)[1] and at.replace(day=number) <= today:
            return one(at.replace(day=number))
        at = at.replace(day=1) - _DAY
    raise ValueError(f"no month has a day {number}")


def nth(span: Span, ordinal: int, unit: Unit | int) -> Span:
    """Return a day, week, weekend, month, quarter or half of a span by its number; -1 is the last, -2 the one before.

    Weeks are seven days from the first day on, the last week is the last seven days; a weekend counts by its Saturday.

    Args:
        unit: A unit, or a day of the week from 0 (Monday).

    Raises:
        ValueError: The span has no part with this number.
    """
    first, last = span
    if unit == "week":
        begin = first + timedelta(7 * (ordinal - 1)) if ordinal > 0 else last - timedelta(7 * -ordinal - 1)
        end = min(begin + 6 * _DAY, last)
    elif unit == "day" or unit == "weekend" or isinstance(unit, int):
        step = 1 if unit == "day" else 7
        name = 5 if unit == "weekend" else unit
        start, stop = first, last
        if isinstance(name, int):
            start = first + timedelta((name - first.weekday()) % 7)
            stop = last - timedelta((last.weekday() - name) % 7)
        begin = start + timedelta(step * (ordinal - 1)) if ordinal > 0 else stop - timedelta(step * (-ordinal - 1))
        end = begin + _DAY if unit == "weekend" else begin
        if end > last and unit != "weekend":
            raise ValueError("no such day")
    elif unit in _MONTHS:
        count = _MONTHS[unit]
        edge, by = (first, count * (ordinal - 1)) if ordinal > 0 else (last, count * ordinal + 1)
        begin, end = months_from(edge, by, count)
        if end > last:
            raise ValueError("no such part")
    else:
        raise ValueError("no such part")
    if not first <= begin <= last:
        raise ValueError("no such part")
    return begin, end


def day_in(span: Span, number: int) -> Span:
    """Return the day of a month, year or other span with a number in its month: the first such day."""
    first, last = span
    found = first.replace(day=number)
    if found < first:
        found = (first.replace(day=1) + timedelta(32)).replace(day=number)
    if found > last:
        raise ValueError("no such day")
    return one(found)


def weekday_in(span: Span, number: int) -> Span:
    """Return the day of a week by its name."""
    return one(span[0] + timedelta((number - span[0].weekday()) % 7))


def part(span: Span, third: int, unit: str) -> Span:
    """Return the begin (0), the middle (1) or the end (2) of a span.

    Of a month these are ten days each, the last to its end; of a week two, two and three days; else a third of its
    months, or of its days.
    """
    first, last = span
    if unit == "week":
        return first + timedelta((0, 2, 4)[third]), first + timedelta((1, 3, 6)[third])
    months = 12 * (last.year - first.year) + last.month - first.month + 1
    if unit == "month":
        return first + timedelta(10 * third), last if third == 2 else first + timedelta(10 * third + 9)
    if months >= 3 and first.day == 1:
        size = months // 3
        return months_from(first, size * third, size if third < 2 else months - 2 * size)
    days = (last - first).days + 1
    size = max(days // 3, 1)
    begin = first + timedelta(min(size * third, days - 1))
    return begin, last if third == 2 else min(begin + timedelta(size - 1), last)


def half(span: Span, ordinal: int) -> Span:
    """Return the first or second half of a span: of a month 15 days and the rest, else its months or days.

    Raises:
        ValueError: There is no such half.
    """
    first, last = span
    number = ordinal if ordinal > 0 else 3 + ordinal
    if number not in (1, 2):
        raise ValueError("no such half")
    months = 12 * (last.year - first.year) + last.month - first.month + 1
    if months > 1 and first.day == 1:
        middle = months_from(first, months // 2)[0]
    else:
        middle = first + timedelta(15 if months == 1 and first.day == 1 else ((last - first).days + 1) // 2)
    return (first, middle - _DAY) if number == 1 else (middle, last)


def beside(span: Span, unit: Unit | int, by: int) -> Span:
    """Return the day, week, weekend, month or year before a span (`by` below 0) or after it.

    A week is the seven days beside it.

    Args:
        unit: A unit, or a day of the week from 0 (Monday).
    """
    edge = span[0] - _DAY if by < 0 else span[1] + _DAY
    sign = -1 if by < 0 else 1
    count = abs(by)
    if isinstance(unit, int):
        away = (edge.weekday() - unit) % 7 if by < 0 else (unit - edge.weekday()) % 7
        return one(edge + timedelta(sign * (away + 7 * (count - 1))))
    if unit == "day":
        return one(edge + timedelta(sign * (count - 1)))
    if unit in ("week", "fortnight"):
        days = (7 if unit == "week" else 14) * count
        return (edge - timedelta(days - 1), edge) if by < 0 else (edge, edge + timedelta(days - 1))
    if unit == "weekend":
        saturday = beside(span, 5, by)[0]
        return saturday, saturday + _DAY
    return unit_around(span[0] if by < 0 else span[1], unit, by)


def to(first: Span, last: Span) -> Span:
    """Return the span from the begin of one to the end of another.

    Raises:
        ValueError: It ends before it begins.
    """
    if first[0] > last[1]:
        raise ValueError("a range ends before it begins")
    return first[0], last[1]


def range_of(first: Yearly, last: Yearly) -> Yearly:
    """Return the range from one time of the year to another, by the year of its end. It may begin in the one before."""

    def of(year: int) -> Span:
        end = last(year)
        begin = first(year)
        return to(begin if begin[0] <= end[1] else first(year - 1), end)

    return of
