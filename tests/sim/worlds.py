"""Parts that the tests of the simulator share: small scenarios, agents for them, and the events of a run."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

from recollect.sim import Agent, AgentContext, Seat, run

Events = list[dict[str, Any]]


def scenario(count: int = 2, **fields: Any) -> dict[str, Any]:
    """A scenario of a number of agents, "agent-0" and so on."""
    return {"name": "test", "agents": {"count": count}, **fields}


def trace_of(data: dict[str, Any], make: Callable[[Seat], Agent] | None = None, **options: Any) -> Events:
    """Run a scenario, and return the events of its trace."""
    file = io.StringIO()
    run(data, trace=file, agents=make, **options)
    return [json.loads(line) for line in file.getvalue().splitlines()]


def of_kind(events: Events, *kinds: str) -> Events:
    return [event for event in events if event["kind"] in kinds]


class Talker(Agent):
    """The first agent says "message N" to the second one, one each tick."""

    def __init__(self, seat: Seat, count: int = 50) -> None:
        self._seat = seat
        self._count = count
        self._sent = 0

    async def on_start(self, ctx: AgentContext) -> None:
        if self._seat.index == 0:
            await ctx.schedule(1, b"say")

    async def on_message(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
        if sender == ctx.agent_id and self._sent < self._count:
            await ctx.send("agent-1", b"message %d" % self._sent)
            self._sent += 1
            await ctx.schedule(1, b"say")


class Broadcaster(Agent):
    """The first agent says something to all others, each tick."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._left = 10 if seat.index == 0 else 0

    async def on_start(self, ctx: AgentContext) -> None:
        await ctx.schedule(1, b"say")

    async def on_message(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
        if sender == ctx.agent_id and self._left:
            self._left -= 1
            await ctx.broadcast(b"the price is 42")
            await ctx.schedule(1, b"say")
