"""Paths of the memory tool: names in a memory, none of which leads out of /memories or to the file system."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pytest

pytest.importorskip("recollect.compat.anthropic", exc_type=ImportError)

from anthropic.lib.tools import ToolError

import recollect
from recollect.compat.anthropic import RecollectMemoryTool
from recollect.compat.files import MAX_ID_BYTES, MAX_PATH_BYTES, file_id

Send = Callable[..., str]


def listed(send: Send, folder: str = "/memories") -> list[str]:
    return [line.partition("\t")[2] for line in send("view", path=folder).split("\n")[2:]]


@pytest.mark.parametrize(
    "path", ["", "/", "memories/a", "/etc/passwd", "/memoriesX/a", "/Memories/a", " /memories/a", "//memories/a", "."]
)
def test_a_path_outside_of_memories_is_refused(send: Send, path: str) -> None:
    for command in ("view", "delete"):
        with pytest.raises(ToolError, match="Path must start with /memories, got: "):
            send(command, path=path)
    with pytest.raises(ToolError, match="Path must start with /memories"):
        send("create", path=path, file_text="x")
    send("create", path="/memories/a", file_text="x")
    with pytest.raises(ToolError, match="Path must start with /memories"):
        send("rename", old_path="/memories/a", new_path=path)


@pytest.mark.parametrize(
    "path", ["/memories/..", "/memories/../../../etc/passwd", "/memories/a/../../b", "/memories/./../memoriesX"]
)
def test_a_path_that_leads_out_of_memories_is_refused(send: Send, path: str) -> None:
    with pytest.raises(ToolError, match=f"^Path {path} would escape /memories directory$"):
        send("create", path=path, file_text="x")
    with pytest.raises(ToolError, match="would escape"):
        send("view", path=path)
    assert listed(send) == []


@pytest.mark.parametrize("path", ["/memories//a/./b/", "/memories/x/../a/b", "/memories/../memories/a/b"])
def test_a_path_is_normalised_as_text(send: Send, path: str) -> None:
    assert send("create", path=path, file_text="x") == f"File created successfully at: {path}"
    assert listed(send) == ["/memories/a/", "/memories/a/b"]


@pytest.mark.parametrize("name", ["%2e%2e%2fetc", "..%2f..", "..\\..\\etc", "．．", "‥", "~", "$HOME", "a b", "a%"])
def test_what_a_file_system_might_decode_is_only_a_name(send: Send, name: str) -> None:
    send("create", path=f"/memories/{name}", file_text="x")
    hidden = name.startswith(".")
    assert listed(send) == ([] if hidden else [f"/memories/{name}"])
    assert send("view", path=f"/memories/{name}").endswith("     1\tx")


@pytest.mark.parametrize("name", ["a\0b", "a\nb", "a\rb", "\x1b[2J", "a\u2028b", "\ud800", "a\x7f"])
def test_a_name_with_a_control_character_is_refused(send: Send, name: str) -> None:
    with pytest.raises(ToolError, match="contains a control character"):
        send("create", path=f"/memories/{name}", file_text="x")
    assert listed(send) == []


def test_equal_names_in_two_forms_of_unicode_are_one_file(send: Send) -> None:
    composed, decomposed = "/memories/\u00e9/\u00e9", unicodedata.normalize("NFD", "/memories/\u00e9/\u00e9")
    assert composed != decomposed
    send("create", path=decomposed, file_text="x")
    with pytest.raises(ToolError, match="already exists"):
        send("create", path=composed, file_text="x")
    assert listed(send) == ["/memories/\u00e9/", composed]
    send("delete", path=decomposed.rpartition("/")[0])
    assert listed(send) == []


def test_a_long_path_is_a_file_like_others(send: Send) -> None:
    folder = "/memories/" + "/".join(["é" * 60] * 4)
    path = folder + "/" + "x" * (MAX_PATH_BYTES - len(folder.encode()) - 1)
    send("create", path=path, file_text="a")
    send("str_replace", path=path, old_str="a", new_str="b")
    assert listed(send, folder) == [path]
    send("rename", old_path="/memories/" + "é" * 60, new_path="/memories/s")
    assert listed(send, "/memories/s")[0].startswith("/memories/s/éé")
    with pytest.raises(ToolError, match=f"longer than {MAX_PATH_BYTES} bytes"):
        send("create", path=path + "x", file_text="a")


def test_a_rename_that_makes_a_path_too_long_changes_nothing(send: Send) -> None:
    name = "x" * 400
    send("create", path=f"/memories/a/{name}/{name}", file_text="x")
    send("create", path="/memories/a/b", file_text="x")
    with pytest.raises(ToolError, match="longer than"):
        send("rename", old_path="/memories/a", new_path=f"/memories/{name}")
    assert listed(send) == ["/memories/a/", "/memories/a/b", f"/memories/a/{name}/"]


def test_the_id_of_a_file_is_its_path_unless_it_is_long() -> None:
    path = "/memories/" + "x" * (MAX_ID_BYTES - 10)
    assert file_id(path) == path
    assert file_id(path + "x").startswith("sha256:")


def test_a_record_of_another_kind_under_the_id_of_a_file_is_no_file(place: recollect.Memory) -> None:
    place.remember("a fact", id="/memories/a", user="ana")
    scoped = place.scoped(user="bob")
    scoped.remember("a fact", id="/memories/a")
    with RecollectMemoryTool(scoped) as tool:

        def send(command: str, **fields: str) -> str:
            return str(tool.call({"command": command, **fields}))

        with pytest.raises(ToolError, match="does not exist"):
            send("delete", path="/memories/a")
        with pytest.raises(ToolError, match="already exists"):
            send("create", path="/memories/a", file_text="x")
        send("create", path="/memories/b/c", file_text="x")
        send("create", path="/memories/d", file_text="x")
        with pytest.raises(ToolError, match="already exists"):
            send("rename", old_path="/memories/d", new_path="/memories/a")
    record = scoped.get("/memories/a")
    assert record is not None
    assert record.text == "a fact"
