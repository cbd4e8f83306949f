"""The engine: one store, its indexes and its clock, behind `execute`.

Every public call arrives here as an operation with the line and scope it is about. Reads open a view of the store,
catch the index up to it and work inside it; writes open a transaction, and listeners are told once it is durable.
"""

from __future__ import annotations

import hashlib
import heapq
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from itertools import groupby, islice
from typing import Any, TypeVar

from recollect.embedding.base import Embedder
from recollect.engine.cursors import Cursors
from recollect.engine.gc_pause import gc_paused
from recollect.engine.index.keeper import IndexKeeper
from recollect.engine.index.vectors import Progress, QuestionVector, VectorKeeper, needs_embedder, no_embedder
from recollect.engine.listeners import Feed, Subscription
from recollect.engine.read.filter_bounds import (
    MAX_IDS,
    as_ids,
    bounds,
    exact_count,
    most_important,
    selective,
    uses_filter_terms,
)
from recollect.engine.read.recall import recall
from recollect.engine.results import Failed, Outcome, Report
from recollect.engine.scope import Scope
from recollect.engine.write.batch import Services, Writing, check_head, drafts_of
from recollect.engine.write.drafts import Intake, draft
from recollect.engine.write.head_cache import TrieKeeper
from recollect.engine.write.quotas import REFUSE, Quota, UsageTotalsCache, quota_of, set_quota
from recollect.engine.write.writer import Replay, Writer
from recollect.errors import (
    ClosedError,
    DamagedStoreError,
    InvalidArgumentError,
    InvalidOperationError,
    RecollectError,
    ScopeError,
    StoreError,
    UnsupportedError,
)
from recollect.filters.tree import AllOf
from recollect.indexes.words.index import WordView
from recollect.ledger.commits import Branch, Change, Commit, ScopedCommit
from recollect.ledger.merkle import Root, root_of, version_hash
from recollect.operations import (
    Batch,
    Changes,
    Clear,
    Count,
    Find,
    Forget,
    ForgetWhere,
    Get,
    Grep,
    Namespaces,
    Operation,
    Recall,
    Remember,
    RememberAll,
    SetQuota,
    Stats,
    Sweep,
    Update,
    check_text,
)
from recollect.records.codec import datetime_of, microseconds
from recollect.records.record import Record, aware
from recollect.stores.base import Backup, CopiedStore, SharingStore, Store, View, expired, in_order
from recollect.stores.derived.fulltext import FullText, Updates
from recollect.stores.derived.segment_files import SegmentFiles
from recollect.stores.derived.usage import Uses
from recollect.stores.derived.vectors import VectorStore
from recollect.stores.root_check import disagreements

T = TypeVar("T")
#: Indexes together take at most so much memory; those that were not asked for the longest are let go first.
INDEX_BYTES = 2**31
#: Bulk writes commit once for so many items.
BULK = 1000
WRITES = (Remember, RememberAll, Update, Forget, ForgetWhere, Sweep, Clear, Batch)


class Engine:
    """A store with what makes it a memory. Shared by all namespaces and scopes that are opened from one handle."""

    def __init__(
        self, store: Store, clock: Callable[[], datetime], intake: Intake, embedder: Embedder | None = None
    ) -> None:
        self.store = store
        self._pid = os.getpid()
        self.clock = clock
        self._latest = -(2**63)  # that the clock has said, in microseconds of 1970
        self.intake = intake
        self.feed = Feed()
        self._tries = TrieKeeper()
        self._write_shared = store.write_shared if isinstance(store, SharingStore) else store.write
        facts = store.facts()
        uuid, read_only = str(facts["uuid"]), bool(facts.get("read_only"))
        folder = None if store.path == ":memory:" else store.path + ".index"
        files = None if folder is None else SegmentFiles(folder, uuid, read_only=read_only)
        self._cursors = Cursors(hashlib.sha256(b"recollect.cursors.1\0" + store.key + uuid.encode()).digest())
        self.keeper = IndexKeeper(store, files, digests=embedder is not None, budget_bytes=INDEX_BYTES)
        self._uses = Uses(None if read_only else folder, uuid)
        self._usage_totals = UsageTotalsCache(self._uses)
        self._fulltext = FullText(None if read_only else folder, uuid)
        self.vectors: VectorKeeper | None = None
        if embedder is not None:
            self.vectors = VectorKeeper(embedder, VectorStore(folder, uuid, read_only=read_only))

    def now(self) -> datetime:
        """The clock's time. Raises: InvalidArgumentError where it is naive."""
        try:
            now = aware("clock", self.clock())
        except RecollectError as error:
            raise InvalidArgumentError("clock", error.args[1], str(error.args[2])) from None
        # Two threads at once may leave the earlier of their times: by so little is it wrong, and it needs no lock.
        self._latest = max(self._latest, microseconds(now))
        return now

    def reads_at(self, view: View, branch: Branch) -> int:
        """The time by which records have expired at a moment of the store, in microseconds of 1970.

        It is the latest that the clock has said, or that of the newest commit where that is later: a clock that goes
        back brings nothing back. What is read depends on this time and on the records alone.
        """
        return max(self._latest, view.head(branch).micros)

    # The two ways in

    def execute(
        self, operation: Operation, branch: Branch, scope: Scope, actor: str | None = None, reason: str | None = None
    ) -> Any:
        """Do an operation and give its result."""
        for name, value in (("actor", actor), ("reason", reason)):
            if value is not None:
                check_text(name, value, blank=True)
        if isinstance(operation, RememberAll):
            with gc_paused():  # for all of it: each time that it ends, what was made so far is looked through
                return self._remember_all(operation, branch, scope, actor, reason)
        if isinstance(operation, SetQuota):
            return self._set_quota(operation, branch, scope)
        if isinstance(operation, WRITES):
            if isinstance(operation, Batch):
                actor, reason = operation.actor or actor, operation.reason or reason
            if isinstance(operation, Remember):
                # Drafted before it is its turn: what was given may be the caller's code, which nobody should wait for.
                requested_at = self.now()
                wanted = draft(operation, scope, requested_at, self.intake)
                with self.writing(branch, scope, actor, reason, shared=True, now=requested_at) as writing:
                    return writing.remember_draft(wanted)
            if isinstance(operation, ForgetWhere) and uses_filter_terms(operation.where):
                with self.store.read() as view:  # what is in a file is read before others must wait for it
                    self.keeper.loaded(view, branch, in_file=not selective(AllOf.of(scope.filter, operation.where)))
            with self.writing(branch, scope, actor, reason, shared=_is_short(operation)) as writing:
                return writing.execute(operation)
        clock = self.now()
        if isinstance(operation, Grep):
            return self.grep(operation, branch, scope)
        if isinstance(operation, Recall):
            self.intake.limits.check_question(operation.question)
        if isinstance(operation, Recall) and operation.reference is None:
            operation = operation.with_reference(clock)  # with the clock's offset: "today" is the asker's day
        question_vector: QuestionVector | None = None
        if isinstance(operation, Recall) and self.vectors is not None:
            with self.store.read():  # a closed memory asks nobody
                pass
            question_vector = self.vectors.embed_question(
                operation.question, branch
            )  # a model may be slow: before anything is opened

        # What a store would read every record for is asked of the index, where that is at hand.
        index_helps = in_file = False
        if isinstance(operation, (Find, Count)):
            in_file = not selective(AllOf.of(scope.filter, operation.where))
            index_helps = uses_filter_terms(operation.where) or (in_file and _importance_limit(operation) is not None)

        def read(view: View, words: WordView | None) -> Any:
            if index_helps:
                words = self.keeper.loaded(view, branch, in_file=in_file)
            now = self.reads_at(view, branch)
            found = self.read(operation, view, branch, scope, now, words, question_vector)
            self._note_uses(operation, found, view, branch, scope, now)
            if words is not None:
                self.keeper.recount(branch)
            return found

        return self._in_view(branch, read, needs_index=isinstance(operation, Recall))

    def _note_uses(self, operation: Operation, found: Any, view: View, branch: Branch, scope: Scope, now: int) -> None:
        """Note what was used, where eviction goes by it. Nothing is written for a while, and nothing in the ledger."""
        if isinstance(operation, (Recall, Get)) and found:
            quota = quota_of(view, branch)
            if quota is not None and quota.when_full != REFUSE:
                used = [found.id] if isinstance(found, Record) else [hit.record.id for hit in found]
                if scope.fixed:
                    stored = (_stored(each, view, branch, scope, now) for each in used)
                    used = [record.id for record in stored if record is not None]
                self._uses.note(branch, used, now)

    def _set_quota(self, operation: SetQuota, branch: Branch, scope: Scope) -> None:
        if scope.fixed:
            raise ScopeError("the quota of the namespace", str(scope))
        quota = Quota(
            records=operation.records, bytes=operation.bytes, when_full=operation.when_full, per=operation.per
        )
        with self.store.write() as transaction:
            set_quota(transaction, branch, quota)

    @contextmanager
    def writing(
        self,
        branch: Branch,
        scope: Scope,
        actor: str | None,
        reason: str | None,
        expect_head: int | None = None,
        shared: bool = False,
        now: datetime | None = None,
    ) -> Iterator[Writing]:
        """A transaction that becomes one commit when the block ends well, and nothing when it raises.

        shared  whether a store that can may make it durable together with those of other threads
        now     the clock's time, where it was asked already
        """
        now = now or self.now()
        try:
            with self._write_shared() if shared else self.store.write() as transaction:
                if expect_head is not None:
                    check_head(transaction, branch, scope, expect_head)
                reads_at = self.reads_at(transaction, branch)
                # Records that have no time get the clock's; what has expired is told by the other.
                at = _now(reads_at, now)
                writer = Writer(
                    transaction, branch, self.store.key, at, scope, self.intake, self._tries, self._usage_totals
                )
                services = Services(
                    self.store, self.intake, self.keeper, self.vectors is not None, self.read, self.grep
                )
                writing = Writing(services, transaction, writer, branch, scope, now, reads_at)
                try:
                    yield writing
                finally:
                    writing.open = False
                if writing.failure is not None:
                    raise writing.failure
                commit = writer.commit(actor, reason)
                writing.seq = transaction.head(branch).seq
        except BaseException:
            self._tries.drop(branch)
            raise
        if commit is not None:
            self.keeper.note(commit, writer.before, writer.written(commit))
            self.feed.wake()

    def _in_view(self, branch: Branch, read: Callable[[View, WordView | None], T], *, needs_index: bool) -> T:
        """Read at a moment of the store, where it is needed with the index there."""
        while True:
            with self.store.read() as view:
                words = self.keeper.view(view, branch) if needs_index else None
                if words is not None or not needs_index:
                    return read(view, words)
                with self.store.read() as newer:
                    if self.keeper.view(newer, branch) is None:
                        self.keeper.drop(branch)  # there is no newer moment: the file was put back from a copy

    def read(
        self,
        operation: Operation,
        view: View,
        branch: Branch,
        scope: Scope,
        now: int,
        words: WordView | None,
        question_vector: QuestionVector | None = None,
    ) -> Any:
        """Do a reading operation at a moment.

        words  the index there: recall needs it, and to find and count it is of use
        """
        known = partial(view.known, branch)
        if isinstance(operation, Find | Count | Recall) and scope.fixed:
            operation = replace(operation, where=scope.stored_form(operation.where, known))
        match operation:
            case Get():
                record = _stored(operation.id, view, branch, scope, now)
                return None if record is None else scope.shown(record)
            case Find():
                where = AllOf.of(scope.filter, operation.where)
                if words is not None:
                    index_view = words.at(now)
                    limits = bounds(where, index_view)
                    if wanted := _importance_limit(operation):
                        limits = most_important(limits, index_view, wanted)
                    where = as_ids(where, limits, index_view)
                if scope.fixed and operation.order == "id":  # of the ids that it shows
                    all_found = map(scope.shown, view.select(branch, where, order="id", now=now))
                    return in_order(all_found, "id")[: operation.limit]
                found = view.select(branch, where, order=operation.order, limit=operation.limit, now=now)
                return list(map(scope.shown, found))
            case Count():
                where = AllOf.of(scope.filter, operation.where)
                if words is not None:
                    index_view = words.at(now)
                    limits = bounds(where, index_view)
                    if (counts := exact_count(limits, index_view)) is not None:
                        return counts
                    where = as_ids(where, limits, index_view)
                return view.count(branch, where, now=now)
            case Recall():
                assert words is not None
                cursor = partial(self._cursors.at, branch=branch, scope=scope)
                return recall(operation, view, branch, words, scope, now, self.intake.language, cursor, question_vector)
            case Changes():
                return list(islice(self._changes(operation, view, branch, scope), operation.limit))
            case Stats():
                return self._stats(view, branch, scope, now)
            case Namespaces():
                # A scope cannot tell which other namespaces there are.
                return [branch.namespace] if scope.fixed else sorted({each.namespace for each in view.branches()})
        raise InvalidOperationError(operation, "is not an operation of this memory")

    def _changes(self, operation: Changes, view: View, branch: Branch, scope: Scope) -> Iterator[Commit]:
        """The commits after a cursor, as a scope sees them; of one id, those that touched what the scope shows so."""
        since = self._cursors.seq(operation.since, branch, scope)
        if operation.id is None:
            commits = view.commits(branch, since)
        else:
            stored = scope.stored_ids(operation.id, partial(view.known, branch))
            each = [view.commits(branch, since, None, stored_id) for stored_id in stored]
            merged = heapq.merge(*each, key=lambda commit: commit.seq)
            commits = (next(same) for _, same in groupby(merged, key=lambda commit: commit.seq))
        for commit in commits:
            seen = self._visible_part(scope, view, commit)
            if seen is not None and seen.touches(operation.id):
                yield seen

    def _visible_part(self, scope: Scope, view: View, commit: Commit) -> Commit | None:
        """A commit as a scope sees it: what it did to records that lie in it, and nothing that tells of others."""
        if not scope.fixed:
            return commit
        branch = Branch(commit.namespace, commit.branch)

        def seen(version: bytes | None) -> bytes | None:
            payload = None if version is None else view.payload(branch, version)
            return version if payload is not None and scope.admits(Record.load(payload)) else None

        changes = tuple(
            Change(scope.shown_id(change.id), before, after, change.cause)
            for change in commit.changes
            for before, after in [(seen(change.before), seen(change.after))]
            if before or after
        )
        return (
            ScopedCommit(
                namespace=commit.namespace,
                branch=commit.branch,
                seq=0,
                parents=(),
                micros=commit.micros,
                actor=None,
                reason=None,
                root=Root(),
                changes=changes,
                token=self._cursors.at(commit.seq, branch, scope),
            )
            if changes
            else None
        )

    # Bulk writes

    def _remember_all(
        self, operation: RememberAll, branch: Branch, scope: Scope, actor: str | None, reason: str | None
    ) -> Report:
        """All items are checked first; then the valid ones are held, a commit for each thousand."""
        drafts, failed = drafts_of(operation, scope, self.now(), self.intake)
        if operation.on_error == "raise":
            with self.writing(branch, scope, actor, reason) as writing:
                return Report(tuple(writing.remember_drafts([wanted for _, wanted in drafts])))
        results: list[tuple[int, Outcome]] = []
        known: Replay | None = None
        for start in range(0, len(drafts), BULK):
            part = drafts[start : start + BULK]
            outcomes: list[tuple[int, Outcome]] = []
            refused: list[Failed] = []
            try:
                with self.writing(branch, scope, actor, reason) as writing:
                    writing.writer.look_up([wanted for _, wanted in part])
                    # For all items at once: a conversation may be longer than a commit. And again where another has
                    # written turns since the part before, which may be the same conversation.
                    if known is None or writing.writer.outdated(known):
                        known = writing.writer.find_replay([wanted for _, wanted in drafts])
                    for at, (place, wanted) in enumerate(part, start):
                        try:
                            outcomes.append((place, writing.remember_draft(wanted, known.ids.get(at))))
                        except StoreError:
                            raise
                        except RecollectError as error:
                            refused.append(Failed(operation.items[place], place, error))
            except (StoreError, ClosedError) as error:
                # What was committed stays; neither this part nor what follows is held.
                failed.extend(Failed(operation.items[place], place, error) for place, _ in drafts[start:])
                break
            known = known._replace(seq=writing.seq)
            results.extend(outcomes)
            failed.extend(refused)
        failed.sort(key=lambda item: item.place)
        return Report(tuple(outcome for _, outcome in results), tuple(failed))

    # Reads

    def grep(self, operation: Grep, branch: Branch, scope: Scope, staged: Sequence[Record | str] = ()) -> list[Record]:
        """The records that match a full-text query. Raises: InvalidQueryError, also for one over its cap.

        staged  what a batch wrote and has not committed: records, and ids of those that it forgot
        """
        self.intake.limits.check_query(operation.query)
        with ExitStack() as stack:
            views: list[View] = []

            def updates_since(reached: int, root: bytes | None) -> Updates:
                stack.close()  # the moment before is not wanted any more
                view = stack.enter_context(self.store.read())
                views[:] = [view]
                head = view.head(branch)
                if reached and view.root_at(branch, reached) != root:
                    texts = ((each, Record.load(stored.payload).text) for each, stored in view.versions(branch))
                    return Updates(head.seq, head.root.hash, True, texts)
                return Updates(head.seq, head.root.hash, False, _texts(view, branch, view.changed(branch, reached)))

            with self.store.read():
                pass  # a store that is closed or forked says so before the index is touched: its file, its locks
            ids = self._fulltext.search(branch, operation.query, updates_since)
            stored = ((record_id, views[0].get(branch, record_id)) for record_id in ids)
            records = {each: Record.load(held.payload) for each, held in stored if held is not None}
            if mismatched := [each for each, record in records.items() if record.id != each]:
                raise DamagedStoreError(
                    self.store.path, f"record {mismatched[0]!r} is not the one that it is listed as"
                )
            now = self.reads_at(views[0], branch)
        if staged:
            own = FullText(None, "batch")
            written = {each.id: each for each in staged if isinstance(each, Record)}
            for each in staged:
                records.pop(each if isinstance(each, str) else each.id, None)
            staged_updates = Updates(1, b"", False, [(each.id, each.text) for each in written.values()])
            records |= {
                each: written[each] for each in own.search(branch, operation.query, lambda seq, root: staged_updates)
            }
            own.close()
        where = operation.where
        found = (
            shown
            for record in records.values()
            if scope.admits(record) and not expired(record, now) and where.matches(shown := scope.shown(record))
        )
        return in_order(found, "newest")[: operation.limit]

    def _stats(self, view: View, branch: Branch, scope: Scope, now: int) -> dict[str, Any]:
        tally = view.tally(branch, scope.filter, now=now)
        out: dict[str, Any] = {
            "namespace": branch.namespace,
            "records": sum(tally.kinds.values()),
            "kinds": tally.kinds,
            "users": tally.users,
            "conversations": tally.conversations,
            "entities": tally.entities,
            "oldest": None if tally.oldest is None else datetime_of(tally.oldest).isoformat(),
            "newest": None if tally.newest is None else datetime_of(tally.newest).isoformat(),
        }
        if not scope.fixed:  # the log and the root tell of the others too
            head = view.head(branch)
            quota = quota_of(view, branch)
            if quota is not None:
                nbytes = sum(len(stored.payload) for _, stored in view.versions(branch))
                out["quota"] = {**asdict(quota), "records_held": out["records"], "bytes_held": nbytes}
            out |= {"seq": head.seq, "root": head.root.hash.hex(), "store": self.store.facts()}
        return out

    def export_records(self, branch: Branch, scope: Scope) -> tuple[str, list[Record]]:
        """The live records by rising id, and the root of just these; "" within a scope."""
        self.now()
        with self.store.read() as view:
            now = self.reads_at(view, branch)
            records = list(view.select(branch, scope.filter, order="id", now=now))
            if scope.fixed:
                return "", in_order(map(scope.shown, records), "id")
            if not view.due(branch, now, 1):
                return view.head(branch).root.hash.hex(), records
            versions = {each.id: version_hash(each.id, each.to_bytes(), self.store.key) for each in records}
            return root_of(versions).hex(), records

    # Vectors

    def embed_all(self, branch: Branch, scope: Scope, batch_size: int, progress: Progress | None) -> int:
        """Embed the texts that have no vector yet; how many. Raises: UnsupportedError without an embedder."""
        if self.vectors is None:
            raise needs_embedder()
        self.now()
        with self.store.read() as view:
            now = self.reads_at(view, branch)
        return self.vectors.embed_all(self.store, branch, scope, now, batch_size, progress)

    def vector_stats(self, branch: Branch, scope: Scope) -> dict[str, Any]:
        """How many texts there are, and how many have a vector."""
        stats = no_embedder if self.vectors is None else self.vectors.stats
        self.now()
        with self.store.read() as view:
            return stats(view, branch, scope, self.reads_at(view, branch))

    # Listening, checking, closing

    def listen(
        self, callback: Callable[[Commit], object], branch: Branch, scope: Scope, since: int | str | None
    ) -> Subscription:
        """Deliver the commits after the cursor `since` (None: those to come) to a callback."""
        if since is None:
            with self.store.read() as view:
                after = view.head(branch).seq
        else:
            after = self._cursors.seq(since, branch, scope)

        def read(seen: int, limit: int) -> Sequence[tuple[int, Commit | None]]:
            with self.store.read() as view:
                commits = view.commits(branch, seen, limit)
                return [(commit.seq, self._visible_part(scope, view, commit)) for commit in commits]

        return self.feed.add(callback, read, after)

    def check(self) -> list[str]:
        """What is wrong with the store: its structure, and every namespace's root against its records."""
        return self.store.check() + disagreements(self.store)

    def back_up(self, path: str, *, verify: bool, force: bool) -> Backup:
        """Copy the store to a file. Raises: UnsupportedError where it is none."""
        if not isinstance(self.store, CopiedStore):
            raise UnsupportedError("a backup", f"the store {self.store.path} is not a file: export its records")
        return self.store.back_up(path, verify=verify, force=force)

    def close(self) -> None:
        """End the listeners, wait for the calls under way, close the store. In a fork: nothing, it is the parent's."""
        if os.getpid() != self._pid:
            return
        try:
            self.feed.close()
        finally:
            try:
                self.keeper.close()
            finally:
                self.store.close()
            self._uses.write()
            self._fulltext.close()
            if self.vectors is not None:
                self.vectors.close()


def _stored(record_id: str, view: View, branch: Branch, scope: Scope, now: int) -> Record | None:
    """The live record that a scope shows under an id, as it is stored."""
    for stored_id in scope.stored_ids(record_id, partial(view.known, branch)):
        stored = view.get(branch, stored_id)
        record = None if stored is None else Record.load(stored.payload)
        if record is not None and scope.admits(record) and not expired(record, now):
            return record
    return None


def _now(micros: int, now: datetime) -> datetime:
    """A time as a datetime; `now` where it is none: the head of a damaged store may have any."""
    try:
        return datetime_of(micros)
    except (OverflowError, ValueError):
        return now


#: What runs no code of the caller's when it is looked at.
_PLAIN = (str, bytes, int, float, bool, type(None), datetime)


def _is_short(operation: Operation) -> bool:
    """Whether an operation is soon done, and waits for nobody: it runs no code of the caller's."""
    return isinstance(operation, Forget) or (
        isinstance(operation, Update)
        and not callable(operation.changes)
        and all(type(value) in _PLAIN for value in operation.changes.values())
    )


def _importance_limit(operation: Find | Count) -> int | None:
    """How many of the most important records an operation is for, where it is for a few: no store has that order."""
    if not isinstance(operation, Find) or operation.order != "importance":
        return None
    return operation.limit if operation.limit is not None and operation.limit <= MAX_IDS else None


def _texts(view: View, branch: Branch, ids: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """The texts of records by id, None for those that are not held."""
    for record_id in ids:
        stored = view.get(branch, record_id)
        yield record_id, Record.load(stored.payload).text if stored else None
