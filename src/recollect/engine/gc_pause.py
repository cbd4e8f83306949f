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
_active: dict[object, Steps] = {}
_was_enabled = False


def gc_paused() -> AbstractContextManager[None]:
    """Let the collector rest while the block runs, in all threads; then it is as it was."""
    global _was_enabled
    key = object()
    block, steps = watched(_pause(key))
    with _lock:
        # In this order, an interruption leaves at most a rest that the next block ends.
        if not _active:
            _was_enabled = gc.isenabled()
        _active[key] = steps
        # No `if` in a loop here: CPython 3.13 leaves the jump back out of what a `with` covers (its exception table).
        for each in list(filter(lambda each: ended(_active[each]), _active)):
            del _active[each]
        gc.disable()
    return block


def _pause(key: object) -> Generator[None, None, None]:
    try:
        yield
    finally:
        with _lock:
            if _was_enabled and all(ended(steps) for each, steps in _active.items() if each is not key):
                gc.enable()
            _active.pop(key, None)


def _after_fork() -> None:
    """In a child nobody else is at work, whose end would switch the collector on again."""
    global _lock
    _lock = threading.Lock()
    if _active and _was_enabled:
        gc.enable()
    _active.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
