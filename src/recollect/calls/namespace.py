"""The calls on one namespace that a memory and its facets stand on: commits, listeners, batches and the past."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, Self

from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls
from recollect.calls.history import Histories, PastExecutor, Target, pin_of
from recollect.engine.executor import Executor
from recollect.engine.family import chosen
from recollect.engine.feed import CommitLog
from recollect.engine.listeners import Subscription
from recollect.engine.results import Hits, Moment, NamespaceHead, scored
from recollect.engine.scope import Place, Scope
from recollect.engine.streams import CommitStream
from recollect.errors import InvalidArgumentError, ScopeError
from recollect.filters.text_form import Where, as_filter
from recollect.ledger.commits import Branch, Commit
from recollect.ledger.receipts import Receipt as ReceiptForm
from recollect.operations import Changes, Operation, ReadHead, Recall, Receipt
from recollect.records.origins import USER, Origin


@all_named
class NamespaceCalls(Histories):
    """The calls on one namespace of a store, or a scoped view of it.

    Args:
        executor: Executes the operations.
        branch: The branch of the namespace.
        scope: What of it is read and written.
        origin: The class of origin of what is written.
    """

    def __init__(
        self,
        executor: Executor,
        branch: Branch,
        scope: Scope = Scope(),  # noqa: B008 - a constant
        origin: Origin = USER,
    ) -> None:
        self._executor = executor
        self._branch = branch
        self._scope = scope
        self._place = Place(branch, scope, origin=origin)

    @property
    def name(self) -> str:
        """The name of the namespace."""
        return self._branch.namespace

    @property
    def scope(self) -> dict[str, str]:
        """The values of user, agent and conversation that all its records have; empty if it is not scoped."""
        return dict(self._scope.fixed)

    def execute(
        self,
        operation: Operation,
        *,
        actor: str | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Execute an operation (`recollect.operations`) and return its result. All other calls are built on this one.

        Args:
            actor: Who makes the change; recorded in the commit.
            reason: Why the change is made; recorded in the commit.
            idempotency_key: A text of the caller's that names this write. If a write with this key was executed within
                the last day, also by another process, nothing is written and its first answer is returned.

        Returns:
            What the operation returns, such as an `Outcome` for `Remember` and `Hits` for `Recall`.

        Raises:
            IdempotencyError: The key belongs to another write, or its answer was erased.
            UnsupportedError: With a key, the operation is not a write that can be part of a batch.
        """
        if not isinstance(operation, Operation):
            raise InvalidArgumentError("operation", operation, "must be an operation: see recollect.operations")
        place = self._place
        if actor is not None or reason is not None or idempotency_key is not None:
            place = place._replace(actor=actor, reason=reason, key=idempotency_key)
        result = self._executor.execute(operation, place)
        if type(operation) is Recall:
            result.bind(partial(self._receipt_of, operation))
        return result

    def _receipt_of(self, asked: Recall, hits: Hits) -> ReceiptForm:
        """Return the receipt of an answer."""
        if self._scope.fixed or hits.time is None:
            raise ScopeError("a receipt, which covers the whole namespace,", str(self._scope))
        receipt: ReceiptForm = self.execute(
            Receipt(
                operation=replace(asked, reference=hits.reference),
                time=hits.time,
                seq=hits.watermark,
                root=hits.root,
                vectors=hits.plan.vectors,
                vector=hits.plan.vector,
                hits=scored(hits.hits),
                standing=scored(hits.standing),
            )
        )
        return receipt

    def head(self) -> NamespaceHead:
        """Return the newest commit: its number, the root hash of the memory and of its parts, and the head of the log.

        Raises:
            ScopeError: This memory is scoped.
            StoreError: The store failed.

        Cost:
            Reads the commits since the last head or proof; the first call for a store reads its log.
        """
        head: NamespaceHead = self.execute(ReadHead(log=True))
        return head

    @property
    def root(self) -> str:
        """The root hash of the records and of what facets keep, as 64 hex digits (see `head`)."""
        head: NamespaceHead = self.execute(ReadHead())
        return head.root

    @property
    def seq(self) -> int:
        """The number of the newest commit; 0 before the first (see `head`)."""
        head: NamespaceHead = self.execute(ReadHead())
        return head.seq

    def batch(
        self, *, actor: str | None = None, reason: str | None = None, expect_head: int | None = None
    ) -> AbstractContextManager[Calls]:
        """Combine several calls into one atomic commit. See `Memory.batch`."""
        raise NotImplementedError

    def changes(
        self,
        since: int | str = 0,
        limit: int | None = None,
        id: str | None = None,  # noqa: A002 - the field's name
        *,
        newest_first: bool = False,
        where: Where | None = None,
        parts: Collection[str] | None = None,
    ) -> list[Commit]:
        """Return the commits after a cursor.

        A commit to another part of the memory, such as a glossary, is followed by one that changes no record; it is in
        the `part_commits` of that one.

        Args:
            since: The cursor of a commit or of hits (`commit.cursor`, `hits.cursor`), or, outside of scopes, a seq;
                0: from the beginning.
            limit: Maximum number of commits, 1 or more; None: no limit.
            id: Only commits that changed the record with this id; with `parts`, a record of these.
            newest_first: Return the newest commits first, instead of the oldest.
            where: Only commits that changed records that match before or after, with only these changes. A version
                that was erased matches no condition.
            parts: Only commits that changed these parts of the memory, with only these changes: "records", or what
                facets keep ("terms", "nodes", "sdrs", "keys"). Default: all.

        Returns:
            The commits. Within a scope they contain only the changes to records that lie in it.

        Cost:
            Reads the commits that it returns; with `where`, `parts` or within a scope, also those in between.

        Raises:
            InvalidArgumentError: `since` is not a cursor of this memory.
            ScopeError: `since` is a seq and this memory is scoped.
        """
        commits: list[Commit] = self.execute(
            Changes(since=since, limit=limit, id=id, newest_first=newest_first, where=as_filter(where), parts=parts)
        )
        return commits

    def listen(
        self,
        callback: Callable[[Commit], object],
        *,
        since: int | str | None = None,
        parts: Collection[str] | None = None,
    ) -> Subscription:
        """Call a function with each commit, in order, once the commit is durable.

        Callbacks run in a thread that all listeners of the store share; one that takes long delays no other listener.
        An exception in the callback is logged and stored in `subscription.error`, and the next commit is delivered
        nevertheless. Commits of other processes are noticed within a second.

        Args:
            callback: Called with each commit.
            since: Start after this cursor or seq; default: with the next commit.
            parts: Only commits that change these parts of the memory (see `changes`). Default: all.

        Returns:
            The subscription. Close it, or leave its `with` block, to stop.

        Raises:
            InvalidArgumentError: `callback` cannot be called, `since` is not a cursor of this memory, or there is no
                such part.
            ScopeError: `since` is a seq and this memory is scoped.
        """
        if not callable(callback):
            raise InvalidArgumentError("callback", callback, "must be a function of a commit")
        log = self._log(since, parts)
        return Subscription(callback, log, log.start(since), self._executor.feed)

    def subscribe(self, *, since: int | str | None = None, parts: Collection[str] | None = None) -> CommitStream:
        """Return an iterator over the commits, in order, that waits for the next one.

            with memory.subscribe(since=cursor) as commits:
                for commit in commits:
                    cursor = commit.cursor

        The log is read in the thread of the loop, and commits of other processes are noticed within a second. The
        iteration ends when the stream or the memory is closed. `commits.wait(timeout)` waits for a limited time.

        Args:
            since: Start after this cursor or seq; default: with the next commit after this call.
            parts: Only commits that change these parts of the memory (see `changes`). Default: all.

        Raises:
            InvalidArgumentError: `since` is not a cursor of this memory.
            ScopeError: `since` is a seq and this memory is scoped.
        """
        return CommitStream(self._log(since, parts), since, self._executor.feed).start()

    def _log(self, since: int | str | None, parts: Collection[str] | None) -> CommitLog:
        """Return the log of parts of this memory.

        Raises:
            InvalidArgumentError: There is no such part, which a server would say only when it is read.
        """
        checked = Changes(since=since or 0, parts=parts).parts
        chosen(self._branch, checked)
        return self._executor.log(self._branch, self._scope, checked)

    def at(self, target: Target | None = None, *, index: int | None = None) -> Self:
        """Return this memory as it was at a past moment: a read-only memory, which later commits do not change.

            memory.at(datetime(2026, 3, 3, tzinfo=UTC)).recall("Which seat does Ana prefer?")

        `get`, `find`, `count`, `recall`, `grep`, `context`, `stats`, `changes`, `head` and `open_export` return what
        they would have returned then, with the same scores and explanations. Records count as expired by the time of
        the moment. Vectors, the quota and `stats()["store"]` are those of now, because they have no history. Other
        calls raise ReadOnlyMemoryError. Closing a memory of the past is not needed; the end of a `with` block does not
        close the store.

        `scoped` restricts it as it restricts this memory, and a scoped memory shows what its scope could read then.
        `namespace` returns another namespace as of the same time.

        Args:
            target: An int: the number of a commit (`seq`); 0 is the empty memory before the first. An aware datetime:
                the newest commit at or before it; a time in the future is the present. A str: a root, as 64 hex
                digits, which is its newest commit, or the name of a snapshot; within a scope, a cursor. Or a snapshot.
            index: A snapshot by its age; 0: the newest.

        Raises:
            UnknownTargetError: There is no such moment.
            InvalidArgumentError: The target is none of these.
            ScopeError: This memory is scoped, and the target is neither a time nor a cursor.
            StoreError: The store failed.

        Cost:
            O(log commits) for a time, O(commits) for a root. The first call that looks for records derives the word
            index of the moment from the nearest one that is in memory, in proportion to the records that changed
            between. The last few are kept.
        """
        moment = self._moment(target, index)
        return type(self)(
            PastExecutor(self._present, self._branch, moment), self._branch, self._scope, self._place.origin
        )

    @property
    def _present(self) -> Executor:
        return self._executor.executor if isinstance(self._executor, PastExecutor) else self._executor

    def _moment(self, target: Target | None = None, index: int | None = None) -> Moment:
        moment: Moment = self._present.execute(pin_of(target, index), self._place)
        return moment

    def _part(self, name: str) -> Self:
        """Return a part of this memory as a memory: its records, which are this memory, or what a facet keeps.

        Raises:
            InvalidArgumentError: There is no such part.
        """
        (branch,) = chosen(self._branch, [name]).values()
        return self if branch == self._branch else type(self)(self._executor, branch, self._scope, self._place.origin)

    def _beside(self, what: str) -> Self:
        """Return what a facet stores beside the records of this namespace, as a memory with the same scope."""
        return type(self)(self._executor, self._branch.reserved(what), self._scope, self._place.origin)
