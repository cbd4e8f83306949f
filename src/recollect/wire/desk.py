"""`Desk`: executes the requests of clients on the memory of a server, as far as each client may.

A client reaches the namespaces, and within them the scope, that its `Grant` names, and does what its right allows.
What would reveal other namespaces is left out of answers. Calls block: a server makes them in threads.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import Any

from recollect.engine.core import Core
from recollect.engine.executor import BatchExecutor, Executor, WrappingExecutor
from recollect.engine.follower import Use
from recollect.engine.results import Export
from recollect.engine.scope import Place
from recollect.errors import ClosedError, InvalidArgumentError, InvalidOperationError, ProtocolError
from recollect.ledger.commits import Branch
from recollect.memory.memory import Memory
from recollect.operations import ExecuteBatch, OpenExport, Operation, ReadHead
from recollect.operations.base import READ, WRITE, Right
from recollect.stores.freshness import FRESHNESS, Freshness, required
from recollect.wire.answers import answer
from recollect.wire.grants import Grant
from recollect.wire.messages import Request
from recollect.wire.nodes import IN_MEMORY, store_digest
from recollect.wire.seen import NOTHING, TOKEN_SCOPE


class Desk:
    """Executes requests on a memory. Thread-safe.

    Args:
        memory: Returns the memory, for reading or for writing (`writes`). A store is created by the first write.
    """

    def __init__(self, memory: Callable[[bool], Memory]) -> None:
        self._memory = memory

    def memory(self, place: Place, grant: Grant, right: Right) -> Memory:
        """Return the memory of a place as a client may use it, for calls that are more than one operation.

        Raises:
            AccessError: The client may not use it so.
        """
        grant.check_use(right, place.branch)
        placed = grant.placed(place)
        executor: Any = _Placed(self._memory(right != READ)._executor, placed, grant)
        return Memory(executor, placed.branch, placed.scope, placed.origin)

    def execute(self, request: Request, grant: Grant) -> Any:
        """Execute a request and return its result.

        Raises:
            AccessError: The client may not do that.
            RecollectError: What the operation raises.
        """
        operation, place = request.operation, grant.placed(request.place)
        grant.check_operation(operation, place.branch)
        executor = self._memory(operation.needs != READ)._executor
        operation = _signed(operation, grant)
        result = executor.execute(operation, place)
        return grant.reduced(operation, result)

    def answer(self, request: Request, grant: Grant) -> bytes:
        """Execute a request and return the answer to it as JSON, a part of it if it is large (`wire.answers`).

        Raises:
            AnswerTooLargeError: The result is too large, and has no parts.
            RecollectError: What `execute` raises.
        """

        def execute(operation: Operation) -> Any:
            return self.execute(request._replace(operation=operation), grant)

        return answer(request.operation, execute, request.rest, compact=request.compact)

    def batch(self, place: Place, grant: Grant, expect_head: int | None) -> ClientBatch:
        """Prepare a batch, which `ClientBatch.begin` opens.

        Raises:
            AccessError: The client may not write there.
        """
        grant.check(WRITE, place.branch)
        placed = grant.placed(place)
        executor = self._memory(True)._executor
        block = executor.batch(placed._replace(key=None), expect_head)
        return ClientBatch(block, grant, place)

    def indexes(self) -> dict[str, Use]:
        """Return what is cached of each kind of index, by its name; {} of a memory without an engine of its own."""
        core = self._core()
        return {} if core is None else core.uses_of_memory()

    @contextmanager
    def seeing(self, namespace: str, seen: Sequence[str], grant: Grant) -> Iterator[Callable[[], str]]:
        """Let what is read in the block be no older than what a client has seen of a namespace (`wire.seen`).

        Args:
            seen: The tokens that the client states.
            grant: What it may do.

        Yields:
            Returns the token of the newest commit that was read or made in the block; "" if there is none.

        Raises:
            ProtocolError: One is no token of this store and namespace, or not for this client.
        """
        core, branch = self._core(), Branch(namespace)
        if core is None:
            yield lambda: ""
            return
        least = max(self._seq_of(core, each, branch, grant) for each in seen)
        with required(namespace, least) as freshness:
            yield lambda: self.token(freshness, grant)

    def token(self, freshness: Freshness, grant: Grant) -> str:
        """Return the token of the newest commit that was found, for a client; "" if there is none."""
        core = self._core()
        if core is None or not freshness.found:
            return ""
        scope = TOKEN_SCOPE if grant.scope.fixed else grant.scope
        return core.cursors.at(freshness.found, Branch(freshness.owner), scope, secrets.randbits(32))

    @staticmethod
    def _seq_of(core: Core, token: str, branch: Branch, grant: Grant) -> int:
        if token == NOTHING:
            return 0
        scope = grant.scope if token.isdigit() and not grant.scope.fixed else TOKEN_SCOPE
        try:
            return core.cursors.seq(token, branch, scope)
        except InvalidArgumentError:
            rule = "what was seen has a token that is not for this client, namespace or store: connect again"
            raise ProtocolError(rule) from None

    def store_facts(self) -> dict[str, Any]:
        """Return what the store says of itself; {} of a memory without an engine of its own, or if there is none."""
        core = self._core()
        return {} if core is None or core.store.path == IN_MEMORY else core.store.facts()

    def _core(self) -> Core | None:
        executor: Any = self._memory(False)._executor
        while isinstance(executor, WrappingExecutor):
            executor = executor.executor
        core = getattr(executor, "core", None)
        return core if isinstance(core, Core) else None

    def look(self) -> str:
        """Read something of the store, so that a store that cannot be read raises its error.

        Returns:
            What the nodes of the store have in common (`wire.nodes.store_digest`); "" if there is no store yet.
        """
        self._memory(False).execute(ReadHead())
        facts = self.store_facts()
        return store_digest(facts["uuid"]) if facts else ""

    def export(self, place: Place, grant: Grant, parts: Collection[str] | None) -> Export:
        """Open a snapshot of what the client may see of parts of the memory; None: of all."""
        exported: Export = self.execute(Request(OpenExport(parts=parts), place), grant)
        return exported


def _signed(operation: Operation, grant: Grant) -> Operation:
    """Return an operation whose own actor, which a batch may have, is signed."""
    if isinstance(operation, ExecuteBatch) and operation.actor:
        return replace(operation, actor=grant.signed(operation.actor))
    return operation


class _Placed(WrappingExecutor):
    """An `Executor` of what a grant allows. It adds the actor, the reason and the idempotency key of a place."""

    def __init__(self, executor: Executor, place: Place, grant: Grant) -> None:
        super().__init__(executor)
        self._place = place
        self._grant = grant

    def execute(self, operation: Operation, place: Place) -> Any:
        """Execute an operation. See `Executor.execute`."""
        self._grant.check_operation(operation, place.branch)
        key = place.key or (self._place.key if operation.can_have_key else None)
        result = self.executor.execute(_signed(operation, self._grant), self._signed(place)._replace(key=key))
        return self._grant.reduced(operation, result)

    def batch(self, place: Place, expect_head: int | None) -> AbstractContextManager[BatchExecutor]:
        """Open a batch. See `Executor.batch`."""
        self._grant.check(WRITE, place.branch)
        return self.executor.batch(self._signed(place), expect_head)

    def _signed(self, place: Place) -> Place:
        actor = self._grant.signed(place.actor) if place.actor else self._place.actor  # which is signed
        client = self._place.client or place.client
        return place._replace(actor=actor, reason=place.reason or self._place.reason, client=client)


class _UndoneError(Exception):
    """Ends the block of a batch without a commit."""


class ClientBatch:
    """A batch of a client. It has a thread of its own, since a transaction belongs to one, and holds the write lock.

    Args:
        block: The block of the batch.
        grant: What the client may do.
        place: Where it writes, as the client stated it.

    Attributes:
        on_end: Called in its thread when it has ended, in whatever way, and has released the lock. Perhaps repeatedly.
        freshness: Has the newest commit that it has read or made.
    """

    def __init__(self, block: AbstractContextManager[BatchExecutor], grant: Grant, place: Place) -> None:
        self.on_end: Callable[[], object] = lambda: None
        self._block = block
        self._grant = grant
        self._place = place
        self.freshness = Freshness(place.branch.owner.namespace)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recollect-batch")
        self._opened: BatchExecutor | None = None
        self._ended = False

    def submit(self, call: Callable[[], object]) -> Future[Any]:
        """Run a call in the thread of the batch, as `begin`, `execute`, `commit` and `undo` must be.

        Raises:
            ClosedError: The batch has ended.
        """
        try:
            return self._thread.submit(call)
        except RuntimeError:  # it was shut down
            raise ClosedError("the batch") from None

    def abandon(self) -> None:
        """Undo the batch, soon, after what runs in its thread. Does nothing if it has ended."""
        with suppress(ClosedError):
            self.submit(self.undo)

    def begin(self) -> None:
        """Open the batch: wait for the write lock.

        Raises:
            ClosedError: It was undone before, as its client is gone.
        """
        try:
            if self._ended:  # both calls were submitted before either ran: nothing would release the lock
                raise ClosedError("the batch")
            FRESHNESS.set(self.freshness)  # for its thread
            self._opened = self._block.__enter__()
        except BaseException:
            self._thread.shutdown(wait=False)
            self.on_end()
            raise

    def commit(self) -> None:
        """Commit the batch, which ends it."""
        self._end(None)

    def undo(self) -> None:
        """Undo the batch, which ends it. Does nothing if it has ended."""
        self._end(_UndoneError())

    def check(self, place: Place) -> None:
        """Check the place that an operation of the batch states.

        Raises:
            ProtocolError: The place is not that of the batch, or has an idempotency key.
        """
        if place.key is not None:
            raise ProtocolError("an operation of a batch has no idempotency key of its own")
        if (place.branch, place.scope) != (self._place.branch, self._place.scope):
            raise ProtocolError('"in" names another place than that of the batch')

    def execute(self, operation: Operation) -> Any:
        """Execute an operation in the batch, and return its result.

        Raises:
            ClosedError: The batch was not opened, or has ended.
        """
        if not operation.in_batch:
            raise InvalidOperationError(operation.name, "cannot be part of a batch")
        self._grant.check_operation(operation, self._place.branch)
        if self._opened is None or self._ended:
            raise ClosedError("the batch")
        return self._grant.reduced(operation, self._opened.execute(operation))

    def answer(self, request: Request) -> bytes:
        """Execute an operation in the batch, and return the answer to it. See `Desk.answer`."""
        return answer(request.operation, self.execute, request.rest, compact=request.compact)

    def _end(self, error: Exception | None) -> None:
        self._thread.shutdown(wait=False)
        try:
            had_ended, self._ended = self._ended, True
            if had_ended or self._opened is None:
                return
            if error is None:
                self._block.__exit__(None, None, None)
                return
            with suppress(_UndoneError):
                self._block.__exit__(type(error), error, error.__traceback__)
        finally:
            self.on_end()
