"""A storm of writes into a memory that is much too small for them.

Writers write more entries than fit. Readers keep a few hot entries in use, which therefore stay, and look for lines
that were written a while ago, most of which are gone.
"""

from __future__ import annotations

from recollect.sim.agents import Agent, AgentContext
from recollect.sim.dice import below, pick
from recollect.sim.tasks.base import Paced, Seat, Task


class BurstWriter(Paced):
    """Writes a burst of lines each turn, and says so to a reader."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._lines = 0

    async def turn(self, ctx: AgentContext) -> None:
        """Write a burst."""
        for _ in range(self.seat.settings["burst"]):
            text = f"line {self._lines} about topic {below(ctx.rng, 40)}"
            await ctx.memory.write(f"line:{ctx.agent_id}:{self._lines}", ctx.stamp(text))
            self._lines += 1
        readers = self.seat.peers.get("reader", ())
        if readers:
            await ctx.send(pick(ctx.rng, readers), f"{ctx.agent_id} {self._lines}".encode())


class StormReader(Paced):
    """Keeps its hot entries in use, and looks for old lines."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat, (1, 2))

    async def turn(self, ctx: AgentContext) -> None:
        """Use the hot entries, and write again those that were evicted."""
        for number in range(self.seat.settings["hot"]):
            key = f"hot:{ctx.agent_id}:{number}"
            if await ctx.memory.read(key) is None:
                await ctx.memory.write(key, ctx.stamp(f"hot entry {number}"))
        if ctx.memory.can_recall:
            await ctx.memory.recall(f"line about topic {below(ctx.rng, 40)}", 2)

    async def heard(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
        """Read one of the lines that a writer has written so far."""
        name, _, count = payload.decode("utf-8", "replace").rpartition(" ")
        if count.isascii() and count.isdigit() and 0 < len(count) < 9 and int(count):
            await ctx.memory.read(f"line:{name}:{below(ctx.rng, int(count))}")


def _make(seat: Seat) -> Agent:
    return BurstWriter(seat) if seat.role == "writer" else StormReader(seat)


TASK = Task(
    make=_make,
    roles={"writer": 3, "reader": 1},
    settings={"rounds": (40, 0), "burst": (5, 1), "hot": (2, 0)},
)
