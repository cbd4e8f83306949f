"""Keyed memory in memory alone: keys with bytes, shared by agents, within a capacity and a time to live."""

from recollect.keyed.events import KeySubscription, Missed
from recollect.keyed.shelf import Scorer, Shelf
from recollect.keyed.values import EVENT_KINDS, EVICT, Event, EventKind, Evict, Found

__all__ = [
    "EVENT_KINDS",
    "EVICT",
    "Event",
    "EventKind",
    "Evict",
    "Found",
    "KeySubscription",
    "Missed",
    "Scorer",
    "Shelf",
]
