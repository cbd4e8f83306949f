"""The tests that LangChain publishes for vector stores and retrievers, on ours in each place."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

import recollect
from recollect.compat.langchain import RecollectRetriever, RecollectVectorStore


class TestVectorStore(VectorStoreIntegrationTests):
    """25 tests."""

    @pytest.fixture
    def vectorstore(self, place: recollect.Memory) -> VectorStore:
        return RecollectVectorStore(place)


class TestVectorStoreWithEmbedding(VectorStoreIntegrationTests):
    """The same with an embedding model."""

    @pytest.fixture
    def vectorstore(self) -> Any:
        with RecollectVectorStore(":memory:", self.get_embeddings()) as store:
            yield store


class TestRetriever(RetrieversIntegrationTests):
    """4 tests."""

    @pytest.fixture(autouse=True)
    def filled(self, place: recollect.Memory) -> None:
        self._memory = place
        place.remember_all([f"Ana prefers window seats, said {name}" for name in ("Bob", "Eve", "Kim", "Leo")])

    @property
    def retriever_constructor(self) -> type[RecollectRetriever]:
        return RecollectRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self._memory}

    @property
    def retriever_query_example(self) -> str:
        return "Which seats does Ana prefer?"


def test_the_documents_have_the_reason(place: recollect.Memory) -> None:
    place.remember("Ana prefers window seats")
    (found,) = RecollectRetriever(memory=place).invoke("Ana?")
    assert isinstance(found, Document)
    assert found.metadata["why"].startswith("words")
