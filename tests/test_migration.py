"""Migrations: wholly of the old format or wholly of the new one, whenever the process dies."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from torture.migrating import CHANGES, kill_once, look, make, problem_in, release, steps_of

import recollect
from recollect.cli.app import app
from recollect.errors import (
    DamagedStoreError,
    NewerFormatError,
    OlderFormatError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreIOError,
    StoreMissingError,
)
from recollect.stores.maintenance.migrate import MIGRATIONS, Migration, Step
from recollect.stores.sqlite import schema
from recollect.stores.sqlite_base.checksums import connect

GOLDEN = Path(__file__).parent / "golden"
SPREAD = {change: sorted({1 + at * (steps_of(change) - 1) // 7 for at in range(8)}) for change in ("invented", "both")}


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """The golden file of format 1."""
    path = tmp_path / "format-1.db"
    shutil.copy(GOLDEN / "format-1.db", path)
    os.chmod(path, 0o600)
    return path


@pytest.mark.promise("migration.same")
def test_a_migrated_store_holds_what_it_held_and_its_pages_have_checksums(golden: Path) -> None:
    wanted = json.loads((GOLDEN / "format-1.json").read_text(encoding="utf-8"))
    done = recollect.migrate(golden)
    assert (done.before, done.after) == (1, 2)
    with recollect.open(golden) as store:
        for name, held in wanted.items():
            memory = store.namespace(name)
            assert memory.root == held["root"]
            assert [record.to_json() for record in memory.find(order="id")] == held["records"]
            assert [commit.to_json() for commit in memory.changes()] == held["log"]
        facts = store.stats()["store"]
        assert (facts["format"], facts["checksums"]) == (2, True)
        store.remember("and it can be written")
        assert store.check() == []
    assert recollect.migrate(golden).steps == ()
    backup = Path(str(done.backup))
    assert look(backup, 2).format == 1
    assert oct(backup.stat().st_mode)[-3:] == "600"


def test_a_store_of_format_1_is_read_and_written_as_it_is(golden: Path) -> None:
    with recollect.open(golden) as memory:
        memory.remember("more")
        assert memory.check() == []
        assert memory.stats()["store"]["format"] == 1


@pytest.mark.promise("migration.dry-run")
def test_a_dry_run_does_all_of_it_to_a_copy_and_nothing_to_the_store(golden: Path) -> None:
    before = golden.read_bytes()
    steps: list[str] = []
    done = recollect.migrate(golden, dry_run=True, on_step=steps.append)
    assert (done.before, done.after, done.backup, len(done.steps)) == (1, 2, None, 2)
    assert "COMMIT" in steps
    assert golden.read_bytes() == before
    assert not list(golden.parent.glob("*.backup"))
    with release(3):
        MIGRATIONS[2] = Migration(2, (Step("lose", lambda it: it.execute("DELETE FROM heads WHERE number = 1")),))
        with pytest.raises(DamagedStoreError, match="after the migration"):
            recollect.migrate(golden, dry_run=True)
    assert golden.read_bytes() == before


@pytest.mark.promise("migration.killed")
@pytest.mark.parametrize("at", range(1, steps_of("real") + 1))
def test_a_migration_from_format_1_that_is_killed_leaves_the_old_or_the_new(tmp_path: Path, at: int) -> None:
    assert kill_once(tmp_path, 7, "real", at) == ""


@pytest.mark.promise("migration.killed")
@pytest.mark.parametrize(("change", "at"), [(change, at) for change, spread in SPREAD.items() for at in spread])
def test_a_migration_to_an_invented_format_that_is_killed_leaves_the_old_or_the_new(
    tmp_path: Path, change: str, at: int
) -> None:
    assert kill_once(tmp_path, 8, change, at) == ""


def test_the_kill_test_kills_and_notices_what_is_lost_and_what_is_half_done(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    make(path, 2, 3)
    whole = look(path, 3)
    assert whole.format == 2
    assert "has format 2" in problem_in(path, whole, 2, 3, killed=False)
    with release(3):
        recollect.migrate(path)
    assert problem_in(path, whole, 2, 3, killed=True) == ""
    assert "does not hold" in problem_in(path, whole._replace(held={}), 2, 3, killed=True)
    connection = connect(str(path))
    connection.execute("DELETE FROM heads WHERE number = 1")
    connection.close()
    with pytest.raises(DamagedStoreError):
        problem_in(path, whole, 2, 3, killed=True)
    folder = tmp_path / "killed"
    folder.mkdir()
    steps = steps_of("real")
    assert kill_once(folder, 1, "real", 5) == kill_once(folder, 1, "real", steps + 1) == ""
    assert look(folder / f"real-{steps + 1}.db", 2).format == CHANGES["real"][1]


@pytest.mark.promise("migration.refused")
def test_an_older_format_that_is_not_written_any_more_is_only_read_and_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    make(path, 2, 1)
    with release(3):
        with recollect.open(path) as memory:
            assert memory.count() > 0
            with pytest.raises(ReadOnlyStoreError, match="run `recollect migrate`"):
                memory.remember("x")
        recollect.migrate(path)
    with recollect.open(path) as memory:  # the older release reads the newer format, as that allows
        assert memory.count() > 0
        with pytest.raises(ReadOnlyStoreError, match="needs format 3"):
            memory.remember("x")
    with pytest.raises(NewerFormatError):
        recollect.migrate(path)


def test_a_format_that_is_too_old_to_be_read_says_so(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "READS_FROM", 2)
    with pytest.raises(OlderFormatError, match="older Recollect"):
        recollect.open(golden)


def test_a_migration_wants_the_store_alone_and_leaves_it_as_it_was_where_it_fails(
    golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recollect.open(golden) as memory:
        memory.count()
        with pytest.raises(StoreBusyError, match="close whatever has it open"):
            recollect.migrate(golden)
        memory.remember("it goes on")
    before = look(golden, 2)

    def write(name: str) -> None:
        if name == "after the backup":
            recollect.open(golden).remember("between the backup and the lock")

    with pytest.raises(StoreBusyError, match="since it was backed up"):
        recollect.migrate(golden, on_step=write)
    now = look(golden, 2)
    assert now.format == 1
    assert now.held != before.held

    def fail(name: str) -> None:
        if name == "COMMIT":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recollect.migrate(golden, on_step=fail)
    assert look(golden, 2) == now
    golden.chmod(0o444)
    with pytest.raises(ReadOnlyStoreError):
        recollect.migrate(golden)
    with pytest.raises(StoreMissingError):
        recollect.migrate(golden.with_name("absent.db"))


def run(*arguments: str) -> Any:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_dry_run_without_room_for_a_copy_is_an_error_of_ours(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(golden / "absent"))
    with pytest.raises(StoreIOError, match="a copy of it cannot be created"):
        recollect.migrate(golden, dry_run=True)


def test_the_command_migrates_after_a_dry_run(golden: Path) -> None:
    db = str(golden)
    assert "would be migrated from format 1 to 2" in run("migrate", "--dry-run", "--db", db)
    assert "recollect migrate" in run("doctor", "--db", db)
    told = json.loads(run("migrate", "--db", db, "--json"))
    assert (told["from"], told["to"], len(told["steps"])) == (1, 2, 2)
    assert Path(told["backup"]).exists()
    assert "nothing to do" in run("migrate", "--db", db)
