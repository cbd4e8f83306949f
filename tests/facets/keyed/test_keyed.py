"""Keyed memory, on a shelf and on stores: the same calls, the same results, and the same entries make room."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some

import recollect
from recollect import filters as f
from recollect.errors import (
    InvalidArgumentError,
    InvalidRecordError,
    QuotaError,
    RecollectError,
    ScopeError,
    StoreBusyError,
    StoreIOError,
    UnsupportedError,
)
from recollect.facets.keyed.keyed import Keyed
from recollect.keyed import Event, KeySubscription, Missed, Shelf
from recollect.operations import GetQuota
from recollect.stores.base import Store
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.testing import memory_on

START = datetime(2026, 3, 1, tzinfo=UTC)
#: Keys of any text: those that cannot be ids of records, and those that look like what stands for them.
KEYS = ("a", "b", "", "#", "@user=ana/x", "\u00e9", "line\nbreak", "k" * 300, "Ω🙂")
VALUES = (b"", b" ", b"one apple", b"two pears", b"\xff\x00", "drei Äpfel".encode())


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0

    def __call__(self) -> datetime:
        return START + timedelta(seconds=self.seconds)


class OnStore:
    """Keyed memory on a store, with the calls of a shelf."""

    def __init__(self, store: Store, clock: Clock, loopback: bool, ttl: int | None = None, **limits: Any) -> None:
        self._context = memory_on(store, clock=clock, loopback=loopback)
        self.memory = self._context.__enter__()
        self.keyed: Keyed = self.memory.keyed
        self._ttl = ttl
        if limits:
            self.keyed.set_limits(**limits)

    def write(self, key: str, value: bytes, *, importance: float | None = None) -> None:
        self.keyed.write(key, value, ttl=self._ttl, importance=importance)

    def cas(self, key: str, expected: bytes | None, new: bytes) -> bool:
        return self.keyed.cas(key, expected, new, ttl=self._ttl)

    def close(self) -> None:
        self._context.__exit__(None, None, None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.keyed, name)


Make = Callable[..., Any]


@pytest.fixture(params=["shelf", "memory", "sqlite", "loopback"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes keyed memories, whose clock is `made.clock`."""
    opened: list[Any] = []

    def made(**options: Any) -> Any:
        clock = Clock()
        out: Any
        if request.param == "shelf":
            out = Shelf(now=lambda: clock.seconds, **options)
        else:
            store = SqliteStore(tmp_path / f"{len(opened)}.db") if request.param == "sqlite" else MemoryStore()
            out = OnStore(store, clock, request.param == "loopback", **options)
        out.clock = clock
        opened.append(out)
        return out

    yield made
    for each in opened:
        each.close()


def drained(events: KeySubscription, count: int) -> list[Event]:
    """The next events of a subscription."""
    out = [events.wait(30) for _ in range(count)]
    assert all(isinstance(each, Event) for each in out), out
    return out  # type: ignore[return-value]


class TestCalls:
    @pytest.mark.parametrize("key", KEYS)
    @pytest.mark.parametrize("value", VALUES)
    def test_a_key_of_any_text_has_a_value_of_any_bytes(self, make: Make, key: str, value: bytes) -> None:
        memory = make()
        assert memory.read(key) is None
        memory.write(key, value)
        assert (memory.read(key), memory.keys()) == (value, [key])
        assert memory.forget(key)
        assert not memory.forget(key)
        assert memory.read(key) is None

    def test_different_keys_have_different_values(self, make: Make) -> None:
        memory = make()
        for number, key in enumerate(KEYS):
            memory.write(key, b"%d" % number)
        assert [memory.read(key) for key in KEYS] == [b"%d" % number for number in range(len(KEYS))]

    def test_a_swap_needs_the_value_that_is_there(self, make: Make) -> None:
        memory = make()
        assert not memory.cas("a", b"one", b"two")
        assert memory.cas("a", None, b"one")
        assert not memory.cas("a", None, b"two")
        assert memory.read("a") == b"one"
        assert memory.cas("a", b"one", b"two")
        assert memory.read("a") == b"two"
        memory.write("empty", b"")
        assert not memory.cas("empty", None, b"x")
        assert memory.cas("empty", b"", b"x")

    def test_of_swaps_at_the_same_time_one_succeeds(self, make: Make) -> None:
        memory = make()
        memory.write("counter", b"0")

        def count(_: int) -> int:
            failures = 0
            while True:
                now = memory.read("counter")
                if memory.cas("counter", now, b"%d" % (int(now) + 1)):
                    return failures
                failures += 1

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(count, range(40)))
        assert memory.read("counter") == b"40"

    def test_an_entry_expires_exactly_when_its_time_is_over(self, make: Make) -> None:
        memory = make(ttl=10)
        memory.write("a", b"one")
        memory.clock.seconds = 5
        memory.write("b", b"two")
        memory.clock.seconds = 9
        assert (memory.read("a"), memory.read("b")) == (b"one", b"two")
        memory.clock.seconds = 10
        assert (memory.read("a"), memory.read("b"), memory.keys()) == (None, b"two", ["b"])
        assert not memory.forget("a")
        assert not memory.cas("a", b"one", b"x")
        memory.write("b", b"again")  # which resets its time
        memory.clock.seconds = 19
        assert memory.read("b") == b"again"
        memory.clock.seconds = 20
        assert memory.read("b") is None
        memory.write("c", b"three")
        assert memory.stats()["expirations"] == 2

    def test_what_is_due_goes_before_what_lives(self, make: Make) -> None:
        memory = make(capacity=2, ttl=10)
        memory.write("due", b"one")
        memory.clock.seconds = 9
        memory.write("live", b"two")
        memory.clock.seconds = 10
        assert memory.read("live") == b"two"
        memory.write("new", b"three")
        assert set(memory.keys()) == {"live", "new"}
        stats = memory.stats()
        assert (stats["evictions"], stats["expirations"], stats["size"]) == (0, 1, 2)

    def test_the_least_recently_used_entry_makes_room_while_the_clock_stands_still(self, make: Make) -> None:
        memory = make(capacity=3)
        for key in "abc":
            memory.write(key, b"value of " + key.encode())
        assert memory.read("a") is not None
        assert not memory.cas("b", b"another", b"x")  # which is no use
        memory.write("d", b"four")
        assert set(memory.keys()) == {"a", "c", "d"}
        assert memory.cas("c", b"value of c", b"swapped")
        memory.write("e", b"five")
        assert set(memory.keys()) == {"c", "d", "e"}
        memory.write("d", b"again")
        memory.write("f", b"six")
        assert set(memory.keys()) == {"d", "e", "f"}

    def test_the_least_important_entry_makes_room_first(self, make: Make) -> None:
        memory = make(capacity=3, evict="least important")
        memory.write("high", b"1", importance=0.9)
        memory.write("none", b"2")
        memory.write("low", b"3", importance=0.1)
        memory.write("new", b"4", importance=0.5)
        assert set(memory.keys()) == {"high", "low", "new"}
        memory.write("zero", b"5", importance=0.0)
        assert set(memory.keys()) == {"high", "new", "zero"}

    def test_a_value_that_no_eviction_makes_room_for_changes_nothing(self, make: Make) -> None:
        memory = make(capacity_bytes=300)
        memory.write("a", b"one")
        with pytest.raises((InvalidArgumentError, QuotaError)):
            memory.write("b", b"x" * 1000)
        assert (memory.read("a"), memory.keys()) == (b"one", ["a"])

    def test_a_capacity_in_bytes_is_kept(self, make: Make) -> None:
        memory = make(capacity_bytes=1000)
        for number in range(50):
            memory.write(f"key {number}", b"x" * 100)
            assert 0 < memory.stats()["bytes"] <= 1000
        assert memory.stats()["evictions"] == 50 - memory.stats()["size"] > 0
        assert memory.read("key 49") is not None

    @pytest.mark.parametrize(
        ("call", "argument"),
        [
            (lambda memory: memory.read(1), "key"),
            (lambda memory: memory.read("\ud800"), "key"),
            (lambda memory: memory.write("a", "text"), "value"),
            (lambda memory: memory.write("a", None), "value"),
            (lambda memory: memory.write("a", b"x", importance=2), "importance"),
            (lambda memory: memory.cas("a", "text", b"x"), "expected"),
            (lambda memory: memory.cas("a", None, "text"), "new"),
            (lambda memory: memory.subscribe(1), "key"),
            (lambda memory: memory.subscribe(kinds=["other"]), "kinds"),
            (lambda memory: memory.subscribe(queue=0), "queue"),
        ],
    )
    def test_an_invalid_argument_is_named_and_changes_nothing(
        self, make: Make, call: Callable[[Any], object], argument: str
    ) -> None:
        memory = make()
        memory.write("a", b"one")
        with pytest.raises(InvalidArgumentError) as raised:
            call(memory)
        assert raised.value.args[0] == argument
        assert memory.read("a") == b"one"


class TestEvents:
    def test_each_change_is_an_event_in_order(self, make: Make) -> None:
        memory = make(capacity=2, ttl=10)
        with memory.subscribe() as events:
            memory.write("a", b"one")
            memory.write("#b", b"two")
            assert not memory.cas("a", b"x", b"y")
            memory.write("c", b"\xff")
            memory.clock.seconds = 10
            memory.write("d", b"")
            assert memory.forget("d")
            found = drained(events, 9)
        events_seen = [(event.kind, event.key, event.size, event.value) for event in found]
        assert events_seen[:3] == [
            ("written", "a", 3, b"one"),
            ("written", "#b", 3, b"two"),
            ("cas_failed", "a", 0, None),
        ]
        assert events_seen[3:5] == [("evicted", "a", 3, None), ("written", "c", 1, b"\xff")]
        expired = {("expired", "#b", 3, None), ("expired", "c", 1, None)}
        assert set(events_seen[5:8]) == {*expired, ("written", "d", 0, b"")}
        assert events_seen[8] == ("forgotten", "d", 0, None)
        assert [event.seq for event in found] == sorted(event.seq for event in found)

    def test_the_events_of_a_key_and_of_some_kinds_can_be_chosen(self, make: Make) -> None:
        memory = make()
        with memory.subscribe("b") as of_key, memory.subscribe(kinds=["forgotten"]) as of_kind:
            for key in "abc":
                memory.write(key, b"value of " + key.encode())
                memory.forget(key)
            assert [(each.kind, each.key) for each in drained(of_key, 2)] == [("written", "b"), ("forgotten", "b")]
            assert [each.key for each in drained(of_kind, 3)] == ["a", "b", "c"]

    def test_an_entry_that_is_written_again_when_it_is_due_has_expired(self, make: Make) -> None:
        memory = make(ttl=5)
        with memory.subscribe() as events:
            memory.write("a", b"1")
            memory.clock.seconds = 10
            assert memory.cas("a", None, b"2")
            memory.forget("a")
            memory.write("a", b"3")
            events_seen = [(each.kind, each.value) for each in drained(events, 5)]
        assert events_seen == [
            ("written", b"1"),
            ("expired", None),
            ("written", b"2"),
            ("forgotten", None),
            ("written", b"3"),
        ]
        assert (memory.stats()["expirations"], memory.stats()["writes"]) == (1, 3)

    def test_the_same_value_again_is_an_event(self, make: Make) -> None:
        memory = make()
        with memory.subscribe("a") as events:
            for _ in range(3):
                memory.write("a", b"same")
            assert [each.value for each in drained(events, 3)] == [b"same"] * 3
        assert memory.stats()["writes"] == 3

    def test_a_slow_subscriber_learns_how_many_it_missed_and_reads_them_later(self, make: Make) -> None:
        memory = make()
        with memory.subscribe(queue=2) as slow, memory.subscribe() as quick:
            for number in range(7):
                memory.write("a", b"%d" % number)
            assert [each.value for each in drained(quick, 7)] == [b"%d" % number for number in range(7)]
            assert [each.value for each in drained(slow, 2)] == [b"0", b"1"]
            missed = slow.wait(30)
            assert isinstance(missed, Missed)
            assert missed.number == 5
            assert [each.value for each in memory.events(missed.since)] == [b"2", b"3", b"4", b"5", b"6"]
            memory.write("a", b"7")
            assert [each.value for each in drained(slow, 1)] == [b"7"]

    def test_a_subscription_that_is_closed_ends_and_delays_no_one(self, make: Make) -> None:
        memory = make()
        events = memory.subscribe()
        ended = threading.Event()

        def read() -> None:
            assert list(events) == []
            ended.set()

        thread = threading.Thread(target=read)
        thread.start()
        events.close()
        assert ended.wait(30)
        thread.join()
        memory.write("a", b"one")
        assert events.wait(0) is None

    def test_a_task_that_waits_takes_no_thread_and_is_cancelled_without_a_trace(self, make: Make) -> None:
        memory = make()

        async def many() -> list[Any]:
            subscriptions = [memory.subscribe("a") for _ in range(200)]
            before = threading.active_count()
            tasks = [asyncio.ensure_future(anext(each)) for each in subscriptions]
            await asyncio.sleep(0)
            assert threading.active_count() < before + 20  # others may begin meanwhile
            for task in tasks[::2]:
                task.cancel()
            memory.write("a", b"one")
            found = await asyncio.gather(*tasks, return_exceptions=True)
            for each in subscriptions:
                each.close()
            return found

        found = asyncio.run(many())
        assert all(isinstance(each, asyncio.CancelledError) for each in found[::2])
        assert [each.value for each in found[1::2]] == [b"one"] * 100


class Model:
    """A model of keyed memory: an ordered dictionary."""

    def __init__(self, capacity: int, ttl: int) -> None:
        self.capacity, self.ttl, self.now = capacity, ttl, 0
        self.entries: OrderedDict[str, tuple[bytes, int]] = OrderedDict()

    def sweep(self) -> None:
        for key in [each for each, (_, written) in self.entries.items() if self.now - written >= self.ttl]:
            del self.entries[key]

    def read(self, key: str) -> bytes | None:
        self.sweep()
        if key not in self.entries:
            return None
        self.entries.move_to_end(key)
        return self.entries[key][0]

    def write(self, key: str, value: bytes) -> None:
        self.sweep()
        self.entries.pop(key, None)
        while len(self.entries) >= self.capacity:
            self.entries.popitem(last=False)
        self.entries[key] = value, self.now

    def cas(self, key: str, expected: bytes | None, new: bytes) -> bool:
        self.sweep()
        if self.entries.get(key, (None, 0))[0] != expected:
            return False
        self.write(key, new)
        return True

    def forget(self, key: str) -> bool:
        self.sweep()
        return self.entries.pop(key, None) is not None


_KEYS, _VALUES = st.sampled_from("abcdef"), st.sampled_from([b"one", b"two", b"\xff"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), _KEYS),
        st.tuples(st.just("write"), _KEYS, _VALUES),
        st.tuples(st.just("cas"), _KEYS, st.none() | _VALUES, _VALUES),
        st.tuples(st.just("forget"), _KEYS),
        st.tuples(st.just("tick"), st.integers(0, 3)),
    ),
    max_size=40,
)


@pytest.mark.promise("keyed.exact")
@pytest.mark.parametrize("kind", ["shelf", "store", "loopback"])
@settings(max_examples=some(60))
@given(steps=STEPS, capacity=st.integers(1, 4), ttl=st.integers(1, 5))
def test_any_calls_have_the_results_of_an_ordered_dictionary(
    kind: str, steps: list[tuple[Any, ...]], capacity: int, ttl: int
) -> None:
    clock, model = Clock(), Model(capacity, ttl)
    memory: Any
    if kind == "shelf":
        memory = Shelf(capacity=capacity, ttl=ttl, now=lambda: clock.seconds)
    else:
        memory = OnStore(MemoryStore(), clock, loopback=kind == "loopback", ttl=ttl, capacity=capacity)
    try:
        for name, *arguments in steps:
            if name == "tick":
                clock.seconds += arguments[0]
                model.now = clock.seconds
            else:
                assert getattr(memory, name)(*arguments) == getattr(model, name)(*arguments), (name, arguments)
            model.sweep()
            assert sorted(memory.keys()) == sorted(model.entries)
    finally:
        memory.close()


class TestOnStores:
    @pytest.fixture(params=["memory", "sqlite", "loopback"])
    def memory(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[recollect.Memory]:
        store = SqliteStore(tmp_path / "a.db") if request.param == "sqlite" else MemoryStore()
        with memory_on(store, loopback=request.param == "loopback") as opened:
            yield opened

    def test_entries_lie_beside_the_records_and_belong_to_the_namespace(self, memory: recollect.Memory) -> None:
        memory.keyed.write("plan", b"go north with Ana")
        assert (memory.count(), memory.recall("north").hits, memory.namespaces()) == (0, (), ["default"])
        assert memory.namespace("other").keyed.read("plan") is None
        assert memory.scoped(user="ana").keyed.read("plan") is None

    def test_entries_of_a_scope_are_those_of_the_scope(self, memory: recollect.Memory) -> None:
        ana, bo = memory.scoped(user="ana").keyed, memory.scoped(user="bo").keyed
        with ana.subscribe() as events:
            for keyed, value in ((ana, b"of Ana"), (bo, b"of Bo")):
                keyed.write("plan", value)
                keyed.write("#", value)
            assert [each.value for each in drained(events, 2)] == [b"of Ana"] * 2
        assert (ana.read("plan"), bo.read("plan"), memory.keyed.read("plan")) == (b"of Ana", b"of Bo", None)
        assert ana.keys() == ["#", "plan"]
        assert ana.stats()["writes"] == 2
        assert [each.key for each in ana.events()] == ["plan", "#"]
        with pytest.raises(ScopeError):
            ana.set_limits(capacity=1)

    def test_former_values_are_in_the_history_until_they_are_erased(self, memory: recollect.Memory) -> None:
        for value in (b"one", b"two"):
            memory.keyed.by("agent 7", "a plan").write("a plan\n", value)
        memory.keyed.forget("a plan\n")
        versions = memory.keyed.history("a plan\n")
        assert [each.cause for each in versions] == ["written", "written", "forgotten"]
        assert versions[0].commit.actor == "agent 7"
        assert memory.keyed.history("other") == []
        assert memory.at(versions[0].commit.time).keyed.read("a plan\n") == b"one"
        assert memory.keyed.erase("a plan\n").versions == 2
        assert [each.value for each in memory.keyed.events()] == [None] * 3
        assert memory.check() == []

    def test_an_erasure_with_a_filter_reaches_them(self, memory: recollect.Memory) -> None:
        memory.scoped(user="ana").keyed.write("plan", b"a secret of Ana")
        assert memory.erase(f.user("ana")).parts == {"keys": 1}
        assert memory.scoped(user="ana").keyed.read("plan") is None

    def test_without_limits_of_their_own_they_count_towards_the_quota_of_the_namespace(
        self, memory: recollect.Memory
    ) -> None:
        memory.set_quota(records=2)
        memory.remember("a record")
        memory.keyed.write("a", b"one")
        with pytest.raises(QuotaError):
            memory.keyed.write("b", b"two")
        memory.keyed.set_limits(capacity=3)
        for key in "bcde":
            memory.keyed.write(key, b"two")
        assert memory.keyed.keys() == ["c", "d", "e"]
        memory.remember("another record")
        with pytest.raises(QuotaError):
            memory.remember("a third record")
        assert memory.execute(GetQuota()) == recollect.Quota(records=2)
        memory.keyed.set_limits()
        with pytest.raises(QuotaError):
            memory.keyed.write("f", b"two")

    def test_recall_finds_values_by_what_they_say(self, memory: recollect.Memory) -> None:
        memory.keyed.write("note-1", b"agent alpha proposed price 42")
        memory.keyed.write("note-2", b"agent beta accepted at 40")
        memory.keyed.write("note-3", b"\xff\xfe")
        memory.keyed.write("note-4", "договор подписан в Москве".encode())
        found = memory.keyed.recall("what did beta say about price?")
        assert (found[0].key, found[0].value) == ("note-2", b"agent beta accepted at 40")
        assert 0 < found[0].score <= 1
        assert [each.key for each in memory.keyed.recall("договор")] == ["note-4"]
        assert memory.keyed.recall("price", k=0) == []
        assert memory.keyed.recall("price", min_score=1.0) == []

    def test_a_write_within_a_batch_of_the_memory_is_refused(self, memory: recollect.Memory) -> None:
        with memory.batch(), pytest.raises(StoreBusyError):
            memory.keyed.write("a", b"one")

    def test_a_value_that_is_too_long_is_refused(self, memory: recollect.Memory) -> None:
        with pytest.raises((InvalidRecordError, RecollectError)):
            memory.keyed.write("a", b"x" * 2**26)
        assert memory.keyed.keys() == []

    def test_calls_can_be_awaited(self, memory: recollect.Memory) -> None:
        async def calls() -> None:
            keyed = recollect.AsyncMemory(memory).keyed
            events = await keyed.subscribe("a")
            await keyed.write("a", b"one")
            assert await keyed.read("a") == b"one"
            assert await keyed.cas("a", b"one", b"two")
            events_seen: list[Any] = [await anext(events) for _ in range(2)]
            assert [each.value for each in events_seen] == [b"one", b"two"]
            assert [each.key for each in await keyed.recall("two")] == ["a"]
            assert await keyed.forget("a")
            events.close()

        asyncio.run(calls())


@pytest.mark.promise("keyed.shared")
def test_two_processes_worth_of_memories_share_entries_limits_and_events(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as one, recollect.open(tmp_path / "a.db") as other:
        one.keyed.set_limits(capacity=3)
        with other.keyed.subscribe() as events:
            for number in range(5):
                (one, other)[number % 2].keyed.write(f"key {number}", b"%d" % number)
            assert [each.kind for each in drained(events, 7)].count("evicted") == 2
        assert one.keyed.keys() == other.keyed.keys() == ["key 2", "key 3", "key 4"]
        assert not one.keyed.cas("key 4", b"3", b"x")
        assert other.keyed.cas("key 4", b"4", b"x")
    with recollect.open(tmp_path / "a.db") as again:
        assert again.keyed.read("key 4") == b"x"
        again.keyed.write("key 5", b"5")
        assert again.keyed.keys() == ["key 3", "key 4", "key 5"]


def test_a_memory_that_is_dropped_with_a_subscription_is_closed(tmp_path: Path) -> None:
    memory = recollect.open(tmp_path / "a.db")
    memory.keyed.write("a", b"one")
    memory.keyed.subscribe()  # and it is not read
    memory.keyed.write("a", b"two")
    memory.close()
    with pytest.raises(RecollectError):
        memory.keyed.write("a", b"three")


@pytest.mark.files
def test_a_fault_in_a_write_leaves_the_former_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = recollect.open(tmp_path / "a.db")
    memory.keyed.write("a", b"one")
    with monkeypatch.context() as broken:
        broken.setattr(SqliteStore, "write", lambda *args, **options: (_ for _ in ()).throw(StoreIOError("a.db", "x")))
        with pytest.raises(StoreIOError):
            memory.keyed.write("a", b"two")
    assert memory.keyed.read("a") == b"one"


class TestShelf:
    def test_without_a_clock_time_is_the_number_of_writes(self) -> None:
        shelf = Shelf(ttl=2)
        shelf.write("a", b"1")
        shelf.write("b", b"2")
        assert shelf.read("a") == b"1"
        shelf.write("c", b"3")
        assert (shelf.read("a"), shelf.stats()["tick"]) == (None, 3)

    @pytest.mark.parametrize("name", ["capacity", "capacity_bytes", "ttl"])
    @pytest.mark.parametrize("value", [0, -1, True, "x", float("nan")])
    def test_an_invalid_limit_is_refused(self, name: str, value: Any) -> None:
        with pytest.raises(ValueError, match=name):
            Shelf(**{name: value})

    def test_many_overwrites_take_no_more_memory(self) -> None:
        shelf = Shelf(ttl=10**9, kept=10)
        for number in range(20_000):
            shelf.write("a", b"%d" % number)
        assert len(shelf._due) < 2000
        assert len(shelf.events()) == 10

    def test_there_is_no_recall_without_a_scorer(self) -> None:
        with pytest.raises(UnsupportedError):
            Shelf().recall("x")

    def test_a_clock_that_goes_back_expires_nothing_early(self) -> None:
        now = [100]
        shelf = Shelf(ttl=10, now=lambda: now[0])
        shelf.write("a", b"1")
        now[0] = 50
        shelf.write("b", b"2")
        now[0] = 60
        assert (shelf.read("a"), shelf.read("b")) == (b"1", None)


class TestMoments:
    def test_a_snapshot_shows_entries_as_they_were_when_it_was_made(self) -> None:
        for with_record in (True, False):
            memory = memory_on(MemoryStore(), clock=Clock())  # which stands still
            if with_record:
                memory.remember("a record")
            memory.keyed.write("p", b"A")
            snapshot = memory.snapshot("s")
            memory.keyed.write("p", b"B")
            for target in ("s", snapshot):
                assert memory.at(target).keyed.read("p") == b"A"
                assert memory.at(target).keyed.keys() == ["p"]
            assert memory.at(index=0).keyed.read("p") == b"A"

    def test_a_time_to_live_and_an_importance_can_be_removed(self) -> None:
        clock = Clock()
        keyed = memory_on(MemoryStore(), clock=clock).keyed
        keyed.write("a", b"1", ttl=10, importance=0.5)
        keyed.write("a", b"2")
        keyed.write("b", b"1", ttl=10)
        assert keyed.cas("b", b"1", b"2")
        clock.seconds = 100
        assert (keyed.read("a"), keyed.read("b")) == (b"2", b"2")
        assert keyed.history("a")[-1].record.importance is None  # type: ignore[union-attr]


class TestSubscribers:
    def test_what_was_written_before_is_not_for_a_later_subscriber(self) -> None:
        with memory_on(MemoryStore()) as memory:
            keyed = memory.keyed
            with keyed.subscribe("other"):
                for number in range(50):
                    keyed.write("a", b"before %d" % number)
                    with keyed.subscribe("a") as late:
                        keyed.write("a", b"after")
                        assert [each.value for each in drained(late, 1)] == [b"after"]

    def test_subscriptions_end_with_their_memory(self, tmp_path: Path) -> None:
        memory = recollect.open(tmp_path / "a.db")
        events = memory.keyed.subscribe()
        found: list[Any] = ["waits"]
        thread = threading.Thread(target=lambda: found.append(events.wait()))
        thread.start()
        memory.close()
        thread.join(30)
        assert found == ["waits", None]
        assert events.closed

    def test_events_come_once_and_in_order_while_others_come_and_go(self) -> None:
        with memory_on(MemoryStore()) as memory:
            keyed = memory.keyed
            for _ in range(15):
                first = keyed.subscribe()
                for number in range(100):
                    keyed.write("a", b"before %d" % number)
                closing = threading.Thread(target=first.close)
                closing.start()
                with keyed.subscribe() as events:
                    for number in range(20):
                        keyed.write("a", b"%d" % number)
                    assert [each.value for each in drained(events, 20)] == [b"%d" % number for number in range(20)]
                    assert events.take() is None
                closing.join()

    def test_subscriptions_that_come_and_go_leave_nothing_in_the_feed(self) -> None:
        with memory_on(MemoryStore()) as memory:
            for _ in range(20):
                memory.keyed.subscribe().close()
            assert not memory._executor.feed._subscribers

    @pytest.mark.parametrize("queue", [1, 2, 3])
    def test_what_is_missed_of_a_commit_is_read_again(self, queue: int) -> None:
        with memory_on(MemoryStore()) as memory:
            keyed = memory.keyed
            keyed.set_limits(capacity=1)
            keyed.write("a", b"0")
            with keyed.subscribe(queue=queue) as slow, keyed.subscribe() as quick:
                for number in range(1, 5):
                    keyed.write("ab"[number % 2], b"%d" % number)  # each one evicts the other
                every = drained(quick, 8)
                got = drained(slow, queue)
                missed = slow.wait(30)
                assert isinstance(missed, Missed)
                assert missed.number == 8 - queue
                assert sorted({*got, *keyed.events(missed.since)}) == sorted(every)

    @pytest.mark.parametrize("timeout", [float("nan"), -1, float("inf"), "1", True])
    def test_an_invalid_timeout_is_refused(self, timeout: Any) -> None:
        with Shelf().subscribe() as events, pytest.raises(InvalidArgumentError, match="timeout"):
            events.wait(timeout)


def test_the_order_of_uses_goes_on_after_a_restart_where_the_clock_stands_still(tmp_path: Path) -> None:
    clock = Clock()
    with recollect.open(tmp_path / "a.db", clock=clock) as memory:
        memory.keyed.set_limits(capacity=3)
        for key in "abc":
            memory.keyed.write(key, key.encode())
        for _ in range(50):
            memory.keyed.read("a")
    with recollect.open(tmp_path / "a.db", clock=clock) as memory:
        memory.keyed.read("b")
        memory.keyed.read("c")
        memory.keyed.write("d", b"d")
        assert memory.keyed.keys() == ["b", "c", "d"]


def test_keys_of_scopes_are_distinguished_from_outside() -> None:
    memory = memory_on(MemoryStore())
    memory.scoped(user="ana").keyed.write("@x", b"of Ana")
    memory.scoped(user="ana").keyed.write("plan", b"of Ana")
    memory.keyed.write("@x", b"of all")
    assert memory.keyed.keys() == ["@user=ana/@x", "@user=ana/plan", "@x"]
    assert memory.keyed.read("@x") == b"of all"
    assert memory.scoped(user="ana").keyed.keys() == ["@x", "plan"]


def test_a_scorer_that_raises_changes_nothing() -> None:
    class Fails:
        def put(self, key: str, value: bytes) -> None:
            if value == b"bad":
                raise ZeroDivisionError

        def drop(self, key: str) -> None: ...

        def find(self, query: str, k: int, min_score: float) -> list[tuple[str, float]]:
            return []

    shelf = Shelf(scorer=Fails(), capacity=2)
    shelf.write("a", b"good")
    with shelf.subscribe() as events, pytest.raises(ZeroDivisionError):
        shelf.write("a", b"bad")
    assert (shelf.read("a"), shelf.keys(), events.take()) == (b"good", ["a"], None)
