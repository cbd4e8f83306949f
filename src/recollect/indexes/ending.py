"""When a search must end, as what calls the indexes passes it down: they know no clock and no errors of their own."""

from __future__ import annotations

from array import array
from typing import NoReturn, Protocol


class Ending(Protocol):
    """A limit on the time of some work.

    Attributes:
        cell: One number of 64 bits, the time at which the work is over, in nanoseconds of the monotonic clock of the
            system. It can change meanwhile. Kernels in C read it.
    """

    @property
    def cell(self) -> array[int]: ...

    def check(self) -> None:
        """Raise an error if the work is over."""

    def end(self) -> NoReturn:
        """Raise that error: a kernel found that the work is over."""
