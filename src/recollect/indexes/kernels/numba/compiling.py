"""Compilation of functions by numba.

Only this module imports numba, which takes most of a second, and only modules with compiled kernels import this one.
The compiled code is stored in numba's cache; if no cache folder is writable, each process compiles again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function compiled by numba, from its cache if possible."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        made = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no cache folder is writable
        made = numba.njit(**options)(function)
    out: Callable[..., Any] = made
    return out
