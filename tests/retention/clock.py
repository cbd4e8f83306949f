"""The clock of the tests of retention."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from recollect import Memory
from recollect.testing.loopback import core_of

START = datetime(2026, 3, 1, tzinfo=UTC)


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        return self.time


def later(memory: Memory, **duration: float) -> None:
    """Move the clock of a memory."""
    clock: Any = core_of(memory).clock
    clock.time += timedelta(**duration)
