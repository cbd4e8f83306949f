"""Runs commands of the command line on a store of each test's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cli.running import Run

from recollect.cli.app import app


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on the store `a.db` of the folder of the test, and checks its exit code."""
    monkeypatch.setenv("RECOLLECT_DB", str(tmp_path / "a.db"))
    monkeypatch.setenv("COLUMNS", "140")

    def run(*arguments: str, input: str | bytes | None = None, code: int = 0) -> Result:  # noqa: A002
        result = CliRunner().invoke(app, arguments, input=input)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return run
