"""Killed servers: the short form of `torture.serving`, and what its check must not be blind to."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tests.examples import in_torture
from tests.server.serving import Served
from torture.run import run_part
from torture.serving import Call, Load, problem_in, stored_in

from recollect.operations import ExecuteBatch, Remember

FIELDS = {"kind": "conversation", "conversation": "c", "role": "user"}
TURNS = tuple(Remember(content=text, fields=FIELDS) for text in ("a", "b"))
WRITE = Call(ExecuteBatch(operations=TURNS), ("a", "b"), "k")
ANSWERED = replace(WRITE, answered=True)


@pytest.mark.promise("serve.killed")
@pytest.mark.promise("serve.once")
@in_torture
def test_a_killed_server_has_stored_what_it_acknowledged_and_nothing_twice() -> None:
    done = list(run_part("serve-kill", [1]))
    assert [trial for trial in done if trial.problem] == []
    assert any("in flight" in trial.where for trial in done)


@pytest.mark.parametrize(
    ("call", "stored", "problem"),
    [
        (ANSWERED, {"a": 1, "b": 1}, ""),
        (WRITE, {"a": 1, "b": 1}, ""),
        (WRITE, {}, ""),
        (ANSWERED, {}, "was acknowledged"),
        (ANSWERED, {"a": 1}, "was acknowledged"),
        (WRITE, {"b": 1}, "was not acknowledged"),
        (ANSWERED, {"a": 1, "b": 2}, "stored 2 times"),
        (WRITE, {"a": 2, "b": 2}, "stored 2 times"),
        (ANSWERED, {"a": 1, "b": 1, "c": 1}, "no call wanted it"),
    ],
)
def test_the_check_finds_what_is_lost_doubled_halved_or_foreign(
    call: Call, stored: dict[str, int], problem: str
) -> None:
    found = problem_in([call], Counter(stored))
    assert problem in found
    assert bool(found) is bool(problem)


@pytest.mark.files
@pytest.mark.parametrize("over", ["socket", "http"])
@pytest.mark.parametrize("keyed", [True, False])
def test_a_write_that_is_repeated_without_a_key_is_found_twice(served: Served, over: str, keyed: bool) -> None:
    load = Load(1, keyed=keyed)
    call = Call(ExecuteBatch(operations=TURNS), ("a", "b"), "k")
    with served.memory(over, retries=0) as memory:
        load.make(call, memory)  # as if this answer were lost
        load.make(call, memory)
    stored, problem = stored_in(served.path, [call])
    assert problem == ""
    assert ("stored 2 times" in problem_in([call], stored)) is not keyed


@pytest.mark.files
def test_an_answer_that_tells_of_another_position_is_found(served: Served) -> None:
    load, call = Load(1), Call(TURNS[0], ("a",), "k")
    with served.memory() as memory:
        load.make(call, memory)
    assert stored_in(served.path, [call])[1] == ""
    wrong = replace(call, positions=frozenset({("a", 7)}))
    assert "is not stored so" in stored_in(served.path, [wrong])[1]
