"""The core of the engine: a store with its indexes, clock and listeners, and the blocks in which operations run.

`handlers` uses it to execute operations. A read gets a view of the store, and the index caught up to that view. A write
gets a transaction; listeners are notified after it is durable.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar
from weakref import WeakSet

from recollect.common.deadlines import check, lift, restore, within
from recollect.common.zones import zone_of
from recollect.engine.cursors import Cursors
from recollect.engine.erasures import Erasures
from recollect.engine.facets import FACETS
from recollect.engine.family import chosen
from recollect.engine.feed import Feed, StoreWatch
from recollect.engine.follower import Follower, RecordFollower, Use
from recollect.engine.housekeeping import Expiries, Trimmer
from recollect.engine.index.keeper import IndexKeeper
from recollect.engine.index.past import PastIndexes
from recollect.engine.index.vectors import VECTOR_BYTES, QuestionVector, VectorKeeper
from recollect.engine.read.export import export
from recollect.engine.read.log import Log
from recollect.engine.read.queries import Reading
from recollect.engine.results import Export
from recollect.engine.scope import Place, Scope
from recollect.engine.trees import LogTrees, TrieKeeper
from recollect.engine.write.batch import Services, Writing, check_head
from recollect.engine.write.drafts import Intake
from recollect.engine.write.quotas import UsageTotalsCache
from recollect.engine.write.replay import TurnCache
from recollect.engine.write.writer import Writer
from recollect.errors import InvalidArgumentError, RecollectError, StoreBusyError, UnknownBranchError
from recollect.indexes.words.index import WordView
from recollect.ledger.commits import MAIN, Branch, Commit
from recollect.models.embedding.base import Embedder
from recollect.records.codec import datetime_of, microseconds
from recollect.records.record import aware, in_zone
from recollect.stores.base import Store, Transaction, View
from recollect.stores.branches import settle
from recollect.stores.freshness import FRESHNESS
from recollect.stores.parts import follow

T = TypeVar("T")
#: Limit on the memory of all indexes together, in bytes; the least recently used ones are evicted first.
INDEX_BYTES = 2**31
#: The indexes of past moments may use this fraction (1/8) of it in addition.
_PAST_PART = 8


class Core:
    """A store with its indexes, clock and listeners. Shared by all namespaces and scopes opened from one memory.

    Attributes:
        clock: Returns the current time.
        zone: The time zone of the store.
        intake: The limits and the default language of the memory.
        feed: The listeners.
        keeper: The word indexes.
        past: The word indexes of past moments.
        facets: The indexes of the facets, by name.
        fulltext: The full-text index.
        uses: When records were last used.
        counts_uses: When it was read whether a rule of retention counts uses, and whether one does (`settings`).
        vectors: The vectors and the embedder; None without one.
        cursors: The cursors of the store.
        log_trees: The log trees.
        erasures: What follows an erasure.
        thread: What is known of the current thread.
        answers_cleaned: The day up to which old answers (`engine.answers`) were removed, counted from 1970.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], datetime],
        intake: Intake,
        embedder: Embedder | None = None,
        *,
        index_bytes: int = INDEX_BYTES,
        vector_bytes: int = VECTOR_BYTES,
    ) -> None:
        self.store = store
        self._pid = os.getpid()
        self.clock = clock
        self.zone = zone_of(store.zone)
        self.answers_cleaned = -1
        self.thread = _OfThread()
        self._latest = -(2**63)  # the latest time of the clock, in microseconds since 1970
        self._expiries = Expiries(store)
        self.intake = replace(intake, id_key=store.id_key, zone=self.zone)
        self.feed = Feed(StoreWatch(store))
        self._tries = TrieKeeper()
        self._trimmer = Trimmer(store)
        derived = store.derived()
        self.cursors = Cursors(hashlib.sha256(b"recollect.cursors.1\0" + store.key + derived.uuid.encode()).digest())
        segments = derived.segments()
        self.keeper = IndexKeeper(
            store,
            segments,
            derived.sharing(segments),
            digest_key=None if embedder is None else store.key,
            zone=self.zone,
            budget_bytes=index_bytes,
        )
        self.past = PastIndexes(self.keeper, index_bytes // _PAST_PART)
        self.uses = derived.uses()
        self.counts_uses: dict[Branch, tuple[int, bool]] = {}
        self._usage_totals = UsageTotalsCache(self.uses)
        self._turns = TurnCache()
        self.facets: dict[str, RecordFollower[Any, Any]] = {
            facet.index.name: RecordFollower(facet.index.budget_bytes, facet.index_at)
            for facet in FACETS
            if facet.index is not None
        }
        self._exports: WeakSet[Export] = WeakSet()
        self.fulltext = derived.full_text()
        self.log_trees = LogTrees(derived.log_tiles(), store.path, store.key)
        self._vector_store = derived.vectors()  # without an embedder, too: what is erased is removed from it
        self.vectors: VectorKeeper | None = None
        if embedder is not None:
            self.vectors = VectorKeeper(embedder, self._vector_store, store.key, budget_bytes=vector_bytes)
        self.erasures = Erasures(
            store,
            self.keeper,
            self.past,
            self.fulltext,
            self.uses,
            self._vector_store,
            self.vectors,
            _Caches(self._usage_totals, self._turns, self.facets).drop,
            derived.cleaned(),
        )
        self.erasures.begin()

    def now(self) -> datetime:
        """Return the clock's time, in the zone of the store.

        Raises:
            InvalidArgumentError: The clock returned something other than an aware datetime.
        """
        try:
            now = aware("clock", self.clock())
            if now.tzinfo is not self.zone:
                now = aware("clock", in_zone(now, self.zone))
        except RecollectError as error:
            raise InvalidArgumentError("clock", error.args[1], str(error.args[2])) from None
        # Of two concurrent threads, the earlier time may win. The error is that small, so no lock is needed.
        self._latest = max(self._latest, microseconds(now))
        return now

    def note_time(self, transaction: Transaction, branch: Branch, micros: int) -> None:
        """Note a time in a transaction: no later commit of any process that opens the store is before it."""
        self._expiries.note_in(transaction, branch, micros)
        self._latest = max(self._latest, micros)

    def reads_at(self, view: View, branch: Branch) -> int:
        """Return the time that decides which records of a view have expired, in microseconds since 1970.

        It is the latest time of the clock, of the newest commit, or at which a record was found to have expired
        (`housekeeping`), so a clock that goes back never revives expired records. What is read depends only on this
        time and on the records.
        """
        head = view.head(branch)
        now = max(self._latest, head.micros)
        seq, following = self._expiries.next.get(branch, (-1, 0))
        if seq != head.seq or now >= following:
            now = self._expiries.notice(view, branch, now)
            self._latest = max(self._latest, now)
        return now

    @contextmanager
    def read(self, branch: Branch) -> Iterator[View]:
        """Open a view of the newest state. What was erased since the last one is dropped from all caches."""
        with self.store.read() as view:
            if branch.name != MAIN:
                check_branch(view, branch)
            self.erasures.notice(view, branch)
            yield view

    def reading(
        self,
        view: View,
        branch: Branch,
        scope: Scope,
        words: WordView | None = None,
        question_vector: QuestionVector | None = None,
    ) -> Reading:
        """Return what a reading operation needs on a view. See `Reading` for the arguments."""
        return Reading(
            view=view,
            branch=branch,
            scope=scope,
            now=self.reads_at(view, branch),
            words=words,
            question_vector=question_vector,
            cursors=self.cursors,
            language=self.intake.language,
            zone=self.zone,
            facts=self.store.facts,
            log_head=lambda: self.log_trees.head(view, branch),
        )

    def export(self, branch: Branch, scope: Scope, parts: Collection[str] | None = None) -> Export:
        """Open a snapshot of the live records of parts of a memory; None: of all.

        It is closed with the store, if the caller has not closed it.
        """
        opened = export(chosen(branch, parts), branch, scope, self.store, self.reads_at)
        self._exports.add(opened)
        return opened

    def log(self, branch: Branch, scope: Scope, parts: Collection[str] | None = None) -> Log:
        """Return the log of a branch as a scope sees it, with the commits of parts of the memory; None: of all."""
        return Log(self.store, branch, scope, self.cursors, parts)

    def on_index(
        self,
        branch: Branch,
        read: Callable[[View, WordView], T],
        index_at: Callable[[View], WordView | None] | None = None,
    ) -> T:
        """Call `read` with a view of the store and the index at that view.

        Args:
            read: What to call.
            index_at: Returns the index for a view, or None if it needs a newer view; default: the index at the view.
        """
        while True:
            with self.read(branch) as view:
                words = self.keeper.view(view, branch) if index_at is None else index_at(view)
                if words is not None:
                    return read(view, words)
                with self.store.read() as newer:
                    if self.keeper.view(newer, branch) is None:
                        self.keeper.drop(branch)  # no view is as new as the index: an older copy was restored

    def followed(
        self, index: str, branch: Branch, key: Hashable, read: Callable[[Any, int], T], now: int | None = None
    ) -> T:
        """Call `read` with the index of a facet at the newest view, and the time that decides what has expired.

        The index stays unchanged meanwhile.

        Args:
            index: The name of the index (`engine.facets.FacetIndex`).
            branch: The branch that the index is derived from.
            key: The key of the index.
            read: What to call.
            now: The time; None for that of a read of the newest view.
        """
        follower = self.facets[index]
        # The view is opened under the lock, so that no other thread has caught the value up to a newer commit.
        with follower.entry(key).lock, self.read(branch) as view:
            entry = follower.at(view, branch, key)
            if entry is not None:
                with entry.lock:  # that of another entry, if the first one was dropped because of an erasure
                    if entry.reflects(view.head(branch)) and entry.value is not None:
                        return read(entry.value, self.reads_at(view, branch) if now is None else now)
            with within(None):
                started = follower.start(view, branch, key)  # an older copy was restored
            return read(started, self.reads_at(view, branch) if now is None else now)

    @contextmanager
    def writing(
        self,
        place: Place,
        *,
        expect_head: int | None = None,
        shared: bool = False,
        now: datetime | None = None,
        ids: Sequence[str] = (),
    ) -> Iterator[Writing]:
        """Open a transaction that is committed when the block ends, and undone if the block raises.

        Args:
            place: Where, for whom and why to write.
            expect_head: Raise ConflictError unless the newest commit has this seq.
            shared: Allow a store that supports it to commit together with other threads (group commit).
            now: The clock's time, if the caller has read it already.
            ids: Records that are going to be looked up (`Store.write`).
        """
        now = now or self.now()
        branch = place.branch
        opened: dict[Branch, Writing] = {}
        made: dict[Branch, Commit] = {}
        uncut = None
        try:
            try:
                with self.store.write(branch, shared=shared, ids=ids) as transaction:
                    if expect_head is not None:
                        check_head(transaction, branch, place.scope, expect_head)
                    if not self._expiries.known:
                        self._latest = self._expiries.begin(transaction, self._latest)
                    writing = self._writing_in(transaction, opened, place, now, branch)
                    try:
                        yield writing
                    finally:
                        for each in opened.values():
                            each.open = False
                    for each in opened.values():
                        if each.failure is not None:
                            raise each.failure
                    check()
                    uncut = lift()  # a commit and what follows it are never cut off
                    made = self._commit(transaction, branch.owner, opened, place)
                    for memory in sorted({each.owner for each in opened} - {branch.owner}) if len(opened) > 1 else ():
                        made |= self._commit(transaction, memory, opened, place)
                    for part, each in opened.items():
                        each.seq = transaction.head(part).seq
                        if part in made:
                            self._trimmer.begin(transaction, part)
            except BaseException:
                for part in opened or (branch,):
                    self._tries.drop(part)  # its pages may be those of the commit that was undone
                    if uncut is not None:  # it was committing
                        self._usage_totals.drop(part)  # they may have the time of what was undone
                raise
            finally:
                if len(opened) > 1:  # the totals of a part may have what others have staged in it
                    for part in branch.family:
                        self._usage_totals.drop(part)
            if made:
                self.thread.commits += 1
                freshness = FRESHNESS.get()
                if freshness is not None and branch.name == MAIN and branch.owner in made:
                    freshness.note(branch.owner.namespace, made[branch.owner].seq)
                erases = False
                for part, commit in made.items():
                    writer = opened[part].writer if part in opened else None  # else it follows one to another part
                    if writer is not None and writer.erases:
                        erases = self.erasures.pending = True
                    else:
                        before = commit.root.hash if writer is None else writer.before
                        self.keeper.note(commit, before, {} if writer is None else writer.written(commit))
                        self.erasures.committed(part, before, commit)
                    if writer is not None:
                        self._trimmer.note(part, len(commit.changes))
                    self.feed.wake(part)
                if not erases:
                    self.erasures.try_to_finish()
        finally:
            opened.clear()  # each refers to all of them, and so to this object
            if uncut is not None:
                restore(uncut)

    def _writing_in(
        self, transaction: Transaction, opened: dict[Branch, Writing], place: Place, now: datetime, branch: Branch
    ) -> Writing:
        """Return the writes of a transaction to a part of a memory: those that are opened, or new ones."""
        if branch in opened:
            return opened[branch]
        erased = self._settled(transaction, opened, place, now, branch) if branch.name != MAIN else {}
        self.erasures.notice_in(transaction, branch)
        reads_at = max(self._latest, transaction.head(branch).micros)  # its commit states it
        # `now` is the default time of records; `reads_at` decides which records have expired.
        at = _now(reads_at, now)
        in_part = partial(self._writing_in, transaction, opened, place, now)
        writer = Writer(
            transaction,
            branch,
            self.store.key,
            at,
            place,
            self.intake,
            self._tries,
            self._usage_totals,
            self._turns,
            lambda part: in_part(part).writer,
            lambda: opened[branch],
        )
        # Not kept: it refers to this object, and a reference cycle would keep the store from being freed.
        services = Services(
            self.store,
            self.intake,
            self.keeper,
            self.fulltext,
            self.cursors,
            self.vectors is not None,
            self.log_trees.head,
            self.facets,
            self.followed,
        )
        opened[branch] = Writing(services, transaction, writer, branch, place.scope, now, reads_at, in_part)
        if erased:
            writer.state_erased(erased)
        return opened[branch]

    def _settled(
        self, transaction: Transaction, opened: dict[Branch, Writing], place: Place, now: datetime, branch: Branch
    ) -> dict[str, bytes]:
        """Prepare a branch other than the main one for writing. Return what was erased since it began."""
        check_branch(transaction, branch)
        if branch.is_reserved:  # the memory itself gets a commit, too
            self._writing_in(transaction, opened, place, now, branch.owner)
        erased = settle(transaction, branch)
        self._tries.drop(branch)
        return erased

    def _commit(
        self, transaction: Transaction, memory: Branch, opened: Mapping[Branch, Writing], place: Place
    ) -> dict[Branch, Commit]:
        """Append the commits of a transaction: those to other parts first, and then the one of the memory."""
        made: dict[Branch, Commit] = {}
        for part, writing in opened.items():
            if part == memory or part.owner != memory:
                continue
            if (commit := writing.writer.commit(place.actor, place.reason)) is not None:
                made[part] = commit
        others = list(made.values())
        own = None
        if memory in opened:
            own = opened[memory].writer.commit(place.actor, place.reason, others)
        if own is None and others and transaction.binds_parts:
            own = follow(transaction, memory, others, self.store.key)
        return made if own is None else {**made, memory: own}

    def dropped(self, branch: Branch) -> None:
        """Discard what is cached and derived of a branch that was removed, with all its parts."""
        caches = _Caches(self._usage_totals, self._turns, self.facets)
        for part in branch.family:
            self._tries.drop(part)
            self.keeper.drop(part)
            self.keeper.remove_file(part)
            caches.drop(part)
            self.uses.forget(part, ())
            self.fulltext.drop(part)
            self.log_trees.drop(part)
        self.past.clear()
        self.feed.wake(branch)

    def uses_of_memory(self) -> dict[str, Use]:
        """Return what is cached of each kind of index, by its name."""
        followers: dict[str, Follower[Any, Any] | VectorKeeper] = {
            "words": self.keeper,
            **self.facets,
        }
        if self.vectors is not None:
            followers["vectors"] = self.vectors
        return {name: follower.use for name, follower in followers.items()}

    def close(self) -> None:
        """Stop the listeners, wait for calls in progress and close the store. Does nothing in a forked process."""
        if os.getpid() != self._pid:
            return
        if self.store.owned_by_caller():
            raise StoreBusyError(self.store.path, "this thread is inside a batch: end it first")
        try:
            self.feed.close()
            self._expiries.close(self._latest)
            self._trimmer.close()
            self.erasures.close()
        finally:
            try:
                self.keeper.close()
            finally:
                self.past.clear()
                for each in list(self._exports):
                    with suppress(RecollectError):  # that what it read was not of one moment, which matters no more
                        each.close()
                self.store.close()
            self.feed.join()
            self.uses.write()
            self.fulltext.close()
            self.log_trees.close()
            self._vector_store.close()
            if self.vectors is not None:
                self.vectors.close()


class _OfThread(threading.local):
    """Values of each thread.

    Attributes:
        commits: The number of its durable commits.
    """

    commits = 0


class _Caches(NamedTuple):
    """Caches of a branch apart from its indexes of words and vectors."""

    usage_totals: UsageTotalsCache
    turns: TurnCache
    facets: Mapping[str, RecordFollower[Any, Any]]

    def drop(self, branch: Branch) -> None:
        """Discard what is cached of a branch."""
        self.usage_totals.drop(branch)
        for follower in self.facets.values():
            follower.drop_of(branch)
        self.turns.entries.clear()


def check_branch(view: View, branch: Branch) -> None:
    """Check that a branch exists.

    Raises:
        UnknownBranchError: It does not.
    """
    if view.base(branch.owner) is None and not view.head(branch.owner).seq and branch.owner.name != MAIN:
        raise UnknownBranchError(branch.owner.name, branch.owner.namespace)


def _now(micros: int, now: datetime) -> datetime:
    """Return a time as a datetime, or `now` if it is out of range, as in the head of a corrupt store."""
    try:
        return datetime_of(micros)
    except (OverflowError, ValueError):
        return now
