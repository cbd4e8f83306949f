"""Stores of both types, for the tests of the compatibility layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recollect.compat.llm4s import MemoryStore, MemoryStoreConfig
from recollect.models.embedding.base import Embedder

#: Opens a store; called with a config or an embedder.
Open = Callable[..., MemoryStore]


@pytest.fixture(params=["memory", "sqlite"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Open stores of one type; each call opens the same file, or another store in memory."""
    opened: list[MemoryStore] = []

    def open_one(config: MemoryStoreConfig | None = None, embedder: Embedder | str = "none") -> MemoryStore:
        path = ":memory:" if request.param == "memory" else tmp_path / "agent.db"
        opened.append(MemoryStore.open(path, embedder, config))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Open) -> MemoryStore:
    return open_store()
