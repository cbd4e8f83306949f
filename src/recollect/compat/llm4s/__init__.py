"""The memory system of LLM4S on Recollect: its names and the order of its arguments, in Python's casing.

    from recollect.compat.llm4s import Memory, MemoryFilter, MemoryManager, MemoryStore

    with MemoryStore.open("agent.db") as store:
        manager = MemoryManager(store)
        manager.record_user_fact("prefers window seats", "ana")
        store.recall(MemoryFilter.user_facts() & MemoryFilter.important())

A store is a `recollect.Memory` underneath (`MemoryStore.memory`), so everything else of this package works on the same
file. docs/llm4s.md lists the names, and what differs and why.
"""

from __future__ import annotations

from recollect.compat.llm4s.backends import InMemoryStore, SQLiteMemoryStore, VectorMemoryStore
from recollect.compat.llm4s.config import ConsolidationConfig, MemoryManagerConfig, MemoryStoreConfig
from recollect.compat.llm4s.filters import MemoryFilter
from recollect.compat.llm4s.manager import MemoryManager, MemoryStats, SimpleMemoryManager
from recollect.compat.llm4s.services import EmbeddingService, LLMEmbeddingService, MockEmbeddingService
from recollect.compat.llm4s.store import MemoryStore, VectorStoreStats
from recollect.compat.llm4s.types import EntityId, Memory, MemoryId, MemoryType, ScoredMemory
from recollect.compat.llm4s.vectors import VectorOps

__all__ = [
    "ConsolidationConfig",
    "EmbeddingService",
    "EntityId",
    "InMemoryStore",
    "LLMEmbeddingService",
    "Memory",
    "MemoryFilter",
    "MemoryId",
    "MemoryManager",
    "MemoryManagerConfig",
    "MemoryStats",
    "MemoryStore",
    "MemoryStoreConfig",
    "MemoryType",
    "MockEmbeddingService",
    "SQLiteMemoryStore",
    "ScoredMemory",
    "SimpleMemoryManager",
    "VectorMemoryStore",
    "VectorOps",
    "VectorStoreStats",
]
