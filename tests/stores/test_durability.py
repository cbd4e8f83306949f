"""Durability: faults at every step, full disks, several processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.rows import Rows

import recollect
from recollect import filters as f
from recollect.errors import (
    ConflictError,
    ForkedError,
    RecollectError,
    StoreBusyError,
    StoreFullError,
)
from recollect.stores.base import Store
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite_base.checksums import connect
from recollect.testing import FaultyStore, TickingClock, memory_on
from recollect.testing.loopback import core_of

STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda folder: MemoryStore(),
    "sqlite": lambda folder: SqliteStore(folder / "faulty.db"),
}


def check_faults(inner: Store) -> None:
    """Let every step of a batch of all kinds of writes fail in turn, until none is left to fail."""
    memory_on(inner).remember_all(["one", "two", {"content": "three", "id": "third", "tags": ["x"]}])
    seen = set()
    for fail_at in range(1, 500):
        faulty = FaultyStore(inner, fail_at=fail_at)
        memory = memory_on(faulty, clock=TickingClock())
        memory.recall("one two three")  # so that the index is there, and must not run ahead
        before = (
            memory.root,
            memory.seq,
            memory.find(order="id"),
            [hit.score for hit in memory.recall("one two four")],
        )
        try:
            with memory.batch() as batch:
                batch.remember("four")
                batch.update("third", content="changed")
                batch.forget_where(f.contains("one"))
        except StoreFullError as error:
            seen.add(faulty.failed_in)
            assert "nothing was changed" in str(error)
            after = (
                memory.root,
                memory.seq,
                memory.find(order="id"),
                [hit.score for hit in memory.recall("one two four")],
            )
            assert after == before
            assert memory.check() == []
        else:
            break
    assert faulty.failed_in is None
    assert seen == {"put", "drop", "add_node", "append", "commit"}
    assert {record.content for record in memory.find()} == {"two", "four", "changed"}
    assert memory.check() == []
    memory.close()


@pytest.mark.parametrize("kind", STORES)
def test_a_fault_at_any_step_changes_nothing_and_the_next_try_succeeds(tmp_path: Path, kind: str) -> None:
    check_faults(STORES[kind](tmp_path))


def test_a_store_error_inside_a_batch_dooms_it_even_when_it_is_caught() -> None:
    memory = memory_on(FaultyStore(MemoryStore(), fail_at=2))
    with pytest.raises(StoreFullError), memory.batch() as batch:
        batch.remember("first")
        with pytest.raises(StoreFullError):
            batch.remember("second")
        batch.remember("third")
    assert memory.count() == 0


def test_a_full_disk_in_bulk_reports_what_is_not_stored(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "full.db")
    memory = memory_on(store)
    memory.remember("first")
    pages = next(iter(store._writer.execute("PRAGMA page_count")))[0]
    store._writer.execute(f"PRAGMA max_page_count = {pages + 700}")
    report = memory.remember_all(f"text number {number} " + "x" * 500 for number in range(4000))
    assert report.failed
    assert all(isinstance(failed.reason, StoreFullError) for failed in report.failed)
    assert len(report.results) + len(report.failed) == 4000
    assert memory.count() == 1 + len(report.results)
    assert len(report.results) % 1000 == 0
    with pytest.raises(StoreFullError, match="nothing was changed"):
        memory.remember(b"y" * 10_000_000, media_type="image/png")
    assert memory.check() == []
    store._writer.execute("PRAGMA max_page_count = 1000000")
    again = memory.remember_all(f"text number {number} " + "x" * 500 for number in range(4000))
    assert not again.failed
    assert again.count("unchanged") == len(report.results)
    memory.close()


def test_a_disk_that_fills_inside_a_batch_loses_the_batch_and_nothing_else(tmp_path: Path) -> None:
    """SQLite rolls back by itself then; what the batch did afterwards must not stand by itself."""
    store = SqliteStore(tmp_path / "full.db")
    memory = memory_on(store)
    memory.remember("held")
    root = memory.root
    pages = next(iter(store._writer.execute("PRAGMA page_count")))[0]
    store._writer.execute(f"PRAGMA max_page_count = {pages + 3}")
    with pytest.raises(StoreFullError), memory.batch() as batch:
        batch.remember("before")
        with pytest.raises(StoreFullError):
            batch.remember("big " * 20_000)
        with pytest.raises(RecollectError):
            batch.remember("after")
    assert (memory.root, memory.seq, memory.count()) == (root, 1, 1)
    assert memory.check() == []
    memory.close()


def test_greps_beside_a_writer_always_find_what_is_stored(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "grep.db", timeout=60) as memory:
        memory.remember("a lighthouse", id="a")

        def grep(_: int) -> bool:
            return all([record.id for record in memory.grep("lighthouse")] == ["a"] for _ in range(60))

        with ThreadPoolExecutor(5) as pool:
            writer = pool.submit(lambda: [memory.remember(f"boat {number}") for number in range(120)])
            assert all(pool.map(grep, range(4)))
            writer.result()


@pytest.mark.files
def test_a_file_that_is_put_back_from_a_copy_is_read_as_it_is_now(tmp_path: Path) -> None:
    path = tmp_path / "restored.db"
    with recollect.open(path) as memory:
        memory.remember("a lighthouse", id="a")
        copy = connect(str(tmp_path / "copy.db"))
        here = connect(str(path))
        with copy.backup("main", here, "main") as backup:
            backup.step()
        memory.remember("a harbour", id="b")
        assert memory.recall("harbour")
        assert memory.grep("harbour")
        with here.backup("main", copy, "main") as backup:
            backup.step()
        here.close()
        copy.close()
        assert memory.recall("harbour").hits == ()
        assert [hit.record.id for hit in memory.recall("lighthouse")] == ["a"]
        assert memory.grep("harbour") == []
        memory.remember("another harbour", id="c")
        assert [record.id for record in memory.grep("harbour")] == ["c"]
        assert [hit.record.id for hit in memory.recall("harbour")] == ["c"]


def test_an_error_of_the_callers_own_undoes_the_batch_and_is_given_back(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember("kept")
        with pytest.raises(OSError, match="mine"), memory.batch() as batch:
            batch.clear()
            raise OSError("mine")
        assert [record.content for record in memory.find()] == ["kept"]


# Several processes and threads


def other_process(path: Path, code: str) -> str:
    """Run code with `memory` open on the path in another process, and give what it prints."""
    script = f"import recollect\nfrom recollect import filters as f\nmemory = recollect.open({str(path)!r})\n{code}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.files
def test_a_commit_of_another_process_is_seen_by_the_next_call(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    with recollect.open(path) as memory:
        memory.remember("the harbour is calm", id="a")
        assert [hit.record.id for hit in memory.recall("harbour lighthouse")] == ["a"]
        other_process(path, "memory.remember('the lighthouse is lit', id='b'); memory.forget('a')")
        assert [hit.record.id for hit in memory.recall("harbour lighthouse")] == ["b"]
        assert memory.get("a") is None
        assert [record.id for record in memory.grep("lit")] == ["b"]
        assert other_process(path, "print(memory.root)").strip() == memory.root


def test_handles_that_write_in_turn_and_fail_between_agree_on_the_root(tmp_path: Path) -> None:
    """Each keeps pages of the trie loaded, which are the other's no longer."""
    path = tmp_path / "shared.db"
    with recollect.open(path) as one, recollect.open(path) as other:
        for number in range(60):
            writer = (one, one, other)[number % 3]
            writer.remember(f"fact {number}", id=f"{number % 40}", if_exists="update")
            with pytest.raises(ZeroDivisionError), (one, other)[number % 2].batch() as batch:
                batch.remember(f"given up {number}")
                raise ZeroDivisionError
            if number % 5 == 0:
                with pytest.raises(StoreFullError):
                    memory_on(FaultyStore(core_of(writer).store, fail_at=3)).remember(f"lost {number}")
        assert one.check() == other.check() == []
        assert one.count() == 40
        assert [commit.seq for commit in other.changes()] == list(range(1, 61))


@pytest.mark.files
def test_catching_up_reads_rows_in_proportion_to_the_commit_and_not_to_the_namespace(tmp_path: Path) -> None:
    def rows_read(size: int) -> tuple[int, int]:
        path = tmp_path / f"{size}.db"
        with recollect.open(path) as memory:
            memory.remember_all(f"number {number}" for number in range(size))
            memory.recall("number")
            store = core_of(memory).store
            assert isinstance(store, SqliteStore)
            other_process(path, "memory.remember('a lighthouse')")
            rows = Rows(store)
            assert len(memory.recall("lighthouse")) == 1
            return rows.rows, rows.scanned

    small, large = rows_read(20), rows_read(3000)
    assert small == large
    assert large[0] < 20
    assert large[1] < 20


def test_a_writer_waits_for_another_and_then_fails_with_nothing_written(tmp_path: Path) -> None:
    path = tmp_path / "busy.db"
    with recollect.open(path) as memory, recollect.open(path, timeout=0.05) as hasty:
        with memory.batch() as batch:
            batch.remember("first")
            with pytest.raises(StoreBusyError, match="nothing was changed"):
                hasty.remember("second")
            assert hasty.count() == 0  # readers do not wait
        hasty.remember("second")
        assert hasty.count() == 2


def test_a_second_thread_waits_for_the_first_and_then_fails(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "busy.db", timeout=0.05) as memory:
        caught: list[BaseException] = []

        def write() -> None:
            try:
                memory.remember("second")
            except RecollectError as error:
                caught.append(error)

        with memory.batch() as batch:
            batch.remember("first")
            thread = threading.Thread(target=write)
            thread.start()
            thread.join()
        assert [type(error) for error in caught] == [StoreBusyError]
        assert memory.count() == 1


@pytest.mark.in_process
@pytest.mark.parametrize("path", [":memory:", "file"])
def test_threads_that_write_and_recall_at_once_lose_no_update(tmp_path: Path, path: str) -> None:
    with recollect.open(path if path == ":memory:" else tmp_path / "threads.db", timeout=60) as memory:
        memory.remember("count", id="counter", importance=0.0)

        def work(worker: int) -> None:
            for step in range(15):
                memory.remember(f"worker {worker} step {step}")
                memory.update("counter", lambda stored: stored.changed(importance=(stored.importance or 0.0) + 1 / 256))
                assert memory.recall(f"worker {worker}", k=100)
                assert memory.get("counter") is not None

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(work, range(6)))
        counter = memory.get("counter")
        assert counter is not None
        assert counter.importance == 6 * 15 / 256
        assert memory.count() == 1 + 6 * 15
        assert memory.check() == []


@pytest.mark.files
def test_processes_that_add_to_one_record_lose_no_update(tmp_path: Path) -> None:
    path = tmp_path / "processes.db"
    with recollect.open(path) as memory:
        memory.remember("count", id="counter", metadata={"n": 0})
        code = "\n".join(
            (
                "for _ in range(25):",
                "    memory.update('counter', lambda held: held.changed(metadata={'n': held.metadata['n'] + 1}))",
            )
        )
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: other_process(path, code), range(4)))
        counter = memory.get("counter")
        assert counter is not None
        assert counter.metadata["n"] == 100


@pytest.mark.files
def test_a_condition_on_the_head_is_checked_inside_the_transaction(tmp_path: Path) -> None:
    path = tmp_path / "head.db"
    with recollect.open(path) as memory:
        memory.remember("first")
        seq = memory.seq
        other_process(path, "memory.remember('second')")
        with pytest.raises(ConflictError, match="nothing was changed"), memory.batch(expect_head=seq):
            pytest.fail("the batch must not begin")
        with memory.batch(expect_head=seq + 1) as batch:
            batch.remember("third")
        assert memory.count() == 3


@pytest.fixture
def forked(tmp_path: Path) -> Iterator[recollect.Memory]:
    with recollect.open(tmp_path / "fork.db") as memory:
        memory.remember("parent")
        yield memory


@pytest.mark.in_process
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_must_open_the_memory_again(forked: recollect.Memory) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            forked.recall("parent")
        except ForkedError:
            try:
                forked.remember("child")
            except ForkedError:
                code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert forked.count() == 1


@pytest.mark.in_process
@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
def test_a_write_beyond_the_limit_on_the_size_of_a_file_is_a_full_store(tmp_path: Path) -> None:
    program = """
import resource, signal, sys, recollect
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with recollect.open(sys.argv[1], embedder="none") as memory:
    memory.remember("first", id="a")
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    try:
        for number in range(300):
            memory.remember(f"{number} " + "long " * 10_000)
    except recollect.RecollectError as error:
        print(error.code, error.unchanged)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    memory.remember("and on", id="b")
    print(memory.get("a").content, memory.get("b").content, memory.check() == [])
"""
    for limit in (2**20, 4 * 2**20):
        command = [sys.executable, "-c", program, str(tmp_path / f"{limit}.db"), str(limit)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert done.stdout.splitlines() == ["store_full True", "first and on True"]
