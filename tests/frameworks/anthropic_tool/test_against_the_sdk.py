"""Any sequence of commands has the same answers as the file system tool of the SDK, folder sizes excepted."""

from __future__ import annotations

import random
from pathlib import Path
from posixpath import normpath
from typing import Any

import pytest

pytest.importorskip("recollect.compat.anthropic", exc_type=ImportError)

from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

from recollect.compat.anthropic import RecollectMemoryTool

NAMES = ("a", "b", ".h", "é", "a.md")
LINES = ("tea", "milk", "tea tea", "", "\r", "ends\r", " ")
#: What the file system raises itself, so that the texts of its tool say nothing about it. Ours are ToolErrors.
SYSTEM = "an error of the file system"


def commands(seed: int, count: int) -> list[dict[str, Any]]:
    dice = random.Random(seed)

    def path() -> str:
        depth = dice.choice((0, 1, 1, 1, 2, 2, 3))
        spelling = dice.choice(("/", "/", "/", "//", "/./", "/x/../"))
        return spelling.join(["/memories", *(dice.choice(NAMES) for _ in range(depth))])

    def text() -> str:
        return "\n".join(dice.choice(LINES) for _ in range(dice.randrange(5)))

    def command() -> dict[str, Any]:
        name = dice.choice(("view", "view", "create", "create", "str_replace", "insert", "insert", "delete", "rename"))
        match name:
            case "create":
                return {"command": name, "path": path(), "file_text": text()}
            case "str_replace":
                old = dice.choice([line for line in LINES if line])
                return {"command": name, "path": path(), "old_str": old, "new_str": text()}
            case "insert":
                return {"command": name, "path": path(), "insert_line": dice.randrange(-1, 4), "insert_text": text()}
            case "rename":
                return {"command": name, "old_path": path(), "new_path": path()}
            case "view" if dice.random() < 0.3:
                ends = [dice.randrange(4), dice.choice((-1, 1, 2, 3))]
                return {"command": name, "path": path(), "view_range": ends}
            case _:
                return {"command": name, "path": path()}

    return [command() for _ in range(count)]


def answer(tool: Any, command: dict[str, Any]) -> str:
    try:
        return without_folders(str(tool.call(command)))
    except ToolError as error:
        return f"error: {error}"
    except OSError:
        return SYSTEM


def without_folders(text: str) -> str:
    """Return an answer without the sizes of folders, and with paths in one spelling."""
    if not text.startswith("Here're the files"):
        return text
    header, _, *lines = text.split("\n")
    listed = (line.partition("\t")[::2] for line in lines)
    return "\n".join([header, *(f"{'' if path.endswith('/') else size} {normpath(path)}" for size, path in listed)])


def remove_empty_folders(root: Path) -> None:
    """Remove what our tool has not: a folder exists there while there is a file below it."""
    for folder in sorted((path for path in root.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


@pytest.mark.parametrize("seed", range(20))
def test_any_sequence_of_commands_has_the_answers_of_the_file_system_tool(seed: int, tmp_path: Path) -> None:
    theirs = BetaLocalFilesystemMemoryTool(base_path=str(tmp_path))
    with RecollectMemoryTool(":memory:", embedder="none") as ours:
        for command in commands(seed, 150):
            expected, got = answer(theirs, command), answer(ours, command)
            remove_empty_folders(theirs.memory_root)
            assert got == expected or (expected == SYSTEM and got.startswith("error: ")), command
