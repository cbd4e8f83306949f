"""`memory_tools`: the calls of a memory in the hands of CrewAI agents."""

from __future__ import annotations

import asyncio
import json
import os
from importlib.util import find_spec
from typing import Any

import pytest

if find_spec("crewai") is None:  # only then: other tests of this process need what the variables disable
    pytest.skip("could not import 'crewai'", allow_module_level=True)
os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
os.environ["OTEL_SDK_DISABLED"] = "true"

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import BaseTool
from pydantic import ValidationError

import recollect
from recollect.compat.crewai import DEFAULT, memory_tools
from recollect.errors import InvalidArgumentError

pytestmark = pytest.mark.filterwarnings("ignore")


def tools(memory: recollect.Memory, **options: Any) -> dict[str, BaseTool]:
    return {tool.name: tool for tool in memory_tools(memory, **options)}


def test_tools_remember_recall_change_and_forget(place: recollect.Memory) -> None:
    by_name = tools(place.scoped(user="ana"))
    assert tuple(by_name) == DEFAULT
    stored = json.loads(by_name["remember"].run(content="Ana prefers window seats", kind="user_fact"))
    (found,) = json.loads(by_name["recall"].run(question="Which seats does Ana prefer?"))
    assert (found["id"], found["content"], found["user"]) == (stored["id"], "Ana prefers window seats", "ana")
    assert "window seats" in json.loads(by_name["context"].run(question="Which seats?"))
    by_name["update"].run(id=stored["id"], content="Ana prefers the aisle")
    assert json.loads(by_name["forget"].run(id=stored["id"]))["forgotten"] is True
    assert json.loads(by_name["recall"].run(question="Which seats does Ana prefer?")) == []


def test_a_scope_keeps_an_agent_to_its_user(place: recollect.Memory) -> None:
    place.remember("Bob prefers aisle seats", user="bob")
    assert json.loads(tools(place.scoped(user="ana"))["recall"].run(question="seats")) == []


def test_an_error_is_an_answer_that_the_model_can_read(place: recollect.Memory) -> None:
    answer = json.loads(tools(place)["forget"].run(id="unknown"))
    assert answer["error"] == "unknown_record"
    assert "unknown" in answer["message"]


def test_arguments_are_checked_and_described(place: recollect.Memory) -> None:
    recall = tools(place)["recall"]
    with pytest.raises((ValidationError, ValueError)):
        recall.run(k=3)
    with pytest.raises((ValidationError, ValueError)):
        recall.run(question="seats", users=["ana"])
    schema = recall.args_schema.model_json_schema()
    assert schema["required"] == ["question"]
    assert "The question" in str(schema["properties"]["question"])


def test_tools_are_chosen_named_and_only_read(place: recollect.Memory) -> None:
    assert "remember" not in tools(place, only=None, read_only=True)
    assert set(tools(place, only=("recall",), prefix="memory_")) == {"memory_recall"}
    assert len(memory_tools(place, only=None)) > len(DEFAULT)
    with pytest.raises(InvalidArgumentError):
        memory_tools(place, only=("dream",))
    with pytest.raises(InvalidArgumentError, match="list of names"):
        memory_tools(place, only="recall")
    with pytest.raises(InvalidArgumentError, match=r"recollect\.open"):
        memory_tools("agent.db")  # type: ignore[arg-type]


def test_tools_are_awaited_in_threads(place: recollect.Memory) -> None:
    place.remember("Ana prefers window seats")
    (found,) = json.loads(asyncio.run(tools(place)["recall"].arun(question="seats")))
    assert found["content"] == "Ana prefers window seats"


def test_a_crew_remembers_by_its_tools(place: recollect.Memory) -> None:
    asked: list[str] = []

    class Scripted(BaseLLM):
        """A model that first remembers, and then answers."""

        def call(self, messages: Any, *arguments: Any, **options: Any) -> str:
            asked.append(str(messages))
            if len(asked) == 1:
                return 'Thought: I store it.\nAction: remember\nAction Input: {"content": "Ana prefers window seats"}'
            return "Thought: I now know the final answer\nFinal Answer: Noted."

        def supports_function_calling(self) -> bool:
            return False

    agent = Agent(
        role="travel agent",
        goal="know what Ana likes",
        backstory="You remember.",
        llm=Scripted(model="scripted"),
        tools=memory_tools(place.scoped(user="ana")),
        verbose=False,
    )
    task = Task(description="Remember Ana's seat.", expected_output="A word.", agent=agent)
    result = Crew(agents=[agent], tasks=[task], verbose=False).kickoff()
    assert "Noted" in str(result)
    (hit,) = place.recall("Which seats does Ana prefer?")
    assert hit.record.user == "ana"
    assert "Ana prefers window seats" in asked[1]
