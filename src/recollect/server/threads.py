"""The threads in which the calls of clients run, in turn (`server.turns`), and the batches between them.

A client that runs something leaves the last free thread to others, so that it cannot occupy all of them. A batch holds
the write lock of the store while it is open. So it is queued like a call: it begins when the short calls before it have
ended, since it could otherwise take the lock before them; one is open at a time; and while it is, nothing else of its
queue starts. What waited comes before the next batch of the same client.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from recollect.server.turns import Turns


@dataclass(eq=False, slots=True)
class Waiting:
    """A call or a batch that waits for its turn.

    Attributes:
        client: Whose it is.
        run: Makes the call, in one of the threads; or begins the batch, in any thread and without waiting. It must not
            raise.
        is_batch: Whether it is a batch.
        is_short: Whether a batch waits for the call to end: not for one that may take minutes.
        since: When the batch began, in seconds of the clock; None while it waits.
    """

    client: Hashable
    run: Callable[[], object]
    is_batch: bool = False
    is_short: bool = True
    since: float | None = None


class FairThreads:
    """Threads for the calls of clients. Thread-safe.

    Args:
        count: The number of threads.
        name: What their names begin with.
        spent: Returns what a thread has used so far, in seconds: for reads the time of the processor, for writes the
            time that passes.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        count: int,
        name: str,
        spent: Callable[[], float] = time.thread_time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool = ThreadPoolExecutor(count, name)
        self._count = count
        self._spent, self._clock = spent, clock
        self._lock = threading.Lock()
        self._turns: Turns[Waiting] = Turns(clock)
        self._running: Counter[Hashable] = Counter()
        self._short = 0  # how many of them are short
        self._batch: Waiting | None = None  # the one that is open, or is being opened
        self._batches: Counter[Hashable] = Counter()

    def submit(self, waiting: Waiting) -> None:
        """Make a call, or begin a batch, when it is its turn. `end` must be called when a batch has ended."""
        with self._lock:
            self._turns.add(waiting.client, waiting)
            if waiting.is_batch:
                self._batches[waiting.client] += 1
        self._start()

    def batches_of(self, client: Hashable) -> int:
        """Return how many batches of a client are open, or wait."""
        with self._lock:
            return self._batches[client]

    def end(self, batch: Waiting) -> None:
        """Note that a batch that had begun has ended, in whatever way. Does nothing if that is known."""
        with self._lock:
            if self._batch is not batch:
                return
            self._batch = None
            self._forget(batch)
            assert batch.since is not None
            self._turns.charge(batch.client, self._clock() - batch.since)
        self._start()

    def withdraw(self, waiting: Waiting) -> bool:
        """Remove what waits, and return whether it did: it will not run then."""
        with self._lock:
            found = self._turns.remove(waiting.client, waiting)
            if found and waiting.is_batch:
                self._forget(waiting)
        if found:
            self._start()  # what was behind it
        return found

    def close(self) -> None:
        """Release the threads. What runs is completed, and what waits is not made."""
        self._pool.shutdown(wait=False)

    def _start(self) -> None:
        """Start what can run by now."""
        while True:
            with self._lock:
                if self._batch is not None or self._running.total() == self._count:
                    return
                found = self._turns.take(self._is_ready)
                if found is None:
                    return
                client, waiting = found
                if waiting.is_batch:
                    self._batch, waiting.since = waiting, self._clock()
                else:
                    self._running[client] += 1
                    self._short += waiting.is_short
            if waiting.is_batch:
                waiting.run()
            else:
                with suppress(RuntimeError):  # the threads have ended, and the process does
                    self._pool.submit(self._make, waiting)

    def _is_ready(self, client: Hashable, waiting: Waiting) -> bool | None:
        """Return whether something can run while a thread is free; None if nothing behind it can, either.

        The last thread is for a client that runs nothing yet.
        """
        if waiting.is_batch:
            return None if self._short else True
        return not (self._running.total() >= self._count - 1 and self._running[client])

    def _make(self, waiting: Waiting) -> None:
        before = self._spent()
        try:
            waiting.run()
        finally:
            seconds = self._spent() - before
            with self._lock:
                self._short -= waiting.is_short
                self._running[waiting.client] -= 1
                if not self._running[waiting.client]:
                    del self._running[waiting.client]
                self._turns.charge(waiting.client, seconds)
            self._start()

    def _forget(self, batch: Waiting) -> None:
        self._batches[batch.client] -= 1
        if not self._batches[batch.client]:
            del self._batches[batch.client]
