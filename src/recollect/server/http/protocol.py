"""uvicorn's protocol, with a limit on how long a client may take for the head of a request.

uvicorn closes connections between requests, but waits for ever for a head that was begun, or never comes. A client that
opens many such connections would take the room of others.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Seconds that the head of a request may take.
HEAD_S = 10.0


class PatientProtocol(H11Protocol):
    """A connection whose requests must begin in time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._head_ends: asyncio.TimerHandle | None = self.loop.call_later(HEAD_S, self._give_up)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering and self._head_ends is not None:
            self._head_ends.cancel()
            self._head_ends = None
        elif not answering and self._head_ends is None:
            self._head_ends = self.loop.call_later(HEAD_S, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._head_ends is not None:
            self._head_ends.cancel()
        super().connection_lost(exc)

    def _give_up(self) -> None:
        self._head_ends = None
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()
