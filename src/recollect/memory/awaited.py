"""AsyncMemory: the calls of a memory, awaited.

The core is synchronous; here each call runs in a bounded pool of threads, so that an event loop is never held up.
Cancelling an await does not undo a commit: a write that has begun runs to its end.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any, ParamSpec, TypeVar, Unpack

from recollect.arguments import all_named
from recollect.embedding.base import Embedder
from recollect.engine.listeners import Subscription
from recollect.engine.results import Hits, Report
from recollect.errors import ClosedError
from recollect.filters.tree import Filter
from recollect.ledger.commits import Commit
from recollect.memory.memory import Batch, Item, Memory
from recollect.operations import Operation
from recollect.records.record import Fields, Record
from recollect.stores.base import Backup

P = ParamSpec("P")
T = TypeVar("T")
#: How many calls run at once; more wait their turn.
WORKERS = 8


@all_named
class AsyncMemory:
    """A `Memory` whose calls are awaited; each means what it means there.

    async with recollect.AsyncMemory(recollect.open("agent.db")) as memory:
        await memory.remember("Ana prefers window seats")
    """

    def __init__(self, memory: Memory, *, workers: int = WORKERS, _pool: ThreadPoolExecutor | None = None) -> None:
        self._memory = memory
        self._pool = _pool or ThreadPoolExecutor(workers, thread_name_prefix="recollect-async")

    async def _run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            waiting = asyncio.get_running_loop().run_in_executor(self._pool, partial(call, *args, **kwargs))
        except RuntimeError as error:  # the pool is shut down
            raise ClosedError("the memory") from error
        return await waiting

    async def execute(self, operation: Operation, *, actor: str | None = None, reason: str | None = None) -> Any:
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
        call = partial(self._memory.remember, content, id=id, expect=expect, if_exists=if_exists, ttl=ttl, **fields)
        return await self._run(call)

    async def remember_all(self, items: Iterable[Item], *, on_error: str = "report") -> Report:
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
        call = partial(self._memory.recall, reference=reference, min_confidence=min_confidence, language=language)
        return await self._run(call, question, k, where)

    async def grep(self, query: str, limit: int = 20, where: Filter | None = None) -> list[Record]:
        return await self._run(self._memory.grep, query, limit, where)

    async def get(self, id: str) -> Record | None:  # noqa: A002 - the field's name
        return await self._run(self._memory.get, id)

    async def exists(self, id: str) -> bool:  # noqa: A002 - the field's name
        return await self._run(self._memory.exists, id)

    async def find(self, where: Filter | None = None, limit: int | None = None, order: str = "newest") -> list[Record]:
        return await self._run(self._memory.find, where, limit, order)

    async def recent(self, n: int = 10, where: Filter | None = None) -> list[Record]:
        return await self._run(self._memory.recent, n, where)

    async def count(self, where: Filter | None = None) -> int:
        return await self._run(self._memory.count, where)

    async def update(
        self,
        id: str,  # noqa: A002 - the field's name
        change: Callable[[Record], Record] | None = None,
        *,
        expect: str | Record | None = None,
        **changes: Any,
    ) -> Record:
        return await self._run(partial(self._memory.update, id, change, expect=expect, **changes))

    async def forget(self, id: str, *, expect: str | Record | None = None) -> bool:  # noqa: A002 - the field's name
        return await self._run(self._memory.forget, id, expect=expect)

    async def forget_where(self, where: Filter) -> int:
        return await self._run(self._memory.forget_where, where)

    async def clear(self) -> int:
        return await self._run(self._memory.clear)

    async def stats(self) -> dict[str, Any]:
        return await self._run(self._memory.stats)

    async def changes(
        self,
        since: int | str = 0,
        limit: int | None = None,
        id: str | None = None,  # noqa: A002 - the field's name
    ) -> list[Commit]:
        return await self._run(self._memory.changes, since, limit, id)

    async def namespaces(self) -> list[str]:
        return await self._run(self._memory.namespaces)

    async def export_records(self) -> tuple[str, list[Record]]:
        return await self._run(self._memory.export_records)

    async def root(self) -> str:
        return await self._run(lambda: self._memory.root)

    async def seq(self) -> int:
        return await self._run(lambda: self._memory.seq)

    @property
    def embedder(self) -> Embedder | None:
        return self._memory.embedder

    async def embed_all(self, batch_size: int = 100, progress: Callable[[int, int], object] | None = None) -> int:
        """As `Memory.embed_all`; the progress is told in the thread of the call, not in the event loop."""
        return await self._run(self._memory.embed_all, batch_size, progress)

    async def vector_stats(self) -> dict[str, Any]:
        return await self._run(self._memory.vector_stats)

    async def set_quota(
        self,
        *,
        records: int | None = None,
        bytes: int | None = None,  # noqa: A002 - as there
        when_full: str = "refuse",
        per: str | None = None,
    ) -> None:
        await self._run(self._memory.set_quota, records=records, bytes=bytes, when_full=when_full, per=per)

    async def sweep(self, limit: int = 1000) -> int:
        return await self._run(self._memory.sweep, limit)

    async def probe(self) -> None:
        await self._run(self._memory.probe)

    @property
    def name(self) -> str:
        return self._memory.name

    def now(self) -> datetime:
        return self._memory.now()

    async def backup(self, path: str | os.PathLike[str], *, verify: bool = False, force: bool = False) -> Backup:
        return await self._run(self._memory.backup, path, verify=verify, force=force)

    async def check(self) -> list[str]:
        return await self._run(self._memory.check)

    async def listen(self, callback: Callable[[Commit], object], *, since: int | str | None = None) -> Subscription:
        """As `Memory.listen`; the callback runs in the listener's thread, not in the event loop."""
        return await self._run(self._memory.listen, callback, since=since)

    @asynccontextmanager
    async def batch(
        self, *, actor: str | None = None, reason: str | None = None, expect_head: int | None = None
    ) -> AsyncIterator[AsyncBatch]:
        """As `Memory.batch`: `async with memory.batch() as batch: await batch.remember(...)`."""
        pool = ThreadPoolExecutor(1, thread_name_prefix="recollect-batch")  # one, to keep the calls in turn
        loop = asyncio.get_running_loop()
        manager = self._memory.batch(actor=actor, reason=reason, expect_head=expect_head)
        try:
            entering = loop.run_in_executor(pool, manager.__enter__)
            try:
                batch = await asyncio.shield(entering)
            except asyncio.CancelledError as error:
                # Whoever waits for the lock in the thread will get it: it must then be given back.
                entering.add_done_callback(partial(_left_again, manager, error))
                raise
            try:
                yield AsyncBatch(batch, pool)
            except BaseException as error:
                leaving = loop.run_in_executor(pool, manager.__exit__, type(error), error, error.__traceback__)
                if not await asyncio.shield(leaving):
                    raise
            else:
                await asyncio.shield(loop.run_in_executor(pool, manager.__exit__, None, None, None))
        finally:
            pool.shutdown(wait=False)

    def scoped(
        self, *, user: str | None = None, agent: str | None = None, conversation: str | None = None
    ) -> AsyncMemory:
        return AsyncMemory(self._memory.scoped(user=user, agent=agent, conversation=conversation), _pool=self._pool)

    def namespace(self, name: str) -> AsyncMemory:
        return AsyncMemory(self._memory.namespace(name), _pool=self._pool)

    async def close(self) -> None:
        """As `Memory.close`; closing twice is no error."""
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


def _left_again(manager: AbstractContextManager[Batch], error: BaseException, entered: asyncio.Future[Batch]) -> None:
    """End a batch that was entered after nobody wanted it any more."""
    if entered.cancelled() or entered.exception() is not None:
        return
    with suppress(BaseException):
        manager.__exit__(type(error), error, None)


class AsyncBatch:
    """The calls of a batch, awaited."""

    def __init__(self, batch: Batch, pool: ThreadPoolExecutor) -> None:
        self._batch = batch
        self._pool = pool

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._batch, name)

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.get_running_loop().run_in_executor(self._pool, partial(call, *args, **kwargs))

        return awaited
