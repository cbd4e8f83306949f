"""A proxy between a node and the server that cuts connections at the commit: before it, at it, or after it."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from pathlib import Path
from typing import Literal

Where = Literal["before", "at", "after"]
#: How what a client sends at a time ends: with Sync, and Flush after it in a pipeline.
_ENDS = (b"S\0\0\0\4", b"S\0\0\0\4H\0\0\0\4")
#: The first byte of a message that is a whole query by itself.
_QUERY = b"Q"


class CuttingProxy:
    """Passes everything on, until it is told to cut the next commit.

    Args:
        server: The folder of the server's socket.

    Attributes:
        cuts: How many commits it has cut.
    """

    def __init__(self, server: Path) -> None:
        self.cuts = 0
        self._server = server
        self._where: Where | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="rcl-proxy-", dir="/tmp")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self._folder.name}/.s.PGSQL.5432")
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres@/postgres?host={self._folder.name}"

    def cut_next(self, where: Where) -> None:
        """Cut the connection whose commit comes next.

        Args:
            where: "before": the server never gets it. "at": the server gets it, and its answer is lost. "after": the
                server has answered, and the answer is lost.
        """
        self._where = where

    def close(self) -> None:
        self._listener.close()
        self._folder.cleanup()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server / ".s.PGSQL.5432"))
                threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        losing = threading.Event()
        back = threading.Thread(target=self._answer, args=(client, server, losing), daemon=True)
        back.start()
        cutting: Where | None = None
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if cutting is None and self._where is not None and b"COMMIT\0" in data:
                    cutting, self._where, self.cuts = self._where, None, self.cuts + 1
                    if cutting == "before":
                        break
                    losing.set()
                server.sendall(data)
                if cutting is not None and (data.endswith(_ENDS) or data[:1] == _QUERY):  # all of the commit
                    if cutting == "after":
                        back.join()  # it has seen the answer, and kept it
                    break
        for each in (client, server):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    @staticmethod
    def _answer(client: socket.socket, server: socket.socket, losing: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if losing.is_set():
                    if b"COMMIT\0" in data:
                        return
                    continue
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)
