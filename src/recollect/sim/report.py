"""What a trace comes to: messages and losses by role, memory events by role, the size of memory over time, and who used
it when. Read in one pass; what is kept grows with the agents and ticks, not with the events.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect.errors import ImportFormatError
from recollect.sim.trace import MEMORY_KINDS, MESSAGE_KINDS, read_trace

#: The role under which what no agent did is counted: evictions and expirations.
STORE = "(memory)"
#: Kinds of memory events that end an entry.
_ENDS = ("forgotten", "evicted", "expired")
#: Number of rows in which the size of memory is shown.
_ROWS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReport:
    """What a trace comes to.

    Attributes:
        name: The scenario.
        seed: The seed.
        limits: The limits of the memory that are set.
        byzantine: The Byzantine agents.
        agents: All agents, in order.
        end: The time of the last event.
        messages: Role -> kind -> number of messages.
        losses: Why messages were lost -> how many.
        memory: Role -> kind -> number of memory events.
        sizes: (time, entries, bytes of their values), after each moment at which memory changed.
        activity: (agent, tick) -> number of its memory events.
    """

    name: str
    seed: int
    limits: Mapping[str, Any]
    byzantine: tuple[str, ...]
    agents: tuple[str, ...]
    end: float
    messages: Mapping[str, Mapping[str, int]]
    losses: Mapping[str, int]
    memory: Mapping[str, Mapping[str, int]]
    sizes: tuple[tuple[float, int, int], ...]
    activity: Mapping[tuple[str, int], int]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, without the activity."""
        return {
            "name": self.name,
            "seed": self.seed,
            "limits": dict(self.limits),
            "byzantine": list(self.byzantine),
            "agents": len(self.agents),
            "end": self.end,
            "messages": {role: dict(kinds) for role, kinds in self.messages.items()},
            "losses": dict(self.losses),
            "memory": {role: dict(kinds) for role, kinds in self.memory.items()},
            "sizes": [list(each) for each in self.sizes],
        }

    def sampled(self, rows: int = _ROWS) -> list[tuple[float, int, int]]:
        """Return some of the sizes, evenly chosen, with the last one."""
        count = len(self.sizes)
        if count <= rows:
            return list(self.sizes)
        return [self.sizes[(number + 1) * count // rows - 1] for number in range(rows)]


def report_of(path: str | Path) -> TraceReport:
    """Read a trace.

    Raises:
        ImportFormatError: The file is not a trace that begins with its header.
    """
    events = read_trace(path)
    header = next(events, None)
    match header:
        case {
            "kind": "scenario",
            "name": str(name),
            "seed": int(seed),
            "limits": dict(limits),
            "roles": dict(roles),
            "byzantine": list(liars),
        }:
            pass
        case _:
            raise ImportFormatError(str(path), "line 1", "is not the header of a trace")
    messages: dict[str, Counter[str]] = defaultdict(Counter)
    memory: dict[str, Counter[str]] = defaultdict(Counter)
    losses: Counter[str] = Counter()
    activity: Counter[tuple[str, int]] = Counter()
    entries = _Entries()
    end = 0.0
    for event in events:
        kind, agent, end = event["kind"], str(event.get("agent", "")), float(event["ts"])
        role = str(roles.get(agent, STORE))
        if kind in MESSAGE_KINDS:
            messages[role][kind] += 1
            if kind == "dropped":
                losses[str(event.get("why", ""))] += 1
        elif kind in MEMORY_KINDS:
            memory[role][kind] += 1
            entries.happen(event, agent, end)
            if agent:
                activity[agent, int(end)] += 1
    return TraceReport(
        name=name,
        seed=seed,
        limits=limits,
        byzantine=tuple(map(str, liars)),
        agents=_in_order(roles),
        end=end,
        messages={role: dict(sorted(kinds.items())) for role, kinds in sorted(messages.items())},
        losses=dict(sorted(losses.items())),
        memory={role: dict(sorted(kinds.items())) for role, kinds in sorted(memory.items())},
        sizes=tuple((time, *size) for time, size in entries.sizes.items()),
        activity=activity,
    )


class _Entries:
    """The entries in memory, by the events."""

    def __init__(self) -> None:
        self._sizes: dict[tuple[str, str], int] = {}
        self._bytes = 0
        self.sizes: dict[float, tuple[int, int]] = {0.0: (0, 0)}

    def happen(self, event: Mapping[str, Any], agent: str, time: float) -> None:
        """Take an event into account."""
        kind = event["kind"]
        if kind != "written" and kind not in _ENDS:
            return
        own = str(event.get("owner", ""))
        key = (own, str(event.get("key", "")))
        self._bytes -= self._sizes.pop(key, 0)
        if kind == "written":
            size = self._sizes[key] = int(event.get("size", 0))
            self._bytes += size
        self.sizes[time] = (len(self._sizes), self._bytes)


def _in_order(roles: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the agents by role and number: a trace has its names in the order of the alphabet."""

    def place(name: str) -> tuple[str, int, str]:
        digits = name.rpartition("-")[2]
        number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else -1
        return (str(roles[name]), number, name)

    return tuple(sorted(roles, key=place))
