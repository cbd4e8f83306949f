"""Dates named in a question, in a form that can be compared with the day of a record.

A question names a date absolutely ("in May 2023", "on 7 May", "15.10.2026") or relatively ("yesterday", "since Monday",
"between 10 and 12 October"); a reference day turns a relative one into a span of days. Which phrases a language has is
written in `date_phrases`, and what they mean on a calendar in `date_spans`.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import islice, takewhile
from typing import Any, NamedTuple

from recollect.text import date_spans
from recollect.text.date_matching import PhraseMatch, finder
from recollect.text.date_phrases import LANGUAGES
from recollect.text.date_spans import Span
from recollect.text.hours import Window, apart, windows_in, words_of_hours
from recollect.text.languages import ENGLISH, stop_words
from recollect.text.words import language_of, letters, runs

#: Rules of phrases that name no span.
_ABSOLUTE = ("date", "month", "year")
#: Rules of spans that name months.
_OF_MONTHS = ("week of", "between")
#: Days between two others are named ones if they are fewer.
_MOST_DAYS = 15
#: Spans of more days than this have no parts of days.
_MOST_DAYS_WITH_HOURS = 31
#: How many days before today a part of the day may be of, if no day is named.
_RECENT_DAYS = 7
#: Number of dates of a question that count, of each way to write one: ISO, in numbers, in words. Further ones are
#: passed over. Each is compared with the days of all documents, so a question may not have any number of them.
MOST_DATES = 64
_DIGITS = frozenset("0123456789")
_ISO = re.compile(r"(?<![\d-])((?:19|20)\d\d)-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?![\d-])")
#: Number of stop words of a language that make a question one in it.
_OTHER_WORDS = 2
#: "15.10.2026" and "15-10-2026", where the day comes first, and "10/15/2026", where either may.
_NUMERIC = re.compile(r"(?<![\d./-])(\d{1,2})([./-])(\d{1,2})\2((?:19|20)\d\d)(?!\d|[./-]\d)")
#: Where the month is written before the day: regions of English, and other languages with their region (CLDR 46).
_MONTH_FIRST = frozenset("us as bi gu mh mp ph pr um vi es-pa es-pr".split())
#: Regions of English without a rule: none is named, or dates are written in several ways.
_EITHER = frozenset(("", "ca"))
#: Other languages in which dates with a slash begin with the day.
_DAY_FIRST = frozenset("de fr es it pt nl".split())


class NamedDates(NamedTuple):
    """The dates that a question names.

    Attributes:
        months: Months by number, 1 to 12.
        years: Years.
        days: Days of the year, as (month, day).
        spans: First and last day of each relative or complete date.
        relative: The phrases of the relative dates.
        around: First and last day of times that are named by a remembered event, which `named` does not know.
        moments: The begin and end (excluded) of each time of less than a day, such as "two hours ago", in microseconds
            since 1970.
        windows: The parts of the day that are named without a day, which have no meaning yet (`in_recent_days`).
        whole_days: Whether the days are meant as a whole. If not, `moments` has the parts of them that are.
    """

    months: frozenset[int]
    years: frozenset[int]
    days: frozenset[tuple[int, int]]
    spans: tuple[Span, ...] = ()
    relative: tuple[str, ...] = ()
    moments: tuple[tuple[int, int], ...] = ()
    around: tuple[Span, ...] = ()
    windows: tuple[Window, ...] = ()
    whole_days: bool = True


#: Those of a question without a date.
NO_DATES = NamedDates(frozenset(), frozenset(), frozenset())


def named(question: str, reference: date, tag: str | None = None) -> NamedDates:
    """Return the dates named in a question: of each way to write one, the first `MOST_DATES`.

    Args:
        reference: The day on which it is asked, or the time, without which it names no hours.
        tag: The language of the asker as a BCP 47 tag, which decides whether 10/11/2026 is in October ("en-US") or in
            November ("en-GB", "de"); None: as in the language of the question. In English it may be either.

    >>> named("What did we buy on 7 May 2023?", date(2024, 1, 1)).months
    frozenset({5})
    >>> named("Whom did I meet the day before yesterday?", date(2024, 1, 1)).spans
    ((datetime.date(2023, 12, 30), datetime.date(2023, 12, 30)),)
    """
    present = letters(question)
    if present is not None and _possible_words().isdisjoint(present):  # most questions stop here
        return NO_DATES
    windows = windows_in(question) if isinstance(reference, datetime) else ()
    if windows:
        question = apart(question)
    own, languages = _languages(question)
    if not languages:
        return NO_DATES._replace(windows=windows) if windows else NO_DATES
    rest = " ".join(question.split())
    spans: list[Span] = []
    for pattern in (_ISO, _NUMERIC):
        found = islice(pattern.finditer(rest), MOST_DATES)
        spans += [date_spans.one(day) for each in found for day in sorted(_complete(each, tag or own))]
        rest = pattern.sub(" ", rest)
    months, years, days, phrases = set[int](), set[int](), set[tuple[int, int]](), []
    moments: list[tuple[int, int]] = []
    time = reference if isinstance(reference, datetime) else None
    today = reference if time is None else time.date()
    for match in _matches(rest, languages):
        slots: Mapping[str, Any] = match.slots
        if "hour" in slots:
            if time is not None:
                with suppress(OverflowError):
                    begin, end = map(_micros, _hours(match, time))
                    moments.append((begin, end))
                    phrases.append(match.text)
            continue
        if match.rule not in _ABSOLUTE or match.bound:
            try:
                first, last = _bounded(match, today)
            except (ValueError, OverflowError):  # there is no such day, or it is before the calendar's first year
                continue
            spans.append((first, last))
            phrases.append(match.text)
            if match.rule == "between" and not match.bound and last - first < timedelta(_MOST_DAYS):
                days.update((each.month, each.day) for each in _days(first, last))
            if match.bound or match.rule not in _OF_MONTHS:
                continue
        # What happened in a week of a month may be reported later in it.
        months.update(slots[name] for name in ("month", "month2") if name in slots)
        if match.rule == "date":
            days.add((slots["month"], slots["day"]))
        if "year" in slots:
            years.add(slots["year"])
    whole_days = True
    if time is not None and windows and not moments:
        of_days = [span for span in spans if span[1] - span[0] <= timedelta(_MOST_DAYS_WITH_HOURS)]
        of_days += [date_spans.last_of(today, month, day) for month, day in sorted(days)] if not spans else []
        parts = list(_parts(of_days, windows, time))
        moments, whole_days = parts, not parts
        windows = () if parts or spans or months or years else windows
    return NamedDates(
        frozenset(months),
        frozenset(years),
        frozenset(days),
        tuple(spans),
        tuple(phrases),
        tuple(moments),
        windows=windows,
        whole_days=whole_days,
    )


def in_recent_days(dates: NamedDates, reference: date) -> NamedDates:
    """Return dates with the parts of the day that are named without a day as those of the last week."""
    windows, dates = dates.windows, dates._replace(windows=())
    if not isinstance(reference, datetime):
        return dates
    today = reference.date()
    first = date.fromordinal(max(today.toordinal() - _RECENT_DAYS, 1))
    return dates._replace(moments=tuple(_parts([(first, today)], windows, reference)))


def _parts(spans: Iterable[Span], windows: Sequence[Window], time: datetime) -> Iterator[tuple[int, int]]:
    """Yield parts of days, in microseconds since 1970."""
    for first, last in dict.fromkeys(spans):
        for day in _days(first, last):
            midnight = datetime(day.year, day.month, day.day)
            for window in windows:
                with suppress(OverflowError, ValueError):
                    begin, end = ((midnight + timedelta(minutes=each)).replace(tzinfo=time.tzinfo) for each in window)
                    yield _micros(begin), _micros(end)


def _languages(question: str) -> tuple[str, list[str]]:
    """Return the language of a question, and those that it may name a date in, the most probable first."""
    words = _words(question)
    digits = not _DIGITS.isdisjoint(question)
    own = language_of(question)
    first = [each for each in dict.fromkeys([own, ENGLISH]) if each in LANGUAGES]
    languages = [*first, *(each for each in LANGUAGES if each not in first)]
    return own, [each for each in languages if _may_name(each, own, words, question) or (digits and each in first)]


def _may_name(language: str, own: str, words: set[str], question: str) -> bool:
    """Return whether words may be a date in a language: its own, or one in which a question has other words too."""
    phrases = finder(language)
    if not phrases.spaced:
        return not question.isascii() and any(word in question for word in phrases.words)
    if not phrases.sure_words.isdisjoint(words):
        return True
    return not phrases.words.isdisjoint(words) and (
        language == own or len(words & stop_words(language)) >= _OTHER_WORDS
    )


def _matches(text: str, languages: Sequence[str]) -> list[PhraseMatch]:
    """Return the phrases of the language whose first phrases take the most of a text; of equal ones, the first."""
    best: list[PhraseMatch] = []
    most = 0
    words = _words(text) if len(languages) > 1 else set[str]()
    for each in languages:
        if best and _finds_no_more(each, words, best):
            continue
        found = list(islice(finder(each).find(text), MOST_DATES))
        length = sum(len(match.text) for match in found)
        if length > most:
            best, most = found, length
    return best


def _words(text: str) -> set[str]:
    return {part for run, _ in runs(text) for part in run.split("'")}


def _finds_no_more(language: str, words: set[str], found: Sequence[PhraseMatch]) -> bool:
    """Return whether phrases of another language have all words of a text that mean a date in this one.

    "December" is one in several. A text with stop words of the language may still have longer phrases in it.
    """
    phrases = finder(language)
    if not phrases.spaced or len(words & stop_words(language)) >= _OTHER_WORDS:
        return False
    return (phrases.sure_words & words) <= {word for match in found for word in _words(match.text)}


@cache
def _possible_words() -> frozenset[str]:
    return _DIGITS.union(words_of_hours(), *(finder(each).words for each in LANGUAGES))


def _complete(found: re.Match[str], tag: str) -> set[date]:
    """Return the days that a date in digits may be: none for 30 February, two for "10/11/2026" in some locales."""
    if found.re is _ISO:
        year, month, day = map(int, found.groups())
        return _valid(year, [(month, day)])
    one, other, year = int(found[1]), int(found[3]), int(found[4])
    day_first, month_first = _valid(year, [(other, one)]), _valid(year, [(one, other)])
    if found[2] != "/":
        return day_first
    match _writes_month_first(tag):
        case None:
            return day_first | month_first
        case True:
            return month_first or day_first
    return day_first or month_first


def _valid(year: int, days: Iterable[tuple[int, int]]) -> set[date]:
    """Return the dates of a year that exist."""
    out = set()
    for month, day in days:
        with suppress(ValueError):
            out.add(date(year, month, day))
    return out


def _writes_month_first(tag: str) -> bool | None:
    """Return whether 10/11/2026 is in October where a language is spoken; None if it may be either there."""
    language, *rest = tag.casefold().replace("_", "-").split("-")
    stated = takewhile(lambda part: len(part) > 1, rest)  # one letter begins an extension or private use
    region = next((part for part in stated if len(part) == 2), "")
    if language == ENGLISH:
        return None if region in _EITHER else region in _MONTH_FIRST
    return f"{language}-{region}" in _MONTH_FIRST if language in _DAY_FIRST else None


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(number) for number in range((last - first).days + 1)]


def _hours(match: PhraseMatch, time: datetime) -> tuple[datetime, datetime]:
    """Return the time that a phrase such as "two hours ago" means: a quarter of the distance or half a unit around it.

    "In the last two hours" means all of them, and so does "since"; "before" means the day until then.
    """
    slots: Mapping[str, Any] = match.slots
    unit = timedelta(hours=1) if slots["hour"] == "hour" else timedelta(minutes=1)
    distance = slots["count"] * unit
    zone = time.tzinfo
    time = time.astimezone(UTC)  # a difference of times in one zone is one of its clock, not of time
    if match.rule == "within hours" or match.bound in ("since", "after"):
        return time - distance, time + timedelta.resolution
    if match.bound == "before":
        of_day = (time - distance).astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
        return of_day, time - distance
    around = max(distance / 4, unit / 2)
    return time - distance - around, min(time - distance + around, time)


def _micros(instant: datetime) -> int:
    return timegm(instant.utctimetuple()) * 1_000_000 + instant.microsecond


def _bounded(match: PhraseMatch, today: date) -> Span:
    """Return the days that a phrase means, or those since, before or after them."""
    first, last = _absolute(match, today) if match.rule in _ABSOLUTE else _meanings()[match.rule](today, match.slots)
    if match.bound == "since":
        return first, max(last, today)
    if match.bound == "before":
        return date.min, first - timedelta(1)
    return (last + timedelta(1), max(last + timedelta(1), today)) if match.bound == "after" else (first, last)


def _absolute(match: PhraseMatch, today: date) -> Span:
    slots: Mapping[str, Any] = match.slots
    year, month, day = (slots.get(name) for name in ("year", "month", "day"))
    if month is None:
        return date_spans.year(slots["year"])
    if year is None:
        return date_spans.last_of(today, month, day)
    return date_spans.one(date(year, month, day)) if day else date_spans.month_of(year, month)


@cache
def _meanings() -> Mapping[str, Callable[[date, Mapping[str, Any]], Span]]:
    """Return what each rule makes of the reference day and the slots of a phrase."""
    return {
        "near": lambda today, s: date_spans.one(today + timedelta(s["near"])),
        "ago": lambda today, s: date_spans.back(today, s["count"], s["step"]),
        "within": lambda today, s: date_spans.within(today, s["count"], s["step"]),
        "which": lambda today, s: date_spans.shifted(today, s.get("which", 0), s["unit"]),
        "which day": lambda today, s: date_spans.weekday(today, s["weekday"], s["which"]),
        "day of week": lambda today, s: date_spans.day_of_week(today, s["weekday"], s["which"]),
        "weekday": lambda today, s: date_spans.weekday(today, s["weekday"], -1),
        "which weekend": lambda today, s: date_spans.shifted(today, s["which"], "weekend"),
        "weekend": lambda today, _: date_spans.last_weekend(today),
        "day": lambda today, s: date_spans.day_of_month(today, s["day"]),
        "week of": lambda today, s: date_spans.week_of(today, s["ordinal"], s["month"], s.get("year")),
        "between": lambda today, s: date_spans.days_between(
            today,
            (s.get("month", s.get("month2")), s["day"]),
            (s.get("month2", s.get("month")), s["day2"]),
            s.get("year"),
        ),
    }
