"""What the words of a date mean together: the actions of `rules`.

An action gets the context and the words that its rule took, and returns what they become (`grammar`): a time of each
year (YEARLY), a time on the calendar (FIXED), a number of units (COUNTED), days of the week (WEEKRANGE), a time in
hours (MOMENTS), a time before, since or after another (BOUND), or words of dates that name none (NODATE).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import date, timedelta
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from recollect.text.dates import spans
from recollect.text.dates.grammar import Made, PhraseWord
from recollect.text.dates.spans import Span, century, decade_of
from recollect.text.dates.times import Counted, Fixed, Moments, Recurring


class PhraseContext(NamedTuple):
    """The day, the language and the locale by which a phrase is read.

    Attributes:
        today: The day on which it is asked.
        code: The language of the words, one of `lexicon.CODES`.
        flags: What is special about the language.
        numeric: Returns the days that a date in digits may be.
    """

    today: date
    code: str
    flags: frozenset[str]
    numeric: Callable[[str], list[date]]


#: Years in which a date is looked for on a day of the week.
_YEARS = 7
#: Years that together have every day that any year has.
_SOME_YEARS = tuple(range(2000, 2028))
#: The number of days, weeks or months of "the last days".
SOME = 3
#: Of years before 1900, two that are multiples of this may be numbers of something.
_ROUND = 50
Change: TypeAlias = Callable[[Span], Span]
_CATEGORIES = {"day": "OFDAY", "week": "OFWEEK", "month": "OFMONTH", "year": "OFYEAR"}
#: The sets of categories that the actions return.
MADE = [
    *(frozenset(("FIXED", each)) for each in _CATEGORIES.values()),
    *map(frozenset, (("FIXED",), ("YEARLY",), ("YEARLY", "DATE"), ("FIXED", "OFDAY", "NAMEDDAY"))),
    *(frozenset((each,)) for each in ("COUNTED", "WEEKRANGE", "MOMENTS", "BOUND", "NODATE", "ASIDE", "ORD")),
]


def as_fixed(time: Fixed) -> Made:
    return {"FIXED": time} | ({_CATEGORIES[time.unit]: None} if time.unit in _CATEGORIES else {})


def as_yearly(time: Recurring) -> Made:
    return {"YEARLY": time} | ({"DATE": None} if time.day else {})


def value(word: PhraseWord, category: str) -> Any:
    """Return the value of a category, or of the same that follows what it is said of in some languages."""
    return word.of[category] if category in word.of else word.of[f"{category}POST"]


def time_of(context: PhraseContext, word: PhraseWord, by: int | None = None) -> Fixed | None:
    """Return the time on the calendar that a word means by itself; None if there is none."""
    of = word.of
    with suppress(ValueError, OverflowError):
        if "FIXED" in of:
            return of["FIXED"]  # type: ignore[no-any-return]
        if "YEARLY" in of:
            return of["YEARLY"].at(context.today, by)  # type: ignore[no-any-return]
        if "YEAR" in of or "PLAINYEAR" in of:
            year = of["YEAR"] if "YEAR" in of else of["PLAINYEAR"]
            return Fixed(spans.year_of(year), "year", year)
        if "WEEKDAY" in of:
            return Fixed(spans.weekday(context.today, of["WEEKDAY"], -1), "day")
        if "DAY" in of:
            return Fixed(spans.last_day(context.today, of["DAY"]), "day")
    return None


def mapped(
    word: PhraseWord,
    context: PhraseContext,
    change: Change,
    unit: str,
    around: Change | None = None,
) -> Made:
    """Return a part of a time, or what is beside it: of each year, if the time recurs.

    Args:
        word: A time of each year, one on the calendar, or a year by its number.
        change: Returns the part, from the span of the time.
        unit: The unit that the part is.
        around: Returns the days on which people may report it, from the same span.
    """
    if "YEARLY" in word.of:
        time: Recurring = word.of["YEARLY"]
        if not any(_has(change, time, year) for year in _SOME_YEARS):
            return None
        times = Recurring(lambda year: change(time.of(year)), unit, words=True)
        if around is not None:
            times = times._replace(around=lambda year: around(time.of(year)))
        return as_yearly(times)
    fixed = time_of(context, word)
    if fixed is None:
        return None
    reported = around(fixed.span) if around else None
    return as_fixed(Fixed(change(fixed.span), unit, around=reported, words=fixed.words or fixed.year is not None))


def _has(change: Change, time: Recurring, year: int) -> bool:
    """Return whether a year has a part of a time: no month has a sixth Friday, and not every one a fifth."""
    with suppress(ValueError, OverflowError):
        change(time.of(year))
        return True
    return False


def needed(time: Fixed | None) -> Fixed:
    if time is None:
        raise ValueError("no such day")
    return time


# Days and dates


def near(context: PhraseContext, word: PhraseWord) -> Made:
    return as_fixed(Fixed(spans.one(context.today + timedelta(word.of["NEAR"])), "day"))


def weekday_and_date(context: PhraseContext, weekday: PhraseWord, day: PhraseWord) -> Made:
    """Read "Sunday, May 3rd": of the years around, the nearest in which it is that day of the week."""
    time: Recurring = day.of["YEARLY"]
    found = []
    for year in range(max(context.today.year - _YEARS, 1), min(context.today.year + 1, 9999) + 1):
        with suppress(ValueError):
            fixed = time.in_year(year)._replace(year=None, month=None, day=None)
            if fixed.span[0].weekday() == weekday.of["WEEKDAY"]:
                found.append(fixed)
    if not found:
        return as_yearly(time)
    return as_fixed(min(found, key=lambda fixed: abs(fixed.span[0] - context.today)))


def weekday_and_number(context: PhraseContext, weekday: PhraseWord, day: PhraseWord) -> Made:
    """Read "Friday the 13th": the last one."""
    at = context.today
    for _ in range(12 * _YEARS):
        with suppress(ValueError):
            found = at.replace(day=day.of["DAY"])
            if found <= context.today and found.weekday() == weekday.of["WEEKDAY"]:
                made = as_fixed(Fixed(spans.one(found), "day")) or {}
                return {**made, "NAMEDDAY": (weekday.of["WEEKDAY"], day.of["DAY"])}
        at = at.replace(day=1) - timedelta(1)
    return {"NODATE": None}


def holiday_and_date(context: PhraseContext, holiday: PhraseWord, comma: PhraseWord | None, day: PhraseWord) -> Made:
    """Read "Labour Day, 1 May": one day that is named twice. Without a comma, the date says which day is meant."""
    time, named = holiday.of["YEARLY"], day.of["YEARLY"]
    if "DATE" in holiday.of or time.month or not time.words:
        return None
    if comma is not None and not any(_has(partial(_only, day=named.of(year)), time, year) for year in _SOME_YEARS):
        return None
    return as_yearly(named)


def _only(span: Span, day: Span) -> Span:
    """Return a day that a time has.

    Raises:
        ValueError: It does not have it.
    """
    if not span[0] <= day[0] <= span[1]:
        raise ValueError("another day")
    return day


def same_date(context: PhraseContext, day: PhraseWord) -> Made:
    """Read "5月10日前后"."""
    return {key: value for key, value in day.of.items() if key in ("YEARLY", "DATE")}


def same(context: PhraseContext, day: PhraseWord) -> Made:
    return {key: value for key, value in day.of.items() if key in ("FIXED", "OFDAY")}


def numeric(context: PhraseContext, word: PhraseWord) -> Made:
    days = context.numeric(word.of.get("NUMERIC") or word.of["DASHED"])
    if not days:
        return {"NODATE": None}
    first, *others = map(spans.one, days)
    return as_fixed(Fixed(first, "day", also=tuple(others), words=True))


def yearmonth(context: PhraseContext, word: PhraseWord) -> Made:
    year, month = word.of["YEARMONTH"]
    return as_fixed(Fixed(spans.month_of(year, month), "month", year, month))


def day_of_month(context: PhraseContext, day: PhraseWord, month: PhraseWord) -> Made:
    number = day.of["DAY"]
    if number > spans.month_of(2024, month.of["MONTH"])[1].day:
        return {"NODATE": None}
    return as_yearly(Recurring.day_of(month.of["MONTH"], number))


def number_and_month(context: PhraseContext, day: PhraseWord, of: PhraseWord | None, month: PhraseWord) -> Made:
    """Read "3 May", "the third of May"; "the third May meeting" is one of several in some languages."""
    if of is None and "noun_chains" in context.flags and "ORD" in day.of and "SUREDAY" not in day.of:
        return {"NODATE": None}
    return day_of_month(context, day, month)


def things_of_month(context: PhraseContext, number: PhraseWord, month: PhraseWord) -> Made:
    """Read "3 May roses": no day in languages in which nouns follow each other."""
    return {"ASIDE": None} if "noun_chains" in context.flags else None


def day_of_month_in_year(context: PhraseContext, day: PhraseWord, month: PhraseWord, year: PhraseWord) -> Made:
    """Read "3-Mar-2024" and "03-Mar-24"."""
    made = day_of_month(context, day, month)
    if made is None or "YEARLY" not in made:
        return made
    date = PhraseWord(made, 0, 0)
    return in_year(context, date, year) if "YEAR" in year.of else in_short_year(context, date, year)


def in_short_year(context: PhraseContext, date: PhraseWord, year: PhraseWord) -> Made:
    """Read "03 Mar 24"."""
    number = year.of["NUM"]
    return in_year(context, date, PhraseWord({"YEAR": century(int(number))}, 0, 0)) if 10 <= number < 100 else None


def day_and_month(context: PhraseContext, word: PhraseWord) -> Made:
    """Read "3.10."."""
    day, month = word.of["DAYANDMONTH"]
    return day_of_month(context, PhraseWord({"DAY": day}, 0, 0), PhraseWord({"MONTH": month}, 0, 0))


def days_of_month(context: PhraseContext, first: PhraseWord, last: PhraseWord, month: PhraseWord) -> Made:
    one, other, number = first.of["DAY"], last.of["DAY"], month.of["MONTH"]

    def of(year: int) -> Span:
        begin, end = date(year, number, one), date(year, number, other)
        return spans.to(spans.one(begin), spans.one(end))

    return as_yearly(Recurring(of, around=lambda year: spans.month_of(year, number)))


def in_year(context: PhraseContext, time: PhraseWord, year: PhraseWord) -> Made:
    yearly: Recurring = time.of["YEARLY"]
    of = year.of
    number = of["FIXED"].span[0].year if "FIXED" in of else of["YEAR"] if "YEAR" in of else of["SHORTYEAR"]
    try:
        return as_fixed(yearly.in_year(number))
    except (ValueError, OverflowError):  # 29 February 2025
        return {"NODATE": None}


def year_by_number(context: PhraseContext, unit: PhraseWord, year: PhraseWord) -> Made:
    """Read "the year 2024"."""
    if unit.of["UNIT"] != "year":
        return None
    number = year.of["YEAR"] if "YEAR" in year.of else year.of["OLDYEAR"]
    return as_fixed(Fixed(spans.year_of(number), "year", number))


def today_in(context: PhraseContext, time: PhraseWord, day: PhraseWord) -> Made:
    """Read "today last year", "上个月的今天"."""
    at, first = day.of["FIXED"].span[0], time.of["FIXED"].span[0]
    if abs(at - context.today) > timedelta(2):
        return None
    months = 12 * (first.year - at.year) + ("OFMONTH" in time.of and first.month - at.month)
    return as_fixed(Fixed(spans.same_day(at, -months, "month"), "day"))


def this_unit_in_year(context: PhraseContext, year: PhraseWord, unit: PhraseWord) -> Made:
    """Read "this week last year", "a year ago last month"."""
    fixed: Fixed = unit.of["FIXED"]
    for by in (0, -1, 1):
        if fixed.span == spans.unit_around(context.today, fixed.unit, by) and fixed.year is None:
            return as_fixed(Fixed(spans.unit_around(_today_in_year(context, year), fixed.unit, by), fixed.unit))
    return None


def this_time_in(context: PhraseContext, time: PhraseWord) -> Made:
    """Read "this time last year", "on this day last month": the days around that day."""
    fixed = needed(time_of(context, time))
    if fixed.unit == "year":
        day = spans.same_day(context.today, context.today.year - fixed.span[0].year, "year")[0]
    elif fixed.year is not None:
        return None
    else:
        unit = fixed.unit
        by = next((by for by in (-2, -1, 0, 1, 2) if fixed.span == spans.unit_around(context.today, unit, by)), None)
        if by is None:
            return None
        day = spans.same_day(context.today, -by, unit)[0]
        if unit == "week":
            return as_fixed(Fixed(spans.one(day), "day"))
    return as_fixed(Fixed(spans.back(day, 0, "week"), main=spans.one(day)))


def _today_in_year(context: PhraseContext, year: PhraseWord) -> date:
    years = context.today.year - year.of["FIXED"].span[0].year
    return spans.same_day(context.today, years, "year")[0]


def season_of_years(context: PhraseContext, season: PhraseWord, years: PhraseWord) -> Made:
    first, last = years.of.get("YEARS") or (years.of["YEARMONTH"][0], years.of["YEARMONTH"][1])
    if (first + 1 - last) % 100:
        return None
    return in_year(context, season, PhraseWord({"YEAR": first}, 0, 0))


def season_between(context: PhraseContext, season: PhraseWord, first: PhraseWord, last: PhraseWord) -> Made:
    """Read "winter 2023 to 2024"."""
    return season_of_years(context, season, PhraseWord({"YEARS": (first.of["YEAR"], last.of["YEAR"])}, 0, 0))


def years(context: PhraseContext, word: PhraseWord, unit: PhraseWord | None) -> Made:
    """Read "2022/23", "2022-24", "2022-2024" and "2022-2024年"."""
    if unit is not None and unit.of["UNIT"] != "year":
        return None
    first, last = word.of["YEARS"]
    if last < 100:
        last += first - first % 100
    return as_fixed(Fixed(spans.to(spans.year_of(first), spans.year_of(last))))


def decade(context: PhraseContext, word: PhraseWord) -> Made:
    first = word.of["DECADE"]
    return as_fixed(Fixed((date(first, 1, 1), date(first + 9, 12, 31)), "decade"))


def decade_by_number(context: PhraseContext, word: PhraseWord, number: PhraseWord) -> Made:
    """Read "les années 90", "anni '90", "jaren 1990"."""
    of = number.of
    first = of["SHORTYEAR"] if "SHORTYEAR" in of else of["YEAR"] if "YEAR" in of else of["NUM"]
    if first < 100:
        first = decade_of(int(first))
    return decade(context, PhraseWord({"DECADE": first}, 0, 0)) if first % 10 == 0 and first > 1000 else None


# Last, this, next


def which_unit(context: PhraseContext, which: PhraseWord, unit_word: PhraseWord) -> Made:
    """Read "last week"; "the last day", "the next day" and "on that day" are days of something."""
    by, unit = value(which, "WHICH"), unit_word.of["UNIT"]
    if unit == "day":
        return {"NODATE": None}
    if unit == "weekend" and "COMING" in which.of:
        return as_fixed(Fixed(spans.unit_around(context.today + timedelta(1), unit), unit))
    if unit in ("hour", "minute"):
        return {"MOMENTS": Moments("within", Counted(1, unit))} if by == -1 else {"NODATE": None}
    if unit == "weekend" and by == 0 and "past_weekend" in context.flags:
        return as_fixed(Fixed(spans.last_weekend(context.today), unit))
    return as_fixed(Fixed(spans.unit_around(context.today, unit, by), unit))


def which_weekday(context: PhraseContext, which: PhraseWord, weekday: PhraseWord) -> Made:
    if "week_and_day" in context.flags:
        week = spans.unit_around(context.today, "week", value(which, "WHICH"))
        return as_fixed(Fixed(spans.weekday_in(week, weekday.of["WEEKDAY"]), "day"))
    return as_fixed(Fixed(spans.weekday(context.today, weekday.of["WEEKDAY"], value(which, "WHICH")), "day"))


def which_yearly(context: PhraseContext, which: PhraseWord, word: PhraseWord) -> Made:
    by = value(which, "WHICH")
    time: Recurring = word.of["YEARLY"]
    if abs(by) <= 1:
        return as_fixed(time.at(context.today, by))
    step = by // abs(by)

    def of() -> Fixed:
        nearest: Fixed = time.at(context.today, step)
        return time.in_year(nearest.span[0].year + by - step)._replace(month=None, year=None)

    return as_fixed(of())


def year_by_word(context: PhraseContext, word: PhraseWord) -> Made:
    """Read "おととし"."""
    return as_fixed(Fixed(spans.unit_around(context.today, "year", word.of["NEARYEAR"]), "year"))


def week_later(context: PhraseContext, day: PhraseWord) -> Made:
    """Read "Friday week" and "today week"."""
    if "WEEKDAY" in day.of:
        return as_fixed(Fixed(spans.weekday(context.today, day.of["WEEKDAY"], 2), "day"))
    return as_fixed(Fixed(spans.one(day.of["FIXED"].span[0] + timedelta(7)), "day"))


# Words by themselves


def on_weekend(context: PhraseContext, unit: PhraseWord) -> Made:
    return as_fixed(Fixed(spans.last_weekend(context.today), "weekend")) if unit.of["UNIT"] == "weekend" else None


def bare_weekend(context: PhraseContext, unit: PhraseWord) -> Made:
    return on_weekend(context, unit) if "bare_weekend" in context.flags else None


def iso_week(context: PhraseContext, number: PhraseWord) -> Made:
    """Read "week 32": by ISO 8601."""

    def of(year: int) -> Span:
        monday = date.fromisocalendar(year, int(number.of["NUM"]), 1)
        return monday, monday + timedelta(6)

    return as_yearly(Recurring(of, "week")) if 1 <= number.of["NUM"] <= 53 else None


def iso_weeks(context: PhraseContext, first: PhraseWord, last: PhraseWord) -> Made:
    """Read "weeks 3 to 5"."""
    ends = [iso_week(context, number) for number in (first, last)]
    if not all(ends) or first.of["NUM"] >= last.of["NUM"]:
        return {"NODATE": None}
    one, other = (end["YEARLY"] for end in ends if end)
    return as_yearly(Recurring(lambda year: spans.to(one.of(year), other.of(year))))


def in_old_year(context: PhraseContext, year: PhraseWord) -> Made:
    """Read "in 1848"."""
    number = year.of["OLDYEAR"]
    return as_fixed(Fixed(spans.year_of(number), "year", number))


def between_old_years(context: PhraseContext, first: PhraseWord, last: PhraseWord) -> Made:
    """Read "between 1850 and 1860"; from 1500 to 1800, anything may be."""
    one, other = first.of["NUM"], last.of["NUM"]
    if one > other or not (one % _ROUND or other % _ROUND):
        return None
    return as_fixed(Fixed(spans.to(spans.year_of(one), spans.year_of(other)), words=True))


def aside(context: PhraseContext, *_: PhraseWord) -> Made:
    """Read "2000 euros", "Mr. May": no date, nor a part of one beside it."""
    return {"ASIDE": None}


def week_of_year(context: PhraseContext, word: PhraseWord) -> Made:
    """Read "KW 1/2025", "2025-W33" and "2025-W33-2"."""
    year, number, day = word.of["ISOWEEK"] if "ISOWEEK" in word.of else (*word.of["YEARMONTH"], None)
    try:
        monday = date.fromisocalendar(year, number, 1)
    except ValueError:
        return {"NODATE": None}
    if day is not None:
        return as_fixed(Fixed(spans.one(monday + timedelta(day - 1)), "day", words=True))
    return as_fixed(Fixed((monday, monday + timedelta(6)), "week", words=True))


def none(context: PhraseContext, *_: PhraseWord) -> Made:
    return {"NODATE": None}


def of_something(context: PhraseContext, *_: PhraseWord) -> Made:
    """Read "the last week of the trip": no date."""
    return {"NODATE": None} if "prepositions" in context.flags else None


def several_of_something(context: PhraseContext, *_: PhraseWord) -> Made:
    """Read "the last three days of the trip": no date. In "in den letzten drei Tagen der Zug", it may be a subject."""
    return None if "nouns" in context.flags else of_something(context)


def on_weekday(context: PhraseContext, weekday: PhraseWord) -> Made:
    return as_fixed(Fixed(spans.weekday(context.today, weekday.of["WEEKDAY"], -1), "day"))


def on_day(context: PhraseContext, day: PhraseWord) -> Made:
    return as_fixed(Fixed(spans.last_day(context.today, day.of["DAY"]), "day"))
