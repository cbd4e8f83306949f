"""Compacting a store gives space back, and changes nothing that can be read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.examples import FULL

import recollect
from recollect import Memory
from recollect.errors import DamagedStoreError, ReadOnlyStoreError, ScopeError, StoreBusyError
from recollect.stores import roots
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.header import has_all_pages
from recollect.stores.sqlite.store import SqliteStore
from recollect.testing import TickingClock, memory_on
from recollect.testing.loopback import core_of


@pytest.fixture(autouse=True)
def _few_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roots, "KEPT_EVERY", 200)


@pytest.fixture(params=["sqlite", "memory"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    store = SqliteStore(tmp_path / "a.db", durability="normal") if request.param == "sqlite" else MemoryStore()
    memory = memory_on(store, clock=TickingClock())
    yield memory
    memory.close()


def fill(memory: Memory, writes: int = 300) -> None:
    memory.remember_all([{"content": f"note {number} " + "x" * 200, "id": str(number)} for number in range(300)])
    for number in range(writes):
        memory.update(str(number % 300), importance=number / writes)


def everything(memory: Memory) -> object:
    moments = [memory.at(seq) for seq in range(0, memory.seq, 37)]
    return (
        [(commit, commit.entry) for commit in memory.changes()],
        memory.find(order="id"),
        memory.history("7"),
        [(moment.root, moment.find(order="id")) for moment in moments],
        [memory.prove("7", at=seq) for seq in (1, 100, memory.seq)],
        memory.snapshots(),
        memory.head(),
    )


def test_everything_can_be_read_as_before(memory: Memory) -> None:
    fill(memory)
    memory.snapshot("kept")
    fill(memory, 50)
    before = everything(memory)
    compacted = memory.compact()
    assert compacted.complete
    assert everything(memory) == before
    assert memory.check() == []
    assert memory.compact() == recollect.Compacted(before=compacted.after, after=compacted.after, complete=True)


def test_a_check_counts_the_roots_whose_pages_were_dropped(memory: Memory) -> None:
    memory.remember("one")
    memory.compact()
    intact = memory.check()
    assert (intact, intact.commits, intact.dropped) == ([], 1, 0)
    fill(memory, 100)
    memory.compact()
    report = memory.check()
    assert (report, report.commits, report.erased, report.thinned) == ([], 102, 0, 0)
    with core_of(memory).store.read() as view:
        branch = view.branches()[0]
        stored = sum(view.stored_root(branch, seq)[0] == seq for seq in range(1, 103))
    assert report.dropped == 102 - stored > 90
    assert recollect.CheckReport.from_json(report.to_json()).to_json() == report.to_json()


def test_the_file_becomes_shorter_by_the_pages_of_old_roots(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, durability="normal") as memory:
        fill(memory, 1000)
        compacted = memory.compact()
        assert compacted.after == path.stat().st_size
        assert os.path.getsize(f"{path}-wal") == 0
    assert compacted.before is not None
    assert compacted.after is not None
    assert compacted.after < compacted.before * 0.9  # the trimmer has not dropped the pages of the last commits yet
    with recollect.open(path) as memory:
        assert memory.check() == []


def test_others_that_have_the_store_open_read_and_write_on(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, durability="normal") as memory, recollect.open(path) as other:
        fill(memory, 1000)
        assert other.count() == 300
        compacted = memory.compact()
        assert compacted.complete
        assert other.count() == 300
        other.remember("after it", id="later")
        assert memory.get("later") is not None
        fill(other, 500)  # the file grows again
        assert memory.check() == other.check() == []


def test_a_file_that_was_cut_is_not_taken_for_a_compacted_one(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, durability="normal") as memory:
        fill(memory)
        size = memory.compact().after
        assert size is not None
        assert memory.count() == 300
        os.truncate(path, size - 4096)
        with pytest.raises(DamagedStoreError, match="was cut"):
            memory.count()
        os.truncate(path, 50)
        with pytest.raises(DamagedStoreError, match="was cut"):
            memory.count()


def test_a_compacted_file_that_grows_again_is_intact_in_the_middle_of_a_checkpoint(tmp_path: Path) -> None:
    """A checkpoint writes the header first, which then states more pages than the file has."""
    path = tmp_path / "a.db"
    with recollect.open(path, durability="normal") as memory, recollect.open(path, durability="normal") as other:
        fill(memory, 1000)
        assert other.count() == 300  # it has seen the long file
        size = memory.compact().after
        assert size is not None
        memory.remember_all([{"content": "more " * 100, "id": f"more {number}"} for number in range(100)])
        data, wal = path.read_bytes(), Path(f"{path}-wal").read_bytes()  # before it is checkpointed
        core_of(memory).store._checkpointer.truncate(core_of(memory).store._writer)  # type: ignore[attr-defined]
        header = path.read_bytes()[:100]
    assert len(path.read_bytes()) > len(data)
    half = tmp_path / "half.db"
    half.write_bytes(header + data[100:])
    assert not has_all_pages(str(half))  # the rest is nowhere
    Path(f"{half}-wal").write_bytes(wal)
    assert has_all_pages(str(half))


def test_a_reader_delays_the_end_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, durability="normal", timeout=1) as memory, recollect.open(path) as other:
        fill(memory, 1000)
        with other.open_export() as export:
            compacted = memory.compact()
            assert not compacted.complete
            assert len(list(export.records)) == export.count == 300
        assert memory.compact().complete
        assert os.path.getsize(f"{path}-wal") == 0
        assert memory.check() == []


def test_it_is_refused_where_it_must_not_write(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, timeout=0.05) as memory:
        memory.remember("one", user="ana")
        with pytest.raises(ScopeError):
            memory.scoped(user="ana").compact()
        with memory.batch(), pytest.raises(StoreBusyError):
            memory.compact()
        with recollect.open(path, read_only=True) as reader, pytest.raises(ReadOnlyStoreError):
            reader.compact()
        refused: list[BaseException] = []

        def compact() -> None:
            with pytest.raises(StoreBusyError) as raised:
                memory.compact()
            refused.append(raised.value)

        with memory.batch():
            thread = threading.Thread(target=compact)
            thread.start()
            thread.join()
        assert len(refused) == 1
        assert memory.compact().complete


_COMPACT = """
import os, signal, sys, apsw, recollect
from recollect.testing.loopback import core_of
memory = recollect.open(sys.argv[1], durability="normal")
for number in range(500):
    memory.update(str(number % 300), importance=number / 1000)
writer, steps = core_of(memory).store._writer, 0
def progress():
    global steps
    steps += 1
    if steps == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return False
writer.set_progress_handler(progress, 200)
memory.compact()
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
@pytest.mark.parametrize("step", [1, 20, 60, 120] if FULL else [120])
def test_a_process_that_is_killed_while_it_compacts_loses_nothing(step: int, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, durability="normal") as memory:
        fill(memory, 0)
    child = subprocess.run([sys.executable, "-c", _COMPACT, str(path), str(step)], check=False)
    assert child.returncode == -signal.SIGKILL
    with recollect.open(path) as memory:
        assert memory.check() == []
        assert memory.seq == 501
        assert len(memory.find()) == 300
        assert memory.compact().complete
        assert memory.check() == []


def test_unnamed_snapshots_of_a_commit_do_not_take_it_from_each_other(memory: Memory) -> None:
    memory.remember("a note", id="note")
    memory.snapshot("kept")
    for _ in range(10):
        memory.snapshot()
    for number in range(3):
        memory.remember(f"another note: {number}")
        for _ in range(3):
            memory.snapshot()
    memory.remember("the last note")
    memory.compact()
    for _ in range(3):  # the oldest unnamed snapshots make room
        memory.snapshot()
    assert memory.check() == []
    assert memory.at("kept").get("note") is not None
