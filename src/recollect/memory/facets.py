"""`Facets`: all calls that a memory and a batch share, from the modules that define them."""

from __future__ import annotations

from recollect.facets.entities.calls import EntityCalls
from recollect.memory.contexts import Contexts
from recollect.memory.manager.contradictions import Contradictions
from recollect.memory.manager.duplicates import Duplicates
from recollect.memory.manager.merging import Merges
from recollect.memory.recording import Recording


class Facets(Recording, Contexts, Merges, Duplicates, EntityCalls, Contradictions):
    """All calls that a memory and a batch share. Each module of calls is a base class."""
