"""The socket as a door of a server: its file or a socket from systemd, and its connections."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any

from recollect.server.socket.connection import Connection, SocketState
from recollect.server.socket.listening import BACKLOG, SocketFile, refused_peer


class SocketDoor:
    """A Unix stream socket on which clients are served.

    Args:
        shared: What all connections share.
        listening: The listening socket, or its file, which is removed at the end; None: connections come by `take`
            alone.
    """

    def __init__(self, shared: SocketState, listening: SocketFile | socket.socket | None) -> None:
        self._shared = shared
        self._file = listening if isinstance(listening, SocketFile) else None
        self._socket = listening.socket if isinstance(listening, SocketFile) else listening
        self._server: asyncio.Server | None = None
        self._stopped = False

    async def open(self) -> str:
        """Begin to accept clients. See `server.doors.Door`."""
        if self._socket is None:
            return ""
        loop = asyncio.get_running_loop()
        # Python 3.13 and later would remove the file of the socket, also one that is not ours.
        options: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
        self._server = await loop.create_unix_server(self._connection, sock=self._socket, backlog=BACKLOG, **options)
        return f"unix://{self._socket.getsockname()}"

    async def take(self, connection: socket.socket) -> None:
        """Serve a connection that was accepted elsewhere."""
        if self._stopped:
            connection.close()
        else:
            await asyncio.get_running_loop().connect_accepted_socket(self._connection, connection)

    def _connection(self) -> Connection:
        return Connection(self._shared, refused_peer)

    async def stop(self) -> None:
        """Accept no more clients, and close connections when the calls that run on them are answered."""
        self._stopped = True
        if self._server is not None:
            self._server.close()
        self._shared.waits.stop()
        for each in list(self._shared.connections):
            each.stop()
        if self._file is not None:
            self._file.close()

    async def flushed(self) -> None:
        """Return when all connections are closed. See `server.doors.Door`."""
        while self._shared.connections:
            await asyncio.sleep(0.01)

    def abort(self) -> None:
        """Close all connections at once."""
        for each in list(self._shared.connections):
            each.abort()
