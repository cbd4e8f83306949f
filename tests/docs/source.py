"""The source of the package, parsed once in a process for all tests that read it."""

from __future__ import annotations

import ast
import gc
from functools import cache

from tests.paths import ROOT

PACKAGE = ROOT / "src" / "recollect"


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package by its path in it."""
    gc.disable()  # looks at all the trees again and again, and takes twice as long as they do
    try:
        return {
            path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text("utf-8"))
            for path in sorted(PACKAGE.glob("**/*.py"))
        }
    finally:
        gc.enable()


@cache
def texts() -> list[str]:
    """Every text that is written in the source."""
    return [
        node.value
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
