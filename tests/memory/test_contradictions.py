"""Contradictions: which facts disagree, which only seem to, and superseding on request."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.errors import ConflictError, InvalidArgumentError, UnknownRecordError
from recollect.memory.manager.contradictions import Contradiction

START = datetime(2026, 1, 1, tzinfo=UTC)

pytestmark = pytest.mark.stores(clock=lambda: START + timedelta(days=100))


def fact(memory: Memory, text: str, day: int, **fields: Any) -> recollect.Record:
    fields = {"user": "ana", **fields}
    return memory.record_user_fact(text, time=START + timedelta(days=day), **fields)


DISAGREE = [
    ("I live in Rome", "I live in Oslo now", "home", ("Rome", "Oslo")),
    ("lives in Rome", "I've moved to Oslo", "home", ("Rome", "Oslo")),
    ("My favorite color is blue", "my favourite colour is green", "favourite colour", ("blue", "green")),
    ("My sister's name is Eva", "My sister's name is Ida", "name", ("Eva", "Ida")),
    ("works for Acme Corp", "I work at Initech", "employer", ("Acme Corp", "Initech")),
]
AGREE = [
    ("I live in Oslo", "I live in Oslo, Norway"),
    ("I live in Rome", "I might move to Oslo"),
    ("I live in Rome", "Do I live in Oslo?"),
    ("I live in Rome", "Bob Lee lives in Oslo"),
    ("My favorite color is blue", "My favorite food is fish"),
    ("My sister's name is Eva", "My brother's name is Ida"),
    ("I like tea", "I like coffee"),
]


@pytest.mark.parametrize(("older", "newer", "attribute", "values"), DISAGREE)
def test_another_value_of_the_same_attribute_is_reported(
    older: str, newer: str, attribute: str, values: tuple[str, str], memory: Memory
) -> None:
    second = fact(memory, newer, 2)
    first = fact(memory, older, 1)
    root = memory.root
    (found,) = memory.contradictions()
    assert (found.attribute, found.values) == (attribute, values)
    assert (found.older, found.newer) == (first, second)
    assert memory.root == root
    assert found.to_json()["values"] == list(values)


@pytest.mark.parametrize(("one", "other"), AGREE)
def test_what_only_resembles_a_contradiction_is_none(one: str, other: str, memory: Memory) -> None:
    fact(memory, one, 1)
    fact(memory, other, 2)
    assert memory.contradictions() == []


def test_facts_of_different_users_agents_and_entities_do_not_disagree(memory: Memory) -> None:
    fact(memory, "I live in Rome", 1)
    fact(memory, "I live in Oslo", 2, user="bob")
    fact(memory, "I live in Paris", 3, agent="helper")
    memory.record_entity_fact("ada", "Ada", "lives in London", user="ana")
    memory.record_entity_fact("bea", "Bea", "lives in Milan", user="ana")
    assert memory.contradictions() == []
    memory.record_entity_fact("ada", "Ada", "lives in Turin", user="ana")
    (found,) = memory.contradictions()
    assert (found.subject, found.values) == ("ada", ("London", "Turin"))


def test_turns_state_facts_of_their_speaker_and_assistants_state_none(memory: Memory) -> None:
    messages = [
        {"role": "user", "content": "I live in Rome."},
        {"role": "assistant", "content": "I live in Oslo."},
        {"role": "user", "content": "I've just moved to Paris!"},
    ]
    memory.add_messages(messages, user="ana", conversation="chat")
    fact(memory, "lives in Lima", 101)
    assert {each.values for each in memory.contradictions()} == {("Rome", "Lima"), ("Paris", "Lima")}


def test_an_attribute_that_is_given_needs_no_rule(memory: Memory) -> None:
    for day, value in enumerate(("window", "aisle")):
        fact(memory, f"the seat is {value}", day, metadata={"attribute": "seat", "value": value})
    fact(memory, "sits at the window", 5, metadata={"attribute": "seat", "value": "Window"})
    assert [each.values for each in memory.contradictions()] == [("aisle", "Window")]


def test_the_newest_is_compared_with_each_earlier_one(memory: Memory) -> None:
    for day, city in enumerate(("Rome", "Oslo", "Rome", "Lima")):
        fact(memory, f"I live in {city}{'.' * day}", day)
    assert [each.values for each in memory.contradictions()] == [("Rome", "Lima"), ("Oslo", "Lima"), ("Rome", "Lima")]


def test_resolving_supersedes_the_older_one_and_revert_takes_it_back(memory: Memory) -> None:
    older, newer = fact(memory, "I live in Rome", 1), fact(memory, "I live in Oslo", 2)
    (found,) = memory.contradictions()
    root, seq = memory.root, memory.seq
    resolved = memory.resolve(found)
    assert (resolved.id, resolved.supersedes) == (newer.id, (older.id,))
    ended = memory.get(older.id)
    assert ended is not None
    assert ended.valid_to == newer.time
    assert memory.seq == seq + 1
    assert memory.contradictions() == []
    assert [record.id for record in memory.find(f.valid_at(START + timedelta(days=50)))] == [newer.id]
    memory.revert(seq + 1)
    assert memory.root == root
    assert memory.contradictions() == [found]


def test_resolving_what_was_changed_meanwhile_changes_nothing(memory: Memory) -> None:
    older, newer = fact(memory, "I live in Rome", 1), fact(memory, "I live in Oslo", 2)
    (found,) = memory.contradictions()
    memory.update(newer.id, importance=1.0)
    with pytest.raises(ConflictError):
        memory.resolve(found)
    assert memory.get(older.id) == older
    (found,) = memory.contradictions()
    with pytest.raises(ConflictError), memory.batch() as batch:
        memory_is_stale = Contradiction(found.subject, found.attribute, found.older, newer, found.values)
        batch.resolve(memory_is_stale)
    assert memory.get(older.id) == older
    memory.forget(older.id)
    with pytest.raises((ConflictError, UnknownRecordError)):
        memory.resolve(found)


@pytest.mark.parametrize("wrong", [None, "x", 7])
def test_only_a_contradiction_can_be_resolved(wrong: Any, memory: Memory) -> None:
    with pytest.raises(InvalidArgumentError):
        memory.resolve(wrong)
    with pytest.raises(InvalidArgumentError):
        memory.contradictions(record="x" if wrong is None else wrong)  # type: ignore[arg-type]


def test_of_facts_that_begin_together_the_older_record_was_never_valid(memory: Memory) -> None:
    fact(memory, "I live in Rome", 1, valid_from=START)
    fact(memory, "I live in Oslo", 2, valid_from=START)
    (found,) = memory.contradictions()
    memory.resolve(found)
    assert [record.content for record in memory.find(f.valid_at(START))] == ["I live in Oslo"]


def test_the_check_at_recording_reads_only_facts_with_the_attribute(memory: Memory) -> None:
    fact(memory, "I live in Rome", 1, metadata={"attribute": "home", "value": "Rome"})
    fact(memory, "I live in Lima", 1)
    new = fact(memory, "I live in Oslo", 2, metadata={"attribute": "home", "value": "Oslo"})
    assert [each.values for each in memory.contradictions(record=new)] == [("Rome", "Oslo")]
    assert memory.contradictions(record=fact(memory, "I like tea", 3)) == []
