"""The rule-based extraction of entities and attributes: what is found, what is not, and that it is linear."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some
from tests.policies.linear_patterns import faults

from bench import entities as entity_bench
from recollect.text.attributes import same_value, stated
from recollect.text.entities import TYPES, entities
from recollect.text.entities import tables as patterns

FOUND = [
    ("I met Ada Lovelace in Oslo.", [("Ada Lovelace", "person"), ("Oslo", "place")]),
    ("Thanks, Kim! Dr. Okafor called.", [("Kim", "person"), ("Okafor", "person")]),
    ("my friend Zorblax moved to Quuxville", [("Zorblax", "person"), ("Quuxville", "place")]),
    ("She works at Frobnicate and studied at the University of Bergen.", [
        ("Frobnicate", "organization"), ("University of Bergen", "organization")]),
    ("Acme Corp and Initech GmbH merged", [("Acme Corp", "organization"), ("Initech GmbH", "organization")]),
    ("We stayed at the Coral Bay Hotel near Lake Garda", [("Coral Bay Hotel", "place"), ("Lake Garda", "place")]),
    ("Ana's brother reads Moby Dick", [("Ana", "person"), ("Moby Dick", "name")]),
    ("on March 3, 2026 at 10:30, or 2026-03-04", [("2026-03-03", "date"), ("10:30", "date"), ("2026-03-04", "date")]),
    ("yesterday, last week, two years ago, in 2019, in May", [
        ("yesterday", "date"), ("last week", "date"), ("two years ago", "date"), ("2019", "date"), ("May", "date")]),
    ("It cost $1,250.50, 20 % more, for 3 kg and two hours", [
        ("$1,250.50", "quantity"), ("20 %", "quantity"), ("3 kg", "quantity"), ("two hours", "quantity")]),
    ("ask @ada_l or ada@example.com, see https://example.com/a?b=1.", [
        ("ada_l", "handle"), ("ada@example.com", "address"), ("https://example.com/a?b=1", "address")]),
    ("我喜欢 2026-03-04 和 ada@example.com", [("2026-03-04", "date"), ("ada@example.com", "address")]),
]  # fmt: skip
NOTHING = [
    "The weather is nice. We stayed at home.",
    "I'm fine. I'll call. It's OK!",
    "HELLO WORLD",
    "He speaks French and German, and likes Italian food.",
    "What do you mean? Nothing. Really!",
    "",
    " \n\t ",
    "一 二 三",
]


@pytest.mark.parametrize(("text", "expected"), FOUND, ids=[text[:30] for text, _ in FOUND])
def test_entities_are_found_with_their_types(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(each.name, each.type) for each in entities(text)] == expected


@pytest.mark.parametrize("text", NOTHING)
def test_capital_letters_do_not_make_an_entity(text: str) -> None:
    assert entities(text) == []


def test_the_speaker_is_known_by_name_and_by_a_short_form() -> None:
    assert [each.type for each in entities("I, Xanthippe, say: call me Xan.", speaker="Xanthippe Quux")] == [
        "person"
    ] * 2


@settings(max_examples=some(300))
@given(text=st.text(max_size=200) | st.lists(st.sampled_from([text for text, _ in FOUND]), max_size=3).map(" ".join))
def test_every_mention_is_where_it_says_and_none_overlap(text: str) -> None:
    found = entities(text)
    assert all(each.text == text[each.start : each.end] and each.type in TYPES for each in found)
    assert all(one.end <= other.start for one, other in pairwise(found))


@pytest.mark.parametrize("name", patterns.Patterns._fields)
def test_no_pattern_of_entities_can_take_more_than_linear_time(name: str) -> None:
    pattern: re.Pattern[str] = getattr(patterns.compiled(), name)
    assert faults(pattern.pattern) == []


def test_hostile_texts_are_read() -> None:
    for text in ("A " * 5000, "\ud800" * 100, "@" * 5000, "1," * 5000, "Mr. " * 2000, "\0" * 100):
        entities(text)


STATED = [
    ("I live in Oslo now.", ("home", "Oslo", "Ana")),
    ("We heard that Bob Lee lives in Rome, Italy.", ("home", "Rome, Italy", "Bob Lee")),
    ("I've just moved to New York!", ("home", "New York", "Ana")),
    ("I work as a nurse, and it is hard.", ("job", "nurse", "Ana")),
    ("I'm a software engineer.", ("job", "software engineer", "Ana")),
    ("Bob works for Acme Corp.", ("employer", "Acme Corp", "Bob")),
    ("My favorite color is dark blue.", ("favourite colour", "dark blue", "Ana")),
    ("My phone number is 555-0100.", ("phone number", "555-0100", "Ana")),
    ("I'm 34 years old.", ("age", "34", "Ana")),
    ("My sister's name is Eva.", ("name", "Eva", "Ana's sister")),
    ("The deadline is March 3.", ("deadline", "March 3", None)),
    ("I'm married to Kim.", ("partner", "Kim", "Ana")),
    ("I earn $50,000 a year.", ("income", "$50,000", "Ana")),
    ("I live in Oslo, can you help me?", ("home", "Oslo", "Ana")),
]


@pytest.mark.parametrize(("text", "expected"), STATED, ids=[text for text, _ in STATED])
def test_attributes_are_found_with_their_subjects(text: str, expected: tuple[Any, ...]) -> None:
    (fact,) = stated(text, speaker="Ana")
    assert fact[:3] == expected
    assert text[fact.start : fact.end].strip()


@pytest.mark.parametrize(
    "text",
    [
        "Do I live in Oslo?",
        "I used to live in Oslo.",
        "I lived in Oslo.",
        "If I live in Oslo, I pay more.",
        "I might move to Rome.",
        "I do not live in Oslo.",
        "I'd love to live in Oslo.",
        "I plan to work as a nurse.",
        "Bob said I live in Oslo.",
        "My friends are Kim and Eva.",
        "My favorite color is?",
        "I was 34 years old.",
        "I live in fear.",
        "The name is important.",
    ],
)
def test_what_is_uncertain_past_or_multiple_states_nothing(text: str) -> None:
    assert stated(text, speaker="Ana") == []


def test_without_a_speaker_the_first_person_is_no_entity() -> None:
    assert [fact.subject for fact in stated("I live in Oslo. My dog's name is Rex.")] == [None, None]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Oslo", "oslo", True),
        ("Oslo", "Oslo, Norway", True),
        ("the blue one", "blue one", True),
        ("March 3", "3 March 2026", True),
        ("3rd of March 2025", "March 3, 2026", False),
        ("$50,000", "50k", True),
        ("about $50,000", "$50,000", True),
        ("34", "35", False),
        ("Oslo", "Bergen", False),
        ("Eva", "Eve", False),
        ("", "x", False),
    ],
)
def test_values_are_compared_by_their_meaning(one: str, other: str, same: bool) -> None:
    assert same_value(one, other) is same
    assert same_value(other, one) is same


@settings(max_examples=some(200))
@given(text=st.text(max_size=200) | st.lists(st.sampled_from([text for text, _ in STATED]), max_size=4).map(" ".join))
def test_any_text_can_be_read_for_attributes(text: str) -> None:
    for fact in stated(text, speaker="Ana"):
        assert fact.value in text
        assert fact.attribute


@pytest.mark.parametrize("name", ["open", "held-out"])
def test_german_nouns_do_not_flood_the_entities(name: str) -> None:
    """Of what was found in these texts before nouns were told from names, a third were names."""
    found = entity_bench.names_in_german(name)
    assert found.overlapping >= 0.8 * found.found > 0
    assert found.right >= 0.5 * found.labelled


def test_without_the_rules_of_german_the_measure_shows_the_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.text.entities.german.is_german", lambda text, words: False)
    found = entity_bench.names_in_german("held-out")
    assert found.overlapping < 0.5 * found.found
