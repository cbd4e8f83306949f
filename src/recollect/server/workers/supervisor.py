"""The supervisor: it accepts the connections of clients, gives each to a worker, and starts a worker again that dies.

Workers are forks of it, made before it has opened a store or started a thread. Each has a channel: the supervisor sends
a byte for each connection, the number of its door, together with the connection, and `_STOP` at the end; the worker
sends lines of JSON that say how many connections it has. A connection is given to the worker that has the fewest. One
whose channel is closed has ended, and a worker whose supervisor is gone ends, too.
"""

from __future__ import annotations

import array
import json
import logging
import math
import os
import selectors
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from recollect.errors import RecollectError, ServerError
from recollect.server.doors import ABORT_S, FLUSH_S
from recollect.server.limits import DRAIN_S
from recollect.server.workers.worker import STOP

_log = logging.getLogger("recollect.server")
#: A worker that lived for a shorter time is started again after a pause, which doubles, in seconds.
_LIVED_S, _FIRST_PAUSE_S, _LONGEST_PAUSE_S = 10.0, 0.5, 30.0
#: How long workers may take to end, in seconds: longer than they wait for what runs.
_END_S = DRAIN_S + FLUSH_S + ABORT_S + 5.0
#: How long no worker has taken a connection before it is tried again, in seconds.
_AGAIN_S = 0.01
_CHUNK = 2**16


class Accepting(NamedTuple):
    """A listening socket.

    Attributes:
        socket: The socket.
        address: Its address, for people.
        close: Closes it, and removes its file if it has one.
        drop: Closes it in a fork, to which its file does not belong.
    """

    socket: socket.socket
    address: str
    close: Callable[[], object]
    drop: Callable[[], object]


@dataclass(eq=False)
class _Worker:
    """A worker as the supervisor sees it.

    Attributes:
        number: Its number, from 1 on.
        process: The number of its process; 0: it does not run.
        channel: The end of its channel.
        begun: When it was started, in seconds of the clock.
        again: When it is started again, if it does not run.
        pause_s: How long the pause before was.
        handed: How many connections were given to it.
        open, taken: How many it had and had taken when it said so last.
        is_ready: Whether it serves connections.
        error: Why it could not begin, in the form of `RecollectError.to_json`.
    """

    number: int
    process: int = 0
    channel: socket.socket | None = None
    begun: float = 0.0
    again: float = math.inf
    pause_s: float = 0.0
    handed: int = 0
    open: int = 0
    taken: int = 0
    is_ready: bool = False
    error: dict[str, Any] | None = None
    said: bytearray = field(default_factory=bytearray)

    @property
    def connections(self) -> int:
        return self.open + self.handed - self.taken


class Supervisor:
    """Runs workers until a signal ends them.

    Args:
        count: How many workers there are.
        work: Serves in a worker: called with its number and its end of the channel. It returns at the end.
        listening: The sockets on which clients connect.
        leave_s: How long a worker may go on at the end before it stops.
    """

    def __init__(
        self,
        count: int,
        work: Callable[[int, socket.socket], object],
        listening: Sequence[Accepting],
        leave_s: float = 0.0,
    ) -> None:
        self._work = work
        self._listening = listening
        self._open = [*listening]
        self._end_s = _END_S + leave_s
        self._leave_s = leave_s
        self._workers = [_Worker(number) for number in range(1, count + 1)]
        self._selector = selectors.DefaultSelector()
        self._accepts = False
        self._waiting: deque[tuple[int, socket.socket]] = deque()  # accepted, and taken by no worker yet
        self._signals = 0

    def run(self, ready: Callable[[list[str]], object], ending: Callable[[], object]) -> None:
        """Serve until a signal ends it.

        Args:
            ready: Called with the addresses when clients can connect.
            ending: Called when the end begins.

        Raises:
            RecollectError: A worker could not begin, such as because the store cannot be opened.
        """
        waking, woken = self._waking = socket.socketpair()
        for end in self._waking:
            end.setblocking(False)
        previous = {number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
        previous[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        self._selector.register(waking, selectors.EVENT_READ, lambda: waking.recv(_CHUNK))
        try:
            self._begin()
            if not self._signals:
                self._accept(True)
                ready([each.address for each in self._listening])
            while not self._signals:
                self._step()
            ending()
            self._end()
        finally:
            self._close_doors()
            self._kill()
            signal.set_wakeup_fd(-1)
            for number, handler in previous.items():
                signal.signal(number, handler)
            self._selector.close()
            for end in self._waking:
                end.close()

    def _on_signal(self, number: int, frame: object) -> None:
        self._signals += 1
        if self._signals > 1:
            self._kill()
            sys.stderr.flush()
            os._exit(1)

    def _begin(self) -> None:
        """Start the workers: the first one alone, so that a store that cannot be opened is an error of one of them.

        Raises:
            RecollectError: One could not begin.
        """
        for group in (self._workers[:1], self._workers[1:]):
            for worker in group:
                worker.again = 0.0
            while not self._signals and not all(each.is_ready for each in group):
                self._step()
                for each in group:
                    if each.error is not None:
                        raise RecollectError.from_json(each.error)
                    if each.pause_s:
                        raise ServerError("a worker ended before it served: see the log")

    def _end(self) -> None:
        """Let the workers end, which complete and answer what runs."""
        _log.info("stopping %d workers", len(self._workers))
        until = time.monotonic() + self._end_s
        if not self._leave_s:
            self._close_doors()
        leaving = time.monotonic() + self._leave_s
        for each in self._workers:
            if each.channel is not None:
                with suppress(OSError):
                    each.channel.send(STOP)
        while any(each.process for each in self._workers) and time.monotonic() < until:
            self._step()
            if self._leave_s and time.monotonic() >= leaving:
                self._close_doors()
        self._close_doors()

    def _close_doors(self) -> None:
        """Accept no more connections."""
        self._accept(False)
        while self._open:
            self._open.pop().close()
        while self._waiting:
            self._waiting.popleft()[1].close()

    def _step(self) -> None:
        """Wait for something, and do what it asks for."""
        now = time.monotonic()
        timeout = min((60.0, *(each.again - now for each in self._workers if not each.process)))
        if self._signals:
            timeout = min(timeout, 0.1)
        if self._waiting:
            timeout = min(timeout, _AGAIN_S)
        for key, _ in self._selector.select(max(0.0, timeout)):
            key.data()
        while self._waiting and self._give(*self._waiting[0]):
            self._waiting.popleft()
        for each in self._workers:
            if not each.process and not self._signals and time.monotonic() >= each.again:
                self._start(each)

    # Workers

    def _start(self, worker: _Worker) -> None:
        """Fork a worker."""
        ours, theirs = socket.socketpair()
        process = os.fork()
        if not process:
            self._become(worker, ours, theirs)
        theirs.close()
        ours.setblocking(False)
        worker.process, worker.channel, worker.begun = process, ours, time.monotonic()
        worker.handed = worker.open = worker.taken = 0
        worker.is_ready, worker.error = False, None
        worker.said.clear()
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._listen(worker))

    def _become(self, worker: _Worker, ours: socket.socket, theirs: socket.socket) -> None:
        """Serve as a worker, and end this process."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)  # until it serves
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._selector.close()
            for end in (ours, *self._waking):
                end.close()
            for each in self._workers:
                if each.channel is not None:
                    each.channel.close()
            for listening in self._listening:
                listening.drop()
            for _, connection in self._waiting:
                connection.close()
            self._work(worker.number, theirs)
            code = 0
        except BaseException:  # noqa: BLE001 - nothing may return into the code of the supervisor
            _log.exception("a worker has failed")
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _listen(self, worker: _Worker) -> None:
        """Read what a worker says."""
        assert worker.channel is not None
        try:
            data = worker.channel.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._ended(worker)
            return
        worker.said += data
        while (end := worker.said.find(b"\n")) >= 0:
            message = json.loads(worker.said[:end])
            del worker.said[: end + 1]
            worker.is_ready = worker.is_ready or "open" in message
            worker.open, worker.taken = message.get("open", worker.open), message.get("taken", worker.taken)
            worker.error = message.get("failed", worker.error)

    def _ended(self, worker: _Worker) -> None:
        """Note that a worker has ended, and when it is to be started again."""
        assert worker.channel is not None
        self._selector.unregister(worker.channel)
        worker.channel.close()
        worker.channel = None
        _, status = os.waitpid(worker.process, 0)
        code = os.waitstatus_to_exitcode(status)
        lived_s = time.monotonic() - worker.begun
        worker.process, worker.is_ready = 0, False
        if self._signals:
            return
        if worker.error is not None:
            _log.error("worker %d cannot begin: %s", worker.number, worker.error.get("message"))
        short = lived_s < _LIVED_S
        worker.pause_s = min(_LONGEST_PAUSE_S, 2 * worker.pause_s or _FIRST_PAUSE_S) if short else 0.0
        worker.again = time.monotonic() + worker.pause_s
        how = f"by the signal {signal.Signals(-code).name}" if code < 0 else f"with the code {code}"
        _log.error("worker %d ended %s: it is started again in %g s", worker.number, how, worker.pause_s)

    def _kill(self) -> None:
        """End the workers at once."""
        for each in self._workers:
            if each.process:
                with suppress(ProcessLookupError):
                    os.kill(each.process, signal.SIGKILL)
                with suppress(ChildProcessError):
                    os.waitpid(each.process, 0)
                each.process = 0
            if each.channel is not None:
                each.channel.close()
                each.channel = None

    # Connections

    def _accept(self, accepts: bool) -> None:
        """Begin or end accepting connections."""
        if accepts == self._accepts:
            return
        self._accepts = accepts
        for door, each in enumerate(self._listening):
            if accepts:
                each.socket.setblocking(False)
                self._selector.register(each.socket, selectors.EVENT_READ, lambda door=door: self._next(door))
            else:
                self._selector.unregister(each.socket)

    def _next(self, door: int) -> None:
        """Give the next connection of a door to a worker."""
        if self._waiting:  # no worker takes any: the others wait in the queue of the system
            return
        try:
            connection, _ = self._listening[door].socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:  # no descriptor is left, for example
            _log.warning("a connection could not be accepted: %s", error.strerror or error)
            time.sleep(_AGAIN_S)
            return
        if not self._give(door, connection):
            self._waiting.append((door, connection))

    def _give(self, door: int, connection: socket.socket) -> bool:
        """Give a connection to the worker that has the fewest. Return whether one has taken it."""
        descriptor = array.array("i", [connection.fileno()])
        for worker in sorted(self._workers, key=lambda each: each.connections):
            if worker.channel is None or not worker.is_ready:
                continue
            try:
                worker.channel.sendmsg([bytes((door,))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptor)])
            except OSError:  # it is busy, or has ended
                continue
            worker.handed += 1
            connection.close()
            return True
        return False
