"""`RecollectMemoryStore` and its components: messages of users, agents and runs, found again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("haystack")

from haystack import Pipeline
from haystack.core.serialization import allow_deserialization_module
from haystack.dataclasses import ChatMessage
from haystack.errors import FilterError

import recollect
from recollect.compat.haystack import RecollectMemoryRetriever, RecollectMemoryStore, RecollectMemoryWriter
from recollect.errors import RejectedError

CHAT = [
    ChatMessage.from_system("You are a travel agent."),
    ChatMessage.from_user("I prefer window seats", meta={"topic": "travel"}),
    ChatMessage.from_assistant("I will book one in Rome"),
]


@pytest.fixture
def store() -> Iterator[RecollectMemoryStore]:
    with RecollectMemoryStore() as store:
        yield store


def texts(messages: list[ChatMessage]) -> list[str | None]:
    return [message.text for message in messages]


def test_messages_are_remembered_and_found_in_other_runs(place: recollect.Memory) -> None:
    store = RecollectMemoryStore(place)
    added = store.add_memories(messages=CHAT, user_id="ana", run_id="trip", metadata={"lang": "en"})
    assert [each["memory"] for each in added] == ["I prefer window seats", "I will book one in Rome"]
    (found, *_) = store.search_memories(query="Which seats?", user_id="ana")
    assert found.is_from("system")
    assert found.text == "I prefer window seats"
    own = found.meta.pop("recollect")
    assert found.meta == {"topic": "travel", "lang": "en"}
    assert (own["id"], own["user"], own["conversation"]) == (added[0]["memory_id"], "ana", "trip")
    assert 0 < own["confidence"] <= 1
    assert store.search_memories(query="Which seats?", user_id="bob") == []


def test_a_conversation_that_has_grown_adds_only_what_is_new(store: RecollectMemoryStore) -> None:
    store.add_memories(messages=CHAT, user_id="ana", run_id="trip")
    longer = [*CHAT, ChatMessage.from_user("No, in Oslo")]
    added = store.add_memories(messages=longer, user_id="ana", run_id="trip")
    assert [each["memory"] for each in added] == ["No, in Oslo"]
    assert [commit.reason for commit in store.memory.log()] == ["add_memories"] * 2


def test_without_a_query_the_newest_are_returned(store: RecollectMemoryStore) -> None:
    for text in ("one", "two", "three"):
        store.add_memories(messages=[ChatMessage.from_user(text)], user_id="ana", run_id=text)
    assert texts(store.search_memories(user_id="ana", top_k=2)) == ["three", "two"]
    assert texts(store.search_memories(query=" ", user_id="ana", run_id="one")) == ["one"]


def test_filters_select_and_wrong_ones_are_refused(store: RecollectMemoryStore) -> None:
    store.add_memories(messages=CHAT, user_id="ana")
    store.add_memories(messages=[ChatMessage.from_user("seats again")], user_id="bob", metadata={"topic": "travel"})
    topic = {"field": "meta.topic", "operator": "==", "value": "travel"}
    assert texts(store.search_memories(query="seats", user_id="ana", filters=topic)) == ["I prefer window seats"]
    assert len(store.search_memories(query="seats", filters=topic)) == 2
    assert store.search_memories(user_id="ana", filters={**topic, "value": "food"}) == []
    with pytest.raises(FilterError):
        store.search_memories(user_id="ana", filters={"field": "meta.topic"})


def test_wrong_arguments_are_refused(store: RecollectMemoryStore) -> None:
    for wrong in ("I like tea", [{"role": "user", "content": "I like tea"}]):
        with pytest.raises(ValueError, match="ChatMessages"):
            store.add_memories(messages=wrong, user_id="ana")
    with pytest.raises(ValueError, match="top_k"):
        store.search_memories(query="tea", user_id="ana", top_k=-1)


def test_asynchronous_calls_do_the_same(store: RecollectMemoryStore) -> None:
    asyncio.run(store.add_memories_async(messages=CHAT, user_id="ana"))
    found = asyncio.run(store.search_memories_async(query="Which seats?", user_id="ana", top_k=1))
    assert texts(found) == ["I prefer window seats"]


def test_someone_is_named(store: RecollectMemoryStore) -> None:
    with pytest.raises(ValueError, match="at least one of user_id"):
        store.add_memories(messages=CHAT)
    with pytest.raises(ValueError, match="at least one of user_id"):
        store.search_memories(query="seats")


@pytest.mark.filterwarnings("ignore:item .* could not be stored")
def test_what_is_not_stored_is_not_among_the_results(store: RecollectMemoryStore) -> None:
    store.memory.set_policies(salience="normal")
    said = [ChatMessage.from_user("ok", meta={"n": 1}), ChatMessage.from_user("I moved to Rome", meta={"n": 2})]
    added = store.add_memories(messages=[*said, ChatMessage.from_user("")], user_id="ana")
    assert [each["memory"] for each in added] == ["I moved to Rome"]
    (found,) = store.search_memories(user_id="ana")
    assert found.meta["n"] == 2
    store.memory.set_policies(redaction="refuse")
    with pytest.raises(RejectedError):
        store.add_memories(messages=[ChatMessage.from_user("write to ana@example.com")], user_id="ana")


def test_a_pipeline_writes_and_retrieves(tmp_path: Path) -> None:
    path = str(tmp_path / "agent.db")
    writing, reading = Pipeline(), Pipeline()
    writing.add_component("writer", RecollectMemoryWriter(memory_store=RecollectMemoryStore(path)))
    reading.add_component("retriever", RecollectMemoryRetriever(memory_store=RecollectMemoryStore(path), top_k=1))
    allow_deserialization_module("recollect.compat.*")
    same = [Pipeline.loads(each.dumps()) for each in (writing, reading)]
    run: Any = same[0].run({"writer": {"messages": CHAT, "user_id": "ana"}})
    assert run == {"writer": {"memories_written": 2}}
    found = same[1].run({"retriever": {"query": "Which seats?", "user_id": "ana"}})["retriever"]["memories"]
    assert texts(found) == ["I prefer window seats"]
    for pipeline, name in zip([writing, reading, *same], ["writer", "retriever"] * 2, strict=True):
        pipeline.get_component(name).memory_store.close()
