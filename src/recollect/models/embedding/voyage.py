"""Embeddings by Voyage AI: OpenAI's wire format with other parameter names, and a type for questions and documents.

Source:
    https://docs.voyageai.com/reference/embeddings-api
"""

from __future__ import annotations

from typing import Any

from recollect.models.embedding.endpoint import Endpoint

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
