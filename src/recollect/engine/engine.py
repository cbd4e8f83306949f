"""The engine: executes operations on a store in this process, and reports each to the log and to `on_call`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any

from recollect.engine.answers import Answers
from recollect.engine.call_log import CallLog, OnCall
from recollect.engine.core import INDEX_BYTES, Core
from recollect.engine.feed import Feed
from recollect.engine.handlers import HANDLERS, Run, batch_place, execute_in_batch, handler_of, note_failed, note_state
from recollect.engine.index.vectors import VECTOR_BYTES
from recollect.engine.read.log import Log
from recollect.engine.results import result_from_json, result_to_json
from recollect.engine.scope import Place, Scope
from recollect.engine.settings import policies_of
from recollect.engine.write.batch import Writing
from recollect.engine.write.classes import check_kept
from recollect.engine.write.drafts import Intake
from recollect.errors import DamagedStoreError, RecollectError, StoreBusyError, StoreError, UnsupportedError
from recollect.ledger.commits import Branch
from recollect.models.embedding.base import Embedder
from recollect.operations import ExecuteBatch, Operation, check_key, check_label
from recollect.operations.base import READ
from recollect.records.codec import microseconds
from recollect.records.origins import USER
from recollect.stores.base import Store
from recollect.stores.write_queue import repeated


class Engine:
    """An `Executor` for a store in this process.

    Args:
        clock: Returns the current time as an aware datetime.
        intake: The limits and the default language of the memory.
        embedder: The embedding model, if any.
        index_bytes: Limit on the memory of all indexes together.
        vector_bytes: Limit on the memory of all vectors that are cached for recall.
        on_call: Called with a `Call` when an operation has ended.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], datetime],
        intake: Intake,
        embedder: Embedder | None = None,
        *,
        index_bytes: int = INDEX_BYTES,
        vector_bytes: int = VECTOR_BYTES,
        on_call: OnCall | None = None,
    ) -> None:
        self.core = Core(store, clock, intake, embedder, index_bytes=index_bytes, vector_bytes=vector_bytes)
        self._calls = CallLog(on_call)

    @property
    def location(self) -> str:
        """The path of the store, or ":memory:"."""
        return self.core.store.path

    @property
    def embedder(self) -> Embedder | None:
        """The embedding model, or None."""
        return None if self.core.vectors is None else self.core.vectors.embedder

    def execute(self, operation: Operation, place: Place) -> Any:
        """Execute an operation and return its result. See `Executor.execute`."""
        handler = HANDLERS.get(type(operation)) or handler_of(operation)
        if place.origin != USER and operation.right != READ:
            check_kept(place)
        run = handler.run if place.key is None else execute_once
        operation = operation.located(self.core.zone)
        try:
            if self._calls.active:
                observed = partial(self._run, run, place, operation)
                return note_failed(
                    self._calls.observed(operation.name, place.branch.namespace, bool(place.scope.fixed), observed)
                )
            return note_failed(self._run(run, place, operation))
        except RecollectError as error:
            note_state(error, operation)
            raise

    def _run(self, run: Run, place: Place, operation: Operation) -> Any:
        if place.actor is not None:
            check_label("actor", place.actor)
        if place.reason is not None:
            check_label("reason", place.reason)
        begun = self.core.thread.commits
        try:
            return run(self.core, place, operation)
        except StoreError as error:  # another SQLite may have written its pages, or a replica has failed

            def renews(error: StoreError) -> bool:
                # What has committed is not repeated.
                return self.core.thread.commits == begun and self.core.store.renew(error)

            return repeated(partial(run, self.core, place, operation), error, renews)

    @contextmanager
    def batch(self, place: Place, expect_head: int | None) -> Iterator[OpenBatch]:
        """Open a transaction for a batch of the caller, and report it as one call. See `Executor.batch`."""
        try:
            if place.origin != USER:
                check_kept(place)
            if not self._calls.active:
                with self.core.writing(place, expect_head=expect_head) as writing:
                    yield OpenBatch(writing)
                return
            with self._calls.block("batch", place.branch.namespace, bool(place.scope.fixed)) as count:
                with self.core.writing(place, expect_head=expect_head) as writing:
                    yield OpenBatch(writing)
                count[0] = writing.executed
        except RecollectError as error:
            note_state(error, ExecuteBatch(operations=()))
            if isinstance(error, DamagedStoreError) and self.core.store.renew(error):
                raise StoreBusyError(error.args[0], "another SQLite wrote pages of it; the batch was undone") from error
            raise

    def log(self, branch: Branch, scope: Scope, parts: Collection[str] | None = None) -> Log:
        """Return the log of a branch as a scope sees it. See `Executor.log`."""
        return self.core.log(branch, scope, parts)

    @property
    def feed(self) -> Feed:
        """Wakes the subscribers of a branch."""
        return self.core.feed

    def close(self) -> None:
        """Close the store. See `Executor.close`. Does nothing in a forked process."""
        self.core.close()


class OpenBatch:
    """A `BatchExecutor` for an open transaction."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def execute(self, operation: Operation) -> Any:
        """Execute an operation and return its result. See `BatchExecutor.execute`."""
        return execute_in_batch(self._writing, operation)


# Writes with an idempotency key: executed once, in one transaction with their answer, and then only answered.


def execute_once(core: Core, place: Place, operation: Operation) -> Any:
    """Execute a write unless one with this key was executed within the last day; return the first answer.

    What otherwise takes several commits, such as storing 10,000 records, is one commit.

    Raises:
        InvalidArgumentError: The key is no text of 1 to 255 bytes.
        UnsupportedError: The operation is not a write that can be part of a batch.
        IdempotencyError: The key belongs to another write, or its answer was erased.
    """
    check_key(place.key)
    key, expect_head = str(place.key), None
    if not operation.can_have_key:
        raise UnsupportedError("an idempotency key", f"{operation.name} is not a write that can be part of a batch")
    if isinstance(operation, ExecuteBatch):
        place, expect_head = batch_place(place, operation), operation.expect_head
    branch, now = place.branch, core.now()
    shared = handler_of(operation).is_short(operation)
    with core.writing(place, shared=shared, now=now) as writing:
        answers = Answers(writing.transaction, branch, place.scope, microseconds(now), core.store.key)
        known, answer = answers.find(key, operation, lambda data: result_from_json(operation, data))
        if known:
            return answer
        if isinstance(operation, ExecuteBatch):
            if expect_head is not None:
                writing.check_head(expect_head)
            result: Any = [execute_in_batch(writing, each) for each in operation.operations]
        else:
            result = execute_in_batch(writing, operation)
        policies = policies_of(writing.transaction, branch)
        answers.note(key, operation, result_to_json(operation, result), policies)
        if core.answers_cleaned != answers.day() and not answers.remove_old():
            core.answers_cleaned = answers.day()
        return result
