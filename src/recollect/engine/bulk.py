"""Bulk work without the collector of cycles.

Python looks for garbage in cycles after every so many new objects, at all those that are young, and now and then at all
there are. Where many thousands of records are made in a row and none of them is in a cycle, that takes a quarter of the
time and finds nothing.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_turn = threading.Lock()
_under_way = 0
_was_on = False


@contextmanager
def uncollected() -> Iterator[None]:
    """Let the collector rest while the block runs, in all threads; then it is as it was."""
    global _under_way, _was_on
    with _turn:
        if not _under_way:
            _was_on = gc.isenabled()
            gc.disable()
        _under_way += 1
    try:
        yield
    finally:
        with _turn:
            _under_way -= 1
            if not _under_way and _was_on:
                gc.enable()


def _after_fork() -> None:
    """In a child nobody else is at work, whose end would switch the collector on again."""
    global _turn, _under_way
    _turn = threading.Lock()
    if _under_way and _was_on:
        gc.enable()
    _under_way = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
