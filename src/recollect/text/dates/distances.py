"""Numbers of units, and the times that are so far from today: the actions of `rules` for them.

"Two or three weeks ago" is all days that it may mean, and so is "a few days ago": one unit more or less. Several units
are one distance ("a year and two months ago"), as exact as the last of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from recollect.text.dates import spans
from recollect.text.dates.grammar import Made, PhraseWord
from recollect.text.dates.meanings import SOME, PhraseContext, as_fixed, needed, value
from recollect.text.dates.spans import Span
from recollect.text.dates.times import Counted, Fixed, Moments

#: Least number that "a few" or "a couple of" may mean.
_FEW = 2
#: Units in their order, from that of which each may follow the ones before it in a distance.
_ORDER = "decade year half quarter season month fortnight week day hour minute".split()
_HOURS = {"minute": 1, "hour": 60, "day": 24 * 60, "week": 7 * 24 * 60}
#: Units that a distance counts in whole: "two weeks ago" means the days around the one two weeks before.
_DAYS = frozenset(("week", "fortnight"))
_NODATE: Made = {"NODATE": None}


def counted(context: PhraseContext, number: PhraseWord, unit: PhraseWord) -> Made:
    """Read "three weeks", and "a few weeks"."""
    count = number.of["NUM"]
    if "ABOUT" not in number.of:
        return {"COUNTED": Counted(count, unit.of["UNIT"])}
    return {"COUNTED": Counted(count, unit.of["UNIT"], max(count - 1, _FEW), count + 1)}


def counted_between(
    context: PhraseContext, first: PhraseWord, sign: PhraseWord, last: PhraseWord, unit: PhraseWord
) -> Made:
    """Read "two or three weeks", "2-3 weeks" and "ein, zwei Wochen"."""
    least, most = first.of["NUM"], last.of["NUM"]
    if least >= most or ("COMMA" in sign.of and least + 1 != most):
        return None
    return {"COUNTED": Counted(most, unit.of["UNIT"], least, most)}


def on_the_clock(context: PhraseContext, first: PhraseWord, last: PhraseWord, unit: PhraseWord) -> Made:
    """Read "de 15 a 17 horas": times of the day, and no distance."""
    return {"ASIDE": None} if unit.of["UNIT"] == "hour" else None


def counted_or_more(context: PhraseContext, first: PhraseWord, unit: PhraseWord, last: PhraseWord) -> Made:
    """Read "a week or two"."""
    least, most = first.of["NUM"], last.of["NUM"]
    return {"COUNTED": Counted(most, unit.of["UNIT"], least, most)} if least < most else None


def counted_of_several(context: PhraseContext, numbers: PhraseWord, unit: PhraseWord) -> Made:
    """Read "两三个月"."""
    least, most = numbers.of["NUMS"]
    return {"COUNTED": Counted(most, unit.of["UNIT"], least, most)}


def half_unit(context: PhraseContext, unit: PhraseWord) -> Made:
    return {"COUNTED": Counted(0.5, unit.of["UNIT"])} if unit.of["UNIT"] not in ("half", "quarter") else None


def and_a_half(context: PhraseContext, counted: PhraseWord) -> Made:
    said: Counted = counted.of["COUNTED"]
    return {"COUNTED": Counted(said.number + 0.5, said.unit)} if said.exact else None


def number_and_a_half(context: PhraseContext, number: PhraseWord, unit: PhraseWord) -> Made:
    return {"COUNTED": Counted(number.of["NUM"] + 0.5, unit.of["UNIT"])}


def same_distance(context: PhraseContext, counted: PhraseWord) -> Made:
    """Read "about two weeks"."""
    return {"COUNTED": counted.of["COUNTED"]}


def together(context: PhraseContext, first: PhraseWord, last: PhraseWord) -> Made:
    """Read "a year and two months"; "two weeks and a year" is no distance."""
    one, other = first.of["COUNTED"], last.of["COUNTED"]
    units = [each.unit for each in (*_parts(one), *_parts(other))]
    if one.least or other.least or not all(unit in _ORDER for unit in units):
        return None
    places = [_ORDER.index(unit) for unit in units]
    return {"COUNTED": one.plus(other)} if places == sorted(set(places)) else None


def _parts(counted: Counted) -> Iterator[Counted]:
    rest: Counted | None = counted
    while rest is not None:
        yield rest
        rest = rest.rest


def in_hours(counted: Counted) -> Counted | None:
    """Return a number of units that has hours or minutes, as one of them; None if it has none, or months."""
    parts = list(_parts(counted))
    units = {part.unit for part in parts}
    if units.isdisjoint(("hour", "minute")) or not units <= _HOURS.keys():
        return None
    unit = "minute" if "minute" in units else "hour"
    total = sum((part.mean * _HOURS[part.unit] for part in parts), 0.0)
    return Counted(total / _HOURS[unit], unit)


def in_days(counted: Counted) -> Counted | None:
    """Return a number of units that are days, weeks, months or years: six months for half a year. None if it is several
    numbers, or of hours."""
    return _in_days(counted) if counted.exact else None


def _in_days(counted: Counted) -> Counted | None:
    count, unit = counted.number, counted.unit
    if unit == "half":
        return Counted(6 * count, "month")
    if unit in ("quarter", "season"):
        return Counted(3 * count, "month")
    if unit == "decade":
        return Counted(10 * count, "year")
    if unit == "month" and count != int(count):
        return Counted(int(30.5 * count), "day")
    if unit == "year" and count != int(count):
        return Counted(12 * count, "month")
    if unit == "week" and count != int(count):
        return Counted(int(7 * count), "day")
    return None if unit in ("hour", "minute") else counted


def away(day: date, counted: Counted, by: int) -> Span:
    """Return the days that are so far before a day (`by` is -1) or after it.

    Raises:
        ValueError: It is a number of hours, or of hours and months.
    """
    *others, last = _parts(counted)
    for part in others:
        days = _needed_days(part)
        day = spans.same_day(day, -by * days.number, days.unit)[0]
    if last.unit == "quarter" and last.number == int(last.number) and not last.least:
        return spans.unit_around(day, last.unit, by * int(last.number))
    ends = [
        _needed_days(Counted(count, last.unit)) for count in ((last.least, last.most) if last.least else (last.number,))
    ]
    reached = [spans.back(day, -by * end.number, end.unit) for end in ends]
    return min(reached)[0], max(reached)[1]


def _needed_days(counted: Counted) -> Counted:
    if (days := _in_days(counted)) is None:
        raise ValueError("no number of days")
    return days


def _unit_of(counted: Counted) -> str:
    """Return the unit of the calendar that a time so long ago is."""
    last = list(_parts(counted))[-1]
    days = _in_days(last)
    unit = "" if days is None or last.least else last.unit if last.unit == "quarter" else days.unit
    return unit if unit in ("day", "week", "month", "quarter", "year") else "span"


# Before today and after it


def ago(context: PhraseContext, counted: PhraseWord) -> Made:
    said: Counted = counted.of["COUNTED"]
    if (hours := in_hours(said)) is not None:
        return {"MOMENTS": Moments("ago", hours)}
    return as_fixed(_away_from_today(context, said, -1))


def _away_from_today(context: PhraseContext, counted: Counted, by: int) -> Fixed:
    """Return the days that are so far from today; of the week around a day, that day is meant most."""
    main = None
    if counted.exact and counted.unit in _DAYS and counted.number == int(counted.number):
        main = spans.same_day(context.today, -by * counted.number, counted.unit)
    return Fixed(away(context.today, counted, by), _unit_of(counted), main=main)


def hence(context: PhraseContext, counted: PhraseWord) -> Made:
    said: Counted = counted.of["COUNTED"]
    if in_hours(said) is not None:
        return _NODATE
    return as_fixed(_away_from_today(context, said, 1))


def less_ago(context: PhraseContext, counted: PhraseWord) -> Made:
    """Read "less than a week ago"."""
    said: Counted = counted.of["COUNTED"]
    if (hours := in_hours(said)) is not None:
        return {"MOMENTS": Moments("within", hours)}
    days = in_days(said)
    if days is None:
        return _NODATE
    return as_fixed(Fixed((spans.same_day(context.today, days.number, days.unit)[0], context.today)))


def more_ago(context: PhraseContext, counted: PhraseWord) -> Made:
    """Read "more than a week ago"."""
    said: Counted = counted.of["COUNTED"]
    if (hours := in_hours(said)) is not None:
        return {"MOMENTS": Moments("ago", hours, "before")}
    days = in_days(said)
    if days is None:
        return _NODATE
    return {"BOUND": Fixed((date.min, spans.same_day(context.today, days.number, days.unit)[1]))}


def ago_to_a_day(context: PhraseContext, counted: PhraseWord, day: PhraseWord) -> Made:
    """Read "a year ago today"."""
    days = in_days(counted.of["COUNTED"])
    if days is None:
        return _NODATE
    at = day.of["FIXED"].span[0] if "FIXED" in day.of else context.today
    return as_fixed(Fixed(spans.same_day(at, days.number, days.unit), "day"))


def weekday_ago(context: PhraseContext, counted: PhraseWord, weekday: PhraseWord) -> Made:
    """Read "a week ago on Monday": the Monday of that week."""
    return _weekday_away(context, counted, weekday, -1)


def weekend_ago(context: PhraseContext, counted: PhraseWord, unit: PhraseWord) -> Made:
    """Read "two weeks ago at the weekend"."""
    days = in_days(counted.of["COUNTED"])
    if unit.of["UNIT"] != "weekend" or days is None or days.unit != "week":
        return None
    return as_fixed(Fixed(spans.unit_around(context.today, "weekend", -int(days.number)), "weekend"))


def weekday_hence(context: PhraseContext, counted: PhraseWord, weekday: PhraseWord) -> Made:
    """Read "on Monday in two weeks"."""
    return _weekday_away(context, counted, weekday, 1)


def _weekday_away(context: PhraseContext, counted: PhraseWord, weekday: PhraseWord, by: int) -> Made:
    days = in_days(counted.of["COUNTED"])
    if days is None or days.unit not in ("week", "fortnight"):
        return _NODATE if days is None else None
    week = spans.unit_around(context.today, "week", by * int(days.number * (2 if days.unit == "fortnight" else 1)))
    return as_fixed(Fixed(spans.weekday_in(week, weekday.of["WEEKDAY"]), "day"))


def weekdays_ago(context: PhraseContext, number: PhraseWord, weekday: PhraseWord) -> Made:
    day = weekday.of["WEEKDAY"] if "WEEKDAY" in weekday.of else weekday.of["WEEKDAYS"]
    return as_fixed(Fixed(spans.weekday(context.today, day, -int(number.of["NUM"])), "day"))


def yearlies_ago(context: PhraseContext, number: PhraseWord, time: PhraseWord) -> Made:
    """Read "two summers ago"."""

    def of() -> Fixed:
        day = context.today
        found: Fixed | None = None
        for _ in range(int(number.of["NUM"])):
            found = time.of["YEARLY"].at(day, -1)
            day = found.span[0]
        return needed(found)

    return as_fixed(of()) if number.of["NUM"] < 100 else None


# Until today


def within(context: PhraseContext, which: PhraseWord, counted: PhraseWord) -> Made:
    """Read "the last two weeks", and "the last weeks": three."""
    if "THISWORD" not in which.of and value(which, "WHICH") != -1:
        return None
    said = counted.of["COUNTED"] if "COUNTED" in counted.of else Counted(SOME, counted.of["PLURAL"])
    if (hours := in_hours(said)) is not None:
        return {"MOMENTS": Moments("within", hours)}
    if said.rest is not None:
        return as_fixed(Fixed((away(context.today, said, -1)[0], context.today)))
    days = _needed_days(Counted(said.number, said.unit))
    return as_fixed(Fixed(spans.within(context.today, days.number, days.unit)))


def number_within(context: PhraseContext, number: PhraseWord, which: PhraseWord, unit: PhraseWord) -> Made:
    """Read "ces deux dernières semaines"; in English "3 last year" are no years."""
    if "noun_chains" in context.flags:
        return None
    return within(context, which, PhraseWord({"COUNTED": Counted(number.of["NUM"], unit.of["UNIT"])}, 0, 0))


def within_days(context: PhraseContext, which: PhraseWord, least: PhraseWord, most: PhraseWord) -> Made:
    """Read "この2、3日"."""
    if least.of["NUM"] + 1 != most.of["DAY"]:
        return None
    return within(context, which, PhraseWord({"COUNTED": Counted(most.of["DAY"], "day")}, 0, 0))


def yearly_within(context: PhraseContext, unit: PhraseWord, *words: PhraseWord) -> Made:
    """Read "in the last year at Christmas"."""
    *_, span, time = (unit, *words)
    if "COUNTED" in span.of:
        one_year = span.of["COUNTED"].exact and span.of["COUNTED"][:2] == (1, "year")
    else:
        one_year = span.of["UNIT"] == "year"
    return as_fixed(time.of["YEARLY"].at(context.today)) if one_year else None


def past_unit(context: PhraseContext, unit: PhraseWord) -> Made:
    """Read "in the past month": until today, unlike "last month"."""
    kind = unit.of["UNIT"]
    if kind not in ("week", "month", "quarter", "year", "decade"):
        return None
    days = _needed_days(Counted(1, kind))
    return as_fixed(Fixed(spans.within(context.today, days.number, days.unit)))
