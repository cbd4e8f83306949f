"""Times that are named by others: what is before or after one, ranges, and bounds. The actions of `rules` for them."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, timedelta

from recollect.text.dates import spans
from recollect.text.dates.distances import away, in_days
from recollect.text.dates.grammar import Made, PhraseWord
from recollect.text.dates.meanings import (
    PhraseContext,
    as_fixed,
    as_yearly,
    mapped,
    needed,
    time_of,
    value,
)
from recollect.text.dates.spans import Span
from recollect.text.dates.times import Counted, Fixed, Recurring

#: The categories of words that make a time a bound.
_BOUNDS = {kind: frozenset((kind.upper(), f"{kind.upper()}POST")) for kind in ("since", "before", "after", "until")}


def _last_day(span: Span) -> Span:
    """Return the last day of a time, on which people may report what was before it."""
    return spans.one(span[1])


def beside(context: PhraseContext, unit: PhraseWord, side: PhraseWord, time: PhraseWord) -> Made:
    """Read "the week before Easter", "two days after 3 May", "the Monday before the last"."""
    by = value(side, "SIDE")
    if "YEARLY" not in time.of and time_of(context, time) is None:
        return None
    of = _as_time(context, time)
    main = _main(of)
    if "COUNTED" in unit.of:
        said: Counted = unit.of["COUNTED"]
        if said.unit in ("hour", "minute", "weekend"):
            return None
        return mapped(main, context, lambda span: away(span[0] if by < 0 else span[1], said, by), "span")
    kind = unit.of["WEEKDAY"] if "WEEKDAY" in unit.of else unit.of.get("UNIT", "day")
    if kind in ("hour", "minute"):
        return None
    unit_of = kind if isinstance(kind, str) else "day"
    # What happened in the week before a day may be reported on that day.
    around = _last_day if by < 0 and unit_of != "day" else None
    from_time = of if kind == "weekend" else main  # the weekend before Easter is not that of Easter Sunday
    return mapped(from_time, context, lambda span: spans.beside(span, kind, by), unit_of, around)


def beside_following(context: PhraseContext, unit: PhraseWord, side: PhraseWord, time: PhraseWord) -> Made:
    """Read "la semaine suivant Noël", where "la semaine suivante" is the next week."""
    return beside(context, unit, side, time) if "WHICHPOST" in side.of else None


def beside_which(context: PhraseContext, unit: PhraseWord, side: PhraseWord, time: PhraseWord) -> Made:
    """Read "the week before last Easter", "the day after next Christmas"."""
    by = side.of["SIDEWHICH"]
    if "YEARLY" in time.of:
        fixed = time.of["YEARLY"].at(context.today, by)
    else:
        fixed = Fixed(spans.weekday(context.today, time.of["WEEKDAY"], by), "day")
    return beside(context, unit, PhraseWord({"SIDE": by}, 0, 0), PhraseWord(as_fixed(fixed) or {}, 0, 0))


def all_beside(context: PhraseContext, counted: PhraseWord, side: PhraseWord, time: PhraseWord) -> Made:
    """Read "in the two weeks before Easter": all of them."""
    days = in_days(counted.of["COUNTED"])
    if days is None or days.unit not in ("day", "week", "fortnight") or days.number != int(days.number):
        return None
    by, count = value(side, "SIDE"), int(days.number) * {"day": 1, "week": 7, "fortnight": 14}[days.unit]

    def of(span: Span) -> Span:
        ends = spans.beside(span, "day", by), spans.beside(span, "day", by * count)
        return min(ends)[0], max(ends)[1]

    return mapped(_main(_as_time(context, time)), context, of, "span", _last_day if by < 0 else None)


def close_beside(context: PhraseContext, counted: PhraseWord, side: PhraseWord, time: PhraseWord) -> Made:
    """Read "less than a week before Easter": the days between."""
    days, by = in_days(counted.of["COUNTED"]), value(side, "SIDE")
    if days is None:
        return {"NODATE": None}

    def of(span: Span) -> Span:
        near = spans.beside(span, "day", by)[0]
        far = spans.same_day(span[0] if by < 0 else span[1], -by * days.number, days.unit)[0]
        return min(near, far), max(near, far)

    return mapped(_main(_as_time(context, time)), context, of, "span", _last_day if by < 0 else None)


def away_from(context: PhraseContext, time: PhraseWord, counted: PhraseWord, side: PhraseWord) -> Made:
    """Read "クリスマスの1週間前"."""
    return beside(context, counted, PhraseWord({"SIDE": side.of["AWAYPOST"]}, 0, 0), time)


def unit_of_day(context: PhraseContext, unit: PhraseWord, day: PhraseWord) -> Made:
    """Read "the weekend of 3 May", "the week of 12 May": the one that it is in; a Monday may be of the one before."""
    kind = unit.of["UNIT"]
    if kind not in ("week", "weekend"):
        return None

    def of(span: Span) -> Span:
        at = span[0] - timedelta(kind == "weekend" and span[0].weekday() == 0)
        return spans.unit_around(at, kind)

    return mapped(day, context, of, kind)


def unit_from_day(context: PhraseContext, unit: PhraseWord, day: PhraseWord) -> Made:
    """Read "the week beginning 4 May"."""
    if unit.of["UNIT"] != "week":
        return None
    return mapped(day, context, lambda span: (span[0], span[0] + timedelta(6)), "week")


def unit_of_days(context: PhraseContext, unit: PhraseWord, days: PhraseWord) -> Made:
    """Read "the weekend of 13 and 14 June", "the week from 5 to 11 October", "the month of May": these days.

    "Weekends in May" are none.
    """
    time: Recurring = days.of["YEARLY"]
    kind = unit.of["UNIT"]
    if kind == "week" and (week := unit_of_holiday(context, unit, days)) is not None:
        return week
    if (time.unit == "span" and kind in ("week", "weekend")) or kind == time.unit == "month":
        return as_yearly(time)
    return {"NODATE": None} if kind == "weekend" else None


def unit_of_holiday(context: PhraseContext, unit: PhraseWord, days: PhraseWord) -> Made:
    """Read "the week of Christmas", "Christmas week": the one that its main day is in."""
    time: Recurring | Fixed = days.of["YEARLY"] if "YEARLY" in days.of else days.of["FIXED"]
    if isinstance(time, Fixed) and unit.of["UNIT"] == "month" == time.unit and time.year:
        return as_fixed(time)  # "the month of May 2025"
    holiday = time.words and not time.month and (time.unit == "day" or time.main is not None)
    if unit.of["UNIT"] != "week" or not holiday:
        return None
    return mapped(_main(days), context, lambda span: spans.unit_around(span[0], "week"), "week")


def _as_time(context: PhraseContext, word: PhraseWord) -> PhraseWord:
    """Return a word as a time: a weekday or a day of the month as the last one."""
    if "YEARLY" in word.of or "FIXED" in word.of:
        return word
    fixed = time_of(context, word)
    return PhraseWord({} if fixed is None else {"FIXED": fixed}, word.begin, word.end)


def _main(word: PhraseWord) -> PhraseWord:
    """Return a word with only the main day of its time: the day after Easter is a Monday."""
    of = word.of
    if "YEARLY" in of and (main := of["YEARLY"].main) is not None:
        time = of["YEARLY"]
        return PhraseWord({"YEARLY": time._replace(of=lambda year: main(year) or time.of(year))}, 0, 0)
    if "FIXED" in of and of["FIXED"].main is not None:
        return PhraseWord({"FIXED": of["FIXED"]._replace(span=of["FIXED"].main)}, 0, 0)
    return word


def main_day(context: PhraseContext, time: PhraseWord) -> Made:
    """Read "Christmas morning"."""
    if time.of["YEARLY"].main is None:
        return None
    return mapped(_main(time), context, lambda span: span, "day")


def from_day(context: PhraseContext, counted: PhraseWord, time: PhraseWord) -> Made:
    """Read "a week from Friday", "two days from tomorrow": in the future."""
    days = in_days(counted.of["COUNTED"])
    if days is None:
        return None
    if "WEEKDAY" in time.of:
        day = spans.weekday(context.today, time.of["WEEKDAY"], 1)
    elif "FIXED" in time.of and time.of["FIXED"].unit == "day":
        day = time.of["FIXED"].span
    else:
        return None
    return as_fixed(Fixed(spans.same_day(day[0], -days.number, days.unit), "day"))


def day_beside(context: PhraseContext, side: PhraseWord, time: PhraseWord) -> Made:
    by = value(side, "DAYBESIDE")
    return mapped(_main(_as_time(context, time)), context, lambda span: spans.beside(span, "day", by), "day")


# Ranges and bounds


def weekrange(context: PhraseContext, first: PhraseWord, last: PhraseWord) -> Made:
    return {"WEEKRANGE": (first.of["WEEKDAY"], last.of["WEEKDAY"])}


def last_weekrange(context: PhraseContext, days: PhraseWord) -> Made:
    first, last = days.of["WEEKRANGE"]
    begin = spans.weekday(context.today, first, -1)[0]
    return as_fixed(Fixed((begin, begin + timedelta((last - first) % 7))))


def range_between(context: PhraseContext, first: PhraseWord, last: PhraseWord) -> Made:
    """Read "from ... to": a time of the year is of the year of the other one; two of them recur."""
    one, other = first.of, last.of
    with suppress(ValueError, OverflowError):
        if "YEARLY" in one and "YEARLY" in other:
            return _yearly_range(one["YEARLY"], other["YEARLY"])
        if "YEARLY" in one:
            end = needed(time_of(context, last))
            begin = one["YEARLY"].in_year(end.span[0].year)
            if begin.span[0] > end.span[1]:
                begin = one["YEARLY"].in_year(end.span[0].year - 1)
        else:
            begin = needed(time_of(context, first))
            if "YEARLY" in other:
                end = other["YEARLY"].in_year(begin.span[0].year)
                if end.span[1] < begin.span[0]:
                    end = other["YEARLY"].in_year(begin.span[0].year + 1)
            elif "WEEKDAY" in other:
                end = Fixed(spans.weekday(begin.span[0], other["WEEKDAY"], 1), "day")
            elif "DAY" in other:
                after = begin.span[0].replace(day=1)
                end = Fixed(spans.day_in((after, spans.months_from(after, 1)[1]), other["DAY"]), "day")
            else:
                end = needed(time_of(context, last))
        around = None
        if begin.day or end.day:
            around = spans.months_from(begin.span[0], 0)[0], spans.months_from(end.span[1], 0)[1]
        return as_fixed(Fixed(spans.to(begin.span, end.span), around=around))
    return {"NODATE": None}


def _yearly_range(first: Recurring, last: Recurring) -> Made:
    around = None
    if first.day and last.day and first.month and last.month:
        around = spans.range_of(Recurring.month_of(first.month).of, Recurring.month_of(last.month).of)
    return as_yearly(Recurring(spans.range_of(first.of, last.of), around=around))


def by_then(context: PhraseContext, time: PhraseWord) -> Made:
    """Read "by Friday": until the next one, which may be today; "by 3 May" means that day most.

    A season is none ("inspired by autumn").
    """
    if "YEARLY" in time.of and time.of["YEARLY"].unit == "season":
        return None
    if "WEEKDAY" in time.of:
        fixed = Fixed(spans.weekday(context.today, time.of["WEEKDAY"], 0), "day")
    else:
        fixed = needed(time_of(context, time))
    first, last = fixed.span
    words = fixed.words or fixed.year is not None or "YEARLY" in time.of
    return {"BOUND": Fixed((date.min, last), main=fixed.span if first == last else None, words=words)}


def by_distance(context: PhraseContext, counted: PhraseWord) -> Made:
    """Read "entro due settimane": until then."""
    days = in_days(counted.of["COUNTED"])
    if days is None:
        return {"NODATE": None}
    then = spans.same_day(context.today, -days.number, days.unit)
    return {"BOUND": Fixed((date.min, then[1]), main=then)}


def bound(context: PhraseContext, bound: PhraseWord, time: PhraseWord) -> Made:
    """Read "since", "before", "after" and "until" a time; they may follow it."""
    kind = next(kind for kind in ("since", "before", "after", "until") if not _BOUNDS[kind].isdisjoint(bound.of))
    if "MOMENTS" in time.of:
        return {"MOMENTS": time.of["MOMENTS"]._replace(bound=kind)} if not time.of["MOMENTS"].bound else None
    fixed = time_of(context, time)
    if fixed is None:
        return None
    first, last = fixed.span
    today = context.today
    with suppress(OverflowError):
        span = {
            "since": lambda: (first, max(last, today)),
            "before": lambda: (date.min, first - timedelta(1)),
            "after": lambda: (last + timedelta(1), max(last + timedelta(1), today)),
            "until": lambda: (date.min, last),
        }[kind]()
        return {"BOUND": Fixed(span, words=fixed.words)}
    return {"NODATE": None}
