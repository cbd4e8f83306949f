"""Keeping indexes in step with the ledger.

There is one index for each line, made or loaded when it is first asked for and caught up by seq: a reader that finds
newer commits applies just what they touched. Views of it are immutable; a reader whose moment is older than the index
has already reached is told to look again, since a newer moment exists.

A worker in the background merges what came since into a new segment, keeps it in a file, and lets the index go on from
it. Indexes that were not asked for the longest are let go where all together take more memory than they may.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from queue import SimpleQueue

from recollect.engine.gc_pause import gc_paused
from recollect.engine.index.document_of import document_of, rules
from recollect.engine.index.record_cache import cache_of
from recollect.engine.index.write_cache import WriteCache, Written
from recollect.errors import NoMemoryError, RecollectError
from recollect.indexes.words.index import WordIndex, WordView
from recollect.indexes.words.merge import merged
from recollect.indexes.words.segment import Builder
from recollect.ledger.commits import Branch, Commit, Head
from recollect.ledger.merkle import EMPTY
from recollect.records.record import Record
from recollect.stores.base import Store, View
from recollect.stores.derived.segment_files import Made, SegmentFiles

_log = logging.getLogger("recollect")
#: A smaller index is made anew as fast as it is loaded.
KEPT_FROM = 1000
#: What came since is merged into the segment when it is so many documents, and such a part of it.
MERGED_FROM, MERGED_PART = 1000, 8
#: A line takes about so much beside its index and the records that stay at hand (`record_cache`): its tables, and
#: what may come to hand before it is counted again.
_BRANCH_BYTES, _UNCOUNTED_BYTES = 80_000, 65_536
#: From so many changes on they are bulk work: where no more is held than came, the index is made anew.
_BULK_CHANGES = 100
#: What was written last takes at most so much memory until an index has it.
_WRITE_CACHE_BYTES = 2**26
#: The worker goes on from a new segment while more commits than this are missing from it; the rest is the reader's.
_MAX_LAG = 20
#: An index that is so many records behind, at most, is brought up for who could do without it.
_MAX_BEHIND = 1000


@dataclass
class _CachedIndex:
    index: WordIndex = field(default_factory=WordIndex)
    seq: int = 0
    root: bytes = EMPTY
    view: WordView | None = None
    merging: bool = False
    counted: int = 0  # of its bytes, in the keeper's sum
    counted_cache_bytes: int = 0  # of those, what the records at hand take
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def cache_bytes(self) -> int:
        return cache_of(self.index.documents.rows).nbytes

    @property
    def nbytes(self) -> int:
        segment = self.index.segment
        held = self.index.tail_bytes + (0 if segment is None else segment.nbytes)
        return _BRANCH_BYTES + held + self.counted_cache_bytes


class IndexKeeper:
    """The indexes of a store.

    files    where segments are kept; None keeps none
    digests  whether documents carry the digests that vectors are kept under
    budget_bytes  how much memory all indexes together may take; at least one is held
    """

    def __init__(self, store: Store, files: SegmentFiles | None, *, digests: bool, budget_bytes: int) -> None:
        self._store = store
        self._files = files
        self._digests = digests
        self._rules = rules(digests)
        self._budget_bytes = budget_bytes
        self._indexes: dict[Branch, _CachedIndex] = {}  # the one that was asked for last comes last
        self._total_bytes = 0
        self._write_cache = WriteCache(_WRITE_CACHE_BYTES)
        self._unusable: dict[Branch, Made] = {}  # files of indexes that could not be used
        self._lock = threading.Lock()
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._worker: threading.Thread | None = None
        self._closed = False

    def note(self, commit: Commit, before: bytes, written: Written | None) -> None:
        """Take note of what a commit of this process did to the root before, now that it is durable."""
        if written is not None:
            self._write_cache.note(commit, before, written)

    def view(self, view: View, branch: Branch) -> WordView | None:
        """The index at a moment of the store; None where the index is already past it, so a newer moment exists.

        Cost: in proportion to the commits since the index was last asked for; at first, to what is held, unless a file
        has it.
        """
        return self._viewed(view, branch)[1]

    def loaded(self, view: View, branch: Branch, *, in_file: bool) -> WordView | None:
        """The index at a moment of the store, where it is there already or but a few records behind; else None.

        in_file  whether one that only a file has is read, too

        None is made here, and none is an error: whoever asks can do without. Cost: in proportion to the records that it
        is behind, at most _MAX_BEHIND; of one in a file, what reading that takes.
        """
        head = view.head(branch)
        try:
            cached = self._indexes.get(branch)
            if (cached is None or not cached.seq) and in_file:
                cached = self._load_near(view, branch, head)
            if cached is None:
                return None
            with cached.lock:
                return self._viewed(view, branch)[1] if _is_near(view, branch, head, cached.seq, cached.root) else None
        except MemoryError as error:
            _log.warning("the index of %r is not asked, which changes no answer: %s", branch.namespace, error)
            return None

    def _load_near(self, view: View, branch: Branch, head: Head) -> _CachedIndex | None:
        """The index that a file has, if it is near a moment."""
        made = None if self._files is None else self._files.made(branch, self._rules)
        if self._files is None or made is None or made == self._unusable.get(branch):
            return None
        if not _is_near(view, branch, head, made.seq, made.root_hash):
            return None
        found = self._files.read(branch, self._rules)
        if found is None or not _is_near(view, branch, head, found[1].seq, found[1].root_hash):
            self._unusable[branch] = made  # damaged: it is not read again at each call
            return None
        cached = self._cached(branch)
        with cached.lock:
            if not cached.seq:  # nobody was faster
                cached.index, cached.view = WordIndex(found[0]), None
                cached.seq, cached.root = found[1].seq, found[1].root_hash
        return cached

    def _viewed(self, view: View, branch: Branch) -> tuple[_CachedIndex, WordView | None]:
        head = view.head(branch)
        if not head.seq:  # there is nothing, and perhaps never will be: a name that somebody asked for
            self.drop(branch)
            return (nothing := _CachedIndex()), nothing.index.view()
        cached = self._cached(branch)
        with cached.lock:
            if head.seq < cached.seq:
                return cached, None
            if head.seq == cached.seq and cached.view is not None and head.root.hash == cached.root:
                return cached, cached.view
            try:
                self._catch_up(cached, view, branch)
            except BaseException as error:
                self._discard(branch, cached)  # the next reader starts anew, also one that waits for this very one
                if isinstance(error, MemoryError) and not isinstance(error, RecollectError):
                    raise NoMemoryError(self._store.path, "while its index was made") from error
                raise
            if cached.view is None:
                cached.view = cached.index.view()
            words = cached.view
            self._count(branch, cached)
        return cached, words

    def _cached(self, branch: Branch) -> _CachedIndex:
        with self._lock:
            cached = self._indexes.pop(branch, None) or _CachedIndex()
            self._indexes[branch] = cached
            return cached

    def _discard(self, branch: Branch, cached: _CachedIndex) -> None:
        with self._lock:
            if self._indexes.get(branch) is cached:
                del self._indexes[branch]
                self._total_bytes -= cached.counted

    def _catch_up(self, cached: _CachedIndex, view: View, branch: Branch) -> None:
        head = view.head(branch)
        if cached.seq and not _in_history(view, branch, head, cached.seq, cached.root):
            cached.seq = 0  # another history: the file was put back from a copy
        if cached.seq == 0 and head.seq:
            self._load_or_rebuild(cached, view, branch)
        if head.seq > cached.seq:
            since = cached.seq
            # Half caught up is no index. Said beforehand: an interruption leaves no time for it afterwards.
            cached.seq, cached.view = 0, None
            written = self._write_cache.since(branch, since, cached.root, head)
            changed = view.changed(branch, since) if written is None else list(written)
            if len(changed) >= max(_BULK_CHANGES, cached.index.documents.live_count):
                self._rebuild(cached, view, branch)  # sooner done than adding so many
                return
            if written is None:
                written = read_back(view, branch, changed)
            apply_written(cached.index, written, digests=self._digests)
            self._write_cache.drop(branch, head.seq)
        cached.seq, cached.root = head.seq, head.root.hash
        self._merge_if_due(cached, branch)

    def _load_or_rebuild(self, cached: _CachedIndex, view: View, branch: Branch) -> None:
        """From the segment that was kept, or from the records."""
        cached.view = None
        found = self._files.read(branch, self._rules) if self._files is not None else None
        if found is not None:
            segment, about = found
            if view.root_at(branch, about.seq) == about.root_hash:
                cached.index, cached.seq, cached.root = WordIndex(segment), about.seq, about.root_hash
                return
            _log.warning("the index of %r in a file is of another history; it is made anew", branch.namespace)
        self._rebuild(cached, view, branch)

    def _rebuild(self, cached: _CachedIndex, view: View, branch: Branch) -> None:
        """From the records. Cost: O(records), a fraction of what `apply_written` takes for as many."""
        head = view.head(branch)
        builder = Builder()
        with gc_paused():
            for record in self._records(view, branch, head):
                builder.add(document_of(record, digests=self._digests))
            segment = builder.segment()
        self._write_cache.drop(branch, head.seq)
        cached.index, cached.seq, cached.root = WordIndex(segment), head.seq, head.root.hash
        if len(builder) >= KEPT_FROM and self._files is not None:
            self._schedule_merge(branch, cached)

    def _records(self, view: View, branch: Branch, head: Head) -> Iterator[Record]:
        """The records that are held at a moment."""
        written = self._write_cache.since(branch, 0, EMPTY, head)
        if written is None:
            return (Record.load(stored.payload) for _, stored in view.versions(branch))
        return (record for record in written.values() if record is not None)

    def _merge_if_due(self, cached: _CachedIndex, branch: Branch) -> None:
        index = cached.index
        held = 0 if index.segment is None else index.segment.count
        came = index.documents.count - held
        died = index.documents.count - index.documents.live_count
        if max(came, died) >= max(MERGED_FROM, held // MERGED_PART):
            self._schedule_merge(branch, cached)

    # The worker

    def _schedule_merge(self, branch: Branch, cached: _CachedIndex) -> None:
        """Let the worker merge an index and keep it in a file."""
        with self._lock:
            if cached.merging or self._closed:
                return
            cached.merging = True
            if self._worker is None:
                worker = threading.Thread(target=self._work, name="recollect-indexes", daemon=True)
                try:
                    worker.start()
                except RuntimeError as error:  # no thread to be had: the index that there is serves on
                    _log.warning("an index could not be merged, which changes no answer: %s", error)
                    cached.merging = False
                    return
                self._worker = worker
        self._tasks.put(lambda: self._merge(branch, cached))

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except RecollectError as error:  # the store is closed, or cannot be read now: another time
                _log.warning("an index could not be merged, which changes no answer: %s", error)
            except Exception:  # noqa: BLE001 - whatever it is, the index that there is serves on
                _log.exception("an index could not be merged, which changes no answer")

    def _merge(self, branch: Branch, cached: _CachedIndex) -> None:
        try:
            self._merge_now(branch, cached)
        finally:
            cached.merging = False

    def _merge_now(self, branch: Branch, cached: _CachedIndex) -> None:
        with cached.lock:
            index, seq, root = cached.index, cached.seq, cached.root
            words = index.view()
        segment = index.segment
        if segment is None or index.documents.count != segment.count or words.table.live_count != segment.count:
            segment = merged(words)
        if self._files is not None and segment.count >= KEPT_FROM:
            self._files.write(branch, segment, Made(self._rules, seq, root.hex()))
        if segment is index.segment:
            return
        successor = WordIndex(segment)
        # Caught up outside the lock while much is missing, so that no reader waits for it.
        while True:
            with self._store.read() as view:
                head = view.head(branch)
                if self._closed or not _in_history(view, branch, head, seq, root):
                    return
                came = read_back(view, branch, view.changed(branch, seq))
                apply_written(successor, came, digests=self._digests)
                lag, seq, root = head.seq - seq, head.seq, head.root.hash
            if lag <= _MAX_LAG:
                break
        with cached.lock:
            if cached.index is index:  # though a reader may be some commits ahead: the next one catches up again
                cached.index, cached.seq, cached.root, cached.view = successor, seq, root, None

    def close(self) -> None:
        """Let the worker end what it is doing."""
        with self._lock:
            self._closed = True
            worker = self._worker
        if worker is not None:
            self._tasks.put(None)
            worker.join()
        self._write_cache.clear()
        with self._lock:
            self._indexes.clear()
            self._total_bytes = 0

    # What is held

    def recount(self, branch: Branch) -> None:
        """Count what came to hand of a line's records. To be called after a recall."""
        cached = self._indexes.get(branch)
        if cached is not None and cached.cache_bytes > cached.counted_cache_bytes + _UNCOUNTED_BYTES:
            self._count(branch, cached)

    def _count(self, branch: Branch, cached: _CachedIndex) -> None:
        """Count what an index takes now, and let go of others until all are within the budget."""
        cached.counted_cache_bytes = cached.cache_bytes
        nbytes = cached.nbytes
        with self._lock:
            if self._indexes.get(branch) is not cached:
                return
            self._total_bytes += nbytes - cached.counted
            cached.counted = nbytes
            while self._total_bytes > self._budget_bytes and len(self._indexes) > 1:
                oldest = next(iter(self._indexes))
                self._total_bytes -= self._indexes.pop(oldest).counted

    def drop(self, branch: Branch) -> None:
        """Let the index of a line be made anew."""
        with self._lock:
            cached = self._indexes.pop(branch, None)
            self._total_bytes -= 0 if cached is None else cached.counted

    def fork(self, view: View, branch: Branch) -> WordIndex:
        """A copy of the index at a moment that nobody can commit after (a writer waits), to go its own way."""
        while True:
            cached, _ = self._viewed(
                view, branch
            )  # this very one: another thread may let the line's index go meanwhile
            with cached.lock:
                if cached.seq == view.head(branch).seq:  # else a merged one has taken its place, some commits behind
                    return cached.index.fork()


def _in_history(view: View, branch: Branch, head: Head, seq: int, root: bytes) -> bool:
    """Whether the history at a moment has, at a seq, the commit of this root."""
    return (head.root.hash == root) if head.seq == seq else head.seq > seq and view.root_at(branch, seq) == root


def _is_near(view: View, branch: Branch, head: Head, seq: int, root: bytes) -> bool:
    """Whether an index that reflects a seq is of the history at a moment, and at most _MAX_BEHIND records behind."""
    if not seq or not 0 <= head.seq - seq <= _MAX_BEHIND or not _in_history(view, branch, head, seq, root):
        return False
    return head.seq == seq or len(view.changed(branch, seq)) <= _MAX_BEHIND


def read_back(view: View, branch: Branch, changed: Iterable[str]) -> Written:
    """What records some ids have at a moment."""
    changed = list(changed)
    with _gc_paused_if_bulk(len(changed)):
        held = view.several(branch, changed)
        return {each: Record.load(held[each].payload) if each in held else None for each in changed}


def apply_written(index: WordIndex, written: Written, *, digests: bool = True) -> None:
    """Bring some ids up to what was written: take the record of each out, and put in what it is now."""
    with _gc_paused_if_bulk(len(written)):
        documents = [document_of(record, digests=digests) for record in written.values() if record is not None]
        index.apply(written, sorted(documents, key=lambda document: (document.place, document.id)))


def _gc_paused_if_bulk(changes: int) -> AbstractContextManager[None]:
    return gc_paused() if changes > _BULK_CHANGES else nullcontext()
