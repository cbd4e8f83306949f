"""The picture of a report, as SVG: entries in memory over time, and memory events of each agent over time.

The picture is drawn with integers, so that the same trace gives the same bytes on every machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from xml.sax.saxutils import escape

from recollect.errors import printable
from recollect.sim.report import TraceReport

_WIDTH, _LEFT, _RIGHT = 960, 110, 20
_PLOT = _WIDTH - _LEFT - _RIGHT
_TOP, _CURVE = 60, 220
#: Most rows and columns of the map. With more agents, a row stands for several.
_ROWS, _COLUMNS = 64, 100
#: From few events to many.
_SHADES = ("#cfe3f5", "#93c1e6", "#4f97d1", "#1f6cab", "#0b3f6e")
_INK, _GRID, _LIMIT = "#222222", "#dddddd", "#c0392b"


def svg_of(report: TraceReport) -> str:
    """Return the picture of a report."""
    row = max(3, min(12, 480 // max(1, min(len(report.agents), _ROWS))))
    rows = min(len(report.agents), _ROWS)
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
    columns = min(_COLUMNS, ticks)
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
