"""Writes with an idempotency key: executed once, in any process, with the first answer for who repeats them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import operations as op
from recollect.errors import ConflictError, IdempotencyError, InvalidArgumentError, UnsupportedError
from recollect.memory import Memory
from recollect.records.messages import Turn
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.testing import memory_on


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite", "loopback"])
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    store = SqliteStore(str(tmp_path / "a.db")) if request.param == "sqlite" else MemoryStore()
    with memory_on(store, clock=clock, loopback=request.param == "loopback") as opened:
        yield opened


TURN = op.Remember(content="ok", fields={"kind": "conversation", "conversation": "c", "role": "user"})


def test_a_repeated_write_gives_the_first_answer_and_writes_nothing(memory: Memory) -> None:
    first = memory.execute(TURN, idempotency_key="k1")
    head = memory.head()
    assert memory.execute(TURN, idempotency_key="k1") == first
    assert (first.status, memory.head()) == ("created", head)
    assert memory.execute(TURN, idempotency_key="k2").record.position == 1
    assert memory.execute(TURN).record.position == 2


WRITES: list[op.Operation] = [
    op.RememberAll(items=(op.Remember(content="a"), op.Remember(content=" "), op.Remember(content="b"))),
    op.AddMessages(turns=(), fields={}),
    op.AddMessages(turns=(Turn(role="user", content="hello", speaker=None),), fields={"conversation": "c"}),
    op.Update(id="note", changes={"content": "changed"}),
    op.Supersede(id="note", content="tea"),
    op.Merge(content="merged", sources={"note": None}),
    op.Forget(id="note"),
    op.ForgetWhere(where=recollect.filters.user("ana")),
    op.Clear(),
    op.Sweep(),
    op.ExecuteBatch(operations=(op.Remember(content="a", id="a"), op.Get(id="a"), op.Forget(id="note"))),
]


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.name)
def test_each_write_that_can_be_part_of_a_batch_can_be_repeated(memory: Memory, write: op.Operation) -> None:
    memory.remember("a note", id="note", user="ana")
    first = memory.execute(write, idempotency_key="k")
    head = memory.head()
    again = memory.execute(write, idempotency_key="k")
    assert comparable(again) == comparable(first)
    assert memory.head() == head


def comparable(result: Any) -> Any:
    return result.to_json() if isinstance(result, recollect.Report) else result


def test_what_is_no_write_of_a_batch_can_have_no_key(memory: Memory) -> None:
    for operation in (op.Get(id="a"), op.SetQuota(records=3), op.TakeSnapshot(), op.Erase(id="a")):
        with pytest.raises(UnsupportedError, match="idempotency key"):
            memory.execute(operation, idempotency_key="k")
    for key in ("", "x" * 256, "schlüssel", "a\nb"):
        with pytest.raises(InvalidArgumentError, match="idempotency_key"):
            memory.execute(TURN, idempotency_key=key)
    assert memory.count() == 0


def test_a_key_of_another_write_is_refused_and_nothing_is_written(memory: Memory) -> None:
    memory.execute(TURN, idempotency_key="k")
    with pytest.raises(IdempotencyError, match="another write"):
        memory.execute(op.Remember(content="tea"), idempotency_key="k")
    assert memory.count() == 1


def test_a_write_that_fails_has_no_answer_and_is_tried_again(memory: Memory) -> None:
    write = op.Remember(content="a", id="a", expect="absent")
    memory.remember("b", id="a")
    with pytest.raises(ConflictError):
        memory.execute(write, idempotency_key="k")
    memory.forget("a")
    assert memory.execute(write, idempotency_key="k").status == "created"


def test_scopes_and_namespaces_have_keys_of_their_own(memory: Memory) -> None:
    for each in (memory, memory.scoped(user="ana"), memory.scoped(user="bob"), memory.namespace("other")):
        assert each.execute(TURN, idempotency_key="k").status == "created"
    assert (memory.count(), memory.namespace("other").count()) == (3, 1)


def test_an_answer_is_kept_for_a_day_at_least_and_two_at_most(memory: Memory, clock: Clock) -> None:
    memory.execute(TURN, idempotency_key="k")
    clock.now += timedelta(hours=24)
    memory.execute(TURN, idempotency_key="k")
    assert memory.count() == 1
    clock.now += timedelta(hours=24)
    memory.execute(TURN, idempotency_key="later")
    memory.execute(TURN, idempotency_key="k")
    assert memory.count() == 3


def test_old_answers_are_removed(tmp_path: Path, clock: Clock) -> None:
    store = SqliteStore(str(tmp_path / "a.db"))
    with memory_on(store, clock=clock) as memory:
        for number in range(20):
            memory.execute(TURN, idempotency_key=f"k{number}")
        clock.now += timedelta(days=3)
        memory.execute(TURN, idempotency_key="new")
        with store.read() as view:
            assert len(view.setting_names("given/", "given0")) == 1


def test_what_is_erased_is_in_no_answer_and_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    write = op.Remember(content="the secret of Ana", id="a")
    with recollect.open(path) as memory:
        memory.execute(write, idempotency_key="k")
        memory.namespace("other").execute(TURN, idempotency_key="k")
        memory.erase("a")
        with pytest.raises(IdempotencyError, match="erased"):
            memory.execute(write, idempotency_key="k")
        assert memory.count() == 0
        assert memory.namespace("other").execute(TURN, idempotency_key="k").status == "created"
    assert b"secret" not in path.read_bytes()


def test_another_process_knows_the_answer_and_threads_write_once(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    results: list[Any] = []
    with recollect.open(path) as one, recollect.open(path) as two:
        threads = [
            threading.Thread(target=lambda each=each: results.append(each.execute(TURN, idempotency_key="k")))
            for each in (one, two) * 4
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(results) == 8
        assert all(each == results[0] for each in results)
        assert one.count() == 1


def test_a_bulk_write_with_a_key_is_one_commit(memory: Memory) -> None:
    items = tuple(op.Remember(content=f"fact {number}") for number in range(1200))
    memory.execute(op.RememberAll(items=items), idempotency_key="k")
    assert memory.seq == 1
