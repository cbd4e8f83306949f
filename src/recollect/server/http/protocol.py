"""uvicorn's protocol, with a limit on how long a client may take for the head of a request, and with answers of JSON.

uvicorn closes connections between requests, but waits for ever for a head that was begun, or never comes, and for a
client that does not read its answer. A client that opens many such connections would take the room of others. What is
not HTTP, it answers with plain text.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from recollect.errors import ProtocolError
from recollect.server.http.problems import problem
from recollect.server.unread import SlowReader

#: Seconds that the head of a request may take.
HEAD_S = 10.0


class PatientProtocol(H11Protocol):
    """A connection whose requests must begin in time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._head_ends: asyncio.TimerHandle | None = self.loop.call_later(HEAD_S, self._give_up)
        self._reader = SlowReader(transport)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader.begin()

    def resume_writing(self) -> None:
        self._reader.end()
        super().resume_writing()

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
        self._reader.end()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not a request of HTTP, and close the connection. See `H11Protocol`."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # within an answer
            self.transport.close()
            return
        answer = problem(ProtocolError("the request is not one of HTTP/1.1"), HTTPStatus.BAD_REQUEST)
        headers = [*self.server_state.default_headers, *answer.raw_headers, (b"connection", b"close")]
        events: tuple[Any, ...] = (
            h11.Response(status_code=answer.status_code, headers=headers, reason=b"Bad Request"),
            h11.Data(data=bytes(answer.body)),
            h11.EndOfMessage(),
        )
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()

    def _give_up(self) -> None:
        self._head_ends = None
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()
