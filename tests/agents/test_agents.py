"""The agents of docs/agents.md answer from what they recall, and only from that."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.pages import run_python
from tests.models.model_server import model_server
from tests.paths import ROOT

from recollect.calls.calls import Calls

PAGE = ROOT / "docs" / "agents.md"


def test_an_agent_that_recalls_nothing_knows_nothing_the_next_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recall = Calls.recall
    monkeypatch.setattr(Calls, "recall", lambda self, question, *_, **__: recall(self, question, where="user=none"))
    monkeypatch.chdir(tmp_path)
    with model_server() as variables, pytest.raises(AssertionError) as failed:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        run_python(PAGE)
    line = PAGE.read_text("utf-8").splitlines()[failed.traceback[-1].lineno]
    assert line == 'assert "peanuts" in answer'
