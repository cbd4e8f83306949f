"""Byzantine agents: an honest agent in a wrapper that lies, equivocates, replays, floods memory, and poisons it.

The wrapper changes what the agent sends, and writes more than it does, so every scenario supports every behaviour. It
knows what its agent knows: it replays what the agent received, and poisons the questions that the agent has asked.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from recollect.sim.agents import Agent, AgentContext
from recollect.sim.dice import below, pick
from recollect.sim.memory import TracedMemory
from recollect.sim.scenario import Behaviour

#: Number of messages that are remembered for a replay, and of questions to poison.
_REMEMBERED = 32
#: The words of junk.
_JUNK = ("cheap", "offer", "click", "winner", "prize", "lorem", "ipsum", "dolor", "amet", "bonus", "urgent", "deal")


def distorted(payload: bytes, rng: random.Random) -> bytes:
    """Return another message in its place: with other digits, or with a number if there are none."""
    digits = bytearray(payload)
    changed = False
    for at, byte in enumerate(digits):
        if 0x30 <= byte <= 0x39:
            digits[at] = 0x30 + (byte - 0x30 + 1 + below(rng, 9)) % 10
            changed = True
    return bytes(digits) if changed else payload + b" not %d" % below(rng, 1_000_000)


class Byzantine(Agent):
    """An agent that behaves as another one, apart from what it is set to do.

    Args:
        honest: The other one.
        behaviours: What it does.
        rng: Where its lies are drawn from.
        flood: Number of entries of junk that it writes each time it acts, if it floods.
        poison: Number of false answers that it keeps in memory, if it poisons.
    """

    def __init__(
        self, honest: Agent, behaviours: tuple[Behaviour, ...], rng: random.Random, flood: int, poison: int
    ) -> None:
        self._honest = honest
        self._behaviours = behaviours
        self._rng = rng
        self._flood = flood
        self._poison = poison
        self._poisoned = 0
        self._heard: deque[tuple[str, bytes]] = deque(maxlen=_REMEMBERED)
        self._questions: deque[str] = deque(maxlen=_REMEMBERED)
        self._lying: _Lying | None = None

    async def on_start(self, ctx: AgentContext) -> None:
        """Begin as the honest agent does."""
        await self._disturb(ctx)
        await self._honest.on_start(self._within(ctx))

    async def on_restart(self, ctx: AgentContext) -> None:
        """Begin again as the honest agent does."""
        await self._disturb(ctx)
        await self._honest.on_restart(self._within(ctx))

    async def on_message(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
        """Write junk, and act as the honest agent does."""
        if sender != ctx.agent_id:
            self._heard.append((sender, payload))
        await self._honest.on_message(self._within(ctx), sender, payload)
        await self._disturb(ctx)

    async def on_stop(self, ctx: AgentContext) -> None:
        """End as the honest agent does."""
        await self._honest.on_stop(self._within(ctx))

    def _within(self, ctx: AgentContext) -> AgentContext:
        if self._lying is None:
            self._lying = _Lying(ctx, self._behaviours, self._rng, self._heard, self._questions)
        return self._lying

    async def _disturb(self, ctx: AgentContext) -> None:
        if "flood" in self._behaviours:
            for _ in range(self._flood):
                value = ctx.stamp(" ".join(pick(self._rng, _JUNK) for _ in range(6)))
                # The number of the stamp makes it a new key, which takes room of its own.
                number = value.rpartition(b" ")[2].decode().rstrip("]")
                await ctx.memory.write(f"junk:{ctx.agent_id}:{number}", value)
        if "poison" in self._behaviours and self._questions:
            question = pick(self._rng, self._questions)
            value = ctx.stamp(f"{question} {question} is {below(self._rng, 1_000_000)}")
            await ctx.memory.write(f"poison:{ctx.agent_id}:{self._poisoned % self._poison}", value)
            self._poisoned += 1


class _Lying(AgentContext):
    """The context that the honest agent in the wrapper sees."""

    def __init__(
        self,
        inner: AgentContext,
        behaviours: tuple[Behaviour, ...],
        rng: random.Random,
        heard: deque[tuple[str, bytes]],
        questions: deque[str],
    ) -> None:
        super().__init__(inner.agent_id, inner.rng, _Listening(inner.memory, questions), inner._queue, inner._network)
        self._inner = inner
        self._behaviours = behaviours
        self._lies = rng
        self._heard = heard

    async def send(self, to: str, payload: bytes) -> None:
        lies = "lie" in self._behaviours
        await self._inner.send(to, distorted(payload, self._lies) if lies else payload)
        if "replay" in self._behaviours:
            others = [message for sender, message in self._heard if sender != to]
            if others:
                await self._inner.send(to, pick(self._lies, others))

    async def broadcast(self, payload: bytes) -> None:
        if "equivocate" in self._behaviours:
            self._network.broadcast(self.agent_id, payload, lambda each: distorted(each, self._lies))
        else:
            await self._inner.broadcast(distorted(payload, self._lies) if "lie" in self._behaviours else payload)

    async def schedule(self, delay: float, payload: bytes) -> None:
        await self._inner.schedule(delay, payload)

    def stamp(self, text: str) -> bytes:
        return self._inner.stamp(text)


class _Listening(TracedMemory):
    """The memory of a Byzantine agent, which notes the questions."""

    def __init__(self, inner: TracedMemory, questions: deque[str]) -> None:
        super().__init__(inner._store, inner._agent)
        self._questions = questions

    async def recall(self, query: str, k: int = 5, min_score: float = 0.0) -> list[Any]:
        self._questions.append(query)
        return await super().recall(query, k, min_score)
