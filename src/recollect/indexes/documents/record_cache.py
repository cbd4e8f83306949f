"""What was lately read of documents: it stays at hand, so that it need not be read again.

Bounded by bytes, as thousands of indexes may be open. What came or was asked for last makes the young half; where that
is full it becomes the old one, and what the old one held is let go: about the least recently used first, with no order
to keep for it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Generic, TypeVar

V = TypeVar("V")
#: All that stays, and the most that one value may take of it.
MOST_BYTES, MOST_OF_ONE = 512 * 1024, 64 * 1024


class Memo(Generic[V]):
    """Values by document number, as far as there is room. Used by any number of threads.

    What values take is told by those who give them.
    """

    def __init__(self) -> None:
        self._young, self._old = _Half[V](), _Half[V]()
        self._turn = threading.Lock()

    def __len__(self) -> int:
        return len(self._young.values) + len(self._old.values)

    @property
    def nbytes(self) -> int:
        """What they take together."""
        return self._young.nbytes + self._old.nbytes

    def known(self, numbers: Iterable[int]) -> dict[int, V]:
        """Those of some numbers that are at hand."""
        out = {}
        with self._turn:
            for number in numbers:
                held = self._young.values.get(number)
                if held is None and (held := self._old.take(number)) is not None:
                    self._put(number, held)
                if held is not None:
                    out[number] = held[0]
        return out

    def keep(self, came: Iterable[tuple[int, V, int]]) -> None:
        """Have values at hand: each with its number, and the bytes that it takes."""
        with self._turn:
            for number, value, nbytes in came:
                if nbytes <= MOST_OF_ONE:
                    self._young.take(number)
                    self._old.take(number)
                    self._put(number, (value, nbytes))

    def _put(self, number: int, held: tuple[V, int]) -> None:
        if self._young.nbytes + held[1] > MOST_BYTES // 2:
            self._young, self._old = _Half[V](), self._young
        self._young.values[number] = held
        self._young.nbytes += held[1]


class _Half(Generic[V]):
    """Values with the bytes that each takes, and those that all take."""

    __slots__ = ("nbytes", "values")

    def __init__(self) -> None:
        self.values: dict[int, tuple[V, int]] = {}
        self.nbytes = 0

    def take(self, number: int) -> tuple[V, int] | None:
        """Take a value out."""
        held = self.values.pop(number, None)
        if held is not None:
            self.nbytes -= held[1]
        return held
