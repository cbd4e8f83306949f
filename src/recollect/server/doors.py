"""The doors of a server, the ways in for clients, and serving them until the end.

At the end nothing new is accepted, what runs is completed and answered, and connections are closed. Before that, a
server may go on for some seconds while `/readyz` says already that it is leaving, so that proxies send nothing more.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

from recollect.server.calls import ClientCalls
from recollect.server.limits import DRAIN_S

_log = logging.getLogger("recollect.server")
#: Seconds that clients have to read the answers at the end.
FLUSH_S = 5.0
#: Seconds that doors have to notice that their connections were closed.
ABORT_S = 1.0


class Door(Protocol):
    """A way in."""

    async def open(self) -> str:
        """Begin to accept clients, and return the address for people; "" if connections come by `take` alone."""

    async def take(self, connection: socket.socket) -> None:
        """Serve a connection that was accepted elsewhere."""

    async def stop(self) -> None:
        """Accept no more clients, and let clients go when their calls have been answered."""

    async def flushed(self) -> None:
        """Return when the clients have got their answers, and all connections are closed."""

    def abort(self) -> None:
        """Close all connections at once."""


async def serve(
    doors: Sequence[Door],
    calls: ClientCalls,
    ended: asyncio.Event,
    *,
    ready: Callable[[list[str]], object],
    leave_s: float = 0.0,
    drain_s: float = DRAIN_S,
) -> None:
    """Open the doors, and serve until the end.

    Args:
        doors: The ways in.
        calls: What all of them execute calls with.
        ended: Set when the end begins.
        ready: Called with the address of each door when clients can connect.
        leave_s: Seconds that the server goes on at the end, while it says that it is not ready.
        drain_s: Seconds that what runs may take at the end.
    """
    try:
        ready([await each.open() for each in doors])
        await ended.wait()
        calls.leaving = True
        if leave_s:
            _log.info("leaving: stopping in %g s", leave_s)
            await asyncio.sleep(leave_s)
        _log.info("stopping: %d calls run", calls.running)
    finally:
        calls.stopping = True
        await asyncio.gather(*(each.stop() for each in doors))
    if not await calls.drained(drain_s):
        _log.warning("%d calls did not end within %g s", calls.running, drain_s)
    for seconds in (FLUSH_S, ABORT_S):
        with suppress(TimeoutError):  # of clients that do not read
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(each.flushed() for each in doors))
        for each in doors:
            each.abort()
    calls.close()


@contextmanager
def ending_by_signals(ended: asyncio.Event, doors: Sequence[Door], ending: Callable[[], object]) -> Iterator[None]:
    """Begin the end at the first SIGTERM or SIGINT in the block. At the second one the process ends at once.

    Args:
        ended: Set when the end begins.
        doors: The ways in, whose connections are closed at the second signal.
        ending: Called when the end begins.
    """
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if ended.is_set():
            _log.warning("a second signal: ending at once")
            for each in doors:
                each.abort()
            sys.stderr.flush()
            os._exit(1)
        ended.set()
        ending()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(ValueError):
                loop.remove_signal_handler(number)
