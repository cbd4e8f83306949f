"""The words by which entities are recognised: first names, places, and what tells a kind of name.

The lists are short and of the most common ones; context decides about the others.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

#: The lists of words.txt by name: each begins with its name, and ends at an empty line.
_LISTS = {
    name: frozenset(words)
    for part in Path(__file__).with_name("words.txt").read_text("utf-8").split("\n\n")
    for name, *words in [part.split()]
}
#: Common first names of several countries, in lower case.
FIRST_NAMES = _LISTS["FIRST_NAMES"]
#: Countries, states and well-known cities, in lower case; words are joined by a blank.
PLACES = frozenset(name.replace("_", " ") for name in _LISTS["PLACES"])
#: Last words of the names of organisations, places, and of things that are neither.
ORGANIZATION_ENDS = _LISTS["ORGANIZATION_ENDS"]
ORGANIZATION_BEGINS = _LISTS["ORGANIZATION_BEGINS"]
PLACE_ENDS = _LISTS["PLACE_ENDS"]
PLACE_BEGINS = _LISTS["PLACE_BEGINS"]
NAME_ENDS = _LISTS["NAME_ENDS"]
#: What is written before the name of a person.
TITLES = _LISTS["TITLES"]
#: Words that are written between the words of a name.
CONNECTORS = _LISTS["CONNECTORS"]
#: What people call each other before a name: "my friend Ana".
RELATIVES = _LISTS["RELATIVES"]
#: What a person does, after the name.
PERSON_VERBS = _LISTS["PERSON_VERBS"]
GREETINGS = _LISTS["GREETINGS"]
#: Words before the name of a place, and before the name of an organisation.
PLACE_CUES = _LISTS["PLACE_CUES"]
MOVING = _LISTS["MOVING"]
WORK = _LISTS["WORK"]
#: Words that begin a sentence with a capital letter and are no names.
COMMON = _LISTS["COMMON"]
#: Languages, nationalities and other adjectives that have a capital letter and are no names.
ADJECTIVES = _LISTS["ADJECTIVES"]


# Patterns of what has a form of its own: addresses, handles, dates and quantities. All are linear in the text.
#
# Repeats are bounded, or possessive with nothing after them that can fail.

_MONTH = (
    "(?:january|february|march|april|may|june|july|august|september|october|november|december"
    "|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
_DAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day|mon|tues?|wed|thu|thurs|fri|sat|sun"
_NUMBER = "(?:[0-9]{1,3}(?:,[0-9]{3}){1,4}(?![0-9])|[0-9]{1,15})(?:\\.[0-9]{1,9})?"
_WORD_NUMBER = (
    "(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|hundred"
    "|a couple of|a few|several|half an?|an?)"
)
#: What a text must have for DATE, MONTH and QUANTITY to match, unless it has a digit.
MONTHS = frozenset(
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
DATE_WORDS = frozenset(
    "yesterday tomorrow tonight today last this next past previous coming ago monday tuesday wednesday thursday friday "
    "saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays".split()
)
NUMBER_WORDS = frozenset(
    "one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty hundred couple "
    "few several half a an".split()
)
_UNIT = (
    "(?:kilometers?|kilometres?|km/h|km|meters?|metres?|cm|mm|miles?|mph|feet|foot|ft|inch(?:es)?|yards?"
    "|kilograms?|kilos?|kg|grams?|mg|pounds?|lbs?|ounces?|oz|tons?|tonnes?|liters?|litres?|ml|gallons?|cups?"
    "|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|nights?|weeks?|months?|years?|decades?"
    "|dollars?|euros?|pounds|cents?|bucks|usd|eur|gbp|percent|per cent|degrees?|°c|°f"
    "|gb|mb|kb|tb|ghz|mhz|watts?|kw|kwh|calories|kcal|pages?|people|persons?)"
)
_CLOCK = "(?:[01]?[0-9]|2[0-3])(?::[0-5][0-9])(?: ?[ap]\\.?m\\.?)?|(?:1[0-2]|0?[1-9]) ?[ap]\\.?m\\b\\.?"
_ZONE = "(?: (?:utc|gmt|[a-z]{1,3}[sd]?t)\\b)?"


class Patterns(NamedTuple):
    """The patterns.

    Attributes:
        address: An e-mail address, or a URL.
        handle: A name after "@".
        date: A date, a time of day, or a day relative to today.
        year: A year after a preposition, as group 1.
        month: A month after a preposition, as group 1.
        quantity: A number with a unit or a currency.
    """

    address: re.Pattern[str]
    handle: re.Pattern[str]
    date: re.Pattern[str]
    year: re.Pattern[str]
    month: re.Pattern[str]
    quantity: re.Pattern[str]


@cache
def compiled() -> Patterns:
    """Return the patterns. They are compiled when a text is first read: it takes a while."""
    address = re.compile(
        r"(?i:(?<![\w.@/])(?:https?://|www\.)[^\s<>\"')\]]++"
        r"|(?<![\w.+-])[\w.+-]{1,64}@(?:[a-z0-9](?:[a-z0-9-]{0,62})\.){1,6}[a-z]{2,24}(?![\w-]))"
    )
    handle = re.compile(r"(?<![\w@./-])@[A-Za-z_][A-Za-z0-9_]{1,30}(?![\w@])")
    date = re.compile(
        rf"(?i:(?<![\w.-])(?:"
        rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?!-?[0-9])"
        rf"|{_MONTH}\.? (?:the )?[0-9]{{1,2}}(?:st|nd|rd|th)?(?:,? (?:19|20)[0-9]{{2}})?(?![0-9:])"
        rf"|(?:the )?[0-9]{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? (?:19|20)[0-9]{{2}})?\b"
        rf"|{_MONTH},? (?:19|20)[0-9]{{2}}\b"
        rf"|[0-9]{{1,2}}[./][0-9]{{1,2}}[./](?:19|20)?[0-9]{{2}}(?![0-9./])"
        rf"|the day (?:before yesterday|after tomorrow)|yesterday|tomorrow|tonight|today"
        rf"|(?:last|this|next|past|previous|coming) (?:week(?:end)?|month|year|summer|winter|spring|autumn|fall|night"
        rf"|{_DAY}|{_MONTH})\b"
        rf"|(?:{_WORD_NUMBER}|[0-9]{{1,3}}) (?:day|week|month|year|decade)s? ago\b"
        rf"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
        rf"|(?:{_CLOCK}){_ZONE}"
        rf"))"
    )
    #: A year after a preposition. Group 1 is the year.
    year = re.compile(r"(?i:\b(?:in|since|until|till|from|of|by|during|around) ((?:19|20)[0-9]{2})\b(?![.,]?[0-9-]))")
    #: A month after a preposition. Group 1 is the month.
    month = re.compile(rf"(?i:\b(?:in|since|until|till|by|during) ({_MONTH})\b)")
    quantity = re.compile(
        rf"(?i:(?<![\w.,-])(?:[$€£¥] ?{_NUMBER}(?: ?(?:k|m|bn|thousand|million|billion))?(?![0-9])"
        rf"|{_NUMBER} ?(?:%|[$€£¥])"
        rf"|(?:{_NUMBER}|{_WORD_NUMBER})(?: ?(?:thousand|million|billion))?[ -]?{_UNIT}\b(?! ago\b)(?:-old\b)?))"
    )
    return Patterns(address, handle, date, year, month, quantity)
