"""`RecollectChatMessageHistory`: messages of every kind, order, owners, processes and runnables."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory
from tests.frameworks.serving import Child

import recollect
from recollect import filters as f
from recollect.compat.langchain import RecollectChatMessageHistory
from recollect.errors import InvalidArgumentError, InvalidRecordError, ScopeError

MESSAGES: list[BaseMessage] = [
    SystemMessage("You are kind."),
    HumanMessage("Grüße, 我喜欢乌龙茶", id="m1", name="ana"),
    AIMessage("", tool_calls=[{"name": "book", "args": {"seat": "window", "n": 2**70}, "id": "c1"}]),
    ToolMessage("seat 12A is booked", tool_call_id="c1", artifact={"seat": "12A"}),
    AIMessage([{"type": "text", "text": "Done."}, {"type": "image_url", "image_url": {"url": "https://x"}}]),
    ChatMessage("a note", role="critic"),
    HumanMessage("\ud800 half of a pair"),
    HumanMessage(""),
]


@pytest.fixture
def memory() -> Iterator[recollect.Memory]:
    with recollect.open(":memory:") as memory:
        yield memory


def test_messages_of_every_kind_come_back_as_they_were(place: recollect.Memory) -> None:
    history = RecollectChatMessageHistory("chat", place)
    history.add_messages(MESSAGES)
    assert history.messages == MESSAGES
    assert RecollectChatMessageHistory("chat", place).messages == MESSAGES


def test_messages_are_turns_that_recall_finds(memory: recollect.Memory) -> None:
    history = RecollectChatMessageHistory("chat", memory, user="ana", agent="guide")
    history.add_messages(MESSAGES)
    turns = memory.find(f.kind("conversation") & f.conversation("chat"), order="position")
    assert [(turn.role, turn.speaker) for turn in turns] == [
        ("system", None),
        ("user", "ana"),
        ("tool", None),
        ("assistant", "guide"),
        ("critic", None),
        ("user", "ana"),
    ]
    (hit,) = memory.recall("Which seat is booked?", user="ana", k=1)
    assert hit.record.text == "seat 12A is booked"
    assert not memory.recall("Which seat is booked?", user="bob")


def test_calls_are_one_commit_each(memory: recollect.Memory) -> None:
    history = RecollectChatMessageHistory("chat", memory)
    history.add_messages(MESSAGES)
    history.add_messages([])
    history.add_user_message("one more")
    history.clear()
    assert [(commit.actor, commit.reason) for commit in memory.log()] == [
        ("langchain", "clear"),
        ("langchain", "add_messages"),
        ("langchain", "add_messages"),
    ]


def test_a_list_with_a_message_that_is_too_long_stores_nothing(memory: recollect.Memory) -> None:
    history = RecollectChatMessageHistory("chat", memory)
    with pytest.raises(InvalidRecordError):
        history.add_messages([HumanMessage("a"), HumanMessage("b" * (2**20 + 1))])
    assert history.messages == []


def test_cleared_conversations_are_empty_and_others_stay(place: recollect.Memory) -> None:
    one, other = (RecollectChatMessageHistory(name, place) for name in ("one", "other"))
    one.add_user_message("a")
    other.add_user_message("b")
    one.clear()
    assert one.messages == []
    assert [message.content for message in other.messages] == ["b"]
    one.add_user_message("again")
    assert [message.content for message in one.messages] == ["again"]


def test_conversations_of_other_users_agents_and_frameworks_are_others(memory: recollect.Memory) -> None:
    memory.add_messages([{"role": "user", "content": "a turn of another source"}], conversation="chat")
    histories = [
        RecollectChatMessageHistory("chat", memory),
        RecollectChatMessageHistory("chat", memory, user="ana"),
        RecollectChatMessageHistory("chat", memory, agent="guide"),
        RecollectChatMessageHistory("chat", memory.scoped(user="bob")),
    ]
    for number, history in enumerate(histories):
        history.add_user_message(str(number))
    assert [[message.content for message in history.messages] for history in histories] == [["0"], ["1"], ["2"], ["3"]]
    histories[0].clear()
    assert memory.count() == 4


def test_a_scope_admits_no_other_owner_and_ids_are_texts(memory: recollect.Memory) -> None:
    with pytest.raises(ScopeError):
        RecollectChatMessageHistory("chat", memory.scoped(user="ana"), user="bob")
    with pytest.raises(InvalidArgumentError):
        RecollectChatMessageHistory(7, memory)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 2000, "sha256:1", "\ud800"])
def test_any_text_is_an_id(memory: recollect.Memory, name: str) -> None:
    history = RecollectChatMessageHistory(name, memory)
    history.add_user_message("a")
    assert len(history.messages) == 1
    assert RecollectChatMessageHistory(f"{name}x", memory).messages == []


def test_a_limit_returns_the_latest(memory: recollect.Memory) -> None:
    RecollectChatMessageHistory("chat", memory).add_messages([HumanMessage(str(n)) for n in range(9)])
    assert [each.content for each in RecollectChatMessageHistory("chat", memory, limit=3).messages] == ["6", "7", "8"]
    assert RecollectChatMessageHistory("chat", memory, limit=0).messages == []


@pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory is deprecated")
def test_a_runnable_has_the_history_and_adds_to_it(memory: recollect.Memory) -> None:
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])
    seen: list[Any] = []

    def noted(value: Any) -> Any:
        seen.append(value.to_messages())
        return value

    chain = RunnableWithMessageHistory(
        prompt | noted | FakeListChatModel(responses=["Hello Ana", "Green tea"]),
        lambda session_id: RecollectChatMessageHistory(session_id, memory),
        input_messages_key="question",
        history_messages_key="history",
    )
    config = {"configurable": {"session_id": "chat"}}
    chain.invoke({"question": "I am Ana"}, config)
    asyncio.run(chain.ainvoke({"question": "What do I drink?"}, config))
    assert [message.content for message in seen[1]] == ["I am Ana", "Hello Ana", "What do I drink?"]
    history = RecollectChatMessageHistory("chat", memory)
    assert [message.content for message in history.messages][2:] == ["What do I drink?", "Green tea"]


def test_threads_lose_nothing_and_lists_stay_whole(memory: recollect.Memory) -> None:
    def add(name: int) -> None:
        RecollectChatMessageHistory("chat", memory).add_messages([HumanMessage(f"{name}-{part}") for part in range(3)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(20)))
    contents = [str(message.content) for message in RecollectChatMessageHistory("chat", memory).messages]
    lists = [contents[start : start + 3] for start in range(0, 60, 3)]
    assert all([each.partition("-")[0] for each in three] == [three[0].partition("-")[0]] * 3 for three in lists)
    assert len(set(contents)) == 60


def test_processes_lose_nothing(tmp_path: Path) -> None:
    program = """
import sys
from langchain_core.messages import HumanMessage
from recollect.compat.langchain import RecollectChatMessageHistory
history = RecollectChatMessageHistory("chat", sys.argv[1])
print("ready", flush=True); input()
for number in range(10):
    history.add_messages([HumanMessage(f"{sys.argv[2]}-{number}")])
"""
    path = tmp_path / "agent.db"
    recollect.open(path).close()
    children = [Child(program, path, name) for name in "ab"]
    for child in children:
        child.wait_until_ready()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(Child.result, children))
    with RecollectChatMessageHistory("chat", path) as history:
        contents = [message.content for message in history.messages]
    assert [each for each in contents if each[0] == "a"] == [f"a-{number}" for number in range(10)]
    assert len(contents) == 20
