"""Values within a memory budget: what stays, and what is counted."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from recollect.engine.follower import Budget


@dataclass(eq=False)
class Value:
    nbytes: int


def test_the_least_recently_used_value_is_evicted_first() -> None:
    budget: Budget[str, Value] = Budget(30)
    for key in "abc":
        put(budget, key, 10)
    assert budget.get("a") is not None
    put(budget, "d", 10)
    assert [key for key in "abcd" if key in budget] == ["a", "c", "d"]
    assert budget.nbytes == 30


def test_one_value_stays_whatever_its_size() -> None:
    budget: Budget[str, Value] = Budget(10)
    put(budget, "a", 5)
    put(budget, "b", 1000)
    assert ("a" in budget, "b" in budget, budget.nbytes) == (False, True, 1000)


def test_a_value_that_was_evicted_is_not_counted_any_more() -> None:
    budget: Budget[str, Value] = Budget(10)
    first = put(budget, "a", 10)
    put(budget, "b", 10)
    first.nbytes = 1000
    budget.count("a", first)
    assert (len(budget), budget.nbytes) == (1, 10)


def test_a_value_that_replaces_another_is_counted_in_its_stead() -> None:
    budget: Budget[str, Value] = Budget(100)
    first = put(budget, "a", 10)
    second = put(budget, "a", 20)
    first.nbytes = 90
    budget.count("a", first)
    assert (budget.get("a"), budget.nbytes) == (second, 20)


STEPS = st.lists(
    st.tuples(st.sampled_from(["get", "put", "count", "drop"]), st.integers(0, 4), st.integers(0, 60)), max_size=40
)


@given(STEPS)
def test_the_values_and_their_sum_are_those_of_an_obvious_model(steps: list[tuple[str, int, int]]) -> None:
    budget: Budget[int, Value] = Budget(50)
    model: OrderedDict[int, Value] = OrderedDict()
    for step, key, nbytes in steps:
        if step == "get":
            assert budget.get(key) is model.get(key)
            if key in model:
                model.move_to_end(key)
        elif step == "drop":
            budget.drop(key)
            model.pop(key, None)
        elif step == "put":
            model.pop(key, None)
            model[key] = Value(nbytes)
            budget.put(key, model[key])
        elif key in model:
            model[key].nbytes = nbytes
            budget.count(key, model[key])
        while sum(value.nbytes for value in model.values()) > 50 and len(model) > 1:
            model.popitem(last=False)
        assert [each for each in range(5) if each in budget] == sorted(model)
        assert (len(budget), budget.nbytes) == (len(model), sum(value.nbytes for value in model.values()))
    budget.clear()
    assert (len(budget), budget.nbytes) == (0, 0)


def test_the_sum_stays_right_while_many_threads_put_and_count() -> None:
    budget: Budget[int, Value] = Budget(100)
    start = threading.Barrier(4)

    def work(number: int) -> None:
        start.wait(60)
        for at in range(2000):
            key = (at * 7 + number) % 23
            value = budget.get(key)
            if value is None:
                value = Value(at % 30)
                budget.put(key, value)
            budget.count(key, value)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = [value for key in range(23) if (value := budget.get(key)) is not None]
    assert budget.nbytes == sum(value.nbytes for value in values) <= 100


def put(budget: Budget[str, Value], key: str, nbytes: int) -> Value:
    value = Value(nbytes)
    budget.put(key, value)
    return value
