"""A memory that is searched by the user's own embedder and index, and why the names of vector engines are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from recollect.compat.nest.plugins import SemanticMemory

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
        ...

    def drop(self, key: str) -> None:
        """Remove a key, if it is there."""
        ...

    def search(self, vector: Sequence[float], k: int) -> list[tuple[str, float]]:
        """Return up to `k` keys with their scores, best first."""
        ...


class VectorMemory(SemanticMemory):
    """A semantic memory whose values are compared by an embedder and an index of the user's.

    Args:
        embed: Returns the vector of a text.
        index: Where the vectors are. It belongs to this memory alone.
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
