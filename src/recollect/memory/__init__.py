"""The public API: memories, batches, the async memory, and opening a memory."""

from recollect.memory.memory import Batch, Memory, RecollectWarning

__all__ = ["Batch", "Memory", "RecollectWarning"]
