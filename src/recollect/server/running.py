"""A server as a process: its doors, its signals, and how it ends.

At the first SIGTERM or SIGINT nothing new is accepted, what runs is completed and answered, and the store is closed. At
the second one the process ends at once: what was acknowledged is stored.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from recollect.server.calls import ClientCalls
from recollect.server.limits import DRAIN_S
from recollect.server.systemd import notify

_log = logging.getLogger("recollect.server")
#: Seconds that clients have to read the answers to it.
FLUSH_S = 5.0
#: Seconds that doors have to notice that their connections were closed.
ABORT_S = 1.0


class Door(Protocol):
    """A way in."""

    async def open(self) -> str:
        """Begin to accept clients, and return the address for people."""
        ...

    async def stop(self) -> None:
        """Accept no more clients, and let clients go when their calls have been answered."""
        ...

    async def flushed(self) -> None:
        """Return when the clients have got their answers, and all connections are closed."""
        ...

    def abort(self) -> None:
        """Close all connections at once."""
        ...


async def serve(
    doors: list[Door], calls: ClientCalls, *, ready: Callable[[str], object], drain_s: float = DRAIN_S
) -> None:
    """Open the doors, and serve until a signal ends it.

    Args:
        doors: The ways in.
        calls: What all of them execute calls with.
        ready: Called with the address of each door when clients can connect.
        drain_s: Seconds that what runs may take at the end.
    """
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    signals = 0

    def on_signal() -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            _log.warning("a second signal: ending at once")
            for each in doors:
                each.abort()
            sys.stderr.flush()
            os._exit(1)
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    opened: list[Door] = []
    try:
        for each in doors:
            address = await each.open()
            opened.append(each)
            ready(address)
        notify(f"READY=1\nMAINPID={os.getpid()}")
        await ended.wait()
        notify("STOPPING=1")
        _log.info("stopping: %d calls run", calls.running)
    finally:
        calls.stopping = True
        await asyncio.gather(*(each.stop() for each in opened))
    if not await calls.drained(drain_s):
        _log.warning("%d calls did not end within %g s", calls.running, drain_s)
    for seconds in (FLUSH_S, ABORT_S):
        with suppress(TimeoutError):  # of clients that do not read
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(each.flushed() for each in doors))
        for each in doors:
            each.abort()
    calls.close()
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(ValueError):
            loop.remove_signal_handler(number)
