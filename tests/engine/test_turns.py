"""The locks of a store: writers of one file get their turns, locks end with a process, and none is dropped by it."""

from __future__ import annotations

import errno
import gc
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import recollect
from recollect.errors import StoreBusyError, StoreReplacedError
from recollect.stores.sqlite import locks
from recollect.stores.sqlite.locks import FileLocks

pytestmark = pytest.mark.skipif(not locks.SUPPORTED, reason="the system has no locks of open file descriptions")
ROUNDS = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember("one")
    return tmp_path / "a.db"


def begun(path: Path) -> FileLocks:
    out = FileLocks(str(path))
    out.enter()
    out.begin(str(path), writing=True)
    return out


def who_is_first(path: Path) -> list[str]:
    """Return who has the next turn each time that one store writes again at once while another waits."""
    firsts = []
    with recollect.open(path):
        busy, patient = begun(path), begun(path)
        for _ in range(ROUNDS):
            order: list[str] = []
            assert busy.take_turn(10)

            def wait(order: list[str] = order) -> None:
                assert patient.take_turn(60)
                order.append("who waited")
                patient.end_turn()

            waiting = threading.Thread(target=wait)
            waiting.start()
            while not busy._files[0].is_locked(locks._TURN[0]) and locks._GATE in locks._TURN:
                pass
            busy.end_turn()
            assert busy.take_turn(60)
            order.append("who came again")
            busy.end_turn()
            waiting.join()
            firsts.append(order[0])
        busy.close()
        patient.close()
    return firsts


@pytest.mark.promise("concurrent.turns")
def test_who_waits_writes_before_who_has_just_written(path: Path) -> None:
    assert who_is_first(path) == ["who waited"] * ROUNDS


def test_without_the_gate_who_has_just_written_may_write_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_TURN", (locks._WRITING,))
    assert "who came again" in who_is_first(path)


WRITER = """
import sys, recollect
with recollect.open(sys.argv[1], embedder="none") as memory, memory.batch() as batch:
    batch.remember("held")
    print(1, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("ends", ["well", "killed"])
def test_a_turn_ends_with_its_process(path: Path, ends: str) -> None:
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with recollect.open(path, timeout=0.05) as memory, pytest.raises(StoreBusyError, match="another process"):
            memory.remember("too early")
        if ends == "killed":
            other.send_signal(signal.SIGKILL)
        else:
            other.communicate(b"", timeout=60)
    with recollect.open(path) as memory:
        memory.remember("in time")
        assert memory.count() == (2 if ends == "killed" else 3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_keeps_no_lock_of_its_parent(path: Path) -> None:
    with recollect.open(path) as memory:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.read(reading, 1)
            os._exit(0)
        memory.remember("of the parent")
    assert not path.with_name("a.db-wal").exists()  # the last connection took the file for unused
    os.write(writing, b"x")
    os.waitpid(pid, 0)
    for each in (reading, writing):
        os.close(each)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_inside_a_batch_leaves_it_and_the_batch_is_committed(path: Path) -> None:
    class LeftError(Exception):
        pass

    pid = -1
    with recollect.open(path) as memory:
        try:
            with memory.batch() as batch:
                batch.remember("two")
                pid = os.fork()
                if pid == 0:
                    raise LeftError
                assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
                batch.remember("three")
        except BaseException as error:
            if pid == 0:
                os._exit(not isinstance(error, LeftError))
            raise
        assert memory.count() == 3
        assert memory.check() == []


def test_stores_of_one_process_share_what_they_must_not_close(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with recollect.open(path) as one:
        for number in range(50):
            with recollect.open(path) as other:
                other.remember(f"of another {number}")
        assert one.count() == 51
        subprocess.run(
            [
                sys.executable,
                "-c",
                "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT * FROM meta')",
                path,
            ],
            check=True,
        )
        one.remember("still here")
        if before:
            assert len(os.listdir("/proc/self/fd")) < before + 20
    with recollect.open(path) as memory:
        assert memory.count() == 52
        assert memory.check() == []


LOOK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT count(*) FROM heads").fetchall()
connection.close()
"""


def wal_outlasts_another(path: Path) -> bool:
    """Return whether the WAL is there after another process has opened and closed the file."""
    subprocess.run([sys.executable, "-c", LOOK, str(path)], check=True, timeout=60)
    return path.with_name(path.name + "-wal").exists()


def opened_while_another_is_closed(path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Open a store while the other one of this process on the file is closed; return whether its WAL is safe then."""
    first = recollect.open(path)
    found = []

    def begin(self: FileLocks, real: str, *, writing: bool) -> None:
        first.close()
        found.append(wal_outlasts_another(path))

    with monkeypatch.context() as patch:
        patch.setattr(FileLocks, "begin", begin)
        with suppress(StoreReplacedError):  # where it was deleted
            recollect.open(path).close()
    return found[0]


@pytest.mark.promise("concurrent.locks")
def test_a_store_that_is_being_opened_keeps_its_locks_while_another_of_the_file_is_closed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert opened_while_another_is_closed(path, monkeypatch)


def test_control_to_close_a_descriptor_while_a_store_is_opened_drops_its_locks(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def close_all() -> None:
        for key in list(locks._open):
            locks._open.pop(key).close()

    monkeypatch.setattr(locks, "_close_unused", close_all)
    monkeypatch.setattr(locks._Locked, "mark", lambda self, part: None)  # by a descriptor that is another file's now
    assert not opened_while_another_is_closed(path, monkeypatch)


@pytest.mark.promise("concurrent.locks")
@pytest.mark.parametrize("fails", ["the first lock", "the index of the WAL"])
def test_where_a_lock_cannot_be_set_those_of_sqlite_remain(
    path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def refused(*_arguments: object) -> bool:
        raise OSError(errno.EINVAL, "no such locks here")

    def without_index(self: object, file: object, name: str, end: str, *, writing: bool) -> None:
        if end:
            raise OSError(errno.EMFILE, "too many open files")
        former(self, file, name, end, writing=writing)  # type: ignore[arg-type]

    former = locks._Locked.__init__
    if fails == "the first lock":
        monkeypatch.setattr(locks._Locked, "set", refused)
    else:
        monkeypatch.setattr(locks._Locked, "__init__", without_index)
    with recollect.open(path) as memory:
        assert wal_outlasts_another(path)
        memory.remember("two")
    assert not path.with_name("a.db-wal").exists()


def test_the_descriptors_of_a_file_are_closed_with_its_last_store(path: Path) -> None:
    def descriptors() -> list[str]:
        links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        return [os.readlink(link) for link in links if os.path.lexists(link) and str(path) in os.readlink(link)]

    first, second = recollect.open(path), recollect.open(path)
    first.close()
    assert len(descriptors()) > 2
    second.close()
    assert descriptors() == []
    left = recollect.open(path)
    del left
    gc.collect()
    recollect.open(path).close()
    assert descriptors() == []
