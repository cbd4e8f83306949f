"""Who may do what: the owner creates a store, a role that was granted its use uses it, and nobody else does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import psycopg
import pytest
from click.testing import CliRunner

import recollect
from recollect.cli.app import app
from recollect.errors import (
    DamagedStoreError,
    InvalidArgumentError,
    ReadOnlyStoreError,
    StoreError,
    StoreMissingError,
    WrongKeyError,
)
from recollect.stores.postgres import administration
from recollect.stores.postgres.schema import Upgraded
from recollect.stores.postgres.store import PostgresStore
from recollect.testing.postgres import drop_store

pytestmark = pytest.mark.postgres
SCHEMA = "recollect_roles"


@pytest.fixture
def owned(dsn: str) -> Iterator[str]:
    """The address of a schema that is not there yet."""
    drop_store(dsn, SCHEMA)
    yield f"{dsn}&schema={SCHEMA}"
    drop_store(dsn, SCHEMA)


@pytest.fixture
def used(dsn: str) -> Iterator[str]:
    """The address of the same schema for a role that has no rights of its own."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS recollect_user")
        connection.execute("CREATE ROLE recollect_user LOGIN")
    yield f"{dsn.replace('postgres@', 'recollect_user@')}&schema={SCHEMA}"
    drop_store(dsn, SCHEMA)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP ROLE recollect_user")


def test_a_store_is_created_by_its_owner_alone_and_used_by_roles(owned: str, used: str) -> None:
    with pytest.raises(StoreMissingError, match="recollect store init"):
        recollect.open(owned)
    with pytest.raises(StoreError, match="permission denied"):
        administration.init(used)
    assert administration.init(owned)
    assert not administration.init(owned)
    with pytest.raises(StoreError, match="recollect store init --grant"):
        recollect.open(used)
    assert not administration.init(owned, roles=["recollect_user"])
    with recollect.open(used) as memory:
        memory.remember("Ana drinks tea", id="a")
        memory.snapshot("one")
        memory.erase("a")
        assert memory.check() == []
    with (
        psycopg.connect(used.partition("&schema")[0]) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(f"CREATE TABLE {SCHEMA}.t (a int)".encode())


def test_all_who_create_a_store_at_once_get_the_same_one(owned: str) -> None:
    created: list[bool] = []
    threads = [threading.Thread(target=lambda: created.append(administration.init(owned))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(created) == [False] * 5 + [True]
    assert len({PostgresStore(owned).facts()["uuid"] for _ in range(2)}) == 1


def test_the_statements_of_init_create_the_same_store(dsn: str, owned: str, used: str) -> None:
    statements = administration.init_sql(owned, zone="Europe/Copenhagen", roles=["recollect_user"])
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statements.encode())
    with recollect.open(used) as memory:
        memory.remember("Ana drinks tea")
    store = PostgresStore(used)
    assert store.zone == "Europe/Copenhagen"
    store.close()
    assert administration.upgrade(owned) == Upgraded(1, 1, ())


def test_another_key_is_refused_and_a_memory_that_was_opened_to_read_is_not_written(owned: str) -> None:
    administration.init(owned, key=b"a key of sixteen bytes")
    with pytest.raises(WrongKeyError):
        recollect.open(owned)
    with recollect.open(owned, key=b"a key of sixteen bytes", read_only=True) as memory:
        assert memory.count() == 0
        with pytest.raises(ReadOnlyStoreError):
            memory.remember("a note")


def test_a_role_that_cannot_grant_is_told_so(owned: str, used: str) -> None:
    administration.init(owned, roles=["recollect_user"])
    with pytest.raises(StoreError, match="pg_monitor was granted nothing: only the owner"):
        administration.init(used, roles=["pg_monitor"])  # PostgreSQL itself only warns


def test_a_store_with_a_missing_table_is_corrupt_and_not_created_again(dsn: str, owned: str) -> None:
    administration.init(owned)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"DROP TABLE {SCHEMA}.nodes".encode())
    with pytest.raises(DamagedStoreError, match=r"lacks nodes.*restore the database from a backup"):
        administration.init(owned)
    with recollect.open(owned) as memory, pytest.raises(DamagedStoreError, match="a table of the store is missing"):
        memory.remember("note")


def test_a_store_that_is_there_keeps_its_time_zone(owned: str) -> None:
    administration.init(owned, zone="Europe/Copenhagen")
    assert not administration.init(owned, zone="Europe/Berlin")
    with pytest.raises(InvalidArgumentError, match="with the time zone Europe/Copenhagen"):
        administration.init(owned, expected_zone="Europe/Berlin")


def test_no_statement_relies_on_a_search_path(dsn: str, owned: str, used: str) -> None:
    administration.init(owned, roles=["recollect_user"])
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ALTER ROLE recollect_user SET search_path = ''")
    with recollect.open(used) as memory:
        memory.remember("Ana drinks tea", id="a")
        assert [hit.record.id for hit in memory.recall("tea")] == ["a"]


def test_the_commands_create_and_check_a_store(owned: str) -> None:
    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        return str(done.output)

    assert "CREATE TABLE" in run("store", "init", owned, "--print-sql")
    assert run("store", "init", owned) == "the store was created\n"
    assert run("store", "init", owned) == "the store was there already\n"
    assert run("store", "upgrade", owned) == "the store has format 1: nothing to do\n"
    run("remember", "Ana drinks tea", "--db", owned)
    assert "Ana drinks tea" in run("recall", "tea", "--db", owned)
    found = json.loads(run("store", "check", owned, "--json"))
    assert found["problems"] == []
    assert any("synchronous_standby_names is empty" in each for each in found["advice"])
    assert "no problems" in run("store", "check", owned)
