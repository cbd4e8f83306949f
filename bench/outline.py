"""`python -m bench outline`: an outline of 50,000 nodes: ingest, the same again, one changed line, and look-ups.

The outline is a generated Org file: headlines in five levels with a property drawer and two lines of text each.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import recollect
from bench.measuring import versions
from recollect.facets.outline.outline import Outline

_LOOK_UPS, _REPEATS = 2000, 5
_FIRST, _SECOND = "ba be bi bo bu da de di do du".split(), "la le li lo".split()
_WORDS = tuple(first + second for first in _FIRST for second in _SECOND)
_SOURCE = "notes.org"


def measured(records: int = 50_000) -> dict[str, Any]:
    """Return the figures: whole operations in seconds, look-ups in microseconds.

    Args:
        records: The number of nodes.
    """
    text = _outline(records, random.Random(7))
    line = "a line that is changed"
    middle = text.index("\nThe ", len(text) // 2) + 1
    changed = text[:middle] + line + text[text.index("\n", middle) :]
    figures: dict[str, Any] = {"command": "outline", "records": records, "characters": len(text)}
    with tempfile.TemporaryDirectory() as folder, recollect.open(Path(folder) / "a.db") as memory:
        outline = memory.outline
        figures["ingest_s"] = _once(lambda: outline.ingest_text(text, "org", _SOURCE))
        figures["same_again_s"] = _once(lambda: outline.ingest_text(text, "org", _SOURCE))
        nodes = memory._beside("nodes")
        before = nodes.head().seq
        figures["one_line_s"] = _once(lambda: outline.ingest_text(changed, "org", _SOURCE))
        figures["one_line_records"] = sum(len(commit.changes) for commit in nodes.changes(before))
        figures |= _looked_up(outline, random.Random(8))
        root = outline.roots()[0].id
        figures["search_ms"] = 1000 * _best(lambda: outline.search("bala dile dolo"))
        focused = outline.children(root)[0].id
        figures["focus_ms"] = 1000 * _best(lambda: outline.focus(focused, 500))
        figures["to_text_s"] = _once(lambda: outline.to_text(root, "org"))
        assert outline.to_text(root, "org") == changed
    figures["versions"] = versions()
    return figures


def _outline(count: int, chance: random.Random) -> str:
    out, level = [], 0
    for number in range(count - 1):
        level = chance.randint(1, min(level + 1, 5))
        title = " ".join(chance.choices(_WORDS, k=3))
        drawer = f":PROPERTIES:\n:ID: node-{number}\n:END:\n" if chance.random() < 0.5 else ""
        said = " ".join(chance.choices(_WORDS, k=12))
        out.append(f"{'*' * level} {title}\n{drawer}The {said}.\nNumber {number}.\n")
    return "".join(out)


def _looked_up(outline: Outline, chance: random.Random) -> dict[str, float]:
    """Return the median times of look-ups, in microseconds."""
    view = outline.view()
    nodes = [node.id for node in view]
    some = chance.choices(nodes, k=_LOOK_UPS)
    parents = [node_id for node_id in nodes if view.children(node_id)]
    few = chance.choices(parents, k=_LOOK_UPS // 4)
    return {
        "view_s": _once(outline.view),
        "get_in_view_us": _median(view.get, some),
        "get_us": _median(outline.get, some),
        "children_us": _median(outline.children, few),
        "path_us": _median(outline.path, some[: len(few)]),
    }


def _median(call: Callable[[str], object], arguments: Iterable[str]) -> float:
    times = []
    for each in arguments:
        begin = time.perf_counter()
        call(each)
        times.append(1e6 * (time.perf_counter() - begin))
    return statistics.median(times)


def _once(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _best(run: Callable[[], object]) -> float:
    return min(_once(run) for _ in range(_REPEATS))
