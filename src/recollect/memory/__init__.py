"""The public API: memories, batches, the async memory, and opening a memory."""

import recollect.facets  # noqa: F401 - it registers them with the engine
from recollect.memory.batch import Batch
from recollect.memory.calls import RecollectWarning
from recollect.memory.memory import Memory

__all__ = ["Batch", "Memory", "RecollectWarning"]
