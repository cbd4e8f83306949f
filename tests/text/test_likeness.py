"""Likeness: edits, what may stand for what; compounds; words of letters and digits, emoji and ignorable characters."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.indexes.words.compounds import Related, related
from recollect.text.likeness import edits, may_stand_for
from recollect.text.words import stem, terms


def distance(one: str, other: str) -> int:
    """The optimal string alignment distance, by its definition, without a bound."""
    table = {(row, 0): row for row in range(len(one) + 1)} | {(0, column): column for column in range(len(other) + 1)}
    for row in range(1, len(one) + 1):
        for column in range(1, len(other) + 1):
            least = min(
                table[row - 1, column] + 1,
                table[row, column - 1] + 1,
                table[row - 1, column - 1] + (one[row - 1] != other[column - 1]),
            )
            if row > 1 and column > 1 and one[row - 1] == other[column - 2] and one[row - 2] == other[column - 1]:
                least = min(least, table[row - 2, column - 2] + 1)
            table[row, column] = least
    return table[len(one), len(other)]


@given(st.text("abc", max_size=8), st.text("abc", max_size=8), st.integers(0, 4))
def test_edits_are_the_optimal_string_alignment_up_to_a_bound(one: str, other: str, most: int) -> None:
    assert edits(one, other, most) == min(distance(one, other), most + 1)


@pytest.mark.parametrize(
    ("known", "unknown", "may"),
    [
        ("friday", "fridge", False),
        ("weekend", "weekly", False),
        ("table", "cable", True),
        ("friend", "frozen", False),
        ("kitchen", "chicken", False),
        ("fridge", "firdge", True),
        ("fridge", "gridge", True),
        ("boat", "bota", True),
        ("photograph", "photographer", True),
        ("apartment", "appartement", True),
        ("marathon", "martahno", True),
        ("necklace", "nekclaces", True),
    ],
)
def test_a_word_stands_for_a_misspelt_one_or_another_form(known: str, unknown: str, may: bool) -> None:
    assert may_stand_for(known, unknown) is may


def using(words: str, language: str) -> Callable[[str], bool]:
    known = {stem(word, language) for word in words.split()}
    return lambda term: term in known


@pytest.mark.parametrize(
    ("question", "language", "known", "expected"),
    [
        ("fahrradschloss", "de", "fahrrad schloss", {"fahrrad", "schloss"}),
        ("geburtstagskuchen", "de", "geburtstag kuchen", {"geburtstag", "kuchen"}),
        ("fahrradschloss", "de", "schloss", set()),  # both parts must occur
        ("schloss fahrrad", "de", "fahrradschloss", {"fahrradschloss"}),
        ("tag geburt", "de", "geburtstag", {"geburtstag"}),
        ("fietsslot", "nl", "fiets slot", {"fiets", "slot"}),
        ("bicyclelock", "en", "bicycle lock", set()),
    ],
)
def test_compounds_are_read_as_parts_and_parts_as_compounds_that_occur(
    question: str, language: str, known: str, expected: set[str]
) -> None:
    found = list(related(question.split(), language, using(known, language)))
    assert {each.term for each in found} == {stem(word, language) for word in expected}
    assert all(isinstance(each, Related) and each.term == stem(each.known, language) for each in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RAL6021", ["ral6021", "ral", "6021"]),
        ("10km", ["10km", "10", "km"]),
        ("10k", ["10k", "10"]),
        ("the 3rd", ["3rd"]),
        ("a1b2", ["a1b2"]),
        ("⛵️", ["⛵"]),
        ("❤️❤", ["❤", "❤"]),
        ("1️⃣", ["1"]),
        ("👍🏽", ["👍"]),
        ("🇩🇪", ["🇩🇪"]),
        ("👩\u200d🚀", ["👩", "🚀"]),
        ("\ufe0f", []),
        ("Fahr\u00adrad", ["fahrrad"]),
        ("co\u200bop", ["co", "op"]),
    ],
)
def test_signs_are_words_and_ignorable_characters_are_none(text: str, expected: list[str]) -> None:
    assert [term for term, _ in terms(text)] == expected
