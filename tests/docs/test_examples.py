"""The programs in examples/ print what their docstrings say, offline, in an empty folder."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from tests.paths import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
_OUTPUT = re.compile(r"^Output[^\n]*:\n\n((?:    [^\n]*(?:\n|\Z))+)", re.MULTILINE)
#: A program that cannot connect to anything.
_OFFLINE = """
import runpy, socket, sys
def refused(*arguments):
    raise OSError("an example connects to the network")
socket.socket.connect = socket.getaddrinfo = refused
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


def outputs(example: Path) -> list[str]:
    """Return the output that the docstring states for each run."""
    documentation = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8")))
    assert documentation
    return [dedent(found[1]).rstrip("\n") + "\n" for found in _OUTPUT.finditer(documentation)]


def run(example: Path, folder: Path) -> str:
    environment = {**os.environ, "HOME": str(folder), "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _OFFLINE, str(example)],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_it_says(example: Path, tmp_path: Path) -> None:
    expected = outputs(example)
    assert expected
    assert [run(example, tmp_path) for _ in expected] == expected


def test_the_examples_are_those_of_the_usual_tasks() -> None:
    named = {"basic_use", "conversation_memory", "persistent_memory", "vector_memory"}
    assert named <= {example.stem for example in EXAMPLES}


def test_an_example_with_another_output_is_noticed(tmp_path: Path) -> None:
    example = tmp_path / "wrong.py"
    example.write_text('"""Wrong.\n\nOutput:\n\n    one\n    two\n"""\n\nprint("one")\n', encoding="utf-8")
    assert outputs(example) == ["one\ntwo\n"] != [run(example, tmp_path)]
