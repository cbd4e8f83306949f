"""Keyword arguments that a call does not have: our error, with the nearest that it has.

Python's own TypeError would do, but every other wrong argument is told by an error of ours, with its code.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import os
from collections.abc import Callable
from typing import Any, TypeVar

from recollect.errors import InvalidArgumentError, UnknownArgumentError

C = TypeVar("C", bound=Callable[..., Any])
T = TypeVar("T", bound=type)


def check_known(call: str, name: object, known: tuple[str, ...]) -> None:
    """Raises: UnknownArgumentError, with the nearest of the known names, where `name` is none of them."""
    if name not in known:
        close = difflib.get_close_matches(str(name), known, 1)
        raise UnknownArgumentError(call, str(name), close[0] if close else "")


def file_path(name: str, value: object) -> str:
    """An argument as the path of a file. Raises: InvalidArgumentError."""
    try:
        path = os.fspath(value)  # type: ignore[call-overload]
        os.fsencode(path)
    except (TypeError, UnicodeError):
        raise InvalidArgumentError(name, value, "must be the path of a file") from None
    if not isinstance(path, str) or not path or "\0" in path or path == ":memory:":
        raise InvalidArgumentError(name, value, "must be the path of a file")
    return os.path.abspath(path)


def named(call: C) -> C:
    """The function, raising UnknownArgumentError where it is given a keyword that it does not have."""
    parameters = inspect.signature(call).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return call  # it looks at them itself
    known = tuple(
        each.name for each in parameters if each.kind is not each.POSITIONAL_ONLY and each.name not in ("self", "cls")
    )
    if inspect.iscoroutinefunction(call):

        @functools.wraps(call)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            for name in kwargs:
                check_known(f"{call.__name__}()", name, known)
            return await call(*args, **kwargs)

        return awaited  # type: ignore[return-value]

    @functools.wraps(call)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            check_known(f"{call.__name__}()", name, known)
        return call(*args, **kwargs)

    return checked  # type: ignore[return-value]


def all_named(kind: T) -> T:
    """The class, its public methods `named`."""
    for name, member in list(vars(kind).items()):
        if inspect.isfunction(member) and not name.startswith("_"):
            setattr(kind, name, named(member))
    return kind
