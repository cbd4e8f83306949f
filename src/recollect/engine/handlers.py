"""How each operation is executed: on its own, and inside a batch. `HANDLERS` is the only table of operations."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from recollect.deadlines import checked
from recollect.engine import history, past, receipts, replaying
from recollect.engine.core import Core
from recollect.engine.erasing import erase
from recollect.engine.index.mentions import MentionIndex
from recollect.engine.index.sdrs import SdrsOf, StoredSdrs
from recollect.engine.index.terms import Terms, TermsOf
from recollect.engine.index.vectors import (
    EmbeddedTexts,
    Progress,
    QuestionVector,
    VectorKeeper,
    needs_embedder,
    no_embedder,
)
from recollect.engine.policies import NONE, Policies, policies_of, set_policies
from recollect.engine.quota import REFUSE, Quota, quota_of, set_quota
from recollect.engine.read.entities import Mentions
from recollect.engine.read.filter_bounds import index_helps, selective
from recollect.engine.read.full_text import grep
from recollect.engine.read.proofs import prove, prove_log
from recollect.engine.read.queries import Reading, importance_limit, stored_record
from recollect.engine.read.terms import TermsOfAgent
from recollect.engine.result_json import result_to_json
from recollect.engine.results import Export, Failed, Hits, Outcome, RecordList, Report
from recollect.engine.scope import Scope
from recollect.engine.sdr_results import FoundSdr
from recollect.engine.similar_results import Similar
from recollect.engine.streams import CommitStream
from recollect.engine.write.admission import Admission
from recollect.engine.write.batch import Writing, drafts_of
from recollect.engine.write.drafts import draft
from recollect.engine.write.messages import Addition
from recollect.engine.write.replay import KnownTurns
from recollect.errors import (
    AnswerTooLargeError,
    ClosedError,
    DamagedStoreError,
    DeadlineError,
    InvalidOperationError,
    RecollectError,
    ScopeError,
    StoreError,
)
from recollect.filters.tree import AllOf, Filter
from recollect.indexes.words.index import WordView
from recollect.ledger.commits import Branch
from recollect.ledger.proofs import Proof
from recollect.operations import (
    AddMessages,
    AnnotateTerms,
    At,
    BackUp,
    Changes,
    Check,
    Clear,
    Compact,
    Count,
    Diff,
    DropSnapshot,
    EmbedAll,
    Entities,
    EntityOf,
    Erase,
    ExecuteBatch,
    Find,
    FindSimilar,
    Forget,
    ForgetWhere,
    Get,
    GetPolicies,
    GetQuota,
    Grep,
    History,
    Merge,
    Namespaces,
    Neighbours,
    Now,
    OpenExport,
    Operation,
    Paths,
    Pin,
    Probe,
    Prove,
    ProveLog,
    ReadHead,
    ReadTree,
    Recall,
    RecallSdrs,
    RecallTerms,
    Receipt,
    Remember,
    RememberAll,
    Replay,
    Revert,
    Rollback,
    SetPolicies,
    SetQuota,
    SharedNames,
    Snapshots,
    Stats,
    Supersede,
    Sweep,
    TakeSnapshot,
    Update,
    ValidUntil,
    VectorStats,
    Wait,
    Zone,
)
from recollect.records.record import Record
from recollect.stores.base import View
from recollect.stores.old_roots import trim
from recollect.stores.renewals import REPEATS
from recollect.stores.reports import CheckReport, Compacted
from recollect.stores.values import Backup
from recollect.zones import name_of

T = TypeVar("T")
#: Maximum number of bytes, as JSON, that the reads of a batch return together, where its caller limits them: they are
#: in memory until it has ended. The batch is undone if they return more.
MOST_READ_BYTES: ContextVar[int | None] = ContextVar("MOST_READ_BYTES", default=None)
#: Number of items per commit in bulk writes.
BULK = 1000
#: Number of texts that are embedded at a time while a recall waits for them.
EMBEDDED_AT_A_TIME = 100
#: Types whose values run no code of the caller when they are used.
_PLAIN = (str, bytes, int, float, bool, type(None), datetime)


class Execution(NamedTuple):
    """An operation to execute.

    Attributes:
        operation: The operation.
        branch: The branch to read or write.
        scope: The scope of the caller.
        actor: Who makes the change; recorded in the commit.
        reason: Why the change is made; recorded in the commit.
    """

    operation: Any
    branch: Branch
    scope: Scope
    actor: str | None
    reason: str | None

    def check_whole(self, what: str) -> None:
        """Raise ScopeError if the caller is scoped; `what` names what it may not use."""
        if self.scope.fixed:
            raise ScopeError(what, str(self.scope))


class Handler(NamedTuple):
    """How an operation is executed.

    Attributes:
        run: Executes it on its own.
        in_batch: Executes it inside an open transaction; None if it cannot be part of a batch (`Operation.in_batch`).
        short: Returns whether an operation can share a commit with those of other threads.
    """

    run: Callable[[Core, Execution], Any]
    in_batch: Callable[[Writing, Any], Any] | None
    short: Callable[[Any], bool] = lambda operation: False


def execute_in_batch(writing: Writing, operation: Operation) -> Any:
    """Execute an operation inside an open transaction.

    Raises:
        InvalidOperationError: It cannot be part of a batch.
    """
    handler = HANDLERS.get(type(operation))
    if handler is None or handler.in_batch is None:
        raise InvalidOperationError(operation, "cannot be part of a batch")
    try:
        result = note_failed(writing.perform(handler.in_batch, writing, operation.located(writing.zone)))
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


def _write(in_batch: Callable[[Writing, Any], Any], short: Callable[[Any], bool] = lambda operation: False) -> Handler:
    """Return the handler of an operation that is one transaction; `short` says whether it can share a commit."""

    def run(core: Core, request: Execution) -> Any:
        shared = short(request.operation)
        with core.writing(request.branch, request.scope, request.actor, request.reason, shared=shared) as writing:
            return in_batch(writing, request.operation)

    return Handler(run, in_batch, short=short)


def _is_plain(update: Update) -> bool:
    """Return whether an update runs no code of the caller, so that it can share a commit."""
    changes = update.changes
    return not callable(changes) and all(type(value) in _PLAIN for value in changes.values())


def _remember(core: Core, request: Execution) -> Outcome:
    # Draft before taking the write lock: the arguments may run code of the caller, such as a property.
    now = core.now()
    new = draft(request.operation, request.scope, now, core.intake)
    with core.writing(*request[1:], shared=True, now=now) as writing:
        return writing.remember_single(new)


def _remember_all(core: Core, request: Execution) -> Report:
    """Check all items, then store the valid ones in commits of `BULK` items."""
    operation: RememberAll = request.operation
    now = core.now()
    with core.read(request.branch) as view:
        admission = Admission(policies_of(view, request.branch))
    drafts, failed = drafts_of(operation, request.scope, now, core.intake, admission)
    if operation.on_error == "raise":
        with core.writing(*request[1:]) as writing:
            return Report(tuple(writing.remember_drafts([writing.writer.admitted(each) for _, each in drafts])))
    results: list[tuple[int, Outcome]] = []
    known: KnownTurns | None = None
    policies = NONE
    start = renewals = 0
    while start < len(drafts):
        outcomes: list[tuple[int, Outcome]] = []
        refused: list[Failed] = []
        try:
            with core.writing(*request[1:]) as writing:
                admission = writing.writer.admission
                if admission.policies != policies:
                    policies, known = admission.policies, None
                    admitted, rejected = admission.drafts(drafts[start:], operation.items)
                    drafts[start:] = admitted
                    failed.extend(rejected)
                part = drafts[start : start + BULK]
                writing.writer.look_up([each for _, each in part])
                # Find replayed turns among all items, since a conversation may be longer than a commit. Repeat it if
                # others have written turns since the previous part: they may be of the same conversation.
                if known is None or writing.writer.outdated(known):
                    known = writing.writer.find_replay([each for _, each in drafts])
                for number, (index, each) in enumerate(checked(part), start):
                    try:
                        outcomes.append((index, writing.remember_draft(each, known.repeated.get(number))))
                    except (StoreError, DeadlineError):
                        raise
                    except RecollectError as error:
                        refused.append(Failed(operation.items[index], index, error))
        except (StoreError, ClosedError, DeadlineError) as error:
            if renewals < REPEATS and isinstance(error, DamagedStoreError) and core.store.renew(error):
                renewals, known = renewals + 1, None  # another SQLite had written pages: this part again
                continue
            # Earlier parts are committed; neither this part nor the following ones are stored.
            failed.extend(Failed(operation.items[index], index, error) for index, _ in drafts[start:])
            break
        known = known._replace(seq=writing.seq)
        results.extend(outcomes)
        failed.extend(refused)
        start += BULK
    failed.sort(key=lambda item: item.place)
    return Report(tuple(outcome for _, outcome in results), tuple(failed))


def _add_messages(core: Core, request: Execution) -> Report:
    """Store new turns in commits of `BULK`."""
    addition = Addition(request.operation, request.scope, core.now(), core.intake)
    results: list[Outcome] = []
    failed: list[Failed] = []
    known: dict[int, Outcome] | None = None
    at = seq = renewals = 0
    while at < len(addition.turns):
        try:
            with core.writing(*request[1:]) as writing:
                # Compare the list once: its own first part must not be taken for what was stored before. If others have
                # written meanwhile, they may have stored the rest of it.
                if addition.obey(writing.writer.admission) or known is None or writing.writer.seq != seq:
                    known = writing.writer.known_turns(addition, at)
                after, report = writing.add(addition, known, BULK, at)
        except (StoreError, ClosedError, DeadlineError) as error:
            if renewals < REPEATS and isinstance(error, DamagedStoreError) and core.store.renew(error):
                renewals, known = renewals + 1, None  # another SQLite had written pages: this part again
                continue
            # Earlier parts are committed; neither this part nor the following ones are stored.
            failed.extend(Failed(addition.turns[index], index, error) for index in range(at, len(addition.turns)))
            break
        results.extend(report.results)
        failed.extend(report.failed)
        at, seq = after, writing.seq
    return Report(tuple(results), tuple(failed))


def _forget_where(core: Core, request: Execution) -> int:
    operation: ForgetWhere = request.operation
    if index_helps(operation.where):
        with core.read(request.branch) as view:  # load an index file before taking the write lock
            in_file = not selective(AllOf.of(request.scope.filter, operation.where))
            core.keeper.loaded(view, request.branch, in_file=in_file)
    with core.writing(*request[1:]) as writing:
        return writing.forget_where(operation)


def _batch(core: Core, request: Execution) -> list[Any]:
    operation: ExecuteBatch = request.operation
    actor, reason = operation.actor or request.actor, operation.reason or request.reason
    with core.writing(request.branch, request.scope, actor, reason, operation.expect_head) as writing:
        return [execute_in_batch(writing, each) for each in operation.operations]


def _set_quota(core: Core, request: Execution) -> None:
    request.check_whole("the quota of the namespace")
    operation: SetQuota = request.operation
    quota = Quota(
        records=operation.records,
        bytes=operation.bytes,
        when_full=operation.when_full,
        per=operation.per,
        low_water=operation.low_water,
    )
    with core.store.write(request.branch) as transaction:
        set_quota(transaction, request.branch, quota)


def _set_policies(core: Core, request: Execution) -> None:
    request.check_whole("the policies of the namespace")
    operation: SetPolicies = request.operation
    policies = Policies(redaction=operation.redaction, categories=operation.categories, salience=operation.salience)
    with core.store.write(request.branch) as transaction:
        set_policies(transaction, request.branch, policies)


# Reads


def _read(query: Callable[[Reading, Any], Any]) -> Handler:
    """Return the handler of an operation that reads one view."""

    def run(core: Core, request: Execution) -> Any:
        core.now()
        with core.read(request.branch) as view:
            return query(core.reading(view, request.branch, request.scope), request.operation)

    return Handler(run, lambda writing, operation: query(writing.reading(), operation))


def _filtered(query: Callable[[Reading, Any], Any]) -> Handler:
    """Return the handler of an operation with a filter, which uses the index if the store would read every record."""

    def run(core: Core, request: Execution) -> Any:
        operation: Find | Count = request.operation
        in_file = not selective(AllOf.of(request.scope.filter, operation.where))
        helps = index_helps(operation.where) or (in_file and importance_limit(operation) is not None)
        core.now()
        with core.read(request.branch) as view:
            words = core.keeper.loaded(view, request.branch, in_file=in_file) if helps else None
            found = query(core.reading(view, request.branch, request.scope, words), operation)
            if words is not None:
                core.keeper.recount(request.branch)
            return found

    return Handler(run, lambda writing, operation: query(writing.reading(), operation))


def _about_entities(query: Callable[[Mentions, Any], Any]) -> Handler:
    """Return the handler of an operation that reads mentions. In a batch, all records are read."""

    def run(core: Core, request: Execution) -> Any:
        core.now()
        branch, scope = request.branch, request.scope

        def read(view: View, index: MentionIndex) -> Any:
            return query(Mentions(index, scope, core.reads_at(view, branch)), request.operation)

        return core.followed(core.mentions, branch, branch, read)

    def in_batch(writing: Writing, operation: Any) -> Any:
        return query(writing.reading().mentions(), operation)

    return Handler(run, in_batch)


def _about_terms(query: Callable[[TermsOfAgent, Any], Any]) -> Handler:
    """Return the handler of an operation that reads the terms of an agent. In a batch, all of them are read."""

    def run(core: Core, request: Execution) -> Any:
        core.now()
        branch, scope = request.branch, request.scope
        if isinstance(request.operation, RecallTerms):
            core.intake.limits.check_question(request.operation.question)
        key = TermsOf(branch, scope, request.operation.agent, getattr(request.operation, "tokenizer", None))

        def read(view: View, terms: Terms) -> Any:
            return query(TermsOfAgent(terms, core.reads_at(view, branch)), request.operation)

        return core.followed(core.terms, branch, key, read)

    def in_batch(writing: Writing, operation: Any) -> Any:
        return query(writing.reading().glossary(operation), operation)

    return Handler(run, in_batch)


def _recall_sdrs(core: Core, request: Execution) -> list[FoundSdr]:
    core.now()
    core.intake.limits.check_question(request.operation.text)

    def read(view: View, sdrs: StoredSdrs) -> list[FoundSdr]:
        return sdrs.at(core.reads_at(view, request.branch)).recall(request.operation)

    return core.followed(core.sdrs, request.branch, SdrsOf(request.branch, request.scope), read)


def _get(core: Core, request: Execution) -> Record | None:
    core.now()
    with core.read(request.branch) as view:
        reading = core.reading(view, request.branch, request.scope, core.keeper.current(view, request.branch))
        record = reading.get(request.operation)
        if record is not None:
            _note_uses(core, reading, [record.id])
        return record


def _recall(core: Core, request: Execution) -> Hits:
    operation: Recall = request.operation
    now = core.now()
    core.intake.limits.check_question(operation.question)
    if operation.reference is None:
        operation = operation.with_reference(now)
    notes: tuple[str, ...] = ()
    if operation.wait_for_vectors:
        notes = _note_of_failed(_embed_missing(core, request, EMBEDDED_AT_A_TIME, None))
    vector: QuestionVector | None = None
    if core.vectors is not None:
        with core.store.read():  # raises if the memory is closed, before the model is called
            pass
        # A model may be slow, so it is called before a view is opened.
        vector = core.vectors.embed_question(operation.question, request.branch)

    def read(view: View, words: WordView) -> Hits:
        reading = core.reading(view, request.branch, request.scope, words, vector)
        hits = reading.recall(operation)
        if hits:
            _note_uses(core, reading, [hit.record.id for hit in hits])
        core.keeper.recount(request.branch)
        return replace(hits, plan=replace(hits.plan, notes=(*hits.plan.notes, *notes))) if notes else hits

    return core.on_index(request.branch, read)


def _valid_until(core: Core, request: Execution) -> dict[str, datetime]:
    core.now()

    def read(view: View, words: WordView) -> dict[str, datetime]:
        return core.reading(view, request.branch, request.scope, words).valid_until(request.operation)

    return core.on_index(request.branch, read)


def _find_similar(core: Core, request: Execution) -> Similar:
    operation: FindSimilar = request.operation
    core.now()
    core.intake.limits.check_question(operation.text)
    notes: tuple[str, ...] = ()
    vector: QuestionVector | None = None
    if core.vectors is not None:
        if operation.embed:
            notes = _embed_candidates(core, core.vectors, request, operation.where)
        vector = core.vectors.embed_question(operation.text, request.branch)

    def read(view: View, words: WordView) -> Similar:
        reading = core.reading(view, request.branch, request.scope, words, vector)
        found = reading.similar(operation)
        _note_uses(core, reading, [each.record.id for each in found.found])
        core.keeper.recount(request.branch)
        return replace(found, notes=(*notes, *found.notes))

    return core.on_index(request.branch, read)


def _embed_candidates(core: Core, vectors: VectorKeeper, request: Execution, where: Filter) -> tuple[str, ...]:
    """Embed the texts without a vector of the records that match. Return a note if some still have none."""

    def read(view: View, words: WordView) -> tuple[list[Record], int]:
        candidates = core.reading(view, request.branch, request.scope, words).candidates(where)
        missing = candidates.without_vector(vectors.has_vector(model, request.branch, candidates.table))
        return list(missing), view.head(request.branch).seq

    try:
        model = vectors.model()  # it may be called, so before a view is opened
        missing, seq = core.on_index(request.branch, read)
        done = vectors.embed_records(core.store, request.branch, model, missing, seq, EMBEDDED_AT_A_TIME)
    except RecollectError as error:
        return (f"texts could not be embedded: {error}",)
    return _note_of_failed(done)


def _note_of_failed(done: EmbeddedTexts) -> tuple[str, ...]:
    if not done.failed:
        return ()
    return (f"{len(done.failed)} texts could not be embedded, the first because {done.failed[0]}",)


def _note_uses(core: Core, reading: Reading, record_ids: list[str]) -> None:
    """Note the use of records, if the quota evicts by use. It is written later in batches, outside the ledger."""
    quota = quota_of(reading.view, reading.branch)
    if quota is None or quota.when_full == REFUSE:
        return
    if reading.scope.fixed:
        branch, scope, now = reading.branch, reading.scope, reading.now
        stored = (stored_record(each, reading.view, branch, scope, now) for each in record_ids)
        record_ids = [record.id for record in stored if record is not None]
    newest = reading.view.head(reading.branch).micros  # which may be later, where the clock stands still
    core.uses.note(reading.branch, record_ids, max(reading.now, newest + 1))


def _grep(core: Core, request: Execution) -> RecordList:
    core.now()
    core.intake.limits.check_query(request.operation.query)
    return grep(request.operation, request.branch, request.scope, core.store, core.fulltext, core.reads_at)


def _export(core: Core, request: Execution) -> Export:
    core.now()
    return core.export(request.branch, request.scope)


def _wait(core: Core, request: Execution) -> bool:
    operation: Wait = request.operation
    log = core.log(request.branch, request.scope)
    with CommitStream(log, log.start(operation.since), core.feed) as stream:
        return stream.wait(operation.timeout) is not None


def _prove(core: Core, request: Execution) -> Proof:
    request.check_whole("a proof, which covers the whole namespace,")
    with core.read(request.branch) as view:
        return prove(request.operation, view, request.branch, core.store, core.log_trees)


def _prove_log(core: Core, request: Execution) -> Proof:
    request.check_whole("a proof of the log, which covers the whole namespace,")
    with core.read(request.branch) as view:
        return prove_log(request.operation, view, request.branch, core.log_trees)


# The store as a whole


def _embed_all(core: Core, request: Execution) -> int:
    operation: EmbedAll = request.operation
    core.now()
    return _embed_missing(core, request, operation.batch_size, operation.progress).texts


def _embed_missing(core: Core, request: Execution, batch_size: int, progress: Progress | None) -> EmbeddedTexts:
    """Embed the texts that have no vector."""
    if core.vectors is None:
        raise needs_embedder()
    with core.read(request.branch) as view:
        now = core.reads_at(view, request.branch)
    return core.vectors.embed_all(core.store, request.branch, request.scope, now, batch_size, progress)


def _vector_stats(core: Core, request: Execution) -> dict[str, Any]:
    stats = no_embedder if core.vectors is None else core.vectors.stats
    core.now()
    with core.read(request.branch) as view:
        return stats(view, request.branch, request.scope, core.reads_at(view, request.branch))


def _check(core: Core, request: Execution) -> CheckReport:
    request.check_whole("a check, which reads the whole store,")
    return core.store.check()


def _compact(core: Core, request: Execution) -> Compacted:
    request.check_whole("a compaction, which rewrites the whole store,")
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


def _back_up(core: Core, request: Execution) -> Backup:
    request.check_whole("a backup, which contains the whole store,")
    operation: BackUp = request.operation
    return core.store.back_up(operation.path, verify=operation.verify, force=operation.force)


def _whole(what: str, run: Callable[[Core, Branch, Any], Any]) -> Callable[[Core, Execution], Any]:
    """Return what executes an operation on a whole namespace, which a scope may not use."""

    def execute(core: Core, request: Execution) -> Any:
        request.check_whole(f"{what}, which covers the whole namespace,")
        return run(core, request.branch, request.operation)

    return execute


def _restoring(what: str, run: Callable[..., Any]) -> Callable[[Core, Execution], Any]:
    """Return what executes an operation that changes a whole namespace back."""

    def execute(core: Core, request: Execution) -> Any:
        request.check_whole(f"{what}, which changes the whole namespace,")
        return run(core, request.branch, request.scope, request.operation, request.actor, request.reason)

    return execute


def _scoped(run: Callable[[Core, Branch, Scope, Any], Any]) -> Callable[[Core, Execution], Any]:
    """Return what executes an operation that reads what a scope may see."""
    return lambda core, request: run(core, request.branch, request.scope, request.operation)


def _alone(run: Callable[[Core, Execution], Any]) -> Handler:
    """Return the handler of an operation that cannot be part of a batch."""
    return Handler(run, None)


#: How each operation is executed.
HANDLERS: dict[type[Operation], Handler] = {
    Remember: Handler(_remember, Writing.remember, short=lambda operation: True),
    RememberAll: Handler(_remember_all, Writing.remember_all),
    AddMessages: Handler(_add_messages, Writing.add_messages),
    Update: _write(Writing.update, short=_is_plain),
    Supersede: _write(Writing.supersede),
    Merge: _write(Writing.merge),
    Forget: _write(Writing.forget, short=lambda operation: True),
    ForgetWhere: Handler(_forget_where, Writing.forget_where),
    Clear: _write(Writing.clear),
    Sweep: _write(Writing.sweep),
    ExecuteBatch: _alone(_batch),
    SetQuota: _alone(_set_quota),
    SetPolicies: _alone(_set_policies),
    Get: Handler(_get, lambda writing, operation: writing.reading().get(operation)),
    Find: _filtered(Reading.find),
    Count: _filtered(Reading.count),
    Recall: Handler(_recall, Writing.recall),
    FindSimilar: Handler(_find_similar, Writing.find_similar),
    Grep: Handler(_grep, Writing.grep),
    Entities: _about_entities(Mentions.entities),
    EntityOf: _about_entities(Mentions.entity),
    Neighbours: _about_entities(Mentions.neighbours),
    Paths: _about_entities(Mentions.paths),
    RecallTerms: _about_terms(TermsOfAgent.recall),
    AnnotateTerms: _about_terms(TermsOfAgent.annotate),
    SharedNames: _about_terms(TermsOfAgent.shared_names),
    RecallSdrs: Handler(_recall_sdrs, Writing.recall_sdrs),
    ReadTree: Handler(_scoped(Core.tree), Writing.tree),
    ReadHead: _read(Reading.head),
    Stats: _read(Reading.stats),
    ValidUntil: Handler(_valid_until, Writing.valid_until),
    GetQuota: _read(Reading.quota),
    GetPolicies: _read(Reading.policies),
    Namespaces: _read(Reading.namespaces),
    Changes: _alone(_read(Reading.changes).run),
    Prove: _alone(_prove),
    ProveLog: _alone(_prove_log),
    Wait: _alone(_wait),
    Receipt: _alone(_whole("a receipt", receipts.receipt)),
    Replay: _alone(_whole("a replay", replaying.replay)),
    OpenExport: _alone(_export),
    EmbedAll: _alone(_embed_all),
    VectorStats: _alone(_vector_stats),
    Check: _alone(_check),
    Compact: _alone(_compact),
    BackUp: _alone(_back_up),
    Probe: _alone(lambda core, request: core.store.probe()),
    Now: Handler(lambda core, request: core.now(), lambda writing, operation: writing.now),
    Zone: Handler(lambda core, request: core.store.zone, lambda writing, operation: name_of(writing.zone)),
    TakeSnapshot: _alone(_whole("a snapshot", history.take_snapshot)),
    Snapshots: _alone(_whole("the snapshots", lambda core, branch, operation: history.snapshots_of(core, branch))),
    DropSnapshot: _alone(_whole("a snapshot", history.drop_snapshot)),
    Rollback: _alone(_restoring("a rollback", history.rollback)),
    Revert: _alone(_restoring("a revert", history.revert)),
    Erase: _alone(
        lambda core, request: erase(
            core, request.branch, request.scope, request.operation, request.actor, request.reason
        )
    ),
    Diff: _alone(_scoped(history.diff)),
    History: _alone(_scoped(history.history)),
    Pin: _alone(lambda core, request: past.pin(core, request.branch, request.scope, request.operation)),
    At: _alone(lambda core, request: past.at(core, request.branch, request.scope, request.operation)),
}
