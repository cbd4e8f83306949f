"""Waiting in tasks of asyncio without blocking the event loop: for a condition, without a thread, and for a call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from recollect.errors import ClosedError

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Executor

T = TypeVar("T")


class Wakeup(threading.Condition):
    """A `threading.Condition` whose `notify_all` wakes tasks, too, in the order in which they came."""

    def __init__(self) -> None:
        super().__init__()
        self._tasks: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}

    def notify_all(self) -> None:
        super().notify_all()
        tasks, self._tasks = self._tasks, {}
        for future, loop in tasks.items():
            with suppress(RuntimeError):  # the loop is closed, and with it who waited
                loop.call_soon_threadsafe(_set, future)

    async def awaited(self, predicate: Callable[[], T]) -> T:
        """Wait until a function returns something true, and return that. It is called with the lock, when woken."""
        import asyncio  # only for those who await

        loop = asyncio.get_running_loop()
        while True:
            with self:
                if found := predicate():
                    return found
                future = loop.create_future()
                self._tasks[future] = loop
            try:
                await future
            finally:
                with self:
                    self._tasks.pop(future, None)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def in_pool(pool: Executor | None, call: Callable[[], T]) -> T:
    """Run a call in a pool of threads; None: in that of the event loop.

    Raises:
        ClosedError: The pool is shut down.
    """
    import asyncio

    try:
        future = asyncio.get_running_loop().run_in_executor(pool, call)
    except RuntimeError as error:
        raise ClosedError("the memory") from error
    return await future
