"""Encrypted SQLite files: what is on the disk, and that no commit is lost, whoever looks at them."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import fresh
from tests.examples import some
from tests.paths import ROOT

import recollect
from recollect.indexes.kernels.choose import uses_native
from recollect.stores.sealing.pages import PageCipher
from recollect.stores.sqlite_base import checksums, sealed, sums

KEY = bytes(range(32))
WORD = b"periwinkle"
#: A process that writes records one by one, and prints the id of each when it is acknowledged.
WRITER = """
import sys, recollect
{change}
with recollect.open(sys.argv[1], secret=bytes(range(32)), embedder="none") as memory:
    begin = len(memory.find())
    for number in range(begin, 10**6):
        print(memory.remember(f"a periwinkle letter {{number}}", id=f"r{{number}}").id, flush=True)
"""
#: The control: the WAL as it is where the sums of its frames are those that SQLite computes, of the plain pages.
SUMS_OF_PLAIN = """
from recollect.stores.sqlite_base import sealed
heads = {}
def put_frame(self, offset, head, page):
    self._put(head[:24] + page, offset)
sealed._Wal._put_frame = put_frame
"""
LOOK = """
import sqlite3, sys
try:
    connection = sqlite3.connect(sys.argv[1])
    print(connection.execute("SELECT count(*) FROM heads").fetchall())
except sqlite3.DatabaseError as error:
    print(error)
connection.close()
"""


def connect(path: Path | str, key: bytes = KEY, *, wal: bool = True) -> apsw.Connection:
    cipher = PageCipher(key)
    connection = checksums.connect(str(path), cipher=cipher)
    checksums.begin(connection, cipher)
    if wal:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
    return connection


def killed_writer(path: Path, count: int, change: str = "") -> list[str]:
    """Let another process write until it has acknowledged so many records, and kill it. Return what it acknowledged."""
    code = WRITER.format(change=change)
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as writer:
        assert writer.stdout is not None
        acknowledged = [writer.stdout.readline().strip() for _ in range(count)]
        writer.send_signal(signal.SIGKILL)
        acknowledged += [line.strip() for line in writer.stdout if line.endswith("\n")]
    assert all(acknowledged)
    return acknowledged


def looked(path: Path) -> str:
    """Look at a file with another SQLite, in another process, which closes it as its last user."""
    done = subprocess.run([sys.executable, "-c", LOOK, str(path)], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("count", [1, 40])
def test_a_foreign_look_after_a_kill_loses_nothing_acknowledged(tmp_path: Path, count: int) -> None:
    path = tmp_path / "a.db"
    acknowledged: set[str] = set()
    for _ in range(2):
        acknowledged.update(killed_writer(path, count))
        assert os.path.getsize(f"{path}-wal") > 0
        assert not [each.name for each in tmp_path.rglob("*") if each.is_file() and WORD in each.read_bytes()]
        assert "heads" in (said := looked(path)) or "database" in said, "it reads nothing"
        assert not os.path.exists(f"{path}-wal"), "it has copied the WAL, and deleted it"
        with recollect.open(path, secret=KEY, embedder="none") as memory:
            assert acknowledged <= {record.id for record in memory.find()}
            assert memory.check() == []


def test_with_the_sums_of_plain_pages_a_foreign_look_would_lose_commits(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, secret=KEY, embedder="none") as memory:
        memory.remember("first", id="first")
    acknowledged = killed_writer(path, 5, SUMS_OF_PLAIN)
    looked(path)
    with recollect.open(path, secret=KEY, embedder="none") as memory:
        found = {record.id for record in memory.find()}
    assert not found & set(acknowledged)


def frames(wal: bytes) -> Iterator[tuple[bytes, bytes]]:
    for at in range(32, len(wal) - 4119, 4120):
        yield wal[at : at + 24], wal[at + 24 : at + 4120]


@pytest.mark.parametrize("compiled", [True, False])
def test_the_sums_of_frames_are_those_that_sqlite_writes(tmp_path: Path, compiled: bool) -> None:
    if compiled and not uses_native():
        pytest.skip("the package was not compiled")
    of_frame = sums._compiled() if compiled else sums.of_frame_with_numpy
    assert of_frame is not None
    path = tmp_path / "plain.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [(random.Random(at).randbytes(900),) for at in range(50)])
        connection.commit()
        wal = Path(f"{path}-wal").read_bytes()
    before, highest_first = wal[24:32], wal[3] == 0x83
    count = 0
    for head, page in frames(wal):
        before = of_frame(head, page, before, highest_first)
        assert before == head[16:24]
        count += 1
    assert count > 10


@given(st.binary(min_size=8, max_size=24), st.integers(0, 2**32), st.binary(min_size=8, max_size=8), st.booleans())
@settings(max_examples=some(100))
def test_both_ways_to_sum_a_frame_agree(head: bytes, seed: int, before: bytes, highest_first: bool) -> None:
    page = random.Random(seed).randbytes(4096)
    expected = sums.of_frame_with_numpy(head, page, before, highest_first)
    assert sums.of_frame(head, page, before, highest_first=highest_first) == expected


def fill(connection: apsw.Connection, begin: int, count: int) -> None:
    for number in range(begin, begin + count):
        value = random.Random(number).randbytes(1500) + WORD
        connection.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", (number, value)).fetchall()


def rows(connection: apsw.Connection) -> dict[int, bytes]:
    return {number: bytes(value) for number, value in connection.execute("SELECT * FROM t")}


def expected(numbers: range) -> dict[int, bytes]:
    return {number: random.Random(number).randbytes(1500) + WORD for number in numbers}


def snapshot(path: Path, to: Path) -> None:
    """Copy a file with what is beside it, as a crash would leave it."""
    for suffix in ("", "-wal", "-journal"):
        if os.path.exists(f"{path}{suffix}"):
            shutil.copy(f"{path}{suffix}", f"{to}{suffix}")


@pytest.mark.parametrize("wal", [True, False])
def test_transactions_that_do_not_fit_into_the_cache_are_committed_and_undone(tmp_path: Path, wal: bool) -> None:
    with closing(connect(tmp_path / "a.db", wal=wal)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x)").fetchall()
        connection.execute("PRAGMA cache_size = 5").fetchall()  # pages are written before the commit, some repeatedly
        connection.execute("BEGIN")
        fill(connection, 0, 300)
        for turn in range(3):  # SQLite writes no page in which nothing changes
            connection.execute("UPDATE t SET x = zeroblob(?) WHERE id % 7 < 3", (1000 + turn,)).fetchall()
        fill(connection, 0, 300)
        connection.execute("SAVEPOINT part")
        connection.execute("UPDATE t SET x = zeroblob(3000)").fetchall()
        connection.execute("ROLLBACK TO part; RELEASE part").fetchall()
        connection.execute("COMMIT")
        assert rows(connection) == expected(range(300))
        snapshot(tmp_path / "a.db", tmp_path / "b.db")
        connection.execute("BEGIN")
        connection.execute("DELETE FROM t").fetchall()
        fill(connection, 1000, 200)
        snapshot(tmp_path / "a.db", tmp_path / "c.db")
        connection.execute("ROLLBACK")
        assert rows(connection) == expected(range(300))
    for name in ("b.db", "c.db"):  # after a crash right after the commit, and in the middle of the next transaction
        with closing(connect(tmp_path / name, wal=wal)) as connection:
            assert rows(connection) == expected(range(300))
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_rollback_of_a_journal_with_several_headers_restores_the_file(tmp_path: Path) -> None:
    with closing(connect(tmp_path / "a.db", wal=False)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x)").fetchall()
        fill(connection, 0, 400)
        connection.execute("PRAGMA cache_size = 6").fetchall()
        for _ in range(3):
            connection.execute("BEGIN; UPDATE t SET x = x || 'one'; SAVEPOINT a").fetchall()
            connection.execute("UPDATE t SET x = x || 'two'; ROLLBACK TO a").fetchall()
            connection.execute("DELETE FROM t WHERE id % 3 = 0; UPDATE t SET x = x || 'three'; ROLLBACK").fetchall()
            assert rows(connection) == expected(range(400))
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_frame_of_a_transaction_that_was_undone_is_no_part_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The header of a frame is written before its page. A process that dies in between must not leave the header with
    # the page of an earlier transaction, which was undone: that would be a commit which never was.
    path = tmp_path / "a.db"
    found: list[set[bytes]] = []
    write = sealed._Wal.xWrite

    def begins(connection: apsw.Connection) -> set[bytes]:
        return {bytes(x) for (x,) in connection.execute("SELECT substr(x, 1, 4) FROM t")}

    def copied(self: sealed._Wal, data: bytes, offset: int) -> None:
        write(self, data, offset)
        if len(data) == 24:
            snapshot(path, tmp_path / "crash.db")
            (tmp_path / "crash.db-shm").unlink(missing_ok=True)
            with closing(connect(tmp_path / "crash.db")) as after:
                found.append(begins(after))

    with closing(connect(path)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = 5").fetchall()
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x); BEGIN").fetchall()
        for number in range(400):
            connection.execute("INSERT INTO t VALUES (?, ?)", (number, b"old " + bytes(3000))).fetchall()
        connection.execute("COMMIT; BEGIN").fetchall()
        for turn in range(3):
            for number in range(60):
                value = b"gone" + bytes([turn]) * 3000
                connection.execute("UPDATE t SET x = ? WHERE id = ?", (value, number)).fetchall()
        connection.execute("ROLLBACK; SELECT count(*) FROM t").fetchall()
        monkeypatch.setattr(sealed._Wal, "xWrite", copied)
        connection.execute("UPDATE t SET x = ? WHERE id = 0", (b"new " + bytes(3000),)).fetchall()
        monkeypatch.undo()
        assert begins(connection) == {b"old ", b"new "}
    assert found
    assert all(each == {b"old "} for each in found)


@pytest.mark.parametrize("wal", [True, False])
def test_no_file_has_the_text_in_the_middle_of_a_transaction_or_after_it(tmp_path: Path, wal: bool) -> None:
    def found() -> list[str]:
        return [each.name for each in tmp_path.iterdir() if WORD in each.read_bytes()]

    with closing(connect(tmp_path / "a.db", wal=wal)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x)").fetchall()
        fill(connection, 0, 50)
        connection.execute("PRAGMA cache_size = 5; BEGIN").fetchall()
        fill(connection, 25, 100)
        connection.execute("UPDATE t SET x = x || 'more'").fetchall()
        assert {each.name for each in tmp_path.iterdir()} >= {"a.db", "a.db-wal" if wal else "a.db-journal"}
        assert found() == []
        connection.execute("COMMIT")
        assert found() == []
    with closing(sqlite3.connect(tmp_path / "plain.db")) as plain:
        plain.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x)")
        plain.execute("INSERT INTO t VALUES (1, ?)", (WORD,))
        plain.commit()
    assert found() == ["plain.db"]


def test_temporary_data_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    real = sealed.SealedVFS.xOpen

    def noted(self: sealed.SealedVFS, name: Any, flags: list[int]) -> Any:
        opened.append(flags[0])
        return real(self, name, flags)

    monkeypatch.setattr(sealed.SealedVFS, "xOpen", noted)
    on_disk = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
    with closing(connect(tmp_path / "a.db")) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x)").fetchall()
        fill(connection, 0, 300)
        connection.execute(
            "PRAGMA cache_size = 5; BEGIN; UPDATE t SET x = x; SAVEPOINT a; UPDATE t SET x = x"
        ).fetchall()
        ordered = connection.execute("SELECT x FROM t ORDER BY x DESC").fetchall()
        connection.execute("ROLLBACK TO a; COMMIT").fetchall()
        assert ordered == sorted(ordered, reverse=True)
        connection.execute("VACUUM").fetchall()
        assert all(flags & on_disk for flags in opened)
        connection.execute("PRAGMA temp_store = FILE").fetchall()
        with pytest.raises(apsw.CantOpenError):  # rather than that it is written without encryption
            connection.execute("VACUUM").fetchall()
        assert not opened[-1] & on_disk


def test_two_connections_write_and_checkpoint_in_turn(tmp_path: Path) -> None:
    rng = random.Random(3)
    path = tmp_path / "a.db"
    held: dict[int, bytes] = {}
    with closing(connect(path)) as one, closing(connect(path)) as other:
        one.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x)").fetchall()
        for step in range(some(300)):
            writer = rng.choice((one, other))
            writer.execute(f"PRAGMA cache_size = {rng.choice((3, 100))}; BEGIN IMMEDIATE").fetchall()
            begin = rng.randrange(100)
            fill(writer, begin, rng.randrange(1, 12))
            if rng.random() < 0.3:
                writer.execute("ROLLBACK")
            else:
                held = rows(writer)
                writer.execute("COMMIT")
            if rng.random() < 0.2:
                mode = rng.choice(("PASSIVE", "FULL", "RESTART", "TRUNCATE"))
                rng.choice((one, other)).execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
            assert rows(one) == rows(other) == held, step
            snapshot(path, tmp_path / "crash.db")
            with closing(connect(tmp_path / "crash.db")) as after:
                assert rows(after) == held
            for suffix in ("", "-wal", "-shm"):
                (tmp_path / f"crash.db{suffix}").unlink(missing_ok=True)


def test_a_write_that_sqlite_divides_at_a_sync_is_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without this promise of the disk, a commit is filled up to a multiple of a sector, with a sync between.
    real = sealed._Wal.xDeviceCharacteristics
    without = ~apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE
    divided: list[int] = []
    write = sealed._Wal.xWrite

    def noted(self: sealed._Wal, data: bytes, offset: int) -> None:
        divided.extend([len(data)] * (len(data) not in (24, 32, 4096)))
        write(self, data, offset)

    monkeypatch.setattr(sealed._Wal, "xWrite", noted)
    for kind in (sealed._Wal, sealed._Database):
        monkeypatch.setattr(kind, "xDeviceCharacteristics", lambda self: real(self) & without)
    path = tmp_path / "a.db"
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA synchronous = FULL; CREATE TABLE t (id INTEGER PRIMARY KEY, x)").fetchall()
        for number in range(20):
            fill(connection, number, 1)
        snapshot(path, tmp_path / "b.db")
    assert divided
    with closing(connect(tmp_path / "b.db")) as connection:
        assert rows(connection) == expected(range(20))


def with_changed_byte(tmp_path: Path) -> tuple[Path, bytearray]:
    """Return a file as a crash leaves it, and its WAL, of which a byte of the fourth page was changed."""
    path = tmp_path / "a.db"
    with closing(connect(path)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x)").fetchall()
        fill(connection, 0, 5)
        snapshot(path, tmp_path / "b.db")
    wal = bytearray(Path(f"{tmp_path}/b.db-wal").read_bytes())
    wal[32 + 4120 * 3 + 500] ^= 1
    return tmp_path / "b.db", wal


def test_a_frame_that_was_torn_ends_the_wal(tmp_path: Path) -> None:
    path, wal = with_changed_byte(tmp_path)
    Path(f"{path}-wal").write_bytes(wal)
    with closing(connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("t",)]
        assert len(rows(connection)) < 5


def test_a_frame_whose_sums_were_made_right_again_is_reported(tmp_path: Path) -> None:
    path, wal = with_changed_byte(tmp_path)
    before = bytes(wal[24:32])
    for at in range(32, len(wal) - 4119, 4120):
        if wal[at + 8 : at + 16] != wal[16:24]:
            break
        head, page = bytes(wal[at : at + 24]), bytes(wal[at + 24 : at + 4120])
        before = sums.of_frame(head, page, before, highest_first=wal[3] == 0x83)
        wal[at + 16 : at + 24] = before
    Path(f"{path}-wal").write_bytes(wal)
    with pytest.raises(apsw.IOError, match=r"page . in the WAL is not authentic"):
        connect(path)


def test_another_key_reads_nothing(tmp_path: Path) -> None:
    with closing(connect(tmp_path / "a.db")) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x)").fetchall()
        fill(connection, 0, 5)
    with pytest.raises(apsw.IOError, match="page 1 is not authentic"):
        connect(tmp_path / "a.db", bytes(32))


def test_the_vfs_of_a_cipher_is_gone_with_its_last_connection(tmp_path: Path) -> None:
    before = set(apsw.vfs_names())
    with closing(connect(tmp_path / "a.db")) as connection:
        assert len(set(apsw.vfs_names()) - before) == 1
        assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchall() == [(0,)]
    del connection
    assert set(apsw.vfs_names()) == before


def test_torture_on_encrypted_stores_finds_what_is_lost(tmp_path: Path) -> None:
    # The control of `python -m torture --encrypted`: a WAL that recovery cannot read loses commits. What is lost
    # depends on when the last checkpoint was, in a thread of its own.
    code = """
import os
from torture.kills import NAME, child, problem_in
from torture.script import Script
from recollect.stores.sealing.secrets import SECRET_VARIABLE
from recollect.stores.sqlite_base import sealed
(folder / "secret").write_text("ab" * 32)
os.environ[SECRET_VARIABLE] = str(folder / "secret")
script = Script(1)
recovered = sealed._Wal._recovered
for number in range(100, 300, 25):
    for kind in ("well", "broken"):
        place = folder / f"{kind}-{number}"
        place.mkdir()
        told = child(script, place, at=("write the log", number))
        sealed._Wal._recovered = recovered if kind == "well" else lambda self, number: bytes(4120)
        print(kind, problem_in(place / NAME, script, told))
        sealed._Wal._recovered = recovered
"""
    found = [line.partition(" ") for line in fresh.run(code, tmp_path).split("\n")]
    assert [problem for kind, _, problem in found if kind == "well"] == [""] * 8
    assert any(problem for kind, _, problem in found if kind == "broken")
