"""Ctrl-C at lines of a call: what was acknowledged is stored, nothing is half done, and everybody goes on."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.examples import FULL
from torture.interrupts import CALLS, Interruption, Waiter, interrupted, lines_of

from recollect.engine.write.writer import Writer
from recollect.errors import StoreIOError
from recollect.stores.memory import MemoryStore
from recollect.stores.sql import group_writer
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.write_queue import Ticket
from recollect.testing import memory_on
from recollect.testing.loopback import core_of

#: Where Python itself closes what is not used any more, an interruption is swallowed and reported by a warning.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
#: Every how many lines an interruption strikes here; `make torture` has the others.
STRIDE = 7 if FULL else 97
STORES: dict[str, Callable[[Path], SqliteStore | MemoryStore]] = {
    "sqlite": lambda folder: SqliteStore(folder / "interrupted.db", timeout_s=600, durability="normal"),
    "memory": lambda folder: MemoryStore(timeout_s=600),
}


@pytest.mark.promise("interrupt.anywhere")
@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("name", CALLS)
def test_an_interruption_at_any_line_leaves_all_or_nothing_and_the_handle_goes_on(
    tmp_path: Path, kind: str, name: str
) -> None:
    memory = memory_on(STORES[kind](tmp_path))
    struck = 0
    for at in range(1, lines_of(memory, name), STRIDE):
        problem = interrupted(memory, name, Interruption(at))
        struck += problem is not None
        assert not problem
    assert struck > 2
    assert memory.check() == []
    memory.remember_all(["one", "two"])
    memory.close()


@pytest.mark.promise("interrupt.anywhere")
@pytest.mark.parametrize("is_undone", [True, False], ids=["", "control"])
def test_a_batch_that_fails_leaves_nothing_wherever_its_undoing_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_undone: bool
) -> None:
    if not is_undone:
        monkeypatch.setattr(Ticket, "unfinished", property(lambda ticket: False, lambda ticket, value: None))
    memory = memory_on(SqliteStore(tmp_path / "failing.db", durability="normal"))
    memory.remember("before")

    def failing() -> None:
        with suppress(ValueError), memory.batch() as batch:
            batch.remember("half " * 20_000, id="half")  # so much that it is written before the end
            raise ValueError

    wrong, at = 0, 0
    interruption = Interruption(1, files=(group_writer.__file__,))
    while interruption.strikes(failing):
        wrong += memory.count() > 1 or memory.check() != []
        at += 1
        interruption = Interruption(at + 1, files=(group_writer.__file__,))
    assert at > 20
    assert (wrong == 0) is is_undone


@pytest.mark.promise("interrupt.others")
@pytest.mark.parametrize("name", ["remember", "batch"])
def test_who_waits_while_a_writer_is_interrupted_gets_its_turn(tmp_path: Path, name: str) -> None:
    store = SqliteStore(tmp_path / "interrupted.db", timeout_s=600, durability="normal")
    memory = memory_on(store)
    waited = 0
    for at in range(1, lines_of(memory, name), (3 if FULL else 16)):
        waiter = Waiter(memory, store)
        problem = interrupted(memory, name, Interruption(at, waiter.come))
        assert waiter.end() == "other"
        waited += waiter.waited
        assert not problem
    assert waited > (5 if FULL else 0)
    assert memory.check() == []
    memory.close()


@pytest.mark.promise("interrupt.closing")
def test_closing_after_an_interrupted_read_does_not_wait_for_it(tmp_path: Path) -> None:
    path = tmp_path / "read.db"
    memory_on(SqliteStore(path)).close()
    struck, at = True, 0
    while struck:
        at += 1
        store = SqliteStore(path)

        def read(store: SqliteStore = store) -> None:
            with store.read() as view:
                list(view.branches())

        struck = Interruption(at).strikes(read)
        store.close()
    assert at > 10


@pytest.mark.promise("interrupt.others")
@pytest.mark.parametrize("kind", STORES)
def test_one_that_waited_and_was_interrupted_in_the_queue_is_passed_over(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stubborn(deque[Ticket]):
        """A queue that an interruption keeps from being left, once."""

        def remove(self, turn: Ticket) -> None:
            monkeypatch.undo()
            raise KeyboardInterrupt

    memory = memory_on(STORES[kind](tmp_path))
    turns = core_of(memory).store._queue if kind == "sqlite" else core_of(memory).store._writers  # type: ignore[attr-defined]
    begun, ending = threading.Event(), threading.Event()

    def hold() -> None:
        with memory.batch() as batch:
            batch.remember("held")
            begun.set()
            assert ending.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert begun.wait(60)
    queue = Stubborn()
    monkeypatch.setattr(turns, "_waiters", queue)
    threading.Timer(0.05, ending.set).start()
    with pytest.raises(KeyboardInterrupt):
        memory.remember("interrupted")
    holder.join()
    turns._waiters.extend(queue)
    other = threading.Thread(target=lambda: memory.remember("other"), daemon=True)
    other.start()
    other.join(20)
    assert not other.is_alive()
    memory.remember("after")
    assert {"held", "other", "after"} <= {record.content for record in memory.find()}


def test_a_batch_in_which_an_operation_was_interrupted_is_lost_though_that_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = memory_on(SqliteStore(tmp_path / "cut.db"))
    memory.remember("a lighthouse", id="x")
    keep = Writer._note_written

    def interrupted_once(*_: object) -> None:
        monkeypatch.setattr(Writer, "_note_written", keep)
        raise KeyboardInterrupt

    monkeypatch.setattr(Writer, "_note_written", interrupted_once)
    with pytest.raises(StoreIOError, match="interrupted"), memory.batch() as batch:
        with pytest.raises(KeyboardInterrupt):
            batch.update("x", content="an anchor")
        batch.remember("a rope")
    assert [record.content for record in memory.find()] == ["a lighthouse"]
    assert [hit.record.content for hit in memory.recall("anchor lighthouse rope")] == ["a lighthouse"]
    assert memory.check() == []
