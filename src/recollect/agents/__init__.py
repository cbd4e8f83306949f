"""Agents with memory: a manager that records with care, and a wrapper that gives memory to any chat model."""

from __future__ import annotations

from recollect.agents.agent import MemoryAwareAgent
from recollect.agents.manager import Manager, Recorded

__all__ = ["Manager", "MemoryAwareAgent", "Recorded"]
