"""Phrases of time, by language: names of days and months, words for counts and units, and templates of phrases.

A template is a regular expression in which a blank stands for white space, `[...]` for an optional part, and `{slot}`
for the words of a slot (`date_matching`). Its rule says what the phrase means (`dates`). date_phrases.json has them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import NamedTuple


class Phrases(NamedTuple):
    """The phrases of a language.

    Attributes:
        near: Phrases of days by their distance from today: "yesterday -1; today 0".
        weekdays: The names of the days from Monday, those of a day separated by blanks, days by semicolons.
        months: The names of the months from January, likewise.
        counts: Words for numbers: "one 1; two 2".
        units: Words for units, each before its unit: "day days day; week weeks week".
        hours: Words for hours and minutes, likewise. Where `templates` count days back, they count these back, too.
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

    near: str
    weekdays: str
    months: str
    counts: str
    units: str
    hours: str
    which: str
    ordinals: str
    templates: str
    bounds: Mapping[str, str]
    day_suffix: str = ""
    unsure: str = ""
    introducing: str = ""
    shared: str = ""
    spaced: bool = True


def _phrases(name: str) -> Phrases:
    stated = _data[name]
    templates = "".join(f"        {line}\n" for line in stated["templates"])
    return Phrases(**{**stated, "templates": f"\n{templates}    "})


_data = json.loads((files("recollect.text") / "date_phrases.json").read_text("utf-8"))
ENGLISH, GERMAN, FRENCH = map(_phrases, ("ENGLISH", "GERMAN", "FRENCH"))
SPANISH, ITALIAN, PORTUGUESE = map(_phrases, ("SPANISH", "ITALIAN", "PORTUGUESE"))
DUTCH, CHINESE, JAPANESE = map(_phrases, ("DUTCH", "CHINESE", "JAPANESE"))
LANGUAGES: Mapping[str, Phrases] = {
    "en": ENGLISH,
    "de": GERMAN,
    "es": SPANISH,
    "fr": FRENCH,
    "it": ITALIAN,
    "ja": JAPANESE,
    "nl": DUTCH,
    "pt": PORTUGUESE,
    "zh": CHINESE,
}
