"""Validators of what is read: no write is lost, reads do not go back in time, and a cas replaces what it expected."""

from __future__ import annotations

from recollect.sim.validators.checks import TraceCheck
from recollect.sim.validators.events import REMOVALS, TraceEvent
from recollect.sim.validators.history import MemoryHistory


class _Window:
    """The time from a write until the next change of its key."""

    __slots__ = ("lost", "reads", "returned", "version")

    def __init__(self, version: int) -> None:
        self.version = version
        self.reads = 0
        self.returned = False
        self.lost = False


class NoLostWrite(TraceCheck):
    """Until an entry is replaced, forgotten, evicted or expired, it is found, with a value that was written.

    A read that finds nothing, or what was never written, is a fault at once. One that finds an older version is, if no
    other read until the next change finds the new one either: some memories show a write late, which is for
    `monotone_reads`.
    """

    name = "no_lost_write"

    def __init__(self, history: MemoryHistory) -> None:
        super().__init__(history)
        self._windows: dict[tuple[str, str], _Window] = {}
        self._writes = self._reads = 0

    def see(self, event: TraceEvent) -> None:
        at = (self.history.owner_of(event), event.key)
        if event.kind == "written":
            self._close(at)
            self._writes += 1
            self._windows[at] = _Window(event.version or 0)
        elif event.kind in REMOVALS:
            self._close(at)
        elif event.kind == "not_forgotten":
            self.fault(f"{event.agent} could not forget {event.key!r}, which was there")
        elif event.finds and event.version is not None:
            self._reads += 1
            self._found(event, event.version, self._windows.get(at))

    def _found(self, event: TraceEvent, version: int, window: _Window | None) -> None:
        if version < 0:
            self.fault(f"{event.agent} found a value of {event.key!r} that was never written")
            if window is not None:
                window.lost = True
        elif window is None:
            return  # a removed entry that is still found is for the validators of what removed it
        elif version > 0:
            window.reads += 1
            window.returned |= version >= window.version
        elif not window.lost:
            entry = self.history.entry_of(event)
            if entry is None or not self.history.is_due(entry, event.ts):
                window.lost = True
                self.fault(f"{event.agent} found nothing at {event.key!r}, after write {window.version}")

    def _close(self, at: tuple[str, str]) -> None:
        window = self._windows.pop(at, None)
        if window is not None and window.reads and not window.returned and not window.lost:
            self.fault(f"write {window.version} of {at[1]!r} was never found, but an older one was")

    def end(self) -> None:
        for at in list(self._windows):
            self._close(at)

    def checked(self) -> str:
        return f"{self._writes} writes, {self._reads} reads and hits: 0 writes were lost"


class MonotoneReads(TraceCheck):
    """An agent never finds at a key an older value than it found there before."""

    name = "monotone_reads"

    def __init__(self, history: MemoryHistory) -> None:
        super().__init__(history)
        # Twice the version, and one more where that version was gone.
        self._seen: dict[tuple[str, str, str], int] = {}
        self._reads = 0

    def see(self, event: TraceEvent) -> None:
        if not event.finds or event.version is None or event.version < 0:
            return
        self._reads += 1
        at = (event.agent, self.history.owner_of(event), event.key)
        seen = self._seen.get(at, 0)
        entry = self.history.entry_of(event)
        removed = self.history.store_of(event).removed.get(event.key)
        gone = removed.version if removed is not None else 0
        if event.version:
            found = 2 * event.version
        elif entry is None or self.history.is_due(entry, event.ts):
            found = max(seen | 1, 2 * (entry.version if entry is not None else gone) + 1)
        else:
            # There is an entry: this is a view from before it was written, which must not be older than what was seen.
            found = seen if seen <= 2 * gone + 1 else -1
        if found < seen:
            what = f"version {event.version}" if event.version else "nothing"
            self.fault(f"{event.agent} found {what} at {event.key!r}, after {_described(seen)}")
        else:
            self._seen[at] = found

    def checked(self) -> str:
        return f"{self._reads} reads and hits: 0 were older than what the agent had found before"


def _described(seen: int) -> str:
    return f"version {seen // 2}" + (" was gone" if seen % 2 else "")


class CasLinearizable(TraceCheck):
    """A cas succeeds just if the key has the version that it expects: no two replace the same one.

    Where a trace does not say what was expected, it is, for a shared counter, what the agent read last. A cas that
    creates an entry may fail, as some stores refuse this.
    """

    name = "cas_linearizable"

    def __init__(self, history: MemoryHistory) -> None:
        super().__init__(history)
        self._read: dict[tuple[str, str], int] = {}
        self._done = self._failed = 0

    def see(self, event: TraceEvent) -> None:
        if event.kind == "read" and event.version is not None:
            self._read[event.agent, event.key] = event.version
        if event.kind not in ("written", "cas_failed") or (event.kind == "written" and not event.cas):
            return
        expected = event.was
        if expected is None and event.key.startswith(("counter/", "counter:")):
            expected = self._read.get((event.agent, event.key))
        entry = self.history.entry_of(event)
        if entry is not None and self.history.is_due(entry, event.ts) and expected != entry.version:
            entry = None
        current = 0 if entry is None else entry.version
        if event.kind == "written":
            self._done += 1
            # A greater version has the same value, written again to the memory of another agent.
            if expected is not None and (expected < current or (expected > 0 and not current)):
                self.fault(f"{event.agent} replaced version {current} of {event.key!r}, but expected {expected}")
        else:
            self._failed += 1
            if expected is not None and expected == current > 0:
                self.fault(f"{event.agent} expected version {current} of {event.key!r}, which it had, but failed")

    def checked(self) -> str:
        return f"{self._done} cas succeeded and {self._failed} failed, all by the version that the key had"
