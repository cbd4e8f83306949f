"""What cases check with, whose messages say what a store did."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

#: A namespace for cases that need one.
NAMESPACE = ("users", "ana")
_TICK_S = 0.001


class NotApplicableError(Exception):
    """The case says nothing about this store, or not in this mode."""


def same(found: Any, wanted: Any) -> None:
    """Raise an AssertionError unless two values are equal, and of one type where they are numbers or flags."""
    if found != wanted or not _same_types(found, wanted):
        raise AssertionError(f"got {found!r}, not {wanted!r}")


def _same_types(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_same_types(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return all(map(_same_types, one, other))
    return type(one) is type(other) if isinstance(one, (bool, int, float)) else True


def refused(call: Callable[[], Any], *kinds: type[Exception]) -> None:
    """Raise an AssertionError unless a call raises an error of one of these kinds (default: any)."""
    try:
        result = call()
    except Exception as error:
        if kinds and not isinstance(error, kinds):
            raise
        return
    raise AssertionError(f"it was accepted, with the result {result!r}")


def next_tick() -> None:
    """Wait until a clock with milliseconds has moved."""
    start = time.time()
    while time.time() - start < 2 * _TICK_S:
        time.sleep(_TICK_S)
