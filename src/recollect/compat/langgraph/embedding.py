"""The embedding model of an index configuration as an embedder of a memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class ConfiguredEmbedder:
    """The embeddings of LangChain that a store was configured with.

    Args:
        embeddings: The embeddings.
        dimension: Number of components of the vectors; None if it is not stated.
    """

    def __init__(self, embeddings: Any, dimension: int | None) -> None:
        self._embeddings = embeddings
        self._dimension = dimension

    @property
    def name(self) -> str:
        """The name under which the vectors are stored: the class, the model if it has one, and the dimension."""
        model = getattr(self._embeddings, "model", None) or getattr(self._embeddings, "model_name", None) or ""
        return f"langchain/{type(self._embeddings).__name__}/{model}/{self._dimension or ''}"

    @property
    def dimension(self) -> int | None:
        """Number of components of its vectors."""
        return self._dimension

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> Any:
        """Return a vector for each text."""
        if asking:
            return [self._embeddings.embed_query(text) for text in texts]
        return self._embeddings.embed_documents(list(texts))

    def __eq__(self, other: object) -> bool:
        """Two stores of one path must have equal embedders."""
        return (
            isinstance(other, ConfiguredEmbedder)
            and self.name == other.name
            and (self._embeddings is other._embeddings or self._embeddings == other._embeddings)
        )

    __hash__ = None  # type: ignore[assignment]
