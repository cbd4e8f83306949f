"""Agents, and their abilities: to send, broadcast, set timers, draw, and use memory.

An agent is a state machine: the simulator calls it when it starts, when a message or a timer comes, when it restarts
after a crash, and when the run ends. After a crash it is a new object, which knows only what is in memory.
"""

from __future__ import annotations

import random
from typing import Any

from recollect.arguments.checks import is_number
from recollect.errors import InvalidArgumentError
from recollect.sim.engine import Queue
from recollect.sim.memory import TracedMemory
from recollect.sim.network import Network, checked_payload


class AgentContext:
    """The world of one agent.

    Attributes:
        agent_id: Its name.
        rng: Its generator. Draw with `recollect.sim.dice`, for results that do not depend on the version of Python.
        plugins: The plugins by layer: {"memory": ...}.
    """

    def __init__(self, agent_id: str, rng: random.Random, memory: TracedMemory, queue: Queue, network: Network) -> None:
        self.agent_id = agent_id
        self.rng = rng
        self.memory = memory
        self.plugins: dict[str, Any] = {"memory": memory}
        self.life = 0
        self._queue = queue
        self._network = network
        self._stamps = 0

    @property
    def time(self) -> float:
        """The virtual time, in ticks."""
        return self._queue.clock.now

    async def send(self, to: str, payload: bytes) -> None:
        """Send a message to an agent."""
        self._network.send(self.agent_id, str(to), payload)

    async def broadcast(self, payload: bytes) -> None:
        """Send a message to all other agents."""
        self._network.broadcast(self.agent_id, payload)

    async def schedule(self, delay: float, payload: bytes) -> None:
        """Set a timer: after some ticks it arrives as a message from this agent. The network cannot lose it."""
        checked_payload(payload)
        if not is_number(delay, 0) or delay == float("inf"):
            raise InvalidArgumentError("delay", delay, "must be a number of at least 0")
        now = self._queue.clock.now
        self._queue.push(now + delay, "timer", self.agent_id, payload=payload, sent_at=now, life=self.life)

    def stamp(self, text: str) -> bytes:
        """Return a value with this text that no other agent writes, and this one only once, also after a crash."""
        self._stamps += 1
        return f"{text} [{self.agent_id} {self._stamps}]".encode()


class Agent:
    """An agent that does nothing. Override what it does."""

    async def on_start(self, ctx: AgentContext) -> None:
        """Begin."""

    async def on_message(self, ctx: AgentContext, sender: str, payload: bytes) -> None:
        """Take a message, or a timer: its sender is this agent."""

    async def on_restart(self, ctx: AgentContext) -> None:
        """Begin again after a crash. By default, this is a start."""
        await self.on_start(ctx)

    async def on_stop(self, ctx: AgentContext) -> None:
        """End. Messages that are sent here do not arrive."""
