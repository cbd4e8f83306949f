"""Faults around an open memory: the disk, its files, the clock, the memory of the process, forks."""

from __future__ import annotations

import errno
import gc
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest
from tests.examples import FULL
from tests.exports import exported
from tests.stores.rescues import records_by_namespace
from torture import io_faults
from torture.io_faults import Fault
from torture.recording import Recorder, recorded
from torture.script import Script
from torture.trials import fast_folder

import recollect
from recollect import filters as f
from recollect.engine.index import document_of as encoding
from recollect.engine.index import keeper as indexing
from recollect.errors import (
    CommitInDoubtError,
    DamagedStoreError,
    ForkedError,
    NoMemoryError,
    StoreError,
    StoreFullError,
    StoreIOError,
    StoreReplacedError,
)
from recollect.indexes.kernels.choose import missing
from recollect.ledger.commits import Branch
from recollect.memory import Memory
from recollect.operations import Now
from recollect.stores.sqlite.locks import SUPPORTED
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite_base.errors import ours
from recollect.testing import memory_on
from recollect.testing.loopback import core_of, full_text_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with recollect.open(path) as memory:
        memory.remember("a lighthouse", id="a")
        yield memory


# The disk


@pytest.mark.promise("fault.disk")
@pytest.mark.parametrize("seed", range(3 if FULL else 1))
def test_whatever_operation_fails_nothing_is_lost_and_the_error_says_what_is_true(tmp_path: Path, seed: int) -> None:
    done = list(io_faults.trials(seed, tmp_path))
    assert [trial for trial in done if trial.problem] == []
    assert len([trial for trial in done if "no turn" not in trial.where]) >= 10


def crashed(path: Path) -> list[str]:
    """The ids of what is stored for whoever opens the files as they are now: shared memory is gone."""
    copy = path.parent / "copy"
    copy.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", copy / f"{path.name}{suffix}")
    with recollect.open(copy / path.name) as memory:
        assert memory.check() == []
        stored = [record.id for record in memory.find(order="id")]
    shutil.rmtree(copy)
    return stored


def failing(recorder: Recorder, kind: str, code: int, *, persists: bool, within: str = "") -> Fault:
    """A fault that strikes the next operation of a kind, on paths with these words."""
    fault = Fault(kind, code, 1, persists=persists)
    recorder.before = lambda what, where: fault(what, where) if within in where else None
    return fault


@pytest.mark.promise("fault.sync")
def test_a_commit_that_could_not_be_synced_is_taken_back(path: Path) -> None:
    with recorded(path.parent) as recorder, recollect.open(path) as memory:
        memory.remember("a lighthouse", id="a")
        failing(recorder, "sync", errno.EIO, persists=False)
        with pytest.raises(StoreIOError, match="nothing was changed") as raised:
            memory.remember("a harbour", id="b")
        assert not isinstance(raised.value, CommitInDoubtError)
        assert [record.id for record in memory.find()] == ["a"]
        assert crashed(path) == ["a"]
        memory.remember("a boat", id="c")
        assert crashed(path) == ["a", "c"]


@pytest.mark.promise("fault.doubt")
def test_a_commit_that_can_neither_be_synced_nor_taken_back_is_said_to_be_in_doubt(path: Path) -> None:
    with recorded(path.parent) as recorder, recollect.open(path) as memory:
        memory.remember("a lighthouse", id="a")
        fault = failing(recorder, "sync", errno.EIO, persists=True)
        with pytest.raises(CommitInDoubtError, match="it may or may not be stored"):
            memory.remember("a harbour", id="b")
        assert [record.id for record in memory.find()] == ["a"]
        fault.over = True
        memory.remember("a boat", id="c")
        assert crashed(path) == ["a", "c"]


def test_without_taking_it_back_it_would_be_stored_though_the_error_says_otherwise(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The control of the two above, and of the harness: SQLite leaves such a commit in its log."""
    monkeypatch.setattr(SqliteStore, "_overwrite_failed", lambda self: True)
    with recorded(path.parent) as recorder, recollect.open(path) as memory:
        memory.remember("a lighthouse", id="a")
        failing(recorder, "sync", errno.EIO, persists=False)
        with pytest.raises(StoreIOError, match="nothing was changed"):
            memory.remember("a harbour", id="b")
        assert crashed(path) == ["a", "b"]
    with fast_folder(tmp_path) as fast:
        script = Script(0, io_faults.STEPS)
        # Which sync is that of a commit depends on the threads, so they are tried until one is found.
        runs = (io_faults.run_with(script, fast, Fault("sync", errno.EIO, nth, persists=False)) for nth in range(8, 60))
        assert any("is not the model's" in run.problem for run in runs)


@pytest.mark.promise("fault.full")
def test_a_full_disk_refuses_the_write_and_takes_the_next_once_there_is_room(path: Path) -> None:
    with recorded(path.parent) as recorder, recollect.open(path) as memory:
        memory.remember("a lighthouse", id="a")
        fault = failing(recorder, "write", errno.ENOSPC, persists=True)
        for _ in range(3):
            with pytest.raises(StoreFullError, match="nothing was changed: free some space"):
                memory.remember("a harbour", id="b")
        assert [hit.record.id for hit in memory.recall("lighthouse")] == ["a"]
        assert crashed(path) == ["a"]
        fault.over = True
        memory.remember("a harbour", id="b")
        assert crashed(path) == ["a", "b"]


@pytest.mark.promise("fault.index")
@pytest.mark.parametrize("kind", ["create", "write", "replace", "make_folder"])
def test_a_full_disk_while_an_index_is_written_is_a_warning_and_changes_no_answer(
    path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(indexing, "KEPT_FROM", 10)
    monkeypatch.setattr(indexing, "MERGED_FROM", 10)
    monkeypatch.setattr(indexing, "MERGED_REMOVED_FROM", 10)
    with recorded(path.parent) as recorder:
        with recollect.open(path) as memory:
            memory.remember_all(f"boat {number} of the harbour" for number in range(30))
            failing(recorder, kind, errno.ENOSPC, persists=True, within=".index")
            before = [(hit.record.id, hit.score) for hit in memory.recall("which boat?", 30)]
        assert "could not be saved" in caplog.text
        assert not list(path.parent.glob(f"{path.name}.index/*.new")), "nothing half is left lying there"
        with recollect.open(path) as memory:
            assert [(hit.record.id, hit.score) for hit in memory.recall("which boat?", 30)] == before


@pytest.mark.promise("fault.permission")
def test_where_permission_is_lost_the_error_says_so_and_what_is_open_goes_on(path: Path) -> None:
    """Connections are made when they are needed: those that are not there yet cannot be."""
    with recorded(path.parent) as recorder, recollect.open(path) as memory:
        memory.remember("a lighthouse", id="a")
        with memory.open_export():  # has the connection that is there
            fault = failing(recorder, "open", errno.EACCES, persists=True)
            with pytest.raises(StoreIOError, match=r"Permission denied\): check the disk"):
                memory.count()
        memory.remember("a harbour", id="b")
        fault.over = True
        assert memory.count() == 2


@pytest.mark.promise("fault.log")
def test_a_store_whose_log_cannot_be_set_up_is_not_opened(path: Path) -> None:
    """SQLite would go on without, and a power cut could undo what it acknowledged."""
    with recorded(path.parent) as recorder:
        failing(recorder, "remove", errno.EACCES, persists=True, within="-journal")
        with pytest.raises(StoreIOError, match="cannot"):
            recollect.open(path)
        recorder.before = None
        with recollect.open(path) as memory:
            memory.remember("a lighthouse")
            assert memory.check() == []


# The file


def deleted(path: Path) -> None:
    path.unlink()


def moved(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))


def replaced(path: Path) -> None:
    """By another store, as a person does who puts a copy back."""
    other = path.with_suffix(".other")
    with recollect.open(other) as memory:
        memory.remember("another harbour", id="other")
    other.replace(path)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def log_deleted(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def folder_gone(path: Path) -> None:
    shutil.rmtree(path.parent)


GONE: list[Callable[[Path], None]] = [deleted, moved, replaced, emptied, log_deleted, folder_gone]


@pytest.mark.promise("fault.replaced")
@pytest.mark.parametrize("disturb", GONE, ids=lambda disturb: disturb.__name__)
def test_a_write_to_a_file_that_is_gone_is_never_acknowledged(tmp_path: Path, disturb: Callable[[Path], None]) -> None:
    path = tmp_path / "folder" / "a.db"
    path.parent.mkdir()
    memory = recollect.open(path)
    memory.remember("a lighthouse", id="a")
    disturb(path)
    for _ in range(2):
        with pytest.raises(StoreReplacedError, match="deleted, moved or replaced while it was open"):
            memory.remember("a harbour", id="b")
    memory.close()
    if disturb is folder_gone:
        assert not path.parent.exists()
        return
    if disturb is emptied:  # its log is not: that is not taken for the log of a new store
        with pytest.raises(DamagedStoreError, match="its WAL exists"):
            recollect.open(path)
        assert records_by_namespace(recollect.rescue(path, path.with_name("saved.db"))) == {"default": 1}
        return
    with recollect.open(path) as again:
        assert {record.id for record in again.find()} == {
            "replaced": {"other"},
            "log_deleted": {"a"},
        }.get(disturb.__name__, set())
        assert again.check() == []


@pytest.mark.promise("fault.replaced")
@pytest.mark.parametrize("disturb", [deleted, log_deleted], ids=lambda disturb: disturb.__name__)
def test_a_file_that_goes_while_a_batch_is_written_is_noticed_before_the_batch_is_acknowledged(
    path: Path, disturb: Callable[[Path], None]
) -> None:
    with recollect.open(path) as memory:
        memory.remember("a lighthouse")
        with pytest.raises(StoreReplacedError, match="in the file that was open"), memory.batch() as batch:
            batch.remember("a harbour")
            disturb(path)


@pytest.mark.promise("fault.replaced_read")
@pytest.mark.parametrize("disturb", [deleted, moved, replaced, emptied], ids=lambda disturb: disturb.__name__)
def test_a_file_that_is_gone_is_not_read_as_if_it_were_there(
    path: Path, disturb: Callable[[Path], None], memory: Memory
) -> None:
    assert memory.recall("lighthouse")
    disturb(path)
    for read in (memory.count, lambda: memory.recall("lighthouse"), lambda: memory.get("a"), memory.check):
        with pytest.raises(StoreReplacedError):
            read()


@pytest.mark.promise("fault.replaced_close")
def test_closing_a_memory_whose_file_was_replaced_does_not_touch_the_new_file_and_its_log(path: Path) -> None:
    former = recollect.open(path)
    former.remember("a lighthouse")
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").rename(path.parent / f"moved.db{suffix}")
    current = recollect.open(path)
    current.remember("a harbour", id="b")
    with pytest.raises(StoreReplacedError):
        former.count()
    former.close()
    assert os.path.getsize(f"{path}-wal")
    assert crashed(path) == ["b"]
    current.remember("a boat", id="c")
    current.close()
    with recollect.open(path.parent / "moved.db") as moved:
        assert [record.content for record in moved.find()] == ["a lighthouse"]


def test_a_file_that_is_moved_away_and_back_is_what_it_was(path: Path) -> None:
    memory = recollect.open(path)
    memory.remember("a lighthouse", id="a")
    path.rename(path.with_suffix(".moved"))
    with pytest.raises(StoreReplacedError):
        memory.remember("a harbour")
    path.with_suffix(".moved").rename(path)
    with pytest.raises(StoreReplacedError):  # another may have written there meanwhile: opening it again looks
        memory.count()
    memory.close()
    with recollect.open(path) as again:
        assert [record.id for record in again.find()] == ["a"]
        assert again.check() == []


def test_a_file_that_is_reached_by_a_link_is_noticed_like_any_other(path: Path) -> None:
    link = path.with_name("link.db")
    recollect.open(path).close()
    link.symlink_to(path)
    with recollect.open(link) as memory:
        memory.remember("a lighthouse")
        memory.remember("a harbour")
        assert memory.count() == 2
        path.unlink()
        with pytest.raises(StoreReplacedError):
            memory.remember("a boat")


# The clock


@pytest.mark.promise("fault.clock")
def test_a_clock_that_goes_backwards_leaves_the_log_in_order_and_brings_nothing_back() -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    memory = recollect.open(":memory:", clock=lambda: now)
    memory.remember("swept", id="swept", expires=now + timedelta(hours=1))
    memory.remember("due", id="due", expires=now + timedelta(hours=3))
    now += timedelta(hours=2)
    memory.remember("sweeps", id="sweeps")
    now -= timedelta(days=1)
    memory.remember("from the past", id="past")
    times = [commit.micros for commit in memory.changes()]
    assert times == sorted(set(times))
    assert times[-1] == times[-2] + 1, "a microsecond after the one before"
    # What was swept stays so; the other is not due by this clock, and is by the next.
    assert {record.id for record in memory.find()} == {"due", "sweeps", "past"}
    now += timedelta(days=2)
    assert {record.id for record in memory.find()} == {"sweeps", "past"}
    assert {hit.record.id for hit in memory.recall("swept due sweeps past")} == {"sweeps", "past"}
    assert memory.check() == []


READS: dict[str, Callable[[Memory], object]] = {
    "get": lambda memory: memory.get("due"),
    "exists": lambda memory: memory.get("due") is not None,
    "find": lambda memory: memory.find(f.id("due", "tagged")),
    "find by tag": lambda memory: memory.find(f.tag("x")),
    "most important": lambda memory: memory.find(f.tag("x"), order="importance", limit=1),
    "recent": lambda memory: [each for each in memory.find(limit=9) if each.id != "stays"],
    "count": lambda memory: memory.count(f.user("ana")),
    "count by tag": lambda memory: memory.count(f.tag("x")),
    "recall": lambda memory: [hit for hit in memory.recall("a boat") if hit.record.id != "stays"],
    "grep": lambda memory: memory.grep("boat"),
    "held": lambda memory: [each for each in exported(memory)[1] if each.id != "stays"],
    "stats": lambda memory: memory.stats()["records"] - 1,
    "vectors": lambda memory: memory.vector_stats()["total"] - 1,
    "in a scope": lambda memory: memory.scoped(user="ana").find(),
    "forget_where": lambda memory: memory.forget_where(f.user("ana")),
    "forget_where by tag": lambda memory: memory.forget_where(f.tag("x")),
}


@pytest.mark.promise("fault.clock")
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("seen", ["by a commit", "by a commit and reopened", "by a read", "by a read and reopened"])
@pytest.mark.parametrize("name", READS)
def test_what_had_expired_stays_so_for_every_read_when_the_clock_goes_back(
    path: Path, name: str, seen: str, batch: bool
) -> None:
    start = now = datetime(2026, 5, 1, tzinfo=UTC)
    memory = recollect.open(path, clock=lambda: now)
    soon = start + timedelta(hours=1)
    memory.remember("stays", id="stays")
    memory.remember("a boat", id="due", user="ana", expires=soon)
    memory.remember("a boat, too", id="tagged", user="ana", tags=["x"], importance=1.0, expires=soon)
    read = READS[name]
    if name != "held":  # which reads the root as well
        assert read(memory), "the negative control: they are there before"
    if name.startswith("forget"):
        memory.remember("a boat", id="due", user="ana", expires=soon)
        memory.remember("a boat, too", id="tagged", user="ana", tags=["x"], importance=1.0, expires=soon)
    now = start + timedelta(hours=2)
    if seen.startswith("by a read"):
        assert memory.get("due") is None
    else:
        # In another namespace nothing is swept; here the commit takes them along, so it is put off.
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("recollect.engine.write.staging.SWEPT", 0)
            memory.remember("stays", id="stays", if_exists="update", importance=0.5)
    if seen.endswith("reopened"):
        memory.close()
    now = start - timedelta(days=1)
    if seen.endswith("reopened"):
        memory = recollect.open(path, clock=lambda: now)
    with memory.batch() if batch and hasattr(recollect.memory.Batch, name.split()[0]) else nullcontext(memory) as calls:
        assert not read(calls)  # type: ignore[arg-type]
    assert memory.execute(Now()) == now, "what the clock says is still what it says"
    scores_of = memory.remember("later", id="later")
    assert scores_of.time == now
    assert memory.check() == []
    memory.close()


def test_the_time_that_reads_go_by_is_the_clocks_where_it_does_not_go_back() -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    memory = recollect.open(":memory:", clock=lambda: now)
    memory.remember("due", id="due", expires=now + timedelta(microseconds=2))
    assert memory.get("due") is not None
    now += timedelta(microseconds=1)
    assert memory.get("due") is not None
    now += timedelta(microseconds=1)
    assert memory.get("due") is None


# The memory of the process


@pytest.mark.promise("fault.memory")
@pytest.mark.parametrize("fails_at", [1, 3, 5])
def test_a_memory_error_while_an_index_is_made_leaves_none_half_made(
    path: Path, memory: Memory, fails_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.remember_all([{"content": f"boat {number} of the harbour", "id": f"{number}"} for number in range(5)])
    made, count = encoding.document_of, 0

    def fail(*arguments: object, **named: object) -> object:
        nonlocal count
        count += 1
        if count == fails_at:
            raise MemoryError
        return made(*arguments, **named)  # type: ignore[arg-type]

    for step in ("made", "caught up"):
        count = 0
        with monkeypatch.context() as patch:
            patch.setattr(indexing, "document_of", fail)
            with pytest.raises(NoMemoryError, match=r"while its index was built\): free some memory"):
                memory.recall("boat")
        with recollect.open(path) as complete:
            assert scores_of(memory) == scores_of(complete)
        memory.remember_all([{"content": f"boat {number}, {step}", "id": f"{step} {number}"} for number in range(5)])
    assert memory.check() == []


def scores_of(memory: Memory) -> list[tuple[str, float]]:
    return [(hit.record.id, hit.score) for hit in memory.recall("which boat of the harbour?", 20)]


def test_where_sqlite_has_no_memory_the_error_says_so() -> None:
    error = ours("a.db", apsw.NoMemError("out of memory"))
    assert isinstance(error, NoMemoryError)
    assert isinstance(error, MemoryError)
    assert "not enough memory to work on a.db" in str(error)


# Forks

FORKS = """
import os, sys, gc, recollect
from recollect.errors import ForkedError
memory = recollect.open(sys.argv[1])
memory.remember("before", id="before")
memory.recall("before"); memory.grep("before")
child = os.fork()
if child == 0:
    try:
        memory.remember("child")
    except ForkedError:
        pass
    else:
        os._exit(3)
    if sys.argv[2] == "close":
        memory.close()
    if sys.argv[2] == "drop":
        del memory
        gc.collect()
    sys.exit(0)  # all that an interpreter does at its end
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
assert os.path.getsize(sys.argv[1] + "-wal")
memory.remember("after", id="after")
assert memory.count() == 2
os._exit(0)  # what is acknowledged must be there without an orderly end
"""


#: Forks with an open store. The child opens the store again and writes beside its parent.
REOPENED = """
import os, sys
import recollect
memory = recollect.open(sys.argv[1])
memory.remember("one")
child = os.fork()
if child == 0:
    with recollect.open(sys.argv[1]) as own:
        for number in range(20):
            own.remember(f"of the child {number}")
    os._exit(0)
for number in range(20):
    memory.remember(f"of the parent {number}")
os.waitpid(child, 0)
memory.close()
"""
#: Forks with an open store and writes on. The child uses nothing, and ends when its input does, after its parent.
OUTLIVED = """
import os, sys, time
import recollect
memory = recollect.open(sys.argv[1])
memory.remember("one")
if os.fork() == 0:
    print(os.getpid(), flush=True)
    sys.stdin.read()
    sys.exit()
for number in range(int(sys.argv[2])):
    memory.remember(f"after the fork {number}")
print("written", flush=True)
time.sleep(600)
"""


#: Forks in the middle of an export. The child opens the store again and reads; meanwhile another library checkpoints.
READING = """
import os, sqlite3, sys
import recollect
path = sys.argv[1]
memory = recollect.open(path)
for number in range(50):
    memory.remember(f"one {number} " * 20, id=f"o{number}")
parent = memory.open_export()
next(iter(parent.records))
begun, go = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    own = recollect.open(path)
    with own.open_export() as export:
        records = iter(export.records)
        next(records)
        os.write(begun[1], b"x")
        os.read(go[0], 1)
        left = [record.content for record in records]
    assert len(left) == 49 and all(each.startswith("one") for each in left), left[:3]
    os._exit(0)
os.read(begun[0], 1)
parent.close()
for number in range(50):
    memory.update(f"o{number}", content=f"two {number} " * 20)
looking = '''
import sqlite3, sys
print(sqlite3.connect(sys.argv[1], timeout=0).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())
'''
import subprocess
print(subprocess.run([sys.executable, "-c", looking, path], capture_output=True, text=True, check=True).stdout)
os.write(go[1], b"x")
_, status = os.waitpid(child, 0)
os._exit(os.waitstatus_to_exitcode(status))
"""
#: Forks in the middle of a batch of another thread. The child opens the store again and writes.
WRITING = """
import os, sys, threading
import recollect
memory = recollect.open(sys.argv[1])
inside, end = threading.Event(), threading.Event()
def write():
    with memory.batch() as batch:
        batch.remember("of the parent")
        inside.set()
        end.wait()
thread = threading.Thread(target=write)
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    with recollect.open(sys.argv[1], timeout=60) as own:
        own.remember("of the child")
    os._exit(0)
end.set()
thread.join()
_, status = os.waitpid(child, 0)
assert memory.count() == 2
os._exit(os.waitstatus_to_exitcode(status))
"""
#: Forks, closes all descriptors as daemons do, opens files of its own, and forks again.
DAEMON = """
import os, sys
import recollect
memory = recollect.open(sys.argv[1])
memory.remember("one")
child = os.fork()
if child == 0:
    os.closerange(3, 200)
    logs = [open(f"{sys.argv[1]}.log{number}", "a", buffering=1) for number in range(20)]
    for log in logs:
        log.write("first\\n")
    grandchild = os.fork()
    for log in logs if grandchild == 0 else ():
        log.write("second\\n")
    if grandchild:
        os.waitpid(grandchild, 0)
    os._exit(0)
os.waitpid(child, 0)
"""
#: Forks with an open store and closes it, which deletes the WAL. Then parent and child open it again and write.
CLOSED = """
import os, sys
import recollect
memory = recollect.open(sys.argv[1])
memory.remember("one")
begun = os.pipe()
child = os.fork()
if child == 0:
    os.read(begun[0], 1)
else:
    memory.close()
    os.write(begun[1], b"x")
with recollect.open(sys.argv[1], timeout=60) as own:
    for number in range(100):
        own.remember(f"{'child' if child == 0 else 'parent'} {number}")
if child == 0:
    os._exit(0)
_, status = os.waitpid(child, 0)
os._exit(os.waitstatus_to_exitcode(status))
"""
#: As where the package was not compiled.
NO_CALLS = """
from recollect.stores.sqlite import locks
locks._calls = lambda: None
"""
#: Without what makes SQLite in a fork forget what its parent had locked.
SAME_DEVICE = """
from recollect.indexes.kernels.native import system_calls
real = system_calls.replacing
system_calls.replacing = lambda pointers: real(pointers)[:5] + list(pointers[5:])
"""
lasting = pytest.mark.skipif(bool(missing()) or not SUPPORTED, reason="SQLite's locks last only in a compiled package")


def forked(program: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, timeout=120)


@lasting
@pytest.mark.promise("fault.fork")
def test_what_a_fork_reads_no_other_process_can_overwrite(tmp_path: Path) -> None:
    done = forked(READING, tmp_path / "a.db")
    assert (done.returncode, done.stdout[:3]) == (0, "(1,"), (
        done.stderr
    )  # the checkpoint gets the answer that there are readers
    without = forked(SAME_DEVICE + READING, tmp_path / "b.db")
    assert (without.returncode, without.stdout[:3]) != (0, "(1,")


@lasting
@pytest.mark.promise("fault.fork")
def test_a_fork_in_the_middle_of_a_write_of_its_parent_can_write_after_it(tmp_path: Path) -> None:
    done = forked(WRITING, tmp_path / "a.db")
    assert done.returncode == 0, done.stderr
    with recollect.open(tmp_path / "a.db") as memory:
        assert {record.content for record in memory.find()} == {"of the parent", "of the child"}
        assert memory.check() == []
    assert forked(SAME_DEVICE + WRITING.replace("timeout=60", "timeout=1"), tmp_path / "b.db").returncode != 0


@lasting
@pytest.mark.promise("fault.fork")
def test_a_fork_that_outlives_the_use_of_its_parent_shares_the_file_that_is_opened_then(tmp_path: Path) -> None:
    done = forked(CLOSED, tmp_path / "a.db")
    assert done.returncode == 0, done.stderr
    with recollect.open(tmp_path / "a.db") as memory:
        assert len(memory.find()) == 201
        assert memory.check() == []


@pytest.mark.promise("fault.fork")
@pytest.mark.parametrize("program", ["REOPENED", "CLOSED", "WRITING"])
def test_where_sqlite_cannot_forget_its_parents_locks_a_fork_is_refused(tmp_path: Path, program: str) -> None:
    done = forked(NO_CALLS + globals()[program], tmp_path / "a.db")
    assert "ForkedError" in done.stderr
    with recollect.open(tmp_path / "a.db") as memory:
        assert not any("child" in str(record.content) for record in memory.find())
        assert memory.check() == []


@pytest.mark.promise("fault.fork")
def test_the_files_that_a_daemon_opens_in_place_of_ours_are_not_touched(tmp_path: Path) -> None:
    assert forked(DAEMON, tmp_path / "a.db").returncode == 0
    for number in range(20):
        assert (tmp_path / f"a.db.log{number}").read_text() == "first\nsecond\n"


@pytest.mark.promise("fault.fork")
def test_a_fork_that_opens_the_store_again_writes_beside_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    subprocess.run([sys.executable, "-c", REOPENED, path], check=True, timeout=120)
    with recollect.open(path) as memory:
        assert len(memory.find()) == 41
        assert memory.check() == []


@pytest.mark.promise("fault.fork")
@pytest.mark.parametrize("writes", [20, 600])
def test_a_fork_that_ends_after_its_parent_was_killed_loses_nothing(tmp_path: Path, writes: int) -> None:
    path = tmp_path / "a.db"
    parent = subprocess.Popen(
        [sys.executable, "-c", OUTLIVED, path, str(writes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    assert parent.stdin is not None
    with parent.stdout, parent.stdin:
        lines = {parent.stdout.readline().strip() for _ in range(2)}
        assert "written" in lines
        parent.kill()
        parent.wait()
        parent.stdin.close()
        assert parent.stdout.read() == ""  # at its end, the child has ended, too
    with recollect.open(path) as memory:
        assert len(memory.find()) == writes + 1
        assert memory.check() == []


@pytest.mark.promise("fault.fork")
@pytest.mark.parametrize("end", ["exit", "close", "drop"])
def test_the_end_of_a_fork_leaves_its_parent_and_the_file_unharmed(path: Path, end: str) -> None:
    done = subprocess.run([sys.executable, "-c", FORKS, str(path), end], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    with recollect.open(path) as memory:
        assert {record.id for record in memory.find()} == {"before", "after"}
        assert memory.check() == []


@pytest.mark.promise("fault.fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_is_refused_at_once_also_where_its_parent_was_in_the_middle_of_a_call(path: Path) -> None:
    """A thread of the parent holds the locks, and is not there in the fork to give them up."""
    store = SqliteStore(path)
    memory = memory_on(store)
    memory.remember("parent", id="parent")
    stored, over = threading.Event(), threading.Event()

    def hold() -> None:
        index = full_text_of(memory)
        with (
            store._readers_done,
            core_of(memory).keeper._lock,
            index._lock,
            index._pool,
            store.write(Branch("default")),
        ):
            stored.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    stored.wait()
    child = os.fork()
    if child == 0:
        refused = 0
        calls = (
            memory.count,
            lambda: memory.recall("parent"),
            lambda: memory.grep("parent"),
            lambda: memory.remember("child"),
        )
        for call in calls:
            try:
                call()
            except ForkedError:
                refused += 1
        memory.close()
        os._exit(0 if refused == len(calls) else 1)
    _, status = os.waitpid(child, 0)
    over.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
    assert [record.id for record in memory.find()] == ["parent"]
    memory.close()


# The harness


def test_the_harness_puts_everything_back(tmp_path: Path) -> None:
    default, hook = apsw.vfs_names()[0], sys.excepthook
    with recorded(tmp_path / "elsewhere"), recollect.open(tmp_path / "a.db") as memory:
        memory.remember("not recorded")
    assert (apsw.vfs_names()[0], sys.excepthook) == (default, hook)
    gc.collect()
    with recollect.open(tmp_path / "a.db") as memory:
        assert memory.count() == 1


def test_the_harness_takes_no_error_for_good_that_blames_the_bytes_or_says_nothing(tmp_path: Path) -> None:
    for error in (DamagedStoreError("a.db", "disk I/O error"), StoreError("a.db", "disk I/O error")):
        run = io_faults.Run(Script(0, 1), tmp_path, Fault("", 0, 0, persists=False))
        error.unchanged = True  # as of a call that writes
        run._judge(error)
        assert run.problem
