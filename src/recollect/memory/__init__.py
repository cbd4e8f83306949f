"""The public API: memories, batches, the async memory, and opening a memory."""

from recollect.memory.batch import Batch
from recollect.memory.calls import RecollectWarning
from recollect.memory.memory import Memory

__all__ = ["Batch", "Memory", "RecollectWarning"]
