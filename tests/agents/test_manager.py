"""The manager: each of its settings acts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.agents import Manager
from recollect.errors import InvalidArgumentError, RejectedError
from recollect.text.facts import Extracted

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def memory() -> Iterator[Memory]:
    ticks = iter(range(10**6))
    with recollect.open(":memory:", clock=lambda: START + timedelta(seconds=next(ticks))) as opened:
        yield opened


def said(text: str, role: str = "user") -> dict[str, str]:
    return {"role": role, "content": text}


def test_what_is_recorded_is_rated_by_the_rules_unless_it_has_an_importance(memory: Memory) -> None:
    manager = Manager(memory=memory)
    assert manager.record_user_fact("always pays 5 euros", user="ana").record.importance == 0.75
    assert manager.record_user_fact("never flies", user="ana", importance=0.1).record.importance == 0.1
    assert manager.record_entity_fact("acme", "Acme", "ships", "organization").record.importance == 0.6
    assert manager.record_message(said("it is critical"), "c").record.importance == 0.7
    plain = Manager(memory=memory, rate=False)
    assert plain.record_user_fact("never eats fish", user="ana").record.importance == 0.5
    assert plain.record_message(said("it is important"), "c").record.importance == 0.5


def test_a_message_and_what_is_added_to_it_are_one_commit(memory: Memory) -> None:
    before = memory.seq
    recorded = Manager(memory=memory).record_message(said("I live in Oslo, it is important."), "c", user="ana")
    assert memory.seq == before + 1
    assert (recorded.record.metadata["attribute"], recorded.record.metadata["value"]) == ("home", "Oslo")
    assert recorded.record.metadata["role"] == "user"
    several = Manager(memory=memory).record_message(said("I'm Kim, a nurse. I'm 34 years old."), "c", user="ana")
    assert several.record.metadata["attribute"] == ["name", "job", "age"]
    assert several.record.metadata["value"] == ["Kim", "nurse", "34"]


def test_contradictions_are_reported_superseded_or_ignored_as_set(memory: Memory) -> None:
    reporting = Manager(memory=memory)
    first = reporting.record_user_fact("I live in Rome", user="ana")
    second = reporting.record_message(said("I've just moved to Oslo."), "c", user="ana")
    assert first.contradictions == ()
    assert [each.values for each in second.contradictions] == [("Rome", "Oslo")]
    assert second.record.supersedes == ()
    third = Manager(memory=memory, contradictions="supersede").record_user_fact("lives in Lima now", user="ana")
    assert {each.values for each in third.contradictions} == {("Rome", "Lima"), ("Oslo", "Lima")}
    assert set(third.record.supersedes) == {first.record.id, second.record.id}
    assert memory.contradictions() == []
    ignoring = Manager(memory=memory, contradictions="ignore").record_user_fact("lives in Bonn", user="ana")
    assert ignoring.contradictions == ()
    assert [each.values for each in memory.contradictions()] == [("Lima", "Bonn")]


def test_facts_are_extracted_from_messages_of_users_if_set(memory: Memory) -> None:
    plain = Manager(memory=memory).record_message(said("Ada Lovelace likes tea."), "c")
    assert plain.facts is None
    manager = Manager(memory=memory, extract=True)
    assert manager.record_message(said("Ada Lovelace likes cake.", "assistant"), "c").facts is None
    facts = manager.record_message(said("Ada Lovelace likes tea."), "c", user="ana").facts
    assert facts is not None
    (record,) = [outcome.record for outcome in facts.results]
    assert record is not None
    assert (record.kind, record.entity, record.user) == ("entity", "ada_lovelace", "ana")
    own = Manager(memory=memory, extract=True, extractor=lambda text: [Extracted("Bob", "person", "was here", 1.0)])
    assert own.record_message(said("whatever"), "c").facts is not None
    assert memory.count(f.entity("bob")) == 1


def test_a_long_conversation_is_consolidated_except_its_newest_turns_if_set(memory: Memory) -> None:
    seen: list[int] = []

    def summariser(texts: Sequence[str]) -> str:
        seen.append(len(texts))
        return f"{len(texts)} turns"

    manager = Manager(memory=memory, consolidate_above=20, keep=5, summariser=summariser)
    recorded = [manager.record_message(said(f"turn {n}"), "c") for n in range(21)]
    assert [each.consolidated is None for each in recorded] == [True] * 20 + [False]
    done = recorded[-1].consolidated
    assert done is not None
    assert (done.replaced, seen) == (16, [16])
    contents = [record.content for record in memory.find(order="position")]
    assert contents == ["16 turns", *(f"turn {n}" for n in range(16, 21))]
    other = Manager(memory=memory)
    for n in range(30):
        other.record_message(said(f"turn {n}"), "d")
    assert memory.count(f.conversation("d")) == 30


def test_the_same_fact_again_changes_nothing(memory: Memory) -> None:
    manager = Manager(memory=memory)
    first = manager.record_user_fact("I live in Oslo", user="ana")
    seq = memory.seq
    again = manager.record_user_fact("I live in Oslo", user="ana")
    assert (first.status, again.status, memory.seq) == ("created", "unchanged", seq)


def test_an_echo_is_not_stored_and_changes_nothing(memory: Memory) -> None:
    memory.add_messages([said("I live in Oslo near the harbour")], user="ana", conversation="c")
    guarded = memory.without_echoes()
    assert len(guarded.recall("where near the harbour?"))
    seq = memory.seq
    recorded = Manager(memory=guarded).record_user_fact("lives in Oslo near the harbour", user="ana")
    assert (recorded.status, recorded.record.kind, memory.seq) == ("echo", "conversation", seq)


@pytest.mark.parametrize(
    "settings",
    [
        {"rate": 1},
        {"extract": "yes"},
        {"contradictions": "delete"},
        {"keep": 0},
        {"keep": None},
        {"consolidate_above": 5, "keep": 5},
        {"consolidate_above": True},
    ],
)
def test_invalid_settings_are_errors(settings: dict[str, Any], memory: Memory) -> None:
    with pytest.raises(InvalidArgumentError):
        Manager(memory=memory, **settings)


def test_what_others_write_change_and_forget_counts_in_the_check(memory: Memory) -> None:
    manager = Manager(memory=memory.scoped(user="ana"))
    other = Manager(memory=memory)
    assert manager.record_user_fact("I live in Rome").contradictions == ()
    theirs = other.record_user_fact("I live in Oslo", user="ana")
    assert [each.values for each in theirs.contradictions] == [("Rome", "Oslo")]
    mine = manager.record_user_fact("lives in Lima now")
    assert {each.values for each in mine.contradictions} == {("Rome", "Lima"), ("Oslo", "Lima")}
    memory.forget(theirs.record.id)
    memory.update(mine.record.id, metadata={"attribute": "home", "value": "Bonn"})
    last = manager.record_user_fact("lives in Graz now")
    assert {each.values for each in last.contradictions} == {("Rome", "Graz"), ("Bonn", "Graz")}
    assert other.record_user_fact("I live in Riga", user="bob").contradictions == ()


def test_a_message_that_a_policy_refuses_leaves_no_facts_behind(memory: Memory) -> None:
    memory.set_policies(redaction="refuse")
    manager = Manager(memory=memory, extract=True)
    with pytest.raises(RejectedError):
        manager.record_message(said("Ada Lovelace likes tea. My password is hunter2."), "c")
    assert memory.count() == 0
    fine = manager.record_message(said("Ada Lovelace likes tea. She writes."), "c").facts
    assert fine is not None
    assert fine.count("created") == 1
