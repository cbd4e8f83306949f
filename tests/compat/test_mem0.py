"""The calls of mem0 on a memory: what its documentation says of them, and what is better here."""

from __future__ import annotations

import asyncio
import hashlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import recollect
from recollect import RecollectWarning
from recollect import filters as f
from recollect.compat.files import Files
from recollect.compat.mem0 import AsyncMemory, Memory
from recollect.compat.mem0.filters import condition
from recollect.errors import InvalidArgumentError, InvalidRecordError, RejectedError
from recollect.models import ModelExtractor

ANA = {"user_id": "ana"}
CHAT = [
    {"role": "system", "content": "You are a travel agent."},
    {"role": "user", "content": "I prefer window seats", "name": "Ana"},
    {"role": "assistant", "content": "I will book one in Rome"},
]

pytestmark = pytest.mark.filterwarnings("ignore:infer=True needs an extractor")


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(memory=":memory:") as memory:
        yield memory


#: A call without arguments.
Call: TypeAlias = Callable[[], Any]


def texts(found: Mapping[str, Any]) -> list[str]:
    return [each["memory"] for each in found["results"]]


def ids(found: Mapping[str, Any]) -> list[str]:
    return [each["id"] for each in found["results"]]


# --- add ---


def test_a_text_is_a_memory_of_its_user(memory: Memory) -> None:
    (added,) = memory.add("Ana prefers window seats", user_id="ana")["results"]
    assert (added["memory"], added["event"]) == ("Ana prefers window seats", "ADD")
    record = memory.memory.get(added["id"])
    assert record is not None
    assert (record.kind, record.user, record.text) == ("user_fact", "ana", "Ana prefers window seats")


def test_messages_are_turns_and_those_of_the_system_are_left_out(memory: Memory) -> None:
    added = memory.add(CHAT, user_id="ana", agent_id="guide", run_id="trip")["results"]
    assert [(each["memory"], each["role"], each["actor_id"]) for each in added] == [
        ("I prefer window seats", "user", "Ana"),
        ("I will book one in Rome", "assistant", None),
    ]
    turns = memory.memory.find(f.conversation("trip"), order="position")
    assert [(turn.user, turn.agent, turn.position, turn.kind) for turn in turns] == [
        ("ana", "guide", 0, "conversation"),
        ("ana", "guide", 1, "conversation"),
    ]


def test_a_conversation_that_has_grown_adds_only_what_is_new(memory: Memory) -> None:
    memory.add(CHAT, user_id="ana", run_id="trip")
    longer = [*CHAT, {"role": "user", "content": "No, in Oslo"}]
    added = memory.add(longer, user_id="ana", run_id="trip")["results"]
    assert [each["event"] for each in added] == ["NONE", "NONE", "ADD"]
    assert memory.memory.count() == 3


def test_a_message_alone_is_a_list_of_one(memory: Memory) -> None:
    assert texts(memory.add({"role": "user", "content": "I like tea"}, user_id="ana")) == ["I like tea"]


def test_other_metadata_of_the_same_text_are_set(memory: Memory) -> None:
    first = memory.add("I like tea", user_id="ana", metadata={"sure": False, "tags": ["a"]})["results"][0]
    same = memory.add("I like tea", user_id="ana", metadata={"sure": False, "tags": ["a"]})["results"][0]
    other = memory.add("I like tea", user_id="ana", metadata={"sure": "very"})["results"][0]
    assert [each["event"] for each in (first, same, other)] == ["ADD", "NONE", "UPDATE"]
    assert (memory.get(first["id"]) or {})["metadata"] == {"sure": "very", "tags": ["a"]}
    assert memory.memory.seq == 2


def test_a_list_that_has_grown_leaves_the_turns_that_are_stored_as_they_are(memory: Memory) -> None:
    memory.add(CHAT, user_id="ana", run_id="trip", metadata={"step": 1})
    longer = [*CHAT, {"role": "user", "content": "No, in Oslo"}]
    memory.add(longer, user_id="ana", run_id="trip", metadata={"step": 2}, expiration_date="2020-01-01")
    shown = {each["memory"]: each["metadata"]["step"] for each in memory.get_all(filters=ANA)["results"]}
    assert shown == {"I prefer window seats": 1, "I will book one in Rome": 1}
    assert len(memory.get_all(filters=ANA, show_expired=True)["results"]) == 3


def test_a_text_that_is_added_again_after_its_last_day_is_found_again(memory: Memory) -> None:
    memory.add("I like tea", user_id="ana", expiration_date="2020-01-01")
    (again,) = memory.add("I like tea", user_id="ana")["results"]
    assert again["event"] == "UPDATE"
    (found,) = memory.get_all(filters=ANA)["results"]
    assert "expiration_date" not in found
    memory.add("I like cocoa", user_id="ana", expiration_date="9999-12-31")
    assert len(memory.get_all(filters=ANA)["results"]) == 2


def test_the_same_text_again_is_the_same_memory(memory: Memory) -> None:
    first = memory.add("I like tea", user_id="ana")["results"][0]
    again = memory.add("I like tea", user_id="ana")["results"][0]
    other = memory.add("I like tea", user_id="bob")["results"][0]
    assert (again["id"], again["event"]) == (first["id"], "NONE")
    assert (other["id"] != first["id"], other["event"]) == (True, "ADD")


@pytest.mark.parametrize("infer", [True, False])
def test_each_call_is_one_commit(memory: Memory, infer: bool) -> None:
    memory.add(CHAT, user_id="ana", infer=infer, metadata={"topic": "travel"})
    assert [(commit.actor, commit.reason) for commit in memory.memory.log()] == [("mem0", "add")]


@pytest.mark.parametrize("named", [{"user_id": "ana"}, {"agent_id": "guide"}, {"run_id": "trip"}])
def test_one_id_is_enough(memory: Memory, named: dict[str, Any]) -> None:
    memory.add("I like tea", **named)
    (found,) = memory.get_all(filters=named)["results"]
    assert {key: found[key] for key in named} == named


def test_without_an_id_nothing_is_stored(memory: Memory) -> None:
    with pytest.raises(ValueError, match="user_id"):
        memory.add("I like tea")
    assert memory.memory.count() == 0


@pytest.mark.parametrize(("stated", "stored"), [(7, "7"), (" ana ", "ana")])
def test_ids_are_texts_without_spaces_around_them(memory: Memory, stated: Any, stored: str) -> None:
    memory.add("I like tea", user_id=stated)
    assert texts(memory.get_all(filters={"user_id": stated})) == ["I like tea"]
    assert memory.memory.count(f.user(stored)) == 1


@pytest.mark.parametrize("wrong", ["", "  ", "an a"])
def test_blank_ids_are_refused(memory: Memory, wrong: str) -> None:
    for call in (
        lambda: memory.add("I like tea", user_id=wrong),
        lambda: memory.get_all(filters={"user_id": wrong}),
        lambda: memory.delete_all(user_id=wrong),
    ):
        with pytest.raises(ValueError, match="user_id"):
            call()


@pytest.mark.parametrize("wrong", [None, 7, b"tea", {"a", "b"}, "", " \n"])
def test_what_are_no_messages_is_refused(memory: Memory, wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        memory.add(wrong, user_id="ana")


def test_messages_without_a_text_are_named_and_the_others_stored(memory: Memory) -> None:
    with pytest.warns(RecollectWarning, match="message 0 is left out"):
        added = memory.add([{"role": "user"}, {"role": "user", "content": "I like tea"}], user_id="ana")
    assert texts(added) == ["I like tea"]


def test_metadata_come_back_and_select(memory: Memory) -> None:
    metadata = {"topic": "travel", "n": 2, "tags": ["a", "b"], "of": {"x": None}}
    memory.add(CHAT, user_id="ana", metadata=metadata)
    for each in memory.get_all(filters=ANA)["results"]:
        assert each["metadata"] == metadata


def test_ids_in_metadata_set_nothing(memory: Memory) -> None:
    with pytest.warns(RecollectWarning, match="'user_id'"):
        memory.add("I like tea", user_id="ana", metadata={"user_id": "bob", "topic": "tea"})
    (found,) = memory.get_all(filters=ANA)["results"]
    assert (found["user_id"], found["metadata"]) == ("ana", {"topic": "tea"})


@pytest.mark.parametrize(
    "stated", [1700000000, 1700000000.0, "2023-11-14T22:13:20Z", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)]
)
def test_a_timestamp_is_when_it_was_said(memory: Memory, stated: Any) -> None:
    memory.add(CHAT, user_id="ana", timestamp=stated)
    memory.add("I like tea", user_id="ana", timestamp=stated)
    created = {each["created_at"][:19] for each in memory.get_all(filters=ANA)["results"]}
    assert created == {"2023-11-14T22:13:20"}


def test_a_timestamp_that_is_none_is_refused(memory: Memory) -> None:
    for wrong in ("tomorrowish", float("inf"), [1]):
        with pytest.raises(ValueError, match="time"):
            memory.add("I like tea", user_id="ana", timestamp=wrong)
    assert memory.memory.count() == 0


def test_no_model_is_called_and_a_warning_says_so_once() -> None:
    with Memory(memory=":memory:") as memory, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for text in ("I like tea", "I like cocoa"):
            memory.add(text, user_id="ana", prompt="extract all")
        memory.add("I like milk", user_id="ana", infer=False)
    said = [str(each.message) for each in caught]
    assert [each.partition(":")[0] for each in said] == ["prompt is not used", "infer=True needs an extractor"]


def test_a_model_that_is_given_extracts_facts_beside_the_messages() -> None:
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return '[{"entity_name": "Ana", "entity_type": "person", "fact": "Ana prefers window seats"}]'

    with Memory(memory=":memory:", extractor=ModelExtractor(model)) as memory:
        added = memory.add(CHAT, user_id="ana")
        assert texts(added) == ["I prefer window seats", "I will book one in Rome", "Ana prefers window seats"]
        memory.add(CHAT, user_id="ana")
        memory.add([{"role": "user", "content": "Raw"}], user_id="ana", infer=False)
        assert len(asked) == 1


def test_a_model_that_fails_stores_nothing() -> None:
    def model(prompt: str) -> str:
        return "no JSON"

    with Memory(memory=":memory:", extractor=ModelExtractor(model)) as memory:
        with pytest.raises(recollect.RecollectError):
            memory.add(CHAT, user_id="ana")
        assert memory.memory.count() == 0


def test_a_procedure_is_one_memory_of_an_agent(memory: Memory) -> None:
    (added,) = memory.add(CHAT, agent_id="guide", memory_type="procedural_memory")["results"]
    assert added["memory"] == "user: I prefer window seats\nassistant: I will book one in Rome"
    found = memory.get(added["id"])
    assert found is not None
    assert found["metadata"] == {"memory_type": "procedural_memory"}
    with pytest.raises(ValueError, match="memory_type"):
        memory.add(CHAT, agent_id="guide", memory_type="semantic_memory")
    with pytest.raises(ValueError, match="agent_id"):
        memory.add(CHAT, user_id="ana", memory_type="procedural_memory")


def test_what_is_too_long_stores_nothing(memory: Memory) -> None:
    with pytest.raises(InvalidRecordError):
        memory.add("x" * (2**20 + 1), user_id="ana")
    with pytest.raises(InvalidRecordError):
        memory.add(CHAT, user_id="ana", metadata={"n": 2**70})
    assert memory.memory.count() == 0


def test_secrets_are_refused_or_redacted_as_the_memory_says(memory: Memory) -> None:
    memory.memory.set_policies(redaction="redact")
    assert "ana@" not in texts(memory.add("write to ana@example.com", user_id="ana"))[0]
    memory.memory.set_policies(redaction="refuse")
    with pytest.raises(RejectedError):
        memory.add([{"role": "user", "content": "write to bob@example.com"}], user_id="ana")
    with pytest.raises(RejectedError):
        memory.add("write to bob@example.com", user_id="ana")


def test_what_is_not_worth_remembering_is_not_among_the_results(memory: Memory) -> None:
    memory.memory.set_policies(salience="normal")
    added = memory.add(
        [{"role": "user", "content": "ok"}, {"role": "user", "content": "I moved to Rome"}], user_id="ana"
    )
    assert texts(added) == ["I moved to Rome"]


# --- search ---


def test_a_search_finds_what_answers_best_first(memory: Memory) -> None:
    memory.add("Ana prefers window seats on trains", user_id="ana")
    memory.add("Ana has a dog", user_id="ana")
    memory.add("Bob prefers aisle seats", user_id="bob")
    found = memory.search("Which seats does Ana prefer?", filters=ANA, threshold=0.0)
    assert texts(found)[0] == "Ana prefers window seats on trains"
    assert "Bob prefers aisle seats" not in texts(found)
    scores = [each["score"] for each in found["results"]]
    assert scores == sorted(scores, reverse=True)
    assert 0.5 < scores[0] <= 1


def test_a_result_has_the_fields_of_mem0(memory: Memory) -> None:
    memory.add(CHAT, user_id="ana", agent_id="guide", run_id="trip", metadata={"topic": "travel"})
    found = memory.search("Which seats?", filters=ANA, top_k=1)["results"][0]
    assert found.keys() == {
        *("id", "memory", "hash", "metadata", "score", "created_at", "updated_at"),
        *("user_id", "agent_id", "run_id", "actor_id", "role"),
    }
    assert found["hash"] == hashlib.md5(b"I prefer window seats").hexdigest()
    assert datetime.fromisoformat(found["created_at"]).utcoffset() == timedelta(0)


def test_a_threshold_and_a_number_limit_the_results(memory: Memory) -> None:
    for number in range(9):
        memory.add(f"Ana sat on seat {number}", user_id="ana")
    assert len(memory.search("seat", filters=ANA, top_k=3, threshold=0.0)["results"]) == 3
    assert memory.search("seat", filters=ANA, top_k=0)["results"] == []
    assert memory.search("seat", filters=ANA, threshold=1.0)["results"] == []
    assert memory.search("seat", filters=ANA, threshold=None) == memory.search("seat", filters=ANA)


@pytest.mark.parametrize(
    "wrong",
    [{"top_k": -1}, {"top_k": 1.5}, {"top_k": True}, {"threshold": 1.1}, {"threshold": "0.1"}, {"threshold": -0.1}],
)
def test_wrong_numbers_are_refused(memory: Memory, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        memory.search("seat", filters=ANA, **wrong)


@pytest.mark.parametrize("query", ["", " \n", None, 7])
def test_a_blank_query_is_refused(memory: Memory, query: Any) -> None:
    with pytest.raises(ValueError, match="query"):
        memory.search(query, filters=ANA)


def test_an_explanation_has_the_parts_of_the_score(memory: Memory) -> None:
    memory.add("Ana prefers window seats", user_id="ana")
    (found,) = memory.search("seats", filters=ANA, explain=True)["results"]
    details = found["score_details"]
    assert details["score"] == pytest.approx(sum(details["shares"].values()))
    assert [word["word"] for word in details["words"]] == ["seats"]
    assert "score_details" not in memory.search("seats", filters=ANA)["results"][0]


def test_a_reference_date_is_the_time_of_the_question(memory: Memory) -> None:
    memory.add("Ana met Bob", user_id="ana", timestamp="2026-05-01T10:00:00Z")
    memory.add("Ana met Eve", user_id="ana", timestamp="2026-06-01T10:00:00Z")
    for day, met in (("2026-05-02", "Ana met Bob"), (date(2026, 6, 2), "Ana met Eve")):
        found = memory.search("Whom did Ana meet yesterday?", filters=ANA, reference_date=day, threshold=0.0)
        assert texts(found)[0] == met


def test_reranking_is_not_needed_and_a_warning_says_so(memory: Memory) -> None:
    memory.add("Ana prefers window seats", user_id="ana")
    with pytest.warns(RecollectWarning, match="rerank is not used"):
        assert len(memory.search("seats", filters=ANA, rerank=True)["results"]) == 1


# --- filters ---


@pytest.fixture
def filled(memory: Memory) -> Memory:
    memory.add("red one", user_id="ana", metadata={"colour": "red", "n": 1, "tags": ["a", "b"], "of": {"x": 1}})
    memory.add(
        "green two", user_id="ana", run_id="trip", metadata={"colour": "Green", "n": 2.5, "tags": ["b"], "of": {"x": 2}}
    )
    memory.add(
        "blue none", user_id="ana", agent_id="guide", metadata={"colour": None, "note": "sky and sea", "a.b": "literal"}
    )
    memory.add("red other", user_id="bob", metadata={"colour": "red", "n": 1})
    return memory


@pytest.mark.parametrize(
    ("stated", "found"),
    [
        ({}, "red green blue"),
        ({"colour": "red"}, "red"),
        ({"colour": ["red", "Green"]}, "red green"),
        ({"colour": {"eq": "red"}}, "red"),
        ({"colour": {"ne": "red"}}, "green blue"),
        ({"colour": None}, "blue"),
        ({"colour": {"in": ["red", None]}}, "red blue"),
        ({"colour": {"nin": ["red"]}}, "green blue"),
        ({"colour": {"in": []}}, ""),
        ({"n": {"gt": 1}}, "green"),
        ({"n": {"gte": 1, "lt": 2}}, "red"),
        ({"n": {"lte": 2.5}}, "red green"),
        ({"n": {"gt": "1"}}, ""),
        ({"tags": {"contains": "a"}}, "red"),
        ({"tags": "b"}, "red green"),
        ({"tags": {"in": ["a", "c"]}}, "red"),
        ({"note": {"contains": "sky"}}, "blue"),
        ({"note": {"contains": "SKY"}}, ""),
        ({"note": {"icontains": "SKY"}}, "blue"),
        ({"colour": {"icontains": "gre"}}, "green"),
        ({"colour": "*"}, "red green blue"),
        ({"n": "*"}, "red green"),
        ({"AND": [{"colour": "red"}, {"n": 1}]}, "red"),
        ({"AND": []}, "red green blue"),
        ({"OR": [{"colour": "red"}, {"n": 2.5}]}, "red green"),
        ({"NOT": [{"colour": "red"}]}, "green blue"),
        ({"NOT": [{"colour": "red"}, {"n": 2.5}]}, "blue"),
        ({"NOT": [{"note": {"icontains": "SEA"}}]}, "red green"),
        ({"OR": [{"AND": [{"colour": "red"}, {"NOT": [{"n": 1}]}]}, {"note": {"icontains": "SEA"}}]}, "blue"),
        ({"memory": {"icontains": "RED"}}, "red"),
        ({"memory": {"contains": "RED"}}, ""),
        ({"of.x": 1}, "red"),
        ({"of.x": {"gt": 1}}, "green"),
        ({"a.b": "literal"}, "blue"),
        ({"of.x": {"contains": "1"}}, ""),
        ({"run_id": "trip"}, "green"),
        ({"run_id": "*"}, "green"),
        ({"agent_id": {"ne": "guide"}}, "red green"),
        ({"agent_id": {"contains": "gui"}}, "blue"),
        ({"role": {"in": ["user"]}}, "red green blue"),
        ({"created_at": {"gte": "2000-01-01"}}, "red green blue"),
        ({"created_at": {"lt": "2000-01-01"}}, ""),
    ],
)
def test_filters_select(filled: Memory, stated: dict[str, Any], found: str) -> None:
    every = filled.get_all(filters={**ANA, **stated})
    assert {text.split()[0] for text in texts(every)} == set(found.split())
    searched = filled.search("red green blue", filters={"AND": [ANA, stated]}, threshold=0.0)
    assert set(ids(searched)) == set(ids(every))


@pytest.mark.parametrize(
    "wrong",
    [
        {"colour": {"near": "red"}},
        {"colour": {}},
        {"colour": {"in": "red"}},
        {"AND": {"colour": "red"}},
        {"OR": []},
        {"NOT": []},
        {"NOT": ["red"]},
        {"role": {"gt": "user"}},
        {"run_id": {"eq": ["trip"]}},
        {"created_at": 7},
        {"$or": [{"colour": "red"}]},
        {"or": [{"colour": "red"}]},
        {"Not": [{"colour": "red"}]},
        {"updated_at": {"gt": "2000-01-01"}},
        {"memory": "red one"},
        {"memory": {"gt": "red"}},
        {"agent_id": None},
    ],
)
def test_wrong_filters_are_refused_and_not_ignored(filled: Memory, wrong: dict[str, Any]) -> None:
    stated = {**ANA, **wrong}
    calls: list[Call] = [lambda: filled.get_all(filters=stated), lambda: filled.search("red", filters=stated)]
    for call in calls:
        with pytest.raises(ValueError, match="filters"):
            call()


NO_ID: list[Any] = [
    None,
    {},
    {"colour": "red"},
    {"OR": [{"user_id": "ana"}, {"user_id": "bob"}]},
    {"user_id": {"ne": "bob"}},
]


@pytest.mark.parametrize("stated", NO_ID)
def test_a_filter_requires_an_id(filled: Memory, stated: Any) -> None:
    calls: list[Call] = [lambda: filled.get_all(filters=stated), lambda: filled.search("red", filters=stated)]
    for call in calls:
        with pytest.raises(ValueError, match="must require user_id"):
            call()


def test_an_id_within_lists_of_and_is_enough(filled: Memory) -> None:
    nested = {"AND": [{"AND": [{"user_id": "ana"}]}, {"colour": "red"}]}
    assert texts(filled.get_all(filters=nested)) == ["red one"]


def test_only_what_the_index_cannot_decide_is_decided_by_reading() -> None:
    assert condition({"user_id": "ana", "NOT": [{"n": {"gt": 1}}]}).fits is None
    assert condition({"note": {"icontains": "sea"}}).fits is not None


# --- the rest ---


def test_former_arguments_are_taken_with_a_warning(filled: Memory) -> None:
    with pytest.deprecated_call(match="filters="):
        assert texts(filled.search("red", user_id="ana")) == ["red one"]
    with pytest.deprecated_call(match="top_k"):
        assert len(filled.get_all(filters=ANA, limit=2)["results"]) == 2
    with pytest.raises(ValueError, match="differs"), pytest.deprecated_call():
        filled.search("red", user_id="ana", filters={"user_id": "bob"})
    with pytest.raises(TypeError, match="unexpected"):
        filled.search("red", filters=ANA, users=["ana"])


def test_a_memory_is_got_by_its_id(filled: Memory) -> None:
    (found,) = filled.get_all(filters={**ANA, "colour": "red"})["results"]
    assert filled.get(found["id"]) == found
    assert filled.get("00000000-0000-0000-0000-000000000000") is None


def test_an_update_changes_the_text_and_keys_of_the_metadata(filled: Memory) -> None:
    (name,) = ids(filled.get_all(filters={**ANA, "colour": "red"}))
    before = filled.get(name)
    assert filled.update(name, text="crimson one", metadata={"n": 7}) == {"message": "Memory updated successfully!"}
    after = filled.get(name)
    assert before is not None
    assert after is not None
    assert (after["memory"], after["metadata"]["n"], after["metadata"]["colour"]) == ("crimson one", 7, "red")
    assert after["created_at"] == before["created_at"]
    assert after["updated_at"] > before["updated_at"]
    assert texts(filled.search("crimson", filters=ANA)) == ["crimson one"]


def test_an_update_takes_the_former_name_and_needs_a_change(filled: Memory) -> None:
    (name,) = ids(filled.get_all(filters={**ANA, "colour": "red"}))
    with pytest.deprecated_call(match="data="):
        filled.update(name, data="crimson one")
    assert (filled.get(name) or {})["memory"] == "crimson one"
    with pytest.raises(ValueError, match="text"):
        filled.update(name)
    with pytest.warns(RecollectWarning, match="'user_id'"):
        filled.update(name, metadata={"user_id": "bob"})
    assert (filled.get(name) or {})["user_id"] == "ana"


def test_unknown_memories_are_no_memories(memory: Memory) -> None:
    calls: list[Call] = [lambda: memory.update("x", text="y"), lambda: memory.delete("x")]
    for call in calls:
        with pytest.raises(ValueError, match="is not the id of a memory"):
            call()
    assert memory.history("x") == []


def test_the_history_has_each_event(memory: Memory) -> None:
    name = memory.add("I like tea", user_id="ana")["results"][0]["id"]
    memory.update(name, text="I like cocoa")
    memory.update(name, metadata={"topic": "drinks"})
    assert memory.delete(name) == {"message": "Memory deleted successfully!"}
    history = memory.history(name)
    assert [(each["event"], each["old_memory"], each["new_memory"], each["is_deleted"]) for each in history] == [
        ("ADD", None, "I like tea", False),
        ("UPDATE", "I like tea", "I like cocoa", False),
        ("UPDATE", "I like cocoa", "I like cocoa", False),
        ("DELETE", "I like cocoa", None, True),
    ]
    assert {each["memory_id"] for each in history} == {name}
    assert len({each["id"] for each in history}) == 4
    assert [each["updated_at"] for each in history] == sorted(each["updated_at"] for each in history)
    assert memory.get(name) is None


def test_what_was_deleted_can_be_added_again(memory: Memory) -> None:
    name = memory.add("I like tea", user_id="ana")["results"][0]["id"]
    memory.delete(name)
    again = memory.add("I like tea", user_id="ana")["results"][0]
    assert (again["id"], again["event"]) == (name, "ADD")
    assert [each["event"] for each in memory.history(name)] == ["ADD", "DELETE", "ADD"]


def test_the_memories_of_a_user_are_deleted_and_no_others(filled: Memory) -> None:
    assert filled.delete_all(user_id="ana") == {"message": "Memories deleted successfully!"}
    assert filled.get_all(filters=ANA)["results"] == []
    assert texts(filled.get_all(filters={"user_id": "bob"})) == ["red other"]
    with pytest.raises(ValueError, match="reset"):
        filled.delete_all()


def test_ids_together_delete_what_has_all_of_them(filled: Memory) -> None:
    filled.delete_all(user_id="ana", run_id="trip")
    assert len(filled.get_all(filters=ANA)["results"]) == 2


def test_a_reset_deletes_everything_and_can_be_undone(filled: Memory) -> None:
    filled.reset()
    assert filled.memory.count() == 0
    filled.memory.rollback(filled.memory.seq - 1)
    assert filled.memory.count() == 4


def test_a_memory_whose_last_day_has_passed_is_not_found_unless_it_is_asked_for(tmp_path: Path) -> None:
    day = [datetime(2026, 5, 1, 12, tzinfo=UTC)]
    with recollect.open(tmp_path / "agent.db", clock=lambda: day[0]) as core, Memory(memory=core) as memory:
        name = memory.add("I like tea", user_id="ana", expiration_date="2026-05-03")["results"][0]["id"]
        memory.add(CHAT, user_id="ana", expiration_date=date(2026, 5, 3))
        day[0] = datetime(2026, 5, 3, 23, 59, tzinfo=UTC)
        assert len(memory.get_all(filters=ANA)["results"]) == 3
        day[0] = datetime(2026, 5, 4, tzinfo=UTC)
        assert memory.get_all(filters=ANA)["results"] == []
        assert memory.search("tea", filters=ANA)["results"] == []
        assert texts(memory.search("tea", filters=ANA, show_expired=True)) == ["I like tea"]
        (found,) = [each for each in memory.get_all(filters=ANA, show_expired=True)["results"] if each["id"] == name]
        assert found["expiration_date"] == "2026-05-03"
        memory.update(name, expiration_date="2026-06-01")
        assert texts(memory.get_all(filters=ANA)) == ["I like tea"]
        memory.update(name, expiration_date=None)
        day[0] = datetime(2030, 1, 1, tzinfo=UTC)
        assert texts(memory.get_all(filters=ANA)) == ["I like tea"]
        assert "expiration_date" not in (memory.get(name) or {})


@pytest.mark.parametrize("wrong", ["soon", "2026-13-01", 7])
def test_a_last_day_that_is_none_is_refused(memory: Memory, wrong: Any) -> None:
    with pytest.raises(ValueError, match="expiration_date"):
        memory.add("I like tea", user_id="ana", expiration_date=wrong)


def test_there_is_no_chat_as_in_mem0(memory: Memory) -> None:
    with pytest.raises(NotImplementedError):
        memory.chat("hello")


# --- configurations and places ---


def test_a_configuration_of_mem0_is_taken_and_what_is_not_used_is_named(tmp_path: Path) -> None:
    config = {
        "llm": {"provider": "openai", "config": {"model": "gpt-5-mini"}},
        "vector_store": {"provider": "qdrant", "config": {"path": "/tmp/qdrant"}},
        "version": "v1.1",
        "recollect": {"path": str(tmp_path / "agent.db"), "zone": "Europe/Rome"},
    }
    with pytest.warns(RecollectWarning, match="not used: llm, vector_store"):
        memory = Memory.from_config(config)
    with memory:
        memory.add("I like tea", user_id="ana")
    with recollect.open(tmp_path / "agent.db") as core:
        assert core.count(f.user("ana")) == 1


def test_unknown_keys_and_two_places_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="vectorstore"):
        Memory.from_config({"vectorstore": {}})
    with pytest.raises(InvalidArgumentError, match="path of a configuration"):
        Memory({"recollect": {"path": str(tmp_path / "a.db")}}, memory=":memory:")


def test_what_files_keep_for_themselves_is_not_shown(memory: Memory) -> None:
    files = Files(memory.memory.scoped(user="ana"), actor="anthropic", root="/memories")
    with files.change("create") as change:
        change.create("/memories/tea.md", "Ana likes tea", {"token": "1", "operation": None, "note": None, "by": "ana"})
    (found,) = memory.get_all(filters=ANA)["results"]
    assert (found["memory"], found["metadata"]) == ("Ana likes tea", {"by": "ana"})


def test_a_path_and_metadata_in_the_wrong_place_are_named(memory: Memory, tmp_path: Path) -> None:
    for wrong in (str(tmp_path / "a.db"), tmp_path / "a.db", memory.memory):
        with pytest.raises(InvalidArgumentError, match="is memory="):
            Memory(wrong)
    with pytest.raises(InvalidArgumentError, match="must be a dictionary"):
        Memory.from_config({"recollect": "a.db"})
    with pytest.raises(InvalidArgumentError, match="metadata must be a dictionary"):
        memory.add("I like tea", user_id="ana", metadata="x")  # type: ignore[arg-type]


def test_many_memories_hide_none_of_those_that_have_the_word(memory: Memory) -> None:
    with memory.memory.batch() as batch:
        batch.remember_all(
            [{"content": f"Order {n}: the customer asked about a refund", "user": "ana"} for n in range(200)]
        )
    assert len(memory.search("refund", filters=ANA)["results"]) == 20


def test_what_adapters_keep_for_themselves_is_not_shown(memory: Memory) -> None:
    memory.memory.remember("a turn", user="ana", source="langchain", metadata={"item": "{}", "topic": "tea"})
    memory.memory.remember("an item", user="ana", metadata={"item": "of a user"})
    shown = {each["memory"]: each["metadata"] for each in memory.get_all(filters=ANA)["results"]}
    assert shown == {"a turn": {"topic": "tea"}, "an item": {"item": "of a user"}}


def test_without_a_place_it_is_the_default_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_DB", str(tmp_path / "default.db"))
    with Memory() as memory, Memory() as other:
        memory.add("I like tea", user_id="ana")
        assert other.memory is memory.memory
    assert (tmp_path / "default.db").exists()


def test_a_session_that_an_import_made_of_a_run_is_the_run(memory: Memory) -> None:
    memory.memory.remember("Ana prefers window seats", user="ana", session="trip", kind="user_fact")
    (found,) = memory.get_all(filters={"run_id": "trip"})["results"]
    assert found["run_id"] == "trip"
    assert len(memory.get_all(filters={**ANA, "run_id": {"contains": "tri"}})["results"]) == 1
    memory.delete_all(run_id="trip")
    assert memory.get_all(filters=ANA)["results"] == []


def test_what_was_recorded_in_other_ways_is_found(memory: Memory) -> None:
    memory.memory.remember("Ana prefers window seats", user="ana", kind="user_fact")
    assert texts(memory.search("seats", filters=ANA)) == ["Ana prefers window seats"]


def test_asynchronous_calls_do_the_same() -> None:
    async def calls() -> None:
        async with AsyncMemory(memory=":memory:") as memory:
            added = await memory.add(CHAT, user_id="ana", infer=False)
            name = added["results"][0]["id"]
            found = await memory.search("seats", filters=ANA)
            assert texts(found)[0] == "I prefer window seats"
            await memory.update(name, text="I prefer the aisle")
            assert ((await memory.get(name)) or {})["memory"] == "I prefer the aisle"
            assert len(await memory.history(name)) == 2
            assert len((await memory.get_all(filters=ANA))["results"]) == 2
            await memory.delete(name)
            await memory.delete_all(user_id="ana")
            await memory.reset()
            assert (await memory.get_all(filters=ANA)) == {"results": []}

    asyncio.run(calls())


def test_the_asynchronous_memory_has_every_call() -> None:
    def names(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert names(AsyncMemory) == names(Memory)
