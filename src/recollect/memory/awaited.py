"""`AsyncMemory`: the calls of a memory, as coroutines.

The core is synchronous. Each call runs in a bounded thread pool, so that it never blocks the event loop. Cancelling an
await does not undo a commit: a write that has started is completed. The coroutines are derived from the calls of
`Memory`, `Batch` and the facets, and have their arguments, types and docstrings; what is no coroutine, or is more than
a call in a thread, is written here. Type checkers and editors execute nothing: they read the derived calls in
`coroutines.pyi`, which scripts/make_stub.py writes.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls
from recollect.calls.history import Target
from recollect.common.uncopied import Uncopied
from recollect.engine.listeners import AsyncSubscription
from recollect.engine.results import NamespaceHead, RecordList
from recollect.engine.streams import CommitStream
from recollect.errors import ClosedError, InvalidArgumentError
from recollect.facets.glossary.glossary import Glossary
from recollect.facets.keyed.keyed import Keyed
from recollect.facets.outline.outline import Outline
from recollect.facets.quarantine.quarantine import Quarantine
from recollect.facets.sdr.sdr import Sdr
from recollect.filters.text_form import Where
from recollect.ledger.commits import Commit
from recollect.memory.batch import Batch
from recollect.memory.coroutines import (
    BatchCoroutines,
    GlossaryCoroutines,
    KeyedCoroutines,
    MemoryCoroutines,
    OutlineCoroutines,
    QuarantineCoroutines,
    SdrCoroutines,
)
from recollect.memory.memory import Memory
from recollect.memory.tools import ToolSet
from recollect.operations import Changes, ReadHead, check_count
from recollect.records.origins import Origin
from recollect.records.record import Record

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M")
C = TypeVar("C", bound=Calls)
K = TypeVar("K", bound=type)
#: How many calls run at the same time; further calls are queued.
WORKERS = 8


class _Wrapper(Uncopied, Generic[T]):
    """An object that runs the calls of a synchronous one in a thread pool."""

    def __init__(self, wrapped: T, pool: ThreadPoolExecutor) -> None:
        self._wrapped = wrapped
        self._pool = pool


def _awaited(call: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return a call of a memory or a batch as a coroutine function that runs it in the thread pool.

    It runs in a copy of the caller's context, as with `asyncio.to_thread`: so its span belongs to the caller's trace.
    """

    @functools.wraps(call)
    async def awaited(self: _Wrapper[M], /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            future = asyncio.get_running_loop().run_in_executor(
                self._pool, partial(copy_context().run, partial(call, self._wrapped, *args, **kwargs))
            )
        except RuntimeError as error:  # the pool is shut down
            raise ClosedError("the memory") from error
        return await future

    return awaited


def coroutines_of(owner: type) -> Callable[[K], K]:
    """Give a class the public calls of `owner` as coroutine functions, except those that it defines itself."""

    def derived(kind: K) -> K:
        for name, call in inspect.getmembers(owner, inspect.isfunction):
            if not name.startswith("_") and not hasattr(kind, name):
                setattr(kind, name, _awaited(call))
        return kind

    return derived


@coroutines_of(Glossary)
class AsyncGlossary(_Wrapper[Glossary], GlossaryCoroutines):
    """The calls of a `Glossary`, as coroutines. Returned by `AsyncMemory.glossary`."""

    def by(self, actor: str | None, reason: str | None = None) -> AsyncGlossary:
        """Return this glossary with commits that name who makes a change, and why. See `Glossary.by`."""
        return AsyncGlossary(self._wrapped.by(actor, reason), self._pool)


@coroutines_of(Outline)
class AsyncOutline(_Wrapper[Outline], OutlineCoroutines):
    """The calls of an `Outline`, as coroutines. Returned by `AsyncMemory.outline`."""

    async def root(self) -> str:
        """Return the root hash of all outlines. See `Outline.root`."""
        root: str = await _awaited(lambda outline: outline.root)(self)
        return root


@coroutines_of(Keyed)
class AsyncKeyed(_Wrapper[Keyed], KeyedCoroutines):
    """The calls of a `Keyed`, as coroutines. Returned by `AsyncMemory.keyed`."""

    def by(self, actor: str | None, reason: str | None = None) -> AsyncKeyed:
        """Return this keyed memory with commits that name who makes a change, and why. See `Keyed.by`."""
        return AsyncKeyed(self._wrapped.by(actor, reason), self._pool)


@coroutines_of(Sdr)
class AsyncSdr(_Wrapper[Sdr], SdrCoroutines):
    """The calls of an `Sdr`, as coroutines. Returned by `AsyncMemory.sdr`."""

    def by(self, actor: str | None, reason: str | None = None) -> AsyncSdr:
        """Return these texts with commits that name who makes a change, and why. See `Sdr.by`."""
        return AsyncSdr(self._wrapped.by(actor, reason), self._pool)


@coroutines_of(Quarantine)
class AsyncQuarantine(_Wrapper[Quarantine], QuarantineCoroutines):
    """The calls of a `Quarantine`, as coroutines. Returned by `AsyncMemory.quarantine`."""

    async def __call__(self, where: Where | None = None, limit: int | None = 100) -> RecordList:
        """Return the records in quarantine, newest first. See `Quarantine.__call__`."""
        found: RecordList = await _awaited(Quarantine.__call__)(self, where, limit)
        return found


class _CallsWrapper(_Wrapper[C]):
    """The base of the wrappers of a memory and of a batch."""

    @property
    def scope(self) -> dict[str, str]:
        """The values of user, agent and conversation that all its records have; empty if it is not scoped."""
        return self._wrapped.scope


@coroutines_of(Batch)
class AsyncBatch(_CallsWrapper[Batch], BatchCoroutines):
    """The calls of a `Batch`, as coroutines. Created by `AsyncMemory.batch`. They run one after the other."""


@all_named
@coroutines_of(Memory)
class AsyncMemory(_CallsWrapper[Memory], MemoryCoroutines):
    """A `Memory` for asyncio: the same calls with the same arguments, results and errors, as coroutines.

        async with recollect.AsyncMemory(recollect.open("agent.db")) as memory:
            await memory.remember("Ana prefers window seats")

    Each call runs in a thread pool and never blocks the event loop. Cancelling an await does not undo a commit: a write
    that has started is completed. Callbacks (`listen`, `embed_all`) run in threads, not in the event loop.

    Args:
        memory: The memory to wrap.
        workers: Number of calls that run at the same time; further calls are queued.
    """

    def __init__(self, memory: Memory, *, workers: int = WORKERS, _pool: ThreadPoolExecutor | None = None) -> None:
        if not isinstance(memory, Memory):
            raise InvalidArgumentError("memory", memory, "must be a Memory: AsyncMemory(recollect.open(path))")
        check_count("workers", workers)
        super().__init__(memory, _pool or ThreadPoolExecutor(workers, thread_name_prefix="recollect-async"))

    async def listen(
        self,
        callback: Callable[[Commit], object],
        *,
        since: int | str | None = None,
        parts: Collection[str] | None = None,
    ) -> AsyncSubscription:
        """Call a function with each commit, in order, once the commit is durable. See `Memory.listen`.

        The callback runs in a thread. `subscribe` is for code in the event loop.
        """
        return AsyncSubscription(await _awaited(Memory.listen)(self, callback, since=since, parts=parts), self._pool)

    def subscribe(self, *, since: int | str | None = None, parts: Collection[str] | None = None) -> CommitStream:
        """Return an asynchronous iterator over the commits that waits for the next one. See `Memory.subscribe`.

            async with memory.subscribe(since=cursor) as commits:
                async for commit in commits:
                    cursor = commit.cursor

        A stream that waits occupies no thread. Without a cursor, it starts with the next commit after the `async with`
        block is entered, or, without a block, after the first commit is awaited.
        """
        memory = self._wrapped
        Changes(since=since or 0, parts=parts)  # checks them
        log = memory._executor.log(memory._branch, memory._scope, parts)
        if since is not None:
            log.seq(since)  # raises if it is not a cursor of this memory
        return CommitStream(log, since, memory._executor.feed, self._pool)

    async def root(self) -> str:
        """Return the root hash of all records in the namespace. See `Memory.root`."""
        head: NamespaceHead = await self.execute(ReadHead())
        return head.root

    async def seq(self) -> int:
        """Return the number of the newest commit. See `Memory.seq`."""
        head: NamespaceHead = await self.execute(ReadHead())
        return head.seq

    @property
    def name(self) -> str:
        """The name of the namespace."""
        return self._wrapped.name

    @asynccontextmanager
    async def batch(
        self, *, actor: str | None = None, reason: str | None = None, expect_head: int | None = None
    ) -> AsyncIterator[AsyncBatch]:
        """Combine several calls into one atomic commit. See `Memory.batch`.

            async with memory.batch() as batch:
                await batch.remember("Ana prefers window seats")

        The calls of the batch run one after the other, in a thread of its own.
        """
        manager = self._wrapped.batch(actor=actor, reason=reason, expect_head=expect_head)
        async with _in_own_thread(lambda: manager) as (batch, pool):
            yield AsyncBatch(batch, pool)

    @asynccontextmanager
    async def open_export(self, *, parts: Collection[str] | None = None) -> AsyncIterator[AsyncExport]:
        """Open a snapshot of all live records, to be read one by one by ascending id. See `Memory.open_export`.

        async with memory.open_export() as export:
            async for record in export.records: ...
        """
        async with _in_own_thread(partial(self._wrapped.open_export, parts=parts)) as (export, pool):
            others = tuple(
                AsyncExportedPart(each.name, each.root, each.count, _InPages(each.records, pool))
                for each in export.parts
            )
            yield AsyncExport(export.root, export.count, _InPages(export.records, pool), others)

    def scoped(
        self, *, user: str | None = None, agent: str | None = None, conversation: str | None = None
    ) -> AsyncMemory:
        """Return a view that is restricted to one user, agent or conversation. See `Memory.scoped`."""
        return AsyncMemory(self._wrapped.scoped(user=user, agent=agent, conversation=conversation), _pool=self._pool)

    def as_origin(self, origin: Origin) -> AsyncMemory:
        """Return this memory as a writer of a class of origin. See `Memory.as_origin`."""
        return AsyncMemory(self._wrapped.as_origin(origin), _pool=self._pool)

    @property
    def quarantine(self) -> AsyncQuarantine:
        """The records that a policy keeps apart. See `Memory.quarantine`."""
        return AsyncQuarantine(self._wrapped.quarantine, self._pool)

    def tools(
        self,
        prefix: str = "",
        *,
        only: Collection[str] | None = None,
        read_only: bool = False,
        origin: Origin = "assistant",
    ) -> ToolSet:
        """Return function tools for a model. See `Memory.tools`. `call` and `answer` block: run them in a thread."""
        return self._wrapped.tools(prefix, only=only, read_only=read_only, origin=origin)

    @property
    def outline(self) -> AsyncOutline:
        """Trees of headlines and texts. See `Memory.outline`."""
        return AsyncOutline(self._wrapped.outline, self._pool)

    @property
    def keyed(self) -> AsyncKeyed:
        """Keys with bytes that agents share. See `Memory.keyed`."""
        return AsyncKeyed(self._wrapped.keyed, self._pool)

    @property
    def sdr(self) -> AsyncSdr:
        """Texts that are found by sparse codes of their trigrams. See `Memory.sdr`."""
        return AsyncSdr(self._wrapped.sdr, self._pool)

    @property
    def glossary(self) -> AsyncGlossary:
        """The terms that agents know, with their aliases. See `Memory.glossary`."""
        return AsyncGlossary(self._wrapped.glossary, self._pool)

    async def at(self, target: Target | None = None, *, index: int | None = None) -> AsyncMemory:
        """Return this memory as it was at a past moment. See `Memory.at`."""
        return AsyncMemory(await _awaited(Memory.at)(self, target, index=index), _pool=self._pool)

    @property
    def branch_name(self) -> str:
        """The name of the branch that is read and written. See `Memory.branch_name`."""
        return self._wrapped.branch_name

    def _of_branch(self, name: str) -> AsyncMemory:
        return AsyncMemory(self._wrapped._of_branch(name), _pool=self._pool)

    async def branch(self, name: str, *, at: Target | None = None) -> AsyncMemory:
        """Create a branch, and return it as a memory. See `Memory.branch`."""
        return AsyncMemory(await _awaited(Memory.branch)(self, name, at=at), _pool=self._pool)

    async def on(self, name: str) -> AsyncMemory:
        """Return another branch of this namespace. See `Memory.on`."""
        return AsyncMemory(await _awaited(Memory.on)(self, name), _pool=self._pool)

    def namespace(self, name: str) -> AsyncMemory:
        """Return another namespace of the same store. See `Memory.namespace`."""
        return AsyncMemory(self._wrapped.namespace(name), _pool=self._pool)

    async def close(self) -> None:
        """Close the store and the thread pool. See `Memory.close`. Closing twice is allowed."""
        try:
            await _awaited(Memory.close)(self)
        except ClosedError:
            return
        self._pool.shutdown(wait=False)

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(self, *exc: object) -> None:
        if not self._wrapped._shares_store:
            await self.close()


@dataclass(frozen=True)
class AsyncExportedPart:
    """A part of a memory in an export. See `recollect.engine.results.ExportedPart`."""

    name: str
    root: str
    count: int
    records: AsyncIterator[Record]


@dataclass(frozen=True)
class AsyncExport(Uncopied):
    """The records of a memory, read one by one. See `recollect.engine.results.Export`."""

    root: str
    count: int
    records: AsyncIterator[Record]
    parts: tuple[AsyncExportedPart, ...] = ()


#: Records that are read at a time.
_PAGE = 200


class _InPages:
    """Records that are read a page at a time in the thread of a pool. Cancelling `anext` loses none."""

    def __init__(self, records: Iterator[Record], pool: ThreadPoolExecutor) -> None:
        self._records = records
        self._pool = pool
        self._page: deque[Record] = deque()
        self._reading: asyncio.Future[list[Record]] | None = None

    def __aiter__(self) -> _InPages:
        return self

    async def __anext__(self) -> Record:
        if not self._page:
            if self._reading is None:
                try:
                    self._reading = asyncio.get_running_loop().run_in_executor(self._pool, self._next_page)
                except RuntimeError as error:  # the pool is shut down
                    raise ClosedError("the export") from error
            page = await asyncio.shield(self._reading)
            self._reading = None
            self._page.extend(page)
        if not self._page:
            raise StopAsyncIteration
        return self._page.popleft()

    def _next_page(self) -> list[Record]:
        return list(islice(self._records, _PAGE))


@asynccontextmanager
async def _in_own_thread(
    opened: Callable[[], AbstractContextManager[T]],
) -> AsyncIterator[tuple[T, ThreadPoolExecutor]]:
    """Open and exit a context manager in a thread of its own, which can also run the calls of the block."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="recollect-block")  # one, so that the calls keep their order
    loop = asyncio.get_running_loop()
    try:
        entering: Future[tuple[AbstractContextManager[T], T]] = pool.submit(copy_context().run, _entered, opened)
        try:
            manager, entered = await asyncio.shield(asyncio.wrap_future(entering))
        except asyncio.CancelledError as error:
            # The thread may still wait for a lock: once it has the lock, the block must be exited, by the same thread.
            # If it had ended, another one could have its number, and be taken for the one that has the lock.
            pool.submit(_exit_abandoned, error, entering)
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


def _entered(opened: Callable[[], AbstractContextManager[T]]) -> tuple[AbstractContextManager[T], T]:
    manager = opened()
    return manager, manager.__enter__()


def _exit_abandoned(error: BaseException, entering: Future[tuple[AbstractContextManager[T], T]]) -> None:
    """Exit a block whose entering was cancelled before it was entered."""
    if entering.exception() is not None:
        return
    with suppress(BaseException):
        entering.result()[0].__exit__(type(error), error, None)
