"""Keeping word indexes up to date with the ledger.

There is one index per branch. It is loaded or built on first use and then caught up by seq: a reader that finds newer
commits applies only their changes. Views of an index are immutable. A reader whose view of the store is older than the
index gets no index and must open a new view.

A background worker merges recent changes into a new segment, saves it to a file, and replaces the index by one that is
based on it. Where machines share segments, it also writes the file there, and a machine without a usable file loads
that. If all indexes together exceed their memory budget, the least recently used ones are evicted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import tzinfo
from queue import SimpleQueue
from typing import NamedTuple

from recollect.engine.follower import Follower, Tagged, changed_since, in_history
from recollect.engine.index.caches import WriteCache, Written, cache_of, metadata_bytes
from recollect.engine.index.document_of import document_of, rules
from recollect.errors import NoMemoryError, RecollectError
from recollect.indexes.documents.columns import Document
from recollect.indexes.kernels.blocks import bytes_of, prepare
from recollect.indexes.kernels.choose import chosen
from recollect.indexes.words.index import WordIndex, WordView
from recollect.indexes.words.merge import merged
from recollect.indexes.words.segment import Builder, Segment
from recollect.ledger.commits import MAIN, Branch, Commit, Head
from recollect.ledger.merkle import EMPTY, is_redacted
from recollect.records.record import Record
from recollect.stores.base import Store, View
from recollect.stores.derived.segment_files import SegmentFiles
from recollect.stores.derived.shared import Made
from recollect.stores.derived.sharing import SegmentSharing

_log = logging.getLogger("recollect")
#: Smallest number of records for which an index file is kept: it is loaded in 4 ms, and built in 40.
KEPT_FROM = 100
#: Added documents are merged into the segment once they are this many, and 1/8 of the segment: the next process that
#: loads it must apply the others, each of which takes longer than in a new index.
MERGED_FROM, MERGED_PART = 100, 8
#: The same for removed documents, at 1/128, since each keeps searches from leaving out its block.
MERGED_REMOVED_FROM, MERGED_REMOVED_PART = 1000, 128
#: Approximate memory of a branch in addition to its index and its caches, and how far the caches may grow before their
#: size is updated in the sum.
BRANCH_BYTES, _UNCOUNTED_BYTES = 80_000, 65_536
#: If there are at least this many changes, and as many as live records, the index is rebuilt.
BULK_CHANGES = 100
#: Memory limit of the write cache.
_WRITE_CACHE_BYTES = 2**26
#: The worker catches a new segment up while it is more than this many commits behind; readers apply the rest.
_MAX_LAG = 20
#: `find`, `count` and `forget_where` use an index only if at most this many records must be applied to catch it up.
_MAX_BEHIND = 1000


class _Viewed(NamedTuple):
    """A view of an index, with the seq and root that it reflects."""

    words: WordView
    seq: int
    root: bytes


@dataclass
class _Cached:
    """A word index and its newest view."""

    index: WordIndex
    view: _Viewed | None = None
    counted_bytes: int = 0  # of the caches, as they were last counted

    @property
    def cached_bytes(self) -> int:
        """The memory of the caches that questions fill: records, and what is computed for the words of a segment."""
        rows, segment = self.index.documents.rows, self.index.segment
        of_words = 0 if segment is None else bytes_of(segment)
        of_names = self.index.documents.speakers.nbytes
        of_records = cache_of(rows).nbytes + cache_of(rows, standing=True).nbytes + metadata_bytes(rows)
        return of_records + of_words + of_names


class IndexKeeper(Follower[Branch, _Cached]):
    """The word indexes of a store.

    Args:
        files: The index files; None to keep none.
        sharing: What this machine shares of them with others; None if there is nothing to share.
        digest_key: The key of the digests that vectors are stored under; None: documents have none.
        zone: The time zone of the store.
        budget_bytes: Memory limit of all indexes together. At least one index is kept.
    """

    def __init__(
        self,
        store: Store,
        files: SegmentFiles | None,
        sharing: SegmentSharing | None = None,
        *,
        digest_key: bytes | None,
        zone: tzinfo,
        budget_bytes: int,
    ) -> None:
        super().__init__(budget_bytes)
        self._store = store
        self._files = files
        self._sharing = sharing
        self._digest_key = digest_key
        self.zone = zone
        self._rules = rules(digest_key is not None, zone)
        self._write_cache = WriteCache(_WRITE_CACHE_BYTES)
        self._unusable: dict[Branch, Made] = {}  # index files that could not be used
        self._merging: set[Branch] = set()  # indexes that the worker merges, or is going to merge
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
        if not view.head(branch).seq:  # the branch has no commit: keep no index for it
            self.drop(branch)
            return WordIndex().view()
        entry = self.at(view, branch, branch)
        if entry is None:
            return None
        with entry.lock:
            if not entry.reflects(view.head(branch)):  # another thread has caught it up meanwhile
                return self.view(view, branch)
            assert entry.value is not None
            if entry.value.view is None:
                entry.value.view = _Viewed(entry.value.index.view(), entry.seq, entry.root)
                self.count(branch, entry)
            return entry.value.view.words

    def at(self, view: View, branch: Branch, key: Branch, *, newest: bool = False) -> Tagged[_Cached] | None:
        """Return the entry of a branch, caught up to a view. See `Follower.at`."""
        with self.building():
            return super().at(view, branch, key, newest=newest)

    @contextmanager
    def building(self) -> Iterator[None]:
        """Raise NoMemoryError if memory runs out while an index is built in the block."""
        try:
            yield
        except MemoryError as error:
            if isinstance(error, RecollectError):
                raise
            raise NoMemoryError(self._store.path, "while its index was built") from error

    def current(self, view: View, branch: Branch) -> WordView | None:
        """Return the index at a view if it is loaded and reflects exactly that view. Never loads or changes it."""
        entry, head = self.entries.get(branch), view.head(branch)
        cached = None if entry is None else entry.value
        viewed = None if cached is None else cached.view
        if viewed is None or (viewed.seq, viewed.root) != (head.seq, head.root.hash):
            return None
        return viewed.words

    def loaded(self, view: View, branch: Branch, *, in_file: bool) -> WordView | None:
        """Return the index at a view if that is cheap: it is loaded and at most `_MAX_BEHIND` records behind.

        Never builds an index; returns None if none is available or memory is short.

        Args:
            view: The view of the store.
            in_file: If the index is not loaded, load it from its file.

        Cost:
            In proportion to the number of records that the index is behind, and to the file if it is loaded.
        """
        try:
            entry = self.entries.get(branch)
            if (entry is None or not entry.seq) and in_file:
                entry = self._load_near(view, branch)
            if entry is None:
                return None
            with entry.lock:
                return self.view(view, branch) if _is_near(view, branch, entry.seq, entry.root) else None
        except MemoryError as error:
            _log.warning("the index of %r is not used, which changes no result: %s", branch.namespace, error)
            return None

    def _load_near(self, view: View, branch: Branch) -> Tagged[_Cached] | None:
        """Load the index from its file, if it is at most `_MAX_BEHIND` records behind the view."""
        made = None if self._files is None else self._files.made(branch, self._rules)
        if self._files is None or made is None or made == self._unusable.get(branch):
            return None
        if not _is_near(view, branch, made.seq, made.root_hash):
            return None
        found = self._files.read(branch, self._rules)
        if found is None or not _is_near(view, branch, found[1].seq, found[1].root_hash):
            self._unusable[branch] = made  # corrupt: do not read it again at each call
            return None
        entry = self.entry(branch)
        with entry.lock:
            if not entry.seq:  # no other thread has loaded it meanwhile
                entry.set(_Cached(WordIndex(found[0])), found[1].seq, found[1].root_hash)
        return entry

    # What the follower calls

    def load(self, view: View, branch: Branch, key: Branch) -> tuple[_Cached, int, bytes] | None:
        """Return the index in the file, or else the shared one; None if neither can be used."""
        found = None if self._files is None else self._files.read(branch, self._rules)
        if found is None:
            return self._load_shared(view, branch)
        segment, made = found
        if view.root_at(branch, made.seq) != made.root_hash:
            _log.warning("the index file of %r belongs to another history; it is rebuilt", branch.namespace)
            return self._load_shared(view, branch)
        self._share(branch)  # it may be of a time when nothing was shared
        return _Cached(WordIndex(segment)), made.seq, made.root_hash

    def _load_shared(self, view: View, branch: Branch) -> tuple[_Cached, int, bytes] | None:
        """Return the index that machines share; None if there is none, or it cannot be used."""
        sharing = self._sharing
        found = None if sharing is None else sharing.read(branch, self._rules, view.head(branch).seq)
        if sharing is None or found is None:
            return None
        segment, made, data = found
        if view.root_at(branch, made.seq) != made.root_hash:
            _log.warning("the shared index of %r belongs to another history; it is rebuilt", branch.namespace)
            sharing.distrust(branch)
            return None
        if view.has_erased(branch, made.seq):  # by a release that does not know what is shared
            sharing.distrust(branch)
            return None
        self._schedule(lambda: sharing.save(branch, data, lambda: self._is_unerased(branch, made)))
        return _Cached(WordIndex(segment)), made.seq, made.root_hash

    def start(self, view: View, branch: Branch, key: Branch) -> _Cached:
        """Build the index from the records.

        Cost:
            O(records), a fraction of the cost of `apply_written` for as many records.
        """
        if branch.name != MAIN and (forked := self._from_base(view, branch)) is not None:
            return forked
        head = view.head(branch)
        builder = Builder()
        for record in self._records(view, branch, head):
            builder.add(self.document_of(record))
        segment = builder.segment()
        self._write_cache.drop(branch, head.seq)
        if len(builder) >= KEPT_FROM and self._files is not None:
            self._schedule_merge(branch)
        return _Cached(WordIndex(segment))

    def _from_base(self, view: View, branch: Branch) -> _Cached | None:
        """Return the index of a branch as a fork of that of the branch that it continues; None if that is no gain.

        Cost:
            Proportional to the changes of both since the commit that it continues.
        """
        base = view.base(branch)
        index = None if base is None or not base.seq else self.copy(view, base.branch)
        if base is None or index is None:
            return None
        changed = {*view.changed(base.branch, base.seq), *view.changed(branch, base.seq)}
        if any(map(is_redacted, changed)) or len(changed) >= max(BULK_CHANGES, index.documents.live_count):
            return None
        apply_written(index, read_back(view, branch, changed), self.document_of)
        return _Cached(index)

    def document_of(self, record: Record) -> Document:
        """Return the document of a record in the indexes of this store."""
        return document_of(record, self.zone, self._digest_key)

    def _records(self, view: View, branch: Branch, head: Head) -> Iterator[Record]:
        """Return the live records of a view."""
        written = self._write_cache.since(branch, 0, EMPTY, head)
        if written is None:
            return (Record.load(stored.payload) for _, stored in view.versions(branch))
        return (record for record in written.values() if record is not None)

    def catch_up(
        self, value: _Cached, view: View, branch: Branch, key: Branch, tag: tuple[int, bytes]
    ) -> _Cached | None:
        """Apply the changes since a commit; None if rebuilding is faster."""
        head = view.head(branch)
        value.view = None
        written = self._write_cache.since(branch, *tag, head)
        erased = written is None and view.has_erased(branch, tag[0])  # the write cache has no erasures
        changed = changed_since(view, branch, *tag) if written is None else list(written)
        if changed is None or len(changed) >= max(BULK_CHANGES, value.index.documents.live_count):
            return None
        if written is None:
            written = read_back(view, branch, changed)
        apply_written(value.index, written, self.document_of)
        self._write_cache.drop(branch, head.seq)
        if erased:
            value.index = WordIndex(merged(value.index.view()))  # without what was removed
        index = value.index
        in_segment = 0 if index.segment is None else index.segment.count
        added = index.documents.count - in_segment
        removed = index.documents.count - index.documents.live_count
        save_again = erased and in_segment >= KEPT_FROM
        many = added >= max(MERGED_FROM, in_segment // MERGED_PART)
        if save_again or many or removed >= max(MERGED_REMOVED_FROM, in_segment // MERGED_REMOVED_PART):
            self._schedule_merge(branch)
        return value

    def nbytes(self, value: _Cached) -> int:
        """Return the approximate memory of an index and its record cache."""
        segment = value.index.segment
        index_bytes = value.index.tail_bytes + (0 if segment is None else segment.nbytes)
        value.counted_bytes = value.cached_bytes
        return BRANCH_BYTES + index_bytes + value.counted_bytes

    # The worker

    def _schedule_merge(self, branch: Branch) -> None:
        """Make the worker merge the index of a branch and save it to its file."""
        with self._lock:
            if branch in self._merging:
                return
            self._merging.add(branch)
        if not self._schedule(lambda: self._merge(branch)):
            with self._lock:
                self._merging.discard(branch)

    def _schedule(self, task: Callable[[], None]) -> bool:
        """Make the worker run a task. Return whether it is going to."""
        with self._lock:
            if self._closed:
                return False
            if self._worker is None:
                worker = threading.Thread(target=self._work, name="recollect-indexes", daemon=True)
                try:
                    worker.start()
                except RuntimeError as error:  # no thread can be started: the current index remains in use
                    _log.warning("an index could not be merged, which changes no result: %s", error)
                    return False
                self._worker = worker
            self._tasks.put(task)
        return True

    def _share(self, branch: Branch) -> None:
        """Make the worker write the file of a branch for other machines, if it is worth that."""
        sharing = self._sharing
        if sharing is not None:
            self._schedule(lambda: sharing.share(branch, self._rules))

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except RecollectError as error:  # the store is closed or cannot be read: it is merged another time
                _log.warning("an index could not be merged, which changes no result: %s", error)
            except Exception:  # noqa: BLE001 - after any error the current index remains in use
                _log.exception("an index could not be merged, which changes no result")

    def _merge(self, branch: Branch) -> None:
        try:
            entry = self.entries.peek(branch)
            if entry is not None:
                self._merge_now(branch, entry)
                if self._sharing is not None:  # last: it may take long
                    self._sharing.share(branch, self._rules)
        finally:
            with self._lock:
                self._merging.discard(branch)

    def _merge_now(self, branch: Branch, entry: Tagged[_Cached]) -> None:
        with entry.lock:
            if entry.value is None or not entry.seq:
                return
            index, seq, root = entry.value.index, entry.seq, entry.root
            words = index.view()
        segment = index.segment
        if segment is None or index.documents.count != segment.count or words.table.live_count != segment.count:
            segment = merged(words)
        if self._files is not None and segment.count >= KEPT_FROM:
            made = Made(self._rules, seq, root.hex())
            self._files.write(branch, segment, made, lambda: self._is_unerased(branch, made))
        if segment is index.segment:
            return
        successor = WordIndex(segment)
        if index.segment is not None:
            prepare(chosen(), segment, successor.view().table, index.segment)
        # Catch up outside the lock while the lag is large, so that readers do not wait.
        while True:
            with self._store.read() as view:
                head = view.head(branch)
                if self._closed or not in_history(view, branch, seq, root) or view.has_erased(branch, seq):
                    return
                written = read_back(view, branch, view.changed(branch, seq))
                apply_written(successor, written, self.document_of)
                lag, seq, root = head.seq - seq, head.seq, head.root.hash
            if lag <= _MAX_LAG:
                break
        with entry.lock:
            # The successor may be some commits behind: the next reader catches it up.
            if entry.value is not None and entry.value.index is index:
                entry.set(_Cached(successor), seq, root)

    def _is_unerased(self, branch: Branch, made: Made) -> bool:
        """Return whether nothing was erased since a segment was built, so that it may be saved."""
        with self._store.read() as view:
            return in_history(view, branch, made.seq, made.root_hash) and not view.has_erased(branch, made.seq)

    def remove_erased(self, view: View, branch: Branch) -> None:
        """Remove what was erased from the index of a branch, if it is loaded, and from the write cache."""
        self._write_cache.clear()
        if self.entries.peek(branch) is not None:
            try:
                self.at(view, branch, branch)
            except RecollectError:  # it is built again when it is used
                self.drop(branch)

    def remove_file(self, branch: Branch) -> bool:
        """Remove the index file of a branch. Return False if another process is writing one."""
        return self._files is None or self._files.remove(branch)

    def remove_shared(self, branch: Branch) -> None:
        """Remove the segments of a branch that machines share and that may contain what was erased.

        Raises:
            StoreError: They could not be removed.
        """
        if self._sharing is not None:
            self._sharing.remove_erased(branch)

    def close(self) -> None:
        """Wait for the worker to finish its current task, and release all indexes."""
        with self._lock:
            self._closed = True
            worker = self._worker
        if worker is not None:
            self._tasks.put(None)
            worker.join()
        self._write_cache.clear()
        self.entries.clear()

    def recount(self, branch: Branch) -> None:
        """Count the record cache of a branch again. Called after each recall."""
        entry = self.entries.peek(branch)
        cached = None if entry is None else entry.value
        if entry is not None and cached and cached.cached_bytes > cached.counted_bytes + _UNCOUNTED_BYTES:
            self.count(branch, entry)

    def copy(self, view: View, branch: Branch) -> WordIndex | None:
        """Return a copy of the index at a view, to be changed independently; None if the index is already newer."""
        entry = self.at(view, branch, branch)
        if entry is None:
            return None
        with entry.lock:
            if entry.value is None or not entry.reflects(view.head(branch)):  # another thread has caught it up
                return None
            return entry.value.index.fork()

    def segment(self, branch: Branch) -> Segment | None:
        """Return the segment of the index of a branch, if it is loaded."""
        entry = self.entries.peek(branch)
        cached = None if entry is None else entry.value
        return None if cached is None else cached.index.segment

    def fork(self, view: View, branch: Branch) -> WordIndex:
        """Return a copy of the index at a view, to be changed independently. The caller must hold the write lock."""
        while True:
            # Use this object, as another thread may evict the branch's index meanwhile.
            entry = self.at(view, branch, branch, newest=True)
            assert entry is not None
            with entry.lock:
                if entry.value is not None and entry.reflects(view.head(branch)):  # else the worker has replaced it
                    return entry.value.index.fork()


def _is_near(view: View, branch: Branch, seq: int, root: bytes) -> bool:
    """Return whether an index belongs to the history of a view and is at most `_MAX_BEHIND` records behind."""
    if not seq or not 0 <= view.head(branch).seq - seq <= _MAX_BEHIND:
        return False
    changed = changed_since(view, branch, seq, root)
    return changed is not None and len(changed) <= _MAX_BEHIND


def read_back(view: View, branch: Branch, changed: Iterable[str]) -> Written:
    """Read the records of some ids from a view; None for those that have none."""
    changed = list(changed)
    stored = view.several(branch, changed)
    return {each: Record.load(stored[each].payload) if each in stored else None for each in changed}


def apply_written(index: WordIndex, written: Written, converted: Callable[[Record], Document]) -> None:
    """Apply changes to an index: remove the document of each id, and insert that of its new record."""
    documents = [converted(record) for record in written.values() if record is not None]
    index.apply(written, sorted(documents, key=lambda document: (document.sort_key, document.id)))
