"""An embedder that runs a model2vec model on this machine: a table of word vectors, small and fast, without torch.

The library and the model are loaded when the first text is embedded.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from recollect.errors import EmbedderUnavailableError, MissingExtraError
from recollect.models.embedding.base import Floats, Floors, check_floors


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
