"""The table of how each operation is executed. `handler_of` is the only way to read it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import fields
from datetime import datetime
from typing import Any, TypeVar

from recollect.common.deferred import deferred_function
from recollect.engine.bulk import add_messages, remember_all
from recollect.engine.core import Core
from recollect.engine.facets import read_of
from recollect.engine.index.vectors import no_embedder
from recollect.engine.read.filter_bounds import index_helps, selective
from recollect.engine.read.proofs import prove_log, prove_merge
from recollect.engine.read.targets import point_of
from recollect.engine.reader import check_whole
from recollect.engine.readers import InBatch, Past, Present, pin
from recollect.engine.reads import READS, Read
from recollect.engine.results import Outcome, Report, result_to_json
from recollect.engine.scope import Place
from recollect.engine.settings import Policies, Quota, set_policies, set_quota
from recollect.engine.streams import CommitStream
from recollect.engine.write.batch import Writing
from recollect.engine.write.drafts import draft
from recollect.errors import (
    AnswerTooLargeError,
    InvalidOperationError,
    OriginError,
    ReadOnlyMemoryError,
    RecollectError,
)
from recollect.filters.tree import AllOf
from recollect.ledger.proofs import Proof
from recollect.operations import (
    AddMessages,
    At,
    BackUp,
    Check,
    Compact,
    CreateBranch,
    Diff,
    DropBranch,
    DropSnapshot,
    EmbedAll,
    Erase,
    ExecuteBatch,
    Forget,
    ForgetWhere,
    History,
    ListBranches,
    MergeBranch,
    Operation,
    Pin,
    Probe,
    ProveLog,
    ProveMerge,
    Remember,
    RememberAll,
    Replay,
    Revert,
    Rollback,
    SetPolicies,
    SetQuota,
    Snapshots,
    TakeSnapshot,
    Update,
    VectorStats,
    Wait,
)
from recollect.operations.retention import ApplyRetention, SetRetention
from recollect.records.origins import RANKS, USER
from recollect.stores.roots import trim
from recollect.stores.values import Backup, CheckReport, Compacted

T = TypeVar("T")
#: Maximum number of bytes, as JSON, that the reads of a batch return together, where its caller limits them: they are
#: in memory until it has ended. The batch is undone if they return more.
MOST_READ_BYTES: ContextVar[int | None] = ContextVar("MOST_READ_BYTES", default=None)
#: Types whose values run no code of the caller when they are used.
_PLAIN = (str, bytes, int, float, bool, type(None), datetime)
#: Executes an operation on its own.
Run = Callable[[Core, Place, Any], Any]


class Handler:
    """The execution of an operation on its own. Subclasses say how it is executed in a batch.

    Args:
        run: Executes it on its own.
    """

    def __init__(self, run: Run) -> None:
        self.run = run

    def in_batch(self, writing: Writing, operation: Any) -> Any:
        """Execute it inside an open transaction."""
        raise InvalidOperationError(operation, "cannot be part of a batch")

    def in_past(self, core: Core, place: Place, operation: Any, moment: str) -> Any:
        """Execute it as of a moment."""
        raise ReadOnlyMemoryError(operation.name)

    def is_short(self, operation: Any) -> bool:
        """Return whether an operation can share a commit with those of other threads."""
        return False


class Reads(Handler):
    """The execution of a reading operation: by one function, on the present, a batch or a past moment.

    Args:
        read: Executes the operation on a `Reader`.
    """

    def __init__(self, read: Read) -> None:
        super().__init__(lambda core, place, operation: read(Present(core, place), operation))
        self._read = read

    def in_batch(self, writing: Writing, operation: Any) -> Any:
        """Execute it inside an open transaction."""
        return self._read(InBatch(writing), operation)

    def in_past(self, core: Core, place: Place, operation: Any, moment: str) -> Any:
        """Execute it as of a moment."""
        return self._read(Past(core, place, point_of(moment, place.branch, core.cursors)), operation)


class Writes(Handler):
    """The execution of a writing operation: inside a transaction, by default one of its own.

    Args:
        write: Executes it inside an open transaction.
        run: Executes it on its own, if not in one transaction.
        is_short: Returns whether an operation can share a commit with those of other threads.
    """

    def __init__(
        self,
        write: Callable[[Writing, Any], Any],
        run: Run | None = None,
        is_short: Callable[[Any], bool] = lambda operation: False,
    ) -> None:
        super().__init__(self._in_own if run is None else run)
        self._write = write
        self._is_short = is_short

    def _in_own(self, core: Core, place: Place, operation: Any) -> Any:
        with core.writing(place, shared=self._is_short(operation)) as writing:
            return self._write(writing, operation)

    def in_batch(self, writing: Writing, operation: Any) -> Any:
        """Execute it inside an open transaction."""
        return self._write(writing, operation)

    def is_short(self, operation: Any) -> bool:
        """Return whether an operation can share a commit with those of other threads."""
        return self._is_short(operation)


def handler_of(operation: Operation) -> Handler:
    """Return how an operation is executed.

    Raises:
        InvalidOperationError: It is not an operation of this memory.
    """
    kind = type(operation)
    handler = HANDLERS.get(kind)
    if handler is None:
        if (read := READS.get(kind) or read_of(kind)) is not None:
            handler = Reads(read)
        elif (write := getattr(Writing, operation.name, None)) is not None and operation.in_batch:
            handler = Writes(write)
        else:
            raise InvalidOperationError(operation, "is not an operation of this memory")
        HANDLERS[kind] = handler
    return handler


def execute_in_batch(writing: Writing, operation: Operation) -> Any:
    """Execute an operation inside an open transaction.

    Raises:
        InvalidOperationError: It cannot be part of a batch.
    """
    if not getattr(operation, "in_batch", False):
        raise InvalidOperationError(operation, "cannot be part of a batch")
    handler = handler_of(operation)
    try:
        located = operation.located(writing.services.intake.zone)
        result = note_failed(writing.perform(handler.in_batch, writing, located))
        if (most := MOST_READ_BYTES.get()) is not None and not operation.atomic:
            writing.read_bytes += len(json.dumps(result_to_json(operation, result)))
            if writing.read_bytes > most:
                raise AnswerTooLargeError("a batch", writing.read_bytes, most)
        return result
    except RecollectError as error:
        note_state(error, operation)
        raise


def note_state(error: RecollectError, operation: Operation) -> None:
    """Note in an error that an operation raised whether it would have written, so that nothing was changed."""
    if operation.atomic and getattr(operation, "on_error", "raise") == "raise":
        error.unchanged = True


def note_failed(result: T) -> T:
    """Note in the errors of a report that the items changed nothing. Returns the result, whatever it is."""
    if isinstance(result, Report):
        for failed in result.failed:
            failed.reason.unchanged = True
    return result


# Writes


def _remember(core: Core, place: Place, operation: Remember) -> Outcome:
    # Draft before taking the write lock: the arguments may run code of the caller, such as a property.
    now = core.now()
    new = draft(operation, place.scope, now, core.intake)
    with core.writing(place, shared=True, now=now, ids=(new.record.id,)) as writing:
        return writing.remember_single(new)


def _is_plain(update: Update) -> bool:
    """Return whether an update runs no code of the caller, so that it can share a commit."""
    changes = update.changes
    return not callable(changes) and all(type(value) in _PLAIN for value in changes.values())


def _forget_where(core: Core, place: Place, operation: ForgetWhere) -> int:
    if index_helps(operation.where):
        with core.read(place.branch) as view:  # load an index file before taking the write lock
            in_file = not selective(AllOf.of(place.scope.filter, operation.where))
            core.keeper.loaded(view, place.branch, in_file=in_file)
    with core.writing(place) as writing:
        return writing.forget_where(operation)


def batch_place(place: Place, operation: ExecuteBatch) -> Place:
    """Return the place of a batch, which can state its own actor and reason."""
    return place._replace(actor=operation.actor or place.actor, reason=operation.reason or place.reason)


def _batch(core: Core, place: Place, operation: ExecuteBatch) -> list[Any]:
    with core.writing(batch_place(place, operation), expect_head=operation.expect_head) as writing:
        return [execute_in_batch(writing, each) for each in operation.operations]


def _set_quota(core: Core, place: Place, operation: SetQuota) -> None:
    if RANKS[place.origin] < RANKS[USER]:  # a small one evicts what the user said
        raise OriginError("setting the quota of the namespace", place.origin)
    check_whole(place.scope, "the quota of the namespace")
    quota = Quota(
        records=operation.records,
        bytes=operation.bytes,
        when_full=operation.when_full,
        per=operation.per,
        low_water=operation.low_water,
    )
    with core.store.write(place.branch) as transaction:
        set_quota(transaction, place.branch, quota)


def _set_policies(core: Core, place: Place, operation: SetPolicies) -> None:
    if RANKS[place.origin] < RANKS[USER]:
        raise OriginError("setting the policies of the namespace", place.origin)
    check_whole(place.scope, "the policies of the namespace")
    policies = Policies(**{each.name: getattr(operation, each.name) for each in fields(Policies)})
    with core.store.write(place.branch) as transaction:
        set_policies(transaction, place.branch, policies)


# The past, the log, and the store as a whole


def _at(core: Core, place: Place, operation: At) -> Any:
    inner = operation.operation
    if not inner.in_past:
        raise ReadOnlyMemoryError(inner.name)
    return handler_of(inner).in_past(core, place, inner, operation.moment)


def _wait(core: Core, place: Place, operation: Wait) -> bool:
    log = core.log(place.branch, place.scope)
    with CommitStream(log, operation.since, core.feed) as stream:
        return stream.wait(operation.timeout) is not None


def _prove_log(core: Core, place: Place, operation: ProveLog) -> Proof:
    with core.read(place.branch) as view:
        return prove_log(operation, view, place.branch, core.log_trees)


def _prove_merge(core: Core, place: Place, operation: ProveMerge) -> Proof:
    with core.read(place.branch) as view:
        return prove_merge(operation, view, place.branch, core.store, core.log_trees)


def _embed_all(core: Core, place: Place, operation: EmbedAll) -> int:
    return Present(core, place).embed_all(operation.batch_size, operation.progress).texts


def _vector_stats(core: Core, place: Place, operation: VectorStats) -> dict[str, Any]:
    stats = no_embedder if core.vectors is None else core.vectors.stats
    core.now()
    with core.read(place.branch) as view:
        return stats(view, place.branch, place.scope, core.reads_at(view, place.branch))


def _check(core: Core, place: Place, operation: Check) -> CheckReport:
    return core.store.check()


def _compact(core: Core, place: Place, operation: Compact) -> Compacted:
    before = _bytes_of(core)
    with core.store.read() as view:
        branches = view.branches()
    for branch in branches:
        while trim(core.store, branch):
            pass
    complete = core.store.compact()
    return Compacted(before=before, after=_bytes_of(core), complete=complete)


def _bytes_of(core: Core) -> int | None:
    """Return the size of the store with its WAL; None if it is not a file."""
    facts = core.store.facts()
    return facts["file_bytes"] + facts.get("log_bytes", 0) if "file_bytes" in facts else None


def _back_up(core: Core, place: Place, operation: BackUp) -> Backup:
    return core.store.back_up(operation.path, verify=operation.verify, force=operation.force)


def _elsewhere(module: str, function: str) -> Run:
    """Return a function of a module of the engine that is imported at its first call: few programs call it."""
    return deferred_function(f"recollect.engine.{module}", function)


def _unscoped(what: str, run: Run) -> Handler:
    """Return the handler of an operation that a scope may not use, because of what it covers."""

    def execute(core: Core, place: Place, operation: Any) -> Any:
        check_whole(place.scope, what)
        return run(core, place, operation)

    return Handler(execute)


#: How operations are executed. `handler_of` adds the reads (`reads.READS`, `facets.FACETS`) and those that are just a
#: method of `Writing` with their name, when they are used.
HANDLERS: dict[type[Operation], Handler] = {
    Remember: Writes(Writing.remember, _remember, lambda operation: True),
    RememberAll: Writes(Writing.remember_all, remember_all),
    AddMessages: Writes(Writing.add_messages, add_messages),
    Update: Writes(Writing.update, is_short=_is_plain),
    Forget: Writes(Writing.forget, is_short=lambda operation: True),
    ForgetWhere: Writes(Writing.forget_where, _forget_where),
    ExecuteBatch: Handler(_batch),
    SetQuota: Handler(_set_quota),
    SetPolicies: Handler(_set_policies),
    SetRetention: Handler(_elsewhere("retaining", "set_rules")),
    ApplyRetention: Handler(_elsewhere("retaining", "apply_retention")),
    ProveLog: _unscoped("a proof of the log, which covers the whole namespace,", _prove_log),
    ProveMerge: _unscoped("a proof of a merge, which covers the whole namespace,", _prove_merge),
    Wait: Handler(_wait),
    Replay: _unscoped("a replay, which covers the whole namespace,", _elsewhere("history", "replay")),
    EmbedAll: Handler(_embed_all),
    VectorStats: Handler(_vector_stats),
    Check: _unscoped("a check, which reads the whole store,", _check),
    Compact: _unscoped("a compaction, which rewrites the whole store,", _compact),
    BackUp: _unscoped("a backup, which contains the whole store,", _back_up),
    Probe: Handler(lambda core, place, operation: core.store.probe()),
    TakeSnapshot: _unscoped("a snapshot, which covers the whole namespace,", _elsewhere("history", "take_snapshot")),
    Snapshots: _unscoped("the snapshots, which covers the whole namespace,", _elsewhere("history", "snapshots_of")),
    DropSnapshot: _unscoped("a snapshot, which covers the whole namespace,", _elsewhere("history", "drop_snapshot")),
    CreateBranch: _unscoped("a branch, which covers the whole namespace,", _elsewhere("branches", "create")),
    ListBranches: _unscoped("the branches, which cover the whole namespace,", _elsewhere("branches", "listed")),
    MergeBranch: _unscoped("a merge, which covers the whole namespace,", _elsewhere("merging", "merge")),
    DropBranch: _unscoped("a branch, which covers the whole namespace,", _elsewhere("branches", "drop")),
    Rollback: _unscoped("a rollback, which changes the whole namespace,", _elsewhere("history", "rollback")),
    Revert: _unscoped("a revert, which changes the whole namespace,", _elsewhere("history", "revert")),
    Erase: Handler(_elsewhere("erasing", "erase")),
    Diff: Handler(_elsewhere("history", "diff")),
    History: Handler(_elsewhere("history", "history")),
    Pin: Handler(pin),
    At: Handler(_at),
}
