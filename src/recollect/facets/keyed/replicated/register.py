"""`Register`, one text that the last writer sets: by time, then turn, then replica.

A replica whose clock stands still or is behind takes the time of the write that it has seen and the next turn, so its
own write is always later than what it knew (a hybrid logical clock; Kulkarni et al., OPODIS 2014).
"""

from __future__ import annotations

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


class Stamp(NamedTuple):
    """When a value was set, and by which replica. Later ones are greater.

    Attributes:
        time: The time by the clock of the writer, or of a write that it had seen, if that is later.
        turn: Counts writes of the same time, from 0.
        replica: The writer.
    """

    time: int | float
    turn: int
    replica: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """One text, or none.

    Attributes:
        stamp: When it was set or cleared; None: never.
        value: The text; None: it was never set, or it was cleared. An empty text is a value.
    """

    stamp: Stamp | None = None
    value: str | None = None

    def __post_init__(self) -> None:
        if self.value is not None:
            checked_text("value", self.value)
        if self.stamp is None:
            if self.value is not None:
                raise InvalidArgumentError("stamp", None, "must be there if there is a value")
            return
        if not isinstance(self.stamp, tuple) or len(self.stamp) != 3:
            raise InvalidArgumentError("stamp", self.stamp, "must be a time, a turn and a replica")
        time, turn, replica = self.stamp
        checked_text("replica", replica, empty=False)
        object.__setattr__(self, "stamp", Stamp(checked_time(time), checked_number("turn", turn), replica))

    def set(self, value: str | None, *, time: float, replica: str) -> Register:
        """Return this register with another value, which wins over what this one knows.

        Args:
            value: The text; None clears it.
            time: The time by the caller's clock.
            replica: The id of the writer.
        """
        now, turn = checked_time(time), 0
        if self.stamp is not None and now <= self.stamp.time:
            now, turn = self.stamp.time, self.stamp.turn + 1
        return Register(stamp=Stamp(now, turn, replica), value=value)

    def merge(self, other: Register, own: str | None = None) -> Register:
        """Return the later of both. See `State.merge`."""
        checked_same(self, other)
        if own is not None and other._order > self._order and other.stamp is not None and other.stamp.replica == own:
            raise forged(other, f"it was set by {own} later than {own} has set it")
        return max(self, other, key=lambda each: each._order)

    @property
    def _order(self) -> tuple[bool, Stamp, bool, str]:
        # The value decides where a replica set two with one stamp, so that all agree in this case, too.
        return self.stamp is not None, self.stamp or Stamp(0, 0, ""), self.value is not None, self.value or ""

    def to_bytes(self) -> bytes:
        """Return the one byte form."""
        return encoded("register", stamp=self.stamp, value=self.value)

    @classmethod
    def from_bytes(cls, data: bytes) -> Register:
        """Return the register of these bytes. See `State.from_bytes`."""
        stamp, value = decoded("register", data, "stamp", "value")
        if not (stamp is None or (isinstance(stamp, list) and len(stamp) == 3)):
            raise malformed("register", data)
        made = cls(stamp=None if stamp is None else Stamp(*stamp), value=value)
        if made.to_bytes() != data:
            raise malformed("register", data)
        return made
