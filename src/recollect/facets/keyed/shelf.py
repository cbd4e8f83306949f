"""`Shelf`, keyed memory without a store: exact by any clock, without a thread, and the same on every machine.

What happens depends on the calls and the clock only. What is due is removed before anything else is done, so an expired
entry is never read, counted, or kept in place of a live one.
"""

from __future__ import annotations

import threading
from bisect import insort
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

from recollect.arguments.checks import is_number
from recollect.errors import InvalidArgumentError, UnsupportedError
from recollect.facets.keyed.subscriptions import QUEUE, KeySubscription, checked_kinds
from recollect.facets.keyed.values import (
    EVICT,
    Event,
    EventKind,
    Evict,
    Found,
    checked_count,
    checked_importance,
    checked_key,
    checked_limit,
    checked_queue,
    checked_ttl,
    checked_value,
    size_of,
)

#: Default number of events that are kept for subscribers that missed some.
KEPT = 10_000
#: Number of times of entries that were written again, beyond one for each entry, at which they are dropped.
_STALE = 1000


class Scorer(Protocol):
    """Scores values by how well they answer a question. It is used by one thread at a time."""

    def put(self, key: str, value: bytes) -> None:
        """Score this value for a key from now on."""

    def drop(self, key: str) -> None:
        """Score no value for a key any more."""

    def find(self, query: str, k: int, min_score: float) -> list[tuple[str, float]]:
        """Return up to `k` keys with their scores of at least `min_score`, best first, and equal ones by key."""


class _Entry(NamedTuple):
    value: bytes
    rank: float
    written_at: float
    number: int


class Shelf:
    """Keys with bytes, shared by all who have this object. Thread-safe.

        shelf = Shelf(capacity=100, ttl=50)
        shelf.write("plan", b"go north")
        shelf.cas("plan", b"go north", b"go south")

    Args:
        capacity: Maximum number of entries; None: no limit.
        capacity_bytes: Maximum size of all keys and values together, in bytes; None: no limit.
        ttl: How long after its last write an entry expires, in units of the clock; None: never.
        now: Returns the time; None: the number of writes so far.
        evict: Which entries make room. Reading, writing and recalling an entry are uses; the entry that is being
            written stays.
        scorer: What `recall` asks; None: there is no recall.
        kept: Number of events that `events` can still return.

    Raises:
        InvalidArgumentError: An argument is invalid.
    """

    def __init__(
        self,
        *,
        capacity: int | None = None,
        capacity_bytes: int | None = None,
        ttl: float | None = None,
        now: Callable[[], float] | None = None,
        evict: Evict = "least recent",
        scorer: Scorer | None = None,
        kept: int = KEPT,
    ) -> None:
        self._capacity = checked_limit("capacity", capacity)
        self._capacity_bytes = checked_limit("capacity_bytes", capacity_bytes)
        self._ttl = checked_ttl(ttl)
        if now is not None and not callable(now):
            raise InvalidArgumentError("now", now, "must be a function that returns the time")
        if evict not in EVICT:
            raise InvalidArgumentError("evict", evict, f"must be one of {', '.join(EVICT)}")
        self._now = now
        self._by_importance = evict == "least important"
        self._scorer = scorer
        self._entries: dict[str, _Entry] = {}
        self._ranks: dict[float, OrderedDict[str, None]] = {}  # rank -> its keys, the least recently used first
        self._order: list[float] = []  # the ranks, the first to go first
        self._due: list[tuple[float, int, str]] = []  # (written at, number, key), a heap; also of what is gone
        self._bytes = 0
        self._writes = self._recalls = self._evictions = self._expirations = 0
        self._seq = 0
        if checked_count("kept", kept) < 0:
            raise InvalidArgumentError("kept", kept, "must be 0 or more")
        if scorer is not None and not all(callable(getattr(scorer, name, None)) for name in ("put", "drop", "find")):
            raise InvalidArgumentError("scorer", scorer, "must have put, drop and find, as HashedTrigrams has")
        self._kept: deque[Event] = deque(maxlen=kept)
        self._subscriptions: dict[KeySubscription, None] = {}  # in the order in which they began
        self._lock = threading.RLock()

    # Calls

    def read(self, key: str) -> bytes | None:
        """Return the value of a key, from now on the most recently used one; None if there is none."""
        checked_key(key)
        with self._lock:
            self._sweep()
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._ranks[entry.rank].move_to_end(key)
            return entry.value

    def write(self, key: str, value: bytes, *, importance: float | None = None) -> None:
        """Set the value of a key. Others are evicted if there is no room.

        Args:
            key: The key: any text.
            importance: 0 to 1; None counts as less than 0.

        Raises:
            InvalidArgumentError: The entry is larger than the capacity by itself. Nothing was written.
        """
        checked_key(key)
        self._put(key, checked_value("value", value), checked_importance(importance))

    def cas(self, key: str, expected: bytes | None, new: bytes, *, importance: float | None = None) -> bool:
        """Set the value of a key if it has another one now, and return whether it had.

        Args:
            expected: What it must have now; None: there must be none.
            new: What it then has. This is a write.
            importance: As for `write`.
        """
        checked_key(key)
        wanted = None if expected is None else checked_value("expected", expected)
        value, rank = checked_value("new", new), checked_importance(importance)
        with self._lock:
            self._sweep()
            entry = self._entries.get(key)
            if (None if entry is None else entry.value) != wanted:
                self._tell("cas_failed", key, 0)
                return False
            self._put(key, value, rank)
            return True

    def forget(self, key: str) -> bool:
        """Remove a key, and return whether there was one."""
        checked_key(key)
        with self._lock:
            self._sweep()
            if key not in self._entries:
                return False
            self._drop(key, "forgotten")
            return True

    def recall(self, query: str, k: int = 5, min_score: float = 0.0) -> list[Found]:
        """Return the entries that answer a question best, best first. Each is used, in this order.

        Args:
            query: The question.
            k: Maximum number of entries; with 0 or less, nothing happens.
            min_score: The least score.

        Raises:
            UnsupportedError: There is no scorer.
        """
        if not isinstance(query, str):
            raise InvalidArgumentError("query", query, "must be text")
        if not is_number(min_score):
            raise InvalidArgumentError("min_score", min_score, "must be a number")
        if checked_count("k", k) <= 0:
            return []
        if self._scorer is None:
            raise UnsupportedError(
                "recall",
                "this memory was made without a scorer: pass scorer=, such as recollect.compat.nest.HashedTrigrams()",
            )
        with self._lock:
            self._sweep()
            self._recalls += 1
            found = []
            for key, score in self._scorer.find(query, k, min_score):
                entry = self._entries[key]
                self._ranks[entry.rank].move_to_end(key)
                found.append(Found(key, entry.value, score))
            return found

    def subscribe(
        self, key: str | None = None, *, kinds: Iterable[EventKind] | None = None, queue: int = QUEUE
    ) -> KeySubscription:
        """Return the events from now on, of a key or of all.

        Args:
            key: The key; None: all of them.
            kinds: The kinds of events; None: all of them.
            queue: Maximum number of events that wait for the subscriber. Further ones are missed, which it learns.
        """
        if key is not None:
            checked_key(key)
        most = checked_queue(queue)
        with self._lock:
            made = KeySubscription(key, checked_kinds(kinds), most, self._seq, self._forget_subscription)
            self._subscriptions[made] = None
            return made

    def events(self, since: int = 0) -> list[Event]:
        """Return the events after a seq that are still kept, for a subscriber that missed some."""
        checked_count("since", since)
        with self._lock:
            return [event for event in self._kept if int(event.seq) > since]

    def stats(self) -> dict[str, int]:
        """Return the number of entries, their size, both limits (-1: none), and how often what has happened."""
        with self._lock:
            self._sweep()
            return {
                "size": len(self._entries),
                "capacity": self._capacity or -1,
                "bytes": self._bytes,
                "capacity_bytes": self._capacity_bytes or -1,
                "writes": self._writes,
                "recalls": self._recalls,
                "evictions": self._evictions,
                "expirations": self._expirations,
                "tick": int(self._time()),
            }

    def keys(self) -> list[str]:
        """Return the keys, the next one to be evicted first."""
        with self._lock:
            self._sweep()
            return [key for rank in self._order for key in self._ranks[rank]]

    def close(self) -> None:
        """End the subscriptions."""
        for each in list(self._subscriptions):
            each.close()

    def __len__(self) -> int:
        with self._lock:
            self._sweep()
            return len(self._entries)

    # What happens

    def _forget_subscription(self, ended: KeySubscription) -> None:
        with self._lock:
            self._subscriptions.pop(ended, None)

    def _time(self) -> float:
        return self._writes if self._now is None else self._now()

    def _put(self, key: str, value: bytes, importance: float | None) -> None:
        size = size_of(key, value)
        if self._capacity_bytes is not None and size > self._capacity_bytes:
            rule = f"is larger with its key than the capacity, {self._capacity_bytes} bytes; nothing was written"
            raise InvalidArgumentError("value", value, rule)
        with self._lock:
            self._writes += 1
            self._sweep()
            if self._scorer is not None:
                self._scorer.put(key, value)  # before anything is changed: it may raise
            self._remove(key)
            rank = (-1.0 if importance is None else importance) if self._by_importance else 0.0
            self._make_room(size)
            now = self._time()
            self._entries[key] = _Entry(value, rank, now, self._writes)
            if rank not in self._ranks:
                self._ranks[rank] = OrderedDict()
                insort(self._order, rank)
            self._ranks[rank][key] = None
            self._bytes += size
            if self._ttl is not None:
                heappush(self._due, (now, self._writes, key))
                if len(self._due) > 2 * len(self._entries) + _STALE:
                    self._due = sorted((each.written_at, each.number, key) for key, each in self._entries.items())
            self._tell("written", key, len(value), value)

    def _make_room(self, size: int) -> None:
        while self._order and (
            (self._capacity is not None and len(self._entries) >= self._capacity)
            or (self._capacity_bytes is not None and self._bytes + size > self._capacity_bytes)
        ):
            self._drop(next(iter(self._ranks[self._order[0]])), "evicted")
            self._evictions += 1

    def _sweep(self) -> None:
        """Remove what is due, in the order in which it was written."""
        if self._ttl is None:
            return
        now = self._time()
        while self._due and now - self._due[0][0] >= self._ttl:
            _, number, key = heappop(self._due)
            entry = self._entries.get(key)
            if entry is not None and entry.number == number:
                self._drop(key, "expired")
                self._expirations += 1

    def _drop(self, key: str, kind: EventKind) -> None:
        value = self._remove(key)
        if self._scorer is not None:
            self._scorer.drop(key)
        self._tell(kind, key, len(value))

    def _remove(self, key: str) -> bytes:
        """Remove an entry, if there is one, and return its value."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return b""
        keys = self._ranks[entry.rank]
        del keys[key]
        if not keys:
            del self._ranks[entry.rank]
            self._order.remove(entry.rank)
        self._bytes -= size_of(key, entry.value)
        return entry.value

    def _tell(self, kind: EventKind, key: str, size: int, value: bytes | None = None) -> None:
        self._seq += 1
        event = Event(self._seq, kind, key, self._time(), size, value)
        self._kept.append(event)
        for each in list(self._subscriptions):
            each.put(event)
