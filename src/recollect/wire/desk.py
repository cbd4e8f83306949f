"""`Desk`: executes the requests of clients on the memory of a server, as far as each client may.

A client reaches the namespaces, and within them the scope, that its `Grant` names, and does what its right allows.
What would reveal other namespaces is left out of answers. Calls block: a server makes them in threads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from recollect.engine.core import Core
from recollect.engine.executor import BatchExecutor, Executor, WrappingExecutor
from recollect.engine.follower import Use
from recollect.engine.results import Export
from recollect.engine.scope import Place, Scope
from recollect.errors import AccessError, ClosedError, InvalidOperationError, ProtocolError, ScopeError
from recollect.ledger.commits import Branch
from recollect.memory.memory import Memory
from recollect.operations import At, ExecuteBatch, OpenExport, Operation, Stats
from recollect.operations import Namespaces as NamespacesOperation
from recollect.operations.base import ADMIN, READ, RIGHTS, WRITE, Right
from recollect.wire.answers import answer
from recollect.wire.messages import Request

#: What limits the clients of a server that is only read, and what to do about it.
_READ_ONLY = ("this server, which was started with --read-only,", "use one that can be written")


#: What of the hash of a token without a name a commit shows: "sha256:" and 12 digits.
_SHOWN = 19
_ENCODED = {letter: f"%{ord(letter):02X}" for letter in "%()"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The rights of a client: what it may reach and do.

    Attributes:
        right: "read", "write" or "admin".
        namespaces: The namespaces; None: all of the store.
        scope: The scope that the client cannot leave; empty: the whole of each namespace.
        actor: The name of its token, which commits name as the actor.
        by: What limits the client to this, and what to do about it, for messages; default: its token.
        client: What distinguishes the client from others: the hash of its token; "" of one without.
    """

    right: Right = ADMIN
    namespaces: frozenset[str] | None = None
    scope: Scope = field(default_factory=Scope)
    actor: str | None = None
    by: tuple[str, str] | None = None
    client: str = ""

    def read_only(self) -> Grant:
        """Return what this allows on a server that is only read."""
        return self if self.right == READ else replace(self, right=READ, by=_READ_ONLY)

    def check(self, right: Right, branch: Branch) -> None:
        """Raise AccessError unless a right in a namespace is allowed."""
        if RIGHTS.index(right) > RIGHTS.index(self.right):
            what = f"what needs the right to {right}" if right != ADMIN else "what needs the right admin"
            raise AccessError(what, *(self.by or ()))
        if self.namespaces is not None and branch.owner.namespace not in self.namespaces:
            raise AccessError(f"the namespace {branch.owner.namespace!r}")

    def check_operation(self, operation: Operation, branch: Branch) -> None:
        """Raise AccessError unless an operation in a namespace is allowed."""
        self.check(operation.needs, branch)
        if (self.namespaces is not None or self.scope.fixed) and operation.concerns_all:
            raise AccessError("what concerns the whole store")

    def signed(self, stated: str | None) -> str | None:
        """Return the actor of a commit: what a client states, followed by the name of its token.

        >>> Grant(actor="mobile", client="sha256:5e88").signed("root (token admin)")
        'root (token admin) (token mobile)'

        The last parenthesis is that of the server: in it, parentheses of the name are percent-encoded. A client without
        a token is trusted with what it states; of one that states nothing, it is only the name.
        """
        if not self.client:
            return stated or self.actor
        name = self.actor or self.client[:_SHOWN]  # a token may have no name
        if stated or "(token " in name:
            name = "".join(_ENCODED.get(letter, letter) for letter in name)
        return f"{stated} (token {name})" if stated else name if self.actor else None

    def placed(self, place: Place) -> Place:
        """Return a place with the scope and the actor of this access.

        Raises:
            AccessError: The place names another scope.
        """
        scope = place.scope
        if self.scope.fixed:
            try:
                scope = self.scope.narrowed(**dict(place.scope.fixed))
            except ScopeError:
                raise AccessError(f"the scope {place.scope}, but only {self.scope}") from None
        return place._replace(scope=scope, actor=self.signed(place.actor))


class Desk:
    """Executes requests on a memory. Thread-safe.

    Args:
        memory: Returns the memory, for reading or for writing (`writes`). A store is created by the first write.
    """

    def __init__(self, memory: Callable[[bool], Memory]) -> None:
        self._memory = memory

    def memory(self, place: Place, grant: Grant, right: Right) -> Memory:
        """Return the memory of a place, for calls that are more than one operation.

        Raises:
            AccessError: The client may not use it so.
        """
        grant.check(right, place.branch)
        placed = grant.placed(place)
        executor: Any = _Placed(self._memory(right != READ)._executor, placed, grant)
        return Memory(executor, placed.branch, placed.scope)

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
        return self._reduced(operation, result, grant)

    def answer(self, request: Request, grant: Grant) -> bytes:
        """Execute a request and return the answer to it as JSON, a part of it if it is large (`wire.answers`).

        Raises:
            AnswerTooLargeError: The result is too large, and has no parts.
            RecollectError: What `execute` raises.
        """

        def execute(operation: Operation) -> Any:
            return self.execute(request._replace(operation=operation), grant)

        return answer(request.operation, execute, request.rest)

    @staticmethod
    def _reduced(operation: Operation, result: Any, grant: Grant) -> Any:
        """Return a result without what would reveal other namespaces, also in the results of its parts."""
        if isinstance(operation, At):
            return Desk._reduced(operation.operation, result, grant)
        if isinstance(operation, ExecuteBatch):
            parts = zip(operation.operations, result, strict=True)
            return [Desk._reduced(part, each, grant) for part, each in parts]
        if isinstance(operation, NamespacesOperation) and grant.namespaces is not None:
            return [name for name in result if name in grant.namespaces]
        if isinstance(operation, Stats) and (grant.right != ADMIN or grant.namespaces is not None):
            return {name: value for name, value in result.items() if name != "store"}
        return result

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
        core = getattr(self._memory(False)._executor, "core", None)
        return core.uses_of_memory() if isinstance(core, Core) else {}

    def look(self) -> None:
        """Read something of the store, so that a store that cannot be read raises its error."""
        self._memory(False).namespaces()

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
    """An `Executor` that adds the actor, the reason and the idempotency key of a place to what it executes."""

    def __init__(self, executor: Executor, place: Place, grant: Grant) -> None:
        super().__init__(executor)
        self._place = place
        self._grant = grant

    def execute(self, operation: Operation, place: Place) -> Any:
        """Execute an operation. See `Executor.execute`."""
        key = place.key or (self._place.key if operation.can_have_key else None)
        return self.executor.execute(_signed(operation, self._grant), self._signed(place)._replace(key=key))

    def batch(self, place: Place, expect_head: int | None) -> AbstractContextManager[BatchExecutor]:
        """Open a batch. See `Executor.batch`."""
        return self.executor.batch(self._signed(place), expect_head)

    def _signed(self, place: Place) -> Place:
        actor = self._grant.signed(place.actor) if place.actor else self._place.actor  # which is signed
        return place._replace(actor=actor, reason=place.reason or self._place.reason)


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
    """

    def __init__(self, block: AbstractContextManager[BatchExecutor], grant: Grant, place: Place) -> None:
        self.on_end: Callable[[], object] = lambda: None
        self._block = block
        self._grant = grant
        self._place = place
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
        return Desk._reduced(operation, self._opened.execute(operation), self._grant)

    def answer(self, request: Request) -> bytes:
        """Execute an operation in the batch, and return the answer to it. See `Desk.answer`."""
        return answer(request.operation, self.execute, request.rest)

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
