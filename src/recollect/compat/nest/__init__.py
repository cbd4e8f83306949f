"""The memory layer of a swarm simulator: plugins that agents read, write, compare and swap, subscribe to and recall.

    from recollect.compat.nest import SemanticMemory

    memory = SemanticMemory(capacity=100, ttl=50)
    await memory.write("buyer-3:greet", b"hello, I want to buy apples")
    hits = await memory.recall("apple buyer", k=3)

A scenario of NEST finds them by name, such as `memory: semantic`, `memory: recollect` or `memory: openai_embeddings`.
"""

from recollect.compat.nest.indexes import ArrayIndex, ChromaIndex, FaissIndex, VectorIndex
from recollect.compat.nest.plugins import (
    Blackboard,
    HashedTrigrams,
    MemoryPlugin,
    RecallHit,
    RecollectMemory,
    SemanticMemory,
)
from recollect.compat.nest.registry import PluginRegistry
from recollect.compat.nest.vectors import AnthropicMemory, ChromaMemory, FaissMemory, OpenAIMemory, VectorMemory

__all__ = [
    "AnthropicMemory",
    "ArrayIndex",
    "Blackboard",
    "ChromaIndex",
    "ChromaMemory",
    "FaissIndex",
    "FaissMemory",
    "HashedTrigrams",
    "MemoryPlugin",
    "OpenAIMemory",
    "PluginRegistry",
    "RecallHit",
    "RecollectMemory",
    "SemanticMemory",
    "VectorIndex",
    "VectorMemory",
]
