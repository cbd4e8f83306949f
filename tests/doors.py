"""Memories of tests behind a door: each engine that a test opens is served in this process, and reached over the wire.

One event loop in a thread of its own serves all of them: over a socket each, or below a path each of one HTTP server.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Coroutine
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Mount

from recollect.engine.engine import Engine
from recollect.ledger.commits import Branch
from recollect.memory import Memory
from recollect.models.embedding.base import Embedder
from recollect.server.calls import ClientCalls
from recollect.server.http.app import application
from recollect.server.http.door import HttpDoor, listening_on
from recollect.server.http.exchange import Site
from recollect.server.http.guard import Guard
from recollect.server.served_memory import ServedMemory
from recollect.server.socket.connection import SocketState
from recollect.server.socket.door import SocketDoor
from recollect.server.socket.listening import SocketFile
from recollect.server.waits import Waits
from recollect.wire import Desk, Grant
from recollect.wire.client.executor import RemoteExecutor
from recollect.wire.client.http import HttpTransport
from recollect.wire.client.transport import Patience, Transport
from recollect.wire.client.unix import UnixTransport

_TIMEOUT_S = 60.0


class BehindDoor(RemoteExecutor):
    """An executor that reaches an engine over a door, and closes it with itself.

    Args:
        engine: The engine.
        door: "socket" or "http".
    """

    def __init__(self, engine: Engine, door: str) -> None:
        self.executor = engine
        loop = _loop()
        self._end, transport = loop.serve(engine, door)
        weakref.finalize(self, loop.later, self._end).atexit = False  # of a memory that a test does not close
        super().__init__(transport, Patience(_TIMEOUT_S, 2))

    @property
    def location(self) -> str:
        return self.executor.location

    @property
    def embedder(self) -> Embedder | None:  # type: ignore[override]
        return self.executor.embedder

    def close(self) -> None:
        super().close()
        try:
            self.executor.close()
        finally:
            _loop().run(self._end())


class _Loop:
    """The event loop that serves all engines of the tests."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._folder = Path(tempfile.mkdtemp(prefix="recollect-"))
        self._numbers = count()
        self._http = ""
        self._app = Starlette()
        threading.Thread(target=self._loop.run_forever, name="doors", daemon=True).start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_TIMEOUT_S)

    def later(self, end: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run something soon, without waiting: it may be called by the garbage collector in any thread."""
        self._loop.call_soon_threadsafe(lambda: self._loop.create_task(end()))

    def serve(self, engine: Engine, door: str) -> tuple[Any, Transport]:
        return self.run(self._serve(engine, door))  # type: ignore[no-any-return]

    async def _serve(self, engine: Engine, door: str) -> tuple[Any, Transport]:
        memory = Memory(engine, Branch("default"))
        served = ServedMemory(lambda *, create, read_only: memory)
        served.reading()
        calls = ClientCalls(Desk(lambda writes: memory))
        calls.turn_s = getattr(engine.core.store, "_timeout_s", calls.turn_s)
        number = next(self._numbers)
        if door == "socket":
            path = self._folder / f"{number}.sock"
            opened = SocketDoor(SocketState(calls, Grant(), Waits(served)), SocketFile(path))
            await opened.open()

            async def stop() -> None:
                if not calls.stopping:
                    calls.stopping = True
                    await opened.stop()
                    opened.abort()
                    calls.close()

            return stop, UnixTransport(str(path), _TIMEOUT_S)
        site = Site(calls, Waits(served), Guard(most_running=1000))
        if not self._http:
            self._http = await HttpDoor(site, self._app, listening_on("127.0.0.1", 0)).open()
        mounted = Mount(f"/e{number}", application(site, None))
        self._app.router.routes.append(mounted)

        async def ended() -> None:
            if not calls.stopping:
                calls.stopping = True
                self._app.router.routes.remove(mounted)
                calls.close()

        return ended, HttpTransport(f"{self._http}/e{number}", None, _TIMEOUT_S, _TIMEOUT_S)

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


@cache
def _loop() -> _Loop:
    return _Loop()


def close() -> None:
    """Remove the sockets, at the end of all tests."""
    if _loop.cache_info().currsize:
        _loop().close()
