"""Parts of a time: the last Friday in May, the first two weeks of a month, its end. The actions of `rules` for them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from recollect.text.dates import spans
from recollect.text.dates.grammar import Made, PhraseWord
from recollect.text.dates.meanings import (
    SOME,
    PhraseContext,
    as_fixed,
    as_yearly,
    in_year,
    iso_week,
    mapped,
)
from recollect.text.dates.spans import Span
from recollect.text.dates.times import Counted, Fixed, Recurring

#: Weeks of a year by a greater number than this are those of ISO 8601.
_FIRST_WEEKS = 4


def _whole(span: Span) -> Span:
    """Return a time of which a part is named: what happened in a part of it may be reported later in it."""
    return span


def nth(context: PhraseContext, ordinal: PhraseWord, unit: PhraseWord, time: PhraseWord) -> Made:
    number = ordinal.of["ORD"]
    if "HALFWORD" in unit.of:
        return mapped(time, context, lambda span: spans.half(span, number), "span", around=_whole)
    if "WEEKDAY" in unit.of:
        day = unit.of["WEEKDAY"]
        return mapped(time, context, lambda span: spans.nth(span, number, day), "day", around=_whole)
    kind = unit.of["UNIT"]
    if kind in ("hour", "minute"):
        return None
    if kind == "week" and _is_year(time) and (number > _FIRST_WEEKS or "prepositions" not in context.flags):
        return in_year(context, PhraseWord(iso_week(context, PhraseWord({"NUM": number}, 0, 0)) or {}, 0, 0), time)
    if kind == "fortnight":  # of a month, as "la deuxième quinzaine de mai"
        return mapped(time, context, lambda span: spans.half(span, number), "span", around=_whole)
    return mapped(time, context, lambda span: spans.nth(span, number, kind), kind, around=_whole)


def _is_year(word: PhraseWord) -> bool:
    return "YEAR" in word.of or "OFYEAR" in word.of


def nth_of_this(context: PhraseContext, ordinal: PhraseWord, unit: PhraseWord, of: PhraseWord) -> Made:
    return _of_this(context, of, lambda time: nth(context, ordinal, unit, time))


def _of_this(context: PhraseContext, unit: PhraseWord, made_of: Callable[[PhraseWord], Made]) -> Made:
    """Return a part of this day, week, month or year, or of the one before if it has not begun."""
    kind = unit.of["UNIT"]
    if kind in ("hour", "minute", "weekend", "day"):
        return None
    for by in (0, -1):
        found = made_of(PhraseWord({"FIXED": Fixed(spans.unit_around(context.today, kind, by), kind)}, 0, 0))
        if found and "FIXED" in found and found["FIXED"].span[0] <= context.today:
            return found
    return None


def nth_counted(context: PhraseContext, ordinal: PhraseWord, counted: PhraseWord, time: PhraseWord) -> Made:
    """Read "the first two weeks of May"."""
    number, said = ordinal.of["ORD"], counted.of["COUNTED"]
    count, unit = said.number, said.unit
    if (
        said.rest is not None
        or number not in (1, -1)
        or unit not in ("day", "week", "weekend", "month", "quarter")
        or count != int(count)
    ):
        return None

    def of(span: Span) -> Span:
        ends = spans.nth(span, number, unit), spans.nth(span, number * int(count), unit)
        return min(ends)[0], max(ends)[1]

    return mapped(time, context, of, "span", around=_whole)


def nth_plural(context: PhraseContext, ordinal: PhraseWord, unit: PhraseWord, time: PhraseWord) -> Made:
    """Read "the last days of May": three."""
    return nth_counted(context, ordinal, PhraseWord({"COUNTED": Counted(SOME, unit.of["PLURAL"])}, 0, 0), time)


def nth_quarter(context: PhraseContext, ordinal: PhraseWord, unit: PhraseWord) -> Made:
    number, kind = ordinal.of["ORD"], unit.of["UNIT"]
    if kind == "quarter" and 1 <= number <= 4:
        return as_yearly(Recurring.quarter_of(number))
    if kind == "half" and 1 <= number <= 2:
        return as_yearly(Recurring.half_of(number))
    if kind == "week" and number > _FIRST_WEEKS and ("WEEKWORD" in unit.of or "prepositions" not in context.flags):
        return iso_week(context, PhraseWord({"NUM": number}, 0, 0))
    return None


def part(context: PhraseContext, word: PhraseWord, time: PhraseWord) -> Made:
    third = next(word.of[each] for each in ("PARTWORD", "PARTOF", "PARTPOST") if each in word.of)
    if "YEARLY" in time.of:
        unit = time.of["YEARLY"].unit
    elif "YEAR" in time.of:
        unit = "year"
    else:
        unit = time.of["FIXED"].unit
    if unit == "day":  # "late on Monday"
        return {key: value for key, value in time.of.items() if key in ("FIXED", "OFDAY", "YEARLY", "DATE")}
    return mapped(time, context, lambda span: spans.part(span, third, unit), "span", around=_whole)


def part_of_this(context: PhraseContext, word: PhraseWord, unit: PhraseWord) -> Made:
    return _of_this(context, unit, lambda time: part(context, word, time))


def weekday_of_part(context: PhraseContext, time: PhraseWord, part: PhraseWord, weekday: PhraseWord) -> Made:
    """Read "月末の金曜日" and "月底的周末": the last one of the month."""
    number = {0: 1, 2: -1}.get(part.of["PARTPOST"])
    if weekday.of.get("UNIT", "weekend") != "weekend":
        return None
    if number is None:
        return {"NODATE": None}
    ordinal = PhraseWord({"ORD": number}, 0, 0)
    return (nth_of_this if "UNIT" in time.of else nth)(context, ordinal, weekday, time)


def half_year(context: PhraseContext, half: PhraseWord) -> Made:
    return as_yearly(Recurring.half_of(half.of["HALFYEARPOST"]))


def half(context: PhraseContext, half: PhraseWord, time: PhraseWord) -> Made:
    number = half.of["HALFPOST"] if "HALFPOST" in half.of else half.of["HALFYEARPOST"]
    return mapped(time, context, lambda span: spans.half(span, number), "span", around=_whole)


def day_of(context: PhraseContext, day: PhraseWord, time: PhraseWord) -> Made:
    number = day.of["DAY"]
    return mapped(time, context, lambda span: spans.day_in(span, number), "day")


def day_of_this(context: PhraseContext, day: PhraseWord, unit: PhraseWord) -> Made:
    return _of_this(context, unit, lambda time: day_of(context, day, time)) if unit.of["UNIT"] == "month" else None


def weekday_of(context: PhraseContext, weekday: PhraseWord, week: PhraseWord) -> Made:
    return as_fixed(Fixed(spans.weekday_in(week.of["FIXED"].span, weekday.of["WEEKDAY"]), "day"))


def weekrange_of(context: PhraseContext, days: PhraseWord, week: PhraseWord) -> Made:
    first, last = days.of["WEEKRANGE"]
    begin = spans.weekday_in(week.of["FIXED"].span, first)
    return as_fixed(Fixed((begin[0], begin[0] + timedelta((last - first) % 7))))


def weekend_of(context: PhraseContext, week: PhraseWord, unit: PhraseWord) -> Made:
    if unit.of["UNIT"] != "weekend":
        return None
    middle = week.of["FIXED"].span[0] + timedelta(3)
    return as_fixed(Fixed(spans.unit_around(middle, "weekend"), "weekend"))
