"""Lists of times: "Monday and Friday", "3, 4 and 7 May", "May and June". The actions of `rules` that make them.

They return the members, of one category each; what is said of a list is said of each of them (`grammar`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any

from recollect.text.dates import spans
from recollect.text.dates.grammar import PhraseWord
from recollect.text.dates.meanings import PhraseContext, as_fixed
from recollect.text.dates.parts import nth
from recollect.text.dates.times import Fixed, Recurring

#: The sets of categories of the members.
LISTED = [
    frozenset(each)
    for each in (("DAY",), ("DAY", "SUREDAY"), ("WEEKDAY",), ("ORD",), ("YEARLY",), ("YEAR",), ("NUM",), ("PARTWORD",))
]


def of(*categories: str) -> Callable[..., Sequence[Mapping[str, Any]]]:
    """Return an action that makes a list of words with some categories."""

    def listed(context: PhraseContext, *words: PhraseWord) -> Sequence[Mapping[str, Any]]:
        members = [member.of for word in words for member in word.members]
        return [{each: member[each] for each in categories} for member in members]

    return listed


def yearlies(context: PhraseContext, first: PhraseWord, last: PhraseWord) -> Sequence[Mapping[str, Any]]:
    """Read "May and June", "3 May and 4 June": times of one kind."""
    members = [member.of for word in (first, last) for member in word.members]
    if len({member["YEARLY"].unit for member in members}) > 1:
        return ()
    day = {"DATE": None} if all("DATE" in member for member in members) else {}
    return [{"YEARLY": member["YEARLY"], **day} for member in members]


def weekdays_in_year(
    context: PhraseContext, weekday: PhraseWord, day: PhraseWord, year: PhraseWord
) -> Sequence[Mapping[str, Any]]:
    """Read "Friday the 13th in 2025": all of that year."""
    found = [as_fixed(time) for time in days_of_year(weekday.of["WEEKDAY"], day.of["DAY"], year.of["YEAR"])]
    return [each for each in found if each] or [{"NODATE": None}]


def days_of_year(weekday: int, number: int, year: int) -> list[Fixed]:
    """Return the days of a year with a name and a number in their month."""
    found = []
    for month in range(1, 13):
        with suppress(ValueError):
            at = date(year, month, number)
            if at.weekday() == weekday:
                found.append(Fixed(spans.one(at), "day", words=True))
    return found


def nths(context: PhraseContext, *words: PhraseWord) -> Sequence[Mapping[str, Any]]:
    """Read "the first week and the last week of May"."""
    *parts, time = words
    found = [nth(context, parts[at], parts[at + 1], time) for at in (0, 2)]
    return [each for each in found if each] if all(found) and not any(word.others for word in words) else ()


def before_a_year(context: PhraseContext, first: PhraseWord, last: PhraseWord) -> Sequence[Mapping[str, Any]]:
    """Read "late May and early June 2025": both are of that year."""
    fixed: Fixed = last.of["FIXED"]
    if last.others or not (fixed.words or fixed.year):
        return ()
    end = fixed.span[1]
    return [_in_year(member.of["YEARLY"], end.year, fixed) for member in first.members] + [_without_number(fixed)]


def after_a_year(context: PhraseContext, first: PhraseWord, last: PhraseWord) -> Sequence[Mapping[str, Any]]:
    """Read "2025年五月底和六月初" in languages in which the year is said first."""
    fixed: Fixed = first.of["FIXED"]
    if "prepositions" in context.flags or first.others or not (fixed.words or fixed.year):
        return ()
    year = fixed.span[0].year
    return [_without_number(fixed)] + [_without_number(member.of["YEARLY"].in_year(year)) for member in last.members]


def _in_year(time: Recurring, year: int, fixed: Fixed) -> Mapping[str, Any]:
    """Return a time of each year in a year, or in the one before if it would be after another time."""
    found = time.in_year(year)
    return _without_number(found if found.span[0] <= fixed.span[1] else time.in_year(year - 1))


def _without_number(fixed: Fixed) -> Mapping[str, Any]:
    return {"FIXED": fixed._replace(year=None, month=None, day=None, words=True)}
