"""The memory layer of a swarm simulator: plugins that agents read, write, compare and swap, subscribe to and recall.

    from recollect.compat.nest import SemanticMemory

    memory = SemanticMemory(capacity=100, ttl=50)
    await memory.write("buyer-3:greet", b"hello, I want to buy apples")
    hits = await memory.recall("apple buyer", k=3)

A scenario of NEST finds them by name: `memory: semantic`, `memory: recollect` or `memory: recollect-blackboard`.
"""

from recollect.compat.nest.plugins import (
    Blackboard,
    HashedTrigrams,
    MemoryPlugin,
    PluginRegistry,
    RecallHit,
    RecollectMemory,
    SemanticMemory,
    VectorMemory,
)

__all__ = [
    "Blackboard",
    "HashedTrigrams",
    "MemoryPlugin",
    "PluginRegistry",
    "RecallHit",
    "RecollectMemory",
    "SemanticMemory",
    "VectorMemory",
]
