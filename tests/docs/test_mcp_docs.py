"""The configuration blocks of docs/mcp.md and docs/moving.md start servers that answer, and its tables are complete."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.docs.pages import blocks
from tests.paths import ROOT

import recollect
from recollect.cli.serving import mcp
from recollect.server.mcp import guidance, reference
from recollect.server.mcp.replies import Replies
from recollect.server.mcp.tools import Access
from recollect.server.mcp.toolsets import ALL as ALL_SETS
from recollect.server.mcp.toolsets import DEFAULT_SETS, TOOLSETS, tools_of

PAGE = ROOT / "docs" / "mcp.md"
PAGES = [PAGE, ROOT / "docs" / "moving.md"]
HOME = "/home/ana"
COMMAND = f"{HOME}/recollect/.venv/bin/recollect"
ADDRESS = "http://127.0.0.1:8321/mcp"
#: What clients put the value of a variable or an input in place of.
VARIABLE = re.compile(r"\$\{(?:env:|input:)?[\w-]+\}|\$\w+")
#: A form of each client's file: the keys of its servers.
KEYS = ("mcpServers", "servers", "context_servers", "mcp_servers")
ADDRESSES = ("url", "serverUrl", "httpUrl")

Config = dict[str, Any]


def configured() -> list[Config]:
    """Every server that a block of a page configures."""
    found: list[Config] = []
    for page in PAGES:
        for language, code in blocks(page):
            if language in ("json", "toml"):
                data = json.loads(code) if language == "json" else tomllib.loads(code)
                (key,) = [key for key in KEYS if key in data]
                found += data[key].values()
    return found


def texts() -> list[str]:
    """The lines of shell that the page shows and that are not run as they are."""
    return [line for language, code in blocks(PAGE) if language == "text" for line in code.splitlines()]


def command_lines() -> list[Config]:
    """The servers that the command line of a client is told, as in "claude mcp add NAME -- COMMAND ARGUMENT"."""
    printed = [shlex.split(line.partition(" -- ")[2]) for line in texts() if " mcp add " in line]
    return [{"command": command, "args": arguments} for command, *arguments in printed]


ALL = [*configured(), *command_lines()]
OVER_HTTP = [each for each in ALL if "command" not in each]
#: Each distinct command once, because a start costs most of a second.
STARTED = list({json.dumps([each["args"], each.get("env")]): each for each in ALL if "command" in each}.values())


def variables(home: Path, stated: Mapping[str, str]) -> dict[str, str]:
    """The environment of a server: few variables, as clients pass, and a home of its own."""
    inherited = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**inherited, "HOME": str(home), "XDG_DATA_HOME": str(home), **stated}


async def names_of_tools(session: ClientSession) -> set[str]:
    """Ask a server as a client does when it connects."""
    introduction = await session.initialize()
    assert introduction.server_info.name == "recollect"
    return {tool.name for tool in (await session.list_tools()).tools}


def test_every_command_of_the_pages_is_recollect_at_the_path_of_the_example() -> None:
    commands = [each["command"] for each in ALL if "command" in each]
    assert set(commands) == {COMMAND}
    assert len(commands) >= 12
    assert all(each["args"][0] == "mcp" for each in ALL if "command" in each)
    assert len(STARTED) >= 4


@pytest.mark.parametrize("config", STARTED, ids=lambda config: " ".join([*config["args"], *config.get("env", {})]))
def test_a_configured_command_starts_a_server_that_answers(config: Config, tmp_path: Path) -> None:
    def here(text: str) -> str:
        return text.replace(HOME, str(tmp_path))

    (tmp_path / "memory.jsonl").write_text(
        '{"type": "entity", "name": "Ada", "entityType": "person", "observations": []}\n'
    )
    server = StdioServerParameters(
        command=str(Path(sys.executable).parent / "recollect"),
        args=list(map(here, config["args"])),
        env=variables(tmp_path, {name: here(value) for name, value in config.get("env", {}).items()}),
    )

    async def connect() -> tuple[set[str], str]:
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            names = await names_of_tools(session)
            found = await session.read_resource(reference.RESOURCE)
            return names, found.model_dump_json()

    names, found = anyio.run(connect)
    at = config["args"].index("--tools") + 1 if "--tools" in config["args"] else None
    sets = DEFAULT_SETS if at is None else config["args"][at].split(",")
    assert names == set(tools_of(sets, scoped="--user" in config["args"]))
    assert ("Ada" in found) == ("MEMORY_FILE_PATH" in config.get("env", {}))


@contextmanager
def http_server(home: Path) -> Iterator[tuple[str, str]]:
    """Start the server as the page says, on any free port, and yield its address and token."""
    (make_token,) = [line for line in texts() if "openssl" in line]
    token_file = home / "mcp-token"
    subprocess.run(["bash", "-c", make_token.replace(HOME, str(home))], check=True)
    assert token_file.stat().st_mode & 0o077 == 0
    (start,) = [shlex.split(line) for line in texts() if "--http" in line]
    assert start[0] == COMMAND
    options = [each.replace(HOME, str(home)).replace(":8321", ":0") for each in start[1:]]
    command = [str(Path(sys.executable).parent / "recollect"), *options]
    process = subprocess.Popen(command, env=variables(home, {}), stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.search(r"listening on (http://127\.0\.0\.1:\d+/mcp)", line)
        assert address is not None, line + process.stderr.read()
        yield address[1], token_file.read_text().strip()
    finally:
        process.terminate()
        process.communicate()


def header(config: Config) -> str:
    """Return the value that a client sends as Authorization, with its variable or input in braces."""
    if "bearer_token_env_var" in config:
        return f"Bearer ${{{config['bearer_token_env_var']}}}"
    return str(config["headers"]["Authorization"])


def test_the_blocks_for_http_connect_with_the_token_and_not_without(tmp_path: Path) -> None:
    assert len(OVER_HTTP) >= 5
    addresses = [next(each[key] for key in ADDRESSES if key in each) for each in OVER_HTTP]
    assert set(addresses) == {ADDRESS}

    async def connect(address: str, sent: str) -> set[str]:
        headers = {"Authorization": sent}
        async with (
            httpx2.AsyncClient(headers=headers) as client,
            streamable_http_client(address, http_client=client) as streams,
            ClientSession(*streams[:2]) as session,
        ):
            return await names_of_tools(session)

    with http_server(tmp_path) as (address, token):
        for sent in {VARIABLE.sub(token, header(config)) for config in OVER_HTTP}:
            assert anyio.run(connect, address, sent) == set(tools_of(DEFAULT_SETS))
        assert httpx2.post(address, json={}).status_code == 401
        (curl,) = [line for line in texts() if line.startswith("curl ")]
        done = subprocess.run(
            ["bash", "-c", curl.replace(ADDRESS, address).replace(HOME, str(tmp_path))], capture_output=True, text=True
        )
        assert '"serverInfo"' in done.stdout, done.stdout + done.stderr


def test_the_page_lists_every_tool_with_its_access() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (reads|writes) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    tools = tools_of(("recollect", "reference"))
    assert dict(rows) == {name: "reads" if tool.reads else "writes" for name, tool in tools.items()}


def costs(page: str) -> dict[str, tuple[int, int]]:
    """Return the bytes and tokens that the page states of each set."""
    rows = re.findall(r"^\| `(\w+)`[^|]* \| .* \| ([\d,]+) \| ([\d,]+) \|$", page, re.MULTILINE)
    return {name: (int(nbytes.replace(",", "")), int(tokens.replace(",", ""))) for name, nbytes, tokens in rows}


def test_the_page_states_what_each_set_costs() -> None:
    access = Access(lambda **_: recollect.open(":memory:"))
    stated = costs(PAGE.read_text("utf-8"))
    assert set(stated) == {*TOOLSETS, ALL_SETS}
    for name, (nbytes, tokens) in stated.items():
        listed = Replies(access, tools_of([name])).tools["tools"]
        size = sum(len(json.dumps(each, ensure_ascii=False, separators=(",", ":")).encode()) for each in listed)
        assert abs(size - nbytes) <= 0.02 * size + 50, name
        assert abs(size / 4 - tokens) <= 0.02 * size / 4 + 50, name


def wrong_rows(page: str) -> list[str]:
    """Return the tools of the further sets whose row does not have their arguments and their former names."""
    code = re.compile(r"`([^`]+)`")
    rows = {name: rest.split("|") for name, rest in re.findall(r"^\| `(\w+)` \|(.*)\|$", page, re.MULTILINE)}
    known = ("daily", "recollect", "reference")
    further = [tool for name, tools in TOOLSETS.items() if name not in known for tool in tools]
    return [
        tool.name
        for tool in further
        if [set(code.findall(cell)) for cell in rows.get(tool.name, ["", "", ""])][::2]
        != [set(tool.inputs), set(tool.former)]
    ]


def test_the_page_lists_the_arguments_of_the_further_tools_and_their_former_names() -> None:
    page = PAGE.read_text("utf-8")
    assert wrong_rows(page) == []
    assert wrong_rows(page.replace("`aliases`, ", "")) == ["define_term"]
    assert wrong_rows(page.replace("| `k` |", "| |")) == ["find_texts"]


def test_the_page_names_every_option_the_resource_and_the_prompt() -> None:
    text = PAGE.read_text("utf-8")
    own = {option for parameter in mcp.params for option in parameter.opts if option.startswith("--")}
    assert {option for option in own if option not in text} <= {"--json", "--namespace"}
    assert reference.RESOURCE in text
    assert f'`{guidance.PROMPT}` ("{guidance.PROMPT_TITLE}")' in text


def test_a_server_ends_when_its_client_closes_the_input(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "recollect", "mcp"]
    done = subprocess.run(command, env=variables(tmp_path, {}), input="", capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(tmp_path.rglob("*.db"))  # the store is created by the first write
