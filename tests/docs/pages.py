"""The code blocks of a page: reading them, and executing the Python with a comparison of what it prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.paths import ROOT

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: A line that prints, with what it prints as a comment; "..." in it stands for any text.
_PRINTS = re.compile(r"^ *print\(.*\)  # (.*)$")
#: Comments after a print that are about it.
REMARKS = (
    "send it to any model, with the question",
    "read why this was recalled",
    "the score is exactly the sum of best.why.shares",
    "the newest commit, and the hash of the memory after it",
    "names the field, its value and the rule",
    "names the current hash; nothing was changed",
)


def blocks(page: Path) -> list[tuple[str, str]]:
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


def run_python(page: Path, only: int | None = None) -> None:
    """Execute the Python of a page, and compare what it prints with the comments that say what it prints.

    What the page needs is set up by the caller: a folder, a server of models.

    Args:
        only: The number of a block, from 0, to execute by itself.
    """
    text = page.read_text(encoding="utf-8")
    lines = text.splitlines()
    wrong: list[str] = []

    def compared_print(*values: object) -> None:
        line = sys._getframe(1).f_lineno
        printed, said = " ".join(map(str, values)), _PRINTS.match(lines[line - 1])
        if said and said[1] not in REMARKS and not is_output(printed, said[1]):
            wrong.append(f"line {line} prints {printed!r}, not {said[1]!r}")

    names: dict[str, object] = {"__name__": page.stem, "print": compared_print}
    found = [block for block in _BLOCK.finditer(text) if block[1] == "python"]
    for number, block in enumerate(found):
        if only in (None, number):
            before = "\n" * text.count("\n", 0, block.start(2))  # a traceback then names the line of the page
            exec(compile(before + block[2], str(page), "exec"), names)
    assert not wrong, wrong


def is_output(printed: str, comment: str) -> bool:
    """Return whether a comment is what was printed, except for what it writes as "..."."""
    return re.fullmatch(".*".join(map(re.escape, comment.split("..."))), printed, re.DOTALL) is not None


def run_apart(page: Path) -> None:
    """Execute each block of Python of a page in a process of its own, in order, in the current folder."""
    text = page.read_text(encoding="utf-8")
    found = [block for block in _BLOCK.finditer(text) if block[1] == "python"]
    for number in range(len(found)):
        code = (
            "import sys; from pathlib import Path; from tests.docs.pages import run_python;"
            f"run_python(Path(sys.argv[1]), only={number})"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(page)], capture_output=True, text=True, env=_environment()
        )
        assert done.returncode == 0, done.stderr


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
