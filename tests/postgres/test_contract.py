"""The PostgreSQL store against the contract, and against the model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from tests import on_postgres
from tests.examples import some

from recollect.ledger.merkle import PUBLIC_KEY
from recollect.stores.base import Store
from recollect.stores.postgres.store import PostgresStore
from recollect.testing import StoreContract, branch_machine, memory_machine
from recollect.testing.postgres import create_store, drop_store

pytestmark = pytest.mark.postgres


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def store(self, address: str) -> Iterator[Store]:
        store = PostgresStore(address)
        self.address = address
        yield store
        store.close()

    def reopened(self, store: Store) -> Store:
        store.close()
        return PostgresStore(self.address)

    def another(self, store: Store) -> Store:
        return PostgresStore(self.address)


@pytest.mark.thorough
class TestPostgresStoreWithAPrivateKey(StoreContract):
    KEY = b"a key of sixteen bytes or more"

    @pytest.fixture
    def store(self, dsn: str, address: str) -> Iterator[Store]:
        drop_store(dsn, "recollect_keyed")
        create_store(dsn, "recollect_keyed", key=self.KEY)
        self.address = f"{dsn}&schema=recollect_keyed{address[address.index('&cache=') :]}"
        store = PostgresStore(self.address, key=self.KEY)
        yield store
        store.close()
        drop_store(dsn, "recollect_keyed")

    def reopened(self, store: Store) -> Store:
        store.close()
        return PostgresStore(self.address, key=self.KEY)


def _fresh() -> Store:
    return on_postgres.open_store(":memory:", True, False, PUBLIC_KEY, 10.0, "full", "UTC")


def _reopened(store: Store) -> Store:
    store.close()
    return PostgresStore(store.path)


TestPostgresAgainstModel = memory_machine(_fresh, _reopened).TestCase
TestPostgresAgainstModel.settings = settings(max_examples=some(40), stateful_step_count=30, deadline=None)
TestPostgresAgainstModel.pytestmark = [pytest.mark.postgres, pytest.mark.thorough]  # type: ignore[attr-defined]

TestPostgresBranchesAgainstModel = branch_machine(_fresh, _reopened).TestCase
TestPostgresBranchesAgainstModel.settings = settings(max_examples=some(20), stateful_step_count=20, deadline=None)
TestPostgresBranchesAgainstModel.pytestmark = [pytest.mark.postgres, pytest.mark.thorough]  # type: ignore[attr-defined]
