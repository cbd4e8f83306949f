"""Listeners of an `AsyncMemory`."""

from __future__ import annotations

from concurrent.futures import Executor
from contextlib import suppress

from recollect.common.uncopied import Uncopied
from recollect.engine.listeners import Subscription
from recollect.engine.streams import in_pool
from recollect.errors import ClosedError


class AsyncSubscription(Uncopied):
    """A listener of an `AsyncMemory`, created by `await memory.listen(callback)`. It behaves as `Subscription` does.

        async with await memory.listen(callback) as subscription:
            ...

    The callback runs in a thread, not in the event loop. `memory.subscribe()` is an iterator for the event loop.
    """

    def __init__(self, subscription: Subscription, pool: Executor) -> None:
        self._subscription = subscription
        self._pool = pool

    @property
    def error(self) -> BaseException | None:
        """The last exception of the callback or of the listener. See `Subscription.error`."""
        return self._subscription.error

    def wake(self) -> None:
        """Make the listener read the log now. See `Subscription.wake`."""
        self._subscription.wake()

    async def drain(self) -> None:
        """Wait until all commits made before this call have been delivered. See `Subscription.drain`."""
        await in_pool(self._pool, self._subscription.drain)

    async def close(self) -> None:
        """Deliver the commits made so far, then stop. See `Subscription.close`."""
        with suppress(ClosedError):  # it ended with the memory
            await in_pool(self._pool, self._subscription.close)

    async def __aenter__(self) -> AsyncSubscription:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
