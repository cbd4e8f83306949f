"""A worker: it takes connections from its supervisor, and says how many it has."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

from recollect.errors import RecollectError
from recollect.server.doors import Door

_log = logging.getLogger("recollect.server")
#: What the supervisor sends at the end, where a connection has the number of its door.
STOP = b"\xff"
#: How often it is said how many connections there are, in seconds, if that has changed.
_SAY_S = 0.1
#: Number of connections that are taken before others get a turn.
_AT_ONCE = 16


def failed(channel: socket.socket, error: RecollectError) -> None:
    """Say that the worker cannot begin, and why."""
    _say(channel, {"failed": error.to_json()})


def _say(channel: socket.socket, message: dict[str, object]) -> None:
    with suppress(OSError):  # the supervisor is gone, which is noticed otherwise
        channel.sendall(json.dumps(message).encode() + b"\n")


class SupervisorChannel:
    """The worker's end of its channel, in its event loop.

    Args:
        channel: The socket.
        doors: The doors, by their numbers.
        connections: Returns how many connections there are.
        ended: Set when the supervisor asks for the end, or is gone.
    """

    def __init__(
        self, channel: socket.socket, doors: Sequence[Door], connections: Callable[[], int], ended: asyncio.Event
    ) -> None:
        self._channel = channel
        self._doors = doors
        self._connections = connections
        self._ended = ended
        self._taken = 0
        self._said = (-1, -1)
        self._taking: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Take connections, and say how many there are, until this is cancelled."""
        loop = asyncio.get_running_loop()
        self._channel.setblocking(False)
        loop.add_reader(self._channel, self._take)
        # A terminal and systemd send signals to all processes of a group: the supervisor says when it is time.
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        loop.add_signal_handler(signal.SIGTERM, self._ended.set)
        try:
            while True:
                now = self._connections(), self._taken
                if now != self._said:
                    self._said = now
                    _say(self._channel, {"open": now[0], "taken": now[1]})
                await asyncio.sleep(_SAY_S)
        finally:
            loop.remove_reader(self._channel)

    def _take(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                message, descriptors, _, _ = socket.recv_fds(self._channel, 1, 1)
            except BlockingIOError:
                return
            except OSError:
                message, descriptors = b"", []
            if message in (b"", STOP):
                if not message:
                    _log.error("the supervisor is gone")
                    asyncio.get_running_loop().remove_reader(self._channel)
                self._ended.set()
                return
            if not descriptors:  # the system drops one for which the process has no room
                self._taken += 1
                _log.warning("a connection could not be taken: too many files are open")
                continue
            connection = socket.socket(fileno=descriptors[0])
            connection.setblocking(False)
            task = asyncio.get_running_loop().create_task(self._doors[message[0]].take(connection))
            self._taking.add(task)
            task.add_done_callback(self._taken_by)

    def _taken_by(self, task: asyncio.Task[None]) -> None:
        self._taking.discard(task)
        self._taken += 1
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("a connection could not be served: %s", type(error).__name__)
