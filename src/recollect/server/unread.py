"""Answers that clients have not read yet: how many bytes of them are in memory, and clients that do not read.

A large answer stays in memory until its client has read it. So the bytes of such answers are limited, for one client
and for all: beyond that, the answer to a read is refused. A client that reads too slowly is cut off.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable
from typing import Any

from recollect.errors import ServerBusyError

#: Answers up to this size are not counted: the buffers of connections have as much.
SMALL = 64 * 2**10
#: Number of bytes of large answers that one client has not read, and that all together have not.
MOST_EACH, MOST = 16 * 2**20, 64 * 2**20
#: Seconds in which a client must read `SMALL` bytes, or all that there are.
READ_S = 30.0


class Unread:
    """Counts what clients have not read. For one thread.

    Attributes:
        most_each: Maximum number of bytes of one client. A client that has read all may have one larger answer.
        most: Maximum number of bytes of all clients.
        total: Number of bytes of all clients.
    """

    def __init__(self, most_each: int = MOST_EACH, most: int = MOST) -> None:
        self.most_each, self.most = most_each, most
        self.total = 0
        self._of: Counter[Hashable] = Counter()

    def check(self, client: Hashable, size: int) -> None:
        """Raise ServerBusyError if there is no room for another answer of a client."""
        if size > SMALL and self._of[client] and self._of[client] + size > self.most_each:
            raise ServerBusyError(f"its client has not read {self._of[client]} bytes of earlier answers", 1.0)
        if size > SMALL and self.total and self.total + size > self.most:
            raise ServerBusyError(f"clients have not read {self.total} bytes of answers", 1.0)

    def add(self, client: Hashable, size: int) -> int:
        """Count an answer, unless it is small, and return what is counted, for `remove`."""
        counted = size if size > SMALL else 0
        self._of[client] += counted
        self.total += counted
        return counted

    def remove(self, client: Hashable, counted: int) -> None:
        """Note that an answer was read, or its client is gone."""
        self.total -= counted
        self._of[client] -= counted
        if not self._of[client]:
            del self._of[client]


class SlowReader:
    """Cuts off a client that does not read.

    Args:
        transport: Its connection.
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._looks: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Begin to watch: more is unread than the connection's buffer should have."""
        self.end()
        unread = self._transport.get_write_buffer_size()

        def look() -> None:
            if self._transport.get_write_buffer_size() > unread - SMALL:
                self._transport.abort()
            else:
                self.begin()

        self._looks = asyncio.get_running_loop().call_later(READ_S, look)

    def end(self) -> None:
        """Watch no more."""
        if self._looks is not None:
            self._looks.cancel()
            self._looks = None
