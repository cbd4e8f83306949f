"""A storm of entries that expire at the same moment.

All keepers write at once, renew half of their entries in the middle of the time to live (by a write or a swap), read
one tick before the others expire, and at the very tick. They also try to forget what has expired, and pause until all
is gone.
"""

from __future__ import annotations

from recollect.sim.agents import Agent, AgentContext
from recollect.sim.tasks.base import Seat, Task

_STEPS = (b"write", b"renew", b"before", b"after")


class Keeper(Agent):
    """Writes, renews and reads its entries by the clock."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._round = 0
        self._entries = range(seat.settings["burst"])

    async def on_start(self, ctx: AgentContext) -> None:
        """Plan the first storm."""
        await self._plan(ctx)

    async def on_message(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
        """Do what it is the time for."""
        if sender != ctx.agent_id:
            await ctx.memory.read(payload.decode("utf-8", "replace"))
        elif payload == b"write":
            for number in self._entries:
                await ctx.memory.write(self._key(ctx, number), ctx.stamp(f"round {self._round} entry {number}"))
            keepers = self._seat.peers.get("keeper", ())
            if keepers:
                after = keepers[(self._seat.index + 1) % len(keepers)]
                await ctx.send(after, self._key(ctx, 0).encode())
        elif payload == b"renew":
            await self._renew(ctx)
        elif payload == b"before":
            await self._read(ctx)
        elif payload == b"after":
            await self._read(ctx)
            if self._entries:
                await ctx.memory.forget(self._key(ctx, self._entries[-1]))
                await ctx.memory.forget(self._key(ctx, 0))
            self._round += 1
            await self._plan(ctx)

    async def _plan(self, ctx: AgentContext) -> None:
        if self._round < self._seat.settings["rounds"]:
            ttl = self._seat.settings["ttl"]
            begin = ttl * 2 if self._round else 1
            for step, delay in zip(_STEPS, (0, ttl // 2, ttl - 1, ttl), strict=True):
                await ctx.schedule(begin + delay, step)

    async def _renew(self, ctx: AgentContext) -> None:
        """Write the first half of the entries again: every other one by a swap."""
        for number in self._entries[: len(self._entries) // 2]:
            key, new = self._key(ctx, number), ctx.stamp(f"round {self._round} entry {number} again")
            if number % 2:
                await ctx.memory.cas(key, await ctx.memory.read(key), new)
            else:
                await ctx.memory.write(key, new)

    async def _read(self, ctx: AgentContext) -> None:
        for number in self._entries:
            await ctx.memory.read(self._key(ctx, number))
        if ctx.memory.can_recall:
            await ctx.memory.recall(f"round {self._round} entry {self._seat.index}", 3)

    def _key(self, ctx: AgentContext, number: int) -> str:
        return f"entry:{ctx.agent_id}:{number}"


def _make(seat: Seat) -> Agent:
    return Keeper(seat)


TASK = Task(
    make=_make,
    roles={"keeper": 1},
    settings={"rounds": (5, 0), "burst": (6, 1), "ttl": (20, 2)},
)
