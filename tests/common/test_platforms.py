"""What a system lacks is an error that says what to use instead. The systems are made up: the tests run on Linux."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

import recollect
from recollect.cli.app import app
from recollect.common.platforms import check_server
from recollect.errors import UnsupportedError


def test_without_unix_sockets_a_server_and_its_address_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_server("recollect serve")  # control
    monkeypatch.delattr(socket, "AF_UNIX")
    for command in ("serve", "inspect"):
        done = CliRunner().invoke(app, [command])
        assert done.exit_code == 1
        assert "this system has no Unix sockets: run it on Linux, in WSL or in a container" in done.output
    with pytest.raises(UnsupportedError, match="this system has no Unix sockets: use http://HOST:PORT"):
        recollect.connect("unix:///run/a.sock")


def test_windows_has_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "name", "nt")
    with pytest.raises(UnsupportedError, match="no signals that end it in order"):
        check_server("recollect serve")


def test_without_turns_of_locks_a_file_is_used_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS and Windows."""
    monkeypatch.setattr("recollect.stores.sqlite.locks.SUPPORTED", False)
    with recollect.open(tmp_path / "a.db") as one, recollect.open(tmp_path / "a.db") as two:
        one.remember("Ana drinks tea", id="tea")
        two.remember("Ben drinks coffee", id="coffee")
        assert {record.id for record in one.find()} == {"tea", "coffee"}
        assert one.check() == []
