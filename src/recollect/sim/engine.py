"""The engine of the simulator: the virtual clock, the queue of events, and the driver of the agents' coroutines.

Events come in the order of (time, insertion), so nothing depends on how fast the machine is. An agent is no task and no
thread: its coroutine runs until it ends or waits. One that waits (for a value of a subscription) is resumed when what
it waits for has happened, in the order in which it began to wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from heapq import heappop, heappush
from typing import Any, NamedTuple

from recollect.errors import UnsupportedError

#: Maximum number of events at one moment. Agents that send without a pause at one moment would never end.
_MOMENT = 2_000_000


class AgentEvent(NamedTuple):
    """Something that happens to an agent at a time.

    Attributes:
        time: When.
        number: In which order events of one time were queued.
        kind: "deliver", "timer", "crash" or "restart".
        agent: To whom.
        sender: Who sent the message; "" if it is none.
        payload: The message, or the text of the timer.
        corr: The number of the message; "" if it is none.
        sent_at: When it was sent.
        life: Which life of the agent set the timer: a crash ends a life, and its timers.
    """

    time: float
    number: int
    kind: str
    agent: str
    sender: str = ""
    payload: bytes = b""
    corr: str = ""
    sent_at: float = 0.0
    life: int = 0


class Clock:
    """The virtual time, in ticks."""

    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now = 0.0


class Queue:
    """The events to come, and the clock, which moves to the time of each event that is taken."""

    def __init__(self) -> None:
        self.clock = Clock()
        self._heap: list[AgentEvent] = []
        self._pushed = 0
        self._now = 0  # number of events that were taken at this time

    def push(self, time: float, kind: str, agent: str, **fields: Any) -> None:
        """Queue an event."""
        heappush(self._heap, AgentEvent(time, self._pushed, kind, agent, **fields))
        self._pushed += 1

    def take(self, until: float) -> AgentEvent | None:
        """Return the next event; None if there is none up to this time.

        Raises:
            UnsupportedError: Agents go on and on, and no time passes.
        """
        if not self._heap or self._heap[0].time > until:
            return None
        event = heappop(self._heap)
        self._now = self._now + 1 if event.time == self.clock.now else 0
        if self._now > _MOMENT:
            why = f"more than {_MOMENT} events happened at {event.time!r}: let messages take a tick, or end the replies"
            raise UnsupportedError("the simulation", why)
        self.clock.now = event.time
        return event

    def __len__(self) -> int:
        return len(self._heap)


class Driver:
    """Runs coroutines of agents, each until it ends or waits."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, Coroutine[Any, Any, None], asyncio.Future[Any]]] = []

    async def run(self, agent: str, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine of an agent until it ends or waits.

        Raises:
            UnsupportedError: It waits for something that is no future of asyncio.
        """
        while True:
            try:
                awaited = coroutine.send(None)
            except StopIteration:
                return
            if awaited is None:  # it lets others go first, as `asyncio.sleep(0)` does
                await asyncio.sleep(0)
            elif not isinstance(awaited, asyncio.Future):
                coroutine.close()
                raise UnsupportedError(f"the agent {agent}", "waits for something that is no future of asyncio")
            elif not awaited.done():
                self._waiting.append((agent, coroutine, awaited))
                return

    async def settle(self) -> None:
        """Resume what has waited for something that has happened by now."""
        resumed = bool(self._waiting)
        while resumed:
            resumed = False
            await asyncio.sleep(0)  # futures are set by callbacks of the loop
            waiting, self._waiting = self._waiting, []
            for agent, coroutine, future in waiting:
                if future.done():
                    resumed = True
                    await self.run(agent, coroutine)
                else:
                    self._waiting.append((agent, coroutine, future))

    def stop(self, agent: str | None = None) -> None:
        """End what an agent waits for; None: what all wait for."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if agent is None or each[0] == agent:
                _cancel(each[1])
            else:
                self._waiting.append(each)


def _cancel(coroutine: Coroutine[Any, Any, None]) -> None:
    """End a coroutine. (Only `close` would leave an asynchronous generator running that it waits for.)"""
    with suppress(StopIteration, asyncio.CancelledError):
        coroutine.throw(asyncio.CancelledError())
    coroutine.close()
