"""How often the store waits for the server: in counts, which do not depend on the machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest

import recollect
from recollect import filters as f
from recollect.engine.results import Outcome
from recollect.filters.tree import Filter
from recollect.ledger.commits import Branch
from recollect.memory import Memory
from recollect.operations import Remember
from recollect.stores.postgres.dialect import rewritten
from recollect.stores.postgres.view import RESOLVED, ROWS_OF, PostgresView
from recollect.stores.sql.filters import rest
from recollect.stores.sql.view import resolving
from recollect.stores.write_queue import WriteQueue
from recollect.testing.loopback import core_of
from recollect.testing.postgres import create_store, drop_store

pytestmark = pytest.mark.postgres
T = TypeVar("T")


@pytest.fixture(scope="module")
def memory(dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A memory of 3,000 records, with its index in this process."""
    schema, cache = "recollect_trips", tmp_path_factory.mktemp("cache")
    drop_store(dsn, schema)
    address = f"{create_store(dsn, schema)}&cache={cache}"
    with recollect.open(address, embedder="none") as memory:
        for start in range(0, 3000, 1000):
            memory.remember_all([f"note {number} about {number % 37}" for number in range(start, start + 1000)])
        memory.remember("one more", id="one")
        memory.recall("note about 5")
        yield memory
    drop_store(dsn, schema)


def turns(first: int, count: int) -> list[Any]:
    return [{"role": "user", "content": f"turn {number}"} for number in range(first, first + count)]


#: What is called, and how many round trips it may take.
CALLS: dict[str, tuple[Callable[[Memory], object], int]] = {
    "a recall": (lambda memory: memory.recall("note about 7"), 1),
    "a get": (lambda memory: memory.get("one"), 2),
    "a find": (lambda memory: memory.find(limit=5), 2),
    "a write": (lambda memory: memory.remember("a single write"), 3),
    "a change": (lambda memory: memory.update("one", content="changed"), 5),
    "a batch of 100": (lambda memory: memory.remember_all([f"batch {number}" for number in range(100)]), 6),
    "20 turns": (lambda memory: memory.add_messages(turns(0, 20), conversation="c"), 6),
    "a log of 20": (lambda memory: memory.log(limit=20), 6),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_takes_few_round_trips(name: str, memory: Memory) -> None:
    call, most = CALLS[name]
    traffic = core_of(memory).store.traffic  # type: ignore[attr-defined]
    call(memory)
    memory.recall("note about 5")
    before = traffic.round_trips
    call(memory) if name in ("a recall", "a get", "a find", "a log of 20") else again(memory, name)
    taken = traffic.round_trips - before
    assert 1 <= taken <= most


def again(memory: Memory, name: str) -> None:
    """The same kind of write once more: the first one of a process also reads what later ones need not."""
    if name == "a write":
        memory.remember("another single write")
    elif name == "a change":
        memory.update("one", content="changed again")
    elif name == "20 turns":
        memory.add_messages(turns(0, 20), conversation="d")
    else:
        memory.remember_all([f"batch {number} again" for number in range(100)])


def test_a_statement_more_is_counted(memory: Memory) -> None:
    store = core_of(memory).store
    before = store.traffic.round_trips  # type: ignore[attr-defined]
    with store.read() as view:
        view.setting("one")
        view.setting("two")
    assert store.traffic.round_trips - before == 2  # type: ignore[attr-defined]


def test_a_server_counts_the_round_trips_of_all_threads(memory: Memory) -> None:
    store: Any = core_of(memory).store
    before, own = store.facts()["round_trips"], store.traffic.round_trips
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(memory.get, ["one"] * 40))
    taken = store.facts()["round_trips"] - before
    assert 40 <= taken <= 2 * 40
    assert store.traffic.round_trips == own, "this thread has only waited for the others"


def together(memory: Memory, calls: Sequence[Callable[[], T]]) -> list[T]:
    """Make calls that write, each in a thread that waits for its turn with the others, in the order given."""
    store: Any = core_of(memory).store
    queue: WriteQueue = store._writer("default")._queue
    results: dict[int, T] = {}
    failures: list[Exception] = []

    def make(at: int, call: Callable[[], T]) -> None:
        try:
            results[at] = call()
        except Exception as error:  # noqa: BLE001 - raised below
            failures.append(error)

    threads = []
    with store.write(Branch("default")):
        for at, call in enumerate(calls):
            threads.append(threading.Thread(target=make, args=(at, call)))
            before = queue.waiting
            threads[-1].start()
            while queue.waiting == before and threads[-1].is_alive():
                pass
    for thread in threads:
        thread.join()
    for failure in failures:
        raise failure
    return [results[at] for at in range(len(calls))]


def written_together(memory: Memory, writes: Sequence[Remember]) -> tuple[list[Outcome], int]:
    """Execute writes together, and return what became of each, and how many round trips all took."""
    store: Any = core_of(memory).store
    taken: list[int] = []

    def write(operation: Remember) -> Outcome:
        before = store.traffic.round_trips  # of this thread
        outcome: Outcome = memory.execute(operation)
        taken.append(store.traffic.round_trips - before)
        return outcome

    return together(memory, [partial(write, each) for each in writes]), sum(taken)


@pytest.mark.parametrize("is_read_ahead", [True, False], ids=["", "control"])
def test_threads_that_share_a_commit_wait_for_the_server_once_for_all(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, is_read_ahead: bool
) -> None:
    if not is_read_ahead:
        monkeypatch.setattr(WriteQueue, "lookups", lambda queue, branch: [])
    memory.remember("before")
    writes = [Remember(content=f"note {number} of six, {is_read_ahead}") for number in range(6)]
    outcomes, trips = written_together(memory, writes)
    assert [each.status for each in outcomes] == ["created"] * 6
    assert trips == (3 if is_read_ahead else 8)  # the lock, what is stored under the ids, and the commit


def named(outcome: Outcome) -> tuple[str, str]:
    assert outcome.record is not None
    return outcome.status, outcome.record.id


def test_a_thread_sees_what_those_before_it_in_the_same_commit_did_to_its_id(memory: Memory) -> None:
    """As one after the other would in a store in memory."""
    pairs = ("first", "x"), ("new", "one"), ("stored", "same"), ("gone", "same"), ("new", "one"), ("new", "two")
    writes = [Remember(content=content, id=f"seen {record_id}") for record_id, content in pairs]
    with recollect.open(":memory:") as other:
        for each in (memory, other):
            each.remember("same", id="seen stored")
            each.remember("same", id="seen gone")
            each.forget("seen gone")
        expected = [other.execute(each) for each in writes]
        outcomes = written_together(memory, writes)[0]
        assert [named(each) for each in outcomes] == [named(each) for each in expected]
        for _, record_id in map(named, expected):
            assert len(memory.history(record_id)) == len(other.history(record_id))
    assert memory.check() == []


def test_ids_are_looked_up_in_an_index_also_where_nothing_was_analyzed(dsn: str, tmp_path: Path) -> None:
    schema = "recollect_plans"
    drop_store(dsn, schema)
    address = f"{create_store(dsn, schema)}&cache={tmp_path}"
    with psycopg.connect(dsn, autocommit=True, cursor_factory=psycopg.RawCursor) as server:
        for table in ("heads", "changes", "versions"):
            server.execute(f"ALTER TABLE {schema}.{table} SET (autovacuum_enabled = FALSE)".encode())
        with recollect.open(address, embedder="none") as memory:
            memory.remember_all([f"note {number}" for number in range(2000)])
        ids = [f"id {number}" for number in range(50)]

        def scans(sql: str, parameters: Sequence[Any]) -> bool:
            plan = server.execute(f"EXPLAIN {rewritten(sql, schema)}".encode(), parameters).fetchall()
            return any("Bitmap" in line or "Seq Scan" in line for (line,) in plan)

        assert not scans(RESOLVED, (0, ids, 1, 1))
        assert not scans(ROWS_OF, (ids, 1))
        assert scans(resolving(len(ids)), (*ids, 0, 1, 1))  # control: the statement for SQLite
    drop_store(dsn, schema)


def test_the_last_turns_of_a_conversation_are_read_from_its_end(dsn: str, tmp_path: Path) -> None:
    """By the index of conversations; only turns of one position would be sorted. Those of several conversations are."""
    schema = "recollect_last"
    drop_store(dsn, schema)
    address = f"{create_store(dsn, schema)}&cache={tmp_path}"
    with recollect.open(address, embedder="none") as memory:
        memory.remember_all([{"content": f"turn {each}", "conversation": f"c{each % 3}"} for each in range(3000)])
        found = memory.find(f.conversation("c1"), order="last", limit=3)
        assert [record.text for record in found] == ["turn 2998", "turn 2995", "turn 2992"]
        with core_of(memory).store.read() as view, psycopg.connect(dsn, autocommit=True) as server:
            assert isinstance(view, PostgresView)
            server.execute(f"ANALYZE {schema}.heads".encode())

            def plan(where: Filter) -> str:
                lines = []
                for part in rest("last", None, where):
                    sql, parameters = view.select_sql(Branch("default"), where, "last", 0, part)
                    client = psycopg.RawCursor(server)
                    client.execute(f"EXPLAIN {rewritten(sql, schema)} LIMIT 3".encode(), (1, *parameters[1:]))
                    lines += [str(line) for (line,) in client.fetchall()]
                return "\n".join(lines)

            one, several = plan(f.conversation("c1")), plan(f.conversation("c1", "c2"))
            assert "Index Scan Backward using heads_by_conversation" in one, one
            assert 'Presorted Key: h."position"' in one, one
            assert "Index Scan Backward using heads_by_conversation" not in several, several
    drop_store(dsn, schema)
