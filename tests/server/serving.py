"""A server in this process, on an event loop in a thread of its own, and raw clients of its doors."""

from __future__ import annotations

import asyncio
import http.client
import json
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import recollect
from recollect.server.calls import ClientCalls
from recollect.server.http.app import application
from recollect.server.http.door import HttpDoor, listening_on
from recollect.server.http.exchange import Site
from recollect.server.http.guard import Guard
from recollect.server.metrics import Metrics
from recollect.server.served_memory import ServedMemory
from recollect.server.socket.connection import Connection, SocketState
from recollect.server.socket.door import SocketDoor
from recollect.server.socket.listening import SocketFile
from recollect.server.waits import Waits
from recollect.wire import Desk

T = TypeVar("T")
#: How long an answer is waited for before the server counts as hanging.
PATIENCE_S = 60.0
PING = b'{"action":"ping"}\n'


class Served:
    """A server of one store, with a socket and HTTP.

    Args:
        folder: Where the store is.
        limits: Attributes of the calls, of the guard (`guard_...`) and of the door of the socket (`door_...`).

    Attributes:
        loop: The event loop.
        calls: The calls.
        door: What the connections of the socket share.
        site: What the requests over HTTP share.
        socket_path: The path of the socket.
        http: Host and port.
    """

    def __init__(self, folder: Path, **limits: Any) -> None:
        self.path = folder / "served.db"
        self._sockets = Path(tempfile.mkdtemp(prefix="recollect-"))  # a path of a socket must be short
        self.socket_path = self._sockets / "s"
        self.loop = asyncio.new_event_loop()
        self.problems: list[str] = []
        self.loop.set_exception_handler(lambda loop, context: self.problems.append(str(context)))
        self._limits = limits
        self._thread = threading.Thread(target=self.loop.run_forever, name="served", daemon=True)
        self._thread.start()
        self.run(self._open())

    def run(self, work: Any) -> Any:
        """Run a coroutine in the event loop and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_S)

    def look(self, call: Callable[[], T]) -> T:
        """Call something in the event loop, between its other steps, and return the result."""

        async def looked() -> T:
            return call()

        result: T = self.run(looked())
        return result

    async def _open(self) -> None:
        def opener(*, create: bool, read_only: bool) -> recollect.Memory:
            return recollect.open(self.path, create=create, read_only=read_only, embedder="none")

        self.served = ServedMemory(opener)
        metrics = Metrics(frozenset())
        self.calls = ClientCalls(Desk(lambda writes: self.served.writing() if writes else self.served.reading()))
        waits = Waits(self.served)

        def of(prefix: str) -> dict[str, Any]:
            limits = self._limits.items()
            return {name.removeprefix(prefix): value for name, value in limits if name.startswith(prefix)}

        for name, value in of("calls_").items():
            setattr(self.calls, name, value)
        self.door = SocketState(self.calls, recollect.wire.Grant(), waits, salience="off", **of("door_"))
        self.site = Site(self.calls, waits, Guard(**{"most_running": 2000, **of("guard_")}))
        self.socket_door = SocketDoor(self.door, SocketFile(self.socket_path))
        self.http_door = HttpDoor(self.site, application(self.site, metrics), listening_on("127.0.0.1", 0))
        await self.socket_door.open()
        url = await self.http_door.open()
        host, _, port = url.removeprefix("http://").rpartition(":")
        self.http = host, int(port)

    def connections(self) -> list[Connection]:
        """Return the connections of the socket."""
        return self.look(lambda: list(self.door.connections))

    def line_client(self) -> LineClient:
        """Connect to the socket."""
        return LineClient(self.socket_path)

    def memory(self, over: str = "socket", **options: Any) -> recollect.Memory:
        """Connect a memory."""
        address = f"unix://{self.socket_path}" if over == "socket" else "http://{}:{}".format(*self.http)
        return recollect.connect(address, **options)

    def close(self) -> None:
        async def end() -> None:
            self.calls.stopping = True
            self.socket_door.abort()
            await self.socket_door.stop()
            await self.http_door.stop()
            self.http_door.abort()
            await asyncio.gather(self.http_door.flushed(), self.socket_door.flushed())
            self.calls.close()
            await asyncio.sleep(0.01)  # transports close their sockets in the next step

        try:
            self.run(end())
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(PATIENCE_S)
            self.loop.close()
            self.served.close()
            shutil.rmtree(self._sockets, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class LineClient:
    """A client of the socket, at the level of bytes and lines."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(str(path))  # without a timeout, it waits while the queue of connections is full
        self.socket.settimeout(PATIENCE_S)
        self._file = self.socket.makefile("rb")

    def send(self, *lines: bytes | dict[str, Any]) -> Self:
        """Send lines without waiting for answers."""
        data = b"".join((each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in lines)
        self.socket.sendall(data)
        return self

    def answer(self) -> Any:
        """Return the next answer. Raises EOFError if the server has closed the connection."""
        line = self._file.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        return json.loads(line)

    def ask(self, line: bytes | dict[str, Any]) -> Any:
        """Send a line and return its answer."""
        return self.send(line).answer()

    def code(self, line: bytes | dict[str, Any]) -> str:
        """Send a line, which is refused, and return the code of the error."""
        answer = self.ask(line)
        assert answer["ok"] is False, answer
        return str(answer["error"]["code"])

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class HttpClient:
    """A client of HTTP at the level of bytes."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=PATIENCE_S)

    def answer(self, data: bytes, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
        """Send bytes, and return the status, the headers and the body of the answer."""
        with suppress(BrokenPipeError, ConnectionResetError):  # the server may answer before it has read all
            self.socket.sendall(data)
        response = http.client.HTTPResponse(self.socket, method=method)
        try:
            response.begin()
            return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        finally:
            response.close()

    def closed(self) -> bool:
        """Wait until the server closes the connection, and return whether it sent nothing before."""
        return self.socket.recv(1) == b""

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@contextmanager
def many(count: int, make: Callable[[], T]) -> Iterator[list[T]]:
    """Make many clients, and close them at the end."""
    made: list[T] = []
    try:
        for _ in range(count):
            made.append(make())
        yield made
    finally:
        for each in made:
            each.close()  # type: ignore[attr-defined]
