"""The engine: executes operations on a store in this process, and reports each to the log and to `on_call`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any

from recollect.engine.call_log import CallLog, OnCall
from recollect.engine.core import INDEX_BYTES, Core
from recollect.engine.feed import Feed
from recollect.engine.handlers import HANDLERS, Run, execute_in_batch, handler_of, note_failed, note_state
from recollect.engine.index.vectors import VECTOR_BYTES
from recollect.engine.read.queries import Log
from recollect.engine.repeating import execute_once
from recollect.engine.scope import Place, Scope
from recollect.engine.write.batch import Writing
from recollect.engine.write.drafts import Intake
from recollect.errors import DamagedStoreError, RecollectError, StoreBusyError, StoreError
from recollect.ledger.commits import Branch
from recollect.models.embedding.base import Embedder
from recollect.operations import ExecuteBatch, Operation, check_label
from recollect.stores.base import Store
from recollect.stores.renewals import repeated


class Engine:
    """An `Executor` for a store in this process.

    Args:
        store: The store.
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
        except DamagedStoreError as error:  # another SQLite may have written its pages

            def renews(error: StoreError) -> bool:
                # What has committed is not repeated.
                return self.core.thread.commits == begun and self.core.store.renew(error)

            return repeated(partial(run, self.core, place, operation), error, renews)

    @contextmanager
    def batch(self, place: Place, expect_head: int | None) -> Iterator[OpenBatch]:
        """Open a transaction for a batch of the caller, and report it as one call. See `Executor.batch`."""
        try:
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

    def log(self, branch: Branch, scope: Scope) -> Log:
        """Return the log of a branch as a scope sees it. See `Executor.log`."""
        return self.core.log(branch, scope)

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
