"""Dates that a question names, as far as they can be held against the day of a record.

A seam for languages: a function from a question to the dates that it names. English is the first.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_MONTHS = "january february march april may june july august september october november december".split()
_NUMBER = (
    {name: number for number, name in enumerate(_MONTHS, 1)}
    | {name[:3]: number for number, name in enumerate(_MONTHS, 1) if name != "may"}
    | {"sept": 9}
)
_MONTH = re.compile(r"\b(" + "|".join(sorted(_NUMBER, key=len, reverse=True)) + r")\b", re.IGNORECASE)
#: "may" is a month only beside a preposition or a number.
_MAY = re.compile(
    r"(?:\b(?:in|on|of|during|since|until|before|after)|\d(?:st|nd|rd|th)?,?)\s+may\b|\bmay\s+\d", re.IGNORECASE
)
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
_DAY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\b")


class Named(NamedTuple):
    """The months, years and days of the month that a question names; without a month there is nothing to hold on to."""

    months: frozenset[int]
    years: frozenset[int]
    days: frozenset[int]


def named(question: str) -> Named:
    """The dates that an English question names.

    >>> named("What did we buy on 7 May 2023?")
    Named(months=frozenset({5}), years=frozenset({2023}), days=frozenset({7}))
    """
    months = set()
    for found in _MONTH.finditer(question):
        number = _NUMBER[found.group().lower()]
        if number != 5 or _MAY.search(question):
            months.add(number)
    years = {int(found) for found in _YEAR.findall(question)}
    days = {int(found) for found in _DAY.findall(question) if 1 <= int(found) <= 31}
    return Named(frozenset(months), frozenset(years), frozenset(days))
