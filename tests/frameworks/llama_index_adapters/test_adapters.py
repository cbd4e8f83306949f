"""`RecollectMemoryBlock` and `RecollectNodeRetriever` in LlamaIndex."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.base.llms.types import ImageBlock, TextBlock
from llama_index.core.llms import ChatMessage, MessageRole, MockLLM
from llama_index.core.memory import Memory
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.storage.chat_store.base_db import MessageStatus
from pydantic import ValidationError

import recollect
from recollect import filters as f
from recollect.compat.llama_index import RecollectMemoryBlock, RecollectNodeRetriever
from recollect.errors import RejectedError

run = asyncio.run
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore:Pydantic", "ignore:The 'validate_default'"
)


def message(role: str, text: str, **additional: Any) -> ChatMessage:
    return ChatMessage(role=MessageRole(role), content=text, additional_kwargs=additional)


SAID = [
    message("system", "You are a travel agent."),
    message("user", "I prefer window seats", session_id="trip"),
    message("assistant", "I will book one in Rome", session_id="trip"),
]


@pytest.fixture
def memory() -> Iterator[recollect.Memory]:
    with recollect.open(":memory:") as memory:
        yield memory


# --- the block ---


def test_messages_become_turns_of_their_session(place: recollect.Memory) -> None:
    block = RecollectMemoryBlock(memory=place, user="ana", agent="guide")
    run(block.aput(SAID))
    turns = place.find(f.conversation("trip"), order="position")
    assert [(turn.text, turn.role, turn.user, turn.agent) for turn in turns] == [
        ("I prefer window seats", "user", "ana", "guide"),
        ("I will book one in Rome", "assistant", "ana", "guide"),
    ]
    assert [(commit.actor, commit.reason) for commit in place.log()] == [("llama-index", "put")]
    run(block.aput(SAID))
    assert [turn.position for turn in place.find(order="position")] == [0, 1, 2, 3]


def test_messages_that_follow_are_appended(memory: recollect.Memory) -> None:
    block = RecollectMemoryBlock(memory=memory, user="ana")
    run(block.aput(SAID[1:2], session_id="trip"))
    run(block.aput(SAID[2:], session_id="trip"))
    assert [turn.position for turn in memory.find(order="position")] == [0, 1]


def test_messages_without_a_session_are_stored_once(memory: recollect.Memory) -> None:
    block = RecollectMemoryBlock(memory=memory, user="ana")
    for _ in range(2):
        run(block.aput([message("user", "I prefer window seats")]))
    assert memory.count() == 1


def test_any_question_is_taken_and_an_address_is_not_shown(memory: recollect.Memory) -> None:
    memory.remember("Ana is allergic to peanuts")
    block, retriever = RecollectMemoryBlock(memory=memory), RecollectNodeRetriever(memory)
    for question in ("allergic \ud800", "allergic " * 10_000):
        assert "peanuts" in run(block.aget([message("user", question)]))
        assert retriever.retrieve(question)
    assert "memory" not in block.model_dump()


def test_a_question_gets_a_context_of_what_is_known_of_the_user(place: recollect.Memory) -> None:
    block = RecollectMemoryBlock(memory=place, user="ana")
    assert run(block.aget([message("user", "Which seats?")])) == ""
    run(block.aput(SAID))
    place.remember("Ana is allergic to peanuts", user="ana", kind="user_fact")
    place.remember("Bob prefers aisle seats", user="bob", kind="user_fact")
    context = run(block.aget([*SAID, message("user", "Which seats do I prefer?")]))
    assert "I prefer window seats" in context
    assert "Bob" not in context
    assert run(block.aget([])) == run(block.aget(None)) == run(block.aget(SAID[:1])) == ""


def test_the_question_is_as_many_messages_as_stated(memory: recollect.Memory) -> None:
    memory.remember("The ferry to Oslo leaves at nine")
    asked = [message("user", "I want to go to Oslo"), message("user", "When?")]
    assert run(RecollectMemoryBlock(memory=memory).aget(asked)) == ""
    assert "leaves at nine" in run(RecollectMemoryBlock(memory=memory, window=2).aget(asked))


def test_a_context_that_is_too_long_is_made_again_with_fewer_tokens(memory: recollect.Memory) -> None:
    cities = ("Rome", "Oslo", "Paris", "Lisbon", "Vienna", "Prague", "Athens", "Dublin")
    for number, city in enumerate(cities):
        memory.remember(f"In {city}, Ana visited the museum number {number} and ate {'much ' * number}bread")
    block = RecollectMemoryBlock(memory=memory, max_tokens=600)
    context = run(block.aget([message("user", f"What did Ana visit in {', '.join(cities)}?")]))
    less = run(block.atruncate(context, len(context) // 8))
    assert less is not None
    assert 0 < len(less) < len(context)
    assert run(block.atruncate(context, 10_000)) is None
    assert run(block.atruncate("another text", 1)) is None


def test_pictures_say_nothing_and_secrets_are_refused(memory: recollect.Memory) -> None:
    block = RecollectMemoryBlock(memory=memory, user="ana")
    picture = ChatMessage(role="user", blocks=[ImageBlock(url="https://example.com/x.png")])
    words = ChatMessage(role="user", blocks=[TextBlock(text="Look at"), TextBlock(text="the sea")])
    run(block.aput([picture, words, message("user", " ")]))
    assert [record.text for record in memory.find()] == ["Look at\nthe sea"]
    memory.set_policies(redaction="refuse")
    with pytest.warns(recollect.RecollectWarning), pytest.raises(RejectedError):
        run(block.aput([message("user", "write to ana@example.com")]))


def test_unknown_options_are_refused(memory: recollect.Memory) -> None:
    with pytest.raises(ValidationError):
        RecollectMemoryBlock(memory=memory, top_k=3)
    with pytest.raises(ValidationError):
        RecollectMemoryBlock(memory=memory, window=0)
    with pytest.raises(ValueError, match="must be a memory"):
        RecollectMemoryBlock(memory=7)


def test_a_memory_of_llama_index_flushes_into_the_block_and_asks_it(tmp_path: Path) -> None:
    async def talk() -> tuple[list[ChatMessage], list[ChatMessage]]:
        block = RecollectMemoryBlock(memory=tmp_path / "agent.db", user="ana")
        memory = Memory.from_defaults(
            session_id="chat-1",
            token_limit=400,
            token_flush_size=40,
            chat_history_token_ratio=0.3,
            memory_blocks=[block],
        )
        await memory.aput(message("user", "I prefer window seats"))
        for number in range(12):
            await memory.aput(message("user", f"Tell me something about the city of Rome, number {number}"))
            await memory.aput(message("assistant", f"The city of Rome has a hill, number {number}"))
        messages = await memory.aget(input="Which seats do I prefer?")
        short_term = await memory.aget_all(status=MessageStatus.ACTIVE)
        block.close()
        await memory.sql_store._async_engine.dispose()  # LlamaIndex never closes its own history
        return messages, short_term

    messages, short_term = run(talk())
    assert "I prefer window seats" not in str([each.content for each in short_term])
    assert "I prefer window seats" in str([each.content for each in messages])
    with recollect.open(tmp_path / "agent.db") as memory:
        (hit,) = memory.recall("Which seats do I prefer?", k=1, user="ana")
        assert hit.record.text == "I prefer window seats"
        assert hit.record.conversation == "chat-1"
        (turn,) = memory.find(f.conversation("chat-1"), order="position", limit=1)
        assert turn.position == 0


# --- the retriever ---


def test_nodes_are_records_with_the_reason(place: recollect.Memory) -> None:
    place.remember("Ana prefers window seats", user="ana", kind="user_fact", metadata={"page": 3})
    place.remember("Bob prefers aisle seats", user="bob")
    retriever = RecollectNodeRetriever(place, 3, user="ana")
    (found,) = retriever.retrieve("Which seats does Ana prefer?")
    assert found.get_content() == "Ana prefers window seats"
    assert 0.5 < (found.score or 0) <= 1
    assert (found.metadata["page"], found.metadata["kind"], found.metadata["user"]) == (3, "user_fact", "ana")
    assert "seats" in found.metadata["why"]
    assert [each.node.node_id for each in run(retriever.aretrieve("seats"))] == [found.node.node_id]
    assert retriever.retrieve("  ") == []


def test_filters_confidence_and_the_number_limit_the_nodes(place: recollect.Memory) -> None:
    for number in range(5):
        place.remember(f"Ana sat on seat {number}", metadata={"n": number})
    assert len(RecollectNodeRetriever(place, 2).retrieve("seat")) == 2
    (found,) = RecollectNodeRetriever(place, where=f.meta("n", 3)).retrieve("seat")
    assert found.metadata["n"] == 3
    assert RecollectNodeRetriever(place, where="meta.n>7").retrieve("seat") == []
    assert RecollectNodeRetriever(place, min_confidence="auto").retrieve("quantum chromodynamics") == []


def test_a_query_engine_answers_from_the_nodes(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "agent.db") as memory:
        memory.remember("Ana prefers window seats")
    retriever = RecollectNodeRetriever(tmp_path / "agent.db")
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    response = engine.query("Which seats does Ana prefer?")
    assert [node.get_content() for node in response.source_nodes] == ["Ana prefers window seats"]
    retriever.close()
