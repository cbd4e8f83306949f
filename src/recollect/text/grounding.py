"""Whether a statement says only what its sources say: by its words, its numbers, its days and its negations.

A model that is asked for the facts of a conversation may answer anything. Each word of what it states must be a word of
the sources, or one of those that only say who is meant and that something is so; each number and each day must be
theirs; and what they negate must not be stated as true, nor the reverse. This finds what was invented. Whether the
words are put together as in the sources is not checked: "Ana's sister lives in Rome" has all its words in "I live in
Rome, my sister lives in Oslo".

Words are compared in English, German, Spanish and French, and by their beginnings in other languages.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

from recollect.common.regexes import regex
from recollect.text import dates
from recollect.text.clauses import clauses_in, sentences_in
from recollect.text.folding import folded
from recollect.text.languages import known, stop_words
from recollect.text.words import language_of, ngrams, runs, stem

_NUMBER = regex(r"[0-9]+(?:[.,:][0-9]+)*")
_THOUSANDS = regex(r"[0-9]{1,3}(?:[.,][0-9]{3})+")
_DAY = regex(r"([0-9]{4})(?:-([0-9]{2}))?(?:-([0-9]{2}))?")
#: Signs that are words, too.
_SIGNS = {"\u20ac": " euro euros", "$": " dollar dollars", "\u00a3": " pound pounds", "%": " percent prozent"}
#: What says that something was so, in two words, or as a part of one.
_PAST = regex(r"\bused to\b|\bnon-\w", re.IGNORECASE)
#: Where a clause begins after "and" or a comma: it has a subject near its begin. After "but", always.
_JOINT = regex(
    r"(?:\s*[,;:–—])?\s+(?=(?:but|sondern|aber|pero|sino|mais)\s)"
    r"|[,;:–—]\s+(?=(?:not|no|nicht|kein|keine|pas|plus)\s)"
    r"|(?:[,;:–—]\s+|\s+(?=(?:and|so|because|since|while|und|weil|denn|da|y|porque|et|car|parce)\s))"
    r"(?=(?:\w+\s+)?(?:(?:seit|jetzt|nun|now|ahora|maintenant)\s(?:\w+\s+){1,2})?"
    r"(?:i|i['’](?:m|ve|d|ll)|we|you|my|our|isn['’]t|aren['’]t|can['’]t|doesn['’]t|don['’]t|is|are|has|call|it['’]?s?|he|she"
    r"|they|ich|wir|mein|meine|ist|hat|bin|er|sie|es|yo|mi|soy|estoy|tengo|vivo|trabajo|je|j['’]\w+|nous|mon|ma|il|elle"
    r"|c['’]est)\b)",
    re.IGNORECASE,
)
#: The fewest common letters at the beginning of two forms of a word, and their share of the longer form.
_LEAST_COMMON, _SHARE = 4, 2 / 3
_VOWELS, _ENDINGS_OF_VERBS = frozenset("aeo"), frozenset("stxr")
#: How far from a turn a weekday may be that it names: it does not say whether the last or the next one is meant.
_NEAR = timedelta(days=14)
#: How far from a turn a month or day may be that it names without a year.
_IN_A_YEAR = timedelta(days=366)
#: The most days that a statement may write.
_MOST_DAYS = 20


class _Words(NamedTuple):
    """The word lists of grounding.toml: by language, or of all languages."""

    glue: dict[str, frozenset[str]]
    forms: dict[str, dict[str, str]]
    negations: frozenset[str]
    endings: frozenset[str]
    departures: frozenset[str]
    likings: frozenset[str]
    aversions: frozenset[str]
    affirmations: frozenset[str]
    ones: frozenset[str]
    numbers: dict[str, str]
    months: dict[str, int]
    weekdays: dict[str, int]


@cache
def _words() -> _Words:
    import tomllib  # with the lists, so that who checks nothing does not load it

    lists = tomllib.loads(Path(__file__).with_name("grounding.toml").read_text("utf-8"))

    def words(text: str) -> list[str]:
        return [folded(word) for word in text.split()]

    def every(name: str) -> frozenset[str]:
        return frozenset(word for each in lists.values() for word in words(each[name]))

    def numbered(name: str, first: int) -> dict[str, int]:
        return {word: at for each in lists.values() for at, word in enumerate(words(each[name]), first)}

    def forms(text: str) -> dict[str, str]:
        return {word: group[0] for group in map(words, text.split("|")) for word in group}

    return _Words(
        glue={code: frozenset(words(each["glue"])) for code, each in lists.items()},
        forms={code: forms(each.get("forms", "")) for code, each in lists.items() if each.get("forms")},
        negations=every("negations"),
        endings=every("endings"),
        departures=every("departures"),
        likings=every("likings"),
        aversions=every("aversions"),
        affirmations=every("affirmations"),
        ones=every("ones"),
        numbers={word: str(number) for word, number in numbered("numbers", 2).items()},
        months=numbered("months", 1),
        weekdays=numbered("weekdays", 0),
    )


class _Clause(NamedTuple):
    """A clause of a source.

    Attributes:
        words: Its words.
        negates: Whether it negates or ends something.
        dislikes: Whether it says that somebody dislikes something.
    """

    words: _Vocabulary
    negates: bool
    dislikes: bool


class _Vocabulary:
    """The words of a text, in a form in which forms of a word are found fast."""

    def __init__(self, words: Iterable[str], language: str) -> None:
        self.words = frozenset(words)
        self._language = language
        self._forms = _words().forms.get(language, {})
        self._stems = {stem(word, language) for word in self.words}
        self._irregular = {self._forms[word] for word in self.words if word in self._forms}
        self._beginnings: dict[str, list[str]] = {}
        for word in sorted(self.words):
            self._beginnings.setdefault(word[:3], []).append(word)

    def has(self, word: str) -> bool:
        """Return whether a form of a folded word is one of them."""
        if word in self.words or stem(word, self._language) in self._stems:
            return True
        if self._forms.get(word) in self._irregular:
            return word in self._forms
        return any(_alike(word, other, self._language) for other in self._beginnings.get(word[:3], ()))


class _Source(NamedTuple):
    words: _Vocabulary
    clauses: tuple[_Clause, ...]
    numbers: frozenset[str]


@dataclass(frozen=True, eq=False)
class SaidText:
    """A text that statements are compared with. What is read in it is kept with it, and goes with it.

    Attributes:
        text: The text.
        time: When it was said, in the time zone of who said it; None: unknown.
    """

    text: str
    time: datetime | None = None
    _read: dict[str, _Source] = field(default_factory=dict, init=False, repr=False)
    _named: dict[date, dates.NamedDates] = field(default_factory=dict, init=False, repr=False)

    def read(self, language: str) -> _Source:
        """Return its words, clauses and numbers, as they are in a language."""
        if language not in self._read:
            self._read[language] = _source(self.text, language)
        return self._read[language]

    def named(self, said: date) -> dates.NamedDates:
        """Return the days that it names, if it is said on a day."""
        if said not in self._named:
            self._named[said] = dates.named(self.text, said)
        return self._named[said]


def _source(text: str, language: str) -> _Source:
    words = _plain(text)
    found = [clause for start, sentence in sentences_in(text) for _, clause in clauses_in(start, sentence)]
    parts = [part for clause in found for part in _JOINT.split(clause) if part]
    clauses = tuple(_Clause(_Vocabulary(_plain(part), language), _negates(part), _dislikes(part)) for part in parts)
    numbers = _numbers(text) | ({"1"} if not _words().ones.isdisjoint(words) else set())
    return _Source(_Vocabulary(words, language), clauses, frozenset(numbers))


def unsupported(
    statement: str,
    sources: Sequence[SaidText],
    *,
    names: Iterable[str] = (),
    ended: bool = False,
    is_value: bool = False,
) -> str:
    """Return why a statement says something that its sources do not say; "" if it does not.

    >>> unsupported("The user lives in Oslo.", [SaidText("I've just moved to Oslo.")])
    ''
    >>> unsupported("The user lives in Oslo with a dog.", [SaidText("I've just moved to Oslo.")])
    "its word 'dog' is not in its sources"
    >>> unsupported("The user eats meat.", [SaidText("I don't eat meat.")])
    'its sources negate it'

    Args:
        names: Names that it may have: those of the user, and of what it is about.
        ended: It says that something is no more, so its sources may negate it.
        is_value: It is only a part of a statement: negations are not compared, and glue alone is not enough.

    Cost:
        In proportion to the statement, once the sources have been read.
    """
    language = _language([*sources, SaidText(statement)])
    read = [each.read(language) for each in sources]
    own = _numbers_of_days(statement, sources)
    wrong = _numbers(statement).difference(own, *(each.numbers for each in read))
    if wrong:
        return f"its number {min(wrong)!r} is not in its sources"
    spoken = {"en", language, _language([SaidText(statement)])}
    glue = frozenset(word for each in spoken for word in _words().glue.get(each, ()))
    stops = frozenset(word for each in spoken for word in stop_words(each))
    allowed = {*_plain(" ".join(names)), *glue, *stops}
    if own:
        allowed |= _words().months.keys()
    words = [word for word in _plain(statement) if not word.isdigit() and word not in _words().numbers]
    if is_value and words and all(word in glue for word in words) and not _numbers(statement):
        allowed -= glue - stops
    likes = not _words().likings.isdisjoint(words) or not _words().aversions.isdisjoint(words)
    negated = _negates(statement) or (likes and _dislikes(statement))
    turned = _words().negations | _words().endings | _words().aversions
    liked = any(not _words().likings.isdisjoint(each.words.words) for each in read)
    for word in words:
        if word in allowed or (negated and word in turned) or (liked and word in _words().likings):
            continue
        if not any(each.words.has(word) for each in read):
            return f"its word {word!r} is not in its sources"
    if is_value or ended:
        return ""
    content = [word for word in words if word not in glue and word not in stops and word not in turned]
    negating = [each.negates or (likes and each.dislikes) for each in _nearest(content, read)]
    if negated and not any(negating):
        return "it negates what its sources do not negate"
    if not negated and negating and all(negating):
        return "its sources negate it"
    return ""


def ends(statement: str, sources: Sequence[SaidText]) -> bool:
    """Return whether a source says of something in a statement that it is no more, or not.

    >>> ends("The user has a cat called Mia.", [SaidText("It rains. Mia died today.")])
    True
    >>> ends("The user has a cat called Mia.", [SaidText("Mia is not well, and it rains.")])
    True
    >>> ends("The user lives in Graz.", [SaidText("What is the weather in Graz?")])
    False
    """
    return any(
        each.negates or not _words().departures.isdisjoint(each.words.words) for each in _about(statement, sources)
    )


def mentions(statement: str, sources: Sequence[SaidText]) -> bool:
    """Return whether a source has a word of a statement that is not only glue."""
    return bool(_about(statement, sources))


def _about(statement: str, sources: Sequence[SaidText]) -> list[_Clause]:
    """Return the clauses that have a word of a statement that is not only glue."""
    language = _language([*sources, SaidText(statement)])
    without = {*_words().glue["en"], *_words().glue.get(language, ()), *stop_words(language), *stop_words("en")}
    content = {word for word in _plain(statement) if word not in without}
    clauses = [each for source in sources for each in source.read(language).clauses]
    return [each for each in clauses if any(each.words.has(word) for word in content)]


def _language(sources: Sequence[SaidText]) -> str:
    return known(language_of(" ".join(each.text[:1000] for each in sources))) or "en"


def _nearest(content: Collection[str], sources: Iterable[_Source]) -> list[_Clause]:
    """Return the clauses that have most of some words: "I live in Graz and eat no pork" negates nothing of Graz."""
    clauses = [each for source in sources for each in source.clauses]
    shared = [sum(each.words.has(word) for word in content) for each in clauses]
    most = max(shared, default=0)
    return [each for each, count in zip(clauses, shared, strict=True) if count == most]


def affirms(text: str) -> bool:
    """Return whether a text says yes first of all.

    >>> affirms("Yes, exactly."), affirms("I live in Graz. Yes!")
    (True, False)
    """
    first = runs(text[:100])
    return bool(first) and first[0][0] in _words().affirmations


def days_in(written: str, sources: Sequence[SaidText]) -> tuple[date, date] | None:
    """Return the first and last day of a written day, month or year, if it is that of a source or a source names it.

    >>> days_in("2026-11-03", [SaidText("I move tomorrow.", datetime(2026, 11, 2))])
    (datetime.date(2026, 11, 3), datetime.date(2026, 11, 3))
    >>> days_in("2026-11-05", [SaidText("I move tomorrow.", datetime(2026, 11, 2))])
    >>> days_in("2019", [SaidText("I lived in Rome until 2019.")])
    (datetime.date(2019, 1, 1), datetime.date(2019, 12, 31))
    """
    found = _DAY.fullmatch(written[:10])
    if found is None:
        return None
    year, month, day = (None if each is None else int(each) for each in found.groups())
    try:
        first = date(year or 1, month or 1, day or 1)
    except ValueError:
        return None
    if not date.min.year < first.year < date.max.year:  # room for time zones
        return None
    if not any(_names(each, year, month, day, first) for each in sources):
        return None
    last = first if day else date(first.year, month or 12, monthrange(first.year, month or 12)[1])
    return first, last


def _names(source: SaidText, year: int | None, month: int | None, day: int | None, first: date) -> bool:
    """Return whether a source is of a day, month or year, or names it."""
    said = None if source.time is None else source.time.date()

    def same(other: date) -> bool:
        return other.year == year and month in (None, other.month) and day in (None, other.day)

    if said is not None and same(said):
        return True
    if said is not None and day is not None and abs(first - said) <= _NEAR:
        weekdays = {_words().weekdays[word] for word in _plain(source.text) if word in _words().weekdays}
        if first.weekday() in weekdays:
            return True
    named = source.named(said or first)
    for begin, end in named.spans:
        if same(begin) or same(end) or begin <= first <= end:
            return True
    in_year = year in named.years if named.years else said is None or abs(first - said) <= _IN_A_YEAR
    if day is not None:
        return (first.month, first.day) in named.days and in_year
    if month is not None:
        return in_year and (month in named.months or any(each[0] == month for each in named.days))
    return year in named.years


def _numbers_of_days(statement: str, sources: Sequence[SaidText]) -> set[str]:
    """Return the numbers with which a statement writes days that its sources name."""
    times = [each.time for each in sources if each.time is not None]
    said = max(times).date() if times else date(2000, 1, 1)
    named = dates.named(statement, said)
    years = named.years or {said.year, said.year + 1, said.year - 1}
    written = []
    for year in sorted(years):
        days = [f"{year:04}-{month:02}-{day:02}" for month, day in sorted(named.days)]
        written += days or [f"{year:04}-{month:02}" for month in sorted(named.months)] or [f"{year:04}"]
    out: set[str] = set()
    for each in written[: 3 * _MOST_DAYS]:
        if days_in(each, sources) is not None:
            out |= {*each.split("-"), *(part.lstrip("0") for part in each.split("-")), each}
    return out


def _numbers(text: str) -> set[str]:
    """Return the numbers of a text, those in words too, in one form."""
    found = set()
    for each in _NUMBER.findall(folded(text)):
        if ":" in each:
            found.add(each.lstrip("0").removesuffix(":00") or "0")
        elif _THOUSANDS.fullmatch(each):
            found.add(re.sub("[.,]", "", each))
        else:
            found.add(each.replace(",", "."))
    return found | {_words().numbers[word] for word in _plain(text) if word in _words().numbers}


def _plain(text: str) -> list[str]:
    """Return the folded words of a text, divided at apostrophes; n-grams of scripts without blanks."""
    for sign, words in _SIGNS.items():
        if sign in text:
            text = text.replace(sign, words + " ")
    out: list[str] = []
    for run, unspaced in runs(text):
        if unspaced:
            out.extend(ngrams(run))
        else:
            out.extend(part for part in run.split("'") if len(part) > 1 or part.isdigit())
    return out


def _negates(text: str) -> bool:
    """Return whether a text negates something, or says that it is no more."""
    listed = _words().negations | _words().endings
    return _PAST.search(text) is not None or any(
        word in listed or word.endswith("n't") or word.startswith("n'") for word, _ in runs(text)
    )


def _dislikes(text: str) -> bool:
    return any(word in _words().aversions for word, _ in runs(text))


def _alike(word: str, other: str, language: str) -> bool:
    """Return whether two folded words that begin alike are forms of one."""
    if len(word) == len(other) >= _LEAST_COMMON and word[:-1] == other[:-1]:
        last = {word[-1], other[-1]}
        if (language == "es" and last <= _VOWELS) or (language == "fr" and last <= _ENDINGS_OF_VERBS):
            return True
    common = 0
    for one, two in zip(word, other, strict=False):
        if one != two:
            break
        common += 1
    return common >= _LEAST_COMMON and common >= _SHARE * max(len(word), len(other))
