"""A file becomes a database, and a database a file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from tests.stores.test_copying import contents, fill

import recollect
from recollect.stores.maintenance.copying import copy_store
from recollect.stores.postgres.store import PostgresStore
from recollect.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.postgres


def test_a_file_is_copied_to_a_server_and_back(address: str, tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db", embedder="none", zone="UTC") as memory:
        fill(memory)
    with (
        closing(SqliteStore(tmp_path / "a.db", read_only=True)) as source,
        closing(PostgresStore(address)) as server,
        closing(SqliteStore(tmp_path / "b.db")) as again,
    ):
        copy_store(source, server)
        assert contents(server) == contents(source)
        assert server.check() == []
        assert copy_store(source, server).commits == 0
        copy_store(server, again)
        assert contents(again) == contents(source)
        assert again.check() == []
    with recollect.open(address, embedder="none") as memory:
        assert [hit.record.id for hit in memory.recall("coffee", k=1)] == ["tea"]
        erased = memory.erase("tea")
        assert not erased.pending
        assert any("vacuumed" in each for each in erased.copies)


def test_a_copy_of_several_memories_says_nothing_of_lost_commits(
    address: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with recollect.open(tmp_path / "a.db", embedder="none", zone="UTC") as memory:
        for name in ("one", "two", "three"):
            memory.namespace(name).remember(f"note of {name}")
            memory.namespace(name).keyed.write("a", b"one")
    with closing(SqliteStore(tmp_path / "a.db", read_only=True)) as source, closing(PostgresStore(address)) as server:
        copy_store(source, server)
        copy_store(source, server)
    assert "lost commits" not in caplog.text
