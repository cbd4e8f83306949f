"""Calls that are repeated after pages of a store were renewed (`Store.renew`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from recollect.errors import StoreError

T = TypeVar("T")
#: How many times a call is repeated: another SQLite may checkpoint again and again meanwhile.
REPEATS = 10


def repeated(call: Callable[[], T], error: StoreError, renew: Callable[[StoreError], bool]) -> T:
    """Repeat a call that raised an error, as long as what it met could be renewed, and return its result.

    Args:
        call: The call. It must not be part of a transaction of the caller.
        error: What it raised.
        renew: Renews what raised an error, and returns whether that succeeded.

    Raises:
        StoreError: The last error, which could not be renewed.
    """
    for _ in range(REPEATS):
        if not renew(error):
            break
        try:
            return call()
        except StoreError as another:
            error = another
    raise error
