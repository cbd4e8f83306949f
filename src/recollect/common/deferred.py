"""Imports that wait until a name is used: to import all modules takes a process longer than most commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any


def deferred_names(module: str, homes: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module, which imports names from other modules when they are first used.

    Args:
        module: The module.
        homes: The names that each of the other modules defines.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def found(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(import_module(home_of[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    return found


def deferred_function(module: str, name: str) -> Callable[..., Any]:
    """Return what calls a function of another module, which is imported at the first call."""

    @cache
    def found() -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(import_module(module), name)
        return function

    return lambda *args: found()(*args)
