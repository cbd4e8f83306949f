"""The manager: each of its settings acts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.agents import Manager, without_echoes
from recollect.errors import InvalidArgumentError, InvalidRecordError, QuotaError, RejectedError, SummaryError
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


def test_the_turns_of_one_summary_are_limited_and_a_failure_can_be_an_error(memory: Memory) -> None:
    few = Manager(memory=memory, consolidate_above=20, keep=5, max_count=4)
    for n in range(21):
        done = few.record_message(said(f"turn {n}"), "c").consolidated
    assert done is not None
    assert done.replaced == 4

    def failing(_texts: Sequence[str]) -> str:
        raise ValueError("the model is away")

    for strict in (False, True):
        name = f"strict {strict}"
        manager = Manager(memory=memory, consolidate_above=20, keep=5, summariser=failing, strict=strict)
        for n in range(20):
            manager.record_message(said(f"turn {n}"), name)
        if strict:
            with pytest.raises(SummaryError, match="the model is away"):
                manager.record_message(said("the last turn"), name)
        else:
            done = manager.record_message(said("the last turn"), name).consolidated
            assert done is not None
            assert [each.reason for each in done.failed] == ["the model is away"]
        assert memory.count(f.conversation(name)) == 21


def test_the_same_fact_again_changes_nothing(memory: Memory) -> None:
    manager = Manager(memory=memory)
    first = manager.record_user_fact("I live in Oslo", user="ana")
    seq = memory.seq
    again = manager.record_user_fact("I live in Oslo", user="ana")
    assert (first.status, again.status, memory.seq) == ("created", "unchanged", seq)


def test_an_echo_is_not_stored_and_changes_nothing(memory: Memory) -> None:
    memory.add_messages([said("I live in Oslo near the harbour")], user="ana", conversation="c")
    guarded = without_echoes(memory)
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
        {"max_count": 1},
        {"strict": 1},
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


# Messages


def unrated(memory: Memory) -> Manager:
    """Return a manager that rates nothing and looks for no contradictions."""
    return Manager(memory=memory, rate=False, contradictions="ignore")


TURN = said("The ferry to Oslo was late.")
RESULTS = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "done"} for number in (1, 2)],
}


def test_a_message_has_the_metadata_and_importance_of_the_specification(memory: Memory) -> None:
    for record in (
        unrated(memory).record_message(TURN, "c", user="ana").record,
        unrated(memory).record_message(TURN["content"], "c", role="user", user="ana").record,
    ):
        assert (record.content, record.kind, record.role) == (TURN["content"], "conversation", "user")
        assert (record.user, record.conversation, record.importance) == ("ana", "c", 0.5)
        assert record.metadata == {"role": "user", "conversation_id": "c"}
    assert [turn.position for turn in memory.find(order="position")] == [0, 1]


def test_a_message_in_the_form_of_another_api_is_read_as_add_messages_reads_it(memory: Memory) -> None:
    call = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"role": "assistant", "name": "Max", "content": "Let me look", "tool_calls": [call]}
    record = unrated(memory).record_message(message, "c").record
    memory.add_messages([message], conversation="d")
    (other,) = memory.find("conversation=d")
    assert (record.text, record.speaker) == (other.text, "Max")
    assert record.metadata == {"role": "assistant", "conversation_id": "c", **other.metadata}


def test_results_of_several_tools_are_one_commit_and_are_appended_even_if_they_repeat(memory: Memory) -> None:
    for _ in range(2):
        seq = memory.seq
        last = unrated(memory).record_message(RESULTS, "c", tags=iter(["x", "y"])).record
        assert memory.seq == seq + 1
    assert (memory.count(), last.position, last.metadata["tool_use_id"]) == (4, 3, "t2")
    assert [record.tags for record in memory.find()] == [("x", "y")] * 4


def test_a_message_with_several_turns_is_stored_completely_or_not(memory: Memory) -> None:
    memory.set_quota(records=1)
    with pytest.raises(QuotaError):
        unrated(memory).record_message(RESULTS, "c")
    assert memory.count() == 0


def test_a_message_that_was_recorded_is_known_to_add_messages(memory: Memory) -> None:
    unrated(memory).record_message(TURN, "c", user="ana")
    report = memory.add_messages([TURN, said("Congratulations!", "assistant")], conversation="c", user="ana")
    assert [each.status for each in report.results] == ["unchanged", "created"]


def test_a_message_keeps_its_own_time_and_gets_the_passed_one_otherwise(memory: Memory) -> None:
    stated = unrated(memory).record_message({**TURN, "created_at": "2026-03-02T00:00:00Z"}, "c", time=START).record
    assert stated.time == datetime(2026, 3, 2, tzinfo=UTC)
    assert unrated(memory).record_message(TURN, "c", time=START).record.time == START


@pytest.mark.parametrize(
    ("message", "role", "why"),
    [
        ("text", None, "role must be passed with a text"),
        (TURN, "user", "can only be passed with a text"),
        ({"role": "user", "content": ""}, None, "message .* has no content"),
        (5, None, "message 5 is a number, not an object"),
        ([TURN], None, "message .* is a list, not an object"),
    ],
)
def test_a_message_that_cannot_be_read_stores_nothing(memory: Memory, message: Any, role: str | None, why: str) -> None:
    with pytest.raises(InvalidArgumentError, match=why):
        unrated(memory).record_message(message, "c", role=role)
    assert memory.count() == 0


@pytest.mark.parametrize("wrong", [{"tags": "abc"}, {"importance": float("nan")}, {"conversation": None}])
def test_a_wrong_argument_of_a_message_stores_nothing(memory: Memory, wrong: dict[str, Any]) -> None:
    with pytest.raises((InvalidArgumentError, InvalidRecordError)):
        unrated(memory).record_message(TURN, **{"conversation": "c", **wrong})
    assert memory.count() == 0


def test_importance_and_metadata_of_a_message_change_no_score(memory: Memory) -> None:
    messages = [TURN, said("Oslo is cold in winter.", "assistant")]
    recorded, added = memory.scoped(user="ana"), memory.scoped(user="bob")
    for message in messages:
        unrated(recorded).record_message(message, "c", time=START)
    added.add_messages(messages, conversation="c", time=START)
    asked = "was the ferry to Oslo late?"
    found = [[(hit.record.content, hit.score) for hit in m.recall(asked)] for m in (recorded, added)]
    assert found[0] == found[1]
    assert found[0]
