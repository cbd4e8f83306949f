"""Checks that public calls share: unknown keyword arguments, and arguments that must be the path of a file.

An unknown keyword raises UnknownArgumentError, which suggests the most similar known name. Python's own TypeError
would be enough, but every other wrong argument raises a RecollectError with a code.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import os
from collections.abc import Callable
from typing import Any, TypeVar

from recollect.errors import InvalidArgumentError, InvalidOperationError, RecollectError, UnknownArgumentError

C = TypeVar("C", bound=Callable[..., Any])
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound=type)


def check_known(call: str, name: object, known: tuple[str, ...]) -> None:
    """Raise UnknownArgumentError, with the most similar known name, if `name` is not in `known`."""
    if name not in known:
        similar = difflib.get_close_matches(str(name), known, 1)
        raise UnknownArgumentError(call, str(name), similar[0] if similar else "")


def file_path(name: str, value: object) -> str:
    """Return an argument as the absolute path of a file.

    Raises:
        InvalidArgumentError: It is not the path of a file.
    """
    try:
        path = os.fspath(value)  # type: ignore[call-overload]
        os.fsencode(path)
    except (TypeError, UnicodeError):
        raise InvalidArgumentError(name, value, "must be the path of a file") from None
    if not isinstance(path, str) or not path or "\0" in path or path == ":memory:":
        raise InvalidArgumentError(name, value, "must be the path of a file")
    return os.path.abspath(path)


def json_form(what: str) -> Callable[[F], F]:
    """Make a function that rebuilds a value from its JSON form raise InvalidOperationError for anything else.

    Args:
        what: The value, for the message, such as "hits".
    """

    def decorated(rebuild: F) -> F:
        @functools.wraps(rebuild)
        def checked(*args: Any) -> Any:
            try:
                return rebuild(*args)
            except RecollectError:
                raise
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise InvalidOperationError(args[-1], f"is not the JSON form of {what}") from error

        return checked  # type: ignore[return-value]

    return decorated


def named(call: C) -> C:
    """Wrap a function so that it raises UnknownArgumentError for a keyword argument that it does not have.

    A function with `**kwargs` is returned unchanged.
    """
    parameters = inspect.signature(call).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return call  # it checks them itself
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
    """Apply `named` to all public methods of a class."""
    for name, member in list(vars(kind).items()):
        if inspect.isfunction(member) and not name.startswith("_"):
            setattr(kind, name, named(member))
    return kind
