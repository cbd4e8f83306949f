"""Tests that need node and the packages of package.json run only under `make test-mcp`, which installs them."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the tests with the marker `peers` unless they are selected by it; then a missing package is a failure."""
    if config.getoption("-m") == "peers":
        return
    for item in items:
        if item.get_closest_marker("peers"):
            item.add_marker(pytest.mark.skip(reason="run make test-mcp"))
