"""Drawings as numbers: the bar of a score. Their widths are attributes of SVG: the content policy refuses styles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

#: The width of a bar whose parts add up to 1.
_WIDTH = 1000
#: What has a colour of its own in every bar, in the order of the colours; the rest shares the one after them.
_COLOURED = (
    ("words", "hit"),
    ("context", "neighbour"),
    ("session", "standing"),
    ("pair", "pinned"),
    ("date", "glossary"),
    ("trigram", "outline"),
    ("dense", "headings"),
)
_COLOURS = {name: number for number, names in enumerate(_COLOURED) for name in names}


class BarPart(NamedTuple):
    """A part of a bar: its name, its place and width in thousandths, its value, and the number of its colour."""

    name: str
    x: int
    width: int
    value: float
    colour: int


def bar(shares: Mapping[str, float], whole: float = 1.0) -> list[BarPart]:
    """Return the parts of a bar, in order, each as wide as its share of the whole. Negative shares have no width.

    >>> [(part.name, part.x, part.width, part.colour) for part in bar({"words": 0.25, "date": 0.5})]
    [('words', 0, 250, 0), ('date', 250, 500, 4)]
    """
    out, at = [], 0.0
    for name, value in shares.items():
        size = max(value, 0.0) / whole if whole > 0 else 0.0
        begin, end = round(min(at, 1.0) * _WIDTH), round(min(at + size, 1.0) * _WIDTH)
        out.append(BarPart(name, begin, end - begin, value, _COLOURS.get(name, len(_COLOURED))))
        at += size
    return out
