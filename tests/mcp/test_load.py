"""MCP servers under load: the short form of `torture.mcp`, and what its check must not be blind to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from tests.examples import in_torture
from torture.mcp_facts import Call, Fact, problem_in
from torture.run import run_part

ENTITY: Fact = ("entity", "Ana", "person")
FACTS = frozenset({ENTITY, ("observation", "Ana", "flies"), ("text", "a fact")})
ENTITIES = {"entities": [{"name": "Ana", "entityType": "person", "observations": ["flies"]}]}
CALLS = [
    Call("create_entities", ENTITIES, result={"structuredContent": ENTITIES}),
    Call("remember", {"content": "a fact"}, result={"structuredContent": {"status": "created"}}),
]


def shown(stored: Counter[Fact]) -> Counter[Fact]:
    return Counter({fact: times for fact, times in stored.items() if fact[0] != "text"})


@pytest.mark.promise("mcp.killed")
@in_torture
def test_a_killed_server_has_stored_what_it_acknowledged_and_nothing_twice() -> None:
    done = list(run_part("mcp-kill", [1]))
    assert [trial for trial in done if trial.problem] == []
    assert any("in flight" in trial.where for trial in done)


@pytest.mark.promise("mcp.shared")
@in_torture
def test_two_servers_with_four_clients_store_each_write_once() -> None:
    assert [trial for trial in run_part("mcp-shared", [1]) if trial.problem] == []


def test_the_check_accepts_what_was_acknowledged() -> None:
    stored = Counter(FACTS)
    assert problem_in(CALLS, stored, shown(stored)) == ""


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda stored: stored.subtract({ENTITY: -1}), "stored 2 times"),
        (lambda stored: stored.pop(ENTITY), "is not stored"),
        (lambda stored: stored.pop(("text", "a fact")), "is not stored"),
        (lambda stored: stored.update({("text", "another"): 1}), "no call wanted it"),
        (lambda stored: (stored.pop(ENTITY), stored.update({("entity", "Ana", "robot"): 1})), "no call wanted it"),
    ],
)
def test_the_check_finds_a_fact_that_was_removed_altered_or_doubled(
    change: Callable[[Counter[Fact]], object], problem: str
) -> None:
    stored = Counter(FACTS)
    change(stored)
    assert problem in problem_in(CALLS, stored, shown(stored))


def test_the_check_finds_half_a_call_two_claims_and_another_graph() -> None:
    half = Counter({ENTITY: 1})
    assert "in part" in problem_in([Call("create_entities", ENTITIES)], half, half)
    whole = Counter(FACTS)
    assert "new 2 times" in problem_in([*CALLS, CALLS[0]], whole, shown(whole))
    assert "differs" in problem_in(CALLS, whole, half)
    refused = Call("remember", {"content": "x"}, result={"isError": True, "content": [{"text": "busy"}]})
    assert "refused" in problem_in([*CALLS, refused], whole, shown(whole))
