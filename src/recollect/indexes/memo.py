"""What was lately read of documents: it stays at hand, so that it need not be read again.

Bounded by bytes, as thousands of indexes may be open; what was not asked for the longest is let go first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

V = TypeVar("V")
#: All that stays, and the most that one value may take of it.
MOST_BYTES, MOST_OF_ONE = 512 * 1024, 64 * 1024


class Memo(Generic[V]):
    """Values by document number, as far as there is room. Used by any number of threads.

    nbytes  what they take together, as those who gave them have said
    """

    def __init__(self) -> None:
        self.nbytes = 0
        # The one that was asked for last comes last. (A plain dict finds its first behind all that were taken out.)
        self._values: OrderedDict[int, tuple[V, int]] = OrderedDict()
        self._turn = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def known(self, numbers: Iterable[int]) -> dict[int, V]:
        """Those of some numbers that are at hand."""
        values, out = self._values, {}
        with self._turn:
            for number in numbers:
                if number in values:
                    values.move_to_end(number)
                    out[number] = values[number][0]
        return out

    def keep(self, came: Iterable[tuple[int, V, int]]) -> None:
        """Have values at hand: each with its number, and the bytes that it takes."""
        with self._turn:
            for number, value, nbytes in came:
                if nbytes > MOST_OF_ONE:
                    continue
                _, before = self._values.pop(number, (None, 0))
                self._values[number] = value, nbytes
                self.nbytes += nbytes - before
            while self.nbytes > MOST_BYTES and self._values:
                _, (_, nbytes) = self._values.popitem(last=False)
                self.nbytes -= nbytes
            if not self._values:
                self.nbytes = 0  # whatever an interruption between two steps has left
