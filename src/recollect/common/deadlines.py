"""Deadlines that the work itself looks at, so that it ends soon when its client does not wait any longer.

`within` sets a deadline for what a thread does in a block; `check` raises DeadlineError when it is over, and work calls
it where it can stop: between the parts of a question, the pages of records, the records of a bulk write. A deadline
never changes a result, it only raises. Work that must not be cut off, such as a commit, runs in `within(None)`. What
looks at the clock itself, such as a kernel, is passed the deadline (`current`) and reads the number in its `cell`.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import NoReturn, TypeVar

from recollect.errors import DeadlineError

T = TypeVar("T")
#: Number of items between two looks at the clock.
_EVERY = 64
#: A time in the past, in nanoseconds of the monotonic clock.
_PAST = 1


class Deadline:
    """The time at which some work ends.

    Args:
        seconds: How long from now.
        clock: Returns the monotonic time in nanoseconds. Kernels in C read that of the system.

    Attributes:
        cell: One number of 64 bits: the time at which it is over, in nanoseconds of the monotonic clock. It is an array
            because it changes when the work is cancelled, also while a kernel reads it.
    """

    __slots__ = ("_clock", "_seconds", "cell")

    def __init__(self, seconds: float, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._seconds = seconds
        self._clock = clock
        self.cell = array("q", [clock() + int(seconds * 1e9)])

    def cancel(self) -> None:
        """End the work soon: its client does not wait any longer. Any thread may call this."""
        self.cell[0] = _PAST

    @property
    def is_over(self) -> bool:
        """True if the work should end."""
        return self._clock() >= self.cell[0]

    def check(self) -> None:
        """Raise DeadlineError if it is over."""
        if self._clock() >= self.cell[0]:
            self.end()

    def end(self) -> NoReturn:
        """Raise DeadlineError."""
        raise DeadlineError(self._seconds, self.cell[0] == _PAST)


_deadline: ContextVar[Deadline | None] = ContextVar("recollect.deadline", default=None)
#: Return the deadline of this thread, or None. It is a function in C, since it is called in every question.
current: Callable[[], Deadline | None] = _deadline.get


@contextmanager
def within(limit: float | Deadline | None) -> Iterator[Deadline | None]:
    """End the work in a block by a deadline: a time in seconds from now, or one that is there; None for none.

    Within another one, the block ends only by the inner one, which should not be the later one.

    Raises:
        DeadlineError: From within the block, when the work looks at the deadline and it is over.
    """
    deadline = Deadline(limit) if isinstance(limit, (int, float)) else limit
    token = _deadline.set(deadline)
    try:
        yield deadline
    finally:
        _deadline.reset(token)


def lift() -> Token[Deadline | None] | None:
    """Remove the deadline of this thread and return what `restore` takes; None if it has none. It costs one call."""
    return None if _deadline.get() is None else _deadline.set(None)


def restore(lifted: Token[Deadline | None]) -> None:
    """Set the deadline again that `lift` has removed."""
    _deadline.reset(lifted)


def check() -> None:
    """Raise DeadlineError if the deadline of this thread is over."""
    deadline = _deadline.get()
    if deadline is not None:
        deadline.check()


def checked(items: Iterable[T]) -> Iterable[T]:
    """Return items that look at the deadline of this thread now and then; the same object if there is none."""
    return items if _deadline.get() is None else _looking(items)


def _looking(items: Iterable[T]) -> Iterator[T]:
    """Yield items, and look before each `_EVERY` of them: at the deadline that its caller has at that time."""
    for at, item in enumerate(items):
        if at % _EVERY == 0:
            check()
        yield item


def is_over() -> bool:
    """Return whether the deadline of this thread is over."""
    deadline = _deadline.get()
    return deadline is not None and deadline.is_over


def overdue() -> DeadlineError | None:
    """Return the error that `check` would raise, or None."""
    try:
        check()
    except DeadlineError as error:
        return error
    return None
