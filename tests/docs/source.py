"""The source of the package, parsed once for all tests that read it: they are in one group, so in one process."""

from __future__ import annotations

import ast
from functools import cache

import pytest
from tests.paths import ROOT

PACKAGE = ROOT / "src" / "recollect"
#: For the tests that read all of the source.
in_one_process = pytest.mark.xdist_group("source")


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package by its path in it."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text("utf-8"))
        for path in sorted(PACKAGE.glob("**/*.py"))
    }


@cache
def texts() -> list[str]:
    """Every text that is written in the source."""
    return [
        node.value
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
