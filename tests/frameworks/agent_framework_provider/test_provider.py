"""`RecollectContextProvider` in agents of the Agent Framework."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("agent_framework")

from agent_framework import Agent, AgentSession, BaseChatClient, ChatResponse, Message

import recollect
from recollect import filters as f
from recollect.compat.agent_framework import RecollectContextProvider
from recollect.errors import RejectedError

run = asyncio.run
pytestmark = pytest.mark.filterwarnings("ignore")


class Scripted(BaseChatClient):  # type: ignore[type-arg, unused-ignore]
    """A client that answers, and knows its instructions."""

    def __init__(self) -> None:
        super().__init__()
        self.instructions: list[str] = []

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Any:
        self.instructions.append(str(options.get("instructions") or "") + str([each.text for each in messages]))
        return ChatResponse(messages=[Message("assistant", ["Noted."])], response_id="1")


def talk(provider: RecollectContextProvider, text: str, session_id: str = "s") -> str:
    """Run an agent once, and return its instructions."""
    client = Scripted()
    agent = Agent(client=client, context_providers=[provider])
    run(agent.run(text, session=AgentSession(session_id=session_id)))
    return client.instructions[0]


def test_what_was_said_is_remembered_and_known_in_other_sessions(place: recollect.Memory) -> None:
    provider = RecollectContextProvider(place, user="ana", agent="guide")
    talk(provider, "I prefer window seats", "monday")
    turns = place.find(f.conversation("monday"), order="position")
    assert [(turn.text, turn.role, turn.user, turn.agent) for turn in turns] == [
        ("I prefer window seats", "user", "ana", "guide"),
        ("Noted.", "assistant", "ana", "guide"),
    ]
    assert [(commit.actor, commit.reason) for commit in place.log()] == [("agent-framework", "after_run")]
    assert "I prefer window seats" in talk(provider, "Which seats do I prefer?", "tuesday")


def test_a_run_that_begins_as_the_session_did_hides_nothing(place: recollect.Memory) -> None:
    provider = RecollectContextProvider(place, user="ana")
    for said in ("hi", "I am allergic to peanuts", "hi", "hi"):
        talk(provider, said)
    assert place.count(f.conversation("s")) == 8
    assert [turn.position for turn in place.find(f.conversation("s"), order="position")] == list(range(8))
    assert "I am allergic to peanuts" in talk(provider, "What am I allergic to?", "other")


def test_any_question_is_taken(place: recollect.Memory) -> None:
    provider = RecollectContextProvider(place)
    place.remember("Ana is allergic to peanuts")
    for question in ("allergic \ud800", "allergic " * 10_000):
        assert "peanuts" in talk(provider, question)
    turns = place.find(f.conversation("s"), order="position")
    assert [turn.text[:10] for turn in turns] == ["allergic \ufffd", "Noted.", "allergic a", "Noted."]


def test_other_users_know_nothing_of_it(place: recollect.Memory) -> None:
    talk(RecollectContextProvider(place, user="ana"), "I prefer window seats")
    assert "window" not in talk(RecollectContextProvider(place, user="bob"), "Which seats do I prefer?")


def test_a_provider_that_only_reads_stores_nothing(place: recollect.Memory) -> None:
    talk(RecollectContextProvider(place, remembers=False), "I prefer window seats")
    assert place.count() == 0


def test_nothing_is_added_where_nothing_is_known(place: recollect.Memory) -> None:
    said = talk(RecollectContextProvider(place), "Which seats?")
    assert said == "['Which seats?']"


def test_secrets_are_refused(place: recollect.Memory) -> None:
    place.set_policies(redaction="refuse")
    with pytest.raises(RejectedError):
        talk(RecollectContextProvider(place), "write to ana@example.com")
    assert place.count() == 0
