"""Migrations: wholly of the old format or wholly of the new one, whenever the process dies."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import CliRunner
from tests.examples import FULL, in_torture
from tests.paths import GOLDEN
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
from recollect.ledger.commits import Branch
from recollect.ledger.entries import entry_hash
from recollect.ledger.merkle import PUBLIC_KEY, root_of
from recollect.stores.maintenance import format3
from recollect.stores.maintenance.migrate import MIGRATIONS, Migration, Step
from recollect.stores.old_roots import pages_at
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite_base.checksums import connect

#: The moments at which each migration is killed: all of them if everything is tried, and the last ones in any case.
SPREAD = {
    change: sorted({*range(1, steps + 1, 1 if FULL else max(1, steps // most)), steps - 1, steps})
    for change, most in (("from 1", 1), ("from 2", 2), ("invented", 1), ("all", 1))
    for steps in (steps_of(change),)
}


@pytest.fixture(params=[1, 2])
def number(request: pytest.FixtureRequest) -> int:
    """A former format."""
    return int(request.param)


@pytest.fixture
def golden(tmp_path: Path, number: int) -> Path:
    """The golden file of a former format."""
    path = tmp_path / f"format-{number}.db"
    make(path, number, 0)
    return path


def without_roots(commits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in each.items() if name not in ("root", "entry")} for each in commits]


@pytest.mark.promise("migration.same")
def test_a_migrated_store_has_its_records_and_history_under_new_roots(golden: Path, number: int) -> None:
    wanted = json.loads((GOLDEN / f"format-{number}.json").read_text(encoding="utf-8"))
    before = look(golden)
    done = recollect.migrate(golden)
    assert (done.before, done.after) == (number, 3)
    with recollect.open(golden) as store:
        for name, held in wanted.items():
            memory = store.namespace(name)
            assert [record.to_json() for record in memory.find(order="id")] == held["records"]
            log = memory.changes()
            assert without_roots([commit.to_json() for commit in log]) == without_roots(held["log"])
            # Each new root is that of a store in which the same commits are made.
            live: dict[str, bytes] = {}
            for commit in log:
                for change in commit.changes:
                    live.pop(change.id, None)
                    live |= {change.id: change.after} if change.after else {}
                assert commit.root.hash == root_of(live)
                assert commit.entry == entry_hash(commit, PUBLIC_KEY)
        facts = store.stats()["store"]
        assert (facts["format"], facts["checksums"]) == (3, True)
        store.remember("and it can be written")
        assert store.check() == []
    assert recollect.migrate(golden).steps == ()
    backup = Path(str(done.backup))
    assert look(backup) == before
    assert oct(backup.stat().st_mode)[-3:] == "600"


def test_a_store_of_a_former_format_is_refused_unchanged_and_says_what_to_do(golden: Path) -> None:
    before = golden.read_bytes()
    for opened in (recollect.open, lambda path: recollect.open(path, read_only=True)):
        with pytest.raises(OlderFormatError, match="run `recollect migrate`"):
            opened(golden)
    assert golden.read_bytes() == before


def test_a_corrupt_store_of_a_former_format_is_not_migrated(golden: Path) -> None:
    corruptions = {
        "does not match its hash": "UPDATE versions SET payload = cast(payload || x'00' AS BLOB) WHERE number = 2",
        "does not lead to its root": "UPDATE changes SET after = NULL WHERE branch = 1 AND seq = 2",
        "is missing": "DELETE FROM commits WHERE branch = 1 AND seq = 3",
        "has lost a version": "DELETE FROM versions WHERE number = 2",
    }
    for message, sql in corruptions.items():
        path = golden.with_name("corrupt.db")
        shutil.copyfile(golden, path)
        connection = connect(str(path))
        connection.execute(sql)
        connection.close()
        before = look(path)
        with pytest.raises(DamagedStoreError, match=message):
            recollect.migrate(path)
        assert look(path) == before


def test_a_damaged_store_of_a_former_format_is_rescued_into_one_of_this_format(golden: Path, number: int) -> None:
    wanted = json.loads((GOLDEN / f"format-{number}.json").read_text(encoding="utf-8"))
    new = golden.with_name("rescued.db")
    report = recollect.rescue(golden, new)
    assert report.lost == ()
    with recollect.open(new) as store:
        for name, held in wanted.items():
            memory = store.namespace(name)
            assert [record.to_json() for record in memory.find(order="id")] == held["records"]
            assert without_roots([each.to_json() for each in memory.changes()]) == without_roots(held["log"])
        assert store.check() == []


def test_most_roots_of_a_migrated_store_have_no_pages_and_are_recomputed(
    golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(format3, "KEPT_EVERY", 5)
    recollect.migrate(golden)
    store = SqliteStore(golden)
    with store.read() as view:
        branch = Branch("default")
        commits = list(view.commits(branch))
        stored = [commit.seq for commit in commits if commit.root.page]
        assert 2 < len(stored) < len(commits) / 2
        for commit in commits:
            assert pages_at(view, branch, commit.seq)[0].hash == commit.root.hash
    assert store.check() == []
    store.close()


@pytest.mark.promise("migration.dry-run")
def test_a_dry_run_does_all_of_it_to_a_copy_and_nothing_to_the_store(golden: Path, number: int) -> None:
    before = golden.read_bytes()
    steps: list[str] = []
    done = recollect.migrate(golden, dry_run=True, on_step=steps.append)
    assert (done.before, done.after, done.backup, len(done.steps)) == (number, 3, None, 8 - 2 * number)
    assert "COMMIT" in steps
    assert golden.read_bytes() == before
    assert not list(golden.parent.glob("*.backup"))
    with release(4):
        lose = Step("lose", lambda work: work.connection.execute("DELETE FROM heads WHERE number = 1"))
        MIGRATIONS[3] = Migration(3, (lose,))
        with pytest.raises(DamagedStoreError, match="after the migration"):
            recollect.migrate(golden, dry_run=True)
    assert golden.read_bytes() == before


@pytest.mark.promise("migration.killed")
@pytest.mark.parametrize(("change", "at"), [(change, at) for change, spread in SPREAD.items() for at in spread])
@in_torture
def test_a_migration_that_is_killed_leaves_the_old_or_the_new(tmp_path: Path, change: str, at: int) -> None:
    assert kill_once(tmp_path, 8, change, at) == ""


def test_the_kill_test_kills_and_notices_what_is_lost_and_what_is_half_done(tmp_path: Path) -> None:
    path, calm = tmp_path / "a.db", tmp_path / "calm.db"
    make(path, 2, 3)
    make(calm, 2, 3)
    whole = look(path)
    recollect.migrate(calm)
    expected = look(calm)
    assert (whole.format, expected.format) == (2, 3)
    assert "has format 2" in problem_in(path, whole, expected, killed=False)
    recollect.migrate(path)
    assert problem_in(path, whole, expected, killed=True) == ""
    assert "does not hold" in problem_in(path, whole, expected._replace(held=[]), killed=True)
    connection = connect(str(path))
    connection.execute("DELETE FROM heads WHERE number = 1")
    connection.close()
    with pytest.raises(DamagedStoreError):
        problem_in(path, whole, expected, killed=True)
    folder = tmp_path / "killed"
    folder.mkdir()
    steps = steps_of("from 2")
    assert kill_once(folder, 1, "from 2", 5) == kill_once(folder, 1, "from 2", steps + 1) == ""
    assert look(folder / f"from 2-{steps + 1}.db").format == CHANGES["from 2"][1]


@pytest.mark.promise("migration.refused")
def test_a_later_format_is_read_if_it_allows_that_and_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    make(path, 3, 1)
    with release(4):
        with pytest.raises(OlderFormatError, match="run `recollect migrate`"):
            recollect.open(path)
        recollect.migrate(path)
    with recollect.open(path) as memory:  # the older release reads the newer format, as that allows
        assert memory.count() > 0
        with pytest.raises(ReadOnlyStoreError, match="needs format 4"):
            memory.remember("x")
    with pytest.raises(NewerFormatError):
        recollect.migrate(path)


def test_a_migration_wants_the_store_alone_and_leaves_it_as_it_was_where_it_fails(
    golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = look(golden)
    other = connect(str(golden))
    other.execute("BEGIN; SELECT * FROM meta").fetchall()
    with pytest.raises(StoreBusyError, match="close whatever has it open"):
        recollect.migrate(golden)
    other.close()

    def interrupt(name: str) -> None:
        if name == "after the backup":
            with pytest.raises(apsw.BusyError):
                connect(str(golden)).execute("BEGIN IMMEDIATE").fetchall()
        if name == "COMMIT":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recollect.migrate(golden, on_step=interrupt)
    assert look(golden) == before
    backup = golden.with_name(f"{golden.name}.format-{before.format}.backup")
    backup.write_text("something else")
    with pytest.raises(InvalidArgumentError, match="is not a backup"):
        recollect.migrate(golden)
    assert backup.read_text() == "something else"
    backup.unlink()
    with pytest.raises(WrongKeyError):
        recollect.migrate(golden, key=b"another key")
    assert look(golden) == before
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


def test_the_command_migrates_after_a_dry_run(golden: Path, number: int) -> None:
    db = str(golden)
    assert f"would be migrated from format {number} to 3" in run("migrate", "--dry-run", "--db", db)
    told = json.loads(run("migrate", "--db", db, "--json"))
    assert (told["from"], told["to"], len(told["steps"])) == (number, 3, 8 - 2 * number)
    assert Path(told["backup"]).exists()
    assert "nothing to do" in run("migrate", "--db", db)
