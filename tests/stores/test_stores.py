"""Every store against the contract, and against the model."""

from __future__ import annotations

import atexit
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.doors import BehindDoor
from tests.examples import some

from recollect.ledger.commits import Branch
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.stores.base import Store
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite.view import SqliteView
from recollect.stores.values import Resolved
from recollect.testing import StoreContract, branch_machine, memory_machine
from recollect.testing.commits import BRANCH, EARLY, note, stored, write, write_into
from recollect.testing.loopback import Loopback

#: Ids of which some come again, and some that JSON has to escape.
IDS = st.sampled_from(["a", "b", "c", "d'\"\\", "\u2028 \ufffe", "\U0001f600", "ключ", "x" * 255])

SECRET = bytes(range(32))


class Undone(Exception):
    """Raised so that a transaction is undone."""


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

    def another(self, store: Store) -> Store:
        return SqliteStore(store.path)

    @given(
        st.sets(IDS, max_size=4),
        st.sets(IDS, max_size=3),
        st.sets(IDS, max_size=3),
        st.lists(IDS, max_size=9),
        st.booleans(),
    )
    @settings(max_examples=some(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_many_ids_are_known_or_not_as_each_is_by_itself(
        self, store: SqliteStore, before: set[str], put: set[str], dropped: set[str], asked: list[str], commits: bool
    ) -> None:
        with store.read() as view:
            branch = Branch(f"n{len(view.branches())}")
        write(store, map(note, before), branch=branch)
        with suppress(Undone), store.write(branch) as transaction:
            if commits:
                write_into(transaction, store.key, map(note, put), dropped & before, branch=branch)
            else:
                for record in map(note, put):
                    transaction.put(branch, record, stored(record, store.key))
            resolved = transaction.resolve(branch, asked, EARLY)
            assert resolved == {
                each: Resolved(transaction.known(branch, each), transaction.get(branch, each), False) for each in asked
            }
            if not commits:
                raise Undone

    @pytest.mark.parametrize("call", ["changed", "last_touched"])
    def test_what_a_commit_changed_is_found_without_reading_the_rest_of_the_log(
        self, store: SqliteStore, call: str
    ) -> None:
        for start in range(0, 3000, 500):
            write(store, [note(f"r{number}") for number in range(start, start + 500)])
        write(store, [note("new")])
        with store.reading() as connection, store.read() as view:
            steps = [0]

            def step() -> bool:
                steps[0] += 1
                return False

            assert isinstance(view, SqliteView)
            view._execute = connection.execute  # a connection whose steps are counted
            connection.set_progress_handler(step, 10)
            try:
                assert list(getattr(view, call)(BRANCH, view.head(BRANCH).seq - 1)) == ["new"]
            finally:
                connection.set_progress_handler(None)
            assert steps[0] < 50, "in tens of instructions of SQLite"


class TestSqliteStoreWithAPrivateKey(StoreContract):
    KEY = b"a key of sixteen bytes or more"

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return SqliteStore(tmp_path / "store.db", key=self.KEY)

    def reopened(self, store: Store) -> Store:
        store.close()
        return SqliteStore(store.path, key=self.KEY)


class TestEncryptedStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return SqliteStore(tmp_path / "store.db", secret=SECRET)

    def reopened(self, store: Store) -> Store:
        store.close()
        return SqliteStore(store.path, secret=SECRET)

    def another(self, store: Store) -> Store:
        return SqliteStore(store.path, secret=SECRET)


def _fresh_encrypted() -> Store:
    folder = tempfile.TemporaryDirectory(prefix="recollect-machine-")
    atexit.register(folder.cleanup)
    return SqliteStore(Path(folder.name) / "store.db", durability="normal", key=PUBLIC_KEY, secret=SECRET)


def _reopened_encrypted(store: Store) -> Store:
    store.close()
    return SqliteStore(store.path, durability="normal", key=PUBLIC_KEY, secret=SECRET)


def _fresh_sqlite() -> Store:
    folder = tempfile.TemporaryDirectory(prefix="recollect-machine-")
    atexit.register(folder.cleanup)
    return SqliteStore(Path(folder.name) / "store.db", durability="normal")


def _reopened_sqlite(store: Store) -> Store:
    store.close()
    return SqliteStore(store.path, durability="normal")


TestMemoryAgainstModel = memory_machine(MemoryStore).TestCase
TestMemoryAgainstModel.settings = settings(max_examples=some(120), stateful_step_count=30, deadline=None)
TestLoopbackAgainstModel = memory_machine(MemoryStore, through=Loopback).TestCase
TestLoopbackAgainstModel.settings = settings(max_examples=some(60), stateful_step_count=30, deadline=None)
TestSocketAgainstModel = memory_machine(MemoryStore, through=lambda engine: BehindDoor(engine, "socket")).TestCase
TestSocketAgainstModel.settings = settings(max_examples=some(20), stateful_step_count=20, deadline=None)
TestSqliteAgainstModel = memory_machine(_fresh_sqlite, _reopened_sqlite).TestCase
TestSqliteAgainstModel.settings = settings(max_examples=some(80), stateful_step_count=30, deadline=None)
TestEncryptedAgainstModel = memory_machine(_fresh_encrypted, _reopened_encrypted).TestCase
TestEncryptedAgainstModel.settings = settings(max_examples=some(40), stateful_step_count=30, deadline=None)

TestMemoryBranchesAgainstModel = branch_machine(MemoryStore).TestCase
TestMemoryBranchesAgainstModel.settings = settings(max_examples=some(200), stateful_step_count=25, deadline=None)
TestLoopbackBranchesAgainstModel = branch_machine(MemoryStore, through=Loopback).TestCase
TestLoopbackBranchesAgainstModel.settings = settings(max_examples=some(40), stateful_step_count=20, deadline=None)
TestSqliteBranchesAgainstModel = branch_machine(_fresh_sqlite, _reopened_sqlite).TestCase
TestSqliteBranchesAgainstModel.settings = settings(max_examples=some(60), stateful_step_count=20, deadline=None)
TestEncryptedBranchesAgainstModel = branch_machine(_fresh_encrypted, _reopened_encrypted).TestCase
TestEncryptedBranchesAgainstModel.settings = settings(max_examples=some(20), stateful_step_count=20, deadline=None)
