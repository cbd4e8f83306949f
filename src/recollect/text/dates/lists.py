"""Lists of times: "Monday and Friday", "3, 4 and 7 May", "May and June". The actions of `rules` that make them.

They return the members, of one category each; what is said of a list is said of each of them (`grammar`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from recollect.text.dates.grammar import PhraseWord
from recollect.text.dates.meanings import PhraseContext

#: The sets of categories of the members.
LISTED = [
    frozenset(each) for each in (("DAY",), ("DAY", "SUREDAY"), ("WEEKDAY",), ("ORD",), ("YEARLY",), ("YEAR",), ("NUM",))
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
