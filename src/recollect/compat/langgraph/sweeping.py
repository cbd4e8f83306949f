"""A thread that removes expired records of a memory from time to time."""

from __future__ import annotations

import concurrent.futures
import logging
import threading

import recollect
from recollect import RecollectError

_log = logging.getLogger("recollect.compat.langgraph")
#: Expired records that are removed in one commit.
_AT_ONCE = 1000


def swept(memory: recollect.Memory) -> int:
    """Remove all expired records of a memory, and return how many.

    Raises:
        ScopeError: The memory is a scope, which cannot be swept by itself.

    Cost:
        A durable commit for each 1,000 records.
    """
    count = last = memory.sweep(_AT_ONCE)
    while last == _AT_ONCE:
        last = memory.sweep(_AT_ONCE)
        count += last
    return count


class Sweeper:
    """Sweeps a memory in a thread, which runs at most once.

    Args:
        memory: The memory.
    """

    def __init__(self, memory: recollect.Memory) -> None:
        self._memory = memory
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def start(self, interval_s: float) -> concurrent.futures.Future[None]:
        """Sweep now, and then every `interval_s` seconds, unless that is done already.

        Returns:
            A future that is done when the sweeper has stopped. Cancelling it stops the sweeper.

        Raises:
            ScopeError: The memory is a scope, which cannot be swept by itself.
        """
        future: concurrent.futures.Future[None] = concurrent.futures.Future()
        future.add_done_callback(lambda done: self._stopping.set() if done.cancelled() else None)
        if self._thread is not None and self._thread.is_alive():
            return future
        swept(self._memory)  # what raises, raises here
        self._stopping.clear()
        run = threading.Thread(target=self._run, args=(interval_s, future), name="recollect-sweeper", daemon=True)
        self._thread = run
        run.start()
        return future

    def stop(self, timeout_s: float | None = None) -> bool:
        """Stop the thread; return whether it has stopped within `timeout_s` seconds (None: wait for it)."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return True
        self._stopping.set()
        thread.join(timeout_s)
        return not thread.is_alive()

    def _run(self, interval_s: float, future: concurrent.futures.Future[None]) -> None:
        while not self._stopping.wait(interval_s):
            try:
                swept(self._memory)
            except RecollectError:
                _log.exception("expired items were not removed; the next attempt is in %s s", interval_s)
        if not future.done():
            future.set_result(None)
