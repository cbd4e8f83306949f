"""A store that a user may only read: neither the file nor its folder is writable by this user.

The tests run as root, to whom nothing is closed; so a child process does everything again as another user. That user
keeps the right to read every file and search every folder, and no other: the environment may lie in a folder that only
its owner may enter, such as root's own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect import Memory
from recollect.errors import ReadOnlyStoreError, StoreChangedError, StoreIOError

AS_ROOT = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root can become another user, with a right of Linux"
)
NOBODY = 65534
CHILD = f"""
import ctypes, os, sys
from pathlib import Path
import recollect
from click.testing import CliRunner
from recollect.cli.app import app

folder, own = Path(sys.argv[1]), Path(sys.argv[2])

def run(*arguments, code=0):
    result = CliRunner().invoke(app, ["--db", str(folder / "a.db"), *arguments])
    assert result.exit_code == code, (arguments, result.output, result.exception)
    return result.output

def everything(name):
    assert "window seats" in run("recall", "seats")
    assert "window seats" in run("list") and "window seats" in run("export") and "window" in run("grep", "seats")
    assert "records" in run("stats") and "default" in run("namespaces")
    assert "ok" in run("doctor", "--check")
    assert "verified" in run("backup", str(own / name), "--verify")
    assert "p95" in run("bench", "--questions", "2")
    with recollect.open(folder / "a.db") as memory:
        assert len(memory.recall("seats")) == 1
    assert not os.geteuid() or "is read-only" in run("remember", "more", code=1)

libc = ctypes.CDLL(None, use_errno=True)
KEEP_CAPABILITIES, VERSION, READ_AND_SEARCH = 8, 0x20080522, 1 << 2  # prctl(2), capabilities(7)
os.setgroups([])
os.setgid({NOBODY})
assert libc.prctl(KEEP_CAPABILITIES, 1, 0, 0, 0) == 0
os.setuid({NOBODY})
header = (ctypes.c_uint32 * 2)(VERSION, 0)
sets = (ctypes.c_uint32 * 6)(READ_AND_SEARCH, READ_AND_SEARCH, 0, 0, 0, 0)  # effective, permitted, inheritable; twice
assert libc.capset(header, sets) == 0
try:
    (folder / "new").touch()
except PermissionError:
    everything("a.backup")
    print("done")
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can reach, which those of pytest are not."""
    path = Path(tempfile.mkdtemp(prefix="recollect-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@AS_ROOT
@pytest.mark.in_process
def test_another_users_store_is_read_by_every_command_and_written_by_none(folder: Path) -> None:
    store, own = folder / "store", folder / "own"
    store.mkdir(mode=0o755)
    own.mkdir()
    os.chown(own, NOBODY, NOBODY)
    with recollect.open(store / "a.db") as memory:
        memory.remember("Ana prefers window seats")
    (store / "a.db").chmod(0o444)
    shutil.rmtree(store / "a.db.index", ignore_errors=True)
    os.utime(store / "a.db", (0, 0))
    before = (store / "a.db").read_bytes()
    done = subprocess.run([sys.executable, "-c", CHILD, str(store), str(own)], capture_output=True, text=True)
    assert done.stdout.endswith("done\n"), done.stderr
    assert "Traceback" not in done.stderr
    assert ([each.name for each in store.iterdir()], (store / "a.db").read_bytes()) == (["a.db"], before)


# The rules of sharing, with a folder that only seems to be closed.


@pytest.fixture
def closed_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store whose folder cannot be written to, according to `os.access`, which has the last word as root, too."""
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember("one", id="one")
    os.utime(path, (0, 0))
    access = os.access
    monkeypatch.setattr(os, "access", lambda each, mode: access(each, mode) and not mode & os.W_OK)
    return path


def write_as_owner(path: Path, code: str) -> None:
    """Write to the store in another process, which can."""
    program = f"import recollect, sys; memory = recollect.open(sys.argv[1]); {code}"
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)


WRITE = "memory.remember('two', id='two'); memory.close()"


@pytest.mark.in_process
def test_a_reader_of_an_immutable_file_refuses_all_answers_once_another_process_wrote(closed_folder: Path) -> None:
    with recollect.open(closed_folder, read_only=True) as memory:
        assert memory.count() == 1
        write_as_owner(closed_folder, WRITE)
        for _ in range(2):
            with pytest.raises(StoreChangedError, match=r"another process wrote to .*: close this memory"):
                memory.count()
        os.utime(closed_folder, (0, 0))
        with pytest.raises(StoreChangedError):  # although it looks like the old file
            memory.recall("one")
        with pytest.raises(StoreChangedError), memory.open_export():
            raise AssertionError("records would be read one by one from a file that has changed")
    with recollect.open(closed_folder, read_only=True) as memory:
        assert memory.count() == 2


@pytest.mark.in_process
def test_a_write_during_a_read_withholds_the_answer(closed_folder: Path) -> None:
    with recollect.open(closed_folder, read_only=True) as memory:
        with pytest.raises(StoreChangedError), memory.open_export() as export:
            assert export.count == 1
            write_as_owner(closed_folder, WRITE)
        with pytest.raises(StoreChangedError):
            memory.count()


@pytest.mark.in_process
def test_a_store_that_its_owner_has_open_is_shared_and_not_immutable(
    closed_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda each, mode: True)
        owner = recollect.open(closed_folder)
        owner.remember("two", id="two")
    with owner, recollect.open(closed_folder, read_only=True) as memory:
        assert memory.count() == 2
        owner.remember("three", id="three")
        assert memory.count() == 3


@pytest.mark.in_process
def test_a_wal_with_commits_that_cannot_be_read_is_an_error_that_says_what_to_do(closed_folder: Path) -> None:
    write_as_owner(closed_folder, "memory.remember('two'); import os; os._exit(0)")
    shm = Path(f"{closed_folder}-shm")
    assert Path(f"{closed_folder}-wal").stat().st_size
    shm.unlink()
    with pytest.raises(StoreIOError, match="let its owner open and close it"):
        recollect.open(closed_folder, read_only=True)


@pytest.mark.in_process
def test_a_closed_folder_refuses_writes_to_a_file_that_is_open_to_them(closed_folder: Path) -> None:
    memory: Memory
    with recollect.open(closed_folder) as memory:
        assert memory.count() == 1
        with pytest.raises(ReadOnlyStoreError, match="nothing was changed"):
            memory.remember("two")
