"""Finds phrases of time in a text: compiles the templates of a language, and reads the values of their slots."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import NamedTuple

from recollect.text.date_phrases import LANGUAGES, Phrases

_SLOT = re.compile(r"\{(\w+)\}")
_LETTERS = re.compile(r"[^\W\d_]+")


class PhraseMatch(NamedTuple):
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


class Finder:
    """Finds the phrases of a language."""

    def __init__(self, phrases: Phrases) -> None:
        units_of, hours_of = _units(phrases.units), _units(phrases.hours)
        self._names: Mapping[str, Mapping[str, int | str]] = {
            "near": _pairs(phrases.near),
            "weekday": _numbered(phrases.weekdays, 0),
            "month": _numbered(phrases.months, 1),
            "count": _pairs(phrases.counts),
            "step": units_of,
            "unit": units_of,
            "hour": hours_of,
            "which": _pairs(phrases.which),
            "ordinal": _pairs(phrases.ordinals),
        }
        self._values = {slot: {plain(name): of for name, of in names.items()} for slot, names in self._names.items()}
        self._day_suffix = phrases.day_suffix
        templates = [line.strip().partition(": ")[::2] for line in phrases.templates.strip().splitlines()]
        back = [(rule, template) for rule, template in templates if rule in ("ago", "within")]
        self._templates = [(f"{rule} hours", template.replace("{step}", "{hour}")) for rule, template in back]
        self._templates += templates
        self._shared = frozenset(map(plain, phrases.shared.split()))
        self._edge = r"\b" if phrases.spaced else ""
        self._bounds = phrases.bounds
        self.spaced = phrases.spaced
        self._unsure = frozenset(map(plain, phrases.unsure.split()))
        self._introducing = (
            re.compile(rf"\b(?:{phrases.introducing})\s*$", re.IGNORECASE) if phrases.introducing else None
        )

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the words of which each phrase has at least one, or digits."""
        named = (self._values[slot] for slot in ("near", "weekday", "month", "step", "hour"))
        return frozenset(
            max(_LETTERS.findall(phrase), key=len, default=phrase) for values in named for phrase in values
        )

    @cached_property
    def sure_words(self) -> frozenset[str]:
        """Return those of them that mean a date in a question in any language."""
        return self.words - self._shared

    def find(self, text: str) -> Iterator[PhraseMatch]:
        """Yield the phrases of a text, from left to right."""
        for found in self._pattern.finditer(text):
            number = int((found.lastgroup or "t0")[1:])
            mark = f"_{number}"
            raw = {name: value for name, value in found.groupdict().items() if value and name.endswith(mark)}
            slots = {name[: -len(mark)]: self._value(name[: -len(mark)], value) for name, value in raw.items()}
            begin, end = found.span()
            if self._is_unsure(text[max(0, begin - 30) : begin], raw, slots):
                continue
            bound, first, last = self._bound(text, begin, end)
            rule = self._templates[number][0]
            if rule.endswith("?") and not bound:
                continue
            yield PhraseMatch(rule.rstrip("?"), slots, bound, text[first:last], (begin, end))

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
            and (self._introducing is None or self._introducing.search(before) is None)
        )

    def _bound(self, text: str, begin: int, end: int) -> tuple[str, int, int]:
        for bound, (before, after) in self._bound_patterns.items():
            if before is not None and (found := before.search(text, max(0, begin - 30), begin)):
                if self._of_a_unit.search(text, max(0, found.start() - 30), found.start()):
                    break  # "the week before 3 May" is said on that day
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


def _units(written: str) -> dict[str, int | str]:
    """Parse "day days day; week weeks week": the last of each group is the unit."""
    return {word: unit for *words, unit in map(str.split, written.split(";")) for word in words}


def _pairs(written: str) -> dict[str, int | str]:
    """Parse "yesterday -1; the day before yesterday -2"."""
    parts = (part.strip().rpartition(" ") for part in written.split(";") if part.strip())
    return {phrase: int(number) for phrase, _, number in parts}


def _numbered(written: str, first: int) -> dict[str, int | str]:
    return {name: number for number, names in enumerate(written.split(";"), first) for name in names.split()}


@cache
def finder(language: str) -> Finder:
    """Return the finder of a language in `LANGUAGES`."""
    return Finder(LANGUAGES[language])
