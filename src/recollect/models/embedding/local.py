"""An embedder that runs a sentence-transformers model on this machine.

The library and the model are loaded when the first text is embedded, which takes seconds. A model in a folder or in the
cache needs no network (HF_HUB_OFFLINE=1 enforces that).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from recollect.errors import EmbedderUnavailableError, MissingExtraError
from recollect.models.embedding.base import Floats, Floors, check_floors


class SentenceTransformers:
    """An `Embedder` that runs a model with sentence-transformers.

    Args:
        model: A name on the Hugging Face hub ("all-MiniLM-L6-v2"), or a folder.
        revision: The revision of the model on the hub; it becomes part of the embedder's name. None: the latest, or the
            cached one.
        device: "cpu", "cuda" ...; None: chosen by the library.
        floors: The floors for the model's cosines (`Floors`).
    """

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        device: str | None = None,
        floors: Floors = Floors(),  # noqa: B008 - a constant
    ) -> None:
        self.name = f"sentence-transformers/{model}" + (f"@{revision}" if revision else "")
        self.floors = check_floors(floors)
        self._model = model
        self._revision = revision
        self._device = device
        self._loaded: Any = None
        self._dimension: int | None = None
        self._lock = threading.Lock()

    @property
    def dimension(self) -> int | None:
        return self._dimension

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> Floats:
        with self._lock:  # the library does not promise thread safety
            model = self._load()
            encode = model.encode_query if asking else model.encode_document
            vectors: Floats = encode(list(texts), convert_to_numpy=True, show_progress_bar=False)
            if len(texts):
                self._dimension = vectors.shape[1]
        return vectors

    def _load(self) -> Any:
        if self._loaded is None:
            try:
                from sentence_transformers import SentenceTransformer
            except ImportError as error:
                raise MissingExtraError(
                    f"the embedder {self.name}", "sentence-transformers", "sentence-transformers"
                ) from error
            try:
                self._loaded = SentenceTransformer(self._model, revision=self._revision, device=self._device)
            except (OSError, ValueError) as error:
                raise EmbedderUnavailableError(self.name, f"the model cannot be loaded: {error}") from error
        return self._loaded

    def __repr__(self) -> str:
        return f"<SentenceTransformers {self.name!r}>"


# An embedder that runs a model2vec model on this machine: a table of word vectors, small and fast, without torch.
#
# The library and the model are loaded when the first text is embedded.


class Model2Vec:
    """An `Embedder` that runs a static model.

    Args:
        model: A name on the Hugging Face hub ("minishlab/potion-base-8M"), or a folder.
        floors: The floors for the model's cosines (`Floors`).
    """

    def __init__(self, model: str, *, floors: Floors = Floors()) -> None:  # noqa: B008 - a constant
        self.name = f"model2vec/{model}"
        self.floors = check_floors(floors)
        self._model = model
        self._loaded: Any = None
        self._lock = threading.Lock()

    @property
    def dimension(self) -> int | None:
        return None if self._loaded is None else int(self._loaded.dim)

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> Floats:
        with self._lock:
            # The library would start processes for many texts; that decision is left to the caller.
            vectors: Floats = self._load().encode(list(texts), use_multiprocessing=False)
        return vectors

    def _load(self) -> Any:
        if self._loaded is None:
            try:
                from model2vec import StaticModel
            except ImportError as error:
                raise MissingExtraError(f"the embedder {self.name}", "model2vec", "model2vec") from error
            try:
                # Use the cached model; the library's default downloads it each time.
                self._loaded = StaticModel.from_pretrained(self._model, force_download=False)
            except (OSError, ValueError) as error:
                raise EmbedderUnavailableError(self.name, f"the model cannot be loaded: {error}") from error
        return self._loaded

    def __repr__(self) -> str:
        return f"<Model2Vec {self.name!r}>"
