"""How new what is read must be, and how new it was.

A store may be read from copies of it that lag behind. A caller that has seen a commit, through this process or another
one, states it, and is not shown an older state: the store waits a moment for the copy, and then reads the original.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Freshness:
    """What a call requires of the memory that it is about, and what it found.

    Attributes:
        owner: The name of the memory.
        least: The seq of the newest commit that the caller has seen; 0: none.
        found: The seq of the newest commit that was read or made; 0: none.
    """

    owner: str
    least: int = 0
    found: int = 0

    def note(self, owner: str, seq: int) -> None:
        """Note the newest commit of a memory that was read or made."""
        if owner == self.owner and seq > self.found:
            self.found = seq


#: That of the current call; None: it has seen nothing that this process has not.
FRESHNESS: ContextVar[Freshness | None] = ContextVar("freshness", default=None)


@contextmanager
def required(owner: str, least: int) -> Iterator[Freshness]:
    """Require in the block that what is read of a memory has a commit, and provide what was found."""
    out = Freshness(owner, least)
    reset = FRESHNESS.set(out)
    try:
        yield out
    finally:
        FRESHNESS.reset(reset)


def least_of(owner: str) -> int:
    """Return the seq of the newest commit of a memory that the current call has seen; 0: none is known."""
    current = FRESHNESS.get()
    return current.least if current is not None and current.owner == owner else 0
