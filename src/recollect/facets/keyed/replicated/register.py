"""`Register`, one text that the last writer sets: by time, then turn, then replica.

A replica whose clock stands still or is behind takes the time of the write that it has seen and the next turn, so its
own write is always later than what it knew (a hybrid logical clock; Kulkarni et al., OPODIS 2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from recollect.errors import InvalidArgumentError
from recollect.facets.keyed.replicated.state import (
    LARGEST,
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


# `Counter`, a number that every replica can raise and lower, the sum of what each has added and taken away.


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """A number.

    Attributes:
        counts: For each replica that has counted, by id: all that it has added, and all that it has taken away.
    """

    counts: tuple[tuple[str, int, int], ...] = ()

    def __post_init__(self) -> None:
        for each in self.counts:
            if not isinstance(each, tuple) or len(each) != 3:
                raise InvalidArgumentError("counts", each, "must be a replica and two counts")
            replica, up, down = each
            checked_text("replica", replica, empty=False)
            if not checked_number("up", up) + checked_number("down", down):
                raise InvalidArgumentError("counts", each, "must not be there, as nothing was counted")
        names = [each[0] for each in self.counts]
        if names != sorted(set(names)):
            raise InvalidArgumentError("counts", names, "must be sorted by replica, each one once")

    @property
    def value(self) -> int:
        """The number."""
        return sum(up - down for _, up, down in self.counts)

    def of(self, replica: str) -> tuple[int, int]:
        """Return what a replica has added and taken away."""
        return next(((up, down) for name, up, down in self.counts if name == replica), (0, 0))

    def add(self, number: int, *, replica: str) -> Counter:
        """Return this counter with a number added, which may be negative.

        Raises:
            InvalidArgumentError: The replica has counted more than fits in 64 bits.
        """
        checked_number("number", number, -LARGEST)
        up, down = self.of(replica)
        counts = {each[0]: each for each in self.counts}
        if number:
            counts[replica] = (replica, up + max(number, 0), down + max(-number, 0))
        return Counter(counts=_sorted(counts))

    def merge(self, other: Counter, own: str | None = None) -> Counter:
        """Return what both have counted. See `State.merge`."""
        checked_same(self, other)
        if own is not None:
            (up, down), (claimed_up, claimed_down) = self.of(own), other.of(own)
            if claimed_up > up or claimed_down > down:
                raise forged(other, f"it claims that {own} has counted more than it has")
        counts = {each[0]: each for each in self.counts}
        for name, up, down in other.counts:
            _, my_up, my_down = counts.get(name, (name, 0, 0))
            counts[name] = (name, max(up, my_up), max(down, my_down))
        return Counter(counts=_sorted(counts))

    def to_bytes(self) -> bytes:
        """Return the one byte form."""
        return encoded("counter", counts=self.counts)

    @classmethod
    def from_bytes(cls, data: bytes) -> Counter:
        """Return the counter of these bytes. See `State.from_bytes`."""
        (counts,) = decoded("counter", data, "counts")
        if not isinstance(counts, list) or not all(isinstance(each, list) for each in counts):
            raise malformed("counter", data)
        made = cls(counts=tuple(tuple(each) for each in counts))
        if made.to_bytes() != data:
            raise malformed("counter", data)
        return made


def _sorted(counts: dict[str, tuple[str, int, int]]) -> tuple[tuple[str, int, int], ...]:
    return tuple(sorted(counts.values()))
