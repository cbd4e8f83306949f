"""Semantic memories whose values are compared by the vectors of an embedder, with an index of vectors.

`VectorMemory` takes any embedder and any index; the others have one of each, so that a scenario can name them. Texts
are embedded together when they are first searched, and a recall waits for the embedder in the event loop.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from recollect import RecollectWarning
from recollect.compat.nest.indexes import ArrayIndex, ChromaIndex, FaissIndex, VectorIndex
from recollect.compat.nest.plugins import SemanticMemory, best, text_of
from recollect.errors import EmbedderError
from recollect.models.embedding.base import Embedded, Embedder, Floats, VectorLike, embedded
from recollect.models.embedding.environment import embedder_from, embedder_of_environment

#: What computes vectors: an embedder, "provider/model", or a function from a text to its vector.
Embed = Embedder | str | Callable[[str], Sequence[float]]


class VectorMemory(SemanticMemory):
    """A semantic memory whose values are compared by an embedder and an index.

    A `recall` raises EmbedderError if the embedder fails; the next one tries again. A value for which there is no
    vector is never found, and a RecollectWarning says why.

    Args:
        capacity: As for `SemanticMemory`.
        ttl: As for `SemanticMemory`.
        now_fn: As for `SemanticMemory`.
        embed: An embedder, "provider/model" as for `recollect.open`, or a function that returns the vector of a text.
        index: Where the vectors are. It belongs only to this memory.
        **limits: `capacity_bytes` and `evict`, as for `SemanticMemory`.

    Raises:
        ValueError: A limit is 0 or less, or the embedder is unknown.
    """

    def __init__(
        self,
        capacity: int | str | None = None,
        ttl: int | None = None,
        now_fn: Callable[[], int] | None = None,
        *,
        embed: Embed,
        index: VectorIndex,
        **limits: Any,
    ) -> None:
        if isinstance(embed, str):
            embed = embedder_from(embed)
        embedder = embed if isinstance(embed, Embedder) else _Function(embed)
        super().__init__(capacity, ttl, now_fn, scorer=_Vectors(embedder, index), **limits)
        self._embedder = embedder

    def close(self) -> None:
        """Close the connections of the embedder, if it has any. The next recall opens them again."""
        close = getattr(self._embedder, "close", None)
        if close is not None:
            close()


class _NamedMemory(VectorMemory):
    """A `VectorMemory` that a scenario can name, with an embedder and an index of its own.

    Args:
        capacity: As for `SemanticMemory`.
        ttl: As for `SemanticMemory`.
        now_fn: As for `SemanticMemory`.
        embed: Another embedder, as for `VectorMemory`.
        **limits: `capacity_bytes` and `evict`, as for `SemanticMemory`.

    Raises:
        ValueError: A limit is 0 or less, or the embedder is unknown.
        MissingExtraError: The library of the index is not installed.
        EmbedderUnavailableError: The embedder is named and has no key; the message names the variable.
    """

    #: "provider/model"; None: the embedder of the environment (RECOLLECT_EMBEDDER), or else "hashed".
    _embed: ClassVar[str | None] = None
    _index: ClassVar[Callable[[], VectorIndex]] = ArrayIndex

    def __init__(
        self,
        capacity: int | str | None = None,
        ttl: int | None = None,
        now_fn: Callable[[], int] | None = None,
        *,
        embed: Embed | None = None,
        **limits: Any,
    ) -> None:
        if embed is None:
            embed = self._embed or embedder_of_environment() or "hashed"
        if isinstance(embed, str):
            embed = embedder_from(embed)
            embedded(embed, [])  # sends nothing: without its key, a scenario ends before its first tick
        super().__init__(capacity, ttl, now_fn, embed=embed, index=type(self)._index(), **limits)


class FaissMemory(_NamedMemory):
    """`memory: faiss`: vectors in an exact index of faiss (extra `faiss`), by RECOLLECT_EMBEDDER, or else "hashed"."""

    _index = FaissIndex


class ChromaMemory(_NamedMemory):
    """`memory: chroma`: vectors in a collection of Chroma (extra `chroma`), by RECOLLECT_EMBEDDER, or else "hashed"."""

    _index = ChromaIndex


class OpenAIMemory(_NamedMemory):
    """`memory: openai_embeddings`: vectors of OpenAI (extra `embedding-http`), compared exactly.

    OPENAI_API_KEY is the key; OPENAI_BASE_URL may name another server, which then need not require one.
    """

    _embed = "openai/text-embedding-3-small"


class AnthropicMemory(_NamedMemory):
    """`memory: anthropic_embeddings`: vectors of Voyage AI (extra `embedding-http`), compared exactly.

    Anthropic has no embeddings and refers to Voyage AI. VOYAGE_API_KEY is the key; VOYAGE_BASE_URL may name another
    server, which then need not require one.
    """

    _embed = "voyage/voyage-3.5"


class _Function:
    """A function from a text to its vector, as an embedder."""

    name = "embed"
    dimension: int | None = None

    def __init__(self, function: Callable[[str], Sequence[float]]) -> None:
        self._function = function

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> Sequence[VectorLike]:
        return [self._function(text) for text in texts]


class _Vectors:
    """A scorer on an embedder and an index."""

    def __init__(self, embedder: Embedder, index: VectorIndex) -> None:
        self._embedder = embedder
        self._index = index
        self._new: dict[str, str] = {}  # texts that are to be embedded
        self._dimension: int | None = None

    def put(self, key: str, value: bytes) -> None:
        self._new[key] = text_of(value)

    def drop(self, key: str) -> None:
        self._new.pop(key, None)
        self._index.drop(key)

    def find(self, query: str, k: int, min_score: float) -> list[tuple[str, float]]:
        if not query.strip():
            return []
        self._embed_new()
        asked = self._embed([query], asking=True)
        if asked.refused:
            raise EmbedderError(self._embedder.name, f"the question cannot be compared: {asked.refused[0]}")
        found = best(lambda count: self._search(asked.vectors[0], count), k)
        return [each for each in found if each[1] >= min_score]

    def _search(self, vector: Floats, count: int) -> list[tuple[str, float]]:
        return [(key, float(score)) for key, score in self._index.search(vector.tolist(), count)]

    def _embed_new(self) -> None:
        keys = [key for key, text in self._new.items() if text.strip()]  # servers refuse blank texts
        done = self._embed([self._new[key] for key in keys], asking=False)
        for key in self._new:
            self._index.drop(key)
        for at, vector in done.vectors.items():
            self._index.put(keys[at], vector.tolist())
        self._new.clear()
        for at, reason in done.refused.items():
            warnings.warn(f"the value of {keys[at]!r} cannot be found: {reason}", RecollectWarning, stacklevel=2)

    def _embed(self, texts: list[str], *, asking: bool) -> Embedded:
        """Return the vectors of texts, all of the size of the first one."""
        if not texts:
            return Embedded({}, {})
        done = embedded(self._embedder, texts, asking=asking, dimension=self._dimension)
        for vector in done.vectors.values():
            self._dimension = len(vector)
        return done
