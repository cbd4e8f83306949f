"""Operations inside an open transaction: each sees the effects of those before it, and all become one commit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from recollect.engine.index.keeper import IndexKeeper, apply_written, read_back
from recollect.engine.index.vectors import IN_BATCH
from recollect.engine.read.filter_bounds import as_ids, bounds, uses_filter_terms
from recollect.engine.results import Failed, Outcome, Report
from recollect.engine.scope import Scope
from recollect.engine.write.drafts import Draft, Intake, draft
from recollect.engine.write.replay import Repeated
from recollect.engine.write.writer import Writer
from recollect.errors import (
    ClosedError,
    ConflictError,
    InvalidArgumentError,
    RecollectError,
    ScopeError,
    StoreError,
    StoreIOError,
)
from recollect.filters.tree import Everything, Filter
from recollect.indexes.words.index import WordIndex, WordView
from recollect.ledger.commits import Branch
from recollect.operations import (
    Batch,
    Changes,
    Clear,
    Forget,
    ForgetWhere,
    Grep,
    Operation,
    Recall,
    Remember,
    RememberAll,
    SetQuota,
    Sweep,
    Update,
)
from recollect.stores.base import Store, Transaction, View


class Services(NamedTuple):
    """The parts of the engine that a transaction uses.

    Attributes:
        store: The store.
        intake: The limits and the default language of the memory.
        keeper: The word indexes.
        has_vectors: Whether there is an embedder.
        read: `Engine.read`.
        grep: `Engine.grep`.
    """

    store: Store
    intake: Intake
    keeper: IndexKeeper
    has_vectors: bool
    read: Callable[..., Any]
    grep: Callable[..., Any]


class Writing:
    """An open transaction. Operations on it see the effects of those before them.

    Attributes:
        writer: The writes of the transaction.
        open: False once the transaction has ended.
        executed: How many operations have succeeded.
        seq: The seq of the newest commit, set when the transaction is committed or ends without effect.
        failure: The error because of which the transaction must not be committed, if any.
    """

    def __init__(
        self,
        services: Services,
        transaction: Transaction,
        writer: Writer,
        branch: Branch,
        scope: Scope,
        now: datetime,
        reads_at: int,
    ) -> None:
        self._services = services
        self._transaction = transaction
        self.writer = writer
        self._branch = branch
        self._scope = scope
        self._now = now
        self._reads_at = reads_at  # decides which records have expired: see `Engine.reads_at`
        self._index: WordIndex | None = None
        self._count = 0  # of single `remember` operations
        self.open = True
        self.executed = 0
        self.seq = 0
        self.failure: RecollectError | None = None

    def execute(self, operation: Operation) -> Any:
        """Execute an operation inside the transaction.

        An operation that is refused changes nothing, and the transaction can continue. If the store fails or an
        operation is interrupted, the transaction cannot be committed any more, even if the caller catches the error.
        """
        if not self.open:
            raise ClosedError("the batch")
        try:
            result = self._execute(operation)
            self.executed += 1
            return result
        except StoreError as error:
            self.failure = self.failure or error
            raise
        except Exception:
            raise
        except BaseException as cut:
            interrupted = StoreIOError(
                self._services.store.path, f"an operation of the batch was interrupted by {cut!r}"
            )
            self.failure = self.failure or interrupted
            raise

    def _execute(self, operation: Operation) -> Any:
        match operation:
            case Remember():
                self._count += 1
                default_time = self._now + timedelta(microseconds=self._count - 1)  # later records are newer
                return self.remember_draft(draft(operation, self._scope, default_time, self._services.intake))
            case RememberAll():
                return self._remember_all(operation)
            case Update():
                return self.writer.update(operation.id, operation.changes, operation.expect)
            case Forget():
                return self.writer.forget(operation.id, operation.expect)
            case ForgetWhere():
                where = self._stored_form(operation.where)
                return self.writer.forget_where(where, self._prefiltered(where))
            case Sweep():
                if self._scope.fixed:
                    raise ScopeError("sweeping the namespace", str(self._scope))
                return self.writer.sweep(operation.limit)
            case Clear():
                return self.writer.forget_where(Everything())
            case Batch():
                if operation.expect_head is not None:
                    check_head(self._transaction, self._branch, self._scope, operation.expect_head)
                return [self.execute(each) for each in operation.operations]
            case Changes():
                raise InvalidArgumentError(
                    "operation", "changes", "cannot be part of a batch, since the batch is not committed yet"
                )
            case SetQuota():
                raise InvalidArgumentError("operation", "set_quota", "cannot be part of a batch: it changes no record")
        if isinstance(operation, Grep):
            staged = [self.writer.live(each) or each for each in self.writer.touched]
            return self._services.grep(operation, self._branch, self._scope, staged)
        if isinstance(operation, Recall):
            self._services.intake.limits.check_question(operation.question)
        if isinstance(operation, Recall) and operation.reference is None:
            operation = operation.with_reference(self._now)
        words = self._words() if isinstance(operation, Recall) else None
        question_vector = IN_BATCH if self._services.has_vectors else None
        return self._services.read(
            operation, self._transaction, self._branch, self._scope, self._reads_at, words, question_vector
        )

    def _stored_form(self, where: Filter) -> Filter:
        return self._scope.stored_form(where, lambda each: self._transaction.known(self._branch, each))

    def _prefiltered(self, where: Filter) -> Filter:
        """Return a filter that matches the same live records, by their ids if the index is loaded and useful."""
        if self.writer.touched or not uses_filter_terms(where):  # the index lacks uncommitted records
            return where
        with self._services.store.read() as committed:  # no other writer can commit meanwhile
            words = self._services.keeper.loaded(committed, self._branch, in_file=False)
        if words is None:
            return where
        index_view = words.at(self._reads_at)
        return as_ids(where, bounds(where, index_view), index_view)

    def remember_draft(self, item: Draft, repeated: Repeated | None = None) -> Outcome:
        """Store a draft; `repeated` is the turn that it repeats, if `Writer.find_replay` found one."""
        return self.writer.remember(item) if repeated is None else self.writer.remember_replayed(item, repeated)

    def remember_drafts(self, drafts: list[Draft]) -> list[Outcome]:
        """Store drafts that were passed together, so that a replayed conversation is recognised."""
        self.writer.look_up(drafts)
        repeated = self.writer.find_replay(drafts).repeated
        return [self.remember_draft(item, repeated.get(index)) for index, item in enumerate(drafts)]

    def _remember_all(self, operation: RememberAll) -> Report:
        drafts, failed = drafts_of(operation, self._scope, self._now, self._services.intake)
        self.writer.look_up([item for _, item in drafts])
        repeated = self.writer.find_replay([item for _, item in drafts]).repeated
        results: list[Outcome] = []
        for number, (index, item) in enumerate(drafts):
            try:
                results.append(self.remember_draft(item, repeated.get(number)))
            except StoreError:
                raise
            except RecollectError as error:
                if operation.on_error == "raise":
                    self.failure = error  # some items are staged already, so the whole batch must fail
                    raise
                failed.append(Failed(operation.items[index], index, error))
        return Report(tuple(results), tuple(sorted(failed, key=lambda each: each.place)))

    def _words(self) -> WordView:
        """Return the index with the changes of this transaction: a fork of the shared index, caught up."""
        if self._index is None:
            # Fork at the committed state: staged changes may be undone and must not reach the shared index.
            with self._services.store.read() as committed:
                self._index = self._services.keeper.fork(committed, self._branch)
        apply_written(self._index, read_back(self._transaction, self._branch, self.writer.newly_touched()))
        return self._index.view()


def drafts_of(
    operation: RememberAll, scope: Scope, now: datetime, intake: Intake
) -> tuple[list[tuple[int, Draft]], list[Failed]]:
    """Return the valid items as drafts, each with its index, and the invalid items.

    Raises:
        RecollectError: With `on_error="raise"`, the error of the first invalid item.
    """
    drafts: list[tuple[int, Draft]] = []
    failed: list[Failed] = []
    for index, item in enumerate(operation.items):
        try:
            # Default times are a microsecond apart, so that later items are newer.
            drafts.append((index, draft(item, scope, now + timedelta(microseconds=index), intake)))
        except RecollectError as error:
            if operation.on_error == "raise":
                raise
            failed.append(Failed(item, index, error))
    return drafts, failed


def check_head(view: View, branch: Branch, scope: Scope, expected: int) -> None:
    """Check that the newest commit has the expected seq.

    Raises:
        ConflictError: It has another one.
        ScopeError: Within a scope, where the seq is not visible.
    """
    if scope.fixed:
        raise ScopeError("the seq, which counts the commits of the whole namespace,", str(scope))
    seq = view.head(branch).seq
    if seq != expected:
        raise ConflictError(f"the head of {branch.namespace!r}", str(expected), str(seq))
