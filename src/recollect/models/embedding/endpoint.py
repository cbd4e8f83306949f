"""Embeddings over HTTP, from any server with the API of OpenAI's `/v1/embeddings`.

OpenAI, Ollama, vLLM, LM Studio and many others provide it. Texts are sent in batches; `recollect.models.remote` sends
the requests, retries them and limits their responses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from recollect.arguments.checks import check_count
from recollect.errors import (
    EmbedderError,
    EmbedderRefusedError,
    EmbedderUnavailableError,
    InvalidArgumentError,
    RecollectError,
)
from recollect.models.embedding.base import Floors, VectorLike, check_floors
from recollect.models.remote import ENVELOPE_BYTES, Errors, RemoteClient, check_key, check_timeout, checked_url

#: Limits on the bytes of a response: for each vector of unknown dimension (10,000 numbers as servers write them), for
#: each number if the dimension is known, and for the other data of each vector.
UNKNOWN_VECTOR_BYTES, NUMBER_BYTES, ITEM_BYTES = 2**18, 64, 2**10
_ERRORS = Errors(EmbedderError, EmbedderRefusedError, EmbedderUnavailableError)


class Endpoint:
    """An `Embedder` behind a URL.

    Args:
        model: The name of the model on the server.
        url: The URL up to and including the version: "https://api.openai.com/v1".
        key: Sent as a bearer token; None for servers that need none.
        provider: The first part of the embedder's name.
        dimensions: Request vectors of this size, if the model can shorten them; None: its own size.
        batch_size: Number of texts in a request.
        timeout_s: Maximum seconds from sending a request to the end of its response. Each retry has the same time
            again, in addition to the pauses between them; a question is one request, so its call ends within this time.
        retries: Maximum number of times that a request is sent again after a temporary failure. Questions are never
            retried, since a caller waits for them.
        floors: The floors for the model's cosines (`Floors`).
        sleep: Waits the number of seconds that is passed to it; for tests.
        key_variable: The environment variable for the key, named in the error message if it is missing.
    """

    def __init__(
        self,
        model: str,
        *,
        url: str,
        key: str | None = None,
        provider: str = "endpoint",
        dimensions: int | None = None,
        batch_size: int = 128,
        timeout_s: float = 30.0,
        retries: int = 3,
        floors: Floors = Floors(),  # noqa: B008 - a constant
        sleep: Callable[[float], object] = time.sleep,
        key_variable: str = "",
    ) -> None:
        if not isinstance(model, str) or not model:
            raise InvalidArgumentError("model", model, "must be the name of a model")
        base = checked_url(url)
        check_key(key)
        for name, value, least in (
            ("batch_size", batch_size, 1),
            ("retries", retries, 0),
            ("dimensions", dimensions, 1),
        ):
            check_count(name, value, least=least, optional=True)
        check_timeout(timeout_s)
        self.name = f"{provider}/{model}"
        self.floors = check_floors(floors)
        self._model = model
        self._key = key
        self._key_variable = key_variable
        self._dimensions = dimensions
        self._batch_size = batch_size
        self._retries = retries
        self._size = dimensions  # of the vectors received so far
        self._client = RemoteClient(
            self.name,
            f"{base}/embeddings",
            headers={} if key is None else {"Authorization": f"Bearer {key}"},
            key=key,
            errors=_ERRORS,
            extra=(f"the embedder {self.name}", "embedding-http"),
            timeout_s=timeout_s,
            sleep=sleep,
        )

    @property
    def dimension(self) -> int | None:
        return self._dimensions

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} at {self._client.url}>"

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[VectorLike]:
        try:
            return self._embed(texts, asking)
        except RecollectError:
            raise
        except Exception as error:  # noqa: BLE001 - from httpx, or no thread could be started
            raise EmbedderError(self.name, f"{type(error).__name__}: {self._client.scrubbed(str(error))}") from None

    def _embed(self, texts: Sequence[str], asking: bool) -> list[VectorLike]:
        if self._key is None and self._key_variable:
            raise EmbedderUnavailableError(self.name, f"it needs a key: set {self._key_variable}")
        out: list[VectorLike] = []
        for start in range(0, len(texts), self._batch_size):
            batch = list(texts[start : start + self._batch_size])
            answer = self._client.request(
                self._body(batch, asking), self._most_bytes(len(batch)), 0 if asking else self._retries
            )
            out.extend(self._vectors(answer, len(batch)))
        return out

    def close(self) -> None:
        """Close the connections; requests in progress finish first. Embedding again opens new connections."""
        self._client.close()

    def _body(self, texts: list[str], asking: bool) -> dict[str, Any]:
        """Return the request body for a batch."""
        body: dict[str, Any] = {"model": self._model, "input": texts}
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        return body

    def _most_bytes(self, count: int) -> int:
        """Return the maximum size in bytes of a response with `count` vectors."""
        vector = UNKNOWN_VECTOR_BYTES if self._size is None else self._size * NUMBER_BYTES
        return ENVELOPE_BYTES + count * (ITEM_BYTES + vector)

    def _vectors(self, answer: Any, count: int) -> list[VectorLike]:
        """Return the vectors of a response in the order of the texts. `embedded` validates each of them."""
        items = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise EmbedderError(self.name, 'its response has no list "data" of objects')
        if len(items) != count:
            raise EmbedderError(self.name, f"it returned {len(items)} vectors for {count} texts")
        out: list[VectorLike] = [None] * count
        indexes = [item.get("index", number) for number, item in enumerate(items)]
        if not all(type(index) is int for index in indexes) or sorted(indexes) != list(range(count)):
            raise EmbedderError(self.name, "the indexes in its response are not those of the texts")
        for index, item in zip(indexes, items, strict=True):
            out[index] = item.get("embedding")
        sizes = [len(vector) for vector in out if isinstance(vector, list)]
        if self._size is None and sizes:
            self._size = max(sizes)
        return out


# Embeddings by Voyage AI: OpenAI's wire format with other parameter names, and a type for questions and documents.
#
# Source:
#     https://docs.voyageai.com/reference/embeddings-api

URL = "https://api.voyageai.com/v1"


class Voyage(Endpoint):
    """An `Embedder` for Voyage AI or a compatible server. It takes the arguments of `Endpoint`."""

    def __init__(self, model: str, *, url: str = URL, provider: str = "voyage", **options: Any) -> None:
        super().__init__(model, url=url, provider=provider, **options)

    def _body(self, texts: list[str], asking: bool) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "input": texts,
            "input_type": "query" if asking else "document",
        }
        if self._dimensions is not None:
            body["output_dimension"] = self._dimensions
        return body
