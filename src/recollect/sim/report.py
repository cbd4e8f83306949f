"""The summary of a trace: messages and losses by role, memory events by role, memory's size over time, and who used
it when. Read in one pass; what is kept grows with the agents and ticks, not with the events.

The picture of a report, as SVG, is drawn with integers, so that the same trace gives the same bytes on every machine.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from recollect.errors import ImportFormatError
from recollect.quoting import printable
from recollect.sim.trace import MEMORY_KINDS, MESSAGE_KINDS, read_trace

#: The role under which what no agent did is counted: evictions and expirations.
STORE = "(memory)"
#: Kinds of memory events that end an entry.
_ENDS = ("forgotten", "evicted", "expired")
#: Number of rows in which the size of memory is shown.
_ROWS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReport:
    """The summary of a trace.

    Attributes:
        name: The scenario.
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


_WIDTH, _LEFT, _RIGHT = 960, 110, 20
_PLOT = _WIDTH - _LEFT - _RIGHT
_TOP, _CURVE = 60, 220
#: Most rows and columns of the map. With more agents, a row stands for several.
_MAP_ROWS, _MAP_COLUMNS = 64, 100
#: From few events to many.
_SHADES = ("#cfe3f5", "#93c1e6", "#4f97d1", "#1f6cab", "#0b3f6e")
_INK, _GRID, _LIMIT = "#222222", "#dddddd", "#c0392b"


def svg_of(report: TraceReport) -> str:
    """Return the picture of a report."""
    row = max(3, min(12, 480 // max(1, min(len(report.agents), _MAP_ROWS))))
    rows = min(len(report.agents), _MAP_ROWS)
    map_top = _TOP + _CURVE + 70
    height = map_top + row * rows + 50
    body = [
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        _label(_LEFT, 24, f"{report.name}, seed {report.seed}: {len(report.agents)} agents", size=16),
        *_curve(report),
        *_map(report, map_top, row, rows),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif">\n' + "\n".join(body) + "\n</svg>\n"
    )


def _curve(report: TraceReport) -> Iterator[str]:
    """Draw the entries in memory over time, and the capacity as a line."""
    capacity = report.limits.get("capacity")
    most = max([1, *(entries for _, entries, _ in report.sizes), *([capacity] if isinstance(capacity, int) else [])])
    bottom = _TOP + _CURVE

    def down(entries: int) -> int:
        return bottom - entries * _CURVE // most

    yield _label(_LEFT, _TOP - 10, "entries in memory")
    for share in range(5):
        entries = most * share // 4
        yield _line(_LEFT, down(entries), _LEFT + _PLOT, down(entries), _GRID)
        yield _label(_LEFT - 8, down(entries) + 4, str(entries), anchor="end")
    if isinstance(capacity, int):
        yield _line(_LEFT, down(capacity), _LEFT + _PLOT, down(capacity), _LIMIT, dashed=True)
        yield _label(_LEFT + _PLOT, down(capacity) - 5, f"capacity {capacity}", anchor="end", color=_LIMIT)
    path, before = [], bottom
    for time, entries, _ in report.sizes:
        path += [f"{_across(report, time)},{before}", f"{_across(report, time)},{down(entries)}"]
        before = down(entries)
    path.append(f"{_LEFT + _PLOT},{before}")
    yield f'<polyline fill="none" stroke="{_SHADES[3]}" stroke-width="2" points="{" ".join(path)}"/>'
    yield from _ticks(report, bottom)


def _map(report: TraceReport, top: int, row: int, rows: int) -> Iterator[str]:
    """Draw the memory events of each agent over time: the more events, the darker."""
    yield _label(_LEFT, top - 10, f"memory events of each agent (Byzantine: {len(report.byzantine)})")
    if not rows:
        return
    rank = {name: number * rows // len(report.agents) for number, name in enumerate(report.agents)}
    ticks = int(report.end) + 1
    columns = min(_MAP_COLUMNS, ticks)
    cells: Counter[tuple[int, int]] = Counter()
    for (agent, tick), count in report.activity.items():
        if agent in rank:
            cells[rank[agent], min(tick, ticks - 1) * columns // ticks] += count
    most = max([1, *cells.values()])
    paths: dict[str, list[str]] = {shade: [] for shade in _SHADES}
    for (at, column), count in sorted(cells.items()):
        left, right = (_LEFT + each * _PLOT // columns for each in (column, column + 1))
        shade = _SHADES[min(len(_SHADES) - 1, count * len(_SHADES) // (most + 1))]
        paths[shade].append(f"M{left} {top + at * row}H{max(left + 1, right - 1)}v{row - 1}H{left}z")
    for shade, boxes in paths.items():
        if boxes:
            yield f'<path fill="{shade}" d="{"".join(boxes)}"/>'
    liars = set(report.byzantine)
    named = 0  # the row below which the next name has room
    for name in report.agents:
        here = top + rank[name] * row
        if here >= named:
            color = _LIMIT if name in liars else _INK
            yield _label(_LEFT - 8, here + row, name, anchor="end", color=color, size=10)
            named = here + 11
    yield from _ticks(report, top + rows * row)


def _ticks(report: TraceReport, bottom: int) -> Iterator[str]:
    """Draw the axis of time."""
    yield _line(_LEFT, bottom, _LEFT + _PLOT, bottom, _INK)
    last = max(1, int(report.end))
    for share in range(5):
        time = last * share // 4
        yield _label(_across(report, time), bottom + 16, str(time), anchor="middle")
    yield _label(_LEFT + _PLOT, bottom + 32, "ticks", anchor="end")


def _across(report: TraceReport, time: float) -> int:
    return _LEFT + int(time) * _PLOT // max(1, int(report.end))


def _line(x1: int, y1: int, x2: int, y2: int, color: str, *, dashed: bool = False) -> str:
    dashes = ' stroke-dasharray="6 4"' if dashed else ""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{color}"{dashes}/>'


def _label(x: int, y: int, text: str, *, anchor: str = "start", color: str = _INK, size: int = 12) -> str:
    shown = escape(printable(text))
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{color}" font-size="{size}">{shown}</text>'
