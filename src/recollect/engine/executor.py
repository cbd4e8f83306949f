"""The protocol that a `Memory` stands on: something that executes operations, in this process or in another."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from recollect.embedding.base import Embedder
from recollect.engine.feed import CommitLog, Feed
from recollect.engine.scope import Scope
from recollect.ledger.commits import Branch
from recollect.operations import Operation


class BatchExecutor(Protocol):
    """Executes operations inside the transaction of a batch."""

    def execute(self, operation: Operation) -> Any:
        """Execute an operation and return its result. It sees the effects of those before it.

        Raises:
            ClosedError: The batch has ended.
        """
        ...


class Executor(Protocol):
    """Executes operations on the namespaces and scopes of one store."""

    @property
    def location(self) -> str:
        """Where the store is, for messages: a path, ":memory:" or an address without secrets."""
        ...

    @property
    def embedder(self) -> Embedder | None:
        """The embedding model, or None."""
        ...

    def execute(
        self,
        operation: Operation,
        branch: Branch,
        scope: Scope,
        actor: str | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Execute an operation and return its result.

        Args:
            operation: The operation.
            branch: The branch to read or write.
            scope: The scope of the caller.
            actor: Who makes the change; recorded in the commit.
            reason: Why the change is made; recorded in the commit.
            idempotency_key: Execute a write once: repeated within a day, it gives its first answer and writes nothing.

        Raises:
            UnsupportedError: The operation cannot be sent to where the store is, or can have no key.
            IdempotencyError: The key belongs to another write.
        """
        ...

    def batch(
        self, branch: Branch, scope: Scope, actor: str | None, reason: str | None, expect_head: int | None
    ) -> AbstractContextManager[BatchExecutor]:
        """Open a batch: a transaction that is committed when the block ends, and undone if the block raises."""
        ...

    def log(self, branch: Branch, scope: Scope) -> CommitLog:
        """Return the log of a branch as a scope sees it. Listeners and commit streams read it."""
        ...

    @property
    def feed(self) -> Feed:
        """Wakes the subscribers of a branch when it has new commits."""
        ...

    def close(self) -> None:
        """Stop the listeners, wait for calls in progress and release the store."""
        ...
