"""Embedding services under the names of LLM4S, and their use as embedders of this package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from recollect.arguments.checks import check_count
from recollect.compat.llm4s.vectors import Vector, VectorLike, as_vector
from recollect.errors import EmbedderError, EmbedderUnavailableError, InvalidArgumentError
from recollect.models.embedding.base import Embedder, embedded
from recollect.models.embedding.environment import EMBEDDER_VARIABLE, SHARED_VARIABLE, embedder_of_environment
from recollect.models.embedding.hashed import hashed_vector
from recollect.operations import check_text


@runtime_checkable
class EmbeddingService(Protocol):
    """A model that returns vectors for texts, one at a time or several.

    A store takes one as its embedder. Its vectors are stored under its class and size, so a class must always return
    equal vectors for equal texts; if it has a `name`, that counts instead.
    """

    @property
    def dimensions(self) -> int:
        """The number of components of its vectors."""

    def embed(self, text: str) -> VectorLike:
        """Return the vector of a text. Any exception counts as a failure of the model."""

    def embed_batch(self, texts: Sequence[str]) -> Sequence[VectorLike]:
        """Return the vector of each text, in order. Any exception counts as a failure of the model."""


class LLMEmbeddingService:
    """The embedding service of a provider: an embedder of this package under the names of LLM4S.

        service = LLMEmbeddingService.from_env()

    Args:
        embedder: The embedder, such as `recollect.models.embedding` has.

    Attributes:
        embedder: The embedder.

    Raises:
        InvalidArgumentError: It is not an embedder.
    """

    def __init__(self, embedder: Embedder) -> None:
        if not isinstance(embedder, Embedder) or isinstance(embedder, type):
            raise InvalidArgumentError("embedder", embedder, "must be an Embedder")
        self.embedder = embedder

    @classmethod
    def from_env(cls) -> LLMEmbeddingService:
        """Return the service of the model that RECOLLECT_EMBEDDER or LLM_EMBEDDING_MODEL names ("provider/model").

        Raises:
            EmbedderUnavailableError: No variable names one.
        """
        embedder = embedder_of_environment()
        if embedder is None:
            reason = f"neither {EMBEDDER_VARIABLE} nor {SHARED_VARIABLE} names a PROVIDER/MODEL"
            raise EmbedderUnavailableError("of the environment", reason)
        return cls(embedder)

    @property
    def dimensions(self) -> int:
        """The number of components of its vectors. If the embedder does not state it, a text is embedded to see it.

        Raises:
            EmbedderError: See `embed`.
        """
        return self.embedder.dimension or len(self.embed("dimensions"))

    def embed(self, text: str) -> Vector:
        """Return the vector of a text.

        Raises:
            InvalidArgumentError: It is not text.
            EmbedderError: The model failed, or has no vector for it.
        """
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vector of each text, in order; without texts, the model is not called.

        Raises:
            See `embed`.
        """
        texts = _checked(texts)
        if not texts:
            return []
        out = embedded(self.embedder, texts)
        for index, reason in out.refused.items():
            raise EmbedderError(self.embedder.name, f"text {index}: {reason}")
        return [as_vector(out.vectors[index]) for index in range(len(texts))]

    def __repr__(self) -> str:
        return f"<LLMEmbeddingService {self.embedder!r}>"


class MockEmbeddingService:
    """An embedding service for tests: equal vectors on every machine, without a model.

    Texts that share words or spellings have similar vectors, as those of `recollect.models.embedding.hashed` do. A text
    without ASCII letters and digits has a zero vector, for which a search is made by words.

    Args:
        dimensions: The number of components, 1 or more.

    Raises:
        InvalidArgumentError: It is not such a number.
    """

    def __init__(self, dimensions: int = 1536) -> None:
        check_count("dimensions", dimensions)
        self._dimensions = dimensions

    @property
    def name(self) -> str:
        """The name under which its vectors are stored."""
        return f"mock/1/{self._dimensions}"

    @property
    def dimensions(self) -> int:
        """The number of components of its vectors."""
        return self._dimensions

    def embed(self, text: str) -> Vector:
        """Return the vector of a text, of length 1.

        Raises:
            InvalidArgumentError: It is not text.
        """
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vector of each text, in order.

        Raises:
            See `embed`.
        """
        return [as_vector(hashed_vector(text, self._dimensions)) for text in _checked(texts)]

    def __repr__(self) -> str:
        return f"MockEmbeddingService({self._dimensions})"


class _ServiceEmbedder:
    """A service as an embedder."""

    def __init__(self, service: EmbeddingService) -> None:
        self._service = service
        kind = type(service)
        name: str | None = getattr(service, "name", None)
        self.name = name or f"llm4s/{kind.__module__}.{kind.__qualname__}/{service.dimensions}"

    @property
    def dimension(self) -> int:
        return self._service.dimensions

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> Sequence[VectorLike]:
        return self._service.embed_batch(texts)

    def __repr__(self) -> str:
        return repr(self._service)


def as_embedder(model: Embedder | EmbeddingService | str | None) -> Embedder | str | None:
    """Return a service as an embedder, and anything else as it is."""
    if isinstance(model, LLMEmbeddingService):
        return model.embedder  # which distinguishes questions from documents
    if isinstance(model, type) or not isinstance(model, EmbeddingService):
        return model
    return _ServiceEmbedder(model)


def _checked(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise InvalidArgumentError("texts", texts, "must be a list of texts")
    for text in texts:
        check_text("text", text, blank=True)
    return list(texts)
