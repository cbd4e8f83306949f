"""The socket as a door of a server: its file or a socket from systemd, and its connections."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import Any

from recollect.server.socket.connection import Connection, SocketState
from recollect.server.socket.listening import BACKLOG, SocketFile, refused_peer


class SocketDoor:
    """A Unix stream socket on which clients are served.

    Args:
        shared: What all connections share.
        path: The path of the socket; None: `given` is used.
        given: A listening socket that is open already.
    """

    def __init__(self, shared: SocketState, path: Path | None, given: socket.socket | None = None) -> None:
        self._shared = shared
        self._path = path
        self._given = given
        self._file: SocketFile | None = None
        self._server: asyncio.Server | None = None

    async def open(self) -> str:
        """Begin to accept clients. See `server.process.Door`."""
        if self._given is not None:
            listening, address = self._given, f"unix://{self._given.getsockname()}"
        else:
            assert self._path is not None
            self._file = SocketFile(self._path)
            listening, address = self._file.socket, f"unix://{self._path}"
        loop = asyncio.get_running_loop()
        # Python 3.13 and later would remove the file of the socket, also one that is not ours.
        options: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
        self._server = await loop.create_unix_server(
            lambda: Connection(self._shared, refused_peer), sock=listening, backlog=BACKLOG, **options
        )
        return address

    async def stop(self) -> None:
        """Accept no more clients, and close connections when the calls that run on them are answered."""
        if self._server is not None:
            self._server.close()
        self._shared.waits.stop()
        for each in list(self._shared.connections):
            each.stop()
        if self._file is not None:
            self._file.remove()

    async def flushed(self) -> None:
        """Return when all connections are closed. See `server.process.Door`."""
        while self._shared.connections:
            await asyncio.sleep(0.01)

    def abort(self) -> None:
        """Close all connections at once."""
        for each in list(self._shared.connections):
            each.abort()
