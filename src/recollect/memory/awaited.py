"""`AsyncMemory`: the calls of a memory, as coroutines.

The core is synchronous. Each call runs in a bounded thread pool, so that it never blocks the event loop. Cancelling an
await does not undo a commit: a write that has started is completed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, ParamSpec, TypeVar, Unpack

from recollect.arguments import all_named
from recollect.embedding.base import Embedder
from recollect.engine.listeners import Subscription
from recollect.engine.results import Hits, Report
from recollect.errors import ClosedError
from recollect.filters.tree import Filter
from recollect.ledger.commits import Commit
from recollect.memory.batch import Batch
from recollect.memory.calls import Item
from recollect.memory.memory import Memory
from recollect.memory.streams import AsyncCommitStream
from recollect.operations import Changes, Operation
from recollect.records.record import Fields, Record
from recollect.stores.base import Backup

P = ParamSpec("P")
T = TypeVar("T")
#: How many calls run at the same time; further calls are queued.
WORKERS = 8


@all_named
class AsyncMemory:
    """A `Memory` for asyncio: the same calls with the same arguments, results and errors, as coroutines.

        async with recollect.AsyncMemory(recollect.open("agent.db")) as memory:
            await memory.remember("Ana prefers window seats")

    Each call runs in a thread pool and never blocks the event loop. Cancelling an await does not undo a commit: a write
    that has started is completed.

    Args:
        memory: The memory to wrap.
        workers: Number of calls that run at the same time; further calls are queued.
    """

    def __init__(self, memory: Memory, *, workers: int = WORKERS, _pool: ThreadPoolExecutor | None = None) -> None:
        self._memory = memory
        self._pool = _pool or ThreadPoolExecutor(workers, thread_name_prefix="recollect-async")

    async def _run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            future = asyncio.get_running_loop().run_in_executor(self._pool, partial(call, *args, **kwargs))
        except RuntimeError as error:  # the pool is shut down
            raise ClosedError("the memory") from error
        return await future

    async def execute(self, operation: Operation, *, actor: str | None = None, reason: str | None = None) -> Any:
        """Execute an operation and return its result. See `Memory.execute`."""
        return await self._run(self._memory.execute, operation, actor=actor, reason=reason)

    async def remember(
        self,
        content: str | bytes,
        *,
        id: str | None = None,  # noqa: A002 - the field's name
        expect: str | Record | None = None,
        if_exists: str = "keep",
        ttl: float | None = None,
        **fields: Unpack[Fields],
    ) -> Record:
        """Store `content` and return the record. See `Memory.remember`."""
        call = partial(self._memory.remember, content, id=id, expect=expect, if_exists=if_exists, ttl=ttl, **fields)
        return await self._run(call)

    async def remember_all(self, items: Iterable[Item], *, on_error: str = "report") -> Report:
        """Store many records. See `Memory.remember_all`."""
        return await self._run(self._memory.remember_all, items, on_error=on_error)

    async def recall(
        self,
        question: str,
        k: int = 10,
        where: Filter | None = None,
        *,
        reference: datetime | None = None,
        min_confidence: float = 0.0,
        language: str | None = None,
    ) -> Hits:
        """Return the records that best answer a question. See `Memory.recall`."""
        call = partial(self._memory.recall, reference=reference, min_confidence=min_confidence, language=language)
        return await self._run(call, question, k, where)

    async def grep(self, query: str, limit: int = 20, where: Filter | None = None) -> list[Record]:
        """Return the records whose text matches a full-text query. See `Memory.grep`."""
        return await self._run(self._memory.grep, query, limit, where)

    async def get(self, id: str) -> Record | None:  # noqa: A002 - the field's name
        """Return the record with an id, or None. See `Memory.get`."""
        return await self._run(self._memory.get, id)

    async def exists(self, id: str) -> bool:  # noqa: A002 - the field's name
        """Return whether there is a live record with this id."""
        return await self._run(self._memory.exists, id)

    async def find(self, where: Filter | None = None, limit: int | None = None, order: str = "newest") -> list[Record]:
        """Return the records that match a filter. See `Memory.find`."""
        return await self._run(self._memory.find, where, limit, order)

    async def recent(self, n: int = 10, where: Filter | None = None) -> list[Record]:
        """Return the `n` newest records that match a filter, newest first."""
        return await self._run(self._memory.recent, n, where)

    async def count(self, where: Filter | None = None) -> int:
        """Return how many records match a filter."""
        return await self._run(self._memory.count, where)

    async def update(
        self,
        id: str,  # noqa: A002 - the field's name
        change: Callable[[Record], Record] | None = None,
        *,
        expect: str | Record | None = None,
        **changes: Any,
    ) -> Record:
        """Change fields of a record and return the changed record. See `Memory.update`."""
        return await self._run(partial(self._memory.update, id, change, expect=expect, **changes))

    async def forget(self, id: str, *, expect: str | Record | None = None) -> bool:  # noqa: A002 - the field's name
        """Forget a record and return whether it was live. See `Memory.forget`."""
        return await self._run(self._memory.forget, id, expect=expect)

    async def forget_where(self, where: Filter) -> int:
        """Forget every record that matches a filter, in one commit, and return how many."""
        return await self._run(self._memory.forget_where, where)

    async def clear(self) -> int:
        """Forget every record, in one commit, and return how many."""
        return await self._run(self._memory.clear)

    async def stats(self) -> dict[str, Any]:
        """Return record counts and facts about the store. See `Memory.stats`."""
        return await self._run(self._memory.stats)

    async def changes(
        self,
        since: int | str = 0,
        limit: int | None = None,
        id: str | None = None,  # noqa: A002 - the field's name
        *,
        newest_first: bool = False,
    ) -> list[Commit]:
        """Return the commits after a cursor. See `Memory.changes`."""
        return await self._run(self._memory.changes, since, limit, id, newest_first=newest_first)

    async def namespaces(self) -> list[str]:
        """Return the sorted names of the namespaces. See `Memory.namespaces`."""
        return await self._run(self._memory.namespaces)

    async def export_records(self) -> tuple[str, list[Record]]:
        """Return all live records and their root hash. See `Memory.export_records`."""
        return await self._run(self._memory.export_records)

    async def root(self) -> str:
        """Return the root hash of all records in the namespace. See `Memory.root`."""
        return await self._run(lambda: self._memory.root)

    async def seq(self) -> int:
        """Return the number of the newest commit. See `Memory.seq`."""
        return await self._run(lambda: self._memory.seq)

    @property
    def embedder(self) -> Embedder | None:
        """The embedding model, or None."""
        return self._memory.embedder

    async def embed_all(self, batch_size: int = 100, progress: Callable[[int, int], object] | None = None) -> int:
        """Embed every text that has no vector yet, and return how many. See `Memory.embed_all`.

        `progress` is called in the thread of the call, not in the event loop.
        """
        return await self._run(self._memory.embed_all, batch_size, progress)

    async def vector_stats(self) -> dict[str, Any]:
        """Return how many records have a vector. See `Memory.vector_stats`."""
        return await self._run(self._memory.vector_stats)

    async def set_quota(
        self,
        *,
        records: int | None = None,
        bytes: int | None = None,  # noqa: A002 - the unit
        when_full: str = "refuse",
        per: str | None = None,
    ) -> None:
        """Set or remove the quota of this namespace. See `Memory.set_quota`."""
        await self._run(self._memory.set_quota, records=records, bytes=bytes, when_full=when_full, per=per)

    async def sweep(self, limit: int = 1000) -> int:
        """Remove expired records and return how many. See `Memory.sweep`."""
        return await self._run(self._memory.sweep, limit)

    async def probe(self) -> None:
        """Test the store. See `Memory.probe`."""
        await self._run(self._memory.probe)

    @property
    def name(self) -> str:
        """The name of the namespace."""
        return self._memory.name

    def now(self) -> datetime:
        """Return the current time of the memory's clock."""
        return self._memory.now()

    async def backup(self, path: str | os.PathLike[str], *, verify: bool = False, force: bool = False) -> Backup:
        """Copy one snapshot of the whole store to a file. See `Memory.backup`."""
        return await self._run(self._memory.backup, path, verify=verify, force=force)

    async def check(self) -> list[str]:
        """Check the whole store and return a description of each problem. See `Memory.check`."""
        return await self._run(self._memory.check)

    async def listen(self, callback: Callable[[Commit], object], *, since: int | str | None = None) -> Subscription:
        """Call a function with each commit once it is durable. See `Memory.listen`.

        The callback runs in a thread of the listeners, not in the event loop.
        """
        return await self._run(self._memory.listen, callback, since=since)

    def subscribe(self, *, since: int | str | None = None) -> AsyncCommitStream:
        """Return an asynchronous iterator over the commits that waits for the next one. See `Memory.subscribe`.

            async with memory.subscribe(since=cursor) as commits:
                async for commit in commits:
                    cursor = commit.cursor

        A stream that waits occupies no thread. Without a cursor, it starts with the next commit of this process after
        this call, and of other processes after the `async with` block is entered or the first commit is awaited.
        """
        if since is not None:
            Changes(since=since)  # checks it
        memory, engine = self._memory, self._memory._engine
        log = engine.log(memory._branch, memory._scope)
        return AsyncCommitStream(log, None if since is None else log.seq(since), engine.feed, self._pool)

    @asynccontextmanager
    async def batch(
        self, *, actor: str | None = None, reason: str | None = None, expect_head: int | None = None
    ) -> AsyncIterator[AsyncBatch]:
        """Combine several calls into one atomic commit. See `Memory.batch`.

            async with memory.batch() as batch:
                await batch.remember("Ana prefers window seats")

        The calls of the batch run one after the other, in a thread of its own.
        """
        manager = self._memory.batch(actor=actor, reason=reason, expect_head=expect_head)
        async with _in_own_thread(manager) as (batch, pool):
            yield AsyncBatch(batch, pool)

    @asynccontextmanager
    async def open_export(self) -> AsyncIterator[AsyncExport]:
        """Open a snapshot of all live records, to be read one by one by ascending id. See `Memory.open_export`.

        async with memory.open_export() as export:
            async for record in export.records: ...
        """
        async with _in_own_thread(self._memory.open_export()) as (export, pool):
            yield AsyncExport(export.root, export.count, _in_pages(export.records, pool))

    def scoped(
        self, *, user: str | None = None, agent: str | None = None, conversation: str | None = None
    ) -> AsyncMemory:
        """Return a view that is restricted to one user, agent or conversation. See `Memory.scoped`."""
        return AsyncMemory(self._memory.scoped(user=user, agent=agent, conversation=conversation), _pool=self._pool)

    def namespace(self, name: str) -> AsyncMemory:
        """Return another namespace of the same store. See `Memory.namespace`."""
        return AsyncMemory(self._memory.namespace(name), _pool=self._pool)

    async def close(self) -> None:
        """Close the store and the thread pool. See `Memory.close`. Closing twice is allowed."""
        try:
            await self._run(self._memory.close)
        except ClosedError:
            return
        self._pool.shutdown(wait=False)

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(self, *exc: object) -> None:
        if not self._memory._scope.fixed:
            await self.close()


@dataclass(frozen=True)
class AsyncExport:
    """The records of a memory, read one by one. See `recollect.engine.results.Export`."""

    root: str
    count: int
    records: AsyncIterator[Record]


#: Records that are read at a time.
_PAGE = 200


async def _in_pages(records: Iterator[Record], pool: ThreadPoolExecutor) -> AsyncIterator[Record]:
    """Yield the records, reading a page of them at a time in the thread of the pool."""
    loop = asyncio.get_running_loop()
    while page := await loop.run_in_executor(pool, lambda: list(islice(records, _PAGE))):
        for record in page:
            yield record


@asynccontextmanager
async def _in_own_thread(manager: AbstractContextManager[T]) -> AsyncIterator[tuple[T, ThreadPoolExecutor]]:
    """Enter and exit a context manager in a thread of its own, which can also run the calls of the block."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="recollect-block")  # one, so that the calls keep their order
    loop = asyncio.get_running_loop()
    try:
        entering = loop.run_in_executor(pool, manager.__enter__)
        try:
            entered = await asyncio.shield(entering)
        except asyncio.CancelledError as error:
            # The thread may still wait for a lock: once it has the lock, the block must be exited.
            entering.add_done_callback(partial(_exit_abandoned, manager, error))
            raise
        try:
            yield entered, pool
        except BaseException as error:
            leaving = loop.run_in_executor(pool, manager.__exit__, type(error), error, error.__traceback__)
            if not await asyncio.shield(leaving):
                raise
        else:
            await asyncio.shield(loop.run_in_executor(pool, manager.__exit__, None, None, None))
    finally:
        pool.shutdown(wait=False)


def _exit_abandoned(manager: AbstractContextManager[T], error: BaseException, entered: asyncio.Future[T]) -> None:
    """Exit a batch whose entering was cancelled before it got the lock."""
    if entered.cancelled() or entered.exception() is not None:
        return
    with suppress(BaseException):
        manager.__exit__(type(error), error, None)


class AsyncBatch:
    """The calls of a `Batch`, as coroutines. Created by `AsyncMemory.batch`."""

    def __init__(self, batch: Batch, pool: ThreadPoolExecutor) -> None:
        self._batch = batch
        self._pool = pool

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._batch, name)

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.get_running_loop().run_in_executor(self._pool, partial(call, *args, **kwargs))

        return awaited
