"""The tests that Haystack publishes for document stores, all of them, on ours in each place."""

from __future__ import annotations

import pytest
from haystack import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.testing import document_store as sync
from haystack.testing import document_store_async as awaited

import recollect
from recollect.compat.haystack import RecollectDocumentStore


class TestDocumentStore(
    sync.DocumentStoreBaseExtendedTests,
    sync.CountDocumentsByFilterTest,
    sync.CountUniqueMetadataByFilterTest,
    sync.GetMetadataFieldsInfoTest,
    sync.GetMetadataFieldMinMaxTest,
    sync.GetMetadataFieldUniqueValuesTest,
):
    """The base tests, the extended ones, and those of each further method."""

    @pytest.fixture
    def document_store(self, place: recollect.Memory) -> RecollectDocumentStore:
        return RecollectDocumentStore(place)

    def test_write_documents(self, document_store: RecollectDocumentStore) -> None:
        """Of the base tests, this one is to be written for each store, for its default policy."""
        document = Document(content="test doc")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document])
        assert document_store.write_documents([document], DuplicatePolicy.SKIP) == 0
        self.assert_documents_are_equal(document_store.filter_documents(), [document])


class TestDocumentStoreAwaited(
    awaited.CountDocumentsAsyncTest,
    awaited.CountDocumentsByFilterAsyncTest,
    awaited.CountUniqueMetadataByFilterAsyncTest,
    awaited.DeleteAllAsyncTest,
    awaited.DeleteByFilterAsyncTest,
    awaited.DeleteDocumentsAsyncTest,
    awaited.FilterDocumentsAsyncTest,
    awaited.GetMetadataFieldMinMaxAsyncTest,
    awaited.GetMetadataFieldUniqueValuesAsyncTest,
    awaited.GetMetadataFieldsInfoAsyncTest,
    awaited.UpdateByFilterAsyncTest,
    awaited.WriteDocumentsAsyncTest,
):
    """The same for asyncio."""

    @pytest.fixture
    def document_store(self, place: recollect.Memory) -> RecollectDocumentStore:
        return RecollectDocumentStore(place)

    async def test_write_documents_async(self, document_store: RecollectDocumentStore) -> None:
        """Of the tests, this one is to be written for each store, for its default policy."""
        document = Document(content="test doc")
        assert await document_store.write_documents_async([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            await document_store.write_documents_async([document])
