"""`RecollectStrandsStore` under the manager of Strands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

pytest.importorskip("strands")

from strands import Agent
from strands.memory import MemoryManager
from strands.memory.types import AddMessagesContext
from strands.models.model import Model

import recollect
from recollect import filters as f
from recollect.compat.strands import RecollectStrandsStore
from recollect.errors import InvalidArgumentError, InvalidRecordError, RejectedError

run = asyncio.run
pytestmark = pytest.mark.filterwarnings("ignore")
SAID: list[Any] = [
    {"role": "user", "content": [{"text": "I prefer window seats"}, {"image": {"format": "png"}}]},
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "book", "input": {}}}]},
    {"role": "assistant", "content": [{"text": "I will book one in Rome"}]},
]


class Scripted(Model):
    """A model that answers, and knows what it was sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def update_config(self, **config: Any) -> None:
        raise NotImplementedError

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *arguments: Any, **options: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        self.sent.append(str(messages))
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockDelta": {"delta": {"text": "Noted."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def test_messages_are_turns_and_repeated_writes_add_nothing(place: recollect.Memory) -> None:
    store = RecollectStrandsStore(place, user="ana", agent="guide", conversation="trip")
    first = run(store.add_messages(SAID))
    assert run(store.add_messages(SAID)) == first
    turns = place.find(f.conversation("trip"), order="position")
    assert [(turn.text, turn.role, turn.user, turn.agent) for turn in turns] == [
        ("I prefer window seats", "user", "ana", "guide"),
        ("I will book one in Rome", "assistant", "ana", "guide"),
    ]
    assert [commit.actor for commit in place.log()] == ["strands"]
    assert run(store.add_messages(SAID[1:2])) == []


def test_sequence_numbers_tell_a_repeated_write_from_a_repeated_message(place: recollect.Memory) -> None:
    store = RecollectStrandsStore(place, conversation="trip")
    ok: Any = [{"role": "user", "content": [{"text": "ok then"}]}]
    for number in (0, 1, 1, 2):
        run(store.add_messages(ok, AddMessagesContext(sequence_numbers=[number])))
    run(RecollectStrandsStore(place, conversation="trip").add_messages(ok, AddMessagesContext(sequence_numbers=[0])))
    assert [turn.position for turn in place.find(order="position")] == [0, 1, 2, 3]


def test_other_metadata_of_a_text_are_kept(place: recollect.Memory) -> None:
    store = RecollectStrandsStore(place)
    name = run(store.add("Ana likes tea", {"a": 1}))
    assert run(store.add("Ana likes tea", {"b": 2})) == name
    (record,) = place.find()
    assert dict(record.metadata) == {"a": 1, "b": 2}


def test_a_search_finds_all_that_is_known_of_the_user(place: recollect.Memory) -> None:
    store = RecollectStrandsStore(place, user="ana")
    run(store.add_messages(SAID))
    place.remember("Ana is allergic to peanuts", user="ana", kind="user_fact", metadata={"page": 3})
    place.remember("Bob prefers aisle seats", user="bob")
    (found,) = run(store.search("What is Ana allergic to?", {"max_search_results": 1}))
    assert (found.content, found.metadata["page"], found.metadata["kind"]) == (
        "Ana is allergic to peanuts",
        3,
        "user_fact",
    )
    assert found.metadata["confidence"] > 0.5
    assert "Bob" not in str(run(store.search("seats")))
    assert run(store.search("  ")) == []
    with pytest.raises(InvalidArgumentError):
        run(store.search("seats", {"max_search_results": -1}))


def test_a_text_is_stored_once(place: recollect.Memory) -> None:
    store = RecollectStrandsStore(place, user="ana")
    first = run(store.add("Ana likes tea", {"by": "tool"}))
    assert run(store.add("Ana likes tea")) == first
    (record,) = place.find()
    assert (record.id, record.kind, record.user, dict(record.metadata)) == (first, "user_fact", "ana", {"by": "tool"})
    with pytest.raises(InvalidRecordError):
        run(store.add(" "))


def test_secrets_are_refused(place: recollect.Memory) -> None:
    store = RecollectStrandsStore(place)
    place.set_policies(redaction="refuse")
    with pytest.raises(RejectedError):
        run(store.add("write to ana@example.com"))
    with pytest.raises(RejectedError):
        run(store.add_messages([{"role": "user", "content": [{"text": "write to ana@example.com"}]}]))
    assert place.count() == 0


def test_the_manager_searches_and_adds(place: recollect.Memory) -> None:
    store = RecollectStrandsStore(place, user="ana")
    manager = MemoryManager(stores=[store], add_tool_config=True)

    async def calls() -> Any:
        await manager.add("Ana prefers window seats")
        return await manager.search("Which seats?")

    (found,) = run(calls())
    assert (found.content, found.store_name) == ("Ana prefers window seats", "recollect")


def test_an_agent_remembers_by_itself_and_is_given_what_is_known(place: recollect.Memory) -> None:
    for said in ("I prefer window seats", "Which seats do I prefer?"):
        model = Scripted()
        store = RecollectStrandsStore(place, user="ana", extraction=True)
        agent = Agent(model=model, memory_manager=MemoryManager(stores=[store]), callback_handler=None)
        for turn in range(6):
            agent(said if turn == 0 else f"Tell me more, number {turn}")
    assert "I prefer window seats" in model.sent[0]
    assert place.count(f.user("ana")) >= 12


def test_only_some_stores_are_written(place: recollect.Memory) -> None:
    store = RecollectStrandsStore(place, writable=False, name="facts")
    with pytest.raises(ValueError, match="add"):
        MemoryManager(stores=[store], add_tool_config=True)
