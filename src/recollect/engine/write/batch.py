"""An open transaction: each operation in it sees the effects of those before it, and all become one commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from recollect.common.deadlines import checked
from recollect.engine.cursors import Cursors
from recollect.engine.family import chosen, without_kept
from recollect.engine.follower import RecordFollower
from recollect.engine.history_results import Restored
from recollect.engine.index.keeper import IndexKeeper, apply_written, read_back
from recollect.engine.index.vectors import IN_BATCH
from recollect.engine.read.filter_bounds import Below, as_ids, bounds, index_helps
from recollect.engine.read.log import part_commits
from recollect.engine.read.queries import Reading
from recollect.engine.read.suspicion import Suspicion, burst, of_source, rivals
from recollect.engine.read.targets import PastPoint, point_in
from recollect.engine.results import Failed, Outcome, PartCounts, Report
from recollect.engine.scope import Scope
from recollect.engine.write.admission import Admission
from recollect.engine.write.classes import QUARANTINED
from recollect.engine.write.drafts import Draft, Intake, draft
from recollect.engine.write.messages import Addition, with_conversations
from recollect.engine.write.replacing import merge, revert, rollback, supersede
from recollect.engine.write.replay import Repeated
from recollect.engine.write.writer import Writer
from recollect.errors import (
    ClosedError,
    ConflictError,
    DeadlineError,
    RecollectError,
    RejectedError,
    ScopeError,
    StoreError,
    StoreIOError,
    UnknownTargetError,
)
from recollect.filters.tree import EVERYTHING, Filter, resolved
from recollect.indexes.words.index import WordIndex, WordView
from recollect.ledger.commits import Branch
from recollect.ledger.parts import RECORDS
from recollect.operations import (
    AddMessages,
    Clear,
    Forget,
    ForgetAll,
    ForgetWhere,
    Merge,
    Remember,
    RememberAll,
    Supersede,
    Sweep,
    Touch,
    Update,
)
from recollect.operations.trust import Endorse, Release
from recollect.records.record import Record
from recollect.stores.base import Store, Transaction, View
from recollect.stores.derived.fulltext import FullText

T = TypeVar("T")
#: Number of drafts whose ids are looked up together.
_LOOKED_UP = 1000


class Services(NamedTuple):
    """The parts of the engine that a transaction uses.

    Attributes:
        intake: The limits and the default language of the memory.
        keeper: The word indexes.
        fulltext: The full-text index.
        cursors: The cursors of the store.
        has_vectors: Whether there is an embedder.
        log_head: Returns the head of the log of a branch, in hex (`LogTrees.head`).
        facets: The facets, by name.
        followed: Calls a function with the index of a facet as it is committed (`Core.followed`).
    """

    store: Store
    intake: Intake
    keeper: IndexKeeper
    fulltext: FullText
    cursors: Cursors
    has_vectors: bool
    log_head: Callable[[View, Branch], str]
    facets: Mapping[str, RecordFollower[Any, Any]]
    followed: Callable[[str, Branch, Any, Callable[[Any, int], Any], int], Any]


class Writing:
    """An open transaction. Operations on it see the effects of those before them.

    Attributes:
        services: The parts of the engine that it uses.
        branch: The branch to write to.
        scope: The scope of the caller.
        now: The time at which it began.
        reads_at: The time that decides which records have expired (see `Core.reads_at`).
        in_part: Returns the writes of the same transaction to another branch of the memory.
        transaction: The transaction of the store.
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
        in_part: Callable[[Branch], Writing],
    ) -> None:
        self.in_part = in_part
        self.services = services
        self.transaction = transaction
        self.writer = writer
        self.branch = branch
        self.scope = scope
        self.now = now
        self.reads_at = reads_at
        self._index: WordIndex | None = None
        self._count = 0  # of single `remember` operations
        self.open = True
        self.executed = 0
        self.read_bytes = 0  # what its reads have returned, where that is limited
        self.seq = 0
        self.failure: RecollectError | None = None

    def parts(self, names: Collection[str] | None) -> dict[str, Writing]:
        """Return the writes of the same transaction to the parts of the memory that have a commit, by name.

        They are committed together. That of the transaction itself is among them, if it is chosen (`family.chosen`).
        """
        return {
            name: self.in_part(branch)
            for name, branch in chosen(self.branch, names).items()
            if branch == self.branch or self.transaction.head(branch).seq
        }

    def perform(self, call: Callable[..., T], *arguments: Any) -> T:
        """Run a call that is part of the transaction.

        A call that is refused changes nothing, and the transaction can continue. If the store fails or a call is
        interrupted, the transaction cannot be committed any more, even if the caller catches the error.

        Raises:
            ClosedError: The transaction has ended.
        """
        if not self.open:
            raise ClosedError("the batch")
        try:
            result = call(*arguments)
            self.executed += 1
            return result
        except (StoreError, DeadlineError) as error:
            self.failure = self.failure or error
            raise
        except Exception:
            raise
        except BaseException as cut:
            interrupted = StoreIOError(
                self.services.store.path, f"an operation of the batch was interrupted by {cut!r}"
            )
            self.failure = self.failure or interrupted
            raise

    # Writing operations

    def remember(self, operation: Remember) -> Outcome:
        """Store a record."""
        self._count += 1
        default_time = self.now + timedelta(microseconds=self._count - 1)  # later records are newer
        return self.remember_single(draft(operation, self.scope, default_time, self.services.intake))

    def remember_single(self, item: Draft) -> Outcome:
        """Store a draft, if the policies of the namespace allow it."""
        if item.record.role is not None and item.record.conversation is not None:
            (item,) = self.writer.listened([item])
        try:
            return self.remember_draft(self.writer.admitted(item))
        except RejectedError as error:
            return rejection(error)

    def remember_all(self, operation: RememberAll) -> Report:
        """Store the valid items."""
        admission = self.writer.admission
        drafts, failed = drafts_of(operation, self.scope, self.now, self.services.intake, admission)
        admitted, rejected = admission.drafts(drafts, operation.items)
        if rejected and operation.on_error == "raise":
            raise rejected[0].reason
        failed += rejected
        repeated = self.writer.find_replay([item for _, item in admitted]).repeated
        drafts = self.listened(drafts, admitted, repeated)
        results: list[Outcome] = []
        looked_up = self._looked_up([item for _, item in drafts])
        for number, ((index, _), item) in enumerate(zip(drafts, looked_up, strict=True)):
            try:
                results.append(self.remember_draft(item, repeated.get(number)))
            except (StoreError, DeadlineError):
                raise
            except RecollectError as error:
                if operation.on_error == "raise":
                    self.failure = error  # some items are staged already, so the whole batch must fail
                    raise
                failed.append(Failed(operation.items[index], index, error))
        return Report(tuple(results), tuple(sorted(failed, key=lambda each: each.index)))

    def listened(
        self, drafts: Sequence[tuple[int, Draft]], admitted: Sequence[tuple[int, Draft]], repeated: Mapping[int, Any]
    ) -> list[tuple[int, Draft]]:
        """Return the drafts that the policies admit, with the class of what they may repeat of tools (`hearing`).

        Args:
            drafts: All of them, each with its index: also what is not stored was said.
            admitted: Those that the policies admit.
            repeated: What is stored already, by its number among these.
        """
        stored = {admitted[number][0] for number in repeated}
        known = {number for number, (index, _) in enumerate(drafts) if index in stored}
        heard = dict(
            zip((index for index, _ in drafts), self.writer.listened([each for _, each in drafts], known), strict=True)
        )
        return [(index, each._replace(heard=heard[index].heard)) for index, each in admitted]

    def add_messages(self, operation: AddMessages) -> Report:
        """Store the turns that are not stored yet."""
        if not operation.turns:
            return Report()
        addition = Addition(operation, self.scope, self.now, self.services.intake, self.writer.origin)
        addition.obey(self.writer.admission)
        return self.add(addition, self.writer.known_turns(addition), len(operation.turns))[1]

    def add(self, addition: Addition, known: Mapping[int, Outcome], limit: int, start: int = 0) -> tuple[int, Report]:
        """Store turns of a list that are not stored yet, from index `start` on and at most `limit` of them.

        Args:
            addition: The turns.
            known: The outcomes of those that are stored.
            limit: Maximum number of new turns.
            start: The index of the first turn.

        Returns:
            The index of the first turn that was not reached, and the outcomes of those before it.
        """
        results: list[Outcome] = []
        failed: list[Failed] = []
        added = 0
        new = [index for index in range(start, len(addition.turns)) if known.get(index) is None][:limit]
        drafts = self._drafted(addition, new)
        for index in checked(range(start, len(addition.turns))):
            outcome = known.get(index)
            if outcome is None:
                if added == limit:
                    return index, Report(tuple(results), tuple(failed))
                added += 1
                try:
                    drafted = next(drafts)
                    if isinstance(drafted, RecollectError):
                        raise drafted
                    outcome = self.remember_draft(drafted)
                    self._mark_branches(addition)
                except (StoreError, DeadlineError):
                    raise
                except RecollectError as error:
                    failed.append(Failed(addition.turns[index], index, error))
                    continue
            results.append(outcome)
        return len(addition.turns), Report(tuple(results), tuple(failed))

    def _drafted(self, addition: Addition, indexes: Sequence[int]) -> Iterator[Draft | RecollectError]:
        """Yield the draft of each of some turns, or what is wrong with it, and look up `_LOOKED_UP` at a time."""
        for begin in range(0, len(indexes), _LOOKED_UP):
            drafts = [self._draft_of(addition, index) for index in indexes[begin : begin + _LOOKED_UP]]
            self.writer.look_up([each for each in drafts if isinstance(each, Draft)])
            yield from drafts

    @staticmethod
    def _draft_of(addition: Addition, index: int) -> Draft | RecollectError:
        try:
            return addition.draft(index)
        except (StoreError, DeadlineError):
            raise
        except RecollectError as error:
            return error

    def _mark_branches(self, addition: Addition) -> None:
        """Mark the turns of the branch that a list has left, and those of the one that it has come back to, once."""
        for turn in addition.abandoned:
            self.writer.move_to_branch(turn.id, other=True)
        for turn in addition.resumed:
            self.writer.move_to_branch(turn.id, other=False)
        addition.abandoned, addition.resumed = [], []

    def update(self, operation: Update) -> Outcome:
        """Change fields of a record."""
        try:
            return self.writer.update(operation.id, operation.changes, operation.expect)
        except RejectedError as error:
            return rejection(error)

    def supersede(self, operation: Supersede) -> Outcome:
        """Store a fact that replaces another one from a time on."""
        self._count += 1
        now = self.now + timedelta(microseconds=self._count - 1)
        staged = len(self.writer.touched)
        try:
            return supersede(operation, self.writer, self.scope, now, self.services.intake)
        except RejectedError as error:
            return rejection(error)
        except RecollectError as error:
            if len(self.writer.touched) > staged:  # the new record is staged already, so the whole batch must fail
                self.failure = error
            raise

    def merge(self, operation: Merge) -> Outcome:
        """Replace records by one that is derived from them."""
        self._count += 1
        now = self.now + timedelta(microseconds=self._count - 1)
        staged = len(self.writer.touched)
        try:
            return merge(operation, self.writer, self.scope, now, self.services.intake)
        except RejectedError as error:
            return rejection(error)
        except RecollectError as error:
            if len(self.writer.touched) > staged:  # sources are removed already, so the whole batch must fail
                self.failure = error
            raise

    def endorse(self, operation: Endorse) -> Outcome:
        """Raise the class of origin of a record."""
        return self.writer.endorse(operation.id, operation.origin, operation.expect)

    def release(self, operation: Release) -> Report:
        """Store records that are in quarantine."""
        staged = len(self.writer.touched)
        try:
            return Report(tuple([self.writer.release(each) for each in operation.ids]))
        except RecollectError as error:
            if len(self.writer.touched) > staged:  # some are released already, so the whole batch must fail
                self.failure = error
            raise

    def touch(self, operation: Touch) -> int:
        """Let records expire a time from now, and return how many of them there are."""
        ttl = timedelta(seconds=operation.ttl)
        found = [record for each in operation.ids if (record := self.writer.shown(each)) is not None]
        # What a lower writer cannot change, it may only let live longer.
        end, may_change = self.now + ttl, self.writer.may_change
        found = [each for each in found if may_change(each) or (each.expires is not None and each.expires <= end)]
        for record in found:
            if record.expires is None or abs(self.now + ttl - record.expires) > ttl / 10:
                self.writer.put_regardless(record.changed(expires=self.now + ttl))
        return len(found)

    def forget(self, operation: Forget) -> Outcome:
        """Forget a record."""
        return self.writer.forget(operation.id, operation.expect, may_be_missing=operation.missing == "ignore")

    def forget_all(self, operation: ForgetAll) -> int:
        """Forget records by their ids and return how many there were."""
        outcomes = [self.writer.forget(each, may_be_missing=True) for each in operation.ids]
        return sum(each.status == "forgotten" for each in outcomes)

    def forget_where(self, operation: ForgetWhere) -> PartCounts:
        """Forget the records that match and return how many."""
        return self._forget(operation.parts, operation.where)

    def clear(self, operation: Clear) -> PartCounts:
        """Forget all records in the scope and return how many."""
        return self._forget(operation.parts, EVERYTHING)

    def _forget(self, names: Collection[str] | None, where: Filter) -> PartCounts:
        """Forget what matches in parts of the memory: all is found before anything of it is forgotten."""
        parts = self.parts(names)
        found = {name: part.matching(without_kept(where, part.branch)) for name, part in parts.items()}
        return PartCounts({name: part.writer.forget_matching(*found[name]) for name, part in parts.items()})

    def matching(self, matching: Filter) -> tuple[list[str], list[str]]:
        """Return the ids of the records of this part that match (`Writer.matching`)."""
        words = self._committed_words() if index_helps(matching) else None
        below = Below(self.transaction, self.branch, self.scope, words, self.reads_at)
        where = self._stored_form(resolved(matching, below))
        if words is None:
            return self.writer.matching(where)
        index_view = words.at(self.reads_at)
        return self.writer.matching(where, as_ids(where, bounds(where, index_view), index_view))

    def sweep(self, operation: Sweep) -> int:
        """Remove expired records and return how many."""
        if self.scope.fixed:
            raise ScopeError("sweeping the namespace", str(self.scope))
        return self.writer.sweep(operation.limit)

    def rollback(self, point: PastPoint, parts: Collection[str] | None, unreadable: Set[bytes]) -> Restored:
        """Restore the state of a moment, except these versions."""
        point.head_in(self.transaction, self.branch)  # the history is the same
        restored = {}
        for name, part in self.parts(parts).items():
            seq = point_in(self.transaction, part.branch, self.branch, point).seq
            restored[name] = rollback(self.transaction, part.writer, part.branch, seq, unreadable)
        return self._combined(restored)

    def revert(self, seq: int, unreadable: Set[bytes]) -> Restored:
        """Take back the changes of a commit, and of those to other parts that it follows, except these versions."""
        reverted = next(self.transaction.commits(self.branch, seq - 1, 1), None)
        if reverted is None:
            newest = self.transaction.head(self.branch).seq
            raise UnknownTargetError(seq, f"its commits have the numbers 1 to {newest}")
        restored = {}
        for commit in (reverted, *part_commits(self.transaction, reverted)):
            part = self.in_part(Branch(commit.namespace, commit.branch))
            restored[commit.part] = revert(self.transaction, part.writer, part.branch, commit, unreadable)
        return self._combined(restored)

    def _combined(self, restored: dict[str, Restored]) -> Restored:
        """Return what was restored of each part as one result."""
        own = restored.pop(self.branch.reserved_name or RECORDS, None) or Restored(seq=0, changed=0)
        return replace(own, parts={name: each for name, each in restored.items() if each})

    def check_head(self, expected: int) -> None:
        """Check that the newest commit has the expected seq, or raise ConflictError."""
        check_head(self.transaction, self.branch, self.scope, expected)

    def reading(self, words: WordView | None = None) -> Reading:
        """Return what a reading operation needs on this transaction."""
        services = self.services
        return Reading(
            view=self.transaction,
            branch=self.branch,
            scope=self.scope,
            now=self.reads_at,
            words=words,
            question_vector=IN_BATCH if services.has_vectors else None,
            cursors=services.cursors,
            language=services.intake.language,
            zone=services.intake.zone,
            facts=services.store.facts,
            log_head=lambda: services.log_head(self.transaction, self.branch),
        )

    def suspicion(self, record: Record) -> Suspicion | None:
        """Return why a record is suspect beside those that are committed (`read.suspicion`); None if it is not."""
        now, kept = self.reads_at, self.branch.owner.reserved(QUARANTINED)
        with self.services.store.read() as committed:  # no other writer can commit meanwhile
            reading = self._committed(committed, self.branch)
            found = None if reading is None else rivals(reading, record) or burst(reading, record, now)
            if found is None and committed.head(kept).seq and (reading := self._committed(committed, kept)) is not None:
                found = of_source(reading, record, now) or burst(reading, record, now, others=1)
        return found

    def of_source(self, record: Record) -> tuple[str, ...]:
        """Return the committed records of the same source and subject of the last day (`read.suspicion`)."""
        with self.services.store.read() as committed:
            reading = self._committed(committed, self.branch)
            found = None if reading is None else of_source(reading, record, self.reads_at)
        return () if found is None else found.ids

    def _committed(self, view: View, branch: Branch) -> Reading | None:
        words = self.services.keeper.view(view, branch)
        return None if words is None else replace(self.reading(words), view=view, branch=branch)

    # Parts

    def _stored_form(self, where: Filter) -> Filter:
        return self.scope.stored_form(where, lambda each: self.transaction.known(self.branch, each))

    def _committed_words(self) -> WordView | None:
        """Return the index if it is loaded and has all records: it lacks uncommitted ones."""
        if self.writer.touched:
            return None
        with self.services.store.read() as committed:  # no other writer can commit meanwhile
            return self.services.keeper.loaded(committed, self.branch, in_file=False)

    def remember_draft(self, item: Draft, repeated: Repeated | None = None) -> Outcome:
        """Store a draft; `repeated` is the turn that it repeats, if `Writer.find_replay` found one."""
        return self.writer.remember(item) if repeated is None else self.writer.remember_replayed(item, repeated)

    def remember_drafts(self, drafts: list[Draft]) -> list[Outcome]:
        """Store drafts that were passed together, so that a replayed conversation is recognised."""
        repeated = self.writer.find_replay(drafts).repeated
        return [self.remember_draft(item, repeated.get(index)) for index, item in enumerate(self._looked_up(drafts))]

    def _looked_up(self, drafts: list[Draft]) -> Iterator[Draft]:
        """Yield drafts, looking up the ids of `_LOOKED_UP` of them at a time."""
        for index, item in enumerate(checked(drafts)):
            if index % _LOOKED_UP == 0:
                self.writer.look_up(drafts[index : index + _LOOKED_UP])
            yield item

    def words(self) -> WordView:
        """Return the index with the changes of this transaction: a fork of the shared index, caught up."""
        if self._index is None:
            # Fork at the committed state: staged changes may be undone and must not reach the shared index.
            with self.services.store.read() as committed:
                self._index = self.services.keeper.fork(committed, self.branch)
        written = read_back(self.transaction, self.branch, self.writer.newly_touched())
        apply_written(self._index, written, self.services.keeper.document_of)
        return self._index.view()


def rejection(error: RejectedError) -> Outcome:
    """Return the outcome of a write that a policy rejected."""
    return Outcome(None, "rejected", verdict=error.verdict)


def drafts_of(
    operation: RememberAll, scope: Scope, now: datetime, intake: Intake, admission: Admission
) -> tuple[list[tuple[int, Draft]], list[Failed]]:
    """Return the valid items as drafts, each with its index, and the invalid items.

    Raises:
        RecollectError: With `on_error="raise"`, the error of the first invalid item.
    """
    drafts: list[tuple[int, Draft]] = []
    failed: list[Failed] = []
    for index, item in enumerate(with_conversations(operation.items, scope, intake.id_key, admission)):
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
