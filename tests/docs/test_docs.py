"""Every code block of the README and of docs/ is executed, and the links lead somewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.docs.pages import blocks, run_python
from tests.models.model_server import model_server
from tests.paths import ROOT
from tests.stores.forked_command import forked_command

from recollect.testing.postgres import PostgresServer, binaries, create_store

PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]
#: What the README tells a new user to run; .ci/run runs it as it stands there.
SET_UP = ["make demo", "make test"]

#: The pages with configurations of clients, which test_mcp_docs.py starts, and with a client in another language, which
#: tests/http/test_node.py runs.
CONFIGURATION = {"mcp.md": ("json", "toml"), "moving.md": ("json",), "server.md": ("js",)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_says_what_it_is(page: Path) -> None:
    assert {language for language, _ in blocks(page)} <= {"python", "bash", "text", *CONFIGURATION.get(page.name, ())}


#: The pages about frameworks, which tests/frameworks/*/test_page.py run where the framework is installed.
OF_FRAMEWORKS = (
    "adk.md",
    "agent-framework.md",
    "anthropic-memory-tool.md",
    "crewai.md",
    "haystack.md",
    "langchain.md",
    "langgraph.md",
    "langgraph-stores.md",
    "llama-index.md",
    "openai-agents.md",
    "pydantic-ai.md",
    "strands.md",
)


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in OF_FRAMEWORKS], ids=lambda page: page.name)
@pytest.mark.filterwarnings("ignore::recollect.RecollectWarning")
def test_the_python_of_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORY_SNAPSHOT_PATH", "")  # a page sets it: it is restored afterwards
    with model_server() as variables, database(page) as of_database:
        for name, value in (variables | of_database).items():
            monkeypatch.setenv(name, value)
        if of_database:  # the shell of the page does that
            subprocess.run([binaries() / "createdb", "memories"], check=True)
            create_store("postgresql:///memories")
        run_python(page)


def test_every_page_about_a_framework_is_run_where_the_framework_is_installed() -> None:
    run = "".join(file.read_text("utf-8") for file in (ROOT / "tests" / "frameworks").glob("*/test_page.py"))
    assert [name for name in OF_FRAMEWORKS if f'"{name}"' not in run] == []


@contextmanager
def database(page: Path) -> Iterator[dict[str, str]]:
    """Start a server with a database for the page about PostgreSQL, and yield libpq's variables that lead to it."""
    if page.name != "postgresql.md":
        yield {}
        return
    server = PostgresServer().start()
    try:
        yield {"PGHOST": str(server.folder), "PGUSER": "postgres", "XDG_CACHE_HOME": str(server.folder / "cache")}
    finally:
        server.stop()


def test_a_wrong_output_in_a_page_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nprint(1, 'a')  # 1 a\nfor each in (1, 2):\n    print(each)  # 1\nprint([3])  # [...]\n```\n"
    )
    with pytest.raises(AssertionError, match="line 4 prints '2', not '1'"):
        run_python(page)


@pytest.fixture(scope="module")
def command() -> Iterator[Path]:
    """A folder with the command `recollect`, which starts faster than the installed one."""
    with tempfile.TemporaryDirectory() as folder, forked_command(Path(folder)) as bin_folder:
        yield bin_folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_shell_of_a_page_runs_from_top_to_bottom(page: Path, tmp_path: Path, command: Path) -> None:
    if page.name == "server.md" and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    script = "\n".join(code for language, code in blocks(page) if language == "bash" and not is_set_up(code))
    folders = [*([] if page.name == "README.md" else [command]), Path(sys.executable).parent]
    path = os.pathsep.join([*map(str, folders), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    environment.pop("RECOLLECT_DB", None)
    with database(page) as of_database:
        if of_database:
            environment["PATH"] += os.pathsep + str(binaries())
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=tmp_path,
            env=environment | of_database,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stdout + done.stderr


def is_set_up(code: str) -> bool:
    return [line.partition("#")[0].strip() for line in code.splitlines()] == SET_UP


def test_the_two_commands_of_the_readme_are_those_that_ci_runs() -> None:
    assert is_set_up(blocks(PAGES[0])[0][1])
    ci = (ROOT / ".ci" / "run").read_text()
    assert all(re.search(rf"^{command}$", ci, re.MULTILINE) for command in SET_UP)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_every_page_is_linked_from_the_readme_or_from_a_page_that_it_links() -> None:
    first = linked(ROOT / "README.md")
    assert first | {target for page in first for target in linked(page)} >= set((ROOT / "docs").glob("*.md"))


def test_the_contents_list_every_page() -> None:
    contents = ROOT / "docs" / "contents.md"
    pages = set((ROOT / "docs").glob("*.md")) - {contents}
    assert pages - linked(contents) - linked(ROOT / "README.md") == set()


def linked(page: Path) -> set[Path]:
    return {(page.parent / target).resolve() for target in re.findall(r"\]\(([^)#:]+\.md)", page.read_text("utf-8"))}


def test_the_first_screen_of_the_readme_has_eight_lines_that_run() -> None:
    first = next(code for language, code in blocks(PAGES[0]) if language == "python")
    assert len([line for line in first.splitlines() if line.strip()]) == 8


def test_the_readme_is_short_and_has_one_picture_that_a_command_draws() -> None:
    text = PAGES[0].read_text("utf-8")
    assert len(text.split()) <= 700
    (picture,) = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert picture.removeprefix("docs/inspector/").removesuffix(".png") in (ROOT / "scripts/screenshots.py").read_text()


def test_the_page_of_variables_lists_those_that_the_code_reads() -> None:
    others = "COLUMNS|MEMORY_FILE_PATH|MEMORY_SNAPSHOT_PATH|OPENCORTEX_MEMORY"
    own = re.compile(rf'"(RECOLLECT_[A-Z_]+|{others}|[A-Z]+_(?:API_KEY|BASE_URL|HOST|EMBEDDING_MODEL))"')
    read = {name for file in (ROOT / "src").rglob("*.py") for name in own.findall(file.read_text(encoding="utf-8"))}
    rows = re.findall(r"^\| (`[A-Z].*?) \|", (ROOT / "docs" / "environment.md").read_text(), re.MULTILINE)
    assert read == set(re.findall(r"`([A-Z_]+)`", " ".join(rows)))
    assert len(read) > 10
