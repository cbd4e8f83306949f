"""Components of pipelines over the stores: search in documents, and memories of a user in and out."""

from __future__ import annotations

from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.dataclasses import ChatMessage

from recollect.compat.haystack.document_store import RecollectDocumentStore
from recollect.compat.haystack.memory_store import RecollectMemoryStore
from recollect.compat.threads import completed


@component
class RecollectBM25Retriever:
    """Retrieves the documents of a store that answer a query best. Their `score` is the confidence, 0 to 1.

    Args:
        document_store: Where the documents are; it stays open.
        filters: What the documents must fit; those of a run come in addition.
        top_k: Maximum number of documents.

    Raises:
        ValueError: `document_store` is no `RecollectDocumentStore`.
    """

    def __init__(
        self, document_store: RecollectDocumentStore, filters: dict[str, Any] | None = None, top_k: int = 10
    ) -> None:
        if not isinstance(document_store, RecollectDocumentStore):
            raise ValueError(f"document_store must be a RecollectDocumentStore, not {type(document_store).__name__}")
        self.document_store = document_store
        self.filters = filters
        self.top_k = top_k

    @component.output_types(documents=list[Document])
    def run(self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None) -> dict[str, Any]:
        """Return {"documents": ...}: what answers a query, best first.

        Args:
            query: What to look for, as for `Memory.recall`; not blank.
            filters: What the documents must fit, besides the filters of the component.
            top_k: Maximum number of documents; default: that of the component.
        """
        both = [each for each in (self.filters, filters) if each]
        joined = {"operator": "AND", "conditions": both} if len(both) > 1 else next(iter(both), None)
        count = self.top_k if top_k is None else top_k
        return {"documents": self.document_store.bm25_retrieval(query, joined, count)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        """Return what `run` does, from a thread."""
        return await completed(self.run, query, filters, top_k)

    def to_dict(self) -> dict[str, Any]:
        """Return the component as a dictionary."""
        return default_to_dict(
            self, document_store=self.document_store.to_dict(), filters=self.filters, top_k=self.top_k
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RecollectBM25Retriever:
        """Return the component of a dictionary of `to_dict`."""
        return default_from_dict(cls, _with(data, "document_store", RecollectDocumentStore))


@component
class RecollectMemoryRetriever:
    """Retrieves what a memory knows of a user, an agent or a run, as messages of the system.

    Args:
        memory_store: The memory, as messages; it stays open.
        top_k: Maximum number of messages.
    """

    def __init__(self, *, memory_store: RecollectMemoryStore, top_k: int = 5) -> None:
        self.memory_store = memory_store
        self.top_k = top_k

    @component.output_types(memories=list[ChatMessage])
    def run(
        self,
        query: str | None,
        *,
        user_id: str | None = None,
        run_id: str | None = None,
        agent_id: str | None = None,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
    ) -> dict[str, Any]:
        """Return {"memories": ...}. The arguments and errors are those of `RecollectMemoryStore.search_memories`."""
        found = self.memory_store.search_memories(
            query=query,
            filters=filters,
            top_k=self.top_k if top_k is None else top_k,
            user_id=user_id,
            run_id=run_id,
            agent_id=agent_id,
        )
        return {"memories": found}

    def to_dict(self) -> dict[str, Any]:
        """Return the component as a dictionary."""
        return default_to_dict(self, memory_store=self.memory_store.to_dict(), top_k=self.top_k)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RecollectMemoryRetriever:
        """Return the component of a dictionary of `to_dict`."""
        return default_from_dict(cls, _with(data, "memory_store", RecollectMemoryStore))


@component
class RecollectMemoryWriter:
    """Writes messages of a user, an agent or a run to a memory.

    Args:
        memory_store: The memory, as messages; it stays open.
    """

    def __init__(self, *, memory_store: RecollectMemoryStore) -> None:
        self.memory_store = memory_store

    @component.output_types(memories_written=int)
    def run(
        self,
        messages: list[ChatMessage],
        *,
        user_id: str | None = None,
        run_id: str | None = None,
        agent_id: str | None = None,
    ) -> dict[str, Any]:
        """Return {"memories_written": ...}. For arguments and errors, see `RecollectMemoryStore.add_memories`."""
        added = self.memory_store.add_memories(messages=messages, user_id=user_id, run_id=run_id, agent_id=agent_id)
        return {"memories_written": len(added)}

    def to_dict(self) -> dict[str, Any]:
        """Return the component as a dictionary."""
        return default_to_dict(self, memory_store=self.memory_store.to_dict())

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RecollectMemoryWriter:
        """Return the component of a dictionary of `to_dict`."""
        return default_from_dict(cls, _with(data, "memory_store", RecollectMemoryStore))


def _with(data: dict[str, Any], name: str, kind: Any) -> dict[str, Any]:
    """Return the dictionary of a component with its store in place of the dictionary of the store."""
    arguments = data.get("init_parameters", {})
    return {**data, "init_parameters": {**arguments, name: kind.from_dict(arguments[name])}}
