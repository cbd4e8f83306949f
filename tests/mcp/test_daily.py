"""The tools that a server offers unless others are named: few, with small definitions."""

from __future__ import annotations

import json

import pytest
from tests.mcp.clients import Connected, in_process, texts

import recollect
from recollect.server.mcp.toolsets import DEFAULT_SETS, TOOLSETS, tools_of

#: Bytes that the definitions of the default tools may have in all.
MOST_BYTES = 6000
DAILY = TOOLSETS["daily"]


def definitions(server: Connected) -> dict[str, int]:
    """Return the size of each definition, as JSON in bytes."""
    listed = server.run(server.client.list_tools).tools
    return {tool.name: len(tool.model_dump_json(by_alias=True, exclude_none=True).encode()) for tool in listed}


@pytest.mark.parametrize(("sets", "is_small"), [(DEFAULT_SETS, True), (("recollect",), False)], ids=["", "control"])
def test_the_five_tools_of_every_day_have_small_definitions(
    memory: recollect.Memory, sets: tuple[str, ...], is_small: bool
) -> None:
    with in_process(memory, sets) as server:
        sizes = definitions(server)
    assert (set(sizes) == {"remember", "recall", "context", "update", "forget"}) == is_small
    assert (sum(sizes.values()) <= MOST_BYTES) == is_small


def test_a_small_definition_lists_arguments_of_the_tool() -> None:
    for tool in DAILY:
        assert tool.listed is not None
        assert set(tool.required or ()) <= set(tool.listed) <= set(tool.inputs), tool.name
        for name, schema in tool.listed.items():
            assert schema["type"] == tool.inputs[name]["type"], f"{tool.name}.{name}"


def test_an_argument_that_is_not_listed_is_used_and_an_unknown_one_refused(memory: recollect.Memory) -> None:
    with in_process(memory, DEFAULT_SETS) as server:
        stored = server.ok("remember", content="Ana drinks tea", importance=0.9, entity="Ada Lovelace", id="tea")
        assert (stored["id"], stored["status"]) == ("tea", "created")
        record = memory.get("tea")
        assert record is not None
        assert (record.importance, record.entity) == (0.9, "ada_lovelace")
        server.ok("remember", content="Ana drinks water")
        assert len(server.ok("recall", question="Ana", k=1)["hits"]) == 1
        assert len(server.ok("recall", question="Ana", where="importance>=0.5")["hits"]) == 1
        assert "did you mean 'content'?" in server.refused("remember", context="tea")
        server.ok("update", id="tea", content="Ana drinks coffee", expect=record.hash)
        assert "changed" in server.refused("forget", id="tea", expect=record.hash)
        assert server.ok("forget", id="tea") == {"id": "tea", "forgotten": True}
        assert "water" in server.ok("context", question="What does Ana drink?")["context"]


def test_a_server_with_a_fixed_user_lists_no_user(memory: recollect.Memory) -> None:
    with in_process(memory, DEFAULT_SETS, user="ana") as server:
        for tool in server.run(server.client.list_tools).tools:
            assert "user" not in tool.input_schema["properties"]
        server.ok("remember", content="I drink tea")
    assert [record.user for record in memory.find()] == ["ana"]


def test_a_set_with_whole_definitions_has_those() -> None:
    whole = {tool.name: tool for tool in TOOLSETS["recollect"]}
    for names in (("daily", "recollect"), ("recollect", "daily"), ("all",)):
        tools = tools_of(names)
        assert all(tools[name] is tool for name, tool in whole.items())
    assert set(tools_of(("all",))) == {tool.name for tools in TOOLSETS.values() for tool in tools}
    assert set(tools_of(DEFAULT_SETS, read_only=True)) == {"recall", "context"}


def test_an_answer_is_within_its_budget_and_says_what_is_shortened(memory: recollect.Memory) -> None:
    memory.remember("The harbour opens at six. " * 2000, id="long")
    memory.remember("The harbour is small.", id="short")
    with in_process(memory, DEFAULT_SETS) as server:
        found = server.call("recall", question="harbour")
        assert len(json.dumps(found.structured_content)) < 4 * 1100
        assert any("A text is shortened" in text for text in texts(found))
        short = server.call("recall", question="harbour", where="id=short")
        assert not any("A text is shortened" in text for text in texts(short)), "control"


def test_the_knowledge_graph_is_a_resource_without_its_tools(memory: recollect.Memory) -> None:
    with in_process(memory, ("reference",)) as server:
        server.ok("create_entities", entities=[{"name": "Ada", "entityType": "person", "observations": ["works"]}])
    with in_process(memory, DEFAULT_SETS) as server:
        (content,) = server.run(server.client.read_resource, "memory://knowledge-graph").contents
        assert json.loads(content.text)["entities"][0]["name"] == "Ada"
