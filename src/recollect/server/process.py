"""`recollect serve`: a memory and the doors that were asked for, in one process or in several, until a signal ends it.

At the first SIGTERM or SIGINT nothing new is accepted, what runs is completed and answered, and the store is closed. At
the second one the process ends at once: what was acknowledged is stored.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path

from recollect import RecollectWarning
from recollect.errors import InvalidArgumentError, RecollectError, UnsupportedError
from recollect.server.addresses import is_loopback
from recollect.server.assembly import Assembly, Sources, UiKeys, assembled
from recollect.server.doors import ending_by_signals, serve
from recollect.server.http.door import address_of_socket, listening_on, tuned
from recollect.server.logs import log_to_stderr, name_worker
from recollect.server.options import Options
from recollect.server.retention import hourly
from recollect.server.served_memory import Opener, ServedMemory
from recollect.server.socket.listening import SocketFile
from recollect.server.systemd import activated, notify
from recollect.server.workers.siblings import Siblings
from recollect.server.workers.supervisor import Accepting, Supervisor
from recollect.server.workers.worker import SupervisorChannel, failed
from recollect.wire import default_socket

_log = logging.getLogger("recollect.server")
#: Bytes of the key that the inspector signs with.
_KEY_BYTES = 32


def run(opener: Opener, namespace: str, options: Options) -> None:
    """Serve until a signal ends it.

    Args:
        opener: Opens the memory.
        namespace: The namespace of MCP clients whose token names none.
        options: What was asked for.

    Raises:
        InvalidArgumentError: An address cannot be used, or the file of tokens is invalid.
        StoreError: The store cannot be opened.
        UnsupportedError: The system has no forks, and several workers were asked for.
    """
    _allow_descriptors()
    given = activated()
    _check_doors(options, given)
    log_to_stderr(logging.WARNING if options.quiet else logging.INFO)
    warnings.simplefilter("ignore", RecollectWarning)  # clients get it in their answers
    served = ServedMemory(opener, read_only=options.read_only)
    ui = _ui_keys(options)
    build = partial(assembled, served, namespace, options, ui=ui)
    try:
        if options.workers == 1:
            served.check()
            with _sources(options, given) as sources, hourly(served):
                asyncio.run(_alone(build(sources), options, partial(_ready, options, ui)))
        else:
            with _sources(options, given) as sources:
                _in_workers(served, build, sources, options, ui)
    finally:
        served.close()
        _log.info("stopped")


async def _alone(server: Assembly, options: Options, ready: Callable[[list[str]], None]) -> None:
    ended = asyncio.Event()
    with ending_by_signals(ended, server.doors, _ending):
        await serve(server.doors, server.calls, ended, ready=ready, leave_s=options.leave_seconds)


def _ready(options: Options, ui: UiKeys | None, addresses: list[str]) -> None:
    """Say where clients can connect."""
    for address in addresses:
        _log.info("listening on %s", address)
        if ui is not None and address.startswith("http:"):
            from recollect.server.ui.app import path_of_pages

            options.on_ui(f"{address}{path_of_pages(ui.secret)}/")  # with its secret: it is never logged
    notify(f"READY=1\nMAINPID={os.getpid()}")


def _ending() -> None:
    notify("STOPPING=1")


def _in_workers(
    served: ServedMemory,
    build: Callable[..., Assembly],
    sources: Sources,
    options: Options,
    ui: UiKeys | None,
) -> None:
    """Serve in several processes. The memory is opened in each of them, and not in this one."""
    with tempfile.TemporaryDirectory(prefix="recollect-workers-") as folder:

        def work(number: int, channel: socket.socket) -> None:
            name_worker(number)
            try:
                try:
                    served.check()
                    served.check_shared()
                    siblings = Siblings(Path(folder), number, options.workers)
                    server = build(sources.of_worker, siblings=siblings)
                except RecollectError as error:
                    failed(channel, error)
                    return
                with hourly(served) if number == 1 else nullcontext():
                    asyncio.run(_as_worker(server, channel, options))
            finally:
                served.close()

        listening = [_accepting(each) for each in (*sources.unix, *sources.inet)]
        supervisor = Supervisor(options.workers, work, listening, options.leave_seconds)
        supervisor.run(partial(_ready, options, ui), _ending)


async def _as_worker(server: Assembly, channel: socket.socket, options: Options) -> None:
    ended = asyncio.Event()
    taking: list[asyncio.Task[None]] = []

    def ready(addresses: list[str]) -> None:
        taking.append(asyncio.create_task(SupervisorChannel(channel, server.doors, server.connections, ended).run()))

    doors = [*server.doors] if server.private is None else [*server.doors, server.private]
    await serve(doors, server.calls, ended, ready=ready, leave_s=options.leave_seconds)
    for each in taking:
        each.cancel()


def _accepting(source: SocketFile | socket.socket | None) -> Accepting:
    assert source is not None, "the supervisor has the sockets"
    if isinstance(source, SocketFile):
        return Accepting(source.socket, f"unix://{source.path}", source.close, source.drop)
    return Accepting(source, address_of_socket(source), source.close, source.close)


def _ui_keys(options: Options) -> UiKeys | None:
    if not options.with_ui:
        return None
    from recollect.server.ui.app import new_secret

    return UiKeys(None if options.tokens is not None else new_secret(), secrets.token_bytes(_KEY_BYTES))


@contextmanager
def _sources(options: Options, given: list[socket.socket]) -> Iterator[Sources]:
    """Provide the listening sockets, those of systemd first. Those that it has not opened are closed at the end.

    Raises:
        InvalidArgumentError: An address cannot be used.
    """
    unix: list[SocketFile | socket.socket | None] = [each for each in given if each.family == socket.AF_UNIX]
    inet: list[socket.socket | None] = [tuned(each) for each in given if each.family != socket.AF_UNIX]
    path = options.socket_path
    if path is None and options.host is None and not given:
        path = default_socket()
    with ExitStack() as stack:
        if path is not None:
            file = SocketFile(path)
            stack.callback(file.close)
            unix.append(file)
        if options.host is not None and not inet:
            listening = listening_on(options.host, options.port)
            stack.callback(listening.close)
            inet.append(listening)
        yield Sources(unix, inet)


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
        UnsupportedError: An option has no effect, or the system has no forks.
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
    if options.workers > 1 and not (hasattr(os, "fork") and hasattr(socket, "send_fds")):
        raise UnsupportedError("--workers", "this system has no forks: start several servers behind a proxy")


def _without_effect(stated: tuple[str, ...], door: str) -> UnsupportedError:
    return UnsupportedError(", ".join(stated), f"without {door} this has no effect: add {door}, or leave it out")
