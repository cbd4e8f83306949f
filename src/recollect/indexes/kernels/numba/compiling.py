"""Compilation of functions by numba.

Only this module imports numba, which takes most of a second, and only modules with compiled kernels import this one.
The compiled code is stored in numba's cache; if no cache folder is writable, each process compiles again.

numba compares the date of a function's own file with that of its cached code, but not the functions and constants of
other files that were compiled into it. So the name in the cache contains a digest of all files that kernels consist of.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from functools import cache
from importlib import resources
from typing import Any, TypeVar

import numba
from numba.core import event

T = TypeVar("T")
#: The folder of numba's cache for the function that was compiled last; None if no folder is writable.
cache_folder: str | None = None


class NotCachedError(Exception):
    """A function would have to be compiled, because numba's cache does not have it."""


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function compiled by numba, from its cache if possible."""
    global cache_folder
    function.__qualname__ = f"{function.__qualname__}_{_digest()}"
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        made = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no cache folder is writable
        made = numba.njit(**options)(function)
    cache_folder = made.stats.cache_path
    out: Callable[..., Any] = made
    return out


@cache
def _digest() -> str:
    """Return a digest of the source files of the kernels and of the constants that are compiled into them."""
    out = hashlib.sha256()
    for package in ("recollect.indexes", "recollect.indexes.kernels", "recollect.indexes.kernels.numba"):
        for file in sorted(resources.files(package).iterdir(), key=lambda file: file.name):
            if file.name.endswith(".py"):
                out.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return out.hexdigest()[:16]


def cached_only() -> AbstractContextManager[Any]:
    """Return a context manager in which this thread loads functions from numba's cache only.

    Raises:
        NotCachedError: Inside the block, a function would have to be compiled.
    """
    context: AbstractContextManager[Any] = event.install_listener("numba:compile", _Refusal())
    return context


class _Refusal(event.Listener):
    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def on_start(self, event: object) -> None:
        if threading.get_ident() == self._thread:  # other threads may compile functions of the application
            raise NotCachedError

    def on_end(self, event: object) -> None:
        pass


def finished(steps: Generator[None, None, T]) -> T:
    """Run all steps of a generator and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            value: T = stop.value
            return value
