"""A server over HTTP and a socket in the process of the tests, and a client that sends what it is given."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from starlette.routing import BaseRoute, Route

import recollect
from recollect.records.origins import Origin
from recollect.server.addresses import allowed_hosts
from recollect.server.assembly import NAMES, facts_of
from recollect.server.calls import ClientCalls
from recollect.server.http.app import McpClients, application
from recollect.server.http.door import HttpDoor, listening_on
from recollect.server.http.exchange import Site
from recollect.server.http.guard import Guard
from recollect.server.mcp.mounted import MountedMcp
from recollect.server.metrics import Metrics
from recollect.server.served_memory import Opener, ServedMemory
from recollect.server.tokens import Tokens, add_entry, entry, new_token
from recollect.server.ui.app import Inspector, new_secret
from recollect.server.waits import Waits
from recollect.wire import Allowed, Desk

_TIMEOUT_S = 30.0


class Answer(NamedTuple):
    """An answer of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """A server that runs, and requests to it."""

    def __init__(
        self,
        address: str,
        folder: Path,
        calls: ClientCalls,
        metrics: Metrics,
        site: Site,
        mcp: MountedMcp | None,
        loop: asyncio.AbstractEventLoop,
        ui: str = "",
    ) -> None:
        self.ui = ui
        self.address = address
        self.loop = loop
        self.site = site
        self.calls = calls
        self.metrics = metrics
        self._folder = folder
        self._mcp = mcp

    def running(self) -> int:
        """Return how many requests run, and streams last."""
        return self.site.guard._running.total()

    def batches(self) -> int:
        """Return how many batches are open."""
        return len(self.site.batches)

    def tasks(self) -> int:
        """Return how many protocols of MCP run."""
        assert self._mcp is not None
        return len(self._mcp._tasks)

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] = {},
    ) -> Answer:
        """Send a request and return the answer."""
        connection = http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=_TIMEOUT_S)
        sent = dict(headers) | ({"Authorization": f"Bearer {token}"} if token else {})
        raw = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        try:
            connection.request(method, path, raw, sent)
            response = connection.getresponse()
            return Answer(
                response.status, {key.lower(): value for key, value in response.getheaders()}, response.read()
            )
        finally:
            connection.close()

    def left_after(self, method: str, path: str, body: Any, begun: threading.Semaphore) -> None:
        """Send a request, and leave when it has begun."""
        connection = http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=_TIMEOUT_S)
        try:
            connection.request(method, path, json.dumps(body).encode())
            assert begun.acquire(timeout=_TIMEOUT_S)
        finally:
            connection.close()

    def token(
        self,
        name: str,
        right: Allowed = "write",
        namespaces: tuple[str, ...] = (),
        *,
        origin: Origin | None = None,
        branches: tuple[str, ...] = (),
        **scope: str,
    ) -> str:
        """Add a token to the file of the server and return it."""
        made = new_token()
        add_entry(self._folder / "tokens.toml", entry(name, made, right, namespaces, scope, origin, branches))
        return made

    def memory(self, namespace: str = "default", token: str | None = None) -> recollect.Memory:
        """Connect to it."""
        return recollect.connect(self.address, namespace, token=token)


@contextmanager
def served(
    folder: Path,
    *,
    tokens: bool = False,
    mcp: bool = False,
    ui: bool = False,
    alone: bool = False,
    batch_s: float = 5.0,
    timeout: float = 10.0,
    opened: Opener | None = None,
    **guard: Any,
) -> Iterator[Server]:
    """Serve a store in a folder over HTTP.

    Args:
        ui: Whether the inspector is served, too; `alone`: and nothing else.
        opened: What opens the memory instead.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="served")
    thread.start()

    def opener(*, create: bool, read_only: bool) -> recollect.Memory:
        return recollect.open(
            folder / "served.db", create=create, read_only=read_only, embedder="none", timeout=timeout
        )

    memory = ServedMemory(opened or opener)
    desk = Desk(lambda writes: memory.writing() if writes else memory.reading())
    metrics = Metrics(NAMES, lambda: facts_of(desk), desk.indexes)
    calls = ClientCalls(desk, metrics.served, batch_s)
    calls.failed = memory.failed
    if tokens:
        (folder / "tokens.toml").touch(0o600)
        guard["tokens"] = Tokens(folder / "tokens.toml")
    site = Site(calls, Waits(memory), Guard(**{"hosts": allowed_hosts("127.0.0.1", ()), **guard}))
    mounted = MountedMcp(memory, calls, "default", ("recollect", "reference")) if mcp else None
    more: tuple[BaseRoute, ...] = () if mounted is None else (Route("/mcp", McpClients(site, mounted)),)
    path = ""
    if ui:
        inspector = Inspector(site, "default", None if tokens else new_secret(), os.urandom(32), api=not alone)
        more, path = (*more, *inspector.routes()), inspector.path
    app = application(site, metrics, more, alone=alone)
    door = HttpDoor(site, app, listening_on("127.0.0.1", 0), None if mounted is None else mounted.close)

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(_TIMEOUT_S)

    try:
        yield Server(run(door.open()), folder, calls, metrics, site, mounted, loop, path)
    finally:
        calls.stopping = True
        run(door.stop())
        loop.call_soon_threadsafe(door.abort)
        run(door.flushed())
        calls.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        memory.close()
