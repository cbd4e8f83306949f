"""Many writers on few keys: shared counters and shared logs, only by compare and swap.

A writer reads a key, thinks for some ticks, and swaps. If another one was faster, the swap fails, and it begins again,
until its own change is in. So a counter ends at the number of its changes, and a log contains each of its lines once.
It keeps a private note of how many of its changes are in, and when it is done, it waits, and reads all keys. Watchers
subscribe to the counters.
"""

from __future__ import annotations

from recollect.sim.agents import Agent, AgentContext
from recollect.sim.dice import between
from recollect.sim.tasks.base import Seat, Task, count_in

_READ, _SWAP, _LOOK = b"read", b"swap", b"look"
#: Ticks from the last change of a writer until it reads all keys.
_LATER = 100


class ConcurrentWriter(Agent):
    """Makes a number of changes, one after the other: to a counter, then to a log, and so on."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._done = 0
        self._tries = 0
        self._seen: bytes | None = None

    async def on_start(self, ctx: AgentContext) -> None:
        """Plan the first change."""
        if self._seat.settings["rounds"]:
            await ctx.schedule(between(ctx.rng, 1, 3), _READ)

    async def on_message(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
        """Read, swap, or look at what came of it."""
        if sender != ctx.agent_id:
            return
        if payload == _READ:
            self._seen = await ctx.memory.read(self._key())
            await ctx.schedule(between(ctx.rng, 1, 2), _SWAP)
            return
        if payload == _LOOK:
            for kind, count in (("counter", "counters"), ("log", "logs")):
                for number in range(self._seat.settings[count]):
                    await ctx.memory.read(f"{kind}:{number}")
            return
        if await self._swap(ctx):
            self._done += 1
            self._tries = 0
            await self._note(ctx)
            await self._say(ctx)
        else:
            self._tries += 1
        if self._done < self._seat.settings["rounds"]:
            # The more attempts fail, the longer the pause, so that all get through.
            await ctx.schedule(between(ctx.rng, 1, 2 + min(4 * self._tries, 40)), _READ)
        else:
            await ctx.schedule(_LATER, _LOOK)

    def _key(self) -> str:
        kind, count = ("log", "logs") if self._done % 4 == 3 else ("counter", "counters")
        return f"{kind}:{(self._seat.index + self._done) % self._seat.settings[count]}"

    async def _swap(self, ctx: AgentContext) -> bool:
        key, seen = self._key(), self._seen
        if key.startswith("counter:"):
            new = ctx.stamp(str(count_in(seen) + 1))
        else:
            new = (b"" if seen is None else seen + b"\n") + ctx.stamp("was here")
        if await ctx.memory.cas(key, seen, new):
            return True
        if seen is None and await ctx.memory.read(key) is None:  # a semantic store does not swap what is absent
            await ctx.memory.write(key, new)
            return True
        return False

    async def _note(self, ctx: AgentContext) -> None:
        note = f"private/{ctx.agent_id}/done"
        await ctx.memory.read(note)
        await ctx.memory.write(note, ctx.stamp(str(self._done)))

    async def _say(self, ctx: AgentContext) -> None:
        watchers = self._seat.peers.get("watcher", ())
        if watchers:
            await ctx.send(watchers[self._seat.index % len(watchers)], b"changed")


class Watcher(Agent):
    """Subscribes to a counter, and reads it when a writer says that something changed."""

    def __init__(self, seat: Seat) -> None:
        self._key = f"counter:{seat.index % seat.settings['counters']}"
        self.seen = 0

    async def on_start(self, ctx: AgentContext) -> None:
        """Follow the counter to the end."""
        async for value in ctx.memory.subscribe(self._key):
            self.seen = count_in(value)

    async def on_message(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
        """Read the counter."""
        await ctx.memory.read(self._key)


def _make(seat: Seat) -> Agent:
    return ConcurrentWriter(seat) if seat.role == "writer" else Watcher(seat)


TASK = Task(
    make=_make,
    roles={"writer": 8, "watcher": 1},
    settings={"rounds": (12, 0), "counters": (4, 1), "logs": (2, 1)},
)
