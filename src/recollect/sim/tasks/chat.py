"""Agents whose brain is a chat model: they speak in turn, and keep what was said in memory.

The model is any callable that answers a list of messages. For the same trace on every run it must give the same
answers: record it once with `recollect.sim.Recorder`, and replay it with `recollect.sim.Recorded`.
"""

from __future__ import annotations

from recollect.errors import InvalidArgumentError
from recollect.sim.agents import Agent, AgentContext
from recollect.sim.tasks.base import Seat, Task


class Talker(Agent):
    """Asks the model what to say to what it has heard, writes that to memory, and says it to the next agent."""

    def __init__(self, seat: Seat) -> None:
        if seat.chat is None:
            raise InvalidArgumentError("agents.brain", "state-machine", 'must be "chat" for this task')
        self._seat = seat
        self._chat = seat.chat
        self._left = seat.settings["rounds"]

    async def on_start(self, ctx: AgentContext) -> None:
        """Begin the conversation, if this is the first agent."""
        if self._seat.index == 0:
            await self._say(ctx, "Begin the conversation.")

    async def on_message(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
        """Answer."""
        await self._say(ctx, payload.decode("utf-8", "replace"))

    async def _say(self, ctx: AgentContext, heard: str) -> None:
        others = self._seat.peers.get("talker", ())
        if self._left <= 0 or not others:
            return
        self._left -= 1
        known = ""
        if ctx.memory.can_recall:
            hits = await ctx.memory.recall(heard, 3)
            known = "\n".join(hit.value.decode("utf-8", "replace") for hit in hits)
        system = f"You are {ctx.agent_id}. Answer in one sentence." + (f"\nYou remember:\n{known}" if known else "")
        reply = self._chat([{"role": "system", "content": system}, {"role": "user", "content": heard}])
        await ctx.memory.write(f"said:{ctx.agent_id}:{self._left}", ctx.stamp(reply))
        await ctx.send(others[(self._seat.index + 1) % len(others)], reply.encode("utf-8", "replace"))


def _make(seat: Seat) -> Agent:
    return Talker(seat)


TASK = Task(make=_make, roles={"talker": 1}, settings={"rounds": (3, 0)})
