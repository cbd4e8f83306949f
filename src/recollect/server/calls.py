"""The calls of clients: executed in a bounded number of threads, counted, and logged without contents.

All doors share it. A call that was accepted is completed, also if its client is gone: a write must not be cut off.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from recollect.errors import ClosedError, RecollectError, ServerBusyError, ServerError
from recollect.server.limits import BATCH_S, EXPORT_S
from recollect.wire import Desk, Grant, OpenBatch, Place, Request, reads

T = TypeVar("T")
_log = logging.getLogger("recollect.server")
#: Number of reads that run at the same time, and of writes.
THREADS = 8
#: Number of batches that may wait for the write lock at the same time: each takes a thread.
MOST_BEGINNING = 64
#: Called with the door, the name of what was executed, seconds, and the code of the error or "".
OnServed = Callable[[str, str, float, str], object]


@dataclass
class Calls:
    """Executes the calls of clients.

    Attributes:
        desk: Executes requests.
        on_served: Called when a call has ended.
        batch_s: How long a batch may stay open.
        export_s: How long an export may stay open, in seconds. While it is, the WAL of the store cannot be emptied.
        most_waiting: Number of calls that may wait for a thread; further ones are refused.
        failed: Called in a thread with each error, so that a store that was replaced is opened again.
        running: Number of calls that run or wait for a thread.
        beginning: Number of batches that wait for the write lock.
        stopping: Whether the server stops: new calls are refused.
    """

    desk: Desk
    on_served: OnServed = lambda door, name, seconds, code: None
    batch_s: float = BATCH_S
    export_s: float = EXPORT_S
    most_waiting: int = 4096
    failed: Callable[[RecollectError], object] = lambda error: None
    running: int = 0
    beginning: int = 0
    stopping: bool = False
    _readers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(THREADS, "recollect-read"))
    _writers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(THREADS, "recollect-write"))
    _idle: asyncio.Event = field(default_factory=asyncio.Event)

    def start(
        self,
        door: str,
        name: str,
        call: Callable[[], T],
        done: Callable[[T | RecollectError], object],
        submit: Callable[[Callable[[], object]], object] | None = None,
        *,
        begins: bool = False,
    ) -> None:
        """Run a call in a thread, and pass its result or error to `done` in the event loop.

        It is refused while the server stops, or if too many wait; not if it is one of an open batch, since that would
        leave the write lock to nobody.

        Args:
            door: Where the call came from, for metrics.
            name: What is executed.
            call: The call.
            done: Called with the result, or with the error that it raised.
            submit: Runs it in a thread of its own. Default: in one of those for reads, or of those for writes, so that
                no read waits for the write lock.
            begins: Whether it opens a batch, whose further calls have the same `submit`.
        """
        if (submit is None or begins) and (reason := self._full(begins)):
            self.on_served(door, name, 0.0, ServerBusyError.code)
            done(ServerBusyError(reason, 1.0))
            return
        self.running += 1
        self.beginning += begins
        loop = asyncio.get_running_loop()
        begun = time.perf_counter()

        def run() -> None:
            result: T | RecollectError
            try:
                result = call()
            except RecollectError as error:
                result = error
                self._note(error)
            except BaseException as error:  # noqa: BLE001 - a fault of ours must not end the connection or the thread
                result = internal_error(name, error)
            loop.call_soon_threadsafe(ended, result)

        def ended(result: T | RecollectError) -> None:
            self.running -= 1
            self.beginning -= begins
            if not self.running:
                self._idle.set()
            seconds = time.perf_counter() - begun
            done(result)  # first: the client waits
            self.on_served(door, name, seconds, result.code if isinstance(result, RecollectError) else "")

        try:
            (submit or (self._readers if reads(name) else self._writers).submit)(run)
        except RecollectError as error:  # the thread of a batch that has ended
            ended(error)

    def _full(self, begins: bool) -> str:
        """Return why a call is refused; "" if it is not."""
        if self.stopping:
            return "it is stopping"
        if self.running >= self.most_waiting:
            return f"{self.running} calls are waiting"
        if begins and self.beginning >= MOST_BEGINNING:
            return f"{self.beginning} batches wait for the write lock"
        return ""

    def _note(self, error: RecollectError) -> None:
        """Report an error of a call. What goes wrong with that must not leave the client without an answer."""
        try:
            self.failed(error)
        except BaseException as fault:  # noqa: BLE001
            internal_error("noting an error", fault)

    def release(self, call: Callable[[], object]) -> None:
        """Run soon, in a thread, what releases something for a client that is gone. It is never refused."""

        def run() -> None:
            try:
                call()
            except BaseException as error:  # noqa: BLE001 - nobody waits for it
                internal_error("release", error)

        with suppress(RuntimeError):  # the threads have ended, and the process does
            self._readers.submit(run)

    async def run(
        self,
        door: str,
        name: str,
        call: Callable[[], T],
        submit: Callable[[Callable[[], object]], object] | None = None,
        *,
        begins: bool = False,
    ) -> T:
        """Run a call in a thread (see `start`) and return its result.

        Raises:
            RecollectError: What it raises.
        """
        future: asyncio.Future[T | RecollectError] = asyncio.get_running_loop().create_future()

        def done(result: T | RecollectError) -> None:
            if not future.done():  # it was cancelled, because the client is gone
                future.set_result(result)

        self.start(door, name, call, done, submit, begins=begins)
        result = await future
        if isinstance(result, RecollectError):
            raise result
        return result

    def execute(self, request: Request, grant: Grant) -> Any:
        """Execute a request. Called in a thread."""
        return self.desk.execute(request, grant)

    def batch(self, place: Place, grant: Grant, expect_head: int | None) -> OpenBatch:
        """Prepare a batch."""
        return self.desk.batch(place, grant, expect_head)

    def closed_batch(self) -> ClosedError:
        """Return the error of what is asked of a batch that is not open any more."""
        return ClosedError(f"the batch (it has ended, or was undone after {self.batch_s:g} s)")

    async def drained(self, timeout_s: float) -> bool:
        """Refuse new calls, and wait until those that run have ended. Return whether they have."""
        self.stopping = True
        self._idle.clear()
        if self.running:
            try:
                await asyncio.wait_for(self._idle.wait(), timeout_s)
            except TimeoutError:
                return False
        return True

    def close(self) -> None:
        """Release the threads."""
        self._readers.shutdown(wait=False)
        self._writers.shutdown(wait=False)


def internal_error(name: str, error: BaseException) -> RecollectError:
    """Log a fault of ours without contents, which its message may quote, and return what a client is given instead."""
    places = []
    trace = error.__traceback__
    while trace is not None:
        places.append(f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}")
        trace = trace.tb_next
    _log.error("internal error in %s: %s at %s", name, type(error).__name__, " < ".join(reversed(places[-4:])))
    return ServerError(f"internal error in {name}: {type(error).__name__}")
