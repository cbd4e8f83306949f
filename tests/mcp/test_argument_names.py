"""One argument has one name: in the Python call, in the function tools and in the tools of the MCP server."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from tests.mcp.clients import Connected, in_process

import recollect
from recollect import Memory
from recollect.arguments.tools import Tool, string
from recollect.errors import InvalidArgumentError
from recollect.memory.tools import TOOLS as FUNCTION_TOOLS
from recollect.policies import judge
from recollect.server.mcp.toolsets import TOOLSETS

#: The tools that have a call in Python, each with it. The others are those of the reference memory server.
CALLS: Mapping[str, Callable[[Memory], Callable[..., Any]]] = {
    **{
        name: lambda memory, name=name: getattr(memory, name)  # type: ignore[misc]
        for name in (
            *("remember", "recall", "context", "get", "find", "stats", "update", "forget", "history"),
            *("diff", "snapshot", "rollback", "entity", "contradictions"),
        )
    },
    "log": lambda memory: memory.changes,
    "search": lambda memory: memory.recall,
    "define_term": lambda memory: memory.glossary.memorize,
    "recall_terms": lambda memory: memory.glossary.recall,
    "terms_in_text": lambda memory: memory.glossary.annotate,
    "forget_term": lambda memory: memory.glossary.forget,
    "import_outline": lambda memory: memory.outline.ingest_text,
    "show_outline": lambda memory: memory.outline.view,
    "search_outline": lambda memory: memory.outline.search,
    "focus_outline": lambda memory: memory.outline.focus,
    "store_text": lambda memory: memory.sdr.store,
    "find_texts": lambda memory: memory.sdr.query,
    "forget_text": lambda memory: memory.sdr.forget,
    "judge_text": lambda _memory: judge,
}
#: What only tools have: the size of an answer and where it continues, and what a model cannot say in another way.
OF_TOOLS = {
    "cursor": "an answer that is too long continues there",
    "max_tokens": "the size of an answer",
    "start": "the part of a long content (get)",
    "depth": "the part of a large outline (show_outline)",
    "remove": "fields that a call in Python sets to None (update)",
    "minimum_similarity": "a threshold that `recall` does not have (search)",
    "limit": "the size of an answer (contradictions)",
}
EVERY_SET = {tool.name: tool for tools in TOOLSETS.values() for tool in tools}


def foreign_names(memory: Memory, tools: Iterable[Tool[Any, Any]]) -> set[tuple[str, str]]:
    """Return the arguments of tools that the calls in Python do not have."""
    return {
        (tool.name, name)
        for tool in tools
        if tool.name in CALLS
        for name in tool.inputs
        if name not in inspect.signature(CALLS[tool.name](memory)).parameters and name not in OF_TOOLS
    }


def test_a_tool_has_the_names_of_the_call_in_python(memory: Memory) -> None:
    assert foreign_names(memory, FUNCTION_TOOLS) == set()
    assert foreign_names(memory, EVERY_SET.values()) == set()
    other: Tool[Any, Any] = Tool(
        name="recall_terms", description="", inputs={"query": string(), "k": string()}, run=lambda *_: None
    )
    assert foreign_names(memory, [other]) == {("recall_terms", "query")}


def test_every_tool_but_those_of_the_reference_server_has_a_call_in_python() -> None:
    of_reference = {tool.name for tool in TOOLSETS["reference"]}
    assert {tool.name for tool in FUNCTION_TOOLS} | EVERY_SET.keys() == CALLS.keys() | of_reference
    assert not of_reference & CALLS.keys()


def test_the_tools_of_both_kinds_have_the_same_names() -> None:
    for tool in FUNCTION_TOOLS:
        if tool.name in EVERY_SET:
            assert tool.inputs.keys() <= EVERY_SET[tool.name].inputs.keys(), tool.name


def test_a_former_name_stands_for_an_argument_and_is_in_no_schema() -> None:
    for tool in (*FUNCTION_TOOLS, *EVERY_SET.values()):
        assert set(tool.former.values()) <= tool.inputs.keys(), tool.name
        assert not tool.former.keys() & tool.inputs.keys(), tool.name
        assert not tool.former.keys() & tool.input_schema()["properties"].keys(), tool.name


#: The calls of clients of earlier releases: tool, arguments, and the same by present names.
FORMER: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("define_term", {"term": "PII", "meaning": "Personal data", "agent": "bot"},
     {"key": "PII", "value": "Personal data", "agent_id": "bot"}),
    ("recall_terms", {"question": "PII?", "agent": "bot"}, {"question": "PII?", "agent_id": "bot"}),
    ("terms_in_text", {"text": "PII", "agent": "bot"}, {"text": "PII", "agent_id": "bot"}),
    ("search_outline", {"query": "boats"}, {"text": "boats"}),
    ("focus_outline", {"node": "boats"}, {"node_id": "boats"}),
    ("show_outline", {"node": "boats"}, {"under": "boats"}),
    ("find_texts", {"text": "disk", "k": 1}, {"text": "disk", "limit": 1}),
]  # fmt: skip
ORG = "* Boats\n:PROPERTIES:\n:ID: boats\n:END:\nhulls\n"


@pytest.fixture
def filled(memory: Memory) -> Memory:
    memory.glossary.memorize("PII", "Personal data", "", "bot")
    memory.outline.ingest_text(ORG, "org", source="notes.org")
    memory.sdr.store_many([("disk full", {}), ("disk empty", {})])
    return memory


@pytest.mark.parametrize(("tool", "former", "present"), FORMER)
def test_a_call_by_former_names_has_the_same_answer(
    tool: str, former: dict[str, Any], present: dict[str, Any], filled: Memory
) -> None:
    with in_process(filled, ["glossary", "outline", "sdr"]) as server:
        assert server.ok(tool, **former) == server.ok(tool, **present)
        assert server.ok(tool, **former, **dict.fromkeys(present.keys() - former.keys())) == server.ok(tool, **present)
    tools = filled.tools()
    if tool in tools.names:
        assert tools.call(tool, former) == tools.call(tool, present)


@pytest.mark.parametrize(("tool", "former", "present"), FORMER)
def test_both_names_of_an_argument_are_an_error_and_change_nothing(
    tool: str, former: dict[str, Any], present: dict[str, Any], filled: Memory
) -> None:
    (name, *_), (now, *_) = former.keys() - present.keys(), present.keys() - former.keys()
    now = EVERY_SET[tool].former[name]
    before = filled.root
    with in_process(filled, ["glossary", "outline", "sdr"]) as server:
        message = server.refused(tool, **{**present, name: former[name]})
        assert f"Invalid arguments for tool {tool}: {now} " in message
        assert f"is passed twice, as {now} and as {name}" in message
    tools = filled.tools()
    if tool in tools.names:
        with pytest.raises(InvalidArgumentError, match=f"passed twice, as {now} and as {name}"):
            tools.call(tool, {**present, name: former[name]})
    assert filled.root == before


def test_forgetting_takes_former_names_too(filled: Memory) -> None:
    with in_process(filled, ["glossary", "sdr"]) as server:
        assert server.ok("forget_term", term="pii", agent="bot") == {"forgotten": True}
        assert server.ok("forget_term", key="pii", agent_id="bot") == {"forgotten": False}


def test_an_argument_that_is_unknown_is_still_an_error(filled: Memory) -> None:
    with in_process(filled, ["glossary"]) as server:
        assert "Unrecognized key: 'name'" in server.refused("forget_term", name="pii")
        assert "expected string, received undefined at key" in server.refused("forget_term")
        assert "expected string, received null at key" in server.refused("forget_term", key=None)


def test_the_tools_of_the_reference_server_have_its_names_and_no_others(memory: recollect.Memory) -> None:
    assert not any(tool.former for tool in TOOLSETS["reference"])
    server: Connected
    with in_process(memory, ["reference"]) as server:
        assert server.ok("search_nodes", query="x") == {"entities": [], "relations": []}
