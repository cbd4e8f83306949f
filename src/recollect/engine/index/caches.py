"""The caches beside each index: of decoded records, and of records that this process wrote.

The first is approximately LRU, and bounded by bytes because thousands of indexes may be open. What was added or used
last is in the young half. When that is full it becomes the old half, and the entries of the former old half are
evicted: about the least recently used first, without keeping an order.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from recollect.indexes.documents.row_data import Rows
from recollect.ledger.commits import Branch, Commit, Head
from recollect.records.record import Record

V = TypeVar("V")
#: Size limit of the cache and of one value in it, in bytes.
MOST_BYTES, MOST_OF_ONE = 512 * 1024, 64 * 1024


class RecordCache(Generic[V]):
    """Values by document number, within `MOST_BYTES`. Safe for use by several threads.

    The caller states the size of each value.
    """

    def __init__(self) -> None:
        self._young, self._old = _Half[V](), _Half[V]()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._young.values) + len(self._old.values)

    @property
    def nbytes(self) -> int:
        """The size of all values."""
        return self._young.nbytes + self._old.nbytes

    def known(self, numbers: Iterable[int]) -> dict[int, V]:
        """Return the cached values among some document numbers."""
        out = {}
        with self._lock:
            for number in numbers:
                entry = self._young.values.get(number)
                if entry is None and (entry := self._old.take(number)) is not None:
                    self._put(number, entry)
                if entry is not None:
                    out[number] = entry[0]
        return out

    def keep(self, entries: Iterable[tuple[int, V, int]]) -> None:
        """Cache values: each with its number and its size in bytes."""
        with self._lock:
            for number, value, nbytes in entries:
                if nbytes <= MOST_OF_ONE:
                    self._young.take(number)
                    self._old.take(number)
                    self._put(number, (value, nbytes))

    def _put(self, number: int, entry: tuple[V, int]) -> None:
        if self._young.nbytes + entry[1] > MOST_BYTES // 2:
            self._young, self._old = _Half[V](), self._young
        self._young.values[number] = entry
        self._young.nbytes += entry[1]


class _Half(Generic[V]):
    """Values with the size of each, and the size of all."""

    __slots__ = ("nbytes", "values")

    def __init__(self) -> None:
        self.values: dict[int, tuple[V, int]] = {}
        self.nbytes = 0

    def take(self, number: int) -> tuple[V, int] | None:
        """Remove and return a value with its size; None if it is not there."""
        entry = self.values.pop(number, None)
        if entry is not None:
            self.nbytes -= entry[1]
        return entry


#: The name under which the rows of an index have the columns of metadata (`engine.read.metadata_columns`).
METADATA = "metadata"


def metadata_bytes(rows: Rows) -> int:
    """Return the memory of the columns of metadata that the rows of an index have, in bytes."""
    columns = rows.kept.get(METADATA)
    return 0 if columns is None else int(columns.nbytes)


def cache_of(rows: Rows, standing: bool = False) -> RecordCache[Record]:
    """Return the cache that belongs to the rows of an index, or that of its records with standing tags.

    The latter are few and in most answers, so they have a cache from which others cannot evict them.
    """
    name = "standing records" if standing else "records"
    found: RecordCache[Record] | None = rows.kept.get(name)
    return rows.kept.setdefault(name, RecordCache()) if found is None else found


# The write cache: records this process committed recently, so that its indexes catch up without re-reading the store.
#
# It is only a shortcut. If its commits do not lead from the root of an index to the root of the view (another process
# wrote in between, commits were evicted, or the history was replaced), the index reads the changes from the store.

#: Approximate memory of a commit, of an id in it, and of a record in addition to its content and payload, in bytes.
_COMMIT_BYTES, _ID_BYTES, _RECORD_BYTES = 500, 200, 600
#: Approximate memory per payload byte of a record with metadata: even an empty object in it is a Python object.
_METADATA_BYTES = 20
#: The changes of a write: id -> the new record, or None if it has none any more.
Written = Mapping[str, Record | None]


class _Step(NamedTuple):
    """A commit: the roots before and after it, its changes, and their size."""

    before: bytes
    after: bytes
    written: Written
    nbytes: int


class WriteCache:
    """The newest commits of this process, until an index includes them.

    Args:
        budget_bytes: Memory limit. The commits of the branch that was least recently written to are evicted first.
    """

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._lock = threading.Lock()
        self._branches: OrderedDict[Branch, dict[int, _Step]] = OrderedDict()  # by seq
        self._nbytes = 0

    def note(self, commit: Commit, before: bytes, written: Written) -> None:
        """Add the changes of a durable commit, and the root before it."""
        branch = Branch(commit.namespace, commit.branch)
        step = _Step(before, commit.root.hash, written, _COMMIT_BYTES + sum(map(_bytes_of, written.values())))
        with self._lock:
            steps = self._branches.setdefault(branch, {})
            self._branches.move_to_end(branch)
            self._nbytes -= steps[commit.seq].nbytes if commit.seq in steps else 0  # a commit of a replaced history
            steps[commit.seq] = step
            self._nbytes += step.nbytes
            while self._nbytes > self._budget_bytes:
                _, oldest = self._branches.popitem(last=False)
                self._nbytes -= sum(each.nbytes for each in oldest.values())

    def since(self, branch: Branch, seq: int, root: bytes, head: Head) -> Written | None:
        """Return the combined changes from a seq and its root to a head; None if not all commits are cached."""
        out: dict[str, Record | None] = {}
        with self._lock:
            steps = self._branches.get(branch, {})
            if head.seq not in steps:
                return None
            for at in range(seq + 1, head.seq + 1):
                step = steps.get(at)
                if step is None or step.before != root:
                    return None
                root = step.after
                out.update(step.written)
        return out if root == head.root.hash else None

    def drop(self, branch: Branch, upto: int) -> None:
        """Remove the commits of a branch up to a seq, which an index now includes."""
        with self._lock:
            steps = self._branches.get(branch, {})
            for seq in list(filter(lambda seq: seq <= upto, steps)):
                self._nbytes -= steps.pop(seq).nbytes
            if not steps:
                self._branches.pop(branch, None)

    def clear(self) -> None:
        """Remove all commits."""
        with self._lock:
            self._branches.clear()
            self._nbytes = 0


def _bytes_of(record: Record | None) -> int:
    """Estimate the memory of an id and its record."""
    if record is None:
        return _ID_BYTES
    payload_bytes = len(record.to_bytes())
    payload_bytes *= _METADATA_BYTES if record.metadata else 1
    return _ID_BYTES + _RECORD_BYTES + sys.getsizeof(record.content) + payload_bytes
