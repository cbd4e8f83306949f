"""A swarm that shares facts by memory and by messages, recalls them, and counts together.

Each worker writes facts and says to others under which key; these read it. It asks memory questions, asks others, and
adds to shared counters by compare and swap: it reads, thinks for some ticks, and then swaps, so that others interfere.
The first workers also subscribe to a counter.
"""

from __future__ import annotations

from recollect.sim.agents import Agent, AgentContext
from recollect.sim.dice import below, between, pick
from recollect.sim.tasks.base import Paced, Seat, Task, count_in

_WHAT = ("price of apples", "price of bread", "weather", "crowd at the market", "state of the road", "level of water")
_WHERE = ("Oslo", "Lima", "Cairo", "Quito", "Turin", "Perth", "Osaka", "Delhi", "Lagos", "Minsk", "Porto", "Tunis")
_COUNT = b"count"


class Worker(Paced):
    """A member of the swarm."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._facts = 0
        self._counting: tuple[str, bytes | None] | None = None
        self.notices = 0

    async def on_start(self, ctx: AgentContext) -> None:
        """Plan the first turn, and subscribe, if this is one of the first workers."""
        await super().on_start(ctx)
        if self.seat.index < self.seat.settings["watchers"]:
            async for _ in ctx.memory.subscribe("counter:0"):
                self.notices += 1

    async def turn(self, ctx: AgentContext) -> None:
        """Write a fact, ask a question, count, or forget a fact."""
        kind = below(ctx.rng, 10)
        if kind < 4:
            await self._note(ctx)
        elif kind < 6:
            await ctx.memory.recall(_question(ctx), 3)
        elif kind < 7:
            await self._ask_another(ctx)
        elif kind < 9:
            await self._begin_count(ctx)
        else:
            await ctx.memory.forget(f"fact:{ctx.agent_id}:{below(ctx.rng, self._facts + 1)}")

    async def heard(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
        """Read a fact that another agent names, answer its question, or go on counting."""
        verb, _, rest = payload.decode("utf-8", "replace").partition(" ")
        if sender == ctx.agent_id:
            await self._end_count(ctx)
        elif verb == "fact":
            await ctx.memory.read(rest)
        elif verb == "ask":
            for hit in await ctx.memory.recall(rest, 1):
                await ctx.send(sender, f"fact {hit.key}".encode())

    async def _note(self, ctx: AgentContext) -> None:
        key = f"fact:{ctx.agent_id}:{self._facts}"
        self._facts += 1
        await ctx.memory.write(key, ctx.stamp(f"{_question(ctx)} {below(ctx.rng, 1000)}"))
        others = self.seat.others("worker")
        if below(ctx.rng, 20) == 0:
            await ctx.broadcast(f"fact {key}".encode())
        elif others:
            await ctx.send(pick(ctx.rng, others), f"fact {key}".encode())

    async def _ask_another(self, ctx: AgentContext) -> None:
        others = self.seat.others("worker")
        if others:
            await ctx.send(pick(ctx.rng, others), f"ask {_question(ctx)}".encode())

    async def _begin_count(self, ctx: AgentContext) -> None:
        key = f"counter:{below(ctx.rng, self.seat.settings['counters'])}"
        self._counting = (key, await ctx.memory.read(key))
        await ctx.schedule(between(ctx.rng, 1, 2), _COUNT)

    async def _end_count(self, ctx: AgentContext) -> None:
        if self._counting is None:
            return
        (key, seen), self._counting = self._counting, None
        new = ctx.stamp(str(count_in(seen) + 1))
        # A semantic store refuses to swap what is absent.
        if not await ctx.memory.cas(key, seen, new) and seen is None and await ctx.memory.read(key) is None:
            await ctx.memory.write(key, new)


def _question(ctx: AgentContext) -> str:
    return f"what is the {pick(ctx.rng, _WHAT)} in {pick(ctx.rng, _WHERE)}?"


def _make(seat: Seat) -> Agent:
    return Worker(seat)


TASK = Task(
    make=_make,
    roles={"worker": 1},
    recalls=True,
    settings={"rounds": (40, 0), "counters": (4, 1), "watchers": (4, 0)},
)
