"""The calls of mem0 on a memory: programs run with the import line changed, offline, without a key and a model.

    from recollect.compat.mem0 import Memory

    memory = Memory()
    memory.add("I prefer window seats", user_id="ana")
    memory.search("Which seat should I book?", filters={"user_id": "ana"})

mem0 itself need not be installed.
"""

from recollect.compat.mem0.aio import AsyncMemory
from recollect.compat.mem0.memory import Memory

__all__ = ["AsyncMemory", "Memory"]
