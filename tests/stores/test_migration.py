"""Migrations: wholly of the old format or wholly of the new one, whenever the process dies."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import CliRunner
from tests.examples import FULL, in_torture
from torture.migrating import CHANGES, kill_once, look, make, problem_in, release, steps_of

import recollect
from recollect.cli.app import app
from recollect.errors import (
    DamagedStoreError,
    InvalidArgumentError,
    NewerFormatError,
    OlderFormatError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreIOError,
    StoreMissingError,
    WrongKeyError,
)
from recollect.stores.maintenance.migrate import MIGRATIONS, Migration, Step
from recollect.stores.sqlite import schema
from recollect.stores.sqlite_base.checksums import connect

#: The moments at which each migration is killed: all of them if everything is tried, and the last ones in any case.
SPREAD = {
    change: sorted({*range(1, steps + 1, 1 if FULL else max(1, steps // most)), steps - 1, steps})
    for change, most in (("real", 2), ("first", 1), ("second", 1), ("all", 2))
    for steps in (steps_of(change),)
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of format 3."""
    path = tmp_path / "a.db"
    make(path, 3, 1)
    return path


@pytest.fixture
def later() -> Iterator[None]:
    """As if this were a later release, which has two more migrations."""
    with release(6):
        yield


def contents(path: Path) -> dict[str, Any]:
    """The records and the history of each namespace."""
    with recollect.open(path) as store:
        assert store.check() == []
        return {
            name: (list(memory.find(order="id")), [each.to_json() for each in memory.changes()])
            for name in store.namespaces()
            for memory in (store.namespace(name),)
        }


@pytest.mark.promise("migration.same")
def test_a_migrated_store_has_the_same_records_and_history(path: Path) -> None:
    whole, before = look(path), contents(path)
    with release(6):
        done = recollect.migrate(path)
        assert (done.before, done.after) == (3, 6)
        assert contents(path) == before
        with recollect.open(path) as store:
            assert store.stats()["store"]["format"] == 6
            store.remember("and it can be written")
            assert store.check() == []
        assert recollect.migrate(path).steps == ()
    backup = Path(str(done.backup))
    assert look(backup) == whole
    assert oct(backup.stat().st_mode)[-3:] == "600"


@pytest.mark.promise("migration.refused")
@pytest.mark.parametrize("number", [1, 2])
def test_a_store_of_an_older_format_is_refused_unchanged_and_says_what_to_do(path: Path, number: int) -> None:
    connection = connect(str(path))
    connection.execute(
        f"PRAGMA user_version = {number}; ALTER TABLE commits DROP COLUMN entry;"
        "ALTER TABLE branches DROP COLUMN trimmed; DROP TABLE redactions"
    ).fetchall()
    for name in ("format", "least_reader", "least_writer"):
        connection.execute("UPDATE meta SET value = ? WHERE name = ?", (number, name))
    connection.close()
    new = path.with_name("new.db")
    before = path.read_bytes()
    for call in (
        lambda: recollect.open(path),
        lambda: recollect.open(path, read_only=True),
        lambda: recollect.migrate(path),
        lambda: recollect.migrate(path, dry_run=True),
        lambda: recollect.rescue(path, new),
        lambda: recollect.restore(path, new),
    ):
        with pytest.raises(OlderFormatError, match=f"format {number}.* a release that knows this format"):
            call()
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.backup"))
    assert not new.exists()


@pytest.mark.usefixtures("later")
def test_a_corrupt_store_is_not_migrated_without_saying_so_and_its_backup_has_what_it_had(path: Path) -> None:
    connection = connect(str(path))
    connection.execute("DELETE FROM versions WHERE number = 2")
    connection.close()
    with pytest.raises(DamagedStoreError, match=r"after the migration.*a\.db\.format-3\.backup has its previous state"):
        recollect.migrate(path)
    assert connect(f"{path}.format-3.backup").pragma("user_version") == 3


@pytest.mark.promise("migration.dry-run")
@pytest.mark.usefixtures("later")
def test_a_dry_run_does_all_of_it_to_a_copy_and_nothing_to_the_store(path: Path) -> None:
    before = path.read_bytes()
    steps: list[str] = []
    done = recollect.migrate(path, dry_run=True, on_step=steps.append)
    assert (done.before, done.after, done.backup, len(done.steps)) == (3, 6, None, 9)
    assert "COMMIT" in steps
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.backup"))
    lose = Step("lose", lambda work: work.connection.execute("DELETE FROM heads WHERE number = 1"))
    MIGRATIONS[3] = Migration(4, (*MIGRATIONS[3].steps, lose))
    with pytest.raises(DamagedStoreError, match="after the migration"):
        recollect.migrate(path, dry_run=True)
    assert path.read_bytes() == before


@pytest.mark.promise("migration.killed")
@pytest.mark.parametrize(("change", "at"), [(change, at) for change, spread in SPREAD.items() for at in spread])
@in_torture
def test_a_migration_that_is_killed_leaves_the_old_or_the_new(tmp_path: Path, change: str, at: int) -> None:
    assert kill_once(tmp_path, 8, change, at) == ""


def test_the_kill_test_kills_and_notices_what_is_lost_and_what_is_half_done(tmp_path: Path) -> None:
    path, calm = tmp_path / "a.db", tmp_path / "calm.db"
    make(path, 3, 3)
    shutil.copyfile(path, calm)
    whole = look(path)
    with release(4):
        recollect.migrate(calm)
    expected = look(calm)
    assert (whole.format, expected.format) == (3, 4)
    assert "has format 3" in problem_in(path, whole, expected, killed=False)
    with release(4):
        recollect.migrate(path)
    assert "does not hold" in problem_in(path, whole, expected._replace(stored=[]), killed=True)
    assert problem_in(path, whole, expected, killed=True) == ""
    connection = connect(str(path))
    connection.execute("DELETE FROM heads WHERE number = (SELECT min(number) FROM heads)")
    connection.close()
    with pytest.raises(DamagedStoreError):
        problem_in(path, whole, expected, killed=True)
    folder = tmp_path / "killed"
    folder.mkdir()
    steps = steps_of("all")
    assert kill_once(folder, 1, "all", 5) == kill_once(folder, 1, "all", steps + 1) == ""
    assert look(folder / f"all-{steps + 1}.db").format == CHANGES["all"][1]


@pytest.mark.promise("migration.refused")
def test_a_later_format_is_read_if_it_allows_that_and_is_not_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "BRANCHED_FORMAT", 4)  # the number of the invented format
    with release(5):
        with pytest.raises(OlderFormatError, match="run `recollect migrate`"):
            recollect.open(path)
        recollect.migrate(path)
    with recollect.open(path) as memory:  # the older release reads the newer format, as that allows
        assert memory.count() > 0
        with pytest.raises(ReadOnlyStoreError, match="needs format 5"):
            memory.remember("x")
    with pytest.raises(NewerFormatError):
        recollect.migrate(path)


@pytest.mark.usefixtures("later")
def test_a_migration_needs_exclusive_access_and_leaves_the_store_as_it_was_where_it_fails(path: Path) -> None:
    before = look(path)
    other = connect(str(path))
    other.execute("BEGIN; SELECT * FROM meta").fetchall()
    with pytest.raises(StoreBusyError, match="close whatever has it open"):
        recollect.migrate(path)
    other.close()

    def interrupt(name: str) -> None:
        if name == "after the backup":
            with pytest.raises(apsw.BusyError):
                connect(str(path)).execute("BEGIN IMMEDIATE").fetchall()
        if name == "COMMIT":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recollect.migrate(path, on_step=interrupt)
    assert look(path) == before
    backup = path.with_name(f"{path.name}.format-{before.format}.backup")
    backup.write_text("something else")
    with pytest.raises(InvalidArgumentError, match="is not a backup"):
        recollect.migrate(path)
    assert backup.read_text() == "something else"
    backup.unlink()
    with pytest.raises(WrongKeyError):
        recollect.migrate(path, key=b"another key")
    assert look(path) == before
    path.chmod(0o444)
    with pytest.raises(ReadOnlyStoreError):
        recollect.migrate(path)
    with pytest.raises(StoreMissingError):
        recollect.migrate(path.with_name("absent.db"))


def run(*arguments: str) -> Any:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.usefixtures("later")
def test_a_dry_run_without_room_for_a_copy_is_an_error_of_ours(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(path / "absent"))
    with pytest.raises(StoreIOError, match="a copy of it cannot be created"):
        recollect.migrate(path, dry_run=True)


@pytest.mark.usefixtures("later")
def test_the_command_migrates_after_a_dry_run(path: Path) -> None:
    db = str(path)
    assert "would be migrated from format 3 to 6" in run("migrate", "--dry-run", "--db", db)
    reported = json.loads(run("migrate", "--db", db, "--json"))
    assert (reported["from"], reported["to"], len(reported["steps"])) == (3, 6, 9)
    assert Path(reported["backup"]).exists()
    assert "nothing to do" in run("migrate", "--db", db)
