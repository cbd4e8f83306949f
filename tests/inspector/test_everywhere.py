"""The inspector as a command, and of a memory that a server has."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.http.serving import served
from tests.inspector.pages import Reader, filled
from tests.inspector.test_changes import undone
from tests.inspector.test_pages import LOOKS

import recollect
from recollect.cli.app import app
from recollect.cli.browsing import open_browser, opening_file
from recollect.server.ui.pages import PAGES

_TIMEOUT_S = 30


def test_the_memory_of_a_server_is_looked_at_and_changed_as_one_in_this_process(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    with served(tmp_path / "far", tokens=True) as far:
        token = far.token("admin", "admin")

        def connected(*, create: bool, read_only: bool) -> recollect.Memory:
            return recollect.connect(far.address, token=token)

        with served(tmp_path, ui=True, opened=connected) as near:
            memory = far.memory(token=token)
            filled(memory)
            reader = Reader(near)
            for name, page in PAGES.items():
                if page.has_template:
                    reader.get(name or "./", **LOOKS.get(name, {}))
            shown = reader.json("search", q="where does ana live")
            assert shown["hits"][0]["score"] == memory.recall("where does ana live")[0].score
            root = memory.root
            done = reader.send(reader.get("record", id="seat").form("update"), content="changed")
            assert memory.get("seat").content == "changed"  # type: ignore[union-attr]
            assert memory.log(1)[0].actor == "inspector (token admin)"
            reader.send(done.form("revert"))
            assert memory.root == root
            erased = reader.send(reader.get("erase", id="seat").form("erase"), confirm="seat")
            assert "Proved and verified" in erased.words


def test_a_change_over_the_pages_can_be_undone_in_a_store_with_a_history_of_its_own(tmp_path: Path) -> None:
    with served(tmp_path, ui=True) as server:
        memory = server.memory("team")
        memory.remember("a note", id="note")
        reader, root = Reader(server), memory.root
        done = reader.send(reader.get("record", namespace="team", id="note").form("forget"))
        undone(reader, memory, done, root)


@contextmanager
def started(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a command of ours, and return it and the address that it prints."""
    command = [sys.executable, "-m", "recollect", *arguments]
    variables = {**os.environ, **environment}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=variables, **pipes) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def status(address: str) -> int:
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.files
def test_inspect_serves_the_pages_alone_and_never_logs_the_address(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db", embedder="none") as memory:
        memory.remember("Ana prefers window seats")
    with started("inspect", "--db", str(tmp_path / "a.db"), "--no-browser") as (process, address):
        host, secret = address.removeprefix("http://").split("/")[:2]
        assert host.startswith("127.0.0.1:")
        assert status(f"{address}records") == 200
        for path in ("", "ui/", "v1/default/records", "healthz", "openapi.json", f"{secret}/", f"x{secret}/ui/"):
            assert status(f"http://{host}/{path}") == 404
        process.send_signal(signal.SIGINT)
        assert process.wait(_TIMEOUT_S) == 0
        assert process.stdout is not None
        assert process.stderr is not None
        said = process.stdout.read() + process.stderr.read()
    assert secret not in said


@pytest.mark.files
def test_serve_shows_the_address_of_the_pages_on_standard_output_and_not_in_the_log(tmp_path: Path) -> None:
    serve = ("serve", "--db", str(tmp_path / "a.db"), "--http", "127.0.0.1:0", "--ui")
    with started(*serve) as (process, address):
        secret = address.split("/")[3]
        assert (status(address), status(address.replace(f"/{secret}", ""))) == (200, 404)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        log = process.stderr.read()
    assert "listening on http://127.0.0.1:" in log
    assert secret not in log
    tokens = tmp_path / "tokens.toml"
    assert CliRunner().invoke(app, ["token", "x", "--tokens", str(tokens)]).exit_code == 0
    with started(*serve, "--tokens", str(tokens)) as (_, address):
        assert address.endswith("/ui/")
        assert address.count("/") == 4
        assert status(address) == 200


def test_the_pages_are_no_door_of_the_socket(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["serve", "--ui", "--socket", str(tmp_path / "s"), "--db", str(tmp_path / "a.db")])
    assert result.exit_code != 0
    assert "--ui" in result.output


def test_the_browser_is_given_a_file_that_only_its_owner_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    with opening_file() as file:
        open_browser(file, "http://127.0.0.1:1/secret/ui/")
        assert opened == [file.as_uri()]
        assert "secret" not in opened[0]
        assert 'url=http://127.0.0.1:1/secret/ui/"' in file.read_text("utf-8")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert not file.parent.exists()
