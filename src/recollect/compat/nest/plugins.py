"""The plugins: a blackboard, the compatible semantic store, and the keyed memory of this package.

Each is built without an argument, or with the id of an agent by position, as some scenarios do; the plugins that are
built with ids do not share anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from heapq import nsmallest
from importlib.metadata import EntryPoint, entry_points
from os import PathLike
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

import recollect
from recollect.errors import InvalidArgumentError
from recollect.facets.keyed.values import checked_ttl
from recollect.keyed import Evict, KeySubscription, Missed, Scorer, Shelf
from recollect.models.embedding.hashed import DIMENSION, hashed_vector

#: Number of former versions at which the scorer of this package begins a new store.
_FORMER = 10_000


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


class RecallHit(NamedTuple):
    """A result of a recall.

    Attributes:
        score: How well it fits.
    """

    key: str
    value: bytes
    score: float


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

        Raises:
            LookupError: The subscriber was so slow that values were dropped. It has ended: subscribe and read again.
        """
        return _values(lambda: self.shelf.subscribe(key, kinds=("written",)))

    async def forget(self, key: str) -> bool:
        """Remove a key, and return whether there was one."""
        return self.shelf.forget(key)

    def stats(self) -> dict[str, int]:
        """Return the statistics of the shelf. See `recollect.keyed.Shelf.stats`."""
        return self.shelf.stats()


async def _values(subscribe: Callable[[], KeySubscription]) -> AsyncIterator[bytes]:
    with subscribe() as events:
        async for event in events:
            if isinstance(event, Missed):
                raise MissedValuesError(event.number)
            if event.value is not None:
                yield event.value


class MissedValuesError(LookupError):
    """A subscriber was too slow, and values were dropped. Subscribe again and read the key."""

    def __init__(self, count: int) -> None:
        super().__init__(count)

    def __str__(self) -> str:
        return f"{self.args[0]} values were dropped, because they were not read in time: subscribe and read again"


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
        count = k
        while True:  # until all that are as good as the last one are there: of these the lowest keys come first
            found = self._keyed.recall(query, count, max(0.0, min_score))
            if len(found) < count or found[-1].score < found[k - 1].score:
                break
            count *= 2
        return sorted(((each.key, each.score) for each in found), key=lambda each: (-each[1], each[0]))[:k]

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
        """Yield the values that are written to a key after the first `anext`."""
        return _values(lambda: self._keyed.subscribe(key, kinds=("written",)))

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


_OWN_ENGINE = (
    "it would choose an embedding model and a library for you: pass your own to "
    "recollect.compat.nest.VectorMemory(embed=..., index=...), or use 'semantic' or 'recollect'"
)
#: Names of plugins that are refused -> why.
REFUSED = dict.fromkeys(("chroma", "faiss", "pgvector"), _OWN_ENGINE)


class VectorIndex(Protocol):
    """An index of vectors: a thin layer on faiss, Chroma, pgvector or another engine."""

    def put(self, key: str, vector: Sequence[float]) -> None:
        """Store the vector of a key, in place of the one that it has."""

    def drop(self, key: str) -> None:
        """Remove a key, if it is there."""

    def search(self, vector: Sequence[float], k: int) -> list[tuple[str, float]]:
        """Return up to `k` keys with their scores, best first."""


class VectorMemory(SemanticMemory):
    """A semantic memory whose values are compared by an embedder and an index of the user's.

    Args:
        embed: Returns the vector of a text.
        index: Where the vectors are. It belongs only to this memory.
        **limits: As for `SemanticMemory`.
    """

    def __init__(self, *, embed: Callable[[str], Sequence[float]], index: VectorIndex, **limits: object) -> None:
        super().__init__(scorer=_Vectors(embed, index), **limits)  # type: ignore[arg-type]


class _Vectors:
    """A scorer on an embedder and an index."""

    def __init__(self, embed: Callable[[str], Sequence[float]], index: VectorIndex) -> None:
        self._embed = embed
        self._index = index

    def put(self, key: str, value: bytes) -> None:
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            text = value.hex()
        self._index.put(key, self._embed(text))

    def drop(self, key: str) -> None:
        self._index.drop(key)

    def find(self, query: str, k: int, min_score: float) -> list[tuple[str, float]]:
        found = ((key, float(score)) for key, score in self._index.search(self._embed(query), k))
        return sorted((each for each in found if each[1] >= min_score), key=lambda each: (-each[1], each[0]))


LAYER = "memory"
#: The group in which packages name their plugins for this layer.
GROUP = f"nest.plugins.{LAYER}"
_OWN: dict[str, type] = {
    "blackboard": Blackboard,
    "recollect": RecollectMemory,
    "recollect-blackboard": Blackboard,
    "semantic": SemanticMemory,
}


class PluginRegistry:
    """Finds plugins by layer and name. Those that a package names in its entry points replace ours."""

    def __init__(self) -> None:
        self._found: dict[str, EntryPoint] = {each.name: each for each in entry_points(group=GROUP)}

    def resolve(self, layer: str, name: str) -> Any:
        """Return the class of a plugin.

        Raises:
            KeyError: There is none; the message names the layer and the name.
        """
        if layer == LAYER and name in self._found:
            return self._found[name].load()
        if layer == LAYER and name in _OWN:
            return _OWN[name]
        more = f": {REFUSED[name]}" if layer == LAYER and name in REFUSED else ""
        raise KeyError(f"no plugin for the layer {layer!r} has the name {name!r}{more}")

    def list_plugins(self, layer: str | None = None) -> list[tuple[str, str]]:
        """Return the layer and the name of each plugin, of one layer or of all."""
        names = {*self._found, *_OWN} if layer in (None, LAYER) else set()
        return [(LAYER, name) for name in sorted(names)]


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
            try:
                text = value.decode("utf-8")
            except UnicodeDecodeError:
                text = value.hex()
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = self._slot()
                self._keys[slot] = key
                self._live[slot] = True
            self._vectors[:, slot] = hashed_vector(text)
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
