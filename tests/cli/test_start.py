"""What a command imports: agents start commands at every turn, and most of their time is imports.

A budget is met by importing a module where it is used. A facet is imported when it is used, and rich where a person
reads the output.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import recollect

#: The modules of facets that the engine and the calls of every memory need.
NEEDED = {
    "recollect.facets",
    "recollect.facets.registration",
    "recollect.facets.entities",
    "recollect.facets.entities.calls",
    "recollect.facets.entities.graph",
    "recollect.facets.entities.operations",
    "recollect.facets.sdr",
    "recollect.facets.sdr.records",
}
#: Command -> the most modules of this package that it may import, as many as when the budget was set.
BUDGETS = {"recall": 334, "remember": 332, "log": 334, "mcp": 384}
ARGUMENTS = {
    "recall": ("recall", "Which seat does Ana prefer?", "--json"),
    "remember": ("remember", "Ana lives in Lisbon.", "--json"),
    "log": ("log", "--json"),
    "mcp": ("mcp",),
    "glossary": ("glossary", "recall", "seat", "--agent", "guide"),
}
ASKED = [
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "search_nodes", "arguments": {"query": "seat"}},
    },
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("start") / "agent.db"
    with recollect.open(path) as memory:
        memory.remember("Ana prefers window seats.", user="ana")
        memory.recall("Which seat does Ana prefer?")
    return path


def imported(store: Path, command: str, more: str = "") -> set[str]:
    """Return the modules that Python says a command imported, after `more` was executed."""
    arguments = ["--db", str(store), *ARGUMENTS[command]]
    run = f"{more}\nimport sys; from recollect.cli import main; sys.argv[1:] = {arguments}; main()"
    asked = "".join(json.dumps(each) + "\n" for each in ASKED) if command == "mcp" else ""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", run], input=asked, capture_output=True, text=True, check=True
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def own(modules: set[str]) -> set[str]:
    return {each for each in modules if each.partition(".")[0] == "recollect"}


@pytest.mark.parametrize("command", BUDGETS)
def test_a_command_imports_no_more_modules_than_its_budget(store: Path, command: str) -> None:
    modules = own(imported(store, command))

    assert "recollect.engine.read.recall" in modules, "the command ran"
    assert len(modules) <= BUDGETS[command]


def test_a_module_more_than_the_budget_is_noticed(store: Path) -> None:
    modules = own(imported(store, "recall", "import recollect.stores.memory"))

    assert len(modules) == BUDGETS["recall"] + 1


def test_a_recall_imports_no_facet_that_it_does_not_use(store: Path) -> None:
    modules = imported(store, "recall")

    assert {each for each in modules if each.startswith("recollect.facets")} == NEEDED
    assert not {each.partition(".")[0] for each in modules} & {
        "rich",
        "mcp",
        "starlette",
        "httpx",
        "importlib.metadata",
    }


def test_a_command_on_a_facet_imports_it(store: Path) -> None:
    assert "recollect.facets.glossary.glossary" in imported(store, "glossary")


@pytest.mark.parametrize("arguments", ["remember -", "import jsonl -", "salience", "mcp"])
def test_a_command_whose_input_is_closed_has_an_empty_one(store: Path, arguments: str) -> None:
    command = f"{sys.executable} -m recollect {arguments} --db {store}"

    closed, empty = (
        subprocess.run(f"{command} {end}", shell=True, capture_output=True, text=True) for end in ("<&-", "</dev/null")
    )

    assert "Traceback" not in closed.stderr
    assert (closed.returncode, closed.stdout, closed.stderr) == (empty.returncode, empty.stdout, empty.stderr)


def test_a_command_whose_output_is_closed_does_nothing_and_says_so(store: Path) -> None:
    command = f"{sys.executable} -m recollect --db {store} remember 'Ana sold the boat' >&-"

    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True)

    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "standard output is closed" in done.stderr
    with recollect.open(store) as memory:
        assert not memory.grep("sold")
