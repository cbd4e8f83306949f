"""Types for TypeScript are made from the description of the server, and a program that they check uses the server."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.http.serving import served
from tests.paths import ROOT

pytestmark = pytest.mark.peers
HERE = Path(__file__).parent
TOOLS = HERE / "node_modules" / ".bin"
OPTIONS = ["--strict", "--module", "nodenext", "--target", "es2022", "--skipLibCheck", "--types", "node"]


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder with the types of a running server, and its address."""
    folder = tmp_path_factory.mktemp("typescript")
    (folder / "node_modules").symlink_to(HERE / "node_modules")
    (folder / "package.json").write_text('{"type": "module"}')
    shutil.copy(HERE / "client.ts", folder)
    with served(folder) as server:
        address = server.address
        made = run(TOOLS / "openapi-typescript", f"{address}/openapi.json", "-o", "recollect.d.ts", folder=folder)
        assert made.returncode == 0, made.stdout + made.stderr
        yield folder, address


def test_a_program_with_the_types_compiles_and_uses_the_server(project: tuple[Path, str]) -> None:
    folder, address = project
    compiled = run(TOOLS / "tsc", *OPTIONS, "client.ts", folder=folder)
    assert compiled.returncode == 0, compiled.stdout
    done = run("node", "client.js", address, folder=folder)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["status"], said["content"]) == ("created", "Ana moved to Lisbon in May.")
    assert said["score"] > 0
    assert "ana" in said["words"]
    assert said["changed"] == "Ana moved to Porto in June."
    assert said["refused"] == "conflict"
    assert "Porto" in said["context"]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("k: 3", "k: 'three'"),
        ('tags: ["home"]', "tags: 'home'"),
        ("first.score", "first.rank"),
        ("importance: 0.5", "importance: 'high'"),
        ("max_tokens: 200", "max_tokens: 'many'"),
    ],
)
def test_a_mistake_does_not_compile(right: str, wrong: str, project: tuple[Path, str]) -> None:
    folder, _ = project
    text = (HERE / "client.ts").read_text()
    assert right in text
    (folder / "wrong.ts").write_text(text.replace(right, wrong))
    assert "error TS" in run(TOOLS / "tsc", *OPTIONS, "--noEmit", "wrong.ts", folder=folder).stdout


def test_the_page_has_the_command_of_the_test() -> None:
    page = (ROOT / "docs" / "server.md").read_text("utf-8")
    assert "npx openapi-typescript http://127.0.0.1:8327/openapi.json -o recollect.d.ts" in page
