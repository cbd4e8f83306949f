"""Faults in mid-operation on PostgreSQL: what fails at any step changes nothing, and neither does a full disk."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stores.test_durability import check_faults

import recollect
from recollect.errors import StoreFullError
from recollect.stores.postgres.store import PostgresStore
from recollect.testing.postgres import PostgresServer, create_store

pytestmark = pytest.mark.postgres


def test_a_fault_at_any_step_changes_nothing_and_the_next_try_succeeds(address: str) -> None:
    check_faults(PostgresStore(address))


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 120 MB, which only root can mount."""
    with tempfile.TemporaryDirectory(prefix="rcl-disk-", dir="/tmp") as folder:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=120m", "tmpfs", folder], check=False)
        if mounted.returncode:
            pytest.skip("needs the right to mount a file system")
        yield Path(folder)
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.thorough
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_full_disk_loses_nothing_and_reads_go_on(small_disk: Path, tmp_path: Path) -> None:
    server = PostgresServer()
    try:
        server.start()
        create_store(server.dsn)
        # The WAL is elsewhere: without room for that the server stops, which is another test.
        folder = small_disk / "space"
        folder.mkdir()
        server.own(folder)
        server.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
        for table in ("versions", "heads", "nodes", "changes", "commits"):
            server.execute(f"ALTER TABLE recollect.{table} SET TABLESPACE small")
        stored: set[str] = set()
        with recollect.open(f"{server.dsn}&cache={tmp_path}", embedder="none") as memory:
            with pytest.raises(StoreFullError):
                for number in range(100):
                    batch = [{"content": os.urandom(4096).hex(), "id": f"{number} {each}"} for each in range(500)]
                    report = memory.remember_all(batch)
                    stored.update(outcome.record.id for outcome in report.results if outcome.record)
                    if report.failed:
                        raise report.failed[0].reason
            assert memory.count() == len(stored)
            assert memory.check() == []
            for _ in range(3):
                assert memory.remember_all([os.urandom(4096).hex() for _ in range(500)]).failed
                assert memory.recall("anything") is not None
            subprocess.run(["mount", "-o", "remount,size=400m", str(small_disk)], check=True)
            memory.remember("there is room again", id="again")
            assert memory.check() == []
            assert {record.id for record in memory.find(limit=10**6)} == stored | {"again"}
    finally:
        server.stop()
