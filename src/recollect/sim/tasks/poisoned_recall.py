"""Honest agents ask memory questions while Byzantine ones flood it, and poison it with false answers.

Authors write what is true, and write it again from time to time, since floods push it out. Askers recall, read the best
hit, and pass its key on to another asker.
"""

from __future__ import annotations

from recollect.sim.agents import Agent, AgentContext
from recollect.sim.dice import below, pick
from recollect.sim.tasks.base import Paced, Seat, Task

_WHAT = ("gate code", "tide table", "night train", "water price", "bridge toll", "ferry fare")
_WHERE = ("Oslo", "Lima", "Cairo", "Quito", "Turin", "Perth", "Osaka", "Delhi")


class Author(Paced):
    """Writes its facts, one a turn."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._turn = 0

    async def turn(self, ctx: AgentContext) -> None:
        """Write the next fact."""
        number = self._turn % self.seat.settings["facts"]
        self._turn += 1
        topic = self.seat.index * self.seat.settings["facts"] + number
        # A fact contains its question, as a false answer does: recall by words can then tell them apart by topic.
        question = _question(_WHAT[topic % len(_WHAT)], _WHERE[topic // len(_WHAT) % len(_WHERE)])
        await ctx.memory.write(f"fact:{ctx.agent_id}:{number}", ctx.stamp(f"{question} It is {topic}"))


class Asker(Paced):
    """Asks a question each turn."""

    async def turn(self, ctx: AgentContext) -> None:
        """Ask, read the best answer, and pass it on."""
        question = _question(pick(ctx.rng, _WHAT), pick(ctx.rng, _WHERE))
        hits = await ctx.memory.recall(question, self.seat.settings["hits"])
        others = self.seat.others("asker")
        if hits:
            await ctx.memory.read(hits[0].key)
            if others and below(ctx.rng, 4) == 0:
                await ctx.send(pick(ctx.rng, others), b"read " + hits[0].key.encode())

    async def heard(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
        """Read what another asker has found."""
        verb, _, key = payload.decode("utf-8", "replace").partition(" ")
        if verb == "read":
            await ctx.memory.read(key)


def _question(what: str, where: str) -> str:
    return f"What is the {what} of {where}?"


def _make(seat: Seat) -> Agent:
    return Author(seat) if seat.role == "author" else Asker(seat)


TASK = Task(
    make=_make,
    roles={"author": 1, "asker": 2},
    recalls=True,
    settings={"rounds": (40, 0), "facts": (6, 1), "hits": (3, 1)},
)
