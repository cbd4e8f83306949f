"""Keyed memory without a store: keys with bytes, shared by agents, within a capacity and a time to live."""

from recollect.facets.keyed.shelf import Scorer, Shelf
from recollect.facets.keyed.subscriptions import KeySubscription, Missed
from recollect.facets.keyed.values import EVENT_KINDS, EVICT, Event, EventKind, Evict, Found

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
