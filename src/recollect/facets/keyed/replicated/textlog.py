"""`TextLog`, lines of text that replicas append, in one order everywhere: by time, then replica, then number."""

from __future__ import annotations

from collections import Counter as Tally
from dataclasses import dataclass
from typing import NamedTuple

from recollect.errors import InvalidArgumentError
from recollect.facets.keyed.replicated.state import (
    checked_number,
    checked_same,
    checked_text,
    checked_time,
    decoded,
    encoded,
    forged,
    malformed,
)


class Line(NamedTuple):
    """A line of a log. The order of lines is that of these fields.

    Attributes:
        time: When it was appended, by the clock of its writer.
        replica: Its writer.
        n: The writer's number for it, from 1.
        text: What it says.
    """

    time: int | float
    replica: str
    n: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLog:
    """Lines of text. None is ever removed.

    Attributes:
        lines: All of them, in order.
    """

    lines: tuple[Line, ...] = ()

    def __post_init__(self) -> None:
        checked = []
        for each in self.lines:
            if not isinstance(each, tuple) or len(each) != 4:
                raise InvalidArgumentError("lines", each, "must be a time, a replica, a number and a text")
            time, replica, n, text = each
            checked_text("replica", replica, empty=False)
            checked.append(Line(checked_time(time), replica, checked_number("n", n, 1), checked_text("text", text)))
        if checked != sorted(set(checked)):
            raise InvalidArgumentError("lines", len(checked), "must be sorted, each one once")
        object.__setattr__(self, "lines", tuple(checked))

    def append(self, text: str, *, time: float, replica: str) -> TextLog:
        """Return this log with one more line.

        Args:
            text: What it says.
            time: The time by the caller's clock: the line comes after those of earlier times, wherever they are from.
            replica: The id of the writer.
        """
        n = 1 + max((line.n for line in self.lines if line.replica == replica), default=0)
        line = Line(checked_time(time), replica, n, text)
        checked_text("replica", replica, empty=False)
        checked_text("text", text)
        return TextLog(lines=tuple(sorted((*self.lines, line))))

    @property
    def texts(self) -> list[str]:
        """The texts of the lines, in order."""
        return [line.text for line in self.lines]

    @property
    def disputed(self) -> list[Line]:
        """The lines that share writer and number with another one: someone lied. All of them stay."""
        tally = Tally((line.replica, line.n) for line in self.lines)
        return [line for line in self.lines if tally[line.replica, line.n] > 1]

    def merge(self, other: TextLog, own: str | None = None) -> TextLog:
        """Return the lines of both. See `State.merge`."""
        checked_same(self, other)
        mine = set(self.lines)
        if own is not None and any(line.replica == own and line not in mine for line in other.lines):
            raise forged(other, f"it contains a line that {own} has not written")
        return TextLog(lines=tuple(sorted(mine.union(other.lines))))

    def to_bytes(self) -> bytes:
        """Return the one byte form."""
        return encoded("log", lines=self.lines)

    @classmethod
    def from_bytes(cls, data: bytes) -> TextLog:
        """Return the log of these bytes. See `State.from_bytes`."""
        (lines,) = decoded("log", data, "lines")
        if not isinstance(lines, list) or not all(isinstance(line, list) and len(line) == 4 for line in lines):
            raise malformed("log", data)
        made = cls(lines=tuple(Line(*line) for line in lines))
        if made.to_bytes() != data:
            raise malformed("log", data)
        return made
