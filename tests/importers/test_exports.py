"""Exports of other programs (ChatGPT, mem0), CSV, and JSON lines without a header."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from recollect import Memory, Record
from recollect.errors import ImportFormatError
from recollect.importers import ImportReport

Write = Callable[[str, Any], Path]
Run = Callable[..., ImportReport]


def node(node_id: str, parent: str | None, *parts: Any, role: str = "user", **more: Any) -> dict[str, Any]:
    """A node of a tree, in the form of the export."""
    content = more.pop("content", {"content_type": "text", "parts": list(parts)})
    message = {
        "id": f"id-{node_id}",
        "author": {"role": role, "name": more.pop("name", None), "metadata": {}},
        "create_time": more.pop("create_time", 1699564800.0),
        "update_time": None,
        "content": content,
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": more.pop("metadata", {}),
        "recipient": more.pop("recipient", "all"),
    }
    return {"id": node_id, "message": message, "parent": parent, "children": []}


def tree(current: str | None, *nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    root: dict[str, Any] = {"id": "root", "message": None, "parent": None, "children": []}
    about = {"title": "Tea", "create_time": 1699564800.0, "conversation_id": "c1", "moderation_results": []}
    return {**about, "mapping": {each["id"]: each for each in (root, *nodes)}, "current_node": current, **more}


#: "q2" was asked again as "q3", and "a3" was generated again as "a4", which is shown.
BRANCHED = (
    node("hidden", "root", "", role="system", metadata={"is_visually_hidden_from_conversation": True}),
    node("q1", "hidden", "Which tea?"),
    node("a1", "q1", "Green.", role="assistant", metadata={"model_slug": "gpt-4o"}, create_time=1699564801.5),
    node("q2", "a1", "How much?"),
    node("a2", "q2", "A spoon.", role="assistant"),
    node("q3", "a1", "How hot?"),
    node("a3", "q3", "Boiling.", role="assistant"),
    node("a4", "q3", "Eighty degrees.", role="assistant"),
)


def turns_of(memory: Memory, conversation: str) -> list[tuple[str | None, str, int | None]]:
    found = memory.find(f'conversation="{conversation}"', order="position")
    return [(record.role, record.text, record.position) for record in found]


def test_the_shown_branch_of_a_chatgpt_conversation_is_the_conversation(run: Run, write: Write, memory: Memory) -> None:
    report = run("chatgpt", write("conversations.json", [tree("a4", *BRANCHED)]))
    assert (report.created, report.damaged, report.zone_assumed) == (7, (), None)
    assert turns_of(memory, "c1") == [
        ("user", "Which tea?", 0),
        ("assistant", "Green.", 1),
        ("user", "How hot?", 2),
        ("assistant", "Eighty degrees.", 3),
    ]
    first, second = memory.find("conversation=c1", order="position")[:2]
    assert first.id == "id-q1"
    assert first.metadata["conversation"] == {"title": "Tea", "create_time": 1699564800.0}
    assert second.time == datetime(2023, 11, 9, 21, 20, 1, 500000, tzinfo=UTC)
    assert second.metadata["model"] == "gpt-4o"


def test_other_branches_are_conversations_with_a_tag_and_go_on_where_they_leave(
    run: Run, write: Write, memory: Memory
) -> None:
    run("chatgpt", write("conversations.json", [tree("a4", *BRANCHED)]))
    assert turns_of(memory, "c1/q2") == [("user", "How much?", 2), ("assistant", "A spoon.", 3)]
    assert turns_of(memory, "c1/a3") == [("assistant", "Boiling.", 3)]
    assert memory.count("tag=other-branch") == 3


def test_a_later_export_adds_only_the_new_messages_also_if_another_branch_is_shown(
    run: Run, write: Write, memory: Memory
) -> None:
    run("chatgpt", write("conversations.json", [tree("a4", *BRANCHED)]))
    assert run("chatgpt", write("conversations.json", [tree("a4", *BRANCHED)])).unchanged == 7
    later = write("later.json", [tree("a5", *BRANCHED, node("a5", "a2", "Two spoons.", role="assistant"))])
    report = run("chatgpt", later)
    assert (report.created, report.unchanged) == (1, 7)


def test_parts_of_a_chatgpt_message_that_are_not_text_are_described(run: Run, write: Write, memory: Memory) -> None:
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://f", "size_bytes": 5}
    sound = {"content_type": "audio_transcription", "text": "and milk", "direction": "in"}
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "c"}]}
    nodes = (
        node("a", "root", content={"content_type": "multimodal_text", "parts": [image, "Look", sound]}),
        node("b", "a", role="assistant", content=thoughts),
        node("c", "b", role="assistant", recipient="python", content={"content_type": "code", "text": "print(1)"}),
        node("d", "c", role="tool", name="python", content={"content_type": "execution_output", "text": "1"}),
        node("e", "d", {"content_type": "tool_result", "x": 1}, role="assistant"),
    )
    report = run("chatgpt", write("conversations.json", tree("e", *nodes)))
    assert report.damaged == ()
    assert turns_of(memory, "c1") == [
        ("user", "Look\nand milk\n[image]", 0),
        ("assistant", "[calls python print(1)]", 1),
        ("tool", "1", 2),
        ("assistant", "[part]", 3),
    ]


def test_a_chatgpt_tree_with_circles_and_damaged_nodes_is_imported_where_it_can_be(
    run: Run, write: Write, memory: Memory
) -> None:
    nodes = (node("a", "b", "one"), node("b", "a", "two"), {"id": "c", "message": {"author": 1, "content": "x"}})
    report = run("chatgpt", write("conversations.json", [tree("a", *nodes), {"title": "no tree"}]))
    assert sorted(record.text for record in memory.find()) == ["one", "two"]
    assert [damage.place for damage in report.damaged] == ["conversation 1, message 'c'", "conversation 2"]


def test_a_conversation_without_a_current_node_ends_at_the_last_leaf(run: Run, write: Write, memory: Memory) -> None:
    run("chatgpt", write("conversations.json", [tree(None, *BRANCHED)]))
    assert turns_of(memory, "c1")[-1] == ("assistant", "Eighty degrees.", 3)


def test_the_openai_format_names_the_one_of_an_export_of_chatgpt(run: Run, write: Write) -> None:
    with pytest.raises(ImportFormatError, match="with the format chatgpt"):
        run("openai", write("conversations.json", [tree("a4", *BRANCHED)]))


MEMORY = {
    "id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e",
    "memory": "Ana loves green tea",
    "hash": "h",
    "user_id": "ana",
    "agent_id": "kitchen",
    "app_id": None,
    "run_id": "r1",
    "metadata": {"room": "kitchen"},
    "categories": ["drinks"],
    "created_at": "2024-07-20T01:30:36.275141-07:00",
    "updated_at": None,
}


@pytest.mark.parametrize("data", [[MEMORY], {"results": [MEMORY]}, {"count": 1, "next": None, "results": [MEMORY]}])
def test_memories_of_mem0_are_facts_of_their_user(data: Any, run: Run, write: Write, memory: Memory) -> None:
    path = write("memories.json", data)
    assert run("mem0", path).created == 1
    (record,) = memory.find()
    assert record == Record(
        id="892db2ae-06d9-49e5-8b3e-585ef9b85b8e",
        content="Ana loves green tea",
        kind="user_fact",
        origin="unknown",
        user="ana",
        agent="kitchen",
        session="r1",
        tags=("drinks",),
        metadata={"room": "kitchen", "hash": "h"},
        time=datetime(2024, 7, 20, 1, 30, 36, 275141, tzinfo=timezone(timedelta(hours=-7))),
    )
    assert run("mem0", path).unchanged == 1


def test_what_mem0_has_beside_memories_is_reported(run: Run, write: Write) -> None:
    more = {"next": "https://x", "relations": [{"source": "a"}], "results": [MEMORY, {"memory": 5}, 7]}
    report = run("mem0", write("memories.json", more))
    assert [damage.place for damage in report.damaged] == ["memory 2", "memory 3", "next", "relations"]


CSV = """\ufeffid;Content;user;tags;time;importance;pinned;colour;position
a;"Tea, ""green""\nand hot";ana;x, y;2026-03-01 09:30;0.5;TRUE;green;
b;Two;;;1699564800;;;;

c;bad;;;;much;;;
d;bad;;;
e;;ana;;;;;;
"""


def test_csv_columns_are_fields_and_metadata_and_bad_rows_are_reported(run: Run, write: Write, memory: Memory) -> None:
    path = write("facts.csv", CSV)
    report = run("csv", path)
    assert report.zone_assumed == "UTC"
    assert [damage.place for damage in report.damaged] == ["line 6", "line 7", "line 8"]
    a, b = memory.find(order="id")
    assert (a.content, a.user, a.tags, a.importance, a.pinned) == (
        'Tea, "green"\nand hot',
        "ana",
        ("x", "y"),
        0.5,
        True,
    )
    assert (a.metadata, a.kind) == ({"colour": "green"}, "knowledge")
    assert a.time == datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    assert (b.content, b.time) == ("Two", datetime(2023, 11, 9, 21, 20, tzinfo=UTC))
    assert (run("csv", path).unchanged, memory.count()) == (2, 2)


def test_a_csv_row_that_is_not_searchable_may_be_blank(run: Run, write: Write, memory: Memory) -> None:
    report = run("csv", write("x.csv", "id,content,searchable\na,,false\nb,,true\nc,kept,false\n"))
    assert [damage.place for damage in report.damaged] == ["line 3"]
    assert [(each.id, each.text, each.searchable) for each in memory.find(order="id")] == [
        ("a", "", False),
        ("c", "kept", False),
    ]


def test_a_csv_file_needs_a_header_with_content_and_no_column_twice(run: Run, write: Write) -> None:
    for text in ("a,b\n1,2\n", "", '"open', "content,content\n1,2\n"):
        with pytest.raises(ImportFormatError):
            run("csv", write("x.csv", text))


def test_a_csv_field_beyond_the_limit_ends_the_import_with_a_report(run: Run, write: Write, memory: Memory) -> None:
    report = run("csv", write("x.csv", f'content\none\n"{"long " * 50_000}\nnot a row"\ntwo\n'))
    assert [damage.place for damage in report.damaged] == ["line 3 and all lines after it"]
    assert [record.text for record in memory.find()] == ["one"]


def test_rows_of_a_conversation_are_turns_with_positions(run: Run, write: Write, memory: Memory) -> None:
    short = "content,role,conversation\nhi,user,c\nok,assistant,c\nok,user,c\n"
    run("csv", write("x.csv", short))
    assert run("csv", write("x.csv", short + "ok,user,c\n")).created == 1
    assert turns_of(memory, "c") == [("user", "hi", 0), ("assistant", "ok", 1), ("user", "ok", 2), ("user", "ok", 3)]
    run("csv", write("x.csv", short.replace(",c\n", ",\n")), defaults={"conversation": "d"})
    assert turns_of(memory, "d") == [("user", "hi", 0), ("assistant", "ok", 1), ("user", "ok", 2)]


def test_json_lines_without_a_header_are_remembered(run: Run, write: Write, memory: Memory) -> None:
    lines: list[Any] = [
        {"content": "Ana likes tea", "user": "ana", "tags": ["drinks"], "time": "2026-03-01T09:30", "colour": 1},
        {"content": 5},
        {"id": "own", "content": "a second", "metadata": {"k": [1]}, "media_type": None},
        {"user": "ana"},
    ]
    text = "\n".join(map(json.dumps, lines)) + "\nnot json\n"
    report = run("jsonl", write("own.jsonl", text), defaults={"user": "bo"})
    assert [damage.place for damage in report.damaged] == ["line 2", "line 4", "line 5"]
    assert report.zone_assumed == "UTC"
    (ana,), (own,) = memory.find("user=ana"), memory.find("user=bo")
    assert (ana.tags, ana.metadata) == (("drinks",), {"colour": 1})
    assert (own.id, own.metadata) == ("own", {"k": [1]})
    assert run("jsonl", write("own.jsonl", text)).unchanged == 2
