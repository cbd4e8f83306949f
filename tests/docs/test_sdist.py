"""The source distribution contains every file of the repository, so that what the README says works in it, too."""

from __future__ import annotations

import subprocess
import tarfile
import tomllib
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


def missing(patterns: list[str]) -> set[str]:
    """Return the files of the package that are no modules, and that no pattern of the package data has."""
    files = (path for path in (ROOT / "src" / "recollect").glob("**/*.*") if path.is_file())
    data = (path for path in files if path.suffix not in (".py", ".pyc", ".so", ".c", ".h"))
    return {path.name for path in data if not any(path.match(each) for each in patterns)}


def test_the_package_data_has_every_file_that_is_no_module() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["*"]
    assert missing(patterns) == set()
    assert "layout.jinja" in missing([each for each in patterns if each != "*.jinja"])
