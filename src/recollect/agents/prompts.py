"""What the prompts of an agent may have: hits that hold at the time in question, and what to say of quoted text.

Frameworks and servers that show memories to a model use these, so that all say the same as a context does.
"""

from __future__ import annotations

from recollect.memory.context.styles import TRUST
from recollect.memory.context.validity import ValidHits, Validity, valid_hits
from recollect.memory.context.values import PARTS

__all__ = ["PARTS", "TRUST", "ValidHits", "Validity", "valid_hits"]
