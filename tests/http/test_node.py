"""The client in another language that the documentation shows."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.docs.pages import blocks
from tests.http.serving import served
from tests.paths import ROOT


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_node_program_of_the_page_runs(tmp_path: Path) -> None:
    (code,) = (code for language, code in blocks(ROOT / "docs" / "server.md") if language == "js")
    (tmp_path / "client.mjs").write_text(code)
    with served(tmp_path) as server:
        environment = {**os.environ, "RECOLLECT_URL": server.address}
        done = subprocess.run(
            ["node", str(tmp_path / "client.mjs")], env=environment, capture_output=True, text=True, check=False
        )
    assert (done.stdout, done.returncode) == ("Dora collects stamps\n", 0), done.stderr
