"""The network loses, delays, duplicates and reorders messages, and is parted and healed, as the scenario says."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from tests.sim.worlds import Broadcaster, Events, Talker, of_kind, scenario, trace_of

from recollect.errors import InvalidArgumentError, UnsupportedError
from recollect.sim import Agent, AgentContext, run, run_async


def received(events: Events) -> list[int]:
    """The numbers of the messages that arrived, in this order."""
    return [int(event["msg"].split()[1]) for event in of_kind(events, "receive")]


def with_failures(**failures: Any) -> Events:
    return trace_of(scenario(failures=failures), Talker)


def test_without_failures_each_message_arrives_once_a_tick_later_and_in_order() -> None:
    events = with_failures()
    assert received(events) == list(range(50))
    assert of_kind(events, "dropped") == []
    sent = {event["corr"]: event for event in of_kind(events, "send")}
    for event in of_kind(events, "receive"):
        assert sent[event["corr"]]["ts"] + 1 == event["ts"]


def test_a_drop_rate_of_1_lets_nothing_arrive_and_timers_go_on() -> None:
    events = with_failures(message_drop=1)
    assert of_kind(events, "receive") == []
    assert [event["why"] for event in of_kind(events, "dropped")] == ["drop"] * 50


def test_a_drop_rate_between_drops_about_that_part() -> None:
    lost = len(of_kind(with_failures(message_drop=0.4), "dropped"))
    assert 10 <= lost <= 30
    assert len(received(with_failures(message_drop=0.4))) == 50 - lost


def test_messages_have_the_fields_of_the_original() -> None:
    events = with_failures(message_drop=0.4)
    assert set(of_kind(events, "send")[0]) == {"agent", "corr", "kind", "msg", "size", "to", "ts"}
    assert set(of_kind(events, "receive")[0]) == {"agent", "corr", "from", "kind", "msg", "size", "ts"}
    assert set(of_kind(events, "dropped")[0]) == {"agent", "corr", "from", "kind", "msg", "size", "ts", "why"}
    assert set(of_kind(events, "start")[0]) == set(of_kind(events, "stop")[0]) == {"agent", "kind", "ts"}
    broadcast = of_kind(trace_of(scenario(3), Broadcaster), "broadcast")
    assert set(broadcast[0]) == {"agent", "corr", "kind", "msg", "size", "ts"}


def test_a_broadcast_reaches_all_others_under_one_number() -> None:
    events = trace_of(scenario(4), Broadcaster)
    for event in of_kind(events, "broadcast"):
        got = [each["agent"] for each in of_kind(events, "receive") if each["corr"] == event["corr"]]
        assert got == ["agent-1", "agent-2", "agent-3"]


def test_a_delay_is_within_its_limits_and_keeps_the_order() -> None:
    events = with_failures(message_delay={"least": 2, "most": 9})
    sent = {event["corr"]: event["ts"] for event in of_kind(events, "send")}
    delays = {event["ts"] - sent[event["corr"]] for event in of_kind(events, "receive")}
    assert min(delays) >= 2
    assert max(delays) <= 9
    assert len(delays) > 3
    assert received(events) == list(range(50))


def test_a_reordered_message_is_overtaken() -> None:
    numbers = received(with_failures(message_reorder=0.3))
    assert sorted(numbers) == list(range(50))
    assert numbers != list(range(50))


def test_a_duplicated_message_arrives_twice_under_one_number() -> None:
    events = with_failures(message_duplicate=1)
    assert len(of_kind(events, "send")) == 50
    assert sorted(received(events)) == sorted([*range(50), *range(50)])
    some = received(with_failures(message_duplicate=0.3))
    assert 50 < len(some) < 90
    assert set(some) == set(range(50))


def test_a_partition_parts_its_groups_and_heals() -> None:
    parted = {"groups": [["agent-0"], ["agent-1"]], "from": 10, "until": 20}
    events = with_failures(network_partition=parted)
    lost = of_kind(events, "dropped")
    assert {event["why"] for event in lost} == {"partition"}
    # What was sent at 9 arrives at 10, when the link is cut; what was sent at 19 arrives at 20, and was cut before.
    assert [event["ts"] for event in lost] == [float(time) for time in range(10, 21)]
    assert [event["ts"] for event in of_kind(events, "receive")][-1] == 51.0


def test_a_partition_without_an_end_never_heals_and_does_not_part_those_in_no_group() -> None:
    for_ever = with_failures(network_partition={"groups": [["agent-0"], ["agent-1"]]})
    assert of_kind(for_ever, "receive") == []
    other = with_failures(network_partition={"groups": [["agent-0"], []]})  # agent-1 is in no group
    assert of_kind(other, "dropped") == []
    assert of_kind(with_failures(network_partition={"groups": [["agent-0", "agent-1"], []]}), "dropped") == []


def test_several_partitions_follow_each_other() -> None:
    groups = [["agent-0"], ["agent-1"]]
    times = [{"groups": groups, "from": 5, "until": 7}, {"groups": groups, "from": 30, "until": 31}]
    lost = [event["ts"] for event in of_kind(with_failures(network_partition=times), "dropped")]
    assert lost == [5.0, 6.0, 7.0, 30.0, 31.0]


def test_a_crash_of_an_agent_that_follows_a_key_says_nothing_on_stderr() -> None:
    code = (
        "from recollect.sim import run; run({'name': 'x', 'agents': {'count': 4}, 'layers': {'memory': 'semantic'}, "
        "'task': {'type': 'memory_swarm'}, 'failures': {'crashes': [{'agent': 'worker-3', 'at': 3}]}})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_a_crash_stops_an_agent_and_a_restart_begins_again() -> None:
    crash = {"agent": "agent-1", "at": 10, "restart_after": 20}
    events = with_failures(crashes=[crash])
    assert [(event["kind"], event["ts"]) for event in of_kind(events, "crash", "restart")] == [
        ("crash", 10.0),
        ("restart", 30.0),
    ]
    # Crashes are queued before messages, so what arrives at 10 is lost, and what arrives at 30 is not.
    assert [event["ts"] for event in of_kind(events, "dropped")] == [float(time) for time in range(10, 30)]
    assert {event["why"] for event in of_kind(events, "dropped")} == {"down"}
    assert of_kind(events, "receive")[-1]["ts"] == 51.0


def test_a_crash_ends_the_timers_and_the_state_of_an_agent() -> None:
    forever = of_kind(with_failures(crashes=[{"agent": "agent-0", "at": 10}]), "send", "stop")
    assert [event["msg"] for event in forever if event["kind"] == "send"] == [f"message {each}" for each in range(9)]
    assert [event["agent"] for event in forever if event["kind"] == "stop"] == ["agent-1"]
    again = with_failures(crashes=[{"agent": "agent-0", "at": 10, "restart_after": 5}])
    assert [event["msg"] for event in of_kind(again, "send")][8:11] == ["message 8", "message 0", "message 1"]


def test_a_role_or_a_share_of_the_agents_crashes() -> None:
    by_role = trace_of(scenario(6, failures={"crashes": [{"role": "agent", "at": 3}]}), Talker)
    assert len(of_kind(by_role, "crash")) == 6
    by_share = trace_of(scenario(6, failures={"crashes": [{"share": 0.5, "at": 3}]}), Talker)
    assert len({event["agent"] for event in of_kind(by_share, "crash")}) == 3


def test_a_message_to_no_agent_is_lost() -> None:
    class Lost(Agent):
        async def on_start(self, ctx: AgentContext) -> None:
            await ctx.send("nobody", b"hello")

    events = trace_of(scenario(1), lambda _: Lost())
    assert [event["why"] for event in of_kind(events, "dropped")] == ["unknown"]


def test_the_duration_ends_a_run() -> None:
    result = run(scenario(duration="ticks: 10"), agents=Talker)
    assert (result.ended, result.time) == ("time", 10.0)
    assert run(scenario(), agents=Talker).ended == "quiet"


def test_agents_that_never_let_time_pass_are_an_error() -> None:
    class Echo(Agent):
        async def on_start(self, ctx: AgentContext) -> None:
            await ctx.schedule(0, b"again")

        async def on_message(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
            await ctx.schedule(0, b"again")

    from recollect.sim import engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_MOMENT", 1000)
        with pytest.raises(UnsupportedError, match="let messages take a tick"):
            run(scenario(1), agents=lambda _: Echo())


@pytest.mark.parametrize(
    ("delay", "payload", "name"), [(-1, b"x", "delay"), (1, "x", "payload"), (True, b"x", "delay")]
)
def test_a_wrong_timer_is_an_error(delay: Any, payload: Any, name: str) -> None:
    class Wrong(Agent):
        async def on_start(self, ctx: AgentContext) -> None:
            await ctx.schedule(delay, payload)

    with pytest.raises(InvalidArgumentError, match=name):
        run(scenario(1), agents=lambda _: Wrong())


def test_a_run_in_a_running_loop_is_awaited() -> None:
    async def both() -> None:
        with pytest.raises(UnsupportedError, match="run_async"):
            run(scenario(), agents=Talker)
        result = await run_async(scenario(), agents=Talker)
        assert result.counts["receive"] == 50

    asyncio.run(both())
