"""The calls on the history of a memory: snapshots, versions, differences, and taking changes back."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, NoReturn

from recollect.arguments.checks import is_integer
from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls
from recollect.engine.executor import BatchExecutor, Executor, WrappingExecutor, whole_call
from recollect.engine.feed import CommitLog, Feed
from recollect.engine.history_results import Difference, Erased, RecordVersion, Restored
from recollect.engine.results import Moment
from recollect.engine.scope import Place, Scope
from recollect.errors import InvalidArgumentError, ReadOnlyMemoryError, RecollectError
from recollect.filters.text_form import Where, as_filter
from recollect.filters.tree import Filter
from recollect.ledger.commits import Branch, Commit, Snapshot
from recollect.operations import (
    At,
    Changes,
    Diff,
    DropSnapshot,
    Erase,
    History,
    Operation,
    Pin,
    Revert,
    Rollback,
    Snapshots,
    TakeSnapshot,
)
from recollect.records.record import aware

#: A time in the future names the present.
PRESENT = datetime(9998, 1, 1, tzinfo=UTC)


@all_named
class Histories(Calls):
    """The calls on the history of a memory."""

    def snapshot(self, name: str | None = None) -> Snapshot:
        """Mark the newest commit, so that it can be found again, and return the mark.

        A snapshot copies nothing. Named snapshots stay until they are dropped; of the unnamed ones, the newest 20 stay.
        Every commit can be read (`at`) and rolled back to, with or without a snapshot.

        Args:
            name: The name; default: unnamed.

        Raises:
            InvalidArgumentError: There is a snapshot with this name, or it cannot be a name.
            ScopeError: This memory is scoped.
            StoreError: The store failed.

        Cost:
            One durable write, however large the memory is.
        """
        snapshot: Snapshot = self.execute(TakeSnapshot(label=name))
        return snapshot

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots, newest first: the order that `at(index=)` counts.

        Raises:
            ScopeError: This memory is scoped.
            StoreError: The store failed.
        """
        snapshots: list[Snapshot] = self.execute(Snapshots())
        return snapshots

    def drop_snapshot(self, name: str) -> Snapshot:
        """Remove a named snapshot and return it. Its commit and all versions stay.

        Raises:
            UnknownTargetError: There is no such snapshot.
            ScopeError: This memory is scoped.
            StoreError: The store failed.
        """
        snapshot: Snapshot = self.execute(DropSnapshot(label=name))
        return snapshot

    def log(
        self,
        limit: int | None = None,
        since: int | str = 0,
        where: Where | None = None,
        *,
        parts: Collection[str] | None = None,
    ) -> list[Commit]:
        """Return the newest commits, newest first.

        `changes` returns them from the oldest on, and explains them.

        Args:
            limit: Maximum number of commits, 1 or more; None: no limit.
            since: Only commits after this cursor or, outside of scopes, this seq.
            where: Only commits that changed records that match before or after, with only these changes. A version
                that was erased matches no condition.
            parts: Only commits that changed these parts of the memory, by name, with only these changes. Default: all.

        Raises:
            InvalidArgumentError: `since` is not a cursor of this memory, or there is no such part.
            ScopeError: `since` is a seq and this memory is scoped.
            StoreError: The store failed.

        Cost:
            Reads the commits that it returns; with `where`, `parts` or within a scope, all down to the last of them.
        """
        commits: list[Commit] = self.execute(
            Changes(since=since, limit=limit, newest_first=True, where=as_filter(where), parts=parts)
        )
        return commits

    def history(self, id: str) -> list[RecordVersion]:  # noqa: A002 - the field's name
        """Return every version that a record had, oldest first, with its commit and its cause.

        Returns:
            The versions; [] if the id was never used. Within a scope only those that lay in it.

        Raises:
            StoreError: The store failed.

        Cost:
            Proportional to the commits that changed the record, and to what else they changed.
        """
        versions: list[RecordVersion] = self.execute(History(id=id))
        return versions

    def diff(self, old: Target, new: Target | None = None, *, parts: Collection[str] | None = None) -> Difference:
        """Return how two moments differ: the records that were added, changed and removed, and those of other parts.

        Args:
            old: A moment: see `at`.
            new: Another moment; default: the newest commit. It may be earlier than `old`.
            parts: The parts of the memory to compare, by name: "records", or what facets keep. Default: all.

        Returns:
            The difference; false if there is none. `parts` has that of each other part that differs. Within a scope
            only the records that lay in it.

        Raises:
            UnknownTargetError: There is no such moment.
            ScopeError: This memory is scoped, and a moment is named by something else than a time or a cursor.
            StoreError: The store failed.

        Cost:
            Proportional to the changes between, or only to the difference if both are snapshots or recent.
        """
        later = self._moment(PRESENT if new is None else new)
        found: Difference = self.execute(Diff(old=self._moment(old).token, new=later.token, parts=parts))
        return found

    def rollback(
        self,
        to: Target | None = None,
        *,
        index: int | None = None,
        parts: Collection[str] | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Restored:
        """Restore the memory as it was at a moment, in a new commit with the cause "rolled back".

        That is all records, and what facets keep: terms, outlines, texts with sparse codes and keys.

        Nothing is lost: rolling back to the commit before takes it back. No quota applies, and no expired record is
        removed. What was erased since stays erased, and is listed.

        Args:
            to: A moment: see `at`.
            index: A snapshot by its age; 0: the newest.
            parts: The parts of the memory to restore, by name: "records", or what facets keep. Default: all.
            actor: Who makes the change; recorded in the commit.
            reason: Why the change is made; recorded in the commit.

        Returns:
            What was restored; `parts` has it for each other part.

        Raises:
            UnknownTargetError: There is no such moment; nothing was changed.
            ScopeError: This memory is scoped.
            StoreError: The store failed; nothing was changed.

        Cost:
            One durable commit, in proportion to the records that differ, and to the changes since.
        """
        operation = Rollback(moment=self._moment(to, index).token, parts=parts)
        restored: Restored = self.execute(operation, actor=actor, reason=reason)
        return restored

    def revert(self, seq: int, *, actor: str | None = None, reason: str | None = None) -> Restored:
        """Take back the changes of one commit, in a new commit with the cause "rolled back".

        If it follows commits to other parts of the memory, such as a glossary, their changes are taken back. A record
        that was changed later is a conflict: it is listed, and not changed.

        Args:
            seq: The number of the commit.
            actor: Who makes the change; recorded in the commit.
            reason: Why the change is made; recorded in the commit.

        Raises:
            UnknownTargetError: There is no such commit; nothing was changed.
            ScopeError: This memory is scoped.
            StoreError: The store failed; nothing was changed.

        Cost:
            One durable commit, in proportion to the changes of that commit.
        """
        restored: Restored = self.execute(Revert(seq=seq), actor=actor, reason=reason)
        return restored

    def erase(
        self,
        what: str | Filter,
        *,
        redact: bool = False,
        derived: bool = False,
        parts: Collection[str] | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Erased:
        """Permanently remove the contents of records: of all versions, also of forgotten and expired records.

        The contents are removed from the store, its WAL and its derived files. The log keeps that there were records
        with these ids and hashes, so roots and proofs stay valid; `history` says that a version was erased. This is one
        commit for each thousand records, with the cause "erased". No quota applies.

        Within a scope, only versions that lie in the scope are erased. Otherwise all versions of the selected ids are,
        whatever user they belonged to.

        Args:
            what: An id; or a filter, which selects each id of which any version matches, also among the terms, the
                nodes of outlines, the texts with sparse codes and the keys. For the text form of a filter, pass
                `recollect.filters.parse(text)`.
            redact: Also replace the ids in the log by hashes, and remove the actors and reasons of all earlier commits
                that changed the records (within a scope: only of those that changed nothing else). An id of which a
                version lies outside the scope is not replaced.
            derived: Also erase the records that derive from these (`derived_from`), directly or through others.
            parts: The parts of the memory, by name: "records", or what facets keep. Default: for a filter all, for an
                id the records.
            dry_run: Change nothing, and return what would be erased.
            actor: Who erases; recorded in the commit.
            reason: Why; recorded in the commit.

        Returns:
            What was erased, whether something is left to do (`pending`), and which copies of the store still have it.
            An id that was erased before is not among the ids.

        Raises:
            UnknownRecordError: There has never been a record with this id; within a scope, also if all its versions
                in the scope were erased before.
            ReadOnlyStoreError: The store must not be written.
            StoreError: The store failed. Commits that had succeeded stay, and are completed later.

        Cost:
            Reads every version of the namespace, and rewrites the file of the store, in memory as large as the file;
            writers wait meanwhile. Word and full-text indexes are updated or rebuilt when they are used next.
        """
        chosen: dict[str, Any] = {"id": what} if isinstance(what, str) else {"where": what}
        operation = Erase(**chosen, redact=redact, derived=derived, parts=parts, dry_run=dry_run)
        erased: Erased = self.execute(operation, actor=actor, reason=reason)
        return erased

    def _moment(self, target: Target | None = None, index: int | None = None) -> Moment:
        """Return the moment that a target or the age of a snapshot names."""
        raise NotImplementedError


# Memories of past moments: an executor that executes every operation as of a moment.

#: What names a moment: the number of a commit, a root or a snapshot's name, a time, or a snapshot.
Target = int | str | datetime | Snapshot


def pin_of(target: Target | None, index: int | None) -> Pin:
    """Return the operation that finds a moment.

    Raises:
        InvalidArgumentError: Not exactly one of both was passed, or it is of another type.
    """
    if (target is None) == (index is None):
        raise InvalidArgumentError("target", target, "must be a seq, a time, a root or a snapshot, or pass index=")
    if isinstance(target, datetime):
        try:
            return Pin(time=aware("target", target))
        except RecollectError as error:
            raise InvalidArgumentError("target", target, str(error.args[2])) from None
    if isinstance(target, str):
        return Pin(named=target)
    if isinstance(target, Snapshot):
        return Pin(seq=target.seq, root=target.root)
    if target is not None and not is_integer(target):
        raise InvalidArgumentError("target", target, "must be a seq, an aware datetime, a root, or a snapshot's name")
    return Pin(seq=target, index=index)


class PastExecutor(WrappingExecutor):
    """An `Executor` that executes each operation as of a moment. What is no reading operation is refused.

    Other namespaces are read as of the same time.

    Args:
        executor: The executor of the present.
        branch: The branch of the moment.
    """

    def __init__(self, executor: Executor, branch: Branch, moment: Moment) -> None:
        super().__init__(executor)
        self._moment = moment
        self._moments = {branch: moment}

    @property
    def location(self) -> str:
        """The location of the store, and the time of the moment."""
        return f"{self.executor.location} as of {self._moment.time.isoformat()}"

    def execute(self, operation: Operation, place: Place) -> Any:
        """Execute an operation as of the moment."""
        moment = self._moments.get(place.branch)
        if moment is None:
            memory = self._moments.get(place.branch.owner)
            pin = Pin(time=self._moment.time) if memory is None else Pin(of=memory.token)
            moment = self._moments[place.branch] = self.executor.execute(pin, Place(place.branch))
        return self.executor.execute(At(moment=moment.token, operation=operation), place)

    def whole(
        self, call: str, question: str, place: Place, *, past: bool = False
    ) -> AbstractContextManager[Callable[[Any], object]]:
        """Cover a call that consists of several operations, as one that reads the past."""
        return whole_call(self.executor, call, question, place, past=True)

    def batch(self, place: Place, expect_head: int | None) -> AbstractContextManager[BatchExecutor]:
        """Refuse: a batch writes."""
        self._refuse("a batch")

    def log(self, branch: Branch, scope: Scope, parts: Collection[str] | None = None) -> CommitLog:
        """Refuse: there are no commits to wait for."""
        self._refuse("waiting for commits")

    @property
    def feed(self) -> Feed:
        """Refuse: there are no commits to wait for."""
        self._refuse("waiting for commits")

    def close(self) -> None:
        """Refuse: the store is that of the present."""
        self._refuse("closing the store, which is shared,")

    @staticmethod
    def _refuse(what: str) -> NoReturn:
        raise ReadOnlyMemoryError(what)
