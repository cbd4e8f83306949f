"""Compiling: functions as numba compiles them.

Only this module imports numba, which takes most of a second, and only the modules `numba_*` import this one: nobody
else pays for it. What is compiled is kept in numba's cache; where no place for that can be written, it is compiled in
every process that comes so far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as numba compiles it, from its cache where there is one."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        made = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # there is nowhere to keep it
        made = numba.njit(**options)(function)
    out: Callable[..., Any] = made
    return out
