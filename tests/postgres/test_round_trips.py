"""How often the store waits for the server: in counts, which do not depend on the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import recollect
from recollect.memory import Memory
from recollect.testing.loopback import core_of
from recollect.testing.postgres import create_store, drop_store

pytestmark = pytest.mark.postgres


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
