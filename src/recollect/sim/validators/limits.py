"""Validators of limits: no memory exceeds its capacity, evictions are needed, and entries expire when they must."""

from __future__ import annotations

from typing import NamedTuple

from recollect.sim.validators.checks import TraceCheck
from recollect.sim.validators.events import REMOVALS, TraceEvent
from recollect.sim.validators.history import MemoryHistory, TracedStore


class CapacityRespected(TraceCheck):
    """After each operation, no memory has more entries or bytes than its limits, and what was evicted is gone."""

    name = "capacity_respected"

    def __init__(self, history: MemoryHistory) -> None:
        super().__init__(history)
        self._written: list[TraceEvent] = []
        self._most = self._most_room = 0

    def see(self, event: TraceEvent) -> None:
        if event.kind not in REMOVALS:  # these may come after the write that caused them
            self._settle()
        if event.kind == "written":
            self._written.append(event)
        elif event.finds and event.version:
            removed = self.history.store_of(event).removed.get(event.key)
            if removed is not None and removed.kind == "evicted" and self.history.entry_of(event) is None:
                self.fault(f"{event.agent} found {event.key!r}, which had been evicted")

    def end(self) -> None:
        self._settle()

    def _settle(self) -> None:
        for event in self._written:
            store, history = self.history.store_of(event), self.history
            count, room = len(store.entries), store.room
            if _over(history, count, room):  # without what has expired and was not reported
                live = [entry for entry in store.entries.values() if not history.is_due(entry, event.ts)]
                count, room = len(live), sum(entry.room for entry in live)
            self._most, self._most_room = max(self._most, count), max(self._most_room, room)
            if _over(history, count, room):
                self.fault(
                    f"{count} entries of {room} bytes after the write of {event.key!r}, above {_limits(history)}"
                )
        self._written.clear()

    def checked(self) -> str:
        return f"at most {self._most} entries and {self._most_room} bytes, within {_limits(self.history)}"


def _over(history: MemoryHistory, count: int, room: int) -> bool:
    return (history.capacity is not None and count > history.capacity) or (
        history.capacity_bytes is not None and room > history.capacity_bytes
    )


def _limits(history: MemoryHistory) -> str:
    known = [] if history.capacity is None else [f"{history.capacity} entries"]
    known += [] if history.capacity_bytes is None else [f"{history.capacity_bytes} bytes"]
    return "the capacity of " + " and ".join(known) if known else "no capacity"


class _Pending(NamedTuple):
    """An eviction whose write is still to come."""

    key: str
    entries: int
    room: int
    first: list[str]  # the two entries that were the first to go


class EvictionRate(TraceCheck):
    """Each eviction makes room that a write needs, none more, and the least recently used entry goes.

    Evictions may be reported before the write that needs the room, or after it. The entry that is written stays.
    """

    name = "eviction_rate"

    def __init__(self, history: MemoryHistory) -> None:
        super().__init__(history)
        self._pending: dict[str, list[_Pending]] = {}
        self._evicted = self._writes = 0

    def see(self, event: TraceEvent) -> None:
        owner = self.history.owner_of(event)
        if event.kind == "evicted":
            self._evicted += 1
            store = self.history.store_of(event)
            if _over(self.history, len(store.entries), store.room):
                self._check_order(event.key, _first(store), store.newest)
            else:
                pending = _Pending(event.key, len(store.entries), store.room, _first(store))
                self._pending.setdefault(owner, []).append(pending)
            return
        if event.kind in REMOVALS:
            return
        if event.kind == "written":
            self._writes += 1
            self._settle(self._pending.pop(owner, []), event)
        elif event.key and owner in self._pending:
            self._settle(self._pending.pop(owner), None)

    def _settle(self, pending: list[_Pending], write: TraceEvent | None) -> None:
        for each in pending:
            if write is None:
                self.fault(f"{each.key!r} was evicted, but nothing was written")
                continue
            old = self.history.entry_of(write)
            count = each.entries + (0 if old is not None else 1)
            new = len(write.key.encode("utf-8", "replace")) + write.size
            room = each.room + new - (0 if old is None else old.room)
            if not _over(self.history, count, room):
                limits = _limits(self.history)
                self.fault(f"{each.key!r} was evicted for {write.key!r}, but {count} entries are within {limits}")
            else:
                self._check_order(each.key, each.first, write.key)

    def _check_order(self, key: str, first: list[str], written: str) -> None:
        expected = next((each for each in first if each != written), key)
        if self.history.by_use and key != expected:
            self.fault(f"{key!r} was evicted, but {expected!r} was used less recently")

    def end(self) -> None:
        for pending in self._pending.values():
            self._settle(pending, None)

    def checked(self) -> str:
        rate = self._evicted / self._writes if self._writes else 0.0
        how = "each needed" + (", the least recently used entry first" if self.history.by_use else "")
        return f"{self._evicted} evictions for {self._writes} writes ({rate:.2f} a write), {how}"


def _first(store: TracedStore) -> list[str]:
    keys = iter(store.entries)
    return [key for _, key in zip(range(2), keys, strict=False)]


class ExpiryExact(TraceCheck):
    """No entry expires before its time, and none is found, kept in place of a live one, or counted at its time.

    An entry is due when its age is the time to live. It may stay until the next call, but no call shows it.
    """

    name = "expiry_exact"

    def __init__(self, history: MemoryHistory) -> None:
        super().__init__(history)
        self._expired = self._checked = 0

    def see(self, event: TraceEvent) -> None:
        if event.kind == "expired":
            self._see_expired(event)
        elif event.kind in ("forgotten", "evicted") or (event.cas and event.was) or (event.finds and event.version):
            self._checked += 1
            self._see_use(event)

    def _see_expired(self, event: TraceEvent) -> None:
        self._expired += 1
        entry = self.history.entry_of(event)
        if self.history.ttl is None:
            self.fault(f"{event.key!r} expired, but no time to live is set")
        elif entry is None:
            self.fault(f"{event.key!r} expired, but there was no such entry")
        elif not self.history.is_due(entry, event.ts):
            age = event.ts - entry.written_at
            self.fault(f"{event.key!r} expired at an age of {age:g}, before {self.history.ttl:g}")

    def _see_use(self, event: TraceEvent) -> None:
        store = self.history.store_of(event)
        entry = store.entries.get(event.key)
        removed = store.removed.get(event.key)
        if entry is not None and self.history.is_due(entry, event.ts):
            if not event.finds or event.version == entry.version:
                self.fault(
                    f"{event.key!r} was {event.kind} at an age of {event.ts - entry.written_at:g}, when it was due"
                )
        elif event.finds and entry is None and removed is not None and removed.kind == "expired":
            self.fault(f"{event.agent} found {event.key!r}, which had expired")
        elif event.kind == "evicted" and store.written:
            key = next(iter(store.written))
            if self.history.is_due(store.entries[key], event.ts):
                self.fault(f"{event.key!r} was evicted, while {key!r} was due")

    def checked(self) -> str:
        ttl = self.history.ttl
        if ttl is None:
            return "no time to live is set, and nothing expired"
        return f"{self._expired} expired, none before an age of {ttl:g}; {self._checked} uses, none at that age"
