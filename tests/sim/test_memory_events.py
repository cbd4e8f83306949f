"""Memory events say what happened to which key, by versions and sizes, and never contain a value."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any

import pytest
from tests.sim.worlds import Events, of_kind, scenario, trace_of

from recollect.compat.nest import Blackboard, SemanticMemory
from recollect.errors import UnsupportedError
from recollect.sim import Agent, AgentContext, Seat, run
from recollect.sim.trace import MEMORY_KINDS

Act = Callable[[AgentContext], Any]


def acting(*acts: Act) -> Callable[[Seat], Agent]:
    """An agent that does one thing each tick."""

    class Actor(Agent):
        async def on_start(self, ctx: AgentContext) -> None:
            for number in range(len(acts)):
                await ctx.schedule(number, b"%d" % number)

        async def on_message(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
            await acts[int(payload)](ctx)

    return lambda _: Actor()


def memory_events(layer: Any, *acts: Act, **options: Any) -> Events:
    events = trace_of(scenario(1, layers={"memory": layer}), acting(*acts), **options)
    return of_kind(events, *MEMORY_KINDS)


def brief(events: Events, *fields: str) -> list[tuple[Any, ...]]:
    return [tuple(event.get(field) for field in ("kind", "key", *fields)) for event in events]


def test_a_read_has_the_version_of_the_write_whose_value_it_returns() -> None:
    events = memory_events(
        "blackboard",
        lambda ctx: ctx.memory.read("a"),
        lambda ctx: ctx.memory.write("a", b"one"),
        lambda ctx: ctx.memory.write("b", b"two"),
        lambda ctx: ctx.memory.write("a", b"three"),
        lambda ctx: ctx.memory.read("a"),
        lambda ctx: ctx.memory.read("b"),
        lambda ctx: ctx.memory.write("a", b"one"),
        lambda ctx: ctx.memory.read("a"),
    )
    assert brief(events, "version", "size") == [
        ("read", "a", 0, 0),
        ("written", "a", 1, 3),
        ("written", "b", 2, 3),
        ("written", "a", 3, 5),
        ("read", "a", 3, 5),
        ("read", "b", 2, 3),
        ("written", "a", 4, 3),
        ("read", "a", 4, 3),
    ]
    assert [event["seq"] for event in events] == list(range(1, 9))
    assert set(events[0]) == {"agent", "key", "kind", "seq", "size", "ts", "version"}


def test_a_read_of_what_no_one_wrote_has_version_minus_1() -> None:
    class Inventing(Blackboard):
        async def read(self, key: str) -> bytes | None:
            return b"invented"

    events = memory_events("blackboard", lambda ctx: ctx.memory.read("a"), memory=Inventing)
    assert brief(events, "version", "size") == [("read", "a", -1, 8)]


def test_large_values_are_distinguished() -> None:
    one, other = b"x" * 1000 + b"1", b"x" * 1000 + b"2"
    events = memory_events(
        "blackboard",
        lambda ctx: ctx.memory.write("a", one),
        lambda ctx: ctx.memory.cas("a", other, b"no"),
        lambda ctx: ctx.memory.cas("a", one, other),
        lambda ctx: ctx.memory.read("a"),
    )
    assert brief(events, "version", "was", "cas") == [
        ("written", "a", 1, None, None),
        ("cas_failed", "a", None, -1, None),
        ("written", "a", 2, 1, True),
        ("read", "a", 2, None, None),
    ]


def test_a_swap_says_which_version_it_expected() -> None:
    events = memory_events(
        "blackboard",
        lambda ctx: ctx.memory.cas("a", None, b"1"),
        lambda ctx: ctx.memory.cas("a", None, b"2"),
        lambda ctx: ctx.memory.cas("a", b"1", b"3"),
        lambda ctx: ctx.memory.cas("a", b"1", b"4"),
    )
    assert brief(events, "version", "was") == [
        ("written", "a", 1, 0),
        ("cas_failed", "a", None, 0),
        ("written", "a", 2, 1),
        ("cas_failed", "a", None, 1),
    ]


def test_a_recall_has_a_line_for_each_hit_or_one_for_none() -> None:
    events = memory_events(
        "semantic",
        lambda ctx: ctx.memory.recall("apples", 3),
        lambda ctx: ctx.memory.write("a", b"apples bananas"),
        lambda ctx: ctx.memory.write("b", b"apples oranges pears"),
        lambda ctx: ctx.memory.write("c", b"unrelated zebra giraffe"),
        lambda ctx: ctx.memory.recall("apples", 3),
    )
    hits = of_kind(events, "recalled")
    assert brief(hits, "rank", "version", "size_of_query") == [
        ("recalled", "", 0, 0, 6),
        ("recalled", "b", 1, 2, 6),
        ("recalled", "a", 2, 1, 6),
        ("recalled", "c", 3, 3, 6),
    ]
    scores = [event["score"] for event in hits]  # the specification's
    assert scores == pytest.approx([0.0, 0.6598288790738581, 0.6416889479197478, 0.16116459280507603], abs=1e-12)


def test_an_eviction_and_an_expiration_come_before_the_call_that_caused_them() -> None:
    events = memory_events(
        {"use": "semantic", "capacity": 2, "ttl": 3},
        lambda ctx: ctx.memory.write("a", b"1"),
        lambda ctx: ctx.memory.write("b", b"22"),
        lambda ctx: ctx.memory.write("c", b"3"),
        lambda ctx: ctx.memory.forget("c"),
        lambda ctx: ctx.memory.read("b"),
        lambda ctx: ctx.memory.forget("b"),
    )
    assert brief(events, "agent", "ts", "size", "version", "written_at") == [
        ("written", "a", "agent-0", 0.0, 1, 1, None),
        ("written", "b", "agent-0", 1.0, 2, 2, None),
        ("evicted", "a", "", 2.0, 1, 1, 0.0),
        ("written", "c", "agent-0", 2.0, 1, 3, None),
        ("forgotten", "c", "agent-0", 3.0, 1, 3, None),
        ("expired", "b", "", 4.0, 2, 2, 1.0),
        ("read", "b", "agent-0", 4.0, 0, 0, None),
    ]


def test_the_plugin_has_the_virtual_clock() -> None:
    events = memory_events(
        {"use": "semantic", "ttl": 2},
        lambda ctx: ctx.memory.write("a", b"1"),
        lambda ctx: ctx.memory.read("a"),
        lambda ctx: ctx.memory.read("a"),
    )
    # By the plugin's own clock, which counts writes, it would never expire.
    assert brief(events, "ts", "version")[1:] == [
        ("read", "a", 1.0, 1),
        ("expired", "a", 2.0, 1),
        ("read", "a", 2.0, 0),
    ]


def test_an_instance_for_each_agent_keeps_them_apart_and_says_whose_entry_went() -> None:
    layer = {"use": "semantic", "capacity": 1, "per_agent": True}
    acts = acting(
        lambda ctx: ctx.memory.write("shared", ctx.stamp("mine")),
        lambda ctx: ctx.memory.read("shared"),
        lambda ctx: ctx.memory.write("other", ctx.stamp("more")),
    )
    events = trace_of(scenario(2, layers={"memory": layer}), acts)
    assert events[0]["per_agent"] is True
    assert brief(of_kind(events, "read"), "agent", "version") == [
        ("read", "shared", "agent-0", 1),
        ("read", "shared", "agent-1", 2),
    ]
    assert brief(of_kind(events, "evicted"), "owner") == [
        ("evicted", "shared", "agent-0"),
        ("evicted", "shared", "agent-1"),
    ]


def test_an_instance_for_each_agent_gets_its_id_by_position() -> None:
    made: list[tuple[Any, ...]] = []

    class Noting(SemanticMemory):
        def __init__(self, *ids: Any, **options: Any) -> None:
            made.append((ids, sorted(options)))
            super().__init__(*ids, **options)

    layer = {"use": "semantic", "per_agent": True, "evict": "least recent"}
    run(scenario(2, layers={"memory": layer}), agents=lambda _: Agent(), memory=Noting)
    assert made == [(("agent-0",), ["evict"]), (("agent-1",), ["evict"])]


class Following(Agent):
    """The first agent writes, the others follow what it writes."""

    def __init__(self, seat: Seat, seen: list[tuple[str, bytes]]) -> None:
        self._seat = seat
        self._seen = seen

    async def on_start(self, ctx: AgentContext) -> None:
        if self._seat.index == 0:
            for delay in (1, 2, 3):
                await ctx.schedule(delay, b"write")
            return
        async for value in ctx.memory.subscribe("a"):
            self._seen.append((ctx.agent_id, value))

    async def on_message(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
        await ctx.memory.write("a", b"%d" % ctx.time)


class OnlyProtocol:
    """A plugin that is not on a shelf, and has only the protocol."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    async def read(self, key: str) -> bytes | None:
        return self._values.get(key)

    async def write(self, key: str, value: bytes) -> None:
        self._values[key] = value

    async def cas(self, key: str, expected: bytes | None, new: bytes) -> bool:
        if self._values.get(key) != expected:
            return False
        self._values[key] = new
        return True

    async def subscribe(self, key: str) -> AsyncIterator[bytes]:
        raise AssertionError("the simulator passes values on itself")
        yield b""


@pytest.mark.parametrize("plugin", [None, OnlyProtocol])
def test_subscribers_get_each_value_at_the_time_of_its_write_until_they_crash(plugin: Any) -> None:
    seen: list[tuple[str, bytes]] = []
    crash = {"agent": "agent-1", "at": 3}
    events = trace_of(scenario(3, failures={"crashes": [crash]}), lambda seat: Following(seat, seen), memory=plugin)
    assert seen == [
        ("agent-1", b"1"),
        ("agent-2", b"1"),
        ("agent-1", b"2"),
        ("agent-2", b"2"),
        ("agent-2", b"3"),
    ]
    assert [(each["agent"], each["ts"], each["version"]) for each in of_kind(events, "notified")] == [
        ("agent-1", 1.0, 1),
        ("agent-2", 1.0, 1),
        ("agent-1", 2.0, 2),
        ("agent-2", 2.0, 2),
        ("agent-2", 3.0, 3),
    ]


def test_a_plugin_may_let_others_go_first() -> None:
    class Yielding(OnlyProtocol):
        async def write(self, key: str, value: bytes) -> None:
            await asyncio.sleep(0)
            await super().write(key, value)

    acts = acting(lambda ctx: ctx.memory.write("a", b"1"), lambda ctx: ctx.memory.read("a"))
    events = of_kind(trace_of(scenario(2), acts, memory=Yielding), *MEMORY_KINDS)
    assert brief(events, "agent", "ts") == [
        ("written", "a", "agent-0", 0.0),
        ("written", "a", "agent-1", 0.0),
        ("read", "a", "agent-0", 1.0),
        ("read", "a", "agent-1", 1.0),
    ]


def test_an_agent_that_waits_for_no_future_is_an_error() -> None:
    class Odd:
        def __await__(self) -> Generator[str, None, None]:
            yield "odd"

    async def wait(ctx: AgentContext) -> None:
        await Odd()

    with pytest.raises(UnsupportedError, match="the agent agent-0: waits for something that is no future"):
        run(scenario(1), agents=acting(wait))


@pytest.mark.parametrize("call", ["recall", "forget"])
def test_a_plugin_without_a_call_says_so(call: str) -> None:
    acts = acting(lambda ctx: getattr(ctx.memory, call)("a"))
    with pytest.raises(UnsupportedError, match=call):
        run(scenario(1), agents=acts, memory=OnlyProtocol)


def test_an_agent_uses_memory_as_a_plugin_of_the_original() -> None:
    acts = acting(lambda ctx: ctx.plugins["memory"].write("a", b"1"))
    assert brief(of_kind(trace_of(scenario(1), acts), "written")) == [("written", "a")]


def test_no_memory_event_contains_a_value() -> None:
    secret = "zanzibar"
    value = secret.encode()
    acts = acting(
        lambda ctx: ctx.memory.write("a", value),
        lambda ctx: ctx.memory.read("a"),
        lambda ctx: ctx.memory.recall(secret, 3),
        lambda ctx: ctx.memory.write("a", value),
        lambda ctx: ctx.memory.cas("a", value, value + b"2"),
        lambda ctx: ctx.memory.cas("a", value, value + b"3"),
        lambda ctx: ctx.memory.write("b", value),
        lambda ctx: ctx.memory.forget("b"),
        lambda ctx: ctx.memory.write("c", value),
        lambda ctx: ctx.memory.read("a"),
        lambda ctx: ctx.memory.read("c"),
        lambda ctx: ctx.memory.read("c"),
    )
    layer = {"use": "semantic", "capacity": 1, "ttl": 3}
    events = trace_of(scenario(1, layers={"memory": layer}), acts)
    found = of_kind(events, *MEMORY_KINDS)
    assert {event["kind"] for event in found} >= {
        "written",
        "read",
        "recalled",
        "forgotten",
        "cas_failed",
        "expired",
        "evicted",
    }
    assert secret not in json.dumps(found)
    known = {"agent", "key", "kind", "seq", "size", "ts", "version", "was", "cas", "rank", "score", "size_of_query"}
    assert {field for event in found for field in event} <= known | {"written_at"}


def test_the_header_says_what_validators_need() -> None:
    layer = {"use": "semantic", "capacity": 3, "capacity_bytes": 100, "ttl": 5, "evict": "least recent"}
    header = trace_of(scenario(2, layers={"memory": layer}, seed=9), lambda _: Agent())[0]
    assert header == {
        "byzantine": [],
        "kind": "scenario",
        "limits": {"capacity": 3, "capacity_bytes": 100, "ttl": 5},
        "memory": "semantic",
        "name": "test",
        "per_agent": False,
        "roles": {"agent-0": "agent", "agent-1": "agent"},
        "seed": 9,
        "task": "marketplace",
        "ticks": 10000,
        "ts": 0.0,
    }
