"""The page about the Agent Framework runs: each block in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("agent_framework")

from tests.docs.pages import run_apart
from tests.paths import ROOT


@pytest.mark.filterwarnings("ignore")
def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_apart(ROOT / "docs" / "agent-framework.md")
