"""`Counter`, a number that every replica can raise and lower, the sum of what each has added and taken away."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.errors import InvalidArgumentError
from recollect.facets.keyed.replicated.state import (
    LARGEST,
    checked_number,
    checked_same,
    checked_text,
    decoded,
    encoded,
    forged,
    malformed,
)


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
