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

from recollect.engine.gc_pause import uncollected
from recollect.engine.index.document_of import document_of, rules
from recollect.engine.index.record_cache import cache_of
from recollect.engine.index.write_cache import Recent, Written
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
_MANY = 100
#: What was written last takes at most so much memory until an index has it.
_RECENT_BYTES = 2**26
#: The worker goes on from a new segment while more commits than this are missing from it; the rest is the reader's.
_LAG = 20
#: An index that is so many records behind, at most, is brought up for who could do without it.
_NEAR = 1000


@dataclass
class _Kept:
    index: WordIndex = field(default_factory=WordIndex)
    seq: int = 0
    root: bytes = EMPTY
    view: WordView | None = None
    merging: bool = False
    counted: int = 0  # of its bytes, in the keeper's sum
    counted_cached: int = 0  # of those, what the records at hand take
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def cached_bytes(self) -> int:
        return cache_of(self.index.documents.rows).nbytes

    @property
    def nbytes(self) -> int:
        segment = self.index.segment
        held = self.index.tail_bytes + (0 if segment is None else segment.nbytes)
        return _BRANCH_BYTES + held + self.counted_cached


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
        self._kept: dict[Branch, _Kept] = {}  # the one that was asked for last comes last
        self._held_bytes = 0
        self._recent = Recent(_RECENT_BYTES)
        self._refused: dict[Branch, Made] = {}  # files of indexes that could not be used
        self._lock = threading.Lock()
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._worker: threading.Thread | None = None
        self._closed = False

    def note(self, commit: Commit, before: bytes, written: Written | None) -> None:
        """Take note of what a commit of this process did to the root before, now that it is durable."""
        if written is not None:
            self._recent.note(commit, before, written)

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
        is behind, at most _NEAR; of one in a file, what reading that takes.
        """
        head = view.head(branch)
        try:
            kept = self._kept.get(branch)
            if (kept is None or not kept.seq) and in_file:
                kept = self._of_file(view, branch, head)
            if kept is None:
                return None
            with kept.lock:
                return self._viewed(view, branch)[1] if _is_near(view, branch, head, kept.seq, kept.root) else None
        except MemoryError as error:
            _log.warning("the index of %r is not asked, which changes no answer: %s", branch.namespace, error)
            return None

    def _of_file(self, view: View, branch: Branch, head: Head) -> _Kept | None:
        """The index that a file has, if it is near a moment."""
        made = None if self._files is None else self._files.made(branch, self._rules)
        if self._files is None or made is None or made == self._refused.get(branch):
            return None
        if not _is_near(view, branch, head, made.seq, made.root_hash):
            return None
        found = self._files.read(branch, self._rules)
        if found is None or not _is_near(view, branch, head, found[1].seq, found[1].root_hash):
            self._refused[branch] = made  # damaged: it is not read again at each call
            return None
        kept = self._of(branch)
        with kept.lock:
            if not kept.seq:  # nobody was faster
                kept.index, kept.view = WordIndex(found[0]), None
                kept.seq, kept.root = found[1].seq, found[1].root_hash
        return kept

    def _viewed(self, view: View, branch: Branch) -> tuple[_Kept, WordView | None]:
        head = view.head(branch)
        if not head.seq:  # there is nothing, and perhaps never will be: a name that somebody asked for
            self.drop(branch)
            return (nothing := _Kept()), nothing.index.view()
        kept = self._of(branch)
        with kept.lock:
            if head.seq < kept.seq:
                return kept, None
            if head.seq == kept.seq and kept.view is not None and head.root.hash == kept.root:
                return kept, kept.view
            try:
                self._bring_up(kept, view, branch)
            except BaseException as error:
                self._let_go(branch, kept)  # the next reader starts anew, also one that waits for this very one
                if isinstance(error, MemoryError) and not isinstance(error, RecollectError):
                    raise NoMemoryError(self._store.path, "while its index was made") from error
                raise
            if kept.view is None:
                kept.view = kept.index.view()
            words = kept.view
            self._count(branch, kept)
        return kept, words

    def _of(self, branch: Branch) -> _Kept:
        with self._lock:
            kept = self._kept.pop(branch, None) or _Kept()
            self._kept[branch] = kept
            return kept

    def _let_go(self, branch: Branch, kept: _Kept) -> None:
        with self._lock:
            if self._kept.get(branch) is kept:
                del self._kept[branch]
                self._held_bytes -= kept.counted

    def _bring_up(self, kept: _Kept, view: View, branch: Branch) -> None:
        head = view.head(branch)
        if kept.seq and not _goes_on(view, branch, head, kept.seq, kept.root):
            kept.seq = 0  # another history: the file was put back from a copy
        if kept.seq == 0 and head.seq:
            self._begin(kept, view, branch)
        if head.seq > kept.seq:
            since = kept.seq
            # Half caught up is no index. Said beforehand: an interruption leaves no time for it afterwards.
            kept.seq, kept.view = 0, None
            written = self._recent.since(branch, since, kept.root, head)
            changed = view.changed(branch, since) if written is None else list(written)
            if len(changed) >= max(_MANY, kept.index.documents.live_count):
                self._make(kept, view, branch)  # sooner done than adding so many
                return
            if written is None:
                written = read_back(view, branch, changed)
            apply_written(kept.index, written, digests=self._digests)
            self._recent.drop(branch, head.seq)
        kept.seq, kept.root = head.seq, head.root.hash
        self._merge_where_due(kept, branch)

    def _begin(self, kept: _Kept, view: View, branch: Branch) -> None:
        """From the segment that was kept, or from the records."""
        kept.view = None
        found = self._files.read(branch, self._rules) if self._files is not None else None
        if found is not None:
            segment, about = found
            if view.root_at(branch, about.seq) == about.root_hash:
                kept.index, kept.seq, kept.root = WordIndex(segment), about.seq, about.root_hash
                return
            _log.warning("the index of %r in a file is of another history; it is made anew", branch.namespace)
        self._make(kept, view, branch)

    def _make(self, kept: _Kept, view: View, branch: Branch) -> None:
        """From the records. Cost: O(records), a fraction of what `apply_written` takes for as many."""
        head = view.head(branch)
        builder = Builder()
        with uncollected():
            for record in self._records(view, branch, head):
                builder.add(document_of(record, digests=self._digests))
            segment = builder.segment()
        self._recent.drop(branch, head.seq)
        kept.index, kept.seq, kept.root = WordIndex(segment), head.seq, head.root.hash
        if len(builder) >= KEPT_FROM and self._files is not None:
            self._give(branch, kept)

    def _records(self, view: View, branch: Branch, head: Head) -> Iterator[Record]:
        """The records that are held at a moment."""
        written = self._recent.since(branch, 0, EMPTY, head)
        if written is None:
            return (Record.load(stored.payload) for _, stored in view.versions(branch))
        return (record for record in written.values() if record is not None)

    def _merge_where_due(self, kept: _Kept, branch: Branch) -> None:
        index = kept.index
        held = 0 if index.segment is None else index.segment.count
        came = index.documents.count - held
        died = index.documents.count - index.documents.live_count
        if max(came, died) >= max(MERGED_FROM, held // MERGED_PART):
            self._give(branch, kept)

    # The worker

    def _give(self, branch: Branch, kept: _Kept) -> None:
        """Let the worker merge an index and keep it in a file."""
        with self._lock:
            if kept.merging or self._closed:
                return
            kept.merging = True
            if self._worker is None:
                worker = threading.Thread(target=self._work, name="recollect-indexes", daemon=True)
                try:
                    worker.start()
                except RuntimeError as error:  # no thread to be had: the index that there is serves on
                    _log.warning("an index could not be merged, which changes no answer: %s", error)
                    kept.merging = False
                    return
                self._worker = worker
        self._tasks.put(lambda: self._merge(branch, kept))

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except RecollectError as error:  # the store is closed, or cannot be read now: another time
                _log.warning("an index could not be merged, which changes no answer: %s", error)
            except Exception:  # noqa: BLE001 - whatever it is, the index that there is serves on
                _log.exception("an index could not be merged, which changes no answer")

    def _merge(self, branch: Branch, kept: _Kept) -> None:
        try:
            self._merge_now(branch, kept)
        finally:
            kept.merging = False

    def _merge_now(self, branch: Branch, kept: _Kept) -> None:
        with kept.lock:
            index, seq, root = kept.index, kept.seq, kept.root
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
                if self._closed or not _goes_on(view, branch, head, seq, root):
                    return
                came = read_back(view, branch, view.changed(branch, seq))
                apply_written(successor, came, digests=self._digests)
                lag, seq, root = head.seq - seq, head.seq, head.root.hash
            if lag <= _LAG:
                break
        with kept.lock:
            if kept.index is index:  # though a reader may be some commits ahead: the next one catches up again
                kept.index, kept.seq, kept.root, kept.view = successor, seq, root, None

    def close(self) -> None:
        """Let the worker end what it is doing."""
        with self._lock:
            self._closed = True
            worker = self._worker
        if worker is not None:
            self._tasks.put(None)
            worker.join()
        self._recent.clear()
        with self._lock:
            self._kept.clear()
            self._held_bytes = 0

    # What is held

    def recount(self, branch: Branch) -> None:
        """Count what came to hand of a line's records. To be called after a recall."""
        kept = self._kept.get(branch)
        if kept is not None and kept.cached_bytes > kept.counted_cached + _UNCOUNTED_BYTES:
            self._count(branch, kept)

    def _count(self, branch: Branch, kept: _Kept) -> None:
        """Count what an index takes now, and let go of others until all are within the budget."""
        kept.counted_cached = kept.cached_bytes
        nbytes = kept.nbytes
        with self._lock:
            if self._kept.get(branch) is not kept:
                return
            self._held_bytes += nbytes - kept.counted
            kept.counted = nbytes
            while self._held_bytes > self._budget_bytes and len(self._kept) > 1:
                oldest = next(iter(self._kept))
                self._held_bytes -= self._kept.pop(oldest).counted

    def drop(self, branch: Branch) -> None:
        """Let the index of a line be made anew."""
        with self._lock:
            kept = self._kept.pop(branch, None)
            self._held_bytes -= 0 if kept is None else kept.counted

    def fork(self, view: View, branch: Branch) -> WordIndex:
        """A copy of the index at a moment that nobody can commit after (a writer waits), to go its own way."""
        while True:
            kept, _ = self._viewed(view, branch)  # this very one: another thread may let the line's index go meanwhile
            with kept.lock:
                if kept.seq == view.head(branch).seq:  # else a merged one has taken its place, some commits behind
                    return kept.index.fork()


def _goes_on(view: View, branch: Branch, head: Head, seq: int, root: bytes) -> bool:
    """Whether the history at a moment has, at a seq, the commit of this root."""
    return (head.root.hash == root) if head.seq == seq else head.seq > seq and view.root_at(branch, seq) == root


def _is_near(view: View, branch: Branch, head: Head, seq: int, root: bytes) -> bool:
    """Whether an index that reflects a seq is of the history at a moment, and at most _NEAR records behind."""
    if not seq or not 0 <= head.seq - seq <= _NEAR or not _goes_on(view, branch, head, seq, root):
        return False
    return head.seq == seq or len(view.changed(branch, seq)) <= _NEAR


def read_back(view: View, branch: Branch, changed: Iterable[str]) -> Written:
    """What records some ids have at a moment."""
    changed = list(changed)
    with _resting(len(changed)):
        held = view.several(branch, changed)
        return {each: Record.load(held[each].payload) if each in held else None for each in changed}


def apply_written(index: WordIndex, written: Written, *, digests: bool = True) -> None:
    """Bring some ids up to what was written: take the record of each out, and put in what it is now."""
    with _resting(len(written)):
        documents = [document_of(record, digests=digests) for record in written.values() if record is not None]
        index.apply(written, sorted(documents, key=lambda document: (document.place, document.id)))


def _resting(changes: int) -> AbstractContextManager[None]:
    return uncollected() if changes > _MANY else nullcontext()
