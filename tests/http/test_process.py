"""`recollect serve` as a process: sockets from systemd, its notifications, its units, and a wrong command line."""

from __future__ import annotations

import configparser
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.paths import ROOT

import recollect
from recollect.cli.app import app
from recollect.errors import InvalidArgumentError
from recollect.server import systemd

_TIMEOUT_S = 30


@contextmanager
def serving(
    folder: Path, *options: str, shell: str = "", **environment: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the server, and wait for the first address that it listens on.

    Args:
        folder: Where the store is.
        *options: Of `recollect serve`.
        shell: What a shell does before it becomes the server.
        **environment: More variables.
    """
    command = [sys.executable, "-m", "recollect", "serve", "--db", str(folder / "a.db"), *options]
    if shell:
        command = ["bash", "-c", f'{shell}; exec "$@"', "bash", *command]
    variables = {**os.environ, "XDG_RUNTIME_DIR": str(folder), **environment}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables, close_fds=False) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if (event := json.loads(line)["event"]).startswith("listening on "):
                    yield process, event.removeprefix("listening on ")
                    break
            else:
                raise AssertionError("it did not listen")
        finally:
            process.kill()


@pytest.mark.files
def test_the_default_door_is_a_socket_in_the_runtime_folder(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, address):
        assert address == f"unix://{tmp_path}/recollect/recollect.sock"
        with recollect.connect(address) as memory:
            assert memory.count() == 0
            assert not (tmp_path / "a.db").exists()  # made by the first write
            memory.remember("tea")
        process.send_signal(signal.SIGTERM)
        assert process.wait(_TIMEOUT_S) == 0
    assert not Path(address.removeprefix("unix://")).exists()
    with recollect.open(tmp_path / "a.db") as memory:
        assert memory.count() == 1


def test_sockets_of_systemd_are_used_and_it_learns_the_state(tmp_path: Path) -> None:
    path, notified = tmp_path / "given.sock", tmp_path / "notify"
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        listening.bind(str(path))
        listening.listen()
        channel.bind(str(notified))
        channel.settimeout(_TIMEOUT_S)
        os.set_inheritable(listening.fileno(), True)
        shell = f"exec 3<&{listening.fileno()}; export LISTEN_FDS=1 LISTEN_PID=$$"
        with serving(tmp_path, shell=shell, NOTIFY_SOCKET=str(notified)) as (process, address):
            assert address == f"unix://{path}"
            assert channel.recv(100).startswith(b"READY=1")
            with recollect.connect(address) as memory:
                memory.remember("tea")
            process.send_signal(signal.SIGTERM)
            assert channel.recv(100) == b"STOPPING=1"
            assert process.wait(_TIMEOUT_S) == 0
    assert path.exists()  # it is that of systemd


def test_a_socket_of_systemd_that_other_machines_reach_needs_tokens(tmp_path: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as listening:
        os.set_inheritable(listening.fileno(), True)
        command = [sys.executable, "-m", "recollect", "serve", "--db", str(tmp_path / "a.db")]
        script = f'exec 3<&{listening.fileno()}; export LISTEN_FDS=1 LISTEN_PID=$$; exec "$@"'
        done = subprocess.run(
            ["bash", "-c", script, "bash", *command],
            capture_output=True,
            text=True,
            close_fds=False,
            timeout=_TIMEOUT_S,
        )
    assert done.returncode == 1
    assert "can be reached by other machines: pass --tokens" in done.stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["--embedder", "hashed", "stats"], "embedder 'hashed' cannot be used with a server"),
        (["--key-file", "k", "stats"], "key file 'k' cannot be used with a server"),
        (["demo"], "it needs a file of its own, not a server"),
        (["migrate"], "this works on a file, not on a server"),
    ],
)
def test_what_a_server_has_decided_cannot_be_stated_by_a_command(command: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["--db", "unix:///nowhere.sock", *command])
    assert done.exit_code == 1
    assert message in done.stderr


@pytest.mark.parametrize(
    ("address", "token", "message"),
    [
        ("http://127.0.0.1:1/v1/team", None, "must end before /v1; pass namespace= apart"),
        ("http://127.0.0.1:1", "secret\n", "without a line break"),
    ],
)
def test_an_address_or_a_token_that_cannot_be_right_says_why(address: str, token: str | None, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        recollect.connect(address, token=token)


def test_variables_for_another_process_are_no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    for pid, count in (("1", "1"), (str(os.getpid()), "x"), (str(os.getpid()), "")):
        monkeypatch.setenv("LISTEN_PID", pid)
        monkeypatch.setenv("LISTEN_FDS", count)
        assert systemd.activated() == []
        assert "LISTEN_FDS" not in os.environ
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert systemd.notify("READY=1") is False
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/at/all")
    assert systemd.notify("READY=1") is False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--http", "0.0.0.0:0"], "--tokens"),
        (["--http", "nonsense"], "HOST:PORT"),
        (["--tokens", "x"], "--tokens: without --http this has no effect"),
        (["--mcp"], "--mcp: without --http"),
        (["--max-requests", "3"], "--max-requests: without --http"),
        (["--http", "127.0.0.1:0", "--tools", "basic"], "--tools: without --mcp"),
        (["--http", "127.0.0.1:0", "--salience", "strict"], "--salience: without --socket"),
        (["--http", "127.0.0.1:0", "--allow-host", "a b"], "allow_host must be the name of a host"),
        (["--http", "127.0.0.1:0", "--allow-host", "memory.example:80"], "without a port"),
        (["--http", "127.0.0.1:0", "--allow-origin", "app.example"], "allow_origin must be an origin"),
        (["--http", "127.0.0.1:0", "--allow-origin", "https://app.example/"], "allow_origin must be an origin"),
        (["--socket", "unix://s.sock"], "pass the path alone"),
        (["--batch-seconds", "nan"], "not a number"),
        (["--http", "127.0.0.1:0", "--tokens", "/nowhere"], "cannot be read"),
        (["--http", "127.0.0.1:0", "--mcp", "--tools", "none"], "none"),
        (["--socket", "/" + "x" * 200], "longer than"),
        (["--socket", "/proc/recollect.sock"], "cannot be used"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(tmp_path: Path, options: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["serve", "--db", str(tmp_path / "a.db"), *options])
    assert done.exit_code in (1, 2)
    assert message in done.stderr


@pytest.mark.parametrize("options", [["x", "--user", ""], ["x", "--agent", " "], ["x", "--allow", ""], [""]])
def test_an_empty_option_makes_no_token(tmp_path: Path, options: list[str]) -> None:
    done = CliRunner().invoke(app, ["token", "--tokens", str(tmp_path / "t.toml"), *options])
    assert done.exit_code == 1
    assert "is empty" in done.stderr
    assert not (tmp_path / "t.toml").exists()


def test_the_units_start_what_there_is() -> None:
    units = {}
    for name in ("recollect.service", "recollect.socket"):
        units[name] = configparser.ConfigParser(strict=False, interpolation=None)
        units[name].optionxform = str  # type: ignore[assignment,method-assign]
        units[name].read(ROOT / "packaging" / name)
    service = units["recollect.service"]
    assert service["Service"]["Type"] == "notify"
    assert service["Service"]["ExecStart"].split() == ["%h/.local/bin/recollect", "serve"]
    assert service["Unit"]["Requires"] == "recollect.socket"
    assert units["recollect.socket"]["Socket"]["SocketMode"] == "0600"
    (command,) = re.findall(r"^CMD (.*)$", (ROOT / "packaging" / "Containerfile").read_text(), re.MULTILINE)
    known = {option for parameter in app.get_command(None, "serve").params for option in parameter.opts}  # type: ignore[arg-type,union-attr]
    assert {each for each in json.loads(command) if each.startswith("--")} <= known
