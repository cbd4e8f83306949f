"""What a memory and a batch share, and the calls of a memory that its tools use.

A call is added to the module of its topic; the classes here only put the modules together. A facet is imported when it
is used: most programs use few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.calls.branches import Branches
from recollect.engine.write.classes import QUARANTINED
from recollect.facets.entities.calls import EntityCalls
from recollect.memory.contexts import Contexts
from recollect.memory.manager.contradictions import Contradictions
from recollect.memory.manager.distinctions import Distinctions
from recollect.memory.manager.duplicates import Duplicates, Merges
from recollect.memory.recording import Recording
from recollect.memory.trust import Trust

if TYPE_CHECKING:
    from recollect.facets.glossary.glossary import Glossary
    from recollect.facets.keyed.keyed import Keyed
    from recollect.facets.outline.outline import Outline
    from recollect.facets.quarantine.quarantine import Quarantine
    from recollect.facets.sdr.sdr import Sdr


class SharedCalls(Recording, Contexts, Merges, Duplicates, Distinctions, EntityCalls, Contradictions, Trust):
    """The calls that a memory and a batch share. Each module of calls is a base class."""


class MemoryCalls(Branches, SharedCalls):
    """The calls on a namespace, with those of its facets."""

    @property
    def glossary(self) -> Glossary:
        """The terms that agents know, with their aliases: `memorize`, `recall`, `annotate` and more.

        They are the part "terms" of this memory: `recall` does not find them, and calls about the memory, such as
        `rollback` and `erase`, include them. They count towards its quota.
        """
        from recollect.facets.glossary.glossary import Glossary

        return Glossary(self._beside("terms").execute)

    @property
    def outline(self) -> Outline:
        """Trees of headlines and texts: `ingest`, `get`, `children`, `tree`, `hash` and more.

        They are the part "nodes" of this memory: `recall` does not find them, and calls about the memory, such as
        `rollback` and `erase`, include them. They count towards its quota.
        """
        from recollect.facets.outline.outline import Outline

        return Outline(self._beside("nodes"))

    @property
    def sdr(self) -> Sdr:
        """Texts that are found by sparse codes of their trigrams: `store`, `query`, `get`, `forget` and more.

        They are the part "sdrs" of this memory: `recall` does not find them, and calls about the memory, such as
        `rollback` and `erase`, include them. They count towards its quota.
        """
        from recollect.facets.sdr.sdr import Sdr

        return Sdr(self._beside("sdrs"))

    @property
    def quarantine(self) -> Quarantine:
        """The records that a policy keeps apart (`set_policies`): list, `release` and `reject` them.

        They are the part "quarantined" of this memory: no other call finds them.
        """
        from recollect.facets.quarantine.quarantine import Quarantine

        return Quarantine(self, self._beside(QUARANTINED))

    @property
    def keyed(self) -> Keyed:
        """Keys with bytes that agents share: `read`, `write`, `cas`, `subscribe`, `recall`, `forget` and more.

        They are the part "keys" of this memory: `recall` does not find them, and calls about the memory, such as
        `rollback` and `erase`, include them. They count towards its quota, unless they have limits of their own.
        """
        from recollect.facets.keyed.keyed import Keyed

        return Keyed(self._beside("keys"))
