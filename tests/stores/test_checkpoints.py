"""The log of the SQLite store stays bounded, and commits do not pay for it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from recollect.memory import Memory
from recollect.stores.sqlite import checkpoints as sqlite_checkpoints
from recollect.stores.sqlite.store import SqliteStore
from recollect.testing import memory_on
from recollect.testing.loopback import core_of

PAGES, LONG = 60, 480
PAGE_BYTES = 4096 + 24
#: More pages than any commit of these tests has.
ONE_COMMIT = 40


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteStore:
    monkeypatch.setattr(sqlite_checkpoints, "PAGES", PAGES)
    monkeypatch.setattr(sqlite_checkpoints, "LONG", LONG)
    return SqliteStore(tmp_path / "log.db", durability="normal")


def log_pages(store: SqliteStore) -> int:
    return os.stat(f"{store.path}-wal").st_size // PAGE_BYTES


def write(memory: Memory, count: int) -> int:
    """Write so often; the longest that the log was."""
    store = core_of(memory).store
    assert isinstance(store, SqliteStore)
    first = memory.seq
    longest = 0
    for number in range(count):
        memory.remember(f"fact {first + number}")
        longest = max(longest, log_pages(store))
    return longest


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "recollect-checkpoint"]


def rest(store: SqliteStore) -> None:
    """Wait for the checkpoint under way."""
    for thread in threads():
        thread.join()


def test_the_log_stays_bounded_over_many_commits(store: SqliteStore) -> None:
    memory = memory_on(store)
    assert PAGES < write(memory, 400) <= LONG + ONE_COMMIT
    assert memory.check() == []
    memory.close()


def test_without_checkpoints_it_does_not(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_checkpoints.Checkpointer, "committed", lambda self, writer: None)
    memory = memory_on(store)
    assert write(memory, 400) > 2 * LONG
    memory.close()


def test_the_thread_leaves_a_log_that_is_begun_again(store: SqliteStore) -> None:
    memory = memory_on(store)
    while not threads() and store._checkpointer._thread is None:
        write(memory, 1)
    rest(store)
    assert store._checkpointer._pages >= PAGES
    write(memory, 1)
    assert 0 < store._checkpointer._pages <= ONE_COMMIT
    memory.close()


def test_where_no_thread_can_run_the_commits_do_it(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    memory = memory_on(store)
    assert write(memory, 200) <= PAGES + ONE_COMMIT
    memory.close()


def test_writes_go_on_beside_a_long_view_and_the_log_is_short_again_after_it(store: SqliteStore) -> None:
    memory = memory_on(store)
    write(memory, 5)
    line = memory._branch
    with store.read() as view:
        assert view.head(line).seq == 5
        assert write(memory, 200) > LONG  # what the view needs must stay
        assert view.head(line).seq == 5
        assert len(list(view.commits(line))) == 5
    rest(store)
    write(memory, PAGES)  # at least one page each: the next checkpoint is due
    rest(store)
    write(memory, 1)
    assert store._checkpointer._pages < LONG
    assert memory.count() == 5 + 200 + PAGES + 1
    memory.close()


def test_closing_leaves_no_thread_and_no_log(store: SqliteStore) -> None:
    memory = memory_on(store)
    while store._checkpointer._thread is None:
        write(memory, 1)
    memory.close()
    assert threads() == []
    assert not os.path.exists(f"{store.path}-wal")


def test_a_store_that_is_let_go_unclosed_gives_its_file_back(store: SqliteStore, tmp_path: Path) -> None:
    memory_on(store).remember("x")
    path = store.path
    other = SqliteStore(tmp_path / "other.db")  # one that nothing else refers to
    memory_on(other).remember("x")
    assert os.path.exists(f"{other.path}-wal")
    del other
    assert not os.path.exists(tmp_path / "other.db-wal")
    assert os.path.exists(f"{path}-wal")
    store.close()
