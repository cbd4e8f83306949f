"""Keeping word indexes up to date with the ledger.

There is one index per branch. It is loaded or built on first use and then caught up by seq: a reader that finds newer
commits applies only their changes. Views of an index are immutable. A reader whose view of the store is older than the
index gets no index and must open a new view.

A background worker merges recent changes into a new segment, saves it to a file, and replaces the index by one that is
based on it. If all indexes together exceed their memory budget, the least recently used ones are evicted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from queue import SimpleQueue

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
from recollect.stores.derived_protocols import Made, Segments

_log = logging.getLogger("recollect")
#: Smallest number of records for which an index file is kept: a smaller index is built as fast as it is loaded.
KEPT_FROM = 1000
#: Changes are merged into the segment once they are this many documents, and this fraction (1/8) of the segment.
MERGED_FROM, MERGED_PART = 1000, 8
#: Approximate memory of a branch in addition to its index and its record cache, and how far the record cache may grow
#: before its size is updated in the sum.
_BRANCH_BYTES, _UNCOUNTED_BYTES = 80_000, 65_536
#: If there are at least this many changes, and as many as live records, the index is rebuilt.
_BULK_CHANGES = 100
#: Memory limit of the write cache.
_WRITE_CACHE_BYTES = 2**26
#: The worker catches a new segment up while it is more than this many commits behind; readers apply the rest.
_MAX_LAG = 20
#: `find`, `count` and `forget_where` use an index only if at most this many records must be applied to catch it up.
_MAX_BEHIND = 1000


@dataclass
class _CachedIndex:
    index: WordIndex = field(default_factory=WordIndex)
    seq: int = 0  # of the commit that the index reflects; 0 if it is not usable
    root: bytes = EMPTY
    view: WordView | None = None
    merging: bool = False
    counted: int = 0  # its size as included in the keeper's sum
    counted_cache_bytes: int = 0  # the part of that which is its record cache
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def cache_bytes(self) -> int:
        return cache_of(self.index.documents.rows).nbytes

    @property
    def nbytes(self) -> int:
        segment = self.index.segment
        index_bytes = self.index.tail_bytes + (0 if segment is None else segment.nbytes)
        return _BRANCH_BYTES + index_bytes + self.counted_cache_bytes


class IndexKeeper:
    """The word indexes of a store.

    Args:
        store: The store.
        files: The index files; None to keep none.
        digests: Include in documents the digests that vectors are stored under.
        budget_bytes: Memory limit of all indexes together. At least one index is kept.
    """

    def __init__(self, store: Store, files: Segments | None, *, digests: bool, budget_bytes: int) -> None:
        self._store = store
        self._files = files
        self._digests = digests
        self._rules = rules(digests)
        self._budget_bytes = budget_bytes
        self._indexes: dict[Branch, _CachedIndex] = {}  # the most recently used one is last
        self._total_bytes = 0
        self._write_cache = WriteCache(_WRITE_CACHE_BYTES)
        self._unusable: dict[Branch, Made] = {}  # index files that could not be used
        self._lock = threading.Lock()
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._worker: threading.Thread | None = None
        self._closed = False

    def note(self, commit: Commit, before: bytes, written: Written | None) -> None:
        """Add a durable commit of this process to the write cache; `before` is the root that it followed."""
        if written is not None:
            self._write_cache.note(commit, before, written)

    def view(self, view: View, branch: Branch) -> WordView | None:
        """Return the index at a view of the store; None if the index is already newer, so that a newer view exists.

        Cost:
            In proportion to the changes since the index was last used. On first use, in proportion to the index file,
            or, if there is none, to the number of records.
        """
        return self._viewed(view, branch)[1]

    def loaded(self, view: View, branch: Branch, *, in_file: bool) -> WordView | None:
        """Return the index at a view if that is cheap: it is loaded and at most `_MAX_BEHIND` records behind.

        Never builds an index; returns None if none is available or memory is short.

        Args:
            view: The view of the store.
            branch: The branch.
            in_file: If the index is not loaded, load it from its file.

        Cost:
            In proportion to the number of records that the index is behind, and to the file if it is loaded.
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
            _log.warning("the index of %r is not used, which changes no result: %s", branch.namespace, error)
            return None

    def _load_near(self, view: View, branch: Branch, head: Head) -> _CachedIndex | None:
        """Load the index from its file, if it is at most `_MAX_BEHIND` records behind the view."""
        made = None if self._files is None else self._files.made(branch, self._rules)
        if self._files is None or made is None or made == self._unusable.get(branch):
            return None
        if not _is_near(view, branch, head, made.seq, made.root_hash):
            return None
        found = self._files.read(branch, self._rules)
        if found is None or not _is_near(view, branch, head, found[1].seq, found[1].root_hash):
            self._unusable[branch] = made  # corrupt: do not read it again at each call
            return None
        cached = self._cached(branch)
        with cached.lock:
            if not cached.seq:  # no other thread has loaded it meanwhile
                cached.index, cached.view = WordIndex(found[0]), None
                cached.seq, cached.root = found[1].seq, found[1].root_hash
        return cached

    def _viewed(self, view: View, branch: Branch) -> tuple[_CachedIndex, WordView | None]:
        head = view.head(branch)
        if not head.seq:  # the branch has no commit: keep no index for it
            self.drop(branch)
            return (empty := _CachedIndex()), empty.index.view()
        cached = self._cached(branch)
        with cached.lock:
            if head.seq < cached.seq:
                return cached, None
            if head.seq == cached.seq and cached.view is not None and head.root.hash == cached.root:
                return cached, cached.view
            try:
                self._catch_up(cached, view, branch)
            except BaseException as error:
                self._discard(branch, cached)  # the next reader rebuilds it, even one that waits for this lock
                if isinstance(error, MemoryError) and not isinstance(error, RecollectError):
                    raise NoMemoryError(self._store.path, "while its index was built") from error
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
            cached.seq = 0  # another history: the store was restored from a copy
        if cached.seq == 0 and head.seq:
            self._load_or_rebuild(cached, view, branch)
        if head.seq > cached.seq:
            since = cached.seq
            # Mark the index as unusable first: an interruption may leave it partly updated.
            cached.seq, cached.view = 0, None
            written = self._write_cache.since(branch, since, cached.root, head)
            changed = view.changed(branch, since) if written is None else list(written)
            if len(changed) >= max(_BULK_CHANGES, cached.index.documents.live_count):
                self._rebuild(cached, view, branch)  # faster than applying this many changes
                return
            if written is None:
                written = read_back(view, branch, changed)
            apply_written(cached.index, written, digests=self._digests)
            self._write_cache.drop(branch, head.seq)
        cached.seq, cached.root = head.seq, head.root.hash
        self._merge_if_due(cached, branch)

    def _load_or_rebuild(self, cached: _CachedIndex, view: View, branch: Branch) -> None:
        """Load the index from its file, or else build it from the records."""
        cached.view = None
        found = self._files.read(branch, self._rules) if self._files is not None else None
        if found is not None:
            segment, about = found
            if view.root_at(branch, about.seq) == about.root_hash:
                cached.index, cached.seq, cached.root = WordIndex(segment), about.seq, about.root_hash
                return
            _log.warning("the index file of %r belongs to another history; it is rebuilt", branch.namespace)
        self._rebuild(cached, view, branch)

    def _rebuild(self, cached: _CachedIndex, view: View, branch: Branch) -> None:
        """Build the index from the records.

        Cost:
            O(records), a fraction of the cost of `apply_written` for as many records.
        """
        head = view.head(branch)
        builder = Builder()
        for record in self._records(view, branch, head):
            builder.add(document_of(record, digests=self._digests))
        segment = builder.segment()
        self._write_cache.drop(branch, head.seq)
        cached.index, cached.seq, cached.root = WordIndex(segment), head.seq, head.root.hash
        if len(builder) >= KEPT_FROM and self._files is not None:
            self._schedule_merge(branch, cached)

    def _records(self, view: View, branch: Branch, head: Head) -> Iterator[Record]:
        """Return the live records of a view."""
        written = self._write_cache.since(branch, 0, EMPTY, head)
        if written is None:
            return (Record.load(stored.payload) for _, stored in view.versions(branch))
        return (record for record in written.values() if record is not None)

    def _merge_if_due(self, cached: _CachedIndex, branch: Branch) -> None:
        index = cached.index
        in_segment = 0 if index.segment is None else index.segment.count
        added = index.documents.count - in_segment
        removed = index.documents.count - index.documents.live_count
        if max(added, removed) >= max(MERGED_FROM, in_segment // MERGED_PART):
            self._schedule_merge(branch, cached)

    # The worker

    def _schedule_merge(self, branch: Branch, cached: _CachedIndex) -> None:
        """Make the worker merge an index and save it to its file."""
        with self._lock:
            if cached.merging or self._closed:
                return
            cached.merging = True
            if self._worker is None:
                worker = threading.Thread(target=self._work, name="recollect-indexes", daemon=True)
                try:
                    worker.start()
                except RuntimeError as error:  # no thread can be started: the current index remains in use
                    _log.warning("an index could not be merged, which changes no result: %s", error)
                    cached.merging = False
                    return
                self._worker = worker
        self._tasks.put(lambda: self._merge(branch, cached))

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except RecollectError as error:  # the store is closed or cannot be read: it is merged another time
                _log.warning("an index could not be merged, which changes no result: %s", error)
            except Exception:  # noqa: BLE001 - after any error the current index remains in use
                _log.exception("an index could not be merged, which changes no result")

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
        # Catch up outside the lock while the lag is large, so that readers do not wait.
        while True:
            with self._store.read() as view:
                head = view.head(branch)
                if self._closed or not _in_history(view, branch, head, seq, root):
                    return
                written = read_back(view, branch, view.changed(branch, seq))
                apply_written(successor, written, digests=self._digests)
                lag, seq, root = head.seq - seq, head.seq, head.root.hash
            if lag <= _MAX_LAG:
                break
        with cached.lock:
            if cached.index is index:  # the successor may be some commits behind: the next reader catches it up
                cached.index, cached.seq, cached.root, cached.view = successor, seq, root, None

    def close(self) -> None:
        """Wait for the worker to finish its current task, and release all indexes."""
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

    # Memory

    def recount(self, branch: Branch) -> None:
        """Update the counted size of a branch's record cache. Called after each recall."""
        cached = self._indexes.get(branch)
        if cached is not None and cached.cache_bytes > cached.counted_cache_bytes + _UNCOUNTED_BYTES:
            self._count(branch, cached)

    def _count(self, branch: Branch, cached: _CachedIndex) -> None:
        """Update the counted size of an index, and evict others until all are within the budget."""
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
        """Remove the index of a branch, so that it is rebuilt on next use."""
        with self._lock:
            cached = self._indexes.pop(branch, None)
            self._total_bytes -= 0 if cached is None else cached.counted

    def fork(self, view: View, branch: Branch) -> WordIndex:
        """Return a copy of the index at a view, to be changed independently. The caller must hold the write lock."""
        while True:
            # Use this object, as another thread may evict the branch's index meanwhile.
            cached, _ = self._viewed(view, branch)
            with cached.lock:
                if cached.seq == view.head(branch).seq:  # else the worker has replaced it by one that is behind
                    return cached.index.fork()


def _in_history(view: View, branch: Branch, head: Head, seq: int, root: bytes) -> bool:
    """Return whether the history of a view contains a commit with this seq and root."""
    return (head.root.hash == root) if head.seq == seq else head.seq > seq and view.root_at(branch, seq) == root


def _is_near(view: View, branch: Branch, head: Head, seq: int, root: bytes) -> bool:
    """Return whether an index belongs to the history of a view and is at most `_MAX_BEHIND` records behind."""
    if not seq or not 0 <= head.seq - seq <= _MAX_BEHIND or not _in_history(view, branch, head, seq, root):
        return False
    return head.seq == seq or len(view.changed(branch, seq)) <= _MAX_BEHIND


def read_back(view: View, branch: Branch, changed: Iterable[str]) -> Written:
    """Read the records of some ids from a view; None for those that have none."""
    changed = list(changed)
    stored = view.several(branch, changed)
    return {each: Record.load(stored[each].payload) if each in stored else None for each in changed}


def apply_written(index: WordIndex, written: Written, *, digests: bool = True) -> None:
    """Apply changes to an index: remove the document of each id, and insert that of its new record."""
    documents = [document_of(record, digests=digests) for record in written.values() if record is not None]
    index.apply(written, sorted(documents, key=lambda document: (document.sort_key, document.id)))
