"""The public API: a memory, its batches, the awaitable form of it, and opening one."""

from recollect.memory.memory import Batch, Memory, RecollectWarning

__all__ = ["Batch", "Memory", "RecollectWarning"]
