"""Agents with memory: a manager that records with care, and a wrapper that gives memory to any chat model.

Frameworks and servers that show memories to a model take from here what the prompts of an agent may have: hits that
hold at the time in question, and what to say of quoted text, so that all say the same as a context does.
"""

from __future__ import annotations

from recollect.agents.agent import MemoryAwareAgent
from recollect.agents.echoes import without_echoes
from recollect.agents.learned import Cost, LearnedFact, LearnReport, Unlearned
from recollect.agents.learning import Learner
from recollect.agents.manager import Manager, Recorded
from recollect.memory.context.styles import TRUST
from recollect.memory.context.validity import ValidHits, Validity, valid_hits
from recollect.memory.context.values import PARTS

__all__ = [
    "PARTS",
    "TRUST",
    "Cost",
    "LearnReport",
    "LearnedFact",
    "Learner",
    "Manager",
    "MemoryAwareAgent",
    "Recorded",
    "Unlearned",
    "ValidHits",
    "Validity",
    "valid_hits",
    "without_echoes",
]
