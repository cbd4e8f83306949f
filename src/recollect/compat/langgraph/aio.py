"""`AsyncRecollectStore`: the same store, whose set-up, sweeper and end are awaited as those of LangGraph's own are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from langgraph.store.base import IndexConfig, TTLConfig

from recollect.compat.langgraph.store import RecollectStore
from recollect.compat.threads import completed


class AsyncRecollectStore(RecollectStore):
    """A store of items for LangGraph, for programs that change their import from an asynchronous store.

    All calls of `RecollectStore` are there, and `RecollectStore` has all asynchronous calls of a `BaseStore`, too: only
    what is not part of `BaseStore` is awaited here. It can be used from several event loops.
    """

    @classmethod
    @asynccontextmanager
    async def from_conn_string(  # type: ignore[override]
        cls, conn_string: str, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> AsyncIterator[Self]:
        """Open a store at a path or address for an `async with` block."""
        async with await completed(lambda: cls(conn_string, index=index, ttl=ttl)) as store:
            yield store

    async def setup(self) -> None:  # type: ignore[override]
        """Load the index of the memory, or build it where there is none, so that no search has to."""
        await completed(super().setup)

    async def sweep_ttl(self) -> int:  # type: ignore[override]
        """Remove expired records of the memory and return how many. They are not returned anyhow."""
        return await completed(super().sweep_ttl)

    async def start_ttl_sweeper(  # type: ignore[override]
        self, sweep_interval_minutes: float | None = None
    ) -> asyncio.Future[None]:
        """Remove expired records periodically; the future is done when that was stopped. Cancelling it stops it."""
        return asyncio.wrap_future(super().start_ttl_sweeper(sweep_interval_minutes))

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:  # type: ignore[override]
        """Stop the sweeper; return whether it has stopped within `timeout` seconds (None: wait for it)."""
        return await asyncio.to_thread(super().stop_ttl_sweeper, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await completed(self.close)
