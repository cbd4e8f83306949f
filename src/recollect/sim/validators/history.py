"""The model that validators compare with: the contents that memory must have after the events so far."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from recollect.arguments.checks import is_number
from recollect.sim.validators.events import REMOVALS, TraceEvent


class TracedEntry(NamedTuple):
    """An entry of memory.

    Attributes:
        version: The number of the write.
        written_at: When it was written.
        room: What it takes of a capacity in bytes: its key and its value.
    """

    version: int
    written_at: float
    room: int


class Removal(NamedTuple):
    """The end of an entry: by which kind of event it left memory, and with which version."""

    kind: str
    version: int


class TracedStore:
    """One memory: that of all agents, or of one.

    Attributes:
        entries: By key, the least recently used first.
        written: When each entry was written, the oldest first.
        removed: By key, how its last entry left. There may be a new one since.
        room: What all entries take.
        newest: The key that was written last.
    """

    def __init__(self) -> None:
        self.entries: OrderedDict[str, TracedEntry] = OrderedDict()
        self.written: OrderedDict[str, float] = OrderedDict()
        self.removed: dict[str, Removal] = {}
        self.room = 0
        self.newest = ""

    def take(self, key: str) -> TracedEntry | None:
        """Remove an entry, and return it."""
        entry = self.entries.pop(key, None)
        if entry is not None:
            del self.written[key]
            self.room -= entry.room
        return entry


class MemoryHistory:
    """All memories, and what the first line of the trace says.

    Attributes:
        capacity: Maximum number of entries of a memory; None: no limit.
        capacity_bytes: Maximum size of all keys and values of a memory; None: no limit.
        ttl: The age at which an entry expires; None: never.
        by_use: Whether the least recently used entry makes room.
        byzantine: The agents that may do anything.
    """

    def __init__(self) -> None:
        self.capacity: float | None = None
        self.capacity_bytes: float | None = None
        self.ttl: float | None = None
        self.by_use = True
        self.byzantine: frozenset[str] = frozenset()
        self._per_agent = False
        self._stores: dict[str, TracedStore] = {}

    def owner_of(self, event: TraceEvent) -> str:
        """Return whose memory an event is about; "": that of all."""
        return event.owner or (event.agent if self._per_agent else "")

    def store_of(self, event: TraceEvent) -> TracedStore:
        """Return the memory that an event is about."""
        return self._stores.setdefault(self.owner_of(event), TracedStore())

    def entry_of(self, event: TraceEvent) -> TracedEntry | None:
        """Return the entry of the key of an event; None if there is none."""
        return self.store_of(event).entries.get(event.key)

    def is_due(self, entry: TracedEntry, ts: float) -> bool:
        """Return whether an entry must have expired at a time."""
        return self.ttl is not None and ts - entry.written_at >= self.ttl

    def honest(self, agent: str) -> bool:
        """Return whether this is an agent that keeps to the rules."""
        return agent != "" and agent not in self.byzantine

    def apply(self, event: TraceEvent) -> None:
        """Take account of an event, after all validators have seen it."""
        if event.kind == "scenario":
            self._begin(event.fields)
        elif event.kind == "written":
            store = self.store_of(event)
            store.take(event.key)
            room = len(event.key.encode("utf-8", "replace")) + event.size
            store.entries[event.key] = TracedEntry(event.version or 0, event.ts, room)
            store.written[event.key] = event.ts
            store.room += room
            store.newest = event.key
        elif event.kind in REMOVALS:
            store = self.store_of(event)
            entry = store.take(event.key)
            if entry is not None:
                store.removed[event.key] = Removal(event.kind, entry.version)
        elif event.finds and event.version != 0:
            store = self.store_of(event)
            if event.key in store.entries:
                store.entries.move_to_end(event.key)

    def _begin(self, fields: Mapping[str, Any]) -> None:
        memory, limits = (_mapping(fields.get(name)) for name in ("memory", "limits"))
        self.capacity, self.capacity_bytes, self.ttl = (
            _limit(limits.get(name)) for name in ("capacity", "capacity_bytes", "ttl")
        )
        said = {**fields, **memory, **_mapping(memory.get("options")), **limits}
        self.by_use = said.get("evict", "least recent") == "least recent"
        self._per_agent = said.get("per_agent") is True
        byzantine = fields.get("byzantine")
        names = byzantine if isinstance(byzantine, list) else []
        self.byzantine = frozenset(name for name in names if isinstance(name, str))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _limit(value: object) -> float | None:
    return value if is_number(value) and value > 0 else None
