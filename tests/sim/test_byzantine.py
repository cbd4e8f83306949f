"""Each Byzantine behaviour is seen in the trace, and in no trace without it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tests.sim.worlds import Broadcaster, Events, of_kind, scenario, trace_of

from recollect.sim import Agent, AgentContext, Seat, run


class Gossip(Agent):
    """Says its own message to the next agent each tick, asks memory a question, and says something to all."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._left = 8

    async def on_start(self, ctx: AgentContext) -> None:
        await ctx.schedule(1, b"go")

    async def on_message(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
        if sender == ctx.agent_id and self._left:
            self._left -= 1
            others = self._seat.others("agent")
            await ctx.send(others[self._seat.index % len(others)], f"fact {ctx.agent_id} apples".encode())
            await ctx.broadcast(b"the price is 42")
            await ctx.memory.recall("what is the price of apples?", 2)
            await ctx.memory.write(f"own:{ctx.agent_id}", ctx.stamp("apples"))
            await ctx.schedule(1, b"go")


def with_liars(*behaviours: str, share: float = 0.5) -> Events:
    failures: dict[str, Any] = {"byzantine_agents": share, "byzantine": {"behaviours": list(behaviours)}}
    return trace_of(scenario(4, failures=failures, layers={"memory": "semantic"}), Gossip)


def by(events: Events, liars: bool, *kinds: str) -> Events:
    byzantine = events[0]["byzantine"]
    return [event for event in of_kind(events, *kinds) if (event["agent"] in byzantine) == liars]


def test_the_share_of_byzantine_agents_is_that_of_the_scenario_and_at_least_one() -> None:
    assert len(with_liars("lie")[0]["byzantine"]) == 2
    assert len(with_liars("lie", share=0.01)[0]["byzantine"]) == 1
    assert with_liars("lie", share=0)[0]["byzantine"] == []
    assert run(scenario(4, failures={"byzantine_agents": 1}), agents=Gossip_without_recall).byzantine == tuple(
        f"agent-{each}" for each in range(4)
    )


def Gossip_without_recall(seat: Seat) -> Agent:  # noqa: N802 - it stands for a class
    return Broadcaster(seat)


def test_a_liar_sends_something_else_and_an_honest_agent_does_not() -> None:
    events = with_liars("lie")
    for event in by(events, True, "send"):
        assert event["msg"] != f"fact {event['agent']} apples"
    for event in by(events, True, "broadcast"):
        assert event["msg"] != "the price is 42"
    for event in by(events, False, "send"):
        assert event["msg"] == f"fact {event['agent']} apples"


def test_an_equivocator_says_something_else_to_each_receiver() -> None:
    events = with_liars("equivocate")
    heard = defaultdict(set)
    for event in of_kind(events, "receive"):
        heard[event["corr"]].add(event["msg"])
    reported = [len(heard[event["corr"]]) for event in by(events, True, "broadcast")]
    assert max(reported) == 3
    assert {len(heard[event["corr"]]) for event in by(events, False, "broadcast")} == {1}
    assert {event["msg"] for event in by(events, True, "send")} <= {
        f"fact {each} apples" for each in events[0]["roles"]
    }


def test_a_replayer_sends_messages_of_others_again() -> None:
    events = with_liars("replay")
    others = [event for event in by(events, True, "send") if event["agent"] not in event["msg"]]
    assert others
    before = {event["msg"] for event in of_kind(events, "receive")}
    assert {event["msg"] for event in others} <= before
    assert [event for event in by(events, False, "send") if event["agent"] not in event["msg"]] == []


def test_a_flooder_writes_junk_under_new_keys() -> None:
    events = with_liars("flood")
    junk = [event["key"] for event in of_kind(events, "written") if event["key"].startswith("junk:")]
    assert len(junk) > 50
    assert len(set(junk)) == len(junk)
    assert {key.split(":")[1] for key in junk} == set(events[0]["byzantine"])
    assert [event for event in by(events, False, "written") if not event["key"].startswith("own:")] == []


def test_poison_displaces_what_is_true_with_the_words_of_the_question() -> None:
    def first_hits(events: Events) -> set[str]:
        return {event["key"].split(":")[0] for event in by(events, False, "recalled") if event["rank"] == 1}

    events = with_liars("poison")
    poison = {event["key"] for event in of_kind(events, "written") if event["key"].startswith("poison:")}
    assert 0 < len(poison) <= 2 * 4  # two agents keep four false answers each
    assert "poison" in first_hits(events)
    assert first_hits(with_liars("lie")) == {"own"}


def test_a_byzantine_agent_without_memory_events_of_its_own_still_runs_its_task() -> None:
    events = with_liars("lie", "equivocate", "replay", "flood", "poison", share=1)
    assert len([event for event in of_kind(events, "written") if event["key"].startswith("own:")]) == 32
