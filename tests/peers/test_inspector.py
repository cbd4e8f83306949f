"""The inspector, the protocol's own debugging client, uses our server from its command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.paths import ROOT
from tests.peers.wire import OURS, PACKAGES, PATIENCE_S, our_variables

pytestmark = pytest.mark.peers

LAUNCHER = PACKAGES / "inspector" / "clients" / "launcher" / "build" / "index.js"
#: The negotiation of clients of 2025 and before, and that of newer ones.
ERAS = ["legacy", "auto"]


def inspect(folder: Path, method: str, *options: str, sets: str = "daily") -> Any:
    """Start our server by the inspector, let it send one request, and return the result."""
    # Its options -e come before the command of the server, which it starts with few other variables.
    command = ["node", str(LAUNCHER), "--cli"]
    variables = our_variables(folder)
    for name, value in variables.items():
        command += ["-e", f"{name}={value}"]
    done = subprocess.run(
        [*command, *OURS, "--tools", sets, "--format", "json", "--method", method, *options],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    # A result with isError has a status other than 0, too.
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["result"]


@pytest.mark.parametrize("era", ERAS)
def test_what_one_run_remembers_the_next_recalls(era: str, tmp_path: Path) -> None:
    content = "Ana moved to Lisbon in May and works from home."
    inspect(
        tmp_path, "tools/call", "--protocol-era", era, "--tool-name", "remember", "--tool-arg", f"content={content}"
    )
    asked = ["--tool-name", "recall", "--tool-arg", "question=Where does Ana live?"]
    found = inspect(tmp_path, "tools/call", "--protocol-era", era, *asked)
    assert content in json.dumps(found)


def test_the_schemas_of_all_tools_are_portable_between_clients(tmp_path: Path) -> None:
    # --strict ends with an error status if the schema of a tool has a serious problem.
    for sets, named in (("daily", {"remember", "recall"}), ("all", {"recall", "create_entities", "judge_text"})):
        listed = inspect(tmp_path, "tools/list", "--strict", sets=sets)
        assert named <= {tool["name"] for tool in listed["tools"]}


def test_the_graph_is_read_as_a_resource(tmp_path: Path) -> None:
    entities = [{"name": "Ana", "entityType": "person", "observations": ["lives in Lisbon"]}]
    passed = json.dumps({"entities": entities})
    inspect(tmp_path, "tools/call", "--tool-name", "create_entities", "--tool-args-json", passed, sets="reference")
    (contents,) = inspect(tmp_path, "resources/read", "--uri", "memory://knowledge-graph")["contents"]
    assert json.loads(contents["text"]) == {"entities": entities, "relations": []}


def test_the_commands_of_the_documentation_remember_and_recall(tmp_path: Path) -> None:
    start = "npx @modelcontextprotocol/inspector --cli "
    lines = [line.strip() for line in (ROOT / "docs" / "mcp.md").read_text("utf-8").splitlines()]
    variables = our_variables(tmp_path)
    passed = " ".join(f"-e {name}={value}" for name, value in variables.items())
    answers = []
    for line in [line for line in lines if line.startswith(start)]:
        command = line.replace(start, f"node {LAUNCHER} --cli {passed} ")
        command = command.replace('"$PWD/.venv/bin/recollect"', f"{Path(sys.executable).parent}/recollect")
        done = subprocess.run(
            command, shell=True, env={**os.environ, **variables}, capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert done.returncode == 0, done.stdout + done.stderr
        answers.append(done.stdout)
    remembered, recalled = answers
    assert '"status": "created"' in remembered
    assert "Ana prefers window seats" in recalled
