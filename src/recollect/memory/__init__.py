"""The public API: memories, batches, the async memory, and opening a memory."""

import recollect.facets.registration  # noqa: F401 - what it does is to be imported
from recollect.calls.calls import RecollectWarning
from recollect.memory.batch import Batch
from recollect.memory.memory import Memory

__all__ = ["Batch", "Memory", "RecollectWarning"]
