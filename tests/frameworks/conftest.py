"""The places on which adapters are tested: memory, a file, a server's socket, and a database of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.frameworks.places import make_store, new_database
from tests.frameworks.serving import served

import recollect


@pytest.fixture(params=["memory", "file", "socket", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[recollect.Memory]:
    """A memory in this process, one on a file, one of a server over its socket, and one on PostgreSQL."""
    if request.param == "socket":
        with served(tmp_path / "served.db") as address, recollect.connect(address) as memory:
            yield memory
        return
    path = ":memory:" if request.param == "memory" else str(tmp_path / "agent.db")
    if request.param == "postgres":
        path = new_database()
        make_store(path)
    with recollect.open(path) as memory:
        yield memory
