"""The source distribution contains every file of the repository, so that what the README says works in it, too."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest
from setuptools import build_meta
from tests.paths import ROOT


def test_the_source_distribution_has_every_file_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone: there is no list of the repository's files")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    monkeypatch.chdir(ROOT)
    built = build_meta.build_sdist(str(tmp_path))
    with tarfile.open(tmp_path / built) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert {name for name in listed.split("\0") if name and (ROOT / name).exists()} - packed == set()
