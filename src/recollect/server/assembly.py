"""Putting a server together from its options: what executes calls, what counts them, and its doors."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from starlette.routing import BaseRoute, Route

from recollect.operations.base import all_operations
from recollect.server.calls import ClientCalls, OnServed
from recollect.server.doors import Door
from recollect.server.http.app import McpClients, application
from recollect.server.http.door import HttpDoor
from recollect.server.http.exchange import Site
from recollect.server.http.guard import Guard
from recollect.server.metrics import COUNTER, GAUGE, Metrics
from recollect.server.options import Options
from recollect.server.served_memory import ServedMemory
from recollect.server.socket.actions import ACTIONS
from recollect.server.socket.connection import SocketState
from recollect.server.socket.door import SocketDoor
from recollect.server.socket.listening import SocketFile
from recollect.server.tokens import Tokens
from recollect.server.waits import Waits
from recollect.server.workers.siblings import Siblings
from recollect.wire import Desk, Grant

_log = logging.getLogger("recollect.server")
#: What is counted by name in the metrics apart from operations.
NAMES = frozenset((*all_operations(), *ACTIONS, "batch", "context", "parse"))


class Sources(NamedTuple):
    """Where the connections of the doors come from, one for each door.

    Attributes:
        unix: Listening Unix sockets, or their files; None: the supervisor of the workers accepts connections.
        inet: Listening TCP sockets; None as before.
    """

    unix: Sequence[SocketFile | socket.socket | None] = ()
    inet: Sequence[socket.socket | None] = ()

    @property
    def of_worker(self) -> Sources:
        """The same doors, of a worker."""
        return Sources([None] * len(self.unix), [None] * len(self.inet))


class UiKeys(NamedTuple):
    """The secrets of the inspector, the same in all workers.

    Attributes:
        secret: The first part of their paths; None: there is none, and tokens are needed.
        signs: Signs what they say.
    """

    secret: str | None
    signs: bytes


class Assembly(NamedTuple):
    """A server.

    Attributes:
        calls: Executes the calls of clients.
        doors: The ways in, first those of `Sources.unix`, then those of `Sources.inet`.
        private: The way in for the other workers; None: there are none.
        connections: Returns how many connections clients have.
    """

    calls: ClientCalls
    doors: list[Door]
    private: HttpDoor | None
    connections: Callable[[], int]


def assembled(
    served: ServedMemory,
    namespace: str,
    options: Options,
    sources: Sources,
    *,
    ui: UiKeys | None,
    siblings: Siblings | None = None,
) -> Assembly:
    """Put a server together.

    Args:
        served: The memory.
        namespace: The namespace of MCP clients whose token names none.
        options: What was asked for.
        sources: Where connections come from.
        ui: The keys of the inspector; None: it is not served.
        siblings: The other workers; None: there are none.
    """
    desk = Desk(lambda writes: served.writing() if writes else served.reading())
    metrics = Metrics(NAMES, lambda: facts_of(desk), desk.indexes)
    calls = _calls(desk, metrics, served, options)
    waits = Waits(served)
    grant = Grant().read_only() if options.read_only else Grant()
    shared = SocketState(calls, grant, waits, salience=options.salience, line_bytes=options.max_bytes)
    doors: list[Door] = [SocketDoor(shared, each) for each in sources.unix]
    watched: dict[str, Callable[[], int]] = {"socket": lambda: len(shared.connections)}
    private = None
    if sources.inet:
        guard = Guard(
            tokens=None if options.tokens is None else Tokens(options.tokens),
            hosts=options.hosts,
            origins=options.origins,
            body_bytes=options.max_bytes,
            most_running=options.max_requests,
            read_only=options.read_only,
        )
        site = Site(calls, waits, guard, options.call_seconds)
        more, end = _mounted(site, served, calls, namespace, options, ui)
        metrics_shown = None if options.only_ui else metrics
        app: Any = application(site, metrics_shown, more, alone=options.only_ui)
        if siblings is not None:
            site.batch_prefix = siblings.prefix
            private = HttpDoor(site, app, siblings.listening())
            app = siblings.application(app)
        https = [HttpDoor(site, app, each, end) for each in sources.inet]
        doors += https
        watched["http"] = lambda: sum(door.connections for door in https)
    metrics.watch(lambda: calls.running, **watched)
    return Assembly(calls, doors, private, lambda: sum(count() for count in watched.values()))


def _calls(desk: Desk, metrics: Metrics, served: ServedMemory, options: Options) -> ClientCalls:
    on_served: OnServed = metrics.served
    if options.log_calls:

        def on_served(door: str, name: str, seconds: float, code: str) -> None:
            metrics.served(door, name, seconds, code)
            known = name if name in NAMES else "other"
            _log.info("call", extra={"door": door, "operation": known, "ms": round(seconds * 1000, 3), "error": code})

    calls = ClientCalls(desk, on_served, options.batch_seconds)
    calls.call_s = options.call_seconds
    calls.failed = served.failed
    if options.tracing:
        from recollect.observe.serving import continued  # it needs the extra "otel"

        calls.continued = continued
        logging.getLogger("opentelemetry.trace").setLevel(logging.ERROR)  # its warnings quote headers of clients
    return calls


def _mounted(
    site: Site, served: ServedMemory, calls: ClientCalls, namespace: str, options: Options, ui: UiKeys | None
) -> tuple[tuple[BaseRoute, ...], Any]:
    """Return the routes of MCP and of the inspector, and what ends the streams of MCP clients."""
    more: tuple[BaseRoute, ...] = ()
    end = None
    if options.with_mcp:
        from recollect.server.mcp.mounted import MountedMcp

        mcp = MountedMcp(served, calls, namespace, options.tools)
        more, end = (Route("/mcp", McpClients(site, mcp)),), mcp.close
    if ui is not None:
        from recollect.server.ui.app import Inspector

        more += tuple(Inspector(site, namespace, ui.secret, ui.signs, api=not options.only_ui).routes())
    return more, end


def facts_of(desk: Desk) -> dict[str, tuple[float, str, str]]:
    """Return numbers about the store for the metrics, each with its kind and a help text. They name no namespace."""
    facts = desk.store_facts()
    return {name: (float(facts[key]), kind, about) for key, (name, kind, about) in _FACTS.items() if key in facts}


#: What a store says of itself (`Store.facts`) -> the name of the metric, its kind and its help text.
_FACTS = {
    "file_bytes": ("store_file_bytes", GAUGE, "Size of the file of the store."),
    "log_bytes": ("store_wal_bytes", GAUGE, "Size of the write-ahead log of the store."),
    "pool_size": ("pool_connections_max", GAUGE, "Maximum number of connections to the database."),
    "pool_lent": ("pool_connections_used", GAUGE, "Connections to the database that are in use."),
    "pool_waiting": ("pool_waiting", GAUGE, "Calls that wait for a connection to the database."),
    "pool_opened": ("pool_connections_opened", COUNTER, "Connections to the database that were opened."),
    "round_trips": ("database_round_trips", COUNTER, "How often a call waited for an answer of the database."),
    "commits_resolved": ("commits_resolved", COUNTER, "Commits whose answer was lost, and that were looked up."),
    "commits_in_doubt": ("commits_in_doubt", COUNTER, "Commits of which it is not known whether they happened."),
    "lost_commits": ("lost_commits", COUNTER, "Commits that were seen and that a failover has lost."),
    "replica_usable": ("replica_usable", GAUGE, "Whether the standby is read."),
    "replica_reads": ("replica_reads", COUNTER, "Views that were read from the standby."),
    "replica_waits": (
        "replica_waits",
        COUNTER,
        "Views that waited for a commit of the standby, even in vain.",
    ),
    "replica_behind": ("replica_behind", COUNTER, "Views of the primary, since the standby lacked a commit."),
    "replica_failures": ("replica_failures", COUNTER, "How often the standby could not be read."),
}
