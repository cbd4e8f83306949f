"""The options of a server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from recollect.policies import Level
from recollect.server.limits import BATCH_S, BODY_BYTES, CALL_S, MOST_RUNNING


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
        leave_seconds: How long the server goes on at the end, while it says that it is not ready.
        workers: Number of processes that serve the doors.
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
    leave_seconds: float = 0.0
    workers: int = 1
    max_bytes: int = BODY_BYTES
    max_requests: int = MOST_RUNNING
    index_bytes: int | None = None
    vector_bytes: int | None = None
    log_calls: bool = False
    tracing: bool = False
    quiet: bool = False
    for_http: tuple[str, ...] = ()
    for_socket: tuple[str, ...] = ()
