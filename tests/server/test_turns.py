"""Turns: no client keeps others from being served, whatever it asks for. Calls block on events, so nothing is timed."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from heapq import heappop, heappush
from itertools import count
from queue import SimpleQueue
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.server.calls import THREADS
from recollect.server.threads import FairThreads, Waiting
from recollect.server.turns import MOST_DEBT_S, Turns

PATIENCE_S = 30.0


class Fifo:
    """The control: threads that serve first who comes first, and batches that begin at once."""

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count)

    def submit(self, waiting: Waiting) -> None:
        self._pool.submit(waiting.run)

    def close(self) -> None:
        self._pool.shutdown()


class Scenario:
    """Calls that end on request.

    Attributes:
        started: The clients whose calls have started, in this order.
    """

    def __init__(self, threads: Any) -> None:
        self.threads = threads
        self.started: SimpleQueue[Hashable] = SimpleQueue()
        self._gates: defaultdict[Hashable, list[threading.Event]] = defaultdict(list)

    def ask(self, client: Hashable) -> None:
        gate = threading.Event()
        self._gates[client].append(gate)

        def call() -> None:
            self.started.put(client)
            gate.wait(PATIENCE_S)

        self.threads.submit(Waiting(client, call))

    def end(self, client: Hashable) -> None:
        """Let the call of a client end that came first."""
        self._gates[client].pop(0).set()

    def next(self) -> Hashable:
        return self.started.get(timeout=PATIENCE_S)

    def close(self) -> None:
        for gates in self._gates.values():
            for gate in gates:
                gate.set()
        self.threads.close()


def ends_before(threads: Any, count: int) -> int:
    """Return how many calls must end before a small one of another client starts, if one has twice as many as fit."""
    scenario = Scenario(threads)
    try:
        for _ in range(2 * count):
            scenario.ask("worst")
        scenario.ask("small")
        running, ended = 0, 0
        while scenario.next() != "small":
            running += 1
            if running == count:
                scenario.end("worst")
                running, ended = running - 1, ended + 1
        return ended
    finally:
        scenario.close()


@pytest.mark.promise("serve.slow")
def test_a_small_call_waits_for_none_of_sixteen_of_another_client() -> None:
    assert ends_before(FairThreads(THREADS, "fair"), THREADS) == 0


def test_control_in_one_queue_it_waits_for_more_than_half_of_them() -> None:
    assert ends_before(Fifo(THREADS), THREADS) == THREADS + 1


def test_where_others_have_all_threads_a_call_of_a_third_client_is_the_next() -> None:
    scenario = Scenario(FairThreads(2, "fair"))
    for client in ("one", "two"):
        for _ in range(5):
            scenario.ask(client)
    assert {scenario.next(), scenario.next()} == {"one", "two"}
    scenario.ask("third")
    scenario.end("one")
    assert scenario.next() == "third"
    scenario.close()


def test_a_client_that_has_used_much_waits_for_those_that_have_used_little() -> None:
    used = iter([0.0, 5.0, *(each / 100 for each in range(1000))])  # the first call takes 5 s, each other 10 ms
    scenario = Scenario(FairThreads(1, "fair", spent=lambda: next(used)))
    scenario.ask("dear")
    scenario.ask("dear")
    assert scenario.next() == "dear"
    for _ in range(4):
        scenario.ask("cheap")
    order = []
    for ended in ("dear", "cheap", "cheap", "cheap", "cheap"):
        scenario.end(ended)
        order.append(scenario.next())
    assert order == ["cheap"] * 4 + ["dear"]
    scenario.close()


# The order itself


def taken(turns: Turns[int], cost_s: Callable[[Hashable], float], most: int) -> list[Hashable]:
    order: list[Hashable] = []
    while len(order) < most and (found := turns.take(lambda client, item: True)) is not None:
        order.append(found[0])
        turns.charge(found[0], cost_s(found[0]))
    return order


def test_clients_with_equal_calls_alternate_and_each_keeps_its_order() -> None:
    turns: Turns[int] = Turns(lambda: 0.0)
    for client in "aaabbc":
        turns.add(client, 0)
    assert taken(turns, lambda client: 0.0, 10) == list("abcaba")


def test_a_pause_saves_up_nothing_and_a_debt_is_limited_and_forgotten() -> None:
    now = 0.0
    turns: Turns[int] = Turns(lambda: now)
    for _ in range(200):
        turns.add("busy", 0)
    taken(turns, lambda client: 1.0, 100)
    for _ in range(200):
        turns.add("late", 0)
    assert sum(client == "late" for client in taken(turns, lambda client: 1.0, 20)) in (10, 11, 12)
    turns = Turns(lambda: now)
    turns.add("one", 0)
    taken(turns, lambda client: 10_000.0, 1)
    turns.add("one", 0)
    for _ in range(100):
        turns.add("other", 0)
    assert taken(turns, lambda client: 1.0, 100).index("one") <= MOST_DEBT_S + 1
    turns.add("two", 0)
    taken(turns, lambda client: 5.0, 200)
    now = 100.0
    turns.add("one", 0)
    turns.add("new", 0)
    assert taken(turns, lambda client: 1.0, 2) == ["one", "new"]


def waited_s(turns_of: Callable[[Callable[[], float]], Turns[str]], pause_s: float) -> float:
    """Return how long a client with a debt of ten seconds waits, up to 100 s, while twenty others keep a thread busy.

    Each of them makes a call of 50 ms, and the next one after a pause.
    """
    now = 0.0
    turns = turns_of(lambda: now)
    turns.charge("in debt", MOST_DEBT_S)
    turns.add("in debt", "call")
    coming = [(0.0, f"{number:02}") for number in range(20)]
    while now < 100:
        while coming and coming[0][0] <= now:
            turns.add(heappop(coming)[1], "call")
        found = turns.take(lambda client, item: True)
        if found is None:
            now = coming[0][0]
        elif found[0] == "in debt":
            return now
        else:
            now += 0.05
            turns.charge(found[0], 0.05)
            heappush(coming, (now + pause_s, str(found[0])))
    return now


@pytest.mark.promise("serve.slow")
@pytest.mark.parametrize("pause_s", [0.0, 0.03, 0.2, 0.5])
def test_a_client_that_has_used_much_waits_as_long_as_that_whatever_others_do(pause_s: float) -> None:
    assert waited_s(Turns, pause_s) <= MOST_DEBT_S + 20 * 0.05


def test_control_a_debt_that_a_waiting_client_keeps_excludes_it() -> None:
    class Keeping(Turns[str]):
        """Its lines go on with the time, so that who waits is always as far in debt as when it came."""

        def take(self, ready: Callable[[Hashable, str], bool | None]) -> tuple[Hashable, str] | None:
            for client, line in self._lines.items():
                line.free_s = max(line.free_s, self._free_now() + MOST_DEBT_S * (client == "in debt"))
                self._push(client, line)
            return super().take(ready)

    assert waited_s(Keeping, 0.2) >= 100


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("+-c"), st.floats(0, 20))))
def test_every_item_is_taken_once_in_the_order_of_its_client(steps: list[tuple[str, str, float]]) -> None:
    turns: Turns[int] = Turns(count().__next__)
    model: dict[str, list[int]] = defaultdict(list)
    for number, (client, kind, seconds) in enumerate(steps):
        if kind == "+":
            turns.add(client, number)
            model[client].append(number)
        elif kind == "c":
            turns.charge(client, seconds)
        elif model[client] and number % 2:
            assert turns.remove(client, model[client].pop())
        elif any(model.values()):
            found = turns.take(lambda client, item: client != "d")
            if found is None:
                assert not any(items for client, items in model.items() if client != "d")
            else:
                assert model[str(found[0])].pop(0) == found[1]
    assert len(turns) == sum(map(len, model.values()))
    while (found := turns.take(lambda client, item: True)) is not None:
        assert model[str(found[0])].pop(0) == found[1]
    assert not any(model.values())
    assert len(turns) == 0


# Batches


class Batches:
    """Batches that begin when it is their turn, and writes, each noted when it starts."""

    def __init__(self, threads: Any) -> None:
        self.threads = threads
        self.started: SimpleQueue[str] = SimpleQueue()

    def add(self, client: str, *, is_batch: bool) -> Waiting:
        waiting = Waiting(client, lambda: self.started.put(client), is_batch=is_batch)
        self.threads.submit(waiting)
        return waiting

    def next(self) -> str:
        return self.started.get(timeout=PATIENCE_S)


def test_a_write_of_another_client_comes_before_the_next_batches_of_one() -> None:
    now = 0.0
    batches = Batches(FairThreads(4, "fair", clock=lambda: now))
    open_one = batches.add("loop", is_batch=True)
    assert batches.next() == "loop"
    more = [batches.add("loop", is_batch=True) for _ in range(5)]
    for _ in range(3):
        batches.add("bob", is_batch=False)
    assert batches.started.empty()
    now = 5.0
    batches.threads.end(open_one)
    assert [batches.next() for _ in range(3)] == ["bob"] * 3
    for each in more:
        assert batches.next() == "loop"
        batches.threads.end(each)
        batches.threads.end(each)  # twice: nothing happens
    assert batches.threads.batches_of("loop") == 0


def test_control_batches_that_begin_at_once_are_all_before_the_write() -> None:
    batches = Batches(Fifo(1))
    for client in ("loop", "loop", "loop", "bob"):
        batches.add(client, is_batch=client == "loop")
    assert [batches.next() for _ in range(4)] == ["loop", "loop", "loop", "bob"]


def test_batches_of_different_clients_take_turns_and_one_that_is_withdrawn_never_begins() -> None:
    batches = Batches(FairThreads(4, "fair", clock=lambda: 0.0))
    waiting = {client: batches.add(client, is_batch=True) for client in "abc"}
    again = batches.add("a", is_batch=True)
    assert batches.threads.withdraw(waiting["b"])
    assert not batches.threads.withdraw(waiting["b"])
    assert not batches.threads.withdraw(waiting["a"])
    order = []
    for each in (waiting["a"], waiting["c"], again):
        order.append(batches.next())
        batches.threads.end(each)
    assert order == ["a", "c", "a"]
    assert [batches.threads.batches_of(client) for client in "abc"] == [0, 0, 0]
