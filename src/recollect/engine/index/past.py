"""Word indexes of past moments, derived from the nearest index by undoing or redoing what the log did between.

An index is a pure function of the live records, so a past one gives the results that it gave when it was present. It
starts as a fork of the index of the present, or of a past one that is cached and nearer. The fork shares the segment,
and the indexes of the present are neither changed nor evicted. If more records changed between than were live, the
index is built from the records.

The least recently used past indexes are evicted when all of them exceed their memory budget.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeGuard

from recollect.common.deadlines import within
from recollect.engine.follower import Budget, in_history
from recollect.engine.index.caches import MOST_BYTES, metadata_bytes
from recollect.engine.index.keeper import BRANCH_BYTES, BULK_CHANGES, IndexKeeper, apply_written
from recollect.indexes.documents.columns import COLUMNS
from recollect.indexes.kernels.blocks import most_bytes_of
from recollect.indexes.words.index import WordIndex, WordView
from recollect.indexes.words.merge import merged
from recollect.indexes.words.segment import Builder
from recollect.ledger.commits import Branch, Head, Stored
from recollect.ledger.merkle import is_redacted
from recollect.records.record import Record
from recollect.stores.base import View

#: A past index with this many documents outside of its segment or dead, and this fraction (1/4) of the segment, gets a
#: segment of its own.
_MERGED_FROM, _MERGED_PART = 2000, 4


@dataclass(frozen=True, slots=True)
class _Built:
    """A past index, which never changes: other ones are forked from it.

    Attributes:
        words: Its view.
        seq: The seq of the moment.
        root: The root after that commit.
        checked: The seq and root of the newest commit up to which nothing was erased since it was built.
    """

    index: WordIndex
    words: WordView
    seq: int
    root: bytes
    checked: tuple[int, bytes]


class _Entry:
    """A place for a past index; `lock` is held while it is built."""

    def __init__(self) -> None:
        self.built: _Built | None = None
        self.nbytes = 0
        self.lock = threading.Lock()


class PastIndexes:
    """The word indexes of past moments of a store. Safe for use by several threads.

    Args:
        keeper: The indexes of the present.
        budget_bytes: Memory limit of all past indexes together. At least one is kept.
    """

    def __init__(self, keeper: IndexKeeper, budget_bytes: int) -> None:
        self._keeper = keeper
        self._entries: Budget[tuple[Branch, int], _Entry] = Budget(budget_bytes)

    def view(self, view: View, branch: Branch, head: Head) -> WordView | None:
        """Return the index after a commit; None if the index of the present is newer than the view of the store.

        Args:
            view: A view of the store.
            head: The commit, which the history of the view contains.

        Cost:
            In proportion to the changes between the commit and the nearest index.
        """
        if not head.seq:
            return WordIndex().view()
        present = view.head(branch)
        if head.seq == present.seq:
            return self._keeper.view(view, branch)
        key = (branch, head.seq)
        entry = self._entries.get_or_put(key, _Entry)
        with entry.lock:
            if not _usable(entry.built, view, branch):
                with self._keeper.building(), within(None):
                    index = self._index(view, branch, head.seq)
                if index is None:
                    return None
                checked = (present.seq, present.root.hash)
                entry.built = _Built(index, index.view(), head.seq, head.root.hash, checked)
                self._count(branch)
            elif entry.built.checked[0] < present.seq:
                entry.built = replace(entry.built, checked=(present.seq, present.root.hash))
            return entry.built.words

    def _index(self, view: View, branch: Branch, seq: int) -> WordIndex | None:
        """Return the index after a commit, derived from the nearest one; None to try again with a newer view."""
        start = view.head(branch).seq
        near = self._nearest(view, branch, seq)
        if near is not None and abs(near.seq - seq) < start - seq:
            start, index = near.seq, near.index.fork()
        elif (copy := self._keeper.copy(view, branch)) is not None:
            index = copy
        else:
            return None
        changes = view.net_changes(branch, min(start, seq), max(start, seq))
        if start > seq:
            changes = {record_id: (after, before) for record_id, (before, after) in changes.items()}
        grown = sum((after is not None) - (before is not None) for before, after in changes.values())
        if len(changes) >= max(BULK_CHANGES, index.documents.live_count + grown):
            return self._from_records(view, branch, seq)
        versions = {record_id: after for record_id, (_, after) in changes.items()}
        apply_written(index, past_records(view, branch, versions), self._keeper.document_of)
        in_segment = 0 if index.segment is None else index.segment.count
        outside, dead = index.documents.count - in_segment, index.documents.count - index.documents.live_count
        if max(outside, dead) >= max(_MERGED_FROM, in_segment // _MERGED_PART):
            index = WordIndex(merged(index.view()))
        return index

    def _from_records(self, view: View, branch: Branch, seq: int) -> WordIndex:
        versions = {record_id: after for record_id, (_, after) in view.net_changes(branch, 0, seq).items()}
        builder = Builder()
        for record in past_records(view, branch, versions).values():
            if record is not None:
                builder.add(self._keeper.document_of(record))
        return WordIndex(builder.segment())

    def _nearest(self, view: View, branch: Branch, seq: int) -> _Built | None:
        """Return the cached past index that is the fewest commits away."""
        entries = [entry for key in self._entries if key[0] == branch and (entry := self._entries.peek(key))]
        built = [each for entry in entries if _usable(each := entry.built, view, branch)]
        return min(built, key=lambda each: abs(each.seq - seq), default=None)

    def _count(self, branch: Branch) -> None:
        """Count the past indexes of a branch again: the segment of each, too, if the present has another one."""
        segment = self._keeper.segment(branch)
        for key in self._entries:
            entry = self._entries.peek(key)
            if key[0] == branch and entry is not None and entry.built is not None:
                index = entry.built.index
                columns = sum(getattr(entry.built.words.table, name).nbytes for name in COLUMNS)
                own = 0 if index.segment is None or index.segment is segment else most_bytes_of(index.segment)
                of_metadata = metadata_bytes(index.documents.rows)
                entry.nbytes = BRANCH_BYTES + columns + index.tail_bytes + 2 * MOST_BYTES + own + of_metadata
                self._entries.count(key, entry)

    def clear(self) -> None:
        """Remove all past indexes."""
        self._entries.clear()


def _usable(built: _Built | None, view: View, branch: Branch) -> TypeGuard[_Built]:
    """Return whether an index is of the history of a view, and nothing was erased since."""
    if built is None or not in_history(view, branch, built.seq, built.root):
        return False
    return in_history(view, branch, *built.checked) and not view.has_erased(branch, built.checked[0])


def past_versions(view: View, branch: Branch, versions: Mapping[str, bytes | None]) -> dict[str, Stored | None]:
    """Return the stored versions of ids in the past; None for an id that was not live then.

    A version that was erased since is left out of everything that is read as of the past: this is the only place that
    decides so. A redacted id stays erased, even if the same record was stored again under its own id.
    """
    out: dict[str, Stored | None] = {}
    for record_id, version in versions.items():
        payload = None if version is None or is_redacted(record_id) else view.payload(branch, version)
        out[record_id] = None if version is None or payload is None else Stored(version, payload)
    return out


def past_records(view: View, branch: Branch, versions: Mapping[str, bytes | None]) -> dict[str, Record | None]:
    """Return the records of `past_versions`."""
    stored = past_versions(view, branch, versions)
    return {record_id: None if each is None else Record.load(each.payload) for record_id, each in stored.items()}
