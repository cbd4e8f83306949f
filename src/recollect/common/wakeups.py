"""A condition that threads wait for, and tasks of asyncio, which need no thread for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import asyncio

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
