"""A store that another SQLite has looked at, checkpointed or copied stays a store, and what is damaged stays damaged.

The other SQLite is that of Python's `sqlite3`, in this process and in others.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.examples import some
from tests.exports import exported

import recollect
from recollect import Memory, RecollectWarning
from recollect import filters as f
from recollect.engine import bulk
from recollect.engine.erasures import Erasures
from recollect.errors import (
    DamagedStoreError,
    NewerFormatError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
    WrongKeyError,
)
from recollect.models.embedding.hashed import Hashed
from recollect.operations import GetQuota
from recollect.stores.maintenance.rescue import rescue
from recollect.stores.sqlite import integrity, locks, renewing
from recollect.stores.sqlite.identity import FileIdentity
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite_base import checksums
from recollect.stores.sqlite_base.descriptors import FileBytes
from recollect.testing.loopback import core_of

RECORDS = 60


def fill(memory: Memory, count: int = RECORDS) -> None:
    for number in range(count // 2):
        memory.remember(f"sentence {number} of Ana", id=f"s{number}", user="ana")
    memory.remember_all([{"content": f"sentence {each}", "id": f"s{each}"} for each in range(count // 2, count)])
    memory.remember("long " * 3000, id="long")
    memory.update("s1", content="another sentence")
    memory.forget("s2")
    memory.snapshot("before")
    memory.namespace("other").remember("of another", id="o")
    memory.namespace("other").set_quota(records=100)


def run(code: str, *arguments: object) -> str:
    """Run Python in another process, without Recollect, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


OPEN = "import recollect, sys; memory = recollect.open(sys.argv[1]); print(1, flush=True); input()"
WRITE = """
import recollect, sys, warnings
warnings.simplefilter("ignore")
with recollect.open(sys.argv[1], timeout=0.05) as memory:
    print(memory.remember("meanwhile").id)
"""
UPDATE = """
import recollect, sys, warnings
warnings.simplefilter("ignore")
with recollect.open(sys.argv[1]) as memory:
    for number in range(20):
        memory.update(f"s{number + 10}", content=f"new {number}")
"""
LOOK = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); print(*c.execute(sys.argv[2]).fetchall()); c.close()"


def looked(path: Path, sql: str = "SELECT count(*) FROM versions") -> str:
    """Run a statement as a shell does, which closes the file afterwards."""
    return run(LOOK, path, sql)


def backed_up(path: Path, to: Path) -> None:
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A store with a part of it in the file and the rest in the WAL, as a process leaves it that is killed."""
    with recollect.open(tmp_path / "live.db") as memory:
        fill(memory)
    with recollect.open(tmp_path / "live.db") as memory:
        for number in range(20):
            memory.update(f"s{number + 10}", importance=0.9)
        for suffix in ("", "-wal"):
            shutil.copy(f"{tmp_path}/live.db{suffix}", f"{tmp_path}/killed.db{suffix}")
    return tmp_path / "killed.db"


def state(memory: Memory) -> tuple[object, ...]:
    other = memory.namespace("other")
    records = [each.to_bytes() for each in memory.find(order="position")]
    return (
        memory.seq,
        memory.root,
        records,
        [each.name for each in memory.snapshots()],
        other.root,
        other.execute(GetQuota()),
    )


@pytest.fixture
def expected(killed: Path) -> tuple[object, ...]:
    with recollect.open(killed.with_name("live.db")) as memory:
        return state(memory)


def opens(path: Path, expected: tuple[object, ...], *, warns: bool = True, **named: object) -> None:
    """Check that a store opens with a warning that names what happened, is as it was, and later opens without."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with recollect.open(path, **named) as memory:  # type: ignore[arg-type]
            assert state(memory) == expected
            assert memory.check() == []
            assert bool(memory.stats()["store"]["renewed"]) is warns
    said = [str(each.message) for each in caught if each.category is RecollectWarning]
    assert ["written by another SQLite" in each for each in said] == [True] * warns
    if warns and not named:
        opens(path, expected, warns=False)


# After a kill


@pytest.mark.promise("damage.other-sqlite")
@pytest.mark.parametrize(
    "sql", ["SELECT count(*) FROM versions", "PRAGMA integrity_check", "PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM"]
)
def test_a_store_that_another_sqlite_has_looked_at_opens(killed: Path, expected: tuple[object, ...], sql: str) -> None:
    looked(killed, sql)
    assert not killed.with_name("killed.db-wal").exists()
    opens(killed, expected)


@pytest.mark.promise("damage.other-sqlite")
@pytest.mark.parametrize("live", [False, True])
def test_copies_by_another_sqlite_open(killed: Path, expected: tuple[object, ...], live: bool) -> None:
    copies = [killed.with_name("backup.db"), killed.with_name("vacuum.db")]
    with recollect.open(killed.with_name("live.db")) as memory:
        source = killed.with_name("live.db") if live else killed
        if live:
            memory.update("s3", importance=0.1)
            expected = state(memory)
        backed_up(source, copies[0])
        looked(source, f"VACUUM INTO '{copies[1]}'")
        if live:
            assert state(memory) == expected
    for each in copies:
        opens(each, expected)


LIBRARIES = {"sqlite3": sqlite3.connect, "apsw": apsw.Connection}


@pytest.mark.promise("damage.other-sqlite")
@pytest.mark.parametrize("connect", LIBRARIES.values(), ids=LIBRARIES)
def test_a_store_of_which_only_the_header_was_changed_opens(killed: Path, connect: Callable[[str], Any]) -> None:
    live, copy = killed.with_name("live.db"), killed.with_name("copy.db")
    with recollect.open(live) as memory:
        expected = state(memory)
    with closing(connect(str(live))) as source, closing(connect(str(copy))) as target:
        if isinstance(source, sqlite3.Connection):
            source.backup(target)
        else:
            with target.backup("main", source, "main") as work:
                work.step(-1)
    assert checksums.mismatching(copy.read_bytes(), 4096) == [0]
    opens(copy, expected)
    with closing(connect(str(live))) as connection:
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()
    opens(live, expected)


def test_a_store_that_is_only_read_opens_and_is_not_changed(killed: Path, expected: tuple[object, ...]) -> None:
    looked(killed)
    before = killed.read_bytes()
    opens(killed, expected, read_only=True)
    assert killed.read_bytes() == before
    killed.chmod(0o400)
    opens(killed, expected, read_only=True)


def test_another_key_is_refused_as_such(killed: Path) -> None:
    looked(killed)
    with pytest.raises(WrongKeyError):
        recollect.open(killed, key=b"another private key of a store")


def test_every_page_has_its_checksum_again(killed: Path) -> None:
    looked(killed)
    assert checksums.mismatching(killed.read_bytes(), 4096)
    with pytest.warns(RecollectWarning, match="written by another SQLite"):
        recollect.open(killed).close()
    assert checksums.mismatching(killed.read_bytes(), 4096) == []


def test_renewing_that_ends_at_any_page_is_continued(
    killed: Path, expected: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked(killed)
    whole, real = killed.read_bytes(), FileBytes.write
    pages = len(checksums.mismatching(whole, 4096))
    for stop in range(0, pages, max(pages // 8, 1)):
        left = [stop]
        killed.write_bytes(whole)

        def failing(self: FileBytes, data: bytes, at: int, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise OSError("cut off")
            real(self, data, at)

        monkeypatch.setattr(FileBytes, "write", failing)
        with pytest.raises(StoreError):
            recollect.open(killed)
        assert len(checksums.mismatching(killed.read_bytes(), 4096)) == pages - stop
    monkeypatch.setattr(FileBytes, "write", real)
    with recollect.open(killed) as memory:
        assert state(memory) == expected
        assert memory.check() == []
    assert checksums.mismatching(killed.read_bytes(), 4096) == []


# While it is open


@pytest.mark.promise("damage.other-sqlite")
@pytest.mark.filterwarnings("ignore:.*written by another SQLite")
@pytest.mark.parametrize("mode", ["PASSIVE", "FULL", "RESTART", "TRUNCATE"])
def test_a_running_process_goes_on_after_another_sqlite_has_checkpointed(
    killed: Path, expected: tuple[object, ...], mode: str
) -> None:
    calls: list[Callable[[Memory], object]] = [
        lambda memory: memory.recall("sentence 7"),
        lambda memory: memory.remember("yet another"),
        lambda memory: memory.find(f.user("ana")),
        lambda memory: memory.grep("sentence"),
        lambda memory: memory.log(),
        lambda memory: list(exported(memory)),
        lambda memory: memory.check() == [] or pytest.fail("damage was reported"),
        lambda memory: memory.backup(killed.with_name("own.backup"), verify=True),
        lambda memory: list(memory.changes(since=0)),
    ]
    with recollect.open(killed) as memory:
        for call in calls:
            for number in range(5):
                memory.update(f"s{number + 3}", importance=random.Random(number).random())
            looked(killed, f"PRAGMA wal_checkpoint({mode})")
            with recollect.open(killed):  # pages that this process has cached are read from the file by another
                call(memory)
        assert memory.check() == []
        now = state(memory)
    opens(killed, now, warns=False)


def without_checksums(path: Path) -> None:
    """Write zeros for the checksums of all pages, as if another SQLite had written them."""
    with FileBytes(str(path), writing=True) as data:
        for end in range(4096, len(data) + 1, 4096):
            data.write(bytes(8), end - 8)


def test_a_batch_or_an_export_that_meets_such_a_page_says_to_try_again(killed: Path) -> None:
    recollect.open(killed).close()
    with recollect.open(killed) as memory, memory.open_export() as export:
        next(export.records)
        without_checksums(killed)
        with pytest.raises(StoreBusyError, match="export again"):
            list(export.records)
        assert len(exported(memory)[1]) == memory.count()
    with recollect.open(killed) as memory:
        without_checksums(killed)
        with pytest.raises(StoreBusyError, match="undone"), memory.batch() as batch:
            batch.remember("undone", id="undone")
            for number in range(RECORDS):
                batch.get(f"s{number}")
        assert memory.get("undone") is None
        with memory.batch() as batch:
            batch.remember("again", id="again")
        assert memory.check() == []


LOOKS: dict[str, Callable[[Path], object]] = {
    "sqlite3 in this process": lambda path: sqlite3.connect(path).execute("SELECT 1 FROM sqlite_schema").fetchone(),
    "sqlite3, closed": lambda path: _closed(path),
    "open()": lambda path: path.read_bytes(),
    "shutil.copy": lambda path: shutil.copy(path, path.with_name("copy")),
    "the index of the WAL": lambda path: path.with_name(path.name + "-shm").read_bytes(),
    "another process": lambda path: None,
}


def _closed(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("SELECT count(*) FROM versions").fetchone()


@pytest.mark.promise("damage.other-sqlite")
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_no_commit_is_lost_by_a_look_at_an_open_store(tmp_path: Path, look: Callable[[Path], object]) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        for number in range(5):
            memory.remember(f"sentence {number}", id=f"s{number}")
            look(path)
            looked(path)
            memory.remember(f"another {number}", id=f"a{number}")
            assert memory.count() == 2 * number + 2
    with recollect.open(path) as memory:
        assert memory.count() == 10
        assert memory.check() == []
    assert not path.with_name("a.db-wal").exists()


def test_without_locks_of_its_own_a_store_would_lose_its_wal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "SUPPORTED", False)
    path = tmp_path / "a.db"
    memory = recollect.open(path)
    memory.remember("one")
    _closed(path)
    assert not path.with_name("a.db-wal").exists()
    with pytest.raises(StoreError):
        memory.remember("two")
    memory.close()


#: Checkpoints a store with Python's `sqlite3` so that its WAL is emptied, and prints whether a lock prevented that.
CHECKPOINT = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=0) as connection:
    print(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
"""


@pytest.mark.promise("concurrent.dropped")
def test_sqlites_own_locks_last_whatever_this_process_closes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def emptied_by_another_process(path: Path) -> bool:
        with recollect.open(path) as memory:
            memory.remember("one")
            with memory.open_export() as export:  # a snapshot, which no checkpoint may overwrite
                memory.remember("two")
                for suffix in ("", "-shm", "-wal"):
                    path.with_name(path.name + suffix).read_bytes()
                done = subprocess.run(
                    [sys.executable, "-c", CHECKPOINT, path], capture_output=True, check=True, text=True
                )
                with suppress(StoreError):  # without such locks
                    assert len(list(export.records)) == 1
        return done.stdout.strip() == "0"

    assert not emptied_by_another_process(tmp_path / "a.db")
    monkeypatch.setattr(locks, "_calls", lambda: None)
    assert emptied_by_another_process(tmp_path / "b.db")  # the control: locks that are dropped


@pytest.mark.promise("concurrent.dropped")
def test_a_fork_has_none_of_the_locks_of_its_parent(tmp_path: Path) -> None:
    """As with SQLite's own locks: what the parent had ends with the parent, though the child lives on."""
    path = tmp_path / "a.db"
    parent = subprocess.Popen([sys.executable, "-c", FORKING, path], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    try:
        with recollect.open(path, timeout=5) as memory:
            memory.remember("the lock for writing is free")
            assert len(memory.find()) == 1
    finally:
        os.kill(child, signal.SIGKILL)


def test_what_was_read_while_locks_were_dropped_and_others_use_the_file_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the package was not compiled, so that SQLite's own locks can be dropped."""
    monkeypatch.setattr(locks, "_calls", lambda: None)
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember("one", id="one")
        with memory.open_export() as export:
            next(export.records)
            path.with_name("a.db-shm").read_bytes()  # no other process uses it: nothing could have happened
        other = subprocess.Popen([sys.executable, "-c", OPEN, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert other.stdout is not None
        other.stdout.readline()
        export = memory.open_export()
        path.with_name("a.db-shm").read_bytes()
        with pytest.raises(StoreBusyError, match="closed it while it was read"):
            export.close()
        assert memory.get("one") is not None
        other.communicate(b"\n", timeout=60)


#: Opens a store with Python's `sqlite3` and closes it: the last user of a store deletes its WAL.
LAST_USER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT count(*) FROM heads").fetchall()
connection.close()
"""


@pytest.mark.parametrize("marks", [True, False])
def test_no_other_process_deletes_the_wal_while_a_store_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marks: bool
) -> None:
    """Its connections are closed one by one. Without the lock that is set again, the control, the WAL is deleted."""
    path, real, there = tmp_path / "a.db", FileIdentity.close, []

    def close(self: FileIdentity, connections: Iterable[apsw.Connection]) -> None:
        subprocess.run([sys.executable, "-c", LAST_USER, path], check=True)
        there.append(path.with_name("a.db-wal").exists())
        real(self, connections)

    memory = recollect.open(path)
    memory.remember("one")
    path.read_bytes()  # drops SQLite's lock on the file
    monkeypatch.setattr(FileIdentity, "close", close)
    if not marks:
        monkeypatch.setattr(locks._Locked, "mark", lambda self, part: None)
    memory.close()
    assert there == [marks]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecollectWarning)  # without the lock, the other one has checkpointed it
        with recollect.open(path) as memory:
            assert len(memory.find()) == 1


#: Forks in the middle of a write, prints the child, which then sleeps, and sleeps itself.
FORKING = """
import os, sys, time
import recollect
memory = recollect.open(sys.argv[1])
with memory.batch() as batch:
    batch.remember("never committed")
    child = os.fork()
    if child:
        print(child, flush=True)
    time.sleep(600)
"""


# What is damaged


@pytest.mark.promise("damage.every-byte")
def test_damage_in_a_store_that_another_sqlite_wrote_is_found_or_changes_nothing(
    killed: Path, expected: tuple[object, ...]
) -> None:
    looked(killed)
    whole = killed.read_bytes()
    rng = random.Random(5)
    refused = 0
    for _ in range(some(200)):
        data = bytearray(whole)
        place, length = rng.randrange(100, len(whole) - 64), rng.choice([1, 1, 8, 64])
        data[place : place + length] = bytes(each ^ rng.randrange(1, 256) for each in data[place : place + length])
        for suffix in ("-wal", "-shm"):
            killed.with_name(killed.name + suffix).unlink(missing_ok=True)
        killed.write_bytes(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecollectWarning)
            try:
                with recollect.open(killed) as memory:
                    assert state(memory) == expected, place
                    assert memory.check() == []
            except StoreError:
                refused += 1
                assert bytes(data) == killed.read_bytes()
    assert refused > some(200) // 3  # most pages of a small store are in use


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE versions SET payload = zeroblob(100) WHERE number = 3",
        "UPDATE heads SET user = 'eve' WHERE id = 's5'",
        "DELETE FROM heads WHERE id = 's5'",
        "UPDATE changes SET cause = 'expired' WHERE seq = 4",
        "UPDATE commits SET reason = 'another' WHERE seq = 4",
        "DELETE FROM changes WHERE seq = 4",
        "UPDATE removed_payloads SET id = 'another'",
    ],
)
def test_what_another_sqlite_changed_in_the_tables_is_damage(killed: Path, sql: str) -> None:
    with recollect.open(killed) as memory:
        memory.erase("s7")
    with closing(sqlite3.connect(killed)) as connection, connection:
        connection.execute(sql)
    try:
        with recollect.open(killed) as memory:
            assert memory.check() != []
            assert memory.check() != []
    except DamagedStoreError:
        pass


def test_an_open_store_examines_a_damaged_store_only_once(killed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recollect.open(killed).close()
    examined = 0
    real = integrity.examined

    def counted(*given: Any) -> Any:
        nonlocal examined
        examined += 1
        return real(*given)

    with recollect.open(killed) as memory:
        monkeypatch.setattr(renewing, "examined", counted)
        without_checksums(killed)
        with FileBytes(str(killed), writing=True) as data:
            data.write(b"x", data[:].index(b"sentence 41"))
        for _ in range(3):
            with pytest.raises(DamagedStoreError):
                memory.find()
    assert examined == 1


# Rescue


@pytest.mark.promise("damage.rescued")
def test_the_rescue_saves_all_that_another_sqlite_wrote(killed: Path, expected: tuple[object, ...]) -> None:
    for source in (killed, killed.with_name("backup.db"), killed.with_name("vacuum.db")):
        if source != killed:
            backed_up(killed, source) if "backup" in source.name else looked(killed, f"VACUUM INTO '{source}'")
        else:
            looked(killed)
        new = source.with_suffix(".rescued")
        report = rescue(source, new)
        assert report.lost == ()
        assert all(each.same_root for each in report.branches.values())
        opens(new, expected, warns=False)


@pytest.mark.promise("damage.rescued")
def test_the_rescue_saves_what_verifies_beside_what_is_damaged(killed: Path) -> None:
    looked(killed)
    data = bytearray(killed.read_bytes())
    at = data.index(b"sentence 41")
    data[at] ^= 1
    killed.write_bytes(data)
    report = rescue(killed, killed.with_suffix(".rescued"))
    assert [(each.what, each.name) for each in report.lost if each.what == "record"] == [("record", "s41")]
    with recollect.open(killed.with_suffix(".rescued")) as memory:
        assert memory.count() == RECORDS - 1  # with the long one, without the one that was forgotten, and this one
        assert memory.check() == []


def test_the_rule_of_before_refuses_such_a_store(killed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksums, "is_fault", lambda error: False)
    looked(killed)
    with pytest.raises(DamagedStoreError, match="does not match its checksum"):
        recollect.open(killed)


# What must not be renewed, and what must be repeated


class Fault(Exception):
    """Return the error that SQLite raises where a page does not match its checksum."""

    extendedresult = apsw.SQLITE_IOERR_DATA


def lacks_checksum(path: Path) -> DamagedStoreError:
    return DamagedStoreError(str(path), "a page does not match its checksum")


def set_meta(path: Path, name: str, value: object) -> None:
    with closing(checksums.connect(str(path))) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = ?", (value, name))


def test_a_store_that_a_later_release_writes_is_read_and_not_changed(killed: Path) -> None:
    recollect.open(killed).close()
    set_meta(killed, "least_writer", "99")
    without_checksums(killed)
    before = killed.read_bytes()
    with pytest.warns(RecollectWarning):
        memory = recollect.open(killed)
    with memory:
        assert memory.count() == RECORDS
        with pytest.raises(ReadOnlyStoreError, match="needs format 99"):
            memory.remember("more")
    assert killed.read_bytes() == before


def test_a_store_of_a_later_release_is_refused_as_such(killed: Path) -> None:
    recollect.open(killed).close()
    set_meta(killed, "least_reader", "99")
    without_checksums(killed)
    with pytest.raises(NewerFormatError):
        recollect.open(killed)


def test_pages_of_a_store_without_checksums_are_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(checksums, "begin", lambda connection, cipher: None)
        with recollect.open(tmp_path / "a.db") as memory:
            fill(memory)
    with recollect.open(tmp_path / "a.db") as memory:
        store = core_of(memory).store
        assert isinstance(store, SqliteStore)
        assert not store.has_checksums
        store._renewal.run(store._unverified)
        assert memory.check() == []
    with recollect.open(tmp_path / "a.db") as memory:
        assert memory.check() == []


def test_the_check_finds_nothing_as_often_as_pages_are_renewed(killed: Path) -> None:
    recollect.open(killed).close()
    with recollect.open(killed) as memory:
        for _ in range(3):
            without_checksums(killed)
            assert memory.check() == []


def failing_reads(killed: Path) -> int:
    """Renew the pages of a store that is only read while an export is open, and return how many later reads fail."""
    recollect.open(killed).close()
    with recollect.open(killed, read_only=True) as memory:
        with memory.open_export():  # whose connection has not read much yet
            without_checksums(killed)
            memory.find()  # another connection meets the pages
        assert memory.stats()["store"]["renewed"]
        failed = 0
        for number in range(RECORDS):
            try:
                memory.get(f"s{number}")
            except DamagedStoreError:
                failed += 1
        return failed


@pytest.mark.promise("damage.other-sqlite")
def test_a_connection_that_was_in_use_while_pages_were_verified_meets_none_of_them(killed: Path) -> None:
    assert failing_reads(killed) == 0


def test_control_without_a_second_try_it_meets_the_pages_for_ever(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = renewing.Renewal.attempt
    monkeypatch.setattr(
        renewing.Renewal, "attempt", lambda renewal, *how: real(renewal, *how) if renewal.verifies else None
    )
    assert failing_reads(killed) > 0


@pytest.mark.promise("damage.other-sqlite")
def test_others_write_while_a_store_is_verified(killed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recollect.open(killed).close()
    written = []

    def examined(*arguments: Any) -> Any:
        written.append(run(WRITE, killed))
        return integrity.examined(*arguments)

    with recollect.open(killed) as memory:
        without_checksums(killed)
        monkeypatch.setattr(renewing, "examined", examined)
        assert memory.check() == []
        assert written
        assert memory.count() == RECORDS + len(written)
    recollect.open(killed).close()


def test_a_page_that_was_written_while_the_store_was_verified_keeps_its_checksum(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recollect.open(killed).close()
    real = renewing._verified

    def verified(*arguments: Any) -> Any:
        found = real(*arguments)
        run(UPDATE, killed)
        looked(killed, "PRAGMA wal_checkpoint(TRUNCATE)")
        return found

    with recollect.open(killed) as memory:
        without_checksums(killed)
        with monkeypatch.context() as patch:
            patch.setattr(renewing, "_verified", verified)
            assert memory.check() == []
        assert memory.check() == []
        assert [each.content for each in memory.find(f.id("s12"))] == ["new 2"]


@pytest.mark.parametrize("write", ["remember_all", "add_messages"])
def test_a_bulk_write_goes_on_where_it_was(killed: Path, monkeypatch: pytest.MonkeyPatch, write: str) -> None:
    monkeypatch.setattr(bulk, "BULK", 10)
    recollect.open(killed).close()
    real, parts = SqliteStore._begin_part, [0]

    def meets(self: SqliteStore, ticket: Any) -> None:
        parts[0] += 1
        real(self, ticket)
        if parts[0] == 3:  # in the middle of the bulk, another SQLite has written pages
            without_checksums(killed)
            raise lacks_checksum(killed) from Fault()

    monkeypatch.setattr(SqliteStore, "_begin_part", meets)
    texts = [f"a new text {number}" for number in range(45)]
    with recollect.open(killed) as memory:
        if write == "remember_all":
            report = memory.remember_all(texts)
        else:
            report = memory.add_messages([{"role": "user", "content": each} for each in texts], conversation="c")
        assert (report.count("created"), report.failed) == (45, ())
        assert memory.count() == RECORDS + 45
        assert memory.check() == []


def test_a_call_that_has_committed_is_not_repeated(killed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recollect.open(killed) as memory:

        def fails(*_: object) -> None:
            raise lacks_checksum(killed) from Fault()

        seq = memory.seq
        with monkeypatch.context() as patch:
            patch.setattr(Erasures, "_forget", fails)
            with pytest.raises(DamagedStoreError):
                memory.erase("s5")
        assert memory.log(limit=1)[0].seq == seq + 1


def test_an_erasure_that_goes_on_after_another_sqlite_wrote_keeps_the_vectors_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, embedder=Hashed()) as memory:
        memory.remember_all([{"content": f"sentence {each}", "id": f"s{each}"} for each in range(100)])
        memory.embed_all()
        with monkeypatch.context() as patch:
            patch.setattr(Erasures, "_finish", lambda self: False)  # it ends before it is finished
            assert memory.erase("s1").pending
            memory.close()
    without_checksums(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecollectWarning)
        memory = recollect.open(path, embedder=Hashed())
    with memory:
        assert memory.vector_stats()["embedded"] == 99
        assert not core_of(memory).erasures.pending


def test_the_command_line_says_once_that_another_sqlite_wrote(killed: Path) -> None:
    looked(killed)
    command = [sys.executable, "-m", "recollect", "list", "--db", str(killed)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr.count("were written by another SQLite") == 1
    again = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "another SQLite" not in again.stderr
