"""The page about the memory tool of Anthropic's SDK runs: its blocks one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("anthropic.lib.tools")

from tests.docs.pages import run_python
from tests.paths import ROOT


@pytest.mark.filterwarnings("ignore")
def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_python(ROOT / "docs" / "anthropic-memory-tool.md")
