"""Reading the file of an open store keeps the locks that this process has on it, whatever reads it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import recollect
from recollect.errors import RecollectError, StoreBusyError
from recollect.stores.sqlite import locks
from recollect.stores.sqlite.header import header_of
from recollect.stores.sqlite_base import descriptors

#: Asks for the lock with which a migration makes sure that no other process has the store open.
_MIGRATE = """
import sys
import apsw
from recollect.stores.sqlite_base import checksums
connection = checksums.connect(sys.argv[1], apsw.SQLITE_OPEN_READWRITE)
connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
try:
    connection.execute("BEGIN IMMEDIATE; COMMIT").fetchall()
except apsw.BusyError:
    print("in use")
else:
    print("unused")
"""


def _another_process_finds_it(path: Path) -> str:
    done = subprocess.run([sys.executable, "-c", _MIGRATE, str(path)], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _open_a_second_memory(path: Path) -> None:
    recollect.open(path).close()


def _open_with_another_key(path: Path) -> None:
    with pytest.raises(RecollectError):
        recollect.open(path, key=b"another key of 16 bytes")


def _rescue(path: Path) -> None:
    recollect.rescue(path, path.with_name("rescued.db"))


def _migrate(path: Path) -> None:
    with suppress(StoreBusyError):
        recollect.migrate(path)


READERS: dict[str, Callable[[Path], object]] = {
    "a second memory": _open_a_second_memory,
    "a refused key": _open_with_another_key,
    "a rescue": _rescue,
    "a migration": _migrate,
    "a backup": lambda path: recollect.open(path).backup(path.with_name("copy.db")),
    "its header": lambda path: header_of(str(path)),
}


@pytest.mark.parametrize("name", READERS)
def test_another_process_finds_an_open_store_in_use_after_its_file_was_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember("Ana prefers window seats", id="seat")
        READERS[name](path)
        assert _another_process_finds_it(path) == "in use"
        memory.remember("Ana likes tea", id="tea")
    with recollect.open(path) as memory:
        assert {record.id for record in memory.find()} == {"seat", "tea"}


@pytest.mark.skipif(os.name == "nt", reason="Windows locks belong to a handle, not to a process")
def test_without_this_care_another_process_would_find_it_unused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "SUPPORTED", False)
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember("Ana prefers window seats")
        path.read_bytes()
        assert _another_process_finds_it(path) == "unused"


def test_all_or_the_beginning_of_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember("one")
        assert descriptors.read(str(path), 6) == b"SQLite"
        assert descriptors.read(str(path)) == descriptors.read(str(path), 10**9)
    assert descriptors.read(str(path)) == path.read_bytes()
    (tmp_path / "empty").touch()
    assert descriptors.read(str(tmp_path / "empty"), 100) == b""


def test_a_file_of_more_bytes_than_sqlite_reads_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < descriptors._AT_ONCE < 2**31  # SQLite's limit
    path = tmp_path / "some"
    path.write_bytes(bytes(range(256)) * 5)
    monkeypatch.setattr(descriptors, "_AT_ONCE", 1000)
    assert descriptors.read(str(path)) == path.read_bytes()
    assert descriptors.read(str(path), 1100) == path.read_bytes()[:1100]


def test_reading_often_leaves_no_descriptors_open(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path):
        for _ in range(20):
            descriptors.read(str(path), 100)
    if os.path.isdir("/proc/self/fd"):
        links = [f"/proc/self/fd/{each}" for each in os.listdir("/proc/self/fd")]
        assert str(path) not in [os.readlink(each) for each in links if os.path.lexists(each)]


def test_reading_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        descriptors.read(str(tmp_path / "none.db"))
