"""Dates named in a question, in a form that can be compared with the day of a record.

A question names a date absolutely ("in May 2023", "on 7 May", "15.10.2026") or relatively ("yesterday", "since Monday",
"the last Friday in May", "between 10 and 12 October"); a reference day turns a relative one into a span of days. The
words are those of `lexicon`, `rules` says what they mean together. A phrase is read as a whole or not at all: one that
is beside words of dates that no rule took names nothing.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import cache, partial
from itertools import islice, takewhile
from typing import Any, NamedTuple

from recollect.text.dates import spans
from recollect.text.dates.grammar import Cascade, PhraseWord
from recollect.text.dates.hours import Window, windows_in, words_of_hours
from recollect.text.dates.lexicon import CODES, Lexicon, lexicon, plain, sure_words, words_in, words_of_distances
from recollect.text.dates.lists import LISTED, days_of_year
from recollect.text.dates.meanings import MADE, PhraseContext, time_of
from recollect.text.dates.rules import RULES
from recollect.text.dates.spans import Span, century
from recollect.text.dates.times import Fixed, Moments, Recurring
from recollect.text.languages import CODES as STEMMED
from recollect.text.languages import ENGLISH, stop_words
from recollect.text.unicode import nfc
from recollect.text.words import language_of, letters, marked_runs, runs

#: A time of each year also means, with a lower share, those of this number of years before the last one.
_YEARS = 8
#: Days of a range of fewer than this many are named ones.
_MOST_DAYS = 15
#: Spans of more days than this have no parts of days.
_MOST_DAYS_WITH_HOURS = 31
#: How many days before today a part of the day may be of, if no day is named.
_RECENT_DAYS = 7
#: Number of dates of a question that count; further ones are passed over. Each is compared with the days of all
#: documents, so a question may not have any number of them.
MOST_DATES = 64
#: Number of words in a row that are read together.
_MOST_WORDS = 32
_DIGITS = frozenset("0123456789")
#: Digits and signs that are as wide as ideographs, and those that they stand for.
_NARROW = {ord(wide): chr(ord(wide) - 0xFEE0) for wide in "０１２３４５６７８９／．："}
#: Number of stop words of a language that make a question one that may be in it.
_OTHER_WORDS = 2
#: Characters that no other of the languages has.
_OWN_SIGNS = {"de": "ß", "es": "¿¡ñ", "fr": "œ", "pt": "ãõ"}
#: Where the month is written before the day: regions of English, and other languages with their region (CLDR 46).
_MONTH_FIRST = frozenset("us as bi gu mh mp ph pr um vi es-pa es-pr".split())
#: Regions of English without a rule: none is named, or dates are written in several ways.
_EITHER = frozenset(("", "ca"))
#: Other languages in which dates with a slash begin with the day.
_DAY_FIRST = frozenset("de fr es it pt nl".split())
#: The signs other than a slash with which languages write dates with two digits of the year (CLDR 46).
_SHORT_WITH = {"de": ".", "nl": "-"}
#: The categories of a word after those of a date that is no noun.
_FUNCTION = {"FUNCTION": None}
#: Number of characters of a month that is abbreviated, and so may be another word.
_ABBREVIATION = 3
#: Categories of words before a month, a season, a holiday or a year that make it a time.
_INTRODUCING = frozenset("IN ON OF FROM TO SINCE BEFORE AFTER BETWEEN UNTIL AND".split())
_TIMES = frozenset("YEARLY FIXED YEAR".split())
#: Categories of words that leave a phrase beside them unread: before it, and after it.
_UNREAD_BEFORE = frozenset("UNIT HALFWORD COUNTED PARTWORD WEEKDAYS NODATE".split())
_NUMBERS = frozenset(("NUM", "ORD"))
_UNREAD_AFTER = frozenset("UNIT COUNTED WEEKDAYS NODATE".split())
#: Categories of words that may be between a phrase and such a word.
_JOINING = frozenset("OF DASH POSS".split())


class NamedDates(NamedTuple):
    """The dates that a question names.

    Attributes:
        months: Months by number, 1 to 12.
        years: Years.
        days: Days of the year, as (month, day).
        spans: First and last day of each relative or complete date.
        relative: The phrases of the relative dates.
        moments: The begin and end (excluded) of each time of less than a day, such as "two hours ago", in microseconds
            since 1970.
        around: First and last day of times that are named by a remembered event, which `named` does not know.
        windows: The parts of the day that are named without a day, which have no meaning yet (`in_recent_days`).
        whole_days: Whether the days are meant as a whole. If not, `moments` has the parts of them that are.
        main: Those of the days of `spans` that are meant most, such as 25 December, or each of "10 to 12 October".
        nearby: First and last day of times near the named ones, in which people may report them; they count less.
        absolute: The phrases of the other dates.
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
    main: tuple[Span, ...] = ()
    nearby: tuple[Span, ...] = ()
    absolute: tuple[str, ...] = ()


def described(dates: NamedDates) -> str:
    """Return how dates were read: the phrases, and the days that they mean; "" for none.

    >>> described(named("What did I do the day before yesterday?", date(2024, 1, 1)))
    'the day before yesterday: 2023-12-30'
    >>> described(named("What did we buy in May 2023?", date(2024, 1, 1)))
    'May 2023: 2023-05'
    >>> described(named("What did we do on 24 November?", date(2024, 1, 1)))
    '24 November: 11-24 of every year'
    """
    times = [first.isoformat() if first == last else f"{first} to {last}" for first, last in dates.spans]
    days = [f"{month:02}-{day:02}" for month, day in sorted(dates.days)]
    parts = days or [f"{month:02}" for month in sorted(dates.months)]
    for year in [f"{year:04}" for year in sorted(dates.years)]:
        times += [f"{year}-{part}" for part in parts] or [year]
    if not dates.years:
        times += [f"{part} of every year" if days else f"month {part} of every year" for part in parts]
    times += [
        " to ".join(datetime.fromtimestamp(micros / 1e6, UTC).isoformat(timespec="minutes") for micros in each)
        for each in dates.moments
    ]
    phrases = ", ".join((*dates.relative, *dates.absolute))
    return f"{phrases}: {'; '.join(dict.fromkeys(times))}" if times and phrases else ""


#: Those of a question without a date.
NO_DATES = NamedDates(frozenset(), frozenset(), frozenset())


def named(question: str, reference: date, tag: str | None = None) -> NamedDates:
    """Return the dates named in a question: the first `MOST_DATES`.

    Args:
        reference: The day on which it is asked, or the time, without which it names no hours.
        tag: The language of the asker as a BCP 47 tag, which decides whether 10/11/2026 is in October ("en-US") or in
            November ("en-GB", "de"); None: as in the language of the question. In English it may be either.

    >>> named("What did we buy on 7 May 2023?", date(2024, 1, 1)).months
    frozenset({5})
    >>> named("Whom did I meet the day before yesterday?", date(2024, 1, 1)).spans
    ((datetime.date(2023, 12, 30), datetime.date(2023, 12, 30)),)
    """
    question = question if question.isascii() else question.translate(_NARROW)
    present = letters(question)
    if present is not None and _possible_words().isdisjoint(present):  # most questions stop here
        return NO_DATES
    windows = windows_in(question) if isinstance(reference, datetime) else ()
    languages = _languages(question)
    if not languages[0]:
        return NO_DATES._replace(windows=windows) if windows else NO_DATES
    time = reference if isinstance(reference, datetime) else None
    today = reference if time is None else time.date()
    text = " ".join(nfc(question).split())
    found = _found(text, *languages, today, tag)
    return _with_hours(_gathered(text, found, today, time), windows, today, time)


def in_recent_days(dates: NamedDates, reference: date) -> NamedDates:
    """Return dates with the parts of the day that are named without a day as those of the last week."""
    windows, dates = dates.windows, dates._replace(windows=())
    if not isinstance(reference, datetime):
        return dates
    today = reference.date()
    first = date.fromordinal(max(today.toordinal() - _RECENT_DAYS, 1))
    return dates._replace(moments=tuple(_parts([(first, today)], windows, reference)))


def _with_hours(dates: NamedDates, windows: tuple[Window, ...], today: date, time: datetime | None) -> NamedDates:
    if time is None or not windows or dates.moments:
        return dates._replace(windows=windows) if windows else dates
    of_days = [span for span in dates.spans if span[1] - span[0] <= timedelta(_MOST_DAYS_WITH_HOURS)]
    if not dates.spans:
        for month, day in sorted(dates.days):
            with suppress(ValueError, OverflowError):
                of_days.append(spans.last_of(today, lambda at, on=(month, day): spans.one(date(at, *on))))  # type: ignore[misc]
    parts = tuple(_parts(of_days, windows, time))
    left = () if parts or dates.spans or dates.months or dates.years else windows
    return dates._replace(moments=parts, whole_days=not parts, windows=left)


def _parts(days: Iterable[Span], windows: Sequence[Window], time: datetime) -> Iterator[tuple[int, int]]:
    """Yield parts of days, in microseconds since 1970."""
    for first, last in dict.fromkeys(days):
        for number in range((last - first).days + 1):
            day = first + timedelta(number)
            midnight = datetime(day.year, day.month, day.day)
            for window in windows:
                with suppress(OverflowError, ValueError):
                    begin, end = ((midnight + timedelta(minutes=each)).replace(tzinfo=time.tzinfo) for each in window)
                    yield _micros(begin), _micros(end)


def _languages(question: str) -> tuple[list[str], str, list[str]]:
    """Return the languages that a question may name a date in, the most probable first, its own, and the likely ones.

    A question is short: its language is one with the most of its stop words, or one less. In others it names a date
    only by words that no other language has.
    """
    words = _words(question)
    spoken = {part for run in marked_runs(question) for part in run.split("'")}
    own = language_of(question)
    spoken.update(plain(question).split())
    counts = {code: len(spoken & _common_words(code)) for code in CODES if code in STEMMED}
    for code, signs in _OWN_SIGNS.items() if not question.isascii() else ():
        counts[code] += _OTHER_WORDS * any(sign in question for sign in signs)
    most = max(counts.values())
    first = [code for code, count in counts.items() if count == most]
    kana = not question.isascii() and any("\u3041" <= char <= "\u309f" for char in question)  # it is not Chinese
    if not most and any(unspaced for _, unspaced in runs(question)):
        first = ["ja"] if kana else [code for code in CODES if code not in STEMMED]
    near = [code for code, count in counts.items() if most - 1 == count >= _OTHER_WORDS]
    languages = dict.fromkeys([*(code for code in (own,) if code in first), *first, *near, *CODES])
    digits = not _DIGITS.isdisjoint(question)
    possible = [
        code
        for code in languages
        if (_may_name(code, code in first or code in near, words, question) or (digits and code in first))
        and not (kana and code == "zh")
    ]
    return possible, own if own != ENGLISH or counts[own] == most else first[0], first


@cache
def _common_words(code: str) -> frozenset[str]:
    """Return the stop words of a language and those for distances in time, also without accents."""
    return frozenset({form for word in stop_words(code) | words_of_distances(code) for form in (word, plain(word))})


def _may_name(code: str, likely: bool, words: set[str], question: str) -> bool:
    """Return whether words may be a date in a language."""
    if code not in STEMMED:  # it has no blanks between words
        return not question.isascii() and any(word in question for word in words_in(code))
    return not (words_in(code) if likely else sure_words(code)).isdisjoint(words)


def _words(text: str) -> set[str]:
    return {part for run, _ in runs(text) for part in run.split("'")}


@cache
def _possible_words() -> frozenset[str]:
    return _DIGITS.union(words_of_hours(), *map(words_in, CODES))


@cache
def _cascade(code: str) -> Cascade:
    return Cascade(RULES, [*lexicon(code).sets, *MADE, *LISTED])


class _Phrase(NamedTuple):
    """A time that a question names: the word that means it, and what it means."""

    word: PhraseWord
    time: Fixed | Moments | None


def _found(
    text: str, languages: Sequence[str], own: str, likely: Sequence[str], today: date, tag: str | None
) -> list[_Phrase]:
    """Return the phrases of the language whose phrases take the most of a text; of equal ones, the first.

    What one of the languages takes for an amount or a name is no date in another.
    """
    read: list[list[_Phrase]] = []
    asides: list[range] = []
    for code in languages:
        known = lexicon(code)
        context = PhraseContext(today, code, known.flags, partial(_days_in_digits, tag=tag or code))
        words = known.divided(text, code == own)
        found = list(islice(_phrases(words, text, known, context, code in likely), MOST_DATES))
        if code not in likely:
            found = [phrase for phrase in found if not _after_article(phrase.word, text, likely)]
        asides += [range(word.begin, word.end) for word, _ in found if "ASIDE" in word.of]
        read.append(found)
    best: list[_Phrase] = []
    most = 0
    for found in read:
        found = [phrase for phrase in found if not any(phrase.word.begin in aside for aside in asides)]
        length = sum(phrase.word.end - phrase.word.begin for phrase in found)
        if length > most:
            best, most = found, length
    return list(_in_their_year(best))


def _in_their_year(phrases: Sequence[_Phrase]) -> Iterator[_Phrase]:
    """Yield phrases; those such as "Friday the 13th" are in the year that another one names, if it is only one."""
    years = [time.year for _, time in phrases if isinstance(time, Fixed) and time.unit == "year" and time.year]
    if len(years) != 1 or not any("NAMEDDAY" in word.of for word, _ in phrases):
        yield from phrases
        return
    for word, time in phrases:
        if "NAMEDDAY" in word.of:
            weekday, number = word.of["NAMEDDAY"]
            yield from (_Phrase(word, day) for day in days_of_year(weekday, number, years[0]))
        elif not (isinstance(time, Fixed) and time.unit == "year"):
            yield _Phrase(word, time)


def _after_article(word: PhraseWord, text: str, likely: Sequence[str]) -> bool:
    """Return whether a word of another language has an article of the question's: "the Ostern family" is a name."""
    before = text[: word.begin].casefold().split()[-1:]
    return bool(before) and any(before[0] in lexicon(code).articles for code in likely)


def _phrases(
    words: Iterable[PhraseWord], text: str, known: Lexicon, context: PhraseContext, likely: bool
) -> Iterator[_Phrase]:
    cascade = _cascade(known.code)
    for group in _groups(words, text, known):
        yield from _accepted(cascade.reduced(group, context), text, known, context, likely)


def _groups(words: Iterable[PhraseWord], text: str, known: Lexicon) -> Iterator[list[PhraseWord]]:
    """Yield the words that dates may have, in groups with the word before and after: no rule is about further ones."""
    before: list[PhraseWord] = []
    group: list[PhraseWord] = []
    for word in words:
        if word.of:
            group.append(word)
            if len(group) == _MOST_WORDS:
                yield before + group
                before, group = [], []
            continue
        if group:
            function = known.is_function(text[word.begin : word.end])
            yield [*before, *group, word._replace(of=_FUNCTION) if function else word]
        before, group = [word], []
    if group:
        yield before + group


def _accepted(
    words: Sequence[PhraseWord], text: str, known: Lexicon, context: PhraseContext, likely: bool
) -> Iterator[_Phrase]:
    """Yield the words that name a time, and of lists each member."""
    for number, word in enumerate(words):
        of = word.of
        if "ASIDE" in of:
            yield _Phrase(word, None)
        if not ("FIXED" in of or "YEARLY" in of or "YEAR" in of or "BOUND" in of or "MOMENTS" in of or "WEEKDAY" in of):
            continue
        before, after = _beside(words, number, -1), _beside(words, number, 1)
        if ("THE" not in before and not _UNREAD_BEFORE.isdisjoint(before)) or not _UNREAD_AFTER.isdisjoint(after):
            continue
        if not _NUMBERS.isdisjoint(before) and ("YEARLY" in of or "OFMONTH" in of):
            continue
        if "FIXED" in of or "BOUND" in of or "MOMENTS" in of or _is_meant(words, number, text, known, likely):
            for member in word.members:
                time = _time(member, context)
                if time is not None or "YEARLY" in of:
                    yield _Phrase(member, time)


def _time(word: PhraseWord, context: PhraseContext) -> Fixed | Moments | None:
    """Return the time that a word means; None if it is one of each year."""
    of = word.of
    if "MOMENTS" in of:
        return of["MOMENTS"]  # type: ignore[no-any-return]
    if "BOUND" in of:
        return of["BOUND"]  # type: ignore[no-any-return]
    return None if "YEARLY" in of and "FIXED" not in of else time_of(context, word)


def _beside(words: Sequence[PhraseWord], number: int, step: int) -> frozenset[str]:
    """Return the categories of the next word before or after one that joins nothing."""
    at = number + step
    while 0 <= at < len(words):
        of = words[at].of
        if not of or _JOINING.isdisjoint(of):
            return frozenset(of)
        at += step
    return frozenset()


def _is_meant(words: Sequence[PhraseWord], number: int, text: str, known: Lexicon, likely: bool) -> bool:
    """Return whether a word that could be a time is one, by what is before it."""
    word = words[number]
    of = word.of
    if "WEEKDAY" in of and "YEARLY" not in of:
        capital = number and text[word.begin].isupper() and "lower" in known.flags
        return likely and "bare_weekday" in known.flags and not capital
    before = words[number - 1].of if number else {}
    at = number - 2 if "THE" in before and _INTRODUCING.isdisjoint(before) else number - 1
    introduced = at < 0 or _introduces(words, at)
    noun = number + 1 < len(words) and not words[number + 1].of
    if at < 0 and ("THE" not in before or (noun and "SEASON" in of and text[word.begin].isupper())):
        introduced = False  # "the Winter family"
    if "YEARLY" in of:
        time = of["YEARLY"]
        phrase = plain(text[word.begin : word.end])
        parts = phrase.split() if word.others else [phrase]
        if time.words:
            bare = "bare" in known.flags and phrase not in known.unsure and not ("SEASON" in of and known.spaced)
            name = "".join(parts).isalpha() and len(parts) <= 2 * len(word.members)  # or a list of names
            return introduced or bare or not (name or "QUARTER" in of or "HALFYEAR" in of)
        if time.month and not time.day:
            unsure = parts[0] in known.unsure or (known.spaced and len(parts[0]) <= _ABBREVIATION)
            return (introduced and not _names_a_thing(before)) or not unsure
        return True
    if "NUM" not in of:  # a year that is written as one
        return True
    if noun and ("nouns" in known.flags or not of["YEAR"] % 100):  # "2000 trees"
        return False
    year = introduced and not (_INTRODUCING - {"ON"}).isdisjoint(before)
    return year or "THE" in before or "bareyear" in known.flags


def _names_a_thing(before: Mapping[str, Any]) -> bool:
    """Return whether what is before a word is an article and no preposition: "o marco" is a mark."""
    return "THE" in before and "IN" not in before


def _introduces(words: Sequence[PhraseWord], at: int) -> bool:
    """Return whether a word makes the next one a time; "and" does after another time."""
    of = words[at].of
    if "AND" in of and (at == 0 or _TIMES.isdisjoint(words[at - 1].of)):
        return False
    return not _INTRODUCING.isdisjoint(of)


def _gathered(text: str, phrases: Sequence[_Phrase], today: date, time: datetime | None) -> NamedDates:
    """Return what phrases name together."""
    months, years, days = set[int](), set[int](), set[tuple[int, int]]()
    found: list[Span] = []
    main: list[Span] = []
    nearby: list[Span] = []
    around: list[Span] = []
    relative: list[str] = []
    absolute: list[str] = []
    moments: list[tuple[int, int]] = []
    several = len({phrase.time.year for phrase in phrases if isinstance(phrase.time, Fixed) and phrase.time.year}) > 1
    for word, meant in phrases:
        phrase = text[word.begin : word.end]
        if isinstance(meant, Moments):
            if time is not None:
                with suppress(OverflowError):
                    begin, end = map(_micros, _hours(meant, time))
                    moments.append((begin, end))
                    relative.append(phrase)
            elif (span := _days_of(meant, today)) is not None:
                found.append(span)
                relative.append(phrase)
            continue
        if meant is None:
            recurring = word.of["YEARLY"]
            if recurring.month:
                absolute.append(phrase)
                months.add(recurring.month)
                days.update([(recurring.month, recurring.day)] if recurring.day else [])
                continue
            with suppress(ValueError, OverflowError):
                meant = recurring.at(today)
            if meant is None:
                continue
            nearby += _other_years(recurring, meant.span[0].year)
        elif meant.year and not several and "BOUND" not in word.of:
            absolute.append(phrase)
            years.add(meant.year)
            months.update([meant.month] if meant.month else [])
            days.update([(meant.month, meant.day)] if meant.month and meant.day else [])
            continue
        found += [meant.span, *meant.also]
        if meant.main is not None:
            main.append(meant.main)
        elif (
            meant.around is not None and meant.span[1] - meant.span[0] < timedelta(_MOST_DAYS) and meant.unit == "span"
        ):
            main.append(meant.span)
        if meant.around is not None:
            (around if meant.around[0] == meant.around[1] else nearby).append(meant.around)
        (absolute if meant.words else relative).append(phrase)
    return NamedDates(
        frozenset(months),
        frozenset(years),
        frozenset(days),
        tuple(found),
        tuple(relative),
        tuple(moments),
        tuple(around),
        main=tuple(main),
        nearby=tuple(nearby),
        absolute=tuple(absolute),
    )


def _other_years(time: Recurring, year: int) -> Iterator[Span]:
    """Yield what a time of each year was in the years before one, which a question may mean, too."""
    for before in range(1, _YEARS + 1):
        with suppress(ValueError, OverflowError):
            yield (time.around or time.of)(year - before)


def _days_of(moments: Moments, today: date) -> Span | None:
    """Return the days of "the last 48 hours" or "50 hours ago" for a question without a time; None if it is no day."""
    days, rest = divmod(moments.counted.number, 24 if moments.counted.unit == "hour" else 24 * 60)
    if not days or moments.bound:
        return None
    with suppress(OverflowError):
        if moments.rule == "ago":
            return spans.back(today, days, "day")
        return None if rest else spans.within(today, days, "day")
    return None


def _hours(moments: Moments, time: datetime) -> tuple[datetime, datetime]:
    """Return the time that a phrase such as "two hours ago" means: a quarter of the distance or half a unit around it.

    "In the last two hours" means all of them, and so does "since"; "before" means the day until then.
    """
    unit = timedelta(hours=1) if moments.counted.unit == "hour" else timedelta(minutes=1)
    distance = moments.counted.number * unit
    zone = time.tzinfo
    time = time.astimezone(UTC)  # a difference of times in one zone is one of its clock, not of time
    if moments.rule == "within" or moments.bound in ("since", "after"):
        return time - distance, time + timedelta.resolution
    if moments.bound == "before":
        of_day = (time - distance).astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
        return of_day, time - distance
    around = max(distance / 4, unit / 2)
    return time - distance - around, min(time - distance + around, time)


def _micros(instant: datetime) -> int:
    return timegm(instant.utctimetuple()) * 1_000_000 + instant.microsecond


def _days_in_digits(written: str, tag: str) -> list[date]:
    return sorted(_complete(written, tag))


def _complete(written: str, tag: str) -> set[date]:
    """Return the days that a date in digits may be: none for 30 February, two for "10/11/2026" in some locales."""
    sign = re.search(r"[./-]", written)
    assert sign is not None
    parts = written.split(sign[0])
    one, two, three = map(int, parts)
    if len(parts[0]) == 4:
        return _valid(one, [(two, three)])
    year = three if len(parts[2]) == 4 else century(three)
    day_first, month_first = _valid(year, [(two, one)]), _valid(year, [(one, two)])
    before = _writes_month_first(tag)
    if sign[0] == "." or (sign[0] == "-" and len(parts[2]) != 4):
        usual = _SHORT_WITH.get(tag.partition("-")[0].casefold(), "")
        return day_first if len(parts[2]) == 4 or sign[0] in usual else set()
    if sign[0] == "-":
        before = before is True
    match before:
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
