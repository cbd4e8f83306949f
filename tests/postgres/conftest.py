"""Fixtures of the tests on PostgreSQL, which run only where they are selected: `make test-postgres`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from tests.on_postgres import SERVER_VARIABLE

from recollect.testing.postgres import PostgresServer, create_store, drop_store, empty_store


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the tests with the marker `postgres` unless they are selected by it, and mark those with many examples."""
    selected = "postgres" in str(config.getoption("-m"))
    for item in items:
        if not item.get_closest_marker("postgres"):
            continue
        if not selected:
            item.add_marker(pytest.mark.skip(reason="run make test-postgres"))
        test = getattr(item, "obj", None)
        if hypothesis.is_hypothesis_test(test):
            item.add_marker(pytest.mark.thorough)


@pytest.fixture(scope="session")
def dsn() -> Iterator[str]:
    """The address of a server: the one that RECOLLECT_TEST_POSTGRES names, or one of these tests."""
    named = os.environ.get(SERVER_VARIABLE)
    if named:
        yield named
        return
    server = PostgresServer().start()
    yield server.dsn
    server.stop()


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server with a store, which the tests of a module may kill."""
    server = PostgresServer().start()
    create_store(server.dsn)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def schema(dsn: str) -> Iterator[str]:
    """A schema with a store of these tests."""
    name = f"recollect_test_{os.getpid()}"
    drop_store(dsn, name)
    create_store(dsn, name)
    yield name
    drop_store(dsn, name)


@pytest.fixture
def address(dsn: str, schema: str, tmp_path: Path) -> str:
    """The address of an empty store, whose derived data are in a folder of the test."""
    empty_store(dsn, schema)
    return f"{dsn}{'&' if '?' in dsn else '?'}schema={schema}&cache={tmp_path / 'cache'}"
