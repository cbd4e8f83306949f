"""An embedding model of LangChain, which a store is configured with, as an embedder of a memory."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class ConfiguredEmbedder:
    """The model that a store was configured with.

    Args:
        stated: What the configuration has: embeddings of LangChain, a function, or a provider's name.
        embeddings: The same as embeddings of LangChain.
        dimension: Number of components of the vectors; None if it is not stated.
    """

    def __init__(self, stated: Any, embeddings: Any, dimension: int | None) -> None:
        self._embeddings = embeddings
        self._dimension = dimension
        of = stated if hasattr(stated, "__qualname__") else type(embeddings)
        self._place = stated if isinstance(stated, str) else f"{of.__module__}.{of.__qualname__}"
        call = getattr(stated, "__call__", None)  # noqa: B004 - whether that is a coroutine function
        self._is_awaited = asyncio.iscoroutinefunction(stated) or asyncio.iscoroutinefunction(call)

    @property
    def name(self) -> str:
        """The name under which the vectors are stored: the function or class, its model if any, and the dimension."""
        model = getattr(self._embeddings, "model", None) or getattr(self._embeddings, "model_name", None) or ""
        return f"langchain/{self._place}/{model}/{self._dimension or ''}"

    @property
    def dimension(self) -> int | None:
        """Number of components of its vectors."""
        return self._dimension

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> Any:
        """Return a vector for each text."""
        model = self._embeddings
        if self._is_awaited:
            return _awaited(model.aembed_documents(list(texts)))
        return [model.embed_query(text) for text in texts] if asking else model.embed_documents(list(texts))

    def __eq__(self, other: object) -> bool:
        """Two stores of one path must have equal embedders."""
        return (
            isinstance(other, ConfiguredEmbedder)
            and self.name == other.name
            and (self._embeddings is other._embeddings or self._embeddings == other._embeddings)
        )

    __hash__ = None  # type: ignore[assignment]


def _awaited(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a coroutine, also in a thread whose event loop runs."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
