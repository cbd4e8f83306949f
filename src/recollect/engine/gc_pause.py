"""Bulk work without the collector of cycles.

Python looks for garbage in cycles after every so many new objects, at all those that are young, and now and then at all
there are. Where many thousands of records are made in a row and none of them is in a cycle, that takes a quarter of the
time and finds nothing.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager

from recollect.stores.interruptible import Steps, ended, watched

_lock = threading.Lock()
_under_way: dict[object, Steps] = {}
_was_on = False


def uncollected() -> AbstractContextManager[None]:
    """Let the collector rest while the block runs, in all threads; then it is as it was."""
    global _was_on
    mark = object()
    block, steps = watched(_resting(mark))
    with _lock:
        # In this order, an interruption leaves at most a rest that the next block ends.
        if not _under_way:
            _was_on = gc.isenabled()
        _under_way[mark] = steps
        # No `if` in a loop here: CPython 3.13 leaves the jump back out of what a `with` covers (its exception table).
        for each in list(filter(lambda each: ended(_under_way[each]), _under_way)):
            del _under_way[each]
        gc.disable()
    return block


def _resting(mark: object) -> Generator[None, None, None]:
    try:
        yield
    finally:
        with _lock:
            if _was_on and all(ended(steps) for each, steps in _under_way.items() if each is not mark):
                gc.enable()
            _under_way.pop(mark, None)


def _after_fork() -> None:
    """In a child nobody else is at work, whose end would switch the collector on again."""
    global _lock
    _lock = threading.Lock()
    if _under_way and _was_on:
        gc.enable()
    _under_way.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
