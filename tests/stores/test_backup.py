"""Backups: of one moment, whole, verified; put back without losing what was there."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.examples import FULL
from tests.stores.rescues import records_by_namespace

import recollect
from recollect.cli.app import app
from recollect.errors import (
    DamagedStoreError,
    InvalidArgumentError,
    NotAStoreError,
    ScopeError,
    StoreBusyError,
    StoreIOError,
    StoreMissingError,
    UnknownArgumentError,
    UnsupportedError,
    WrongKeyError,
)
from recollect.stores.sqlite_base.checksums import connect
from recollect.testing.loopback import core_of

pytestmark = pytest.mark.files
WRITER = """
import sys, recollect
memory = recollect.open(sys.argv[1])
for number in range(10_000):
    with memory.batch() as batch:
        batch.remember(f"one of {number}", id=f"{number} a")
        batch.remember(f"two of {number}", id=f"{number} b")
    print(number, flush=True)
"""


def roots_of(path: Path, **arguments: Any) -> dict[str, str]:
    """Return the root of each namespace of a store, after a check that it is intact."""
    with recollect.open(path, create=False, **arguments) as memory:
        assert memory.check() == []
        return {name: memory.namespace(name).root for name in memory.namespaces()}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember_all([f"a lighthouse, number {number}" for number in range(50)])
        memory.namespace("second").remember("of another")
    return path


@pytest.mark.promise("backup.online")
def test_a_backup_is_of_one_moment_while_others_write(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set():
                memory.namespace("thread").remember(f"fact {memory.namespace('thread').seq}")

        thread = threading.Thread(target=write)
        thread.start()
        assert writer.stdout is not None
        try:
            last = 0
            for number in range(4 if FULL else 2):
                acknowledged = int(writer.stdout.readline())
                made = memory.backup(tmp_path / f"{number}.backup", verify=True)
                default = next(each for branch, each in made.branches.items() if branch.namespace == "default")
                assert default.records == 2 * default.seq  # both of a batch, or none
                assert default.seq > acknowledged
                assert default.seq >= last
                last = default.seq
                assert roots_of(tmp_path / f"{number}.backup", read_only=True)["default"] == default.root
        finally:
            stop.set()
            thread.join()
            writer.kill()
            writer.communicate()
        assert memory.check() == []


@pytest.mark.promise("backup.whole")
def test_a_backup_is_one_file_for_its_owner_only_that_opens_as_a_store(store: Path, tmp_path: Path) -> None:
    target = tmp_path / "b" / "a.backup"
    target.parent.mkdir()
    with recollect.open(store) as memory:
        memory.remember("only in the log so far")
        roots = {name: memory.namespace(name).root for name in memory.namespaces()}
        assert memory.backup(target).verified is False
        made = memory.backup(target, verify=True)  # a backup may be replaced
        assert made.verified
        assert {branch.namespace: each.root for branch, each in made.branches.items()} == roots
    assert list(target.parent.iterdir()) == [target]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert roots_of(target, read_only=True) == roots
    assert list(target.parent.iterdir()) == [target]


def test_a_backup_goes_over_nothing_but_an_older_backup(store: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("precious")
    recollect.open(tmp_path / "other.db").remember("another store")
    os.link(store, tmp_path / "same.db")
    (tmp_path / "link.db").symlink_to(store)
    with recollect.open(store) as memory:
        memory.remember("x")
        for name, rule in {
            "text": "is not a backup",
            "other.db": "is not a backup",
            "a.db": "the store itself",
            "a.db-wal": "the store itself",
            "a.db-shm": "the store itself",
            "same.db": "the store itself",
            "link.db": "the store itself",
            ".": "not a regular file",
        }.items():
            with pytest.raises(InvalidArgumentError, match=rule):
                memory.backup(tmp_path / name)
        with pytest.raises(InvalidArgumentError, match="the store itself"):
            memory.backup(store, force=True)
        memory.backup(tmp_path / "text", force=True)
        for wrong in ("", "a\0b", 5, ":memory:"):
            with pytest.raises(InvalidArgumentError, match="path of a file"):
                memory.backup(wrong)  # type: ignore[arg-type]
        with pytest.raises(UnknownArgumentError, match="did you mean 'verify'"):
            memory.backup(tmp_path / "b", verfy=True)  # type: ignore[call-arg]
        assert memory.check() == []
    assert len(roots_of(tmp_path / "text", read_only=True)) == 2
    assert not list(tmp_path.glob("*.part*"))


def test_a_place_whose_log_would_have_the_name_of_the_store_or_the_backup_is_refused(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "notes-wal") as memory:
        memory.remember("held")
        with pytest.raises(InvalidArgumentError, match="with -wal is the store itself"):
            memory.backup(tmp_path / "notes", force=True)
        memory.backup(tmp_path / "b-wal")
        with pytest.raises(InvalidArgumentError, match="with -wal is the backup itself"):
            recollect.restore(tmp_path / "b-wal", tmp_path / "b")
        assert memory.check() == []
    assert roots_of(tmp_path / "notes-wal") == roots_of(tmp_path / "b-wal")


def test_the_log_of_a_store_that_was_opened_by_a_link_is_not_overwritten(store: Path, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(store)
    with recollect.open(tmp_path / "link.db") as memory:
        memory.remember("in the log")
        with pytest.raises(InvalidArgumentError, match="the store itself"):
            memory.backup(f"{store}-wal", force=True)


@pytest.mark.in_process  # the answers of a server are in the file, too, and would be changed with the records
@pytest.mark.promise("backup.verified")
def test_a_backup_of_a_corrupt_store_fails_and_leaves_the_older_one(store: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.backup"
    with recollect.open(store) as memory:
        memory.backup(target, verify=True)
    before = target.read_bytes()
    data = store.read_bytes()
    store.write_bytes(data.replace(b"number 17", b"number 71"))
    with recollect.open(store) as memory, pytest.raises(DamagedStoreError):
        memory.backup(target)
    store.write_bytes(data)
    connection = connect(str(store))  # with checksums that are right: only the roots tell
    connection.execute("DELETE FROM heads WHERE number = 17")
    connection.close()
    with recollect.open(store) as memory:
        with pytest.raises(DamagedStoreError, match=r"Merkle|head of record"):
            memory.backup(target, verify=True)
        assert target.read_bytes() == before
        memory.backup(tmp_path / "unverified.backup")
    assert not list(tmp_path.glob("*.part*"))


def test_what_is_not_a_file_or_not_ones_own_is_not_backed_up(store: Path, tmp_path: Path) -> None:
    with recollect.open(":memory:") as memory, pytest.raises(UnsupportedError, match="not a file"):
        memory.backup(tmp_path / "b")
    with recollect.open(store) as memory, pytest.raises(ScopeError):
        memory.scoped(user="ana").backup(tmp_path / "b")


def test_a_backup_can_be_awaited_and_made_of_a_store_with_a_key(tmp_path: Path) -> None:
    key = b"sixteen bytes or more"

    async def main() -> None:
        async with recollect.AsyncMemory(recollect.open(tmp_path / "a.db", key=key)) as memory:
            await memory.remember("x")
            await memory.backup(tmp_path / "b", verify=True)

    asyncio.run(main())
    with pytest.raises(WrongKeyError):
        recollect.restore(tmp_path / "b", tmp_path / "c.db")
    recollect.restore(tmp_path / "b", tmp_path / "c.db", key=key)
    assert roots_of(tmp_path / "c.db", key=key) == roots_of(tmp_path / "a.db", key=key)


# Restore


@pytest.mark.promise("restore.exact")
def test_what_is_put_back_answers_as_it_did(store: Path, tmp_path: Path) -> None:
    with recollect.open(store) as memory:
        memory.backup(tmp_path / "a.backup")
        before = (memory.root, memory.seq, memory.recall("lighthouse 17"), memory.grep("lighthouse and 17"))
        memory.remember_all([f"a lighthouse, later {number}" for number in range(60)])
        memory.forget(memory.recall("lighthouse 17")[0].record.id)
        memory.recall("later")
        memory.grep("later")
    made = recollect.restore(tmp_path / "a.backup", store, force=True)
    assert made.verified
    with recollect.open(store) as memory:
        hits = memory.recall("lighthouse 17")
        assert (memory.root, memory.seq) == before[:2]
        assert [(hit.record, hit.score) for hit in hits] == [(hit.record, hit.score) for hit in before[2]]
        assert memory.grep("lighthouse and 17") == before[3]
        assert memory.grep("later") == []
        memory.remember("and on")
        assert memory.check() == []


@pytest.mark.promise("restore.keeps")
def test_what_was_there_is_kept_aside_whole(store: Path, tmp_path: Path) -> None:
    with recollect.open(store) as memory:
        memory.backup(tmp_path / "a.backup")
    with recollect.open(store) as memory:
        memory.remember("newer than the backup", id="newer")
        roots = {name: memory.namespace(name).root for name in memory.namespaces()}
        for suffix in ("", "-wal"):  # as a process that died has left it
            shutil.copy(f"{store}{suffix}", tmp_path / f"dead.db{suffix}")
    dead = tmp_path / "dead.db"
    with pytest.raises(InvalidArgumentError, match="a store that has commits"):
        recollect.restore(tmp_path / "a.backup", dead)
    assert roots_of(dead) == roots
    for number in (1, 2):
        made = recollect.restore(tmp_path / "a.backup", dead, force=True)
        assert made.kept == f"{dead}.replaced-{number}"
    assert roots_of(Path(f"{dead}.replaced-1")) == roots
    assert roots_of(dead) == roots_of(tmp_path / "a.backup")


def test_a_memory_that_is_open_meanwhile_cannot_damage_what_is_restored(store: Path, tmp_path: Path) -> None:
    with recollect.open(store) as memory:
        memory.backup(tmp_path / "a.backup")
        memory.remember("newer", id="newer")
        made = recollect.restore(tmp_path / "a.backup", store, force=True)
    assert roots_of(store) == roots_of(tmp_path / "a.backup")  # closing the one before carried no log over
    assert made.kept is not None
    with recollect.open(made.kept) as memory:
        assert memory.get("newer") is not None


def test_a_store_that_is_being_written_is_not_replaced(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.stores.maintenance.backup.BUSY_MS", 1)
    with recollect.open(store) as memory:
        memory.backup(tmp_path / "a.backup")
        with memory.batch() as batch:
            batch.remember("half-way", id="half")
            with pytest.raises(StoreBusyError):
                recollect.restore(tmp_path / "a.backup", store, force=True)
        assert memory.get("half") is not None


@pytest.mark.promise("restore.keeps")
def test_where_the_exchange_fails_the_store_is_there_with_its_log(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(part: str, path: str) -> None:
        raise OSError("no room")

    with recollect.open(store) as memory:
        memory.backup(tmp_path / "a.backup")
        monkeypatch.setattr("recollect.stores.maintenance.backup.replace_durably", full)
        with pytest.raises(StoreIOError, match="no room"):
            recollect.restore(tmp_path / "a.backup", store, force=True)
        memory.remember("and on")
        root = memory.root
    assert roots_of(store)["default"] == root
    assert not list(tmp_path.glob("*.part*")) + list(tmp_path.glob("*.replaced*"))


def test_a_store_whose_log_a_reader_keeps_is_not_replaced(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.stores.maintenance.backup.BUSY_MS", 1)
    with recollect.open(store) as memory:
        memory.backup(tmp_path / "a.backup")
        with core_of(memory).store.read() as view:
            view.branches()
            memory.remember("only in the log")
            with pytest.raises(StoreBusyError):
                recollect.restore(tmp_path / "a.backup", store, force=True)
        root = memory.root
    assert roots_of(store)["default"] == root


@pytest.mark.promise("restore.verified")
def test_only_a_whole_backup_is_put_back(store: Path, tmp_path: Path) -> None:
    backup = tmp_path / "a.backup"
    with recollect.open(store) as memory:
        memory.backup(backup)
    before = roots_of(store)
    data = backup.read_bytes()
    backup.write_bytes(data.replace(b"number 17", b"number 71"))
    with pytest.raises(DamagedStoreError):
        recollect.restore(backup, store, force=True)
    backup.write_bytes(data[:-8192])
    with pytest.raises(DamagedStoreError):
        recollect.restore(backup, store, force=True)
    backup.write_bytes(b"not a store at all")
    with pytest.raises(NotAStoreError):
        recollect.restore(backup, store, force=True)
    with pytest.raises(StoreMissingError):
        recollect.restore(tmp_path / "absent", store, force=True)
    backup.write_bytes(data)
    (tmp_path / "picture").write_bytes(b"\x89PNG" * 100)
    with pytest.raises(NotAStoreError):
        recollect.restore(backup, tmp_path / "picture", force=True)
    with pytest.raises(InvalidArgumentError, match="the backup itself"):
        recollect.restore(backup, backup, force=True)
    assert roots_of(store) == before
    assert not list(tmp_path.glob("*.part*")) + list(tmp_path.glob("*.replaced*"))


def test_a_log_that_a_deleted_store_left_behind_is_not_taken_for_the_new_ones(store: Path, tmp_path: Path) -> None:
    with recollect.open(store) as memory:
        memory.backup(tmp_path / "a.backup")
        memory.remember("newer")
        shutil.copy(f"{store}-wal", tmp_path / "new.db-wal")
    recollect.restore(tmp_path / "a.backup", tmp_path / "new.db", force=True)
    assert roots_of(tmp_path / "new.db") == roots_of(tmp_path / "a.backup")


def test_a_store_that_cannot_be_opened_is_replaced_only_by_force_and_kept(store: Path, tmp_path: Path) -> None:
    with recollect.open(store) as memory:
        memory.backup(tmp_path / "a.backup")
    whole = roots_of(store)
    corrupt = store.read_bytes()[:4096] + bytes(20_000) + store.read_bytes()[24_096:]
    store.write_bytes(corrupt)
    with pytest.raises(InvalidArgumentError, match="cannot be"):
        recollect.restore(tmp_path / "a.backup", store)
    made = recollect.restore(tmp_path / "a.backup", store, force=True)
    assert Path(str(made.kept)).read_bytes() == corrupt
    assert roots_of(store) == whole


# The commands


def run(*arguments: str, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout or result.stderr)


def test_the_commands_back_up_and_restore(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_DB", str(store))
    target = str(tmp_path / "a.backup")
    assert run("backup", target)["verified"] is False
    made = run("backup", target, "--verify")
    assert [(each["branch"], each["records"]) for each in made["branches"]] == [("main", 50), ("main", 1)]
    assert run("restore", target, code=1)["error"] == "invalid_argument"
    assert run("restore", target, "--force")["kept"].endswith("replaced-1")
    assert run("restore", target, "--db", str(tmp_path / "new.db"))["branches"] == made["branches"]
    assert run("backup", str(store), code=1)["error"] == "invalid_argument"
    shown = CliRunner().invoke(app, ["restore", target, "--force"])
    assert "the replaced store was renamed to" in shown.stdout
    assert "verified" in CliRunner().invoke(app, ["backup", target, "--verify"]).stdout
    assert run("restore", target, "--db", ":memory:", code=1)["error"] == "unsupported"


# A log without its file


@pytest.fixture
def only_a_log(tmp_path: Path) -> Path:
    """A place where only the log of a killed process is left."""
    path = tmp_path / "killed.db"
    memory = recollect.open(path)
    memory.remember_all([f"text {number}" for number in range(50)])
    copy = tmp_path / "left.db"
    shutil.copy(f"{path}-wal", f"{copy}-wal")
    memory.close()
    return copy


@pytest.mark.promise("damage.log")
@pytest.mark.parametrize("empty", [False, True])
def test_a_log_whose_file_is_lost_is_neither_written_over_nor_passed_over(only_a_log: Path, empty: bool) -> None:
    if empty:
        only_a_log.touch()
    log = Path(f"{only_a_log}-wal")
    before = log.read_bytes()
    for create in (True, False):
        with pytest.raises(DamagedStoreError, match="its WAL exists"):
            recollect.open(only_a_log, create=create)
    assert log.read_bytes() == before
    report = recollect.rescue(only_a_log, only_a_log.with_name("saved.db"))
    assert records_by_namespace(report) == {"default": 50}
    backup = only_a_log.with_name("other.backup")
    with recollect.open(only_a_log.with_name("saved.db")) as memory:
        memory.backup(backup)
    with pytest.raises(InvalidArgumentError, match="has the WAL of a store"):
        recollect.restore(backup, only_a_log)
    made = recollect.restore(backup, only_a_log, force=True)
    assert made.kept is not None
    assert Path(f"{made.kept}-wal").read_bytes() == before
    with recollect.open(only_a_log) as memory:
        assert memory.count() == 50


def test_a_backup_takes_the_place_of_none_that_is_of_another_store(tmp_path: Path) -> None:
    backup = tmp_path / "a.backup"
    with recollect.open(tmp_path / "a.db") as one, recollect.open(tmp_path / "b.db") as other:
        one.remember("one")
        one.backup(backup)
        with pytest.raises(InvalidArgumentError, match="another store"):
            other.backup(backup)
        assert one.backup(backup).verified
        other.backup(backup, force=True)


def test_a_file_that_is_no_store_any_more_is_restored_over_by_force_and_kept(tmp_path: Path) -> None:
    path, backup = tmp_path / "a.db", tmp_path / "a.backup"
    with recollect.open(path) as memory:
        memory.remember("one")
        memory.backup(backup)
    with path.open("r+b") as file:
        file.write(bytes(100))
    with pytest.raises(InvalidArgumentError, match="--force"):
        recollect.restore(backup, path)
    made = recollect.restore(backup, path, force=True)
    assert made.kept is not None
    assert Path(made.kept).read_bytes()[:100] == bytes(100)
    with recollect.open(path) as memory:
        assert memory.count() == 1
