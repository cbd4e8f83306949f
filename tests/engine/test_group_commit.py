"""Group commit: threads that write at once share one sync to disk, nothing else. Commits and errors are separate."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

import recollect
from recollect.engine.results import Outcome
from recollect.errors import (
    ClosedError,
    ConflictError,
    DamagedStoreError,
    InvalidRecordError,
    StoreBusyError,
    StoreFullError,
    UnknownRecordError,
)
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import root_of
from recollect.memory import Memory
from recollect.operations import ABSENT, Forget, Operation, Remember, Update
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.write_queue import MAX_SHARING, Ticket
from recollect.testing import memory_on
from recollect.testing.faults import SteppedStore
from recollect.testing.loopback import core_of

BRANCH = Branch("default")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "shared.db", timeout_s=600)
    yield store
    store.close()


class Writers:
    """Threads that write, and what each call returned, by their names: a result, or an error."""

    def __init__(self) -> None:
        self.given: dict[str, object] = {}
        self.threads: list[threading.Thread] = []

    def tell(self, store: SqliteStore, name: str, call: Callable[[], object]) -> None:
        """Let a thread do the call, which is behind those before it by the time that this returns."""

        def run() -> None:
            try:
                self.given[name] = call()
            except BaseException as error:  # noqa: BLE001 - it is looked at below
                self.given[name] = error

        waiting = store._queue.waiting
        thread = threading.Thread(target=run, name=name)
        self.threads.append(thread)
        thread.start()
        while store._queue.waiting == waiting and thread.is_alive():
            os.sched_yield()

    def join(self) -> dict[str, object]:
        for thread in self.threads:
            thread.join()
        return self.given


@contextmanager
def at_once(store: SqliteStore) -> Iterator[Writers]:
    """Calls that all wait when the first of them begins."""
    writers = Writers()
    with store.write(Branch("default")):
        yield writers
    writers.join()


def together(store: SqliteStore, memory: Memory, operations: dict[str, Operation]) -> dict[str, object]:
    """Do the operations at once, each in a thread of its own, its name the actor."""
    with at_once(store) as writers:
        for name, operation in operations.items():
            writers.tell(store, name, lambda operation=operation, name=name: memory.execute(operation, actor=name))  # type: ignore[misc]
    return writers.given


@contextmanager
def counted(store: SqliteStore) -> Iterator[list[str]]:
    """The COMMIT statements that the writer runs."""
    found: list[str] = []

    def note(event: dict[str, object]) -> None:
        if str(event["sql"]).startswith("COMMIT"):
            found.append(str(event["sql"]))

    store._writer.trace_v2(apsw.SQLITE_TRACE_STMT, note)
    yield found
    store._writer.trace_v2(0, None)


def well(memory: Memory) -> bool:
    """The log has no gaps, every root is that of what was stored then, and nothing is wrong."""
    stored: dict[str, bytes] = {}
    for seq, commit in enumerate(memory.changes(), 1):
        for change in commit.changes:
            assert stored.pop(change.id, None) == change.before
            if change.after is not None:
                stored[change.id] = change.after
        assert (commit.seq, commit.root.hash) == (seq, root_of(stored))
    return memory.check() == []


def facts(count: int) -> dict[str, Operation]:
    return {f"thread {number}": Remember(content=f"fact {number}") for number in range(count)}


def test_threads_share_a_commit_and_each_has_its_own_seq_root_and_actor(store: SqliteStore) -> None:
    memory = memory_on(store)
    with counted(store) as commits:
        together(store, memory, facts(8))
    assert len(commits) == 2  # of the one that delayed them, which was empty, and of the eight
    assert [commit.actor for commit in memory.changes()] == [f"thread {number}" for number in range(8)]
    assert [len(commit.changes) for commit in memory.changes()] == [1] * 8
    assert well(memory)


def test_without_sharing_each_has_a_sync_of_its_own(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    real = store.write
    monkeypatch.setattr(store, "write", lambda branch, *, shared=False, ids=(): real(branch))
    memory = memory_on(store)
    with counted(store) as commits:
        together(store, memory, facts(8))
    assert len(commits) == 1 + 8
    assert well(memory)


def test_a_single_thread_commits_each_call(store: SqliteStore) -> None:
    memory = memory_on(store)
    with counted(store) as commits:
        for number in range(3):
            memory.remember(f"fact {number}")
    assert len(commits) == 3


def test_the_number_of_threads_that_share_is_limited(store: SqliteStore) -> None:
    memory = memory_on(store)
    with counted(store) as commits:
        given = together(store, memory, facts(MAX_SHARING + 3))
    assert len(commits) == 1 + 2
    assert len(given) == memory.count() == MAX_SHARING + 3
    assert well(memory)


def test_a_call_that_is_refused_changes_nothing_for_those_beside_it(store: SqliteStore) -> None:
    memory = memory_on(store)
    stored = memory.remember("held", id="held")
    given = together(
        store,
        memory,
        {
            "first": Remember(content="first", id="first"),
            "taken": Remember(content="other", id="held", expect=ABSENT),
            "update": Update(id="held", changes={"importance": 0.5}, expect=stored.hash),
            "late": Update(id="held", changes={"importance": 0.9}, expect=stored.hash),
            "sees": Update(id="first", changes={"content": "first, seen by the same commit"}),
            "unknown": Forget(id="nobody"),
            "invalid": Remember(content="x", fields={"importance": 7}),
            "last": Forget(id="first"),
        },
    )
    errors = {name: type(each) for name, each in given.items() if isinstance(each, BaseException)}
    assert errors == {
        "taken": ConflictError,
        "late": ConflictError,
        "unknown": UnknownRecordError,
        "invalid": InvalidRecordError,
    }
    assert [commit.actor for commit in memory.changes(since=1)] == ["first", "update", "sees", "last"]
    assert {record.id: record.importance for record in memory.find()} == {"held": 0.5}
    assert well(memory)


def test_no_reader_sees_a_shared_transaction_before_it_is_committed(store: SqliteStore) -> None:
    seen: list[int] = []

    def on_step(_number: int, name: str) -> None:
        if name == "commit":
            with store.read() as view:
                seen.append(view.head(BRANCH).seq)

    memory = memory_on(SteppedStore(store, on_step))
    with at_once(store) as writers:
        for number in range(4):
            writers.tell(store, f"thread {number}", lambda number=number: memory.remember(f"fact {number}"))  # type: ignore[misc]
    assert seen == [0, 0, 0, 0]
    assert memory.seq == 4


def test_no_listener_is_notified_before_the_commit(store: SqliteStore) -> None:
    memory = memory_on(store)

    def remembered(number: int) -> object:
        record = memory.remember(f"fact {number}")
        with SqliteStore(store.path, read_only=True).read() as view:  # a connection that knows only the file
            return view.get(BRANCH, record.id)

    with at_once(store) as writers:
        for number in range(6):
            writers.tell(store, f"thread {number}", lambda number=number: remembered(number))  # type: ignore[misc]
    assert len(writers.given) == 6
    assert None not in writers.given.values()


def test_a_thread_that_gives_up_waiting_leaves_its_place_to_the_next(tmp_path: Path) -> None:
    hasty, patient = SqliteStore(tmp_path / "a.db", timeout_s=0.01), SqliteStore(tmp_path / "b.db", timeout_s=600)
    given = together(hasty, memory_on(hasty), {"first": Remember(content="first")} | facts(2))
    # A thread that was too late gets an error; its turn is not lost with it.
    assert all(isinstance(each, (StoreBusyError, Outcome)) for each in given.values())
    memory_on(hasty).remember("after")
    ticket, late = Ticket(shares=True), Ticket(shares=True)
    with patient.write(Branch("default")):
        assert not patient._queue.take(ticket, 0)
        assert not ticket.has_lock
        assert patient._queue.waiting == 0
    assert patient._queue.take(late, 0)
    patient._queue.release(late)
    memory_on(patient).remember("after")
    hasty.close()
    patient.close()


@pytest.mark.parametrize("error", [StoreFullError("x", "injected"), KeyboardInterrupt(), ZeroDivisionError()])
@pytest.mark.parametrize("step", ["put", "append", "commit"])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_fault_in_one_part_undoes_only_that_part(
    store: SqliteStore, error: BaseException, step: str, place: int
) -> None:
    def on_step(_number: int, name: str) -> None:
        if name == step and threading.current_thread().name == f"thread {place}":
            raise error

    memory = memory_on(SteppedStore(store, on_step))
    given = together(store, memory, facts(5))
    assert {name for name, each in given.items() if each is error} == {f"thread {place}"}
    assert memory.seq == memory.count() == 4
    assert well(memory)
    memory.remember("and it goes on")
    assert memory.seq == 5
    assert well(memory)


def test_where_the_commit_fails_every_thread_raises_and_nothing_is_stored(store: SqliteStore) -> None:
    memory = memory_on(store)
    memory.remember("held")
    before = memory.root
    with at_once(store) as writers:
        for number in range(5):
            writers.tell(store, f"thread {number}", lambda number=number: memory.remember(f"fact {number}"))  # type: ignore[misc]
        first = iter([False])  # the one that holds them up
        store._writer.set_commit_hook(lambda: next(first, True))
    errors = list(writers.given.values())
    assert [type(error) for error in errors] == [DamagedStoreError] * 5
    assert len({id(error) for error in errors}) == 5
    assert (memory.root, memory.seq, memory.count()) == (before, 1, 1)
    store._writer.set_commit_hook(None)
    assert not any(isinstance(each, BaseException) for each in together(store, memory, facts(5)).values())
    assert memory.seq == 6
    assert well(memory)


@pytest.mark.promise("share.refused")
def test_no_thread_is_refused_for_what_another_wrote_and_lost(store: SqliteStore) -> None:
    """A condition that fails against a neighbour's write, whose commit then fails: what it was told never was."""
    memory = memory_on(store)
    before = memory.root
    with at_once(store) as writers:
        writers.tell(store, "writes", lambda: memory.remember("first", id="a"))
        writers.tell(store, "is refused", lambda: memory.remember("second", id="a", expect="absent"))
        writers.tell(store, "writes too", lambda: memory.remember("third", id="c"))
        first = iter([False])  # the one that holds them up
        store._writer.set_commit_hook(lambda: next(first, True))
    assert {name: type(each) for name, each in writers.given.items()} == dict.fromkeys(writers.given, DamagedStoreError)
    assert (memory.root, memory.count()) == (before, 0)
    store._writer.set_commit_hook(None)
    with at_once(store) as writers:
        writers.tell(store, "writes", lambda: memory.remember("first", id="a"))
        writers.tell(store, "is refused", lambda: memory.remember("second", id="a", expect="absent"))
    refusal = writers.given["is refused"]
    assert isinstance(refusal, ConflictError)
    stored = memory.get("a")
    assert stored is not None
    assert refusal.current == stored.hash


def test_a_disk_that_fills_in_a_part_is_reported_to_all_who_lose_by_it(store: SqliteStore) -> None:
    """SQLite undoes the whole transaction then, with what the others wrote in it."""
    memory = memory_on(store)
    memory.remember("held")
    pages = next(iter(store._writer.execute("PRAGMA page_count")))[0]
    store._writer.execute(f"PRAGMA max_page_count = {pages + 12}")
    given = together(
        store,
        memory,
        {
            "before": Remember(content="before"),
            "big": Remember(content="big " * 50_000),
            "after": Remember(content="after"),
        },
    )
    assert isinstance(given["big"], StoreFullError)
    writers = {name for name, each in given.items() if not isinstance(each, BaseException)}
    lost = {name: type(each) for name, each in given.items() if isinstance(each, BaseException)}
    assert {record.content for record in memory.find()} == {"held", *writers}
    assert set(lost.values()) == {StoreFullError}
    assert "after" in writers
    assert well(memory)


def test_what_a_caller_may_delay_does_not_begin_before_the_others_are_notified(store: SqliteStore) -> None:
    """A batch whose block waits for a thread that wrote before it: sharing one commit, both would wait for ever."""
    memory = memory_on(store)
    wrote = threading.Event()

    def remember() -> None:
        memory.remember("before the batch")
        wrote.set()

    def batch() -> bool:
        with memory.batch() as batch:
            batch.remember("in the batch")
            return wrote.wait(600)

    def update() -> object:
        return memory.update("held", lambda record: record.changed(pinned=wrote.wait(600)))

    memory.remember("held", id="held")
    with at_once(store) as writers:
        writers.tell(store, "remember", remember)
        writers.tell(store, "batch", batch)
        writers.tell(store, "update", update)
    assert writers.given["batch"] is True
    assert [len(commit.changes) for commit in memory.changes()] == [1] * 4
    assert well(memory)


def test_those_who_wait_when_the_store_is_closed_get_an_error_and_what_was_acknowledged_is_stored(
    tmp_path: Path,
) -> None:
    path = tmp_path / "closed.db"
    store = SqliteStore(path, timeout_s=600)
    memory = memory_on(store)
    with at_once(store) as writers:
        writers.tell(store, "first", lambda: memory.remember("first"))
        writers.tell(store, "close", memory.close)
        while not store._closed:
            os.sched_yield()
    assert isinstance(writers.given["first"], ClosedError)
    assert writers.given["close"] is None
    with recollect.open(path) as again:
        assert again.count() == 0
        assert again.check() == []


def test_an_interrupt_while_another_process_writes_leaves_the_store_usable(tmp_path: Path) -> None:
    """Ctrl-C is raised once the lock is had: right after the transaction has begun."""

    class Interrupted:
        def __init__(self, inner: Any) -> None:
            self._inner, self.once = inner, True

        def execute(self, sql: str, *rest: Any) -> Any:
            found = self._inner.execute(sql, *rest)
            if sql == "BEGIN IMMEDIATE" and self.once:
                self.once = False
                raise KeyboardInterrupt
            return found

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    with recollect.open(tmp_path / "a.db") as memory:
        store: Any = core_of(memory).store
        store._writer = Interrupted(store._writer)
        with pytest.raises(KeyboardInterrupt):
            memory.remember("interrupted")
        assert not store._writer.in_transaction
        memory.remember("after it")
        with recollect.open(tmp_path / "a.db") as other:
            other.remember("of another")
        assert memory.count() == 2


def test_the_callers_code_runs_before_it_is_its_turn(tmp_path: Path) -> None:
    """A thread that has handed its transaction on does not wait for what the next one was given."""
    with recollect.open(tmp_path / "a.db") as memory:

        def tags() -> Iterator[str]:
            memory.remember("told while the tags are asked for")
            yield "tagged"

        record = memory.remember("tagged", tags=tags())
        assert record.tags == ("tagged",)
        assert memory.count() == 2
