"""A pytest plugin for the tests of owners: it leaves out those that the file in LEFT_OUT lists, each with its reason.

A line is the end of a test's id, a tab and the reason. A listed test that does not exist is an error, and with
LEFT_OUT_ONLY only the listed ones are run: each of them must fail, or else it need not be left out.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the listed tests, or all others."""
    path = Path(os.environ["LEFT_OUT"])
    listed = {line.partition("\t")[0] for line in path.read_text("utf-8").splitlines() if line}
    found = {each: [item for item in items if _is(item, each)] for each in listed}
    if unknown := sorted(each for each, named in found.items() if not named):
        raise pytest.UsageError(f"{path} lists tests that do not exist: {', '.join(unknown)}")
    chosen = {item for named in found.values() for item in named}
    only = "LEFT_OUT_ONLY" in os.environ
    config.hook.pytest_deselected(items=[item for item in items if (item in chosen) != only])
    items[:] = [item for item in items if (item in chosen) == only]


def _is(item: pytest.Item, stated: str) -> bool:
    return item.nodeid == stated or item.nodeid.endswith((f"/{stated}", f"::{stated}"))
