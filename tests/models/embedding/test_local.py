"""Embedders that run a model here, with stand-ins for their libraries. `make test-models` has the real ones."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from recollect.errors import EmbedderUnavailableError, InvalidArgumentError
from recollect.models.embedding.base import Floors, embedded
from recollect.models.embedding.local import Model2Vec, SentenceTransformers


class Library:
    """Stands in for both libraries: keeps how it was called."""

    def __init__(self) -> None:
        self.loaded: list[tuple[str, dict[str, Any]]] = []
        self.encoded: list[tuple[str, list[str]]] = []
        self.missing = False

    def load(self, model: str, **options: Any) -> Any:
        if self.missing:
            raise OSError(f"{model} is neither a folder nor on the hub")
        self.loaded.append((model, options))

        def encode(kind: str) -> Any:
            def call(texts: list[str], **_: Any) -> Any:
                self.encoded.append((kind, texts))
                return np.ones((len(texts), 4), dtype=np.float32)

            return call

        return SimpleNamespace(
            encode=encode("any"), encode_query=encode("query"), encode_document=encode("document"), dim=4
        )


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    out = Library()
    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=out.load))
    static = SimpleNamespace(from_pretrained=out.load)
    monkeypatch.setitem(sys.modules, "model2vec", SimpleNamespace(StaticModel=static))
    return out


def test_a_model_is_loaded_once_and_only_when_a_text_is_embedded(library: Library) -> None:
    for embedder in (SentenceTransformers("m", revision="abc", device="cpu"), Model2Vec("n")):
        before = len(library.loaded)
        assert embedder.dimension is None
        assert len(embedded(embedder, ["a", "b"]).vectors) == 2
        assert len(embedded(embedder, ["c"]).vectors) == 1
        assert len(library.loaded) == before + 1
        assert embedder.dimension == 4
    assert library.loaded == [("m", {"revision": "abc", "device": "cpu"}), ("n", {"force_download": False})]


def test_a_revision_is_part_of_the_name() -> None:
    assert SentenceTransformers("m", revision="abc").name == "sentence-transformers/m@abc"
    assert SentenceTransformers("m").name == "sentence-transformers/m"
    assert repr(SentenceTransformers("m")) == "<SentenceTransformers 'sentence-transformers/m'>"
    assert repr(Model2Vec("m")) == "<Model2Vec 'model2vec/m'>"


def test_questions_are_distinguished_from_documents_where_the_model_does(library: Library) -> None:
    embedder = SentenceTransformers("m")
    embedded(embedder, ["a"])
    embedded(embedder, ["a?"], asking=True)
    assert library.encoded == [("document", ["a"]), ("query", ["a?"])]


@pytest.mark.parametrize("kind", [SentenceTransformers, Model2Vec])
def test_a_model_that_is_not_there_is_an_error_that_names_it(library: Library, kind: Any) -> None:
    library.missing = True
    with pytest.raises(EmbedderUnavailableError, match="nowhere is neither"):
        embedded(kind("nowhere"), ["a"])


@pytest.mark.parametrize("kind", [SentenceTransformers, Model2Vec])
def test_floors_of_its_own_are_checked(kind: Any) -> None:
    assert kind("m", floors=Floors(0.6, 0.8)).floors == Floors(0.6, 0.8)
    with pytest.raises(InvalidArgumentError, match="floors"):
        kind("m", floors=Floors(0.8, 0.6))
