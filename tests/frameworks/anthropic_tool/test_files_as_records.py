"""What a memory adds to the files: history, undo, erasure, recall, scopes, policies, and one commit per command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("recollect.compat.anthropic", exc_type=ImportError)

from anthropic.lib.tools import ToolError

import recollect
from recollect import filters as f
from recollect.compat import files
from recollect.compat.anthropic import AsyncRecollectMemoryTool, RecollectMemoryTool
from recollect.compat.files import Files
from recollect.errors import ClosedError, InvalidArgumentError, StoreMissingError

Send = Callable[..., str]


@pytest.fixture
def files_of_none(place: recollect.Memory) -> Iterator[Send]:
    """Send commands to a tool without a user, whose ids are not qualified."""
    with RecollectMemoryTool(place) as tool:
        yield sender(tool)


def sender(tool: RecollectMemoryTool) -> Send:
    def send(command: str, **fields: Any) -> str:
        return str(tool.call({"command": command, **fields}))

    return send


def test_each_command_is_one_commit_that_names_the_tool_and_the_command(
    place: recollect.Memory, files_of_none: Send
) -> None:
    send = files_of_none
    send("create", path="/memories/a/b", file_text="x")
    send("create", path="/memories/a/c", file_text="y")
    send("str_replace", path="/memories/a/b", old_str="x", new_str="z")
    send("insert", path="/memories/a/b", insert_line=0, insert_text="y")
    send("rename", old_path="/memories/a", new_path="/memories/d")
    send("delete", path="/memories/d")
    commits = list(reversed(place.log()))
    assert {commit.actor for commit in commits} == {"anthropic"}
    assert [commit.reason for commit in commits] == ["create", "create", "str_replace", "insert", "rename", "delete"]


def test_reading_and_refused_commands_are_no_commits(place: recollect.Memory, files_of_none: Send) -> None:
    files_of_none("create", path="/memories/a", file_text="x")
    seq = place.seq
    files_of_none("view", path="/memories/a")
    files_of_none("view", path="/memories")
    with pytest.raises(ToolError):
        files_of_none("str_replace", path="/memories/a", old_str="y", new_str="z")
    with pytest.raises(ToolError):
        files_of_none("delete", path="/memories/b")
    assert place.seq == seq


def test_every_version_of_a_file_is_in_its_history(place: recollect.Memory, tool: RecollectMemoryTool) -> None:
    send = sender(tool)
    send("create", path="/memories/a", file_text="one")
    send("str_replace", path="/memories/a", old_str="one", new_str="two")
    send("delete", path="/memories/a")
    send("create", path="/memories/a", file_text="three")
    versions = place.scoped(user="ana").history("/memories/a")
    assert [each.record and each.record.text for each in versions] == ["one", "two", None, "three"]


def test_an_edit_a_deletion_and_a_rename_can_be_taken_back(place: recollect.Memory, files_of_none: Send) -> None:
    send = files_of_none
    for path in ("/memories/a/b", "/memories/a/c"):
        send("create", path=path, file_text="one\r\n")
    before = send("view", path="/memories")
    for command in (
        {"command": "str_replace", "path": "/memories/a/b", "old_str": "one", "new_str": "two"},
        {"command": "delete", "path": "/memories/a"},
        {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/x/y"},
    ):
        send(**command)
        restored = place.revert(place.seq, actor="ana")
        assert restored.changed > 0
        assert restored.conflicts == ()
        assert send("view", path="/memories") == before
    assert send("view", path="/memories/a/b").endswith("     1\tone\r\n     2\t")


def test_an_erased_file_is_in_no_version(place: recollect.Memory, tool: RecollectMemoryTool) -> None:
    send = sender(tool)
    send("create", path="/memories/a", file_text="the code is 8841")
    send("str_replace", path="/memories/a", old_str="8841", new_str="7730")
    send("delete", path="/memories/a")
    ana = place.scoped(user="ana")
    erased = place.erase(f.user("ana"))
    assert erased.versions == 2
    assert all(each.record is None for each in ana.history("/memories/a"))
    send("create", path="/memories/a", file_text="a new one")


def test_files_are_there_after_reopening(tmp_path: Path) -> None:
    with RecollectMemoryTool(tmp_path / "agent.db", user="ana", embedder="none") as tool:
        sender(tool)("create", path="/memories/a/b", file_text="x\r\n")
    with RecollectMemoryTool(tmp_path / "agent.db", user="ana", embedder="none") as tool:
        assert sender(tool)("view", path="/memories/a/b").endswith("     1\tx\r\n     2\t")


def test_recall_finds_notes_and_no_blank_files(place: recollect.Memory, tool: RecollectMemoryTool) -> None:
    send = sender(tool)
    send("create", path="/memories/ana.md", file_text="Ana prefers window seats.\n")
    send("create", path="/memories/blank.md", file_text=" \n")
    hits = place.recall("which seat does Ana prefer?", user="ana")
    assert [hit.record.source for hit in hits] == ["/memories/ana.md"]
    send("insert", path="/memories/blank.md", insert_line=0, insert_text="The ferry leaves at nine.")
    send("str_replace", path="/memories/ana.md", old_str="Ana prefers window seats.\n", new_str="")
    assert [hit.record.source for hit in place.recall("When does the ferry leave?")] == ["/memories/blank.md"]
    assert place.recall("which seat does Ana prefer?").standing == ()


def test_a_file_is_not_a_standing_instruction(place: recollect.Memory, tool: RecollectMemoryTool) -> None:
    send = sender(tool)
    send("create", path="/memories/a", file_text="Always answer in French.")
    send("create", path="/memories/b", file_text="x")
    send("str_replace", path="/memories/b", old_str="x", new_str="Never mention prices.")
    assert place.recall("What is the capital of Peru?", user="ana").standing == ()
    assert all(not tag.startswith("standing") for tag, _ in place.values("tag"))


def test_users_agents_and_no_user_have_files_of_their_own(place: recollect.Memory) -> None:
    tools = [
        RecollectMemoryTool(place),
        RecollectMemoryTool(place, user="ana"),
        RecollectMemoryTool(place, user="bob"),
        RecollectMemoryTool(place, user="ana", agent="writer"),
        RecollectMemoryTool(place.scoped(conversation="monday"), user="ana"),
    ]
    for number, tool in enumerate(tools):
        sender(tool)("create", path=f"/memories/a/{number}", file_text="x")
        sender(tool)("create", path="/memories/a/same", file_text=str(number))
    for number, tool in enumerate(tools):
        assert sender(tool)("view", path="/memories").split("\n")[2:] == [
            "2B\t/memories/a/",
            f"1B\t/memories/a/{number}",
            "1B\t/memories/a/same",
        ]
        assert sender(tool)("view", path="/memories/a/same").endswith(f"\t{number}")
    sender(tools[0])("delete", path="/memories/a")
    sender(tools[1])("rename", old_path="/memories/a", new_path="/memories/b")
    tools[3].clear_all_memory()
    assert place.count("kind=memory_file") == 6
    assert sender(tools[2])("view", path="/memories/a/same").endswith("\t2")
    assert sender(tools[4])("view", path="/memories/a/same").endswith("\t4")


def test_a_rename_keeps_what_others_have_added_to_a_record(place: recollect.Memory, files_of_none: Send) -> None:
    files_of_none("create", path="/memories/a/b", file_text="x")
    record = place.get("/memories/a/b")
    assert record is not None
    place.update(record.id, tags=[*record.tags, "mine"], metadata={**record.metadata, "by": "Ana"}, importance=0.9)
    files_of_none("str_replace", path="/memories/a/b", old_str="x", new_str="y")
    files_of_none("rename", old_path="/memories/a", new_path="/memories/c")
    moved = place.get("/memories/c/b")
    assert moved is not None
    assert (moved.importance, moved.time, moved.source) == (0.9, record.time, "/memories/c/b")
    assert moved.tags == ("in:/memories", "in:/memories/c", "mine")
    assert moved.metadata == {"path": "/memories/c/b", "entry": "1 /memories/c/b", "by": "Ana"}
    assert place.get("/memories/a/b") is None


def test_a_folder_of_more_files_than_one_answer_has_is_one_commit(place: recollect.Memory) -> None:
    stored = Files(place.scoped(user="ana"), actor="test", root="/memories")
    for part in range(12):
        place.recall("note")  # loads the index, with which it is found out faster that there is no such folder
        with stored.change("many") as change:
            for n in range(100):
                change.create(f"/memories/a/{part}/{n}.md", f"note {n}")
    seq = place.seq
    with RecollectMemoryTool(place, user="ana") as tool:
        send = sender(tool)
        assert len(send("view", path="/memories/a").split("\n")) == 2 + 12 + 1200
        send("rename", old_path="/memories/a", new_path="/memories/b")
        assert place.seq == seq + 1
        assert len(stored.entries("/memories/b")) == 1200
        send("delete", path="/memories/b")
        assert place.seq == seq + 2
        assert send("view", path="/memories").endswith("\n0B\t/memories")


def test_a_listing_of_many_files_asks_for_no_texts(place: recollect.Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FEW", 10)
    stored = Files(place, actor="test", root="/memories")
    with stored.change("many") as change:
        for n in range(files.FEW + 1):
            change.create(f"/memories/{n}", "x")
    found: list[int | None] = []
    find = recollect.Memory.find

    def counted(self: recollect.Memory, where: Any = None, limit: int | None = None, **others: Any) -> Any:
        found.append(limit)
        return find(self, where, limit, **others)

    monkeypatch.setattr(recollect.Memory, "find", counted)
    assert len(stored.entries("/memories")) == files.FEW + 1
    assert found == [files.FEW]


def test_a_policy_of_the_memory_is_an_error_that_the_model_can_read(
    place: recollect.Memory, tool: RecollectMemoryTool
) -> None:
    place.set_policies(redaction="refuse")
    with pytest.raises(ToolError, match="rejected by the redaction policy"):
        sender(tool)("create", path="/memories/a", file_text="the password is hunter2")
    place.set_quota(records=1)
    sender(tool)("create", path="/memories/a", file_text="x")
    with pytest.raises(ToolError, match="quota"):
        sender(tool)("create", path="/memories/b", file_text="x")
    assert sender(tool)("view", path="/memories").endswith("\n1B\t/memories/a")


def test_a_closed_tool_says_so_and_leaves_a_memory_that_was_passed_open(place: recollect.Memory) -> None:
    tool = RecollectMemoryTool(place)
    tool.close()
    tool.close()
    with pytest.raises(ClosedError, match="the memory tool is closed"):
        sender(tool)("view", path="/memories")
    assert place.find() == []


def test_tools_of_one_path_share_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    one = RecollectMemoryTool(path, user="ana", embedder="none")
    two = RecollectMemoryTool(path, user="ana", embedder="none")
    sender(one)("create", path="/memories/a", file_text="x")
    one.close()
    assert sender(two)("view", path="/memories/a").endswith("\tx")
    two.close()


@pytest.mark.parametrize("kind", [RecollectMemoryTool, AsyncRecollectMemoryTool])
def test_a_wrong_argument_is_an_error_of_the_constructor(kind: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        kind(None)
    with pytest.raises(InvalidArgumentError):
        kind(tmp_path / "agent.db", user="")
    with pytest.raises(StoreMissingError):
        kind(tmp_path / "missing.db", create=False)


def test_a_record_of_another_user_with_the_id_of_a_path_is_no_file(place: recollect.Memory) -> None:
    place.remember("Bob's note", id="/memories/bob.md", kind="memory_file", user="bob", source="/memories/bob.md")
    with RecollectMemoryTool(place) as tool, pytest.raises(ToolError, match="does not exist"):
        tool.call({"command": "view", "path": "/memories/bob.md"})
