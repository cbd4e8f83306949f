"""The commands of the memory tool: what they do, and the exact texts that the model gets."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("recollect.compat.anthropic", exc_type=ImportError)

from anthropic.lib.tools import ToolError

import recollect
from recollect.compat import files
from recollect.compat.anthropic import AsyncRecollectMemoryTool, RecollectMemoryTool

Send = Callable[..., str]
EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"


def create(send: Send, path: str, text: str) -> str:
    return send("create", path=path, file_text=text)


def shown(send: Send, path: str, **fields: Any) -> str:
    """Return the numbered lines of a file."""
    header, _, lines = send("view", path=path, **fields).partition("\n")
    assert header == f"Here's the content of {path} with line numbers:"
    return lines


def refused(send: Send, text: str, command: str, **fields: Any) -> None:
    """Send a command that is refused with exactly this text."""
    with pytest.raises(ToolError, match=f"^{re.escape(text)}$"):
        send(command, **fields)


def test_a_new_file_can_be_viewed_with_line_numbers(send: Send) -> None:
    assert create(send, "/memories/a/tea.md", "green\nblack\n") == "File created successfully at: /memories/a/tea.md"
    assert shown(send, "/memories/a/tea.md") == "     1\tgreen\n     2\tblack\n     3\t"


def test_a_file_is_not_created_twice(send: Send) -> None:
    create(send, "/memories/a/tea.md", "green")
    refused(send, "File /memories/a/tea.md already exists", "create", path="/memories/a/tea.md", file_text="black")
    refused(send, "File /memories/a already exists", "create", path="/memories/a", file_text="black")
    refused(send, "File /memories already exists", "create", path="/memories", file_text="black")
    assert shown(send, "/memories/a/tea.md") == "     1\tgreen"


def test_nothing_is_stored_below_a_file(send: Send) -> None:
    create(send, "/memories/a", "a file")
    create(send, "/memories/b", "another")
    message = "The path /memories/a is not a directory."
    refused(send, message, "create", path="/memories/a/b/c.md", file_text="x")
    refused(send, message, "rename", old_path="/memories/b", new_path="/memories/a/b")
    refused(send, message, "rename", old_path="/memories/a", new_path="/memories/a/b")


@pytest.mark.parametrize(
    ("view_range", "lines"),
    [
        ([2, 3], [2, 3]),
        ([2, -1], [2, 3, 4]),
        ([0, 1], [1]),
        ([4, 99], [4]),
        ([3, 2], []),
        ([9, -1], []),
        ([1, -2], []),
    ],
)
def test_a_range_of_lines_is_shown(send: Send, view_range: list[int], lines: list[int]) -> None:
    create(send, "/memories/n", "1\n2\n3\n4")
    assert shown(send, "/memories/n", view_range=view_range) == "\n".join(f"     {n}\t{n}" for n in lines)


def test_a_file_of_too_many_lines_is_not_shown(send: Send) -> None:
    create(send, "/memories/most", "\n" * 999_998)
    assert shown(send, "/memories/most", view_range=[999_999, -1]) == "999999\t"
    create(send, "/memories/more", "\n" * 999_999)
    refused(send, "File /memories/more exceeds maximum line limit of 999,999 lines.", "view", path="/memories/more")


def test_a_folder_is_listed_two_levels_deep_without_hidden_names(send: Send) -> None:
    for path, text in {
        "b.md": "é",
        "a/z.md": "x" * 1024,
        "a/sub/deep/deeper.md": "x" * 512,
        "a/.hidden": "x",
        ".git/config": "x",
        "a.md": "",
    }.items():
        create(send, f"/memories/{path}", text)
    header = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items:"
    assert send("view", path="/memories").split("\n") == [
        header.format("/memories"),
        "1.5K\t/memories",
        "1.5K\t/memories/a/",
        "512B\t/memories/a/sub/",
        "1K\t/memories/a/z.md",
        "0B\t/memories/a.md",
        "2B\t/memories/b.md",
    ]
    assert send("view", path="/memories/a/").split("\n") == [
        header.format("/memories/a/"),
        "1.5K\t/memories/a/",
        "512B\t/memories/a/sub/",
        "512B\t/memories/a/sub/deep/",
        "1K\t/memories/a/z.md",
    ]
    assert send("view", path="/memories/.git").split("\n")[2:] == ["1B\t/memories/.git/config"]


def test_the_index_lists_many_files_as_their_records_do(send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("a/b/c.md", "a/d.md", "e f.md", "é.md"):
        create(send, f"/memories/{path}", path)
    listed = send("view", path="/memories")
    monkeypatch.setattr(files, "FEW", 1)
    assert send("view", path="/memories") == listed


def test_an_empty_memory_is_an_empty_folder(send: Send) -> None:
    assert send("view", path="/memories").split("\n")[1:] == ["0B\t/memories"]


def test_what_does_not_exist_is_named(send: Send) -> None:
    missing = "The path /memories/a does not exist. Please provide a valid path."
    refused(send, missing, "view", path="/memories/a")
    refused(send, missing, "str_replace", path="/memories/a", old_str="x", new_str="y")
    refused(send, missing, "insert", path="/memories/a", insert_line=0, insert_text="x")
    refused(send, "The path /memories/a does not exist", "delete", path="/memories/a")
    refused(send, "The path /memories/a does not exist", "rename", old_path="/memories/a", new_path="/memories/b")


def test_a_folder_is_not_edited(send: Send) -> None:
    create(send, "/memories/a/b", "x")
    for path in ("/memories/a", "/memories"):
        message = f"The path {path} is not a file."
        refused(send, message, "str_replace", path=path, old_str="x", new_str="y")
        refused(send, message, "insert", path=path, insert_line=0, insert_text="x")


def test_a_replacement_shows_two_lines_before_and_after_it(send: Send) -> None:
    create(send, "/memories/n", "1\n2\n3\nold\n5\n6\n7")
    answer = send("str_replace", path="/memories/n", old_str="old", new_str="new\nlines")
    assert answer == EDITED + "     2\t2\n     3\t3\n     4\tnew\n     5\tlines\n     6\t5"
    assert shown(send, "/memories/n").split("\n")[3:5] == ["     4\tnew", "     5\tlines"]


def test_a_replacement_may_delete_everything(send: Send) -> None:
    create(send, "/memories/n", "all of it")
    assert send("str_replace", path="/memories/n", old_str="all of it", new_str="") == EDITED + "     1\t"
    assert shown(send, "/memories/n") == "     1\t"
    assert send("insert", path="/memories/n", insert_line=0, insert_text="again\n\n").endswith("has been edited.")
    assert shown(send, "/memories/n") == "     1\tagain\n     2\t"


def test_an_ambiguous_replacement_names_the_lines(send: Send) -> None:
    create(send, "/memories/n", "tea\nmilk\ntea and tea")
    many = "No replacement was performed. Multiple occurrences of old_str `tea` in lines: 1, 3, 3. "
    refused(send, many + "Please ensure it is unique", "str_replace", path="/memories/n", old_str="tea", new_str="x")
    for old in ("coffee", ""):
        none = f"No replacement was performed, old_str `{old}` did not appear verbatim in /memories/n."
        refused(send, none, "str_replace", path="/memories/n", old_str=old, new_str="x")
    assert shown(send, "/memories/n", view_range=[3, 3]) == "     3\ttea and tea"


@pytest.mark.parametrize(
    ("line", "text", "after"),
    [(0, "x\n\n", "x\na\nb\n"), (1, "x\ny", "a\nx\ny\nb\n"), (2, "x", "a\nb\nx\n"), (1, "", "a\n\nb\n")],
)
def test_lines_are_inserted_after_a_line(tool: RecollectMemoryTool, line: int, text: str, after: str) -> None:
    create(commands(tool), "/memories/n", "a\nb")
    answer = commands(tool)("insert", path="/memories/n", insert_line=line, insert_text=text)
    assert answer == "The file /memories/n has been edited."
    assert content(tool, "/memories/n") == after


@pytest.mark.parametrize("line", [-1, 3])
def test_no_line_is_inserted_outside_of_the_file(send: Send, line: int) -> None:
    create(send, "/memories/n", "a\nb\n")
    message = f"Invalid `insert_line` parameter: {line}. It should be within the range [0, 2]."
    refused(send, message, "insert", path="/memories/n", insert_line=line, insert_text="x")


@pytest.mark.parametrize(
    "text", ["a\r\nb\r\n", "a\rb", "a\n\n\n", "", " \n\t", "nul \0 in it", "e\u0301 \u2028 \U0001f375", "\ufeffa"]
)
def test_texts_are_stored_exactly(tool: RecollectMemoryTool, text: str) -> None:
    create(commands(tool), "/memories/n", text)
    assert content(tool, "/memories/n") == text
    commands(tool)("rename", old_path="/memories/n", new_path="/memories/m")
    assert content(tool, "/memories/m") == text


def test_edits_leave_other_line_ends_as_they_are(tool: RecollectMemoryTool) -> None:
    send = commands(tool)
    create(send, "/memories/n", "a\r\nb\r\nc\r\n")
    assert shown(send, "/memories/n") == "     1\ta\r\n     2\tb\r\n     3\tc\r\n     4\t"
    send("str_replace", path="/memories/n", old_str="b", new_str="B")
    send("insert", path="/memories/n", insert_line=1, insert_text="x")
    assert content(tool, "/memories/n") == "a\r\nx\nB\r\nc\r\n"


def test_a_text_above_the_limit_of_texts_is_stored_exactly(tool: RecollectMemoryTool) -> None:
    send = commands(tool)
    long = "é\n" * (files.MAX_TEXT_BYTES // 3 + 1)
    create(send, "/memories/n", long)
    assert content(tool, "/memories/n") == long
    send("str_replace", path="/memories/n", old_str=long, new_str="short")
    assert content(tool, "/memories/n") == "short"
    assert send("view", path="/memories").endswith("5B\t/memories/n")


@pytest.mark.parametrize("text", ["lone \ud800 surrogate", "x" * (11 * 2**20)])
def test_a_text_that_no_record_can_have_is_refused_and_changes_nothing(tool: RecollectMemoryTool, text: str) -> None:
    send = commands(tool)
    with pytest.raises(ToolError, match="content"):
        create(send, "/memories/n", text)
    create(send, "/memories/n", "a")
    with pytest.raises(ToolError, match="content"):
        send("str_replace", path="/memories/n", old_str="a", new_str=text)
    assert content(tool, "/memories/n") == "a"


def test_a_file_and_a_folder_are_deleted(send: Send) -> None:
    for path in ("/memories/a/b/c", "/memories/a/d", "/memories/ab", "/memories/e"):
        create(send, path, path)
    assert send("delete", path="/memories/a") == "Successfully deleted /memories/a"
    assert send("delete", path="/memories/e") == "Successfully deleted /memories/e"
    assert send("view", path="/memories").split("\n")[2:] == ["12B\t/memories/ab"]
    create(send, "/memories/a", "a file now")


@pytest.mark.parametrize("path", ["/memories", "/memories/", "/memories/.", "/memories/x/.."])
def test_the_root_is_neither_deleted_nor_renamed(send: Send, path: str) -> None:
    refused(send, "Cannot delete the /memories directory itself", "delete", path=path)
    refused(send, "Cannot rename the /memories directory itself", "rename", old_path=path, new_path="/memories/y")


def test_a_folder_is_renamed_with_all_that_is_below_it(send: Send) -> None:
    for path in ("/memories/a/b/c", "/memories/a/d", "/memories/ab"):
        create(send, path, path)
    answer = send("rename", old_path="/memories/a", new_path="/memories/x/y")
    assert answer == "Successfully renamed /memories/a to /memories/x/y"
    assert shown(send, "/memories/x/y/b/c") == "     1\t/memories/a/b/c"
    listed = [line.partition("\t")[2] for line in send("view", path="/memories").split("\n")[2:]]
    assert listed == ["/memories/ab", "/memories/x/", "/memories/x/y/"]
    assert send("rename", old_path="/memories/x/y/d", new_path="/memories/a")


def test_a_rename_replaces_nothing(send: Send) -> None:
    for path in ("/memories/a/b", "/memories/c", "/memories/d/e"):
        create(send, path, path)
    for old, new in (("a", "c"), ("c", "a"), ("c", "c"), ("a", "d"), ("c", "d/e"), ("c", "")):
        message = f"The destination /memories/{new} already exists"
        refused(send, message, "rename", old_path=f"/memories/{old}", new_path=f"/memories/{new}")
    with pytest.raises(ToolError, match="lies below it"):
        send("rename", old_path="/memories/a", new_path="/memories/a/x")


def test_clearing_deletes_all_files_and_nothing_else(place: recollect.Memory, tool: RecollectMemoryTool) -> None:
    place.remember("a turn", user="ana")
    with RecollectMemoryTool(place, user="bob") as other:
        for each in (tool, other):
            create(commands(each), "/memories/a/b", "x")
        assert tool.clear_all_memory() == "All memory cleared"
        assert commands(tool)("view", path="/memories").endswith("\n0B\t/memories")
        assert content(other, "/memories/a/b") == "x"
    assert place.count("kind=knowledge") == 1


def test_the_definition_for_the_api_is_that_of_the_memory_tool(place: recollect.Memory) -> None:
    for kind in (RecollectMemoryTool, AsyncRecollectMemoryTool):
        tool = kind(place, cache_control={"type": "ephemeral"})
        assert tool.name == "memory"
        assert tool.to_dict() == {
            "type": "memory_20250818",
            "name": "memory",
            "cache_control": {"type": "ephemeral"},
        }


def commands(tool: RecollectMemoryTool) -> Send:
    def send(command: str, **fields: Any) -> str:
        return str(tool.call({"command": command, **fields}))

    return send


def content(tool: RecollectMemoryTool, path: str) -> str:
    """Return the text of a file without line numbers, for which each line is asked once."""
    answer = commands(tool)("view", path=path)
    return "\n".join(line[7:] for line in answer.split("\n")[1:])
