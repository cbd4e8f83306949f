"""Followers: values that are derived from the records of a branch, and kept up to date by its log.

Everything that is derived from the log (word indexes, full text, vectors, usage totals, tries, turns) reflects one
commit, identified by seq and root. To bring it to a view of the store, it needs the ids that were changed since, or it
must be started over, because the store has another history: an older copy was restored. So a commit of another process
costs what it touched.

`changed_since` answers that for what is stored elsewhere. A `Follower` caches values in memory within a budget, the
least recently used ones evicted first, and catches them up when they are used.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, NamedTuple, Protocol, TypeVar

from recollect.common.deadlines import within
from recollect.ledger.commits import Branch, Head
from recollect.ledger.merkle import EMPTY, is_redacted
from recollect.records.record import Record
from recollect.stores.base import ReadView, View

#: Every record is valid at this time.
_NO_TIME = -(2**63)
#: Bytes that are counted for an entry besides its value.
_ENTRY_BYTES = 1000


class OfBranch(Hashable, Protocol):
    """A key that says from which records a value is derived."""

    @property
    def branch(self) -> Branch:
        """Their branch."""


class OfRecords(Protocol):
    """A value that is derived from records one by one."""

    def put(self, record: Record) -> object:
        """Insert a record, or replace it."""

    def remove(self, record_id: str) -> object:
        """Remove a record, if it is there."""


class Sized(OfRecords, Protocol):
    """A value that is derived from records one by one, and knows its size."""

    @property
    def nbytes(self) -> int:
        """The approximate memory, in bytes."""


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
B = TypeVar("B", bound=OfBranch)
R = TypeVar("R", bound=Sized)


def in_history(view: ReadView, branch: Branch, seq: int, root: bytes) -> bool:
    """Return whether the history of a view contains a commit with this seq and root."""
    head = view.head(branch)
    if head.seq == seq:
        return head.root.hash == root
    return 0 < seq < head.seq and view.root_at(branch, seq) == root


def changed_since(view: View, branch: Branch, seq: int, root: bytes) -> list[str] | None:
    """Return the ids that were changed between a commit and a view, each once; None to start over.

    An id that was redacted since says not what to remove, so what is derived from it is started over.

    Args:
        seq: The seq of the commit that is reflected so far; 0 if nothing is.
        root: The root hash after that commit.

    Cost:
        Proportional to the commits since.
    """
    if not seq or not in_history(view, branch, seq, root):
        return None
    changed = view.changed(branch, seq) if view.head(branch).seq > seq else []
    return None if any(map(is_redacted, changed)) else changed


def caught_up(value: OfRecords, view: View, branch: Branch, tag: tuple[int, bytes]) -> bool:
    """Read the records that were changed since a commit; False: the value must be started over."""
    changed = changed_since(view, branch, *tag)
    if changed is None:
        return False
    live = view.several(branch, changed)
    for record_id in changed:
        stored = live.get(record_id)
        if stored is None:
            value.remove(record_id)
        else:
            value.put(Record.load(stored.payload))
    return True


class Tagged(Generic[V]):
    """A value with the commit that it reflects.

    Attributes:
        value: The value; None before it is started.
        seq: The seq of the commit; 0 if the value must not be used.
        root: The root hash after that commit.
        nbytes: The size of the value as it was last counted.
        lock: Locked while the value is caught up.
    """

    __slots__ = ("lock", "nbytes", "root", "seq", "value")

    def __init__(self) -> None:
        self.value: V | None = None
        self.seq = 0
        self.root = EMPTY
        self.nbytes = 0
        self.lock = threading.RLock()

    def set(self, value: V, seq: int, root: bytes) -> None:
        """Replace the value."""
        self.value, self.seq, self.root = value, seq, root

    def reflects(self, head: Head) -> bool:
        """Return whether the value reflects this commit."""
        return self.value is not None and self.seq == head.seq and self.root == head.root.hash


class Use(NamedTuple):
    """Statistics of a follower: what it has cached, and how often values were made.

    Attributes:
        values: The number of values.
        nbytes: Their size in bytes, as it was last counted.
        evicted: How many were evicted.
        started: How many were derived from all records.
        caught_up: How often one was caught up with newer commits.
    """

    values: int
    nbytes: int
    evicted: int
    started: int
    caught_up: int


class Follower(Generic[K, V]):
    """Values derived from the records of branches. Safe for use by several threads.

    A subclass says how a value is started and caught up. Values that are passed to readers should be immutable, or be
    changed only by `catch_up`, under the lock of the entry.

    Args:
        budget_bytes: Memory limit of all values together; one always stays.
    """

    def __init__(self, budget_bytes: int) -> None:
        self.entries: Budget[K, Tagged[V]] = Budget(budget_bytes)
        self._started = self._caught_up = 0

    @property
    def use(self) -> Use:
        """Statistics of the cache: its contents, and how often they were made."""
        entries = self.entries
        return Use(len(entries), entries.nbytes, entries.evicted, self._started, self._caught_up)

    # What a subclass defines

    def load(self, view: View, branch: Branch, key: K) -> tuple[V, int, bytes] | None:
        """Return a value that was saved earlier with the seq and root that it reflects, or None."""
        return None

    def start(self, view: View, branch: Branch, key: K) -> V:
        """Return the value at a view, derived from all records."""
        raise NotImplementedError

    def catch_up(self, value: V, view: View, branch: Branch, key: K, tag: tuple[int, bytes]) -> V | None:
        """Return the value at a view, changed in place or replaced; None if it is cheaper to start over.

        Args:
            value: The value at an earlier commit of the same history. It is not used any more if this raises.
            tag: The seq and root of that commit.
        """
        return None

    def nbytes(self, value: V) -> int:
        """Return the approximate memory of a value, in bytes."""
        raise NotImplementedError

    # Use

    def at(self, view: View, branch: Branch, key: K, *, newest: bool = False) -> Tagged[V] | None:
        """Return the entry of a key, caught up to a view; None if it reflects a newer commit than the view has.

        Args:
            branch: The branch that the value is derived from.
            newest: The view is that of the writer, so a value with a higher seq is of a commit that was undone.
        """
        head = view.head(branch)
        entry = self.entry(key)
        with entry.lock:
            if entry.reflects(head):
                return entry
            if head.seq < entry.seq and not newest:
                return None
            try:
                with within(None):  # others need it, too, and half of it is of no use to anybody
                    self._bring(entry, view, branch, key, head)
            except BaseException:
                self.discard(key, entry)  # the next caller starts over, even one that waits for this lock
                raise
            self.count(key, entry)
        return entry

    def entry(self, key: K) -> Tagged[V]:
        """Return the entry of a key, an empty one if there is none, as the most recently used one."""
        return self.entries.get_or_put(key, Tagged)

    def _bring(self, entry: Tagged[V], view: View, branch: Branch, key: K, head: Head) -> None:
        if not entry.seq:
            entry.value = None
            loaded = self.load(view, branch, key)
            if loaded is not None:
                entry.set(*loaded)
        value, tag = entry.value, (entry.seq, entry.root)
        entry.seq = 0  # until it is caught up: an interruption may leave it partly changed
        if value is not None and in_history(view, branch, *tag):
            caught_up = tag[0] != head.seq
            value = self.catch_up(value, view, branch, key, tag) if caught_up else value
            self._caught_up += caught_up and value is not None
        else:
            value = None
        self._started += value is None
        entry.set(self.start(view, branch, key) if value is None else value, head.seq, head.root.hash)

    def take(self, view: View, branch: Branch, key: K) -> V:
        """Return the value at the writer's view, and remove it, so that a failure while it is changed leaves none."""
        entry = self.entries.pop(key)
        if entry is None or not entry.reflects(view.head(branch)):
            if entry is not None:
                self.entries.put(key, entry)
            entry = self.at(view, branch, key, newest=True)
            assert entry is not None
            self.discard(key, entry)
        assert entry.value is not None
        return entry.value

    def put(self, key: K, value: V, head: Head) -> None:
        """Cache the value of a commit."""
        entry: Tagged[V] = Tagged()
        entry.set(value, head.seq, head.root.hash)
        entry.nbytes = self.nbytes(value)
        self.entries.put(key, entry)

    def count(self, key: K, entry: Tagged[V]) -> None:
        """Count the size of a value again, and evict others until all are within the budget."""
        assert entry.value is not None
        entry.nbytes = self.nbytes(entry.value)
        self.entries.count(key, entry)

    def discard(self, key: K, entry: Tagged[V]) -> None:
        """Remove an entry, unless another one has taken its place."""
        self.entries.drop(key, entry)

    def drop(self, key: K) -> None:
        """Remove the value of a key, so that it is started over."""
        self.entries.drop(key)


class RecordFollower(Follower[B, R]):
    """Values that are changed in place by each record that was changed. A query must lock the entry.

    Args:
        budget_bytes: Memory limit of all values together; one always stays.
        read: Returns the value at a view, derived from the records that are valid at a time.
    """

    def __init__(self, budget_bytes: int, read: Callable[[ReadView, B, int], R]) -> None:
        super().__init__(budget_bytes)
        self.read = read

    def start(self, view: View, branch: Branch, key: B) -> R:
        """Read all records."""
        return self.read(view, key, _NO_TIME)

    def catch_up(self, value: R, view: View, branch: Branch, key: B, tag: tuple[int, bytes]) -> R | None:
        """Read the records that were changed."""
        return value if caught_up(value, view, branch, tag) else None

    def nbytes(self, value: R) -> int:
        """Return the approximate memory of a value, in bytes: empty values cost something too, so they are evicted."""
        return _ENTRY_BYTES + value.nbytes

    def drop_of(self, branch: Branch) -> None:
        """Discard what is cached of a branch."""
        for key in list(self.entries):
            if key.branch == branch:
                self.drop(key)


# A cache of values within a memory budget: beyond it, the least recently used values are evicted.
#
# Values may grow while they are cached: the user of the cache says when a value must be counted again.


class SizedValue(Protocol):
    """A value that knows its size."""

    @property
    def nbytes(self) -> int:
        """The memory that the value uses, in bytes."""


S = TypeVar("S", bound=SizedValue)


class Budget(Generic[K, S]):
    """Values by key. Safe for use by several threads.

    Args:
        budget_bytes: Memory limit of all values together. The most recently used value stays, whatever its size.

    Attributes:
        nbytes: The size of all values, each as it was last counted.
        evicted: How many values were evicted.
    """

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        #: Each value with its counted size; the most recently used one is last.
        self._entries: OrderedDict[K, tuple[S, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.nbytes = 0
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys, the least recently used first."""
        return iter(tuple(self._entries))

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def get(self, key: K) -> S | None:
        """Return the value of a key, from now on the most recently used one; None if there is none."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def peek(self, key: K) -> S | None:
        """Return the value of a key without using it; None if there is none."""
        return self._entries.get(key, (None, 0))[0]

    def get_or_put(self, key: K, create: Callable[[], S]) -> S:
        """Return the value of a key, from now on the most recently used one; a new one of no size if there is none."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                value = create()
                self._entries[key] = entry = value, 0
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: K, value: S) -> None:
        """Set the value of a key as the most recently used one, and evict others until all are within the budget."""
        nbytes = value.nbytes
        with self._lock:
            _, counted = self._entries.get(key, (None, 0))
            self._entries[key] = value, nbytes
            self.nbytes += nbytes - counted
            self._entries.move_to_end(key)
            self._evict()

    def count(self, key: K, value: S) -> None:
        """Update the size of a value that has changed, unless it was evicted or replaced, and evict others as `put`."""
        nbytes = value.nbytes
        with self._lock:
            cached, counted = self._entries.get(key, (None, 0))
            if cached is value:
                self._entries[key] = value, nbytes
                self.nbytes += nbytes - counted
                self._evict()

    def _evict(self) -> None:
        while self.nbytes > self._budget_bytes and len(self._entries) > 1:
            _, (_, nbytes) = self._entries.popitem(last=False)
            self.nbytes -= nbytes
            self.evicted += 1

    def pop(self, key: K) -> S | None:
        """Remove the value of a key and return it; None if there is none."""
        with self._lock:
            value, counted = self._entries.pop(key, (None, 0))
            self.nbytes -= counted
            return value

    def drop(self, key: K, value: S | None = None) -> None:
        """Remove the value of a key, if there is one; with `value`, only if it is this one."""
        with self._lock:
            cached, counted = self._entries.get(key, (None, 0))
            if cached is not None and (value is None or cached is value):
                del self._entries[key]
                self.nbytes -= counted

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._entries.clear()
            self.nbytes = 0
