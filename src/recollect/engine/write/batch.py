"""A transaction under way, as operations see it: each sees what those before it did, and all become one commit."""

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
    """What a transaction needs of the engine that it is part of.

    read  answers an operation that only reads: Engine.read
    grep  finds words, with the texts of ids that are not committed yet: Engine.grep
    """

    store: Store
    intake: Intake
    keeper: IndexKeeper
    has_vectors: bool
    read: Callable[..., Any]
    grep: Callable[..., Any]


class Writing:
    """A transaction under way: operations on it see what those before them did."""

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
        self._reads_at = reads_at  # the time by which records have expired: see `Engine.reads_at`
        self._index: WordIndex | None = None
        self._count = 0  # how many records were told one by one
        self.open = True
        self.seq = 0  # of the newest commit, once the transaction has become one or changed nothing
        self.failure: RecollectError | None = None

    def execute(self, operation: Operation) -> Any:
        """Do an operation inside the transaction.

        An operation that is refused changes nothing, and the transaction goes on. Where the store itself fails, or an
        interruption cuts an operation off, the transaction is lost, also for a caller who catches that.
        """
        if not self.open:
            raise ClosedError("the batch")
        try:
            return self._execute(operation)
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
                requested_at = self._now + timedelta(microseconds=self._count - 1)
                return self.remember_draft(draft(operation, self._scope, requested_at, self._services.intake))
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
                    raise ScopeError("what is due in the namespace", str(self._scope))
                return self.writer.sweep(operation.limit)
            case Clear():
                return self.writer.forget_where(Everything())
            case Batch():
                if operation.expect_head is not None:
                    check_head(self._transaction, self._branch, self._scope, operation.expect_head)
                return [self.execute(each) for each in operation.operations]
            case Changes():
                raise InvalidArgumentError(
                    "operation", "changes", "is not part of a batch, whose commit is yet to come"
                )
            case SetQuota():
                raise InvalidArgumentError("operation", "set_quota", "is not part of a batch, as it changes no record")
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
        """A filter that the same live records match, named by the index where that is of use and at hand."""
        if self.writer.touched or not uses_filter_terms(where):  # what this transaction wrote is in no index yet
            return where
        with self._services.store.read() as committed:  # nobody else can commit meanwhile
            words = self._services.keeper.loaded(committed, self._branch, in_file=False)
        if words is None:
            return where
        index_view = words.at(self._reads_at)
        return as_ids(where, bounds(where, index_view), index_view)

    def remember_draft(self, item: Draft, replayed_id: str | None = None) -> Outcome:
        """Hold a draft; `replayed_id` names the turn that it tells again."""
        return self.writer.remember(item) if replayed_id is None else self.writer.remember_replayed(item, replayed_id)

    def remember_drafts(self, drafts: list[Draft]) -> list[Outcome]:
        """Hold drafts that were given together, so that a conversation told again is known as such."""
        self.writer.look_up(drafts)
        replayed = self.writer.find_replay(drafts).ids
        return [self.remember_draft(item, replayed.get(index)) for index, item in enumerate(drafts)]

    def _remember_all(self, operation: RememberAll) -> Report:
        drafts, failed = drafts_of(operation, self._scope, self._now, self._services.intake)
        self.writer.look_up([item for _, item in drafts])
        replayed = self.writer.find_replay([item for _, item in drafts]).ids
        results: list[Outcome] = []
        for at, (index, item) in enumerate(drafts):
            try:
                results.append(self.remember_draft(item, replayed.get(at)))
            except StoreError:
                raise
            except RecollectError as error:
                if operation.on_error == "raise":
                    self.failure = error  # half of it is done: the batch as a whole is given up
                    raise
                failed.append(Failed(operation.items[index], index, error))
        return Report(tuple(results), tuple(sorted(failed, key=lambda each: each.place)))

    def _words(self) -> WordView:
        """The index with what this transaction wrote: a fork of the shared one, brought up to date."""
        if self._index is None:
            # From what is committed, never from this transaction's view: what it stages may yet be given up.
            with self._services.store.read() as committed:
                self._index = self._services.keeper.fork(committed, self._branch)
        apply_written(self._index, read_back(self._transaction, self._branch, self.writer.newly_touched()))
        return self._index.view()


def drafts_of(
    operation: RememberAll, scope: Scope, now: datetime, intake: Intake
) -> tuple[list[tuple[int, Draft]], list[Failed]]:
    """The items that are valid, as drafts with their places, and those that are not.

    Raises: the first item's error where `on_error` is "raise".
    """
    drafts: list[tuple[int, Draft]] = []
    failed: list[Failed] = []
    for index, item in enumerate(operation.items):
        try:
            # Told together, a microsecond apart: what was told later is newer.
            drafts.append((index, draft(item, scope, now + timedelta(microseconds=index), intake)))
        except RecollectError as error:
            if operation.on_error == "raise":
                raise
            failed.append(Failed(item, index, error))
    return drafts, failed


def check_head(view: View, branch: Branch, scope: Scope, expected: int) -> None:
    """Raises: ConflictError where the newest commit is another; ScopeError within a scope, which cannot know it."""
    if scope.fixed:
        raise ScopeError("the seq, which tells of the whole namespace,", str(scope))
    seq = view.head(branch).seq
    if seq != expected:
        raise ConflictError(f"the head of {branch.namespace!r}", str(expected), str(seq))
