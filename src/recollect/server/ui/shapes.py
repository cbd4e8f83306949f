"""Drawings as numbers: the bar of a score. Their widths are attributes of SVG: the content policy refuses styles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

#: The width of a bar whose parts add up to 1.
_WIDTH = 1000


class BarPart(NamedTuple):
    """A part of a bar: its name, its place and width in thousandths, and its value."""

    name: str
    x: int
    width: int
    value: float


def bar(shares: Mapping[str, float], whole: float = 1.0) -> list[BarPart]:
    """Return the parts of a bar, in order, each as wide as its share of the whole. Negative shares have no width.

    >>> [(part.name, part.x, part.width) for part in bar({"words": 0.25, "date": 0.5})]
    [('words', 0, 250), ('date', 250, 500)]
    """
    out, at = [], 0.0
    for name, value in shares.items():
        size = max(value, 0.0) / whole if whole > 0 else 0.0
        begin, end = round(at * _WIDTH), round(min(at + size, 1.0) * _WIDTH)
        out.append(BarPart(name, begin, end - begin, value))
        at += size
    return out
