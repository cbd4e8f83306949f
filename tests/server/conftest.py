"""The server of the tests in this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.serving import Served


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for tests that leave nothing in it. Nothing may be raised in its event loop."""
    with Served(tmp_path_factory.mktemp("shared")) as server:
        yield server
        problems = list(server.problems)
    assert problems == []


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server in this process. Nothing may be raised in its event loop."""
    with Served(tmp_path) as server:
        yield server
        problems = list(server.problems)
    assert problems == []
