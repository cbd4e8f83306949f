"""The stores of LLM4S by the names that it gives to its backends. Each is a `MemoryStore` with another constructor."""

from __future__ import annotations

import os
from collections.abc import Iterable

from recollect.compat.llm4s.config import MemoryStoreConfig
from recollect.compat.llm4s.services import EmbeddingService
from recollect.compat.llm4s.store import MemoryStore
from recollect.compat.llm4s.types import Memory
from recollect.models.embedding.base import Embedder

_NO_EMBEDDER = "none"


class InMemoryStore(MemoryStore):
    """An empty store that ends with the process, without an embedder.

    Args:
        config: The settings.
    """

    def __init__(self, config: MemoryStoreConfig | None = None) -> None:
        self._open(":memory:", _NO_EMBEDDER, config)

    @classmethod
    def empty(cls) -> InMemoryStore:
        """Return an empty store with the default settings."""
        return cls()

    @classmethod
    def with_memories(cls, memories: Iterable[Memory]) -> InMemoryStore:
        """Return a store with some memories and the default settings.

        Raises:
            See `MemoryStore.store_all`.
        """
        store = cls()
        try:
            store.store_all(memories)
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def with_embedding_service(
        cls, service: Embedder | EmbeddingService | str, config: MemoryStoreConfig | None = None
    ) -> InMemoryStore:
        """Return an empty store that embeds what is stored and what is searched for."""
        return cls.in_memory(service, config)


class SQLiteMemoryStore(MemoryStore):
    """A store in a file, without an embedder.

    Args:
        path: The file, which is created if there is none.
        config: The settings.

    Raises:
        RecollectError: See `recollect.open`.
    """

    def __init__(self, path: str | os.PathLike[str], config: MemoryStoreConfig | None = None) -> None:
        self._open(path, _NO_EMBEDDER, config)


class VectorMemoryStore(MemoryStore):
    """A store in a file that embeds what is stored and what is searched for.

    Args:
        path: The file, which is created if there is none.
        service: The model: a service, an embedder, or "provider/model" text.
        config: The settings.

    Raises:
        RecollectError: See `recollect.open`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        service: Embedder | EmbeddingService | str,
        config: MemoryStoreConfig | None = None,
    ) -> None:
        self._open(path, service, config)
