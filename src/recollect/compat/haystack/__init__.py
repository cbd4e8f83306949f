"""A memory in Haystack: a document store that needs no embeddings, a memory store, and components for pipelines.

    from haystack import Document, Pipeline
    from recollect.compat.haystack import RecollectBM25Retriever, RecollectDocumentStore

    store = RecollectDocumentStore("agent.db")
    store.write_documents([Document(content="Ana prefers window seats")])
    pipeline = Pipeline()
    pipeline.add_component("retriever", RecollectBM25Retriever(store, top_k=3))
    pipeline.run({"retriever": {"query": "Which seat should I book?"}})

Both stores also take a `Memory`, an address of a store, or one of a server.
"""

from recollect.errors import MissingExtraError

try:
    import haystack  # noqa: F401 - is it there?
except ImportError as error:
    raise MissingExtraError("recollect.compat.haystack", "haystack", "haystack-ai") from error

from recollect.compat.haystack.components import (
    RecollectBM25Retriever,
    RecollectMemoryRetriever,
    RecollectMemoryWriter,
)
from recollect.compat.haystack.document_store import RecollectDocumentStore
from recollect.compat.haystack.memory_store import RecollectMemoryStore

__all__ = [
    "RecollectBM25Retriever",
    "RecollectDocumentStore",
    "RecollectMemoryRetriever",
    "RecollectMemoryStore",
    "RecollectMemoryWriter",
]
