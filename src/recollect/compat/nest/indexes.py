"""Indexes of vectors for plugins: one in NumPy, which is exact, and thin layers on faiss and Chroma.

All compare by the cosine. A vector of length 0 has no direction: its key is not found. The libraries are imported when
an index is made.
"""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Sequence
from heapq import nsmallest
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.errors import MissingExtraError

_Floats = NDArray[np.float32]


class VectorIndex(Protocol):
    """An index of vectors: a thin layer on faiss, Chroma, pgvector or another engine."""

    def put(self, key: str, vector: Sequence[float]) -> None:
        """Store the vector of a key, in place of the one that it has."""

    def drop(self, key: str) -> None:
        """Remove a key, if it is there."""

    def search(self, vector: Sequence[float], k: int) -> list[tuple[str, float]]:
        """Return up to `k` keys with their scores, best first."""


def _unit(vector: Sequence[float]) -> _Floats | None:
    """Return a vector with the length 1; None if its length is 0."""
    floats = np.asarray(vector, dtype=np.float32)
    length = np.linalg.norm(floats)
    return floats / length if length else None


class ArrayIndex:
    """An exact index in NumPy. A search compares all vectors."""

    def __init__(self) -> None:
        self._vectors: dict[str, _Floats] = {}
        self._matrix: _Floats | None = None  # all vectors in their order; None if one has changed

    def put(self, key: str, vector: Sequence[float]) -> None:
        """Store the vector of a key. See `VectorIndex`."""
        self.drop(key)
        if (unit := _unit(vector)) is not None:
            self._vectors[key] = unit

    def drop(self, key: str) -> None:
        """Remove a key. See `VectorIndex`."""
        self._matrix = None
        self._vectors.pop(key, None)

    def search(self, vector: Sequence[float], k: int) -> list[tuple[str, float]]:
        """Return the best keys with their cosines. See `VectorIndex`."""
        unit = _unit(vector)
        if unit is None or not self._vectors:
            return []
        if self._matrix is None:
            self._matrix = np.stack(list(self._vectors.values()))
        scores = self._matrix @ unit
        found = nsmallest(k, ((-float(score), key) for score, key in zip(scores, self._vectors, strict=True)))
        return [(key, -score) for score, key in found]


class FaissIndex:
    """An exact index of faiss (`IndexFlatIP`), in memory.

    Raises:
        MissingExtraError: faiss is not installed.
    """

    def __init__(self) -> None:
        try:
            import faiss
        except ImportError as error:
            raise MissingExtraError("the memory plugin faiss", "faiss-cpu", "faiss") from error
        self._faiss: Any = faiss
        self._index: Any = None  # made with the first vector, which decides the dimension
        self._numbers: dict[str, int] = {}
        self._keys: dict[int, str] = {}
        self._next = 0

    def put(self, key: str, vector: Sequence[float]) -> None:
        """Store the vector of a key. See `VectorIndex`."""
        self.drop(key)
        if (unit := _unit(vector)) is None:
            return
        if self._index is None:
            self._index = self._faiss.IndexIDMap2(self._faiss.IndexFlatIP(len(unit)))
        number, self._next = self._next, self._next + 1
        self._numbers[key], self._keys[number] = number, key
        self._index.add_with_ids(unit[np.newaxis], np.array([number], dtype=np.int64))

    def drop(self, key: str) -> None:
        """Remove a key. See `VectorIndex`."""
        number = self._numbers.pop(key, None)
        if number is not None:
            del self._keys[number]
            self._index.remove_ids(np.array([number], dtype=np.int64))

    def search(self, vector: Sequence[float], k: int) -> list[tuple[str, float]]:
        """Return the best keys with their cosines. See `VectorIndex`."""
        unit, count = _unit(vector), min(k, len(self._keys))
        if unit is None or not count:
            return []
        scores, numbers = self._index.search(unit[np.newaxis], count)
        return [(self._keys[int(number)], float(score)) for number, score in zip(numbers[0], scores[0], strict=True)]


class ChromaIndex:
    """A collection of Chroma, in the memory of this process. Its search is approximate (HNSW).

    Raises:
        MissingExtraError: Chroma is not installed.
    """

    #: Before each key: Chroma takes no empty id.
    _PREFIX = "="

    def __init__(self) -> None:
        try:
            import chromadb
            from chromadb.config import Settings
        except ImportError as error:
            raise MissingExtraError("the memory plugin chroma", "chromadb", "chroma") from error
        client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
        # All clients of a process share their collections, so each index has a name of its own, and removes it.
        name = f"recollect-{uuid.uuid4()}"
        space = {"hnsw": {"space": "cosine"}}
        self._collection: Any = client.create_collection(name, configuration=space, embedding_function=None)
        weakref.finalize(self, client.delete_collection, name).atexit = False

    def put(self, key: str, vector: Sequence[float]) -> None:
        """Store the vector of a key. See `VectorIndex`."""
        unit = _unit(vector)
        if unit is None:
            self.drop(key)
        else:
            self._collection.upsert(ids=[self._PREFIX + key], embeddings=[unit])

    def drop(self, key: str) -> None:
        """Remove a key. See `VectorIndex`."""
        self._collection.delete(ids=[self._PREFIX + key])

    def search(self, vector: Sequence[float], k: int) -> list[tuple[str, float]]:
        """Return the best keys with their cosines. See `VectorIndex`."""
        unit, count = _unit(vector), min(k, self._collection.count())
        if unit is None or not count:
            return []
        found = self._collection.query(query_embeddings=[unit], n_results=count, include=["distances"])
        pairs = zip(found["ids"][0], found["distances"][0], strict=True)
        return [(each.removeprefix(self._PREFIX), 1 - float(distance)) for each, distance in pairs]
