"""The protocol that a `Memory` stands on: something that executes operations, in this process or in another."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from recollect.engine.feed import CommitLog, Feed
from recollect.engine.scope import Place, Scope
from recollect.ledger.commits import Branch
from recollect.models.embedding.base import Embedder
from recollect.operations import Operation


class BatchExecutor(Protocol):
    """Executes operations inside the transaction of a batch."""

    def execute(self, operation: Operation) -> Any:
        """Execute an operation and return its result. It sees the effects of those before it.

        Raises:
            ClosedError: The batch has ended.
        """


class Executor(Protocol):
    """Executes operations on the namespaces and scopes of one store."""

    @property
    def location(self) -> str:
        """The location of the store, for messages: a path, ":memory:" or an address without secrets."""

    @property
    def embedder(self) -> Embedder | None:
        """The embedding model, or None."""

    def execute(self, operation: Operation, place: Place) -> Any:
        """Execute an operation and return its result.

        Args:
            place: Where, for whom and why it is executed.

        Raises:
            UnsupportedError: The operation cannot be sent to where the store is, or can have no key.
            IdempotencyError: The key belongs to another write.
        """

    def batch(self, place: Place, expect_head: int | None) -> AbstractContextManager[BatchExecutor]:
        """Open a batch: a transaction that is committed when the block ends, and undone if the block raises.

        The key of the place is not used: the calls of a batch are the caller's own.
        """

    def log(self, branch: Branch, scope: Scope, parts: Collection[str] | None = None) -> CommitLog:
        """Return the log of a branch as a scope sees it. Listeners and commit streams read it."""

    @property
    def feed(self) -> Feed:
        """Wakes the subscribers of a branch when it has new commits."""

    def close(self) -> None:
        """Stop the listeners, wait for calls in progress and release the store."""


def whole_call(
    executor: object, call: str, question: str, place: Place, *, past: bool = False
) -> AbstractContextManager[Callable[[Any], object]]:
    """Return a block for a call that consists of several operations. It yields a function that takes the result.

    An executor that observes calls has a method `whole`, which covers such a call; any other one sees its operations.

    Args:
        executor: What executes the operations: an `Executor` or a `BatchExecutor`.
        call: The name of the call.
        question: What it asks.
        place: Where it is executed. A batch has its own.
        past: Whether it reads a past moment.
    """
    whole = getattr(executor, "whole", None)
    return nullcontext(_unobserved) if whole is None else whole(call, question, place, past=past)


def _unobserved(_result: Any) -> None:
    """Take the result of a call that is not observed."""


class WrappingExecutor:
    """An `Executor` that passes everything to another one. Subclasses change some of it.

    Args:
        executor: The other executor.
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    @property
    def location(self) -> str:
        """The location of the store."""
        return self.executor.location

    @property
    def embedder(self) -> Embedder | None:
        """The embedding model, or None."""
        return self.executor.embedder

    def execute(self, operation: Operation, place: Place) -> Any:
        """Execute an operation and return its result."""
        return self.executor.execute(operation, place)

    def batch(self, place: Place, expect_head: int | None) -> AbstractContextManager[BatchExecutor]:
        """Open a batch."""
        return self.executor.batch(place, expect_head)

    def whole(
        self, call: str, question: str, place: Place, *, past: bool = False
    ) -> AbstractContextManager[Callable[[Any], object]]:
        """Cover a call that consists of several operations, if the other executor observes calls (`whole_call`)."""
        return whole_call(self.executor, call, question, place, past=past)

    def log(self, branch: Branch, scope: Scope, parts: Collection[str] | None = None) -> CommitLog:
        """Return the log of a branch as a scope sees it."""
        return self.executor.log(branch, scope, parts)

    @property
    def feed(self) -> Feed:
        """The feed of the other executor."""
        return self.executor.feed

    def close(self) -> None:
        """Close the other executor."""
        self.executor.close()
