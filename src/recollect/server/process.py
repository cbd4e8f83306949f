"""`recollect serve`: the doors that were asked for, on one memory, until a signal ends it.

At the first SIGTERM or SIGINT nothing new is accepted, what runs is completed and answered, and the store is closed. At
the second one the process ends at once: what was acknowledged is stored.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from starlette.routing import BaseRoute, Route

from recollect import RecollectWarning
from recollect import __version__ as version
from recollect.errors import InvalidArgumentError, UnsupportedError
from recollect.operations.base import REGISTRY
from recollect.policies import Level
from recollect.server.addresses import is_loopback
from recollect.server.calls import ClientCalls
from recollect.server.http.app import HttpDoor, McpClients, application
from recollect.server.http.exchange import Site
from recollect.server.http.guard import Guard
from recollect.server.limits import BATCH_S, BODY_BYTES, CALL_S, DRAIN_S, MOST_RUNNING
from recollect.server.metrics import Metrics
from recollect.server.served_memory import Opener, ServedMemory
from recollect.server.socket.actions import ACTIONS
from recollect.server.socket.connection import SocketState
from recollect.server.socket.door import SocketDoor
from recollect.server.tokens import Tokens
from recollect.server.waits import Waits
from recollect.wire import Desk, Grant, default_socket

_log = logging.getLogger("recollect.server")
#: Seconds that clients have to read the answers to it.
FLUSH_S = 5.0
#: Seconds that doors have to notice that their connections were closed.
ABORT_S = 1.0


class Door(Protocol):
    """A way in."""

    async def open(self) -> str:
        """Begin to accept clients, and return the address for people."""

    async def stop(self) -> None:
        """Accept no more clients, and let clients go when their calls have been answered."""

    async def flushed(self) -> None:
        """Return when the clients have got their answers, and all connections are closed."""

    def abort(self) -> None:
        """Close all connections at once."""


async def serve(
    doors: list[Door], calls: ClientCalls, *, ready: Callable[[str], object], drain_s: float = DRAIN_S
) -> None:
    """Open the doors, and serve until a signal ends it.

    Args:
        doors: The ways in.
        calls: What all of them execute calls with.
        ready: Called with the address of each door when clients can connect.
        drain_s: Seconds that what runs may take at the end.
    """
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    signals = 0

    def on_signal() -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            _log.warning("a second signal: ending at once")
            for each in doors:
                each.abort()
            sys.stderr.flush()
            os._exit(1)
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    opened: list[Door] = []
    try:
        for each in doors:
            address = await each.open()
            opened.append(each)
            ready(address)
        notify(f"READY=1\nMAINPID={os.getpid()}")
        await ended.wait()
        notify("STOPPING=1")
        _log.info("stopping: %d calls run", calls.running)
    finally:
        calls.stopping = True
        await asyncio.gather(*(each.stop() for each in opened))
    if not await calls.drained(drain_s):
        _log.warning("%d calls did not end within %g s", calls.running, drain_s)
    for seconds in (FLUSH_S, ABORT_S):
        with suppress(TimeoutError):  # of clients that do not read
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(each.flushed() for each in doors))
        for each in doors:
            each.abort()
    calls.close()
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(ValueError):
            loop.remove_signal_handler(number)


#: What is counted by name in the metrics apart from operations.
_NAMES = frozenset((*REGISTRY, *ACTIONS, "batch", "context", "parse"))


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options with which a server was started.

    Attributes:
        socket_path: The path of the socket; None: the default one, unless there is another door.
        host: The host of HTTP; None: no HTTP.
        port: Its port; 0: any free one.
        with_mcp: Whether MCP is served, too.
        with_ui: Whether the inspector is served, too.
        only_ui: Whether nothing else is served.
        on_ui: Called with the address of the inspector when it can be opened.
        tools: The sets of tools for MCP clients.
        tokens: The file of tokens.
        hosts: The names that the header Host may have; None: any.
        origins: The origins of web pages that may send requests.
        read_only: Whether clients can only read.
        salience: How strictly the action store judges texts.
        batch_seconds: How long a batch may stay open.
        call_seconds: How long a call may take.
        max_bytes: Maximum size of a request.
        max_requests: Number of requests of one token that run at the same time.
        index_bytes, vector_bytes: Memory limits.
        log_calls: Whether each call is logged.
        tracing: Whether the traces of clients are continued. The opener then opens a memory that is traced.
        quiet: Whether only what goes wrong is logged.
        for_http, for_socket: The options that were stated and that concern only one door, for messages.
    """

    socket_path: Path | None = None
    host: str | None = None
    port: int = 0
    with_mcp: bool = False
    with_ui: bool = False
    only_ui: bool = False
    on_ui: Callable[[str], object] = print
    tools: tuple[str, ...] = ()
    tokens: Path | None = None
    hosts: frozenset[str] | None = None
    origins: frozenset[str] = frozenset()
    read_only: bool = False
    salience: Level = "normal"
    batch_seconds: float = BATCH_S
    call_seconds: float = CALL_S
    max_bytes: int = BODY_BYTES
    max_requests: int = MOST_RUNNING
    index_bytes: int | None = None
    vector_bytes: int | None = None
    log_calls: bool = False
    tracing: bool = False
    quiet: bool = False
    for_http: tuple[str, ...] = ()
    for_socket: tuple[str, ...] = ()


def run(opener: Opener, namespace: str, options: Options) -> None:
    """Serve until a signal ends it.

    Args:
        opener: Opens the memory.
        namespace: The namespace of MCP clients whose token names none.
        options: What was asked for.

    Raises:
        InvalidArgumentError: An address cannot be used, or the file of tokens is invalid.
        StoreError: The store cannot be opened.
    """
    _allow_descriptors()
    given = activated()
    _check_doors(options, given)
    _log_to_stderr(logging.WARNING if options.quiet else logging.INFO)
    warnings.simplefilter("ignore", RecollectWarning)  # clients get it in their answers
    served = ServedMemory(opener, read_only=options.read_only)
    served.check()
    try:
        asyncio.run(_serve(served, namespace, options, given))
    finally:
        served.close()
        _log.info("stopped")


def _allow_descriptors() -> None:
    """Raise the limit of open files to what the system allows: each client has a connection, and an export several."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # what the system does not allow
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _check_doors(options: Options, given: list[socket.socket]) -> None:
    """Check that what was asked for fits the doors: the addresses, and the sockets that systemd has opened.

    Raises:
        InvalidArgumentError: Other machines could reach the server without a token.
        UnsupportedError: An option has no effect.
    """
    hosts = [str(each.getsockname()[0]) for each in given if each.family != socket.AF_UNIX]
    hosts += [] if options.host is None else [options.host]
    if options.tokens is None:
        for host in hosts:
            if not is_loopback(host):
                rule = "can be reached by other machines: pass --tokens FILE, or listen on 127.0.0.1"
                raise InvalidArgumentError("http", host, rule)
    if not hosts and options.for_http:
        raise _without_effect(options.for_http, "--http")
    has_socket = options.socket_path is not None or not hosts or len(given) > len(hosts)
    if options.for_socket and not has_socket:
        raise _without_effect(options.for_socket, "--socket")


def _without_effect(stated: tuple[str, ...], door: str) -> UnsupportedError:
    return UnsupportedError(", ".join(stated), f"without {door} this has no effect: add {door}, or leave it out")


async def _serve(served: ServedMemory, namespace: str, options: Options, given: list[socket.socket]) -> None:
    desk = Desk(lambda writes: served.writing() if writes else served.reading())
    metrics = Metrics(_NAMES, lambda: _facts(served), desk.indexes)
    on_served = metrics.served
    if options.log_calls:

        def on_served(door: str, name: str, seconds: float, code: str) -> None:
            metrics.served(door, name, seconds, code)
            known = name if name in _NAMES else "other"
            _log.info("call", extra={"door": door, "operation": known, "ms": round(seconds * 1000, 3), "error": code})

    calls = ClientCalls(desk, on_served)
    calls.batch_s = options.batch_seconds
    calls.call_s = options.call_seconds
    calls.failed = served.failed
    if options.tracing:
        from recollect.observe.serving import continued  # it needs the extra "otel"

        calls.continued = continued
        logging.getLogger("opentelemetry.trace").setLevel(logging.ERROR)  # its warnings quote headers of clients
    waits = Waits(served)
    shared = SocketState(
        calls,
        Grant().read_only() if options.read_only else Grant(),
        waits,
        salience=options.salience,
        line_bytes=options.max_bytes,
    )
    mcp = None
    unix = [each for each in given if each.family == socket.AF_UNIX]
    inet = [each for each in given if each.family != socket.AF_UNIX]
    doors: list[Door] = [SocketDoor(shared, None, each) for each in unix]
    path = options.socket_path
    if path is None and options.host is None and not given:
        path = default_socket()
    if path is not None:
        doors.append(SocketDoor(shared, path))
    inspector = None
    watched = {"socket": lambda: len(shared.connections)}
    if options.host is not None or inet:
        guard = Guard(
            tokens=None if options.tokens is None else Tokens(options.tokens),
            hosts=options.hosts,
            origins=options.origins,
            body_bytes=options.max_bytes,
            most_running=options.max_requests,
            read_only=options.read_only,
        )
        site = Site(calls, waits, guard, options.call_seconds)
        if options.with_mcp:
            from recollect.server.mcp.mounted import MountedMcp

            mcp = MountedMcp(served, calls, namespace, options.tools)
        more: tuple[BaseRoute, ...] = () if mcp is None else (Route("/mcp", McpClients(site, mcp)),)
        if options.with_ui:
            from recollect.server.ui.app import Inspector, new_secret

            secret = None if options.tokens is not None else new_secret()
            inspector = Inspector(site, namespace, secret, api=not options.only_ui)
            more += tuple(inspector.routes())
        app = application(site, None, more, alone=True) if options.only_ui else application(site, metrics, more)
        end = None if mcp is None else mcp.close
        https = [HttpDoor(site, app, options.host or "", options.port, each, end) for each in inet or (None,)]
        doors += https
        watched["http"] = lambda: sum(door.connections for door in https)
    metrics.watch(lambda: calls.running, **watched)

    def ready(address: str) -> None:
        _log.info("listening on %s", address)
        if inspector is not None and address.startswith("http:"):
            options.on_ui(address + inspector.path)  # with its secret: it is never logged

    await serve(doors, calls, ready=ready)


def _facts(served: ServedMemory) -> dict[str, tuple[float, str]]:
    """Return numbers about the store, for the metrics. They name no namespace."""
    if not served.is_open:
        return {}
    facts: dict[str, Any] = served.reading().stats().get("store", {})
    names = {
        "file_bytes": ("store_file_bytes", "Size of the file of the store."),
        "log_bytes": ("store_wal_bytes", "Size of the write-ahead log of the store."),
    }
    return {name: (float(facts[key]), about) for key, (name, about) in names.items() if key in facts}


class _Lines(logging.Formatter):
    """A log line as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        out: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        out |= {name: getattr(record, name) for name in ("door", "operation", "ms", "error") if hasattr(record, name)}
        return json.dumps(out, ensure_ascii=False)


def _log_to_stderr(level: int) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    log = logging.getLogger("recollect")
    log.handlers[:] = [handler]
    log.setLevel(level)
    log.propagate = False
    _log.info("starting recollect %s", version)


# What systemd passes to a service: sockets that are open already, and where it wants to know how the service is.

_FIRST = 3


def activated() -> list[socket.socket]:
    """Return the listening sockets that systemd has opened for this process (sd_listen_fds), and clear the variables.

    Raises:
        InvalidArgumentError: What it passed is not a listening stream socket.
    """
    process, count = os.environ.pop("LISTEN_PID", ""), os.environ.pop("LISTEN_FDS", "")
    os.environ.pop("LISTEN_FDNAMES", None)
    if process != str(os.getpid()) or not count.isascii() or not count.isdigit():
        return []
    out: list[socket.socket] = []
    for descriptor in range(_FIRST, _FIRST + int(count)):
        os.set_inheritable(descriptor, False)
        try:
            each = socket.socket(fileno=descriptor)
            listens = each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        except OSError as error:
            raise InvalidArgumentError("LISTEN_FDS", count, f"names a descriptor that is no socket: {error}") from None
        if each.type != socket.SOCK_STREAM or not listens:
            raise InvalidArgumentError("LISTEN_FDS", count, "names a socket that is not a listening stream socket")
        each.setblocking(False)
        out.append(each)
    return out


def notify(state: str) -> bool:
    """Tell systemd the state of the service (sd_notify), such as "READY=1". Return whether it wants to know."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path.startswith(("/", "@")):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | getattr(socket, "SOCK_CLOEXEC", 0)) as channel:
        try:
            channel.sendto(state.encode(), "\0" + path[1:] if path[0] == "@" else path)
        except OSError:
            return False
    return True
