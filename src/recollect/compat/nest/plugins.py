"""The plugins: a blackboard, the compatible semantic store, and the keyed memory of this package.

Each is built without an argument, or with the id of an agent by position, as some scenarios do; the plugins that are
built with ids do not share anything.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from heapq import nsmallest
from os import PathLike
from typing import Any, Protocol, runtime_checkable

import numpy as np

import recollect
from recollect.errors import InvalidArgumentError
from recollect.facets.keyed.values import checked_ttl
from recollect.keyed import Event, Evict, KeySubscription, Scorer, Shelf
from recollect.models.embedding.hashed import DIMENSION, hashed_vector

#: Number of former versions at which the scorer of this package begins a new store.
_FORMER = 10_000
#: The number of values that may wait for a subscriber. The protocol has no word for a value that was dropped.
_UNBOUNDED = sys.maxsize


@runtime_checkable
class MemoryPlugin(Protocol):
    """The calls that every memory plugin has."""

    async def read(self, key: str) -> bytes | None:
        """Return the value of a key; None if there is none."""

    async def write(self, key: str, value: bytes) -> None:
        """Set the value of a key."""

    def subscribe(self, key: str) -> AsyncIterator[bytes]:
        """Yield the values that are written to a key from now on."""

    async def cas(self, key: str, expected: bytes, new: bytes) -> bool:
        """Set the value of a key if it has the expected one, and return whether it had."""


@dataclass(frozen=True, slots=True)
class RecallHit:
    """A result of a recall. It can be unpacked: `for key, value, score in hits`.

    Attributes:
        score: How well it fits.
    """

    key: str
    value: bytes
    score: float

    def __iter__(self) -> Iterator[str | bytes | float]:
        return iter((self.key, self.value, self.score))


class _OnShelf:
    """The calls of a plugin, on a shelf.

    Attributes:
        shelf: The shelf, whose events can be subscribed to.
    """

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    async def read(self, key: str) -> bytes | None:
        """Return the value of a key; None if there is none."""
        return self.shelf.read(key)

    async def write(self, key: str, value: bytes, *, importance: float | None = None) -> None:
        """Set the value of a key. See `recollect.keyed.Shelf.write`."""
        self.shelf.write(key, value, importance=importance)

    async def cas(self, key: str, expected: bytes | None, new: bytes, *, importance: float | None = None) -> bool:
        """Set the value of a key if it has the expected one (None: if there is none), and return whether it had."""
        return self.shelf.cas(key, expected, new, importance=importance)

    def subscribe(self, key: str) -> AsyncIterator[bytes]:
        """Yield the values that are written to a key after the first `anext`.

        None is dropped: those that are not read yet stay in memory, without a limit.
        """
        return _values(lambda: self.shelf.subscribe(key, kinds=("written",), queue=_UNBOUNDED))

    async def forget(self, key: str) -> bool:
        """Remove a key, and return whether there was one."""
        return self.shelf.forget(key)

    def stats(self) -> dict[str, int]:
        """Return the statistics of the shelf. See `recollect.keyed.Shelf.stats`."""
        return self.shelf.stats()


async def _values(subscribe: Callable[[], KeySubscription]) -> AsyncIterator[bytes]:
    with subscribe() as events:
        async for event in events:
            if isinstance(event, Event) and event.value is not None:  # a queue without a limit misses none
                yield event.value


class Blackboard(_OnShelf):
    """A shared dictionary behind the protocol, without limits.

    Args:
        agent_id: The id of an agent. It makes no difference.
    """

    def __init__(self, agent_id: object = None) -> None:
        super().__init__(Shelf(kept=0))


class SemanticMemory(_OnShelf):
    """Keys with bytes that are also found by what they say, within a capacity and a time to live.

    A `cas` on an absent key is False, whatever is expected, as the store that this is compatible with has it.

    Args:
        capacity: Maximum number of entries; None: no limit. A text here is the id of an agent, and makes no difference.
        ttl: How long after its last write an entry expires; None: never.
        now_fn: Returns the time; None: the number of writes so far.
        capacity_bytes: Maximum size of all keys and values; None: no limit.
        evict: Which entries make room: "least recent" or "least important".
        scorer: What compares texts: "compatible", "recollect", or an object with the calls of
            `recollect.keyed.Scorer`.

    Raises:
        ValueError: A limit is 0 or less; the message names it.
    """

    def __init__(
        self,
        capacity: int | str | None = None,
        ttl: int | None = None,
        now_fn: Callable[[], int] | None = None,
        *,
        capacity_bytes: int | None = None,
        evict: Evict = "least recent",
        scorer: Scorer | str = "compatible",
    ) -> None:
        shelf = Shelf(
            capacity=None if isinstance(capacity, str) else capacity,
            capacity_bytes=capacity_bytes,
            ttl=ttl,
            now=now_fn,
            evict=evict,
            scorer=_scorer(scorer),
            kept=0,
        )
        super().__init__(shelf)

    async def cas(self, key: str, expected: bytes | None, new: bytes, *, importance: float | None = None) -> bool:
        """Set the value of a key if it has the expected one, and return whether it had."""
        return expected is not None and self.shelf.cas(key, expected, new, importance=importance)

    async def recall(self, query: str, k: int = 5, min_score: float = 0.0) -> list[RecallHit]:
        """Return the entries that fit a question best, best first; of equal ones the lowest key first.

        Args:
            query: The question.
            k: Maximum number of entries; with 0 or less, nothing happens.
            min_score: The least score.
        """
        return [RecallHit(*found) for found in self.shelf.recall(query, k, min_score)]


def _scorer(scorer: Scorer | str) -> Scorer:
    if scorer == "compatible":
        return HashedTrigrams()
    if scorer == "recollect":
        return _OwnScorer()
    if isinstance(scorer, str) or not all(callable(getattr(scorer, name, None)) for name in ("put", "drop", "find")):
        raise InvalidArgumentError("scorer", scorer, 'must be "compatible", "recollect", or have put, drop and find')
    return scorer


def best(search: Callable[[int], list[tuple[str, float]]], k: int) -> list[tuple[str, float]]:
    """Return the best `k` keys with their scores, and of equal scores those with the lowest keys.

    Args:
        search: Returns up to a number of keys with their scores, best first; of equal ones it may return any.
    """
    count = k + 1
    while True:  # until all that are as good as the last one are there
        found = search(count)
        if len(found) < count or found[-1][1] < found[k - 1][1]:
            return sorted(found, key=lambda each: (-each[1], each[0]))[:k]
        count *= 2


def text_of(value: bytes) -> str:
    """Return a value as the text by which it is found: its hex digits if it is not UTF-8."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.hex()


class _OwnScorer:
    """Scores values by the recall of this package, in memory."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._keyed = self._new()

    @staticmethod
    def _new() -> Any:
        return recollect.open(":memory:", embedder="none").keyed

    def put(self, key: str, value: bytes) -> None:
        self._keyed.write(key, value)
        self._values[key] = value
        self._writes += 1
        if self._writes > 4 * len(self._values) + _FORMER:  # the store has all versions, which are not needed here
            self._keyed, self._writes = self._new(), 0
            for each, stored in self._values.items():
                self._keyed.write(each, stored)

    def drop(self, key: str) -> None:
        self._values.pop(key, None)
        self._keyed.forget(key)

    def find(self, query: str, k: int, min_score: float) -> list[tuple[str, float]]:
        if not query.strip() or min_score > 1:
            return []

        def search(count: int) -> list[tuple[str, float]]:
            return [(each.key, each.score) for each in self._keyed.recall(query, count, max(0.0, min_score))]

        return best(search, k)

    _writes = 0


class RecollectMemory:
    """The keyed memory of a store behind the protocol: values have a history, and recall is that of this package.

    Calls run in the event loop: in memory, each takes less than a millisecond.

    Args:
        agent_id: The id of an agent, which commits name as the actor.
        path: Where the store is, as for `recollect.open`; None: in memory.
        ttl: Seconds after its last write at which an entry expires; None: never.
    """

    def __init__(
        self,
        agent_id: str | None = None,
        *,
        path: str | PathLike[str] | None = None,
        namespace: str = "default",
        ttl: float | None = None,
    ) -> None:
        if agent_id is not None and (not isinstance(agent_id, str) or agent_id.endswith(".db") or "/" in agent_id):
            raise InvalidArgumentError("agent_id", agent_id, "must be the id of an agent: pass the path as path=")
        self._memory = recollect.open(":memory:" if path is None else path, namespace, embedder="none")
        self._keyed = self._memory.keyed.by(None if agent_id is None else str(agent_id))
        self._ttl = checked_ttl(ttl)

    async def read(self, key: str) -> bytes | None:
        """Return the value of a key; None if there is none."""
        return self._keyed.read(key)

    async def write(self, key: str, value: bytes) -> None:
        """Set the value of a key."""
        self._keyed.write(key, value, ttl=self._ttl)

    async def cas(self, key: str, expected: bytes | None, new: bytes) -> bool:
        """Set the value of a key if it has the expected one (None: if there is none), and return whether it had."""
        return self._keyed.cas(key, expected, new, ttl=self._ttl)

    def subscribe(self, key: str) -> AsyncIterator[bytes]:
        """Yield the values that are written to a key after the first `anext`. None is dropped."""
        return _values(lambda: self._keyed.subscribe(key, kinds=("written",), queue=_UNBOUNDED))

    async def recall(self, query: str, k: int = 5, min_score: float = 0.0) -> list[RecallHit]:
        """Return the entries that fit a question best, best first, with their confidence as the score."""
        return [RecallHit(*found) for found in self._keyed.recall(query, k, min_score)]

    async def forget(self, key: str) -> bool:
        """Remove a key, and return whether there was one. Its history stays."""
        return self._keyed.forget(key)

    def stats(self) -> dict[str, int]:
        """Return the statistics. See `Keyed.stats`."""
        return self._keyed.stats()

    def close(self) -> None:
        """Close the store."""
        self._memory.close()


# The compatible scorer: a hashed bag of tokens and character trigrams, compared by cosine.
#
# The scores are those of the published algorithm to the last bit: a dot product adds its terms in the order of the
# buckets, for all entries at once. Bits of a machine's vector library play no part.

#: Number of entries for which there is room at first. It doubles.
_ROOM = 64


class HashedTrigrams:
    """Scores texts by the cosine of their vectors. See `recollect.keyed.Scorer`.

    A value that is not UTF-8 is found by its hex digits. A text is embedded when it is first searched.
    """

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._keys: list[str | None] = []  # by slot
        self._free: list[int] = []
        self._new: dict[str, bytes] = {}  # what is to be embedded
        self._vectors = np.zeros((DIMENSION, _ROOM))
        self._live = np.zeros(_ROOM, dtype=bool)

    def put(self, key: str, value: bytes) -> None:
        """Score this value for a key from now on."""
        self._new[key] = value

    def drop(self, key: str) -> None:
        """Score no value for a key any more."""
        self._new.pop(key, None)
        slot = self._slots.pop(key, None)
        if slot is not None:
            self._keys[slot] = None
            self._live[slot] = False
            self._free.append(slot)

    def find(self, query: str, k: int, min_score: float) -> list[tuple[str, float]]:
        """Return the keys of the best texts, with their scores."""
        self._embed_new()
        count = len(self._keys)
        asked = np.array(hashed_vector(query))
        scores = np.zeros(count)
        for bucket in asked.nonzero()[0]:
            scores += asked[bucket] * self._vectors[bucket, :count]
        fit = np.flatnonzero(self._live[:count] & (scores >= min_score))
        if len(fit) > k:
            least = np.partition(scores[fit], len(fit) - k)[len(fit) - k]
            fit = fit[scores[fit] >= least]
        found = ((-float(scores[slot]), self._keys[slot] or "") for slot in fit)
        return [(key, -score + 0.0) for score, key in nsmallest(k, found)]

    def _embed_new(self) -> None:
        for key, value in self._new.items():
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = self._slot()
                self._keys[slot] = key
                self._live[slot] = True
            self._vectors[:, slot] = hashed_vector(text_of(value))
        self._new.clear()

    def _slot(self) -> int:
        """Return a free slot."""
        if self._free:
            return self._free.pop()
        self._keys.append(None)
        if len(self._keys) > len(self._live):
            self._vectors = np.hstack((self._vectors, np.zeros_like(self._vectors)))
            self._live = np.hstack((self._live, np.zeros_like(self._live)))
        return len(self._keys) - 1
