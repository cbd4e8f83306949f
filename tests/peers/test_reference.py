"""Our MCP server gives the reference memory server's answers, except for the listed differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.peers.comparing import Pair, disagreements
from tests.peers.differences import DIFFERENCES, ONE_FORM, OWN_WORDS, in_one_form, listing, matches, predicted
from tests.peers.wire import Message, Server, ours, reference

pytestmark = pytest.mark.peers

SEQUENCES = 200
GRAPH = "memory://knowledge-graph"
#: What is not compared in a tool's description: our own words, and what clients do not interpret.
OWN_KEYS = {"$schema", "description", "execution"}


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """The reference server and ours, with empty graphs."""
    with reference(tmp_path) as theirs, ours(tmp_path) as mine:
        yield theirs, mine


def test_random_sequences_of_calls_have_the_same_answers_except_for_the_listed_differences(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    found = list(
        disagreements(lambda folder: (reference(folder), ours(folder)), tmp_path, range(SEQUENCES), seen),
    )
    assert not found, f"{len(found)} of {SEQUENCES} sequences differ, first {found[0]}"
    # A difference that does not occur is not tested, or is none.
    assert set(seen) == {ONE_FORM, *(difference.name for difference in DIFFERENCES)}
    assert seen[ONE_FORM] > 0


def test_the_comparison_misses_no_listed_difference_if_ours_behaves_as_the_reference(tmp_path: Path) -> None:
    # The negative control of the list: a difference must be predicted, rather than excused if it occurs.
    def both(folder: Path) -> Pair:
        (folder / "second").mkdir()
        return reference(folder), reference(folder / "second")

    found = list(disagreements(both, tmp_path, range(SEQUENCES), Counter()))
    assert {difference.name for one in found for difference in one.due} == {each.name for each in DIFFERENCES}
    in_form = [one for one in found if all(in_one_form(arguments) == arguments for _, arguments in one.calls)]
    assert all(one.answer == one.reference != one.expected for one in in_form)
    assert 0 < len(in_form) < len(found), "names in two forms are found to differ, too"


def without_structure(tool: str, result: Message) -> Message:
    return {key: value for key, value in result.items() if key != "structuredContent"}


def compact(tool: str, result: Message) -> Message:
    if "structuredContent" not in result or tool.startswith("delete"):
        return result
    text = result["content"][0]["text"].replace("\n", "")
    return {**result, "content": [{"type": "text", "text": text}]}


def no_errors(tool: str, result: Message) -> Message:
    return {**result, "isError": False}


def newest_first(tool: str, result: Message) -> Message:
    if tool != "search_nodes" or result["isError"]:
        return result
    graph = result["structuredContent"]
    return {**result, "structuredContent": {**graph, "entities": graph["entities"][::-1]}}


def both_ends(tool: str, result: Message) -> Message:
    """Drop relations of which only one end was found, as versions before 2026 did."""
    if tool not in ("search_nodes", "open_nodes") or result["isError"]:
        return result
    graph = result["structuredContent"]
    names = {entity["name"] for entity in graph["entities"]}
    relations = [each for each in graph["relations"] if {each["from"], each["to"]} <= names]
    return {**result, "structuredContent": {**graph, "relations": relations}}


@pytest.mark.parametrize("change", [without_structure, compact, no_errors, newest_first, both_ends])
def test_the_comparison_finds_a_server_that_answers_otherwise(
    change: Callable[[str, Message], Message], tmp_path: Path
) -> None:
    def broken(folder: Path) -> Pair:
        (folder / "second").mkdir()
        return reference(folder), reference(folder / "second", change)

    found = disagreements(broken, tmp_path, range(SEQUENCES), Counter())
    assert any(not one.due for one in found)


def test_a_call_with_two_differences_is_predicted_in_full() -> None:
    twice = {"name": "Ana", "entityType": "person", "observations": ["tea", "tea"]}
    once = {**twice, "observations": ["tea"]}
    given = listing("entities", [twice, twice])
    expected, due = predicted("create_entities", {"entities": [twice, twice]}, given)
    assert (expected, len(due)) == (listing("entities", [once]), 2)
    assert not matches(given, expected)


def test_an_error_in_our_own_words_has_words() -> None:
    blank = {"name": "Ana", "entityType": "person", "observations": [" "]}
    expected, _ = predicted("create_entities", {"entities": [blank]}, listing("entities", [blank]))
    assert expected["content"][0]["text"] == OWN_WORDS
    refused = {"content": [{"type": "text", "text": "No blanks."}], "isError": True}
    assert matches(refused, expected)
    assert not matches({**refused, "content": []}, expected)
    assert not matches({**refused, "isError": False}, expected)


def structure(schema: Any) -> Any:
    """Return a schema, or a tool, without the keys that need not be the same."""
    if isinstance(schema, dict):
        return {key: structure(value) for key, value in schema.items() if key not in OWN_KEYS}
    return [structure(item) for item in schema] if isinstance(schema, list) else schema


def test_the_nine_tools_have_the_same_names_titles_schemas_and_annotations(pair: Pair) -> None:
    theirs, mine = ({tool["name"]: tool for tool in server.ask("tools/list")["result"]["tools"]} for server in pair)
    assert len(theirs) == 9
    # In the same order, too: a client may show them so.
    assert [name for name in mine if name in theirs] == list(theirs)
    for name, tool in theirs.items():
        assert structure(mine[name]) == structure(tool), name


def test_the_graph_is_the_same_resource(pair: Pair) -> None:
    theirs, mine = (server.ask("resources/list")["result"]["resources"] for server in pair)
    ((entry,), (same,)) = theirs, [each for each in mine if each["uri"] == GRAPH]
    assert entry["uri"] == GRAPH
    assert structure(same) == structure(entry)
    empty, filled = [], []
    for server in pair:
        empty.append(server.ask("resources/read", {"uri": GRAPH})["result"]["contents"])
        server.call("create_entities", {"entities": [{"name": "Zoë", "entityType": "cat", "observations": ["naps"]}]})
        server.call("create_relations", {"relations": [{"from": "Zoë", "to": "Ana", "relationType": "owns"}]})
        filled.append(server.ask("resources/read", {"uri": GRAPH})["result"]["contents"])
    assert empty[0] == empty[1]
    assert filled[0] == filled[1] != empty[0]


def test_a_resource_that_does_not_exist_is_an_error_of_the_protocol(pair: Pair) -> None:
    for server in pair:
        assert "error" in server.ask("resources/read", {"uri": "memory://other"})


def test_subscribers_are_notified_before_the_answer_of_each_successful_change(pair: Pair) -> None:
    entity = {"name": "Ana", "entityType": "person", "observations": []}
    calls: list[tuple[str, Message, bool]] = [
        ("create_entities", {"entities": [entity]}, True),
        ("create_entities", {"entities": [entity]}, True),  # changes nothing
        ("add_observations", {"observations": [{"entityName": "Ana", "contents": ["naps"]}]}, True),
        ("add_observations", {"observations": [{"entityName": "Bob", "contents": ["naps"]}]}, False),  # an error
        ("create_relations", {"relations": [{"from": "Ana", "to": "Bob", "relationType": "knows"}]}, True),
        ("read_graph", {}, False),
        ("search_nodes", {"query": "Ana"}, False),
        ("open_nodes", {"names": ["Ana"]}, False),
        ("delete_observations", {"deletions": [{"entityName": "Ana", "observations": ["naps"]}]}, True),
        ("delete_relations", {"relations": []}, True),
        ("delete_entities", {"entityNames": ["nobody"]}, True),
    ]
    for server in pair:
        server.call("create_entities", {"entities": []})
        assert server.ask("resources/subscribe", {"uri": GRAPH})["result"] == {}
        assert notes(server) == []
        for tool, arguments, changes in calls:
            server.call(tool, arguments)
            assert notes(server) == [("notifications/resources/updated", {"uri": GRAPH})] * changes, tool
        assert server.ask("resources/unsubscribe", {"uri": GRAPH})["result"] == {}
        server.call("delete_entities", {"entityNames": ["Ana"]})
        assert notes(server) == []


def notes(server: Server) -> list[tuple[str, Message]]:
    """Remove and return the notifications that came before the last answer."""
    taken, server.notes = server.notes, []
    return taken


def test_an_unknown_tool_is_an_error_that_a_model_sees(pair: Pair) -> None:
    for server in pair:
        answer = server.call("no_such_tool", {})
        assert answer["isError"] is True
        assert "no_such_tool" in answer["content"][0]["text"]


def test_arguments_may_be_missing_and_unknown_ones_are_ignored(pair: Pair) -> None:
    entity = {"name": "Ana", "entityType": "person", "observations": [], "mood": "fine"}
    answers = [
        (
            server.call("create_entities", {"entities": [entity], "why": "to see"}),
            server.ask("tools/call", {"name": "read_graph"})["result"]["content"],
        )
        for server in pair
    ]
    assert answers[0] == answers[1]


def test_a_text_that_is_no_unicode_is_refused_with_an_answer(tmp_path: Path) -> None:
    # JSON can express a lone surrogate, and the reference stores it. Ours cannot, and must not leave a client waiting.
    entity = {"name": "Ana \ud83d", "entityType": "person", "observations": []}
    with ours(tmp_path) as mine:
        answer = mine.ask("tools/call", {"name": "create_entities", "arguments": {"entities": [entity]}})
        assert "error" in answer or answer["result"]["isError"]
        assert mine.graph() == {"entities": [], "relations": []}
