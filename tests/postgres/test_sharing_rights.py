"""A store without the shared tables, a role without rights on them, a reader and a standby: all answer the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

import recollect
from recollect.cli.app import app
from recollect.memory import Memory
from recollect.models.embedding.hashed import Hashed
from recollect.stores.postgres import administration
from recollect.stores.postgres.dialect import DERIVED_TABLES, LEDGER_TABLES
from recollect.stores.postgres.schema import Upgraded
from recollect.testing.loopback import core_of
from recollect.testing.postgres import drop_store
from recollect.testing.postgres_pair import Pair, has_replayed, reached

pytestmark = pytest.mark.postgres
SCHEMA, NAME, RECORDS = "recollect_sharing", "sharing", 1100


def execute(dsn: str, *statements: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for each in statements:
            cursor = connection.execute(each.encode())
        return cursor.fetchall() if cursor.description else []


def without_tables(dsn: str) -> None:
    """Make the store as an earlier release created it."""
    execute(dsn, *(f"DROP TABLE {SCHEMA}.{table}" for table in DERIVED_TABLES))


def opened(address: str, folder: Path, **options: Any) -> Memory:
    return recollect.open(f"{address}&cache={folder}", NAME, embedder=Hashed(), **options)


def fill(address: str, folder: Path) -> None:
    with opened(address, folder) as memory:
        memory.remember_all([{"content": f"note {number} about tea", "id": f"n{number}"} for number in range(RECORDS)])
        memory.embed_all()
        memory.recall("tea")


def started(memory: Memory) -> int:
    return core_of(memory).keeper.use.started


def stored(dsn: str, table: str) -> int:
    return int(execute(dsn, f"SELECT count(*) FROM {SCHEMA}.{table}")[0][0])


@pytest.fixture
def owned(dsn: str) -> Iterator[str]:
    """The address of a new store."""
    drop_store(dsn, SCHEMA)
    address = f"{dsn}&schema={SCHEMA}"
    administration.init(address)
    yield address
    drop_store(dsn, SCHEMA)


@pytest.fixture
def used(dsn: str, owned: str) -> Iterator[str]:
    """The address of the store for a role that may use the ledger and not the shared tables."""
    execute(dsn, "DROP ROLE IF EXISTS recollect_sharer", "CREATE ROLE recollect_sharer LOGIN")
    ledger = ", ".join(f"{SCHEMA}.{table}" for table in LEDGER_TABLES)
    execute(
        dsn,
        f"GRANT USAGE ON SCHEMA {SCHEMA} TO recollect_sharer",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {ledger} TO recollect_sharer",
    )
    yield owned.replace("postgres@", "recollect_sharer@")
    drop_store(dsn, SCHEMA)
    execute(dsn, "DROP ROLE recollect_sharer")


def test_a_store_without_the_tables_works_as_before_until_it_is_upgraded(
    dsn: str, owned: str, used: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    without_tables(dsn)
    fill(owned, tmp_path / "one")
    with opened(owned, tmp_path / "two") as two:
        two.recall("tea")
        assert started(two) == 1
        assert not two.erase("n1").pending
    assert "machines share" not in caplog.text
    advice = administration.examine(owned).advice
    assert any("recollect store upgrade" in each and "segments" in each for each in advice)
    assert not administration.init(owned, roles=["recollect_sharer"])
    done = CliRunner().invoke(app, ["store", "upgrade", owned])
    assert done.output == f"added the tables that machines share: {', '.join(DERIVED_TABLES)}\n"
    assert not any("recollect store upgrade" in each for each in administration.examine(owned).advice)
    with opened(used, tmp_path / "two") as two:  # a role that could use the store can use the tables, too
        two.recall("tea")
    assert stored(dsn, "segments") == 1
    with opened(used, tmp_path / "three") as three:
        three.recall("tea")
        assert started(three) == 0
    assert administration.upgrade(owned) == Upgraded(1, 1, ())
    assert stored(dsn, "segments") == 1, "and is not upgraded again"


def test_an_erasure_of_a_node_that_runs_since_before_the_upgrade_reaches_the_tables(
    dsn: str, owned: str, tmp_path: Path
) -> None:
    without_tables(dsn)
    fill(owned, tmp_path / "one")
    with opened(owned, tmp_path / "one") as one:
        one.recall("tea")
        administration.upgrade(owned)
        with opened(owned, tmp_path / "two") as two:
            two.recall("tea")
            two.embed_all()
        assert (stored(dsn, "segments"), stored(dsn, "vectors")) == (1, RECORDS)
        assert not one.erase("n1").pending
        assert (stored(dsn, "segments"), stored(dsn, "vectors")) == (0, RECORDS - 1)


def test_what_an_older_release_erased_is_not_used_and_is_removed(dsn: str, owned: str, tmp_path: Path) -> None:
    fill(owned, tmp_path / "one")
    with opened(owned, tmp_path / "old") as old:
        old.count()
        keeper, vectors = core_of(old).keeper, core_of(old).vectors
        assert vectors is not None
        keeper._sharing = None
        vectors.store.keep_only_shared = lambda *_: 0  # type: ignore[method-assign]
        old.erase("n1")
    assert (stored(dsn, "segments"), stored(dsn, "vectors")) == (1, RECORDS), "control"
    with opened(owned, tmp_path / "new") as new:
        new.recall("tea")
        assert started(new) == 1
    with opened(owned, tmp_path / "one") as one:
        one.count()
        assert stored(dsn, "vectors") == RECORDS - 1


def test_a_role_without_rights_builds_its_own_and_says_so(
    dsn: str, owned: str, used: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(owned, tmp_path / "one")
    with opened(owned, tmp_path / "one") as one:
        expected = [(hit.record.id, hit.score) for hit in one.recall("tea")]
    assert "may not read" not in caplog.text
    with opened(used, tmp_path / "two") as two:
        two.embed_all()
        assert [(hit.record.id, hit.score) for hit in two.recall("tea")] == expected
        assert started(two) == 1
        assert "this role may not read the tables that machines share" in caplog.text
        assert any("in segments" in each for each in administration.examine(used).advice)
        assert two.erase("n1").pending, "it cannot remove what is shared"
    assert stored(dsn, "segments") == 1
    with opened(owned, tmp_path / "one") as one:  # whoever can does
        assert not core_of(one).erasures.pending
        one.recall("tea")
    assert stored(dsn, "vectors") == RECORDS - 1
    administration.init(owned, roles=["recollect_sharer"])
    with opened(used, tmp_path / "three") as three:
        three.recall("tea")
        assert started(three) == 0


def test_a_memory_that_is_opened_to_be_read_loads_and_stores_nothing(dsn: str, owned: str, tmp_path: Path) -> None:
    fill(owned, tmp_path / "one")
    with opened(owned, tmp_path / "two", read_only=True) as two:
        two.recall("tea")
        assert started(two) == 0
    execute(dsn, f"DELETE FROM {SCHEMA}.segments")
    with opened(owned, tmp_path / "three", read_only=True) as three:
        three.recall("tea")
        assert started(three) == 1
    assert stored(dsn, "segments") == 0


@pytest.mark.thorough
def test_a_standby_loads_what_the_primary_has(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pair = Pair()
    try:
        with recollect.open(f"{pair.primary.dsn}&cache={tmp_path / 'one'}", NAME, embedder=Hashed()) as one:
            one.remember_all([{"content": f"note {number} about tea", "id": f"n{number}"} for number in range(RECORDS)])
            one.embed_all()
            expected = [(hit.record.id, hit.score) for hit in one.recall("tea")]
        reached(lambda: has_replayed(pair))
        with recollect.open(f"{pair.standby.dsn}&cache={tmp_path / 'two'}", NAME, embedder=Hashed()) as two:
            assert [(hit.record.id, hit.score) for hit in two.recall("tea")] == expected
            assert started(two) == 0
            with recollect.open(f"{pair.primary.dsn}&cache={tmp_path / 'one'}", NAME, embedder=Hashed()) as one:
                assert not one.erase("n1").pending
            reached(lambda: has_replayed(pair))
            assert two.get("n1") is None
            assert "n1" not in [hit.record.id for hit in two.recall("tea", k=2 * RECORDS)]
    finally:
        pair.stop()
    assert "may still be in files here" not in caplog.text
