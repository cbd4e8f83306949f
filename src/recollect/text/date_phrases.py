"""Phrases of time, by language: names of days and months, words for counts and units, and templates of phrases.

A template is a regular expression in which a blank stands for white space, `[...]` for an optional part, and `{slot}`
for the words of a slot. Its rule says what the phrase means (`recollect.text.dates`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

_SLOT = re.compile(r"\{(\w+)\}")


_LETTERS = re.compile(r"[^\W\d_]+")


class Match(NamedTuple):
    """A phrase in a text.

    Attributes:
        rule: What it means.
        slots: The values of its slots.
        bound: "since", "before" or "after" if a word beside it makes it a bound of a span, else "".
        text: The phrase as it is written, with that word.
        span: Where it begins and ends, without that word.
    """

    rule: str
    slots: Mapping[str, int | str]
    bound: str
    text: str
    span: tuple[int, int]


class Phrases:
    """The phrases of a language.

    Args:
        near: Phrases of days by their distance from today: "yesterday -1; today 0".
        weekdays: The names of the days from Monday, those of a day separated by blanks, days by semicolons.
        months: The names of the months from January, likewise.
        counts: Words for numbers: "one 1; two 2".
        units: Words for units, each before its unit: "day days day; week weeks week".
        which: Words for the last, this and the next: "last -1; this 0; next 1".
        ordinals: Words for the weeks of a month, from 0, and -1 for the last.
        templates: A line for each template, with its rule before a colon. Where a question mark follows the rule, the
            phrase counts only as a bound.
        bounds: Expressions before a phrase ("...") or after it ("$...") that make it a bound of a span.
        day_suffix: An expression for what may follow the number of a day.
        unsure: Names of months that are ordinary words too, and count only after `introducing` or beside a number.
        introducing: An expression for the words before such names.
        shared: Words that mean something else in other languages: only a question in this one names a date by them.
        spaced: Whether words are separated by blanks.
    """

    def __init__(
        self,
        *,
        near: str,
        weekdays: str,
        months: str,
        counts: str,
        units: str,
        which: str,
        ordinals: str,
        templates: str,
        bounds: Mapping[str, str],
        day_suffix: str = "",
        unsure: str = "",
        introducing: str = "",
        shared: str = "",
        spaced: bool = True,
    ) -> None:
        units_of: dict[str, int | str] = {
            word: unit for *words, unit in map(str.split, units.split(";")) for word in words
        }
        self._names: Mapping[str, Mapping[str, int | str]] = {
            "near": _pairs(near),
            "weekday": _numbered(weekdays, 0),
            "month": _numbered(months, 1),
            "count": _pairs(counts),
            "step": units_of,
            "unit": units_of,
            "which": _pairs(which),
            "ordinal": _pairs(ordinals),
        }
        self._values = {slot: {plain(name): of for name, of in names.items()} for slot, names in self._names.items()}
        self._day_suffix = day_suffix
        self._templates = [line.strip().partition(": ")[::2] for line in templates.strip().splitlines()]
        self._shared = frozenset(map(plain, shared.split()))
        self._edge = r"\b" if spaced else ""
        self._bounds = bounds
        self._unsure = frozenset(map(plain, unsure.split()))
        self._introducing = re.compile(rf"\b(?:{introducing})\s*$", re.IGNORECASE) if introducing else None

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the words of which each phrase has at least one, or digits."""
        named = (self._values[slot] for slot in ("near", "weekday", "month", "step"))
        return frozenset(max(_LETTERS.findall(phrase), key=len) for values in named for phrase in values)

    @cached_property
    def sure_words(self) -> frozenset[str]:
        """Return those of them that mean a date in a question in any language."""
        return self.words - self._shared

    def find(self, text: str) -> Iterator[Match]:
        """Yield the phrases of a text, from left to right."""
        for found in self._pattern.finditer(text):
            number = int((found.lastgroup or "t0")[1:])
            mark = f"_{number}"
            raw = {name: value for name, value in found.groupdict().items() if value and name.endswith(mark)}
            slots = {name[: -len(mark)]: self._value(name[: -len(mark)], value) for name, value in raw.items()}
            begin, end = found.span()
            if self._is_unsure(text[:begin], raw, slots):
                continue
            bound, first, last = self._bound(text, begin, end)
            rule = self._templates[number][0]
            if rule.endswith("?") and not bound:
                continue
            yield Match(rule.rstrip("?"), slots, bound, text[first:last], (begin, end))

    def _value(self, slot: str, written: str) -> int | str:
        slot = slot.rstrip("2")
        known = self._values.get(slot, {})
        value = known.get(plain(" ".join(written.split())))
        if value is not None:
            return value
        return int(re.match(r"\d+", written)[0])  # type: ignore[index]

    def _is_unsure(self, before: str, raw: Mapping[str, str], slots: Mapping[str, int | str]) -> bool:
        months = [value for name, value in raw.items() if name.startswith("month")]
        return (
            bool(months)
            and len(slots) == 1
            and plain(months[0]) in self._unsure
            and (self._introducing is None or self._introducing.search(before[-30:]) is None)
        )

    def _bound(self, text: str, begin: int, end: int) -> tuple[str, int, int]:
        for bound, (before, after) in self._bound_patterns.items():
            if before is not None and (found := before.search(text, max(0, begin - 30), begin)):
                if self._of_a_unit.search(text, max(0, found.start() - 30), found.start()):
                    break  # "the week before 3 May" is told of on that day
                return bound, found.start(), end
            if after is not None and (found := after.match(text, end)):
                return bound, begin, found.end()
        return "", begin, end

    @cached_property
    def _of_a_unit(self) -> re.Pattern[str]:
        return re.compile(
            rf"{self._edge}(?:{self._expression('step')}|{self._expression('weekday')})\s*$", re.IGNORECASE
        )

    @cached_property
    def _bound_patterns(self) -> dict[str, tuple[re.Pattern[str] | None, re.Pattern[str] | None]]:
        out = {}
        for bound, written in self._bounds.items():
            before, _, after = written.partition("$")
            out[bound] = (
                re.compile(rf"{self._edge}(?:{_spaced(before)})\s*$", re.IGNORECASE) if before else None,
                re.compile(rf"\s*(?:{_spaced(after)})", re.IGNORECASE) if after else None,
            )
        return out

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = (f"(?P<t{at}>{self._compiled(template, at)})" for at, (_, template) in enumerate(self._templates))
        return re.compile(f"{self._edge}(?:{'|'.join(parts)})(?!\\w)" if self._edge else "|".join(parts), re.IGNORECASE)

    def _compiled(self, template: str, at: int) -> str:
        def slot(found: re.Match[str]) -> str:
            name = found[1]
            return f"(?P<{name}_{at}>{self._expression(name.rstrip('2'))})"

        return _SLOT.sub(slot, _spaced(template).replace("[", "(?:").replace("]", ")?"))

    def _expression(self, slot: str) -> str:
        if slot == "year":
            return r"(?:19|20)\d\d"
        if slot == "day":
            return rf"(?:[12]\d|3[01]|0?[1-9])(?!\d){self._day_suffix}"
        names = sorted(
            {each for name in self._names[slot] for each in (name, plain(name))}, key=lambda each: (-len(each), each)
        )
        out = "|".join(re.escape(name).replace("\\ ", r"\s+") for name in names)
        return rf"\d{{1,3}}|{out}" if slot == "count" else out


def plain(word: str) -> str:
    """Return a word in lower case without accents: people leave them out."""
    parts = unicodedata.normalize("NFD", word.casefold())
    return unicodedata.normalize("NFC", "".join(each for each in parts if not "\u0300" <= each <= "\u036f"))


def _spaced(template: str) -> str:
    return template.replace(" ", r"\s+")


def _pairs(written: str) -> dict[str, int | str]:
    """Parse "yesterday -1; the day before yesterday -2"."""
    parts = (part.strip().rpartition(" ") for part in written.split(";") if part.strip())
    return {phrase: int(number) for phrase, _, number in parts}


def _numbered(written: str, first: int) -> dict[str, int | str]:
    return {name: number for number, names in enumerate(written.split(";"), first) for name in names.split()}


ENGLISH = Phrases(
    near="the day before yesterday -2; yesterday -1; last night -1; today 0; this morning 0; this afternoon 0; "
    "this evening 0; tonight 0; tomorrow 1; the day after tomorrow 2",
    weekdays="monday mon; tuesday tue tues; wednesday wed; thursday thu thurs; friday fri; saturday sat; sunday sun",
    months="january jan; february feb; march mar; april apr; may; june jun; july jul; august aug; "
    "september sep sept; october oct; november nov; december dec",
    counts="a 1; an 1; one 1; two 2; three 3; four 4; five 5; six 6; seven 7; eight 8; nine 9; ten 10; "
    "a couple of 2; a few 3",
    units="day days day; week weeks week; fortnight fortnights fortnight; weekend weekends weekend; "
    "month months month; year years year",
    which="last -1; past -1; previous -1; this 0; next 1",
    ordinals="first 0; 1st 0; second 1; 2nd 1; third 2; 3rd 2; fourth 3; 4th 3; last -1",
    day_suffix="(?:st|nd|rd|th)?",
    unsure="may march",
    introducing="in|on|of|during|since|until|before|after",
    bounds={"since": "since(?: the)?", "before": "before(?: the)?", "after": "after(?: the)?"},
    templates=r"""
        near: {near}
        week of: [the ]{ordinal} week of {month}[,? {year}]
        ago: {count} {step} ago
        within: [(?:in|over|during|for) ]the (?:last|past) {count} {step}
        which day: {which} {weekday}
        which: {which} {unit}
        between: (?:between|from) [the ]{day} [[of ]{month} ](?:and|to|until|till) [the ]{day2} [of ]{month2}[,? {year}]
        between: (?:between|from) {month} [the ]{day} (?:and|to|until|till) [{month2} ][the ]{day2}[,? {year}]
        weekday: on {weekday}
        weekend: (?:at|on|over|during) the weekend
        date: [on ][the ]{day} [of ]{month}[,? {year}]
        date: {month}\.? [the ]{day}[,? {year}]
        weekday?: {weekday}
        day?: the {day}(?<=st|nd|rd|th)(?!\s+of\b)
        day: on the {day}(?<=st|nd|rd|th)(?!\s+of\b)
        month: {month}[,? {year}]
        year: {year}
    """,
)
GERMAN = Phrases(
    near="vorgestern -2; gestern -1; gestern abend -1; gestern früh -1; letzte nacht -1; heute 0; heute morgen 0; "
    "heute früh 0; heute abend 0; morgen 1; übermorgen 2",
    weekdays="montag; dienstag; mittwoch; donnerstag; freitag; samstag sonnabend; sonntag",
    months="januar jänner jan; februar feb; märz; april apr; mai; juni jun; juli jul; august aug; september sept; "
    "oktober okt; november nov; dezember dez",
    counts="einem 1; einer 1; ein 1; eine 1; zwei 2; drei 3; vier 4; fünf 5; sechs 6; sieben 7; acht 8; neun 9; "
    "zehn 10; ein paar 3; einigen 3; einige 3",
    units="tag tage tagen day; woche wochen week; wochenende wochenenden weekend; monat monate monaten month; "
    "jahr jahre jahren year",
    which="letzte -1; letzten -1; letzter -1; letztes -1; vergangene -1; vergangenen -1; vergangenes -1; vorige -1; "
    "vorigen -1; voriges -1; diese 0; diesen 0; dieser 0; dieses 0; diesem 0; nächste 1; nächsten 1; nächstes 1; "
    "kommende 1; kommenden 1; kommendes 1",
    ordinals="erste 0; ersten 0; zweite 1; zweiten 1; dritte 2; dritten 2; vierte 3; vierten 3; letzte -1; letzten -1",
    day_suffix=r"(?:\.|ten|te)?",
    shared="morgen tag jan",
    bounds={"since": "seit(?: dem| der)?", "before": "vor(?: dem| der)?", "after": "nach(?: dem| der)?"},
    templates=r"""
        ago: vor {count} {step}
        within: (?:in|während) den (?:letzten|vergangenen) {count} {step}
        near: {near}
        week of: [in ][der ]{ordinal} woche (?:im|des) {month}s?[ {year}]
        which day: [am ]{which} {weekday}
        which: [in |am |im ][der ]{which} {unit}
        between: zwischen [dem ]{day} [{month} ]und [dem ]{day2} {month2}[ {year}]
        between: vom {day} [{month} ]bis [zum ]{day2} {month2}[ {year}]
        weekday: am {weekday}(?:abend|morgen|nachmittag|vormittag|mittag)?
        weekday?: {weekday}
        weekend: am wochenende
        date: [am ]{day} {month}[ {year}]
        day: am {day}(?<=\.|n|e)(?!\s*\w)
        day?: {day}(?<=\.|n|e)(?!\s*\w)
        month: {month}[ {year}]
        year: {year}
    """,
)
FRENCH = Phrases(
    near="avant-hier -2; hier -1; hier soir -1; hier matin -1; cette nuit -1; la nuit dernière -1; aujourd'hui 0; "
    "ce matin 0; cet après-midi 0; ce soir 0; demain 1; après-demain 2",
    weekdays="lundi; mardi; mercredi; jeudi; vendredi; samedi; dimanche",
    months="janvier; février; mars; avril; mai; juin; juillet; août; septembre; octobre; novembre; décembre",
    counts="un 1; une 1; deux 2; trois 3; quatre 4; cinq 5; six 6; sept 7; huit 8; neuf 9; dix 10; quinze 15; "
    "quelques 3",
    units="jour jours day; semaine semaines week; quinzaine fortnight; week-end weekend weekend; mois month; "
    "an ans année années year",
    which="dernière -1; dernier -1; passée -1; passé -1; ce 0; cet 0; cette 0; prochaine 1; prochain 1",
    ordinals="première 0; deuxième 1; seconde 1; troisième 2; quatrième 3; dernière -1",
    day_suffix="(?:er)?",
    unsure="mars",
    shared="hier an ans mars sept jour",
    introducing="en|de|du|depuis|avant|après|mois de",
    bounds={"since": "depuis(?: le)?", "before": "avant(?: le)?", "after": "après(?: le)?|apres(?: le)?"},
    templates=r"""
        ago: il y a {count} {step}
        within: (?:ces|les|des) {count} derni(?:è|e)re?s {step}
        within: (?:ces|les) derni(?:è|e)re?s {count} {step}
        near: {near}
        week of: [la ]{ordinal} semaine d(?:e |')[mois de ]{month}[ {year}]
        which day: [le ]{weekday} {which}
        which: [la |le |l']{unit} {which}
        which: (?:cette|ce|cet) {unit}
        between: entre le {day} [{month} ]et le {day2} {month2}[ {year}]
        between: du {day} [{month} ]au {day2} {month2}[ {year}]
        weekday: (?:le|ce) {weekday}
        weekday?: {weekday}
        weekend: (?:le|ce|au|pendant le) week-?end
        date: [le ]{day} {month}[ {year}]
        day: le {day}(?!\s+\w)
        day?: le {day}(?!\s+\w)
        month: {month}[ {year}]
        year: {year}
    """,
)
LANGUAGES: Mapping[str, Phrases] = {"en": ENGLISH, "de": GERMAN, "fr": FRENCH}
