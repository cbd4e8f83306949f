"""The same operations leave the same bits on PostgreSQL as in a file: ids, versions, roots, entries, hits, scores."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from tests.postgres.scripts import run

from recollect.stores.postgres import view
from recollect.stores.postgres.dialect import rewritten
from recollect.stores.postgres.store import PostgresStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.testing import memory_on
from recollect.testing.postgres import empty_store

pytestmark = [pytest.mark.postgres, pytest.mark.filterwarnings("ignore::recollect.RecollectWarning")]


def difference(dsn: str, schema: str, address: str, folder: Path, seed: int) -> tuple[str, str] | None:
    """Return the first lines in which a script differs between the two stores; None if it does not."""
    empty_store(dsn, schema)
    with closing(SqliteStore(folder / f"{seed}.db", durability="normal")) as file:
        expected = run(memory_on(file), seed)
    with closing(PostgresStore(address)) as server:
        found = run(memory_on(server), seed)
    assert len(expected) == len(found)
    return next(((one, other) for one, other in zip(expected, found, strict=True) if one != other), None)


@pytest.mark.parametrize("seed", range(6))
def test_a_script_gives_the_same_bits(seed: int, dsn: str, schema: str, address: str, tmp_path: Path) -> None:
    assert difference(dsn, schema, address, tmp_path, seed) is None


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(6, 100))
def test_many_scripts_give_the_same_bits(seed: int, dsn: str, schema: str, address: str, tmp_path: Path) -> None:
    assert difference(dsn, schema, address, tmp_path, seed) is None


def test_a_changed_collation_is_noticed(
    dsn: str, schema: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids sorted without regard to case, as the collations of most languages do."""

    def folded(sql: str, name: str) -> str:
        return rewritten(sql, name).replace(", h.id", ", lower(h.id)").replace("ORDER BY h.id", "ORDER BY lower(h.id)")

    monkeypatch.setattr(view, "rewritten", folded)
    assert any(difference(dsn, schema, address, tmp_path, seed) for seed in range(3))
