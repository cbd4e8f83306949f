"""The engine: a store, its indexes and its clock, behind `execute`.

Every public call arrives here as an operation on a branch and scope. Reads open a view of the store, catch the index up
to it and work on that view. Writes open a transaction, and listeners are notified after it is durable.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from recollect.embedding.base import Embedder
from recollect.engine.call_log import CallLog, OnCall
from recollect.engine.cursors import Cursors
from recollect.engine.feed import Feed
from recollect.engine.gc_pause import gc_paused
from recollect.engine.index.keeper import IndexKeeper
from recollect.engine.index.vectors import Progress, QuestionVector, VectorKeeper, needs_embedder, no_embedder
from recollect.engine.listeners import Subscription
from recollect.engine.quota import REFUSE, Quota, quota_of, set_quota
from recollect.engine.read.filter_bounds import (
    selective,
    uses_filter_terms,
)
from recollect.engine.read.log import Log
from recollect.engine.read.queries import QUERIES, Reading, importance_limit, stored_record
from recollect.engine.results import Export, Failed, Outcome, Report
from recollect.engine.scope import Scope
from recollect.engine.streams import CommitStream
from recollect.engine.write.batch import Services, Writing, check_head, drafts_of
from recollect.engine.write.drafts import Intake, draft
from recollect.engine.write.head_cache import TrieKeeper
from recollect.engine.write.quotas import UsageTotalsCache
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
from recollect.filters.tree import EVERYTHING, AllOf
from recollect.indexes.words.index import WordView
from recollect.ledger.commits import Branch, Commit
from recollect.ledger.merkle import update
from recollect.operations import (
    Batch,
    Clear,
    Count,
    Find,
    Forget,
    ForgetWhere,
    Get,
    Grep,
    Operation,
    Recall,
    Remember,
    RememberAll,
    SetQuota,
    Sweep,
    Update,
    check_label,
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
#: Limit on the memory of all indexes together, in bytes; the least recently used ones are evicted first.
INDEX_BYTES = 2**31
#: Number of items per commit in bulk writes.
BULK = 1000
WRITES = (Remember, RememberAll, Update, Forget, ForgetWhere, Sweep, Clear, Batch)


class Engine:
    """A store with its indexes, clock and listeners. Shared by all namespaces and scopes opened from one memory."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], datetime],
        intake: Intake,
        embedder: Embedder | None = None,
        *,
        index_bytes: int = INDEX_BYTES,
        on_call: OnCall | None = None,
    ) -> None:
        self.store = store
        self._pid = os.getpid()
        self.clock = clock
        self._latest = -(2**63)  # the latest time of the clock, in microseconds since 1970
        self.intake = intake
        self.feed = Feed(store)
        self._calls = CallLog(on_call)
        self._tries = TrieKeeper()
        self._write_shared = store.write_shared if isinstance(store, SharingStore) else store.write
        facts = store.facts()
        uuid, read_only = str(facts["uuid"]), bool(facts.get("read_only"))
        folder = None if store.path == ":memory:" else store.path + ".index"
        files = None if folder is None else SegmentFiles(folder, uuid, read_only=read_only)
        self._cursors = Cursors(hashlib.sha256(b"recollect.cursors.1\0" + store.key + uuid.encode()).digest())
        self.keeper = IndexKeeper(store, files, digests=embedder is not None, budget_bytes=index_bytes)
        self._uses = Uses(None if read_only else folder, uuid)
        self._usage_totals = UsageTotalsCache(self._uses)
        self._fulltext = FullText(None if read_only else folder, uuid)
        self.vectors: VectorKeeper | None = None
        if embedder is not None:
            self.vectors = VectorKeeper(embedder, VectorStore(folder, uuid, read_only=read_only))

    def now(self) -> datetime:
        """Return the clock's time.

        Raises:
            InvalidArgumentError: The clock returned something other than an aware datetime.
        """
        try:
            now = aware("clock", self.clock())
        except RecollectError as error:
            raise InvalidArgumentError("clock", error.args[1], str(error.args[2])) from None
        # Of two concurrent threads, the earlier time may win. The error is that small, so no lock is needed.
        self._latest = max(self._latest, microseconds(now))
        return now

    def reads_at(self, view: View, branch: Branch) -> int:
        """Return the time that decides which records of a view have expired, in microseconds since 1970.

        It is the latest time of the clock or the time of the newest commit, whichever is later, so a clock that goes
        back never revives expired records. What is read depends only on this time and on the records.
        """
        return max(self._latest, view.head(branch).micros)

    # Executing operations

    def execute(
        self, operation: Operation, branch: Branch, scope: Scope, actor: str | None = None, reason: str | None = None
    ) -> Any:
        """Execute an operation and return its result."""
        if not self._calls.active:
            return self._execute(operation, branch, scope, actor, reason)
        run = partial(self._execute, operation, branch, scope, actor, reason)
        return self._calls.observed(operation.name, branch.namespace, bool(scope.fixed), run)

    @contextmanager
    def batch(
        self, branch: Branch, scope: Scope, actor: str | None, reason: str | None, expect_head: int | None
    ) -> Iterator[Writing]:
        """Open a transaction for a batch of the caller, as `writing` does, and report it as one call."""
        if not self._calls.active:
            with self.writing(branch, scope, actor, reason, expect_head) as writing:
                yield writing
            return
        with self._calls.block("batch", branch.namespace, bool(scope.fixed)) as count:
            with self.writing(branch, scope, actor, reason, expect_head) as writing:
                yield writing
            count[0] = writing.executed

    def _execute(
        self, operation: Operation, branch: Branch, scope: Scope, actor: str | None, reason: str | None
    ) -> Any:
        for name, value in (("actor", actor), ("reason", reason)):
            if value is not None:
                check_label(name, value)
        if isinstance(operation, RememberAll):
            with gc_paused():  # for the whole call: each resume triggers a collection of all objects created so far
                return self._remember_all(operation, branch, scope, actor, reason)
        if isinstance(operation, SetQuota):
            return self._set_quota(operation, branch, scope)
        if isinstance(operation, WRITES):
            if isinstance(operation, Batch):
                actor, reason = operation.actor or actor, operation.reason or reason
            if isinstance(operation, Remember):
                # Draft before taking the write lock: the arguments may run code of the caller, such as a property.
                requested_at = self.now()
                new = draft(operation, scope, requested_at, self.intake)
                with self.writing(branch, scope, actor, reason, shared=True, now=requested_at) as writing:
                    return writing.remember_draft(new)
            if isinstance(operation, ForgetWhere) and uses_filter_terms(operation.where):
                with self.store.read() as view:  # load an index file before taking the write lock
                    self.keeper.loaded(view, branch, in_file=not selective(AllOf.of(scope.filter, operation.where)))
            with self.writing(branch, scope, actor, reason, shared=_is_short(operation)) as writing:
                return writing.execute(operation)
        clock = self.now()
        if isinstance(operation, Grep):
            return self.grep(operation, branch, scope)
        if isinstance(operation, Recall):
            self.intake.limits.check_question(operation.question)
        if isinstance(operation, Recall) and operation.reference is None:
            operation = operation.with_reference(clock)  # with the clock's UTC offset, which decides what "today" is
        question_vector: QuestionVector | None = None
        if isinstance(operation, Recall) and self.vectors is not None:
            with self.store.read():  # raises if the memory is closed, before the model is called
                pass
            # A model may be slow, so it is called before a view is opened.
            question_vector = self.vectors.embed_question(operation.question, branch)

        # If a store would have to read every record, use the index, provided that it is loaded or in a file.
        index_helps = in_file = False
        if isinstance(operation, (Find, Count)):
            in_file = not selective(AllOf.of(scope.filter, operation.where))
            index_helps = uses_filter_terms(operation.where) or (in_file and importance_limit(operation) is not None)

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
        """Note the use of records, if the quota evicts by use. It is written later in batches, outside the ledger."""
        if isinstance(operation, (Recall, Get)) and found:
            quota = quota_of(view, branch)
            if quota is not None and quota.when_full != REFUSE:
                used = [found.id] if isinstance(found, Record) else [hit.record.id for hit in found]
                if scope.fixed:
                    stored = (stored_record(each, view, branch, scope, now) for each in used)
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
        """Open a transaction that is committed when the block ends, and undone if the block raises.

        Args:
            branch: The branch to write to.
            scope: The scope of the caller.
            actor: Who makes the change; recorded in the commit.
            reason: Why the change is made; recorded in the commit.
            expect_head: Raise ConflictError unless the newest commit has this seq.
            shared: Allow a store that supports it to commit together with other threads (group commit).
            now: The clock's time, if the caller has read it already.
        """
        now = now or self.now()
        try:
            with self._write_shared() if shared else self.store.write() as transaction:
                if expect_head is not None:
                    check_head(transaction, branch, scope, expect_head)
                reads_at = self.reads_at(transaction, branch)
                # `now` is the default time of records; `reads_at` decides which records have expired.
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
            self.feed.wake(branch, commit.seq)

    def _in_view(self, branch: Branch, read: Callable[[View, WordView | None], T], *, needs_index: bool) -> T:
        """Call `read` with a view of the store and, if needed, the index at that view."""
        while True:
            with self.store.read() as view:
                words = self.keeper.view(view, branch) if needs_index else None
                if words is not None or not needs_index:
                    return read(view, words)
                with self.store.read() as newer:
                    if self.keeper.view(newer, branch) is None:
                        self.keeper.drop(branch)  # no view is as new as the index: an older copy was restored

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
        """Execute a reading operation on a view. See `Reading` for the arguments."""
        reading = Reading(
            view=view,
            branch=branch,
            scope=scope,
            now=now,
            words=words,
            question_vector=question_vector,
            cursors=self._cursors,
            language=self.intake.language,
            facts=self.store.facts,
        )
        query = QUERIES.get(type(operation))
        if query is None:
            raise InvalidOperationError(operation, "is not an operation of this memory")
        return query(reading, operation)

    # Bulk writes

    def _remember_all(
        self, operation: RememberAll, branch: Branch, scope: Scope, actor: str | None, reason: str | None
    ) -> Report:
        """Check all items, then store the valid ones in commits of `BULK` items."""
        drafts, failed = drafts_of(operation, scope, self.now(), self.intake)
        all_drafts = [each for _, each in drafts]
        if operation.on_error == "raise":
            with self.writing(branch, scope, actor, reason) as writing:
                return Report(tuple(writing.remember_drafts(all_drafts)))
        results: list[tuple[int, Outcome]] = []
        known: Replay | None = None
        for start in range(0, len(drafts), BULK):
            part = drafts[start : start + BULK]
            outcomes: list[tuple[int, Outcome]] = []
            refused: list[Failed] = []
            try:
                with self.writing(branch, scope, actor, reason) as writing:
                    writing.writer.look_up([each for _, each in part])
                    # Find replayed turns among all items, since a conversation may be longer than a commit. Repeat it
                    # if others have written turns since the previous part: they may be of the same conversation.
                    if known is None or writing.writer.outdated(known):
                        known = writing.writer.find_replay(all_drafts)
                    for number, (index, each) in enumerate(part, start):
                        try:
                            outcomes.append((index, writing.remember_draft(each, known.ids.get(number))))
                        except StoreError:
                            raise
                        except RecollectError as error:
                            refused.append(Failed(operation.items[index], index, error))
            except (StoreError, ClosedError) as error:
                # Earlier parts are committed; neither this part nor the following ones are stored.
                failed.extend(Failed(operation.items[index], index, error) for index, _ in drafts[start:])
                break
            known = known._replace(seq=writing.seq)
            results.extend(outcomes)
            failed.extend(refused)
        failed.sort(key=lambda item: item.place)
        return Report(tuple(outcome for _, outcome in results), tuple(failed))

    # Reads

    def grep(self, operation: Grep, branch: Branch, scope: Scope, staged: Sequence[Record | str] = ()) -> list[Record]:
        """Return the records that match a full-text query.

        Args:
            operation: The operation.
            branch: The branch to read.
            scope: The scope of the caller.
            staged: Uncommitted changes of a batch: written records, and ids of forgotten ones.

        Raises:
            InvalidQueryError: The query is malformed or exceeds its limit.
        """
        self.intake.limits.check_query(operation.query)
        with ExitStack() as stack:
            views: list[View] = []

            def updates_since(reached: int, root: bytes | None) -> Updates:
                stack.close()  # the previous view is not needed any more
                view = stack.enter_context(self.store.read())
                views[:] = [view]
                head = view.head(branch)
                if reached and view.root_at(branch, reached) != root:
                    texts = ((each, Record.load(stored.payload).text) for each, stored in view.versions(branch))
                    return Updates(head.seq, head.root.hash, True, texts)
                return Updates(head.seq, head.root.hash, False, _texts(view, branch, view.changed(branch, reached)))

            with self.store.read():
                pass  # raises if the store is closed or forked, before the file and locks of the index are used
            ids = self._fulltext.search(branch, operation.query, updates_since)
            stored = ((record_id, views[0].get(branch, record_id)) for record_id in ids)
            records = {each: Record.load(version.payload) for each, version in stored if version is not None}
            if mismatched := [each for each, record in records.items() if record.id != each]:
                raise DamagedStoreError(self.store.path, f"record {mismatched[0]!r} has another id in its payload")
            now = self.reads_at(views[0], branch)
        if staged:
            staged_index = FullText(None, "batch")
            written = {each.id: each for each in staged if isinstance(each, Record)}
            for each in staged:
                records.pop(each if isinstance(each, str) else each.id, None)
            staged_updates = Updates(1, b"", False, [(each.id, each.text) for each in written.values()])
            records |= {
                each: written[each]
                for each in staged_index.search(branch, operation.query, lambda seq, root: staged_updates)
            }
            staged_index.close()
        where = operation.where
        found = (
            shown
            for record in records.values()
            if scope.admits(record) and not expired(record, now) and where.matches(shown := scope.shown(record))
        )
        return in_order(found, "newest")[: operation.limit]

    @contextmanager
    def open_export(self, branch: Branch, scope: Scope) -> Iterator[Export]:
        """Open a view of the live records, to be read one by one."""
        self.now()
        with self.store.read() as view:
            now = self.reads_at(view, branch)
            if scope.fixed:  # the ids that a scope shows have another order, so these records are sorted in memory
                records = in_order(map(scope.shown, view.select(branch, scope.filter, order="id", now=now)), "id")
                yield Export("", len(records), iter(records))
                return
            root, expired = view.head(branch).root, view.due(branch, now, 2**62)
            if expired:
                root = update(root, dict.fromkeys(expired), _Overlay(view))
            records_of = view.select(branch, EVERYTHING, order="id", now=now)
            yield Export(root.hash.hex(), view.count(branch, EVERYTHING, now=now), records_of)

    # Vectors

    def embed_all(self, branch: Branch, scope: Scope, batch_size: int, progress: Progress | None) -> int:
        """Embed the texts that have no vector yet and return how many.

        Raises:
            UnsupportedError: There is no embedder.
        """
        if self.vectors is None:
            raise needs_embedder()
        self.now()
        with self.store.read() as view:
            now = self.reads_at(view, branch)
        return self.vectors.embed_all(self.store, branch, scope, now, batch_size, progress)

    def vector_stats(self, branch: Branch, scope: Scope) -> dict[str, Any]:
        """Return how many texts there are and how many have a vector (see `Memory.vector_stats`)."""
        stats = no_embedder if self.vectors is None else self.vectors.stats
        self.now()
        with self.store.read() as view:
            return stats(view, branch, scope, self.reads_at(view, branch))

    # Listening, checking, closing

    def listen(
        self, callback: Callable[[Commit], object], branch: Branch, scope: Scope, since: int | str | None
    ) -> Subscription:
        """Deliver the commits after the cursor `since` to a callback; None: only future commits."""
        log = self.log(branch, scope)
        return Subscription(callback, log, log.start(since), self.feed)

    def subscribe(self, branch: Branch, scope: Scope, since: int | str | None) -> CommitStream:
        """Return a stream of the commits after the cursor `since`; None: only future commits."""
        log = self.log(branch, scope)
        return CommitStream(log, log.start(since), self.feed)

    def wait(self, branch: Branch, scope: Scope, since: int | str, timeout_s: float) -> bool:
        """Wait until there is a commit after the cursor `since`, and return whether there is one.

        Args:
            branch: The branch.
            scope: The scope of the caller. Only commits that it sees count.
            since: The cursor.
            timeout_s: How long to wait, in seconds; 0: not at all.
        """
        with self.subscribe(branch, scope, since) as stream:
            return stream.wait(timeout_s) is not None

    def log(self, branch: Branch, scope: Scope) -> Log:
        """Return the log of a branch as a scope sees it."""
        return Log(self.store, branch, scope, self._cursors)

    def check(self) -> list[str]:
        """Check the structure of the store and the root of every namespace, and return the problems."""
        return self.store.check() + disagreements(self.store)

    def back_up(self, path: str, *, verify: bool, force: bool) -> Backup:
        """Copy the store to a file.

        Raises:
            UnsupportedError: The store is not a file.
        """
        if not isinstance(self.store, CopiedStore):
            raise UnsupportedError("a backup", f"the store {self.store.path} is not a file: export its records")
        return self.store.back_up(path, verify=verify, force=force)

    def close(self) -> None:
        """Stop the listeners, wait for calls in progress and close the store. Does nothing in a forked process."""
        if os.getpid() != self._pid:
            return
        try:
            self.feed.close()
        finally:
            try:
                self.keeper.close()
            finally:
                self.store.close()
            self.feed.join()
            self._uses.write()
            self._fulltext.close()
            if self.vectors is not None:
                self.vectors.close()


def _now(micros: int, now: datetime) -> datetime:
    """Return a time as a datetime, or `now` if it is out of range, as in the head of a corrupt store."""
    try:
        return datetime_of(micros)
    except (OverflowError, ValueError):
        return now


#: Types whose values run no code of the caller when they are used.
_PLAIN = (str, bytes, int, float, bool, type(None), datetime)


def _is_short(operation: Operation) -> bool:
    """Return whether an operation is short and runs no code of the caller, so that it can share a commit."""
    return isinstance(operation, Forget) or (
        isinstance(operation, Update)
        and not callable(operation.changes)
        and all(type(value) in _PLAIN for value in operation.changes.values())
    )


def _texts(view: View, branch: Branch, ids: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Yield the id and text of each record; the text is None if the record is not stored."""
    for record_id in ids:
        stored = view.get(branch, record_id)
        yield record_id, Record.load(stored.payload).text if stored else None


class _Overlay:
    """Pages of the Merkle trie that are not stored: for the root of a state that was never committed."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._pages: dict[int, bytes] = {}

    def node(self, page: int) -> bytes:
        return self._pages[page] if page in self._pages else self._view.node(page)

    def add_node(self, body: bytes) -> int:
        page = 2**62 + len(self._pages)
        self._pages[page] = body
        return page
