"""`Batch`: the calls of a memory, combined into one commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls
from recollect.common.uncopied import Uncopied
from recollect.engine.executor import BatchExecutor
from recollect.engine.scope import Scope
from recollect.errors import InvalidArgumentError
from recollect.memory.shared import SharedCalls
from recollect.operations import Forget, Operation, Remember, RememberAll, Update

#: The writes that a call of several operations consists of.
_WRITES = (Remember, RememberAll, Update, Forget)


@all_named
class Batch(SharedCalls, Uncopied):
    """The calls of a memory, combined into one commit. Created by `Memory.batch`.

    Reads see the uncommitted writes of the batch. A call that is refused changes nothing, and the batch can continue
    if the caller catches the error. After a StoreError, an interrupted call or a failed
    `remember_all(on_error="raise")`, the batch cannot be committed: leaving its `with` block raises the error. The same
    applies to a call that consists of several writes (such as `record_knowledge` with a source) if it fails after the
    first of them. After the block, every call raises ClosedError.
    """

    def __init__(self, executor: BatchExecutor, scope: Scope) -> None:
        self._executor = executor
        self._scope = scope
        self._writes = 0
        self._failure: BaseException | None = None

    @property
    def scope(self) -> dict[str, str]:
        """The values of user, agent and conversation that all its records have; empty if it is not scoped."""
        return dict(self._scope.fixed)

    def execute(self, operation: Operation, *, actor: str | None = None, reason: str | None = None) -> Any:
        """Execute an operation (`recollect.operations`) as part of the batch and return its result.

        Args:
            operation: The operation. Its `in_batch` must be true.
            actor: Not allowed here: pass it to `Memory.batch`.
            reason: Not allowed here: pass it to `Memory.batch`.

        Raises:
            InvalidArgumentError: The operation cannot be part of a batch, or `actor` or `reason` was passed.
            ClosedError: The batch has ended.
        """
        if not isinstance(operation, Operation):
            raise InvalidArgumentError("operation", operation, "must be an operation: see recollect.operations")
        if actor is not None or reason is not None:
            raise InvalidArgumentError("actor", actor or reason, "and reason must be passed to Memory.batch")
        if not operation.in_batch:
            raise InvalidArgumentError("operation", operation.name, "cannot be part of a batch: call it on the memory")
        result = self._executor.execute(operation)
        self._writes += isinstance(operation, _WRITES)
        return result

    @contextmanager
    def _one_commit(self) -> Iterator[Calls]:
        writes = self._writes
        try:
            yield self
        except BaseException as error:
            if self._writes > writes:  # only a part of the call is staged
                self._failure = self._failure or error
            raise

    def _check_complete(self) -> None:
        """Raise the error of a call that is only staged in part."""
        if self._failure is not None:
            raise self._failure
