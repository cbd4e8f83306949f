"""The calls of clients: executed in turn in a bounded number of threads, counted, and logged without contents.

All doors share it. Reads have threads of their own, so that none waits for the write lock. Clients are served in turn
(`server.threads`). A write that runs is completed, also if its client is gone: it must not be cut off. A read has a
deadline, at which it looks itself (`recollect.common.deadlines`), and which is over when its client is gone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from recollect.common.deadlines import Deadline, within
from recollect.errors import (
    STOPPING,
    ClosedError,
    RecollectError,
    ServerBusyError,
    ServerError,
    StoreBusyError,
    StoreChangedError,
    StoreReplacedError,
)
from recollect.operations.base import READ, operation_named
from recollect.server.limits import BATCH_S, CALL_S, EXPORT_S, TURN_S
from recollect.server.lines import Unread
from recollect.server.threads import FairThreads, Waiting
from recollect.wire import ClientBatch, Desk, Grant, Place, Request

T = TypeVar("T")
_log = logging.getLogger("recollect.server")
#: Number of reads that run at the same time, and of writes.
THREADS = 8
#: Number of batches that may wait for their turn at the same time.
MOST_BEGINNING = 64
#: What may run for minutes, and does not have the write lock all the time.
LONG = frozenset("apply_retention backup check compact embed_all erase probe remember_all".split())
#: Whose calls those of the server itself are.
_OURS = "the server"
#: The part of the time of a call after which a read ends, so that its client learns why.
_OF_CALL = 0.95
#: Called with the door, the name of what was executed, seconds, and the code of the error or "".
OnServed = Callable[[str, str, float, str], object]


@dataclass
class ClientCalls:
    """Executes the calls of clients.

    Attributes:
        desk: Executes requests.
        on_served: Called when a call has ended.
        batch_s: How long a batch may stay open.
        export_s: How long an export may stay open, in seconds. While it is, the WAL of the store cannot be emptied.
        turn_s: Seconds that a write, or a batch, waits for its turn.
        call_s: Seconds that a call may take. A read ends a little before, its waiting included; not one of those that
            may take minutes.
        deadline: Returns the deadline that is a number of seconds from now.
        most_waiting: Number of calls that may wait for a thread; further ones are refused.
        failed: Called in a thread with each error, so that a store that was replaced is opened again.
        unread: What clients have not read of their answers.
        continued: Returns a call that continues the trace of its request; None: the server makes no spans.
        running: Number of calls that run or wait for a thread.
        beginning: Number of batches that wait for their turn or for the write lock.
        leaving: Whether the server is going to stop: it says that it is not ready.
        stopping: Whether the server stops: new calls are refused.
    """

    desk: Desk
    on_served: OnServed = lambda door, name, seconds, code: None
    batch_s: float = BATCH_S
    export_s: float = EXPORT_S
    turn_s: float = TURN_S
    call_s: float = CALL_S
    deadline: Callable[[float], Deadline] = Deadline
    most_waiting: int = 4096
    failed: Callable[[RecollectError], object] = lambda error: None
    unread: Unread = field(default_factory=Unread)
    continued: Callable[[Callable[[], Any]], Callable[[], Any]] | None = None
    running: int = 0
    beginning: int = 0
    leaving: bool = False
    stopping: bool = False
    _readers: FairThreads = field(default_factory=lambda: FairThreads(THREADS, "recollect-read"))
    _writers: FairThreads = field(
        default_factory=lambda: FairThreads(THREADS, "recollect-write", spent=time.perf_counter)
    )
    _idle: asyncio.Event = field(default_factory=asyncio.Event)

    def start(
        self,
        door: str,
        name: str,
        call: Callable[[], T],
        done: Callable[[T | RecollectError], object],
        *,
        client: Hashable,
        batch: ClientBatch | None = None,
        begins: bool = False,
        writes: bool | None = None,
        wanted: Callable[[], bool] = lambda: True,
    ) -> Deadline | None:
        """Run a call in a thread when it is its client's turn, and pass what comes of it to `done` in the event loop.

        It is refused while the server stops, or if too many wait; not if it is one of an open batch, since that would
        leave the write lock to no other call. A write that has not begun after `turn_s` is refused, too.

        Args:
            door: Where the call came from, for metrics.
            name: What is executed.
            done: Called with the result, or with the error that it raised.
            client: Whose call it is.
            batch: It runs in the thread of this batch. Default: in one of those for reads, or of those for writes.
            begins: Whether it opens the batch.
            writes: Whether it writes; None: as its name says.
            wanted: Returns whether the result is still waited for. Otherwise a read is not begun.

        Returns:
            The deadline of a read, to be cancelled when its client is gone; None if it has none.
        """
        if (batch is None or begins) and (reason := self._full(begins)):
            self.on_served(door, name, 0.0, ServerBusyError.code)
            done(ServerBusyError(reason, 1.0))
            return None
        if self.continued is not None:
            call = self.continued(call)
        self.running += 1
        self.beginning += begins
        loop = asyncio.get_running_loop()
        begun = time.perf_counter()
        writes = not reads(name) if writes is None else writes
        is_limited = not writes and batch is None and name not in LONG
        deadline = self.deadline(self.call_s * _OF_CALL) if is_limited else None
        expiry: asyncio.TimerHandle | None = None
        has_ended = False

        def run() -> None:
            gone = not writes and batch is None and not wanted()
            result: T | RecollectError = ServerBusyError("its client is gone", 1.0)
            if not gone:
                with within(deadline):
                    result = self._made(name, call, again=batch is None)
            loop.call_soon_threadsafe(ended, result)

        def ended(result: T | RecollectError) -> None:
            nonlocal has_ended
            if has_ended:  # a batch that was given up while it was waiting
                return
            has_ended = True
            if expiry is not None:
                expiry.cancel()
            self.running -= 1
            self.beginning -= begins
            if not self.running:
                self._idle.set()
            seconds = time.perf_counter() - begun
            done(result)  # first: the client waits
            self.on_served(door, name, seconds, result.code if isinstance(result, RecollectError) else "")

        def in_batch() -> None:
            assert batch is not None
            try:
                batch.submit(run)
            except RecollectError as error:  # it has ended
                batch.on_end()
                loop.call_soon_threadsafe(ended, error)

        def over() -> None:
            if queue.withdraw(waiting):  # its client is gone
                loop.call_soon_threadsafe(ended, self.closed_batch())
            else:
                queue.end(waiting)

        if batch is not None and not begins:
            in_batch()
            return None
        queue = self._writers if writes else self._readers
        waiting = Waiting(client, run if batch is None else in_batch, is_batch=begins, is_short=name not in LONG)
        if batch is not None:
            batch.on_end = over
        queue.submit(waiting)
        if writes:
            wait_s = min(self.turn_s, self.call_s * _OF_CALL)  # so that its client learns that it was not made

            def expire() -> None:
                if queue.withdraw(waiting):
                    error = StoreBusyError("the store", f"waited {wait_s:g} s for other clients")
                    error.unchanged = True
                    ended(error)

            expiry = loop.call_later(wait_s, expire)
        return deadline

    def has_batch(self, client: Hashable) -> bool:
        """Return whether a batch of a client is open, or waits for its turn."""
        return self._writers.batches_of(client) > 0

    def _made(self, name: str, call: Callable[[], T], *, again: bool) -> T | RecollectError:
        """Make a call and return its result, or its error. All calls of clients are made here, each in its thread.

        A call that met a store that was replaced or deleted, and did nothing, is made again on the one that is there,
        if it can be (`again`).
        """
        try:
            try:
                return call()
            except RecollectError as error:
                if not (self._note(error) and again and (reads(name) or error.unchanged)):
                    return error
            return call()
        except RecollectError as error:
            self._note(error)
            return error
        except BaseException as error:  # noqa: BLE001 - a fault of ours must not end the connection or the thread
            return internal_error(name, error)

    def _full(self, begins: bool) -> str:
        """Return why a call is refused; "" if it is not."""
        if self.stopping:
            return STOPPING
        if self.running >= self.most_waiting:
            return f"{self.running} calls are waiting"
        if begins and self.beginning >= MOST_BEGINNING:
            return f"{self.beginning} batches wait"
        return ""

    def _note(self, error: RecollectError) -> bool:
        """Report an error of a call, and return whether the store was replaced, so that another call uses the new one.

        What goes wrong with that must not leave the client without an answer.
        """
        try:
            self.failed(error)
        except BaseException as fault:  # noqa: BLE001
            internal_error("noting an error", fault)
            return False
        return isinstance(error, StoreReplacedError) and not isinstance(error, StoreChangedError)

    def release(self, call: Callable[[], object]) -> None:
        """Run soon, in a thread, what releases something for a client that is gone. It is never refused."""

        def run() -> None:
            try:
                call()
            except BaseException as error:  # noqa: BLE001 - no caller waits for it
                internal_error("release", error)

        self._readers.submit(Waiting(_OURS, run))

    async def run(
        self,
        door: str,
        name: str,
        call: Callable[[], T],
        *,
        client: Hashable,
        batch: ClientBatch | None = None,
        begins: bool = False,
        writes: bool | None = None,
    ) -> T:
        """Run a call in a thread (see `start`) and return its result.

        Raises:
            RecollectError: What it raises.
        """
        future: asyncio.Future[T | RecollectError] = asyncio.get_running_loop().create_future()

        def done(result: T | RecollectError) -> None:
            if not future.done():  # it was cancelled, because the client is gone
                future.set_result(result)

        def wanted() -> bool:
            return not future.done()

        deadline = self.start(
            door, name, call, done, client=client, batch=batch, begins=begins, writes=writes, wanted=wanted
        )
        try:
            result = await future
        except asyncio.CancelledError:  # the client is gone, or is answered already
            if deadline is not None:
                deadline.cancel()
            raise
        if isinstance(result, RecollectError):
            raise result
        return result

    def answer(self, request: Request, grant: Grant) -> bytes:
        """Execute a request and return the answer to it. Called in a thread."""
        return self.desk.answer(request, grant)

    def batch(self, place: Place, grant: Grant, expect_head: int | None) -> ClientBatch:
        """Prepare a batch."""
        return self.desk.batch(place, grant, expect_head)

    def closed_batch(self) -> ClosedError:
        """Return the error of what is asked of a batch that is not open any more."""
        return ClosedError(f"the batch (it has ended, or was undone after {self.batch_s:g} s, or with its server)")

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
        self._readers.close()
        self._writers.close()


def reads(name: str) -> bool:
    """Return whether a request only reads: any but an operation that writes or administers, and "store"."""
    kind = operation_named(name)
    return name != "store" and (kind is None or kind.right == READ)


def internal_error(name: str, error: BaseException) -> RecollectError:
    """Log a fault of ours without contents, which its message may quote, and return what a client is given instead."""
    places = []
    trace = error.__traceback__
    while trace is not None:
        places.append(f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}")
        trace = trace.tb_next
    _log.error("internal error in %s: %s at %s", name, type(error).__name__, " < ".join(reversed(places[-4:])))
    return ServerError(f"internal error in {name}: {type(error).__name__}")
