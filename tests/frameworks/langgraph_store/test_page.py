"""The pages about LangGraph run: the agent in two processes, the suite in one."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("langgraph")

from tests.docs.pages import run_apart, run_python
from tests.paths import ROOT


@pytest.mark.filterwarnings("ignore")
def test_the_agent_of_the_page_remembers_over_two_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_apart(ROOT / "docs" / "langgraph.md")


@pytest.mark.filterwarnings("ignore")
def test_the_suite_runs_as_its_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_python(ROOT / "docs" / "langgraph-stores.md")
