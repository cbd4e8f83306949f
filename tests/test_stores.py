"""Every store against the contract, and against the model."""

from __future__ import annotations

import atexit
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from recollect.stores.base import Store
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite import SqliteStore
from recollect.testing import StoreContract, memory_machine


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return SqliteStore(tmp_path / "store.db")

    def reopened(self, store: Store) -> Store:
        store.close()
        return SqliteStore(store.path)


class TestSqliteStoreWithAPrivateKey(StoreContract):
    KEY = b"a key of sixteen bytes or more"

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return SqliteStore(tmp_path / "store.db", key=self.KEY)

    def reopened(self, store: Store) -> Store:
        store.close()
        return SqliteStore(store.path, key=self.KEY)


def _fresh_sqlite() -> Store:
    folder = tempfile.TemporaryDirectory(prefix="recollect-machine-")
    atexit.register(folder.cleanup)
    return SqliteStore(Path(folder.name) / "store.db", durability="normal")


def _reopened_sqlite(store: Store) -> Store:
    store.close()
    return SqliteStore(store.path, durability="normal")


TestMemoryAgainstModel = memory_machine(MemoryStore).TestCase
TestMemoryAgainstModel.settings = settings(max_examples=120, stateful_step_count=30, deadline=None)
TestSqliteAgainstModel = memory_machine(_fresh_sqlite, _reopened_sqlite).TestCase
TestSqliteAgainstModel.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
