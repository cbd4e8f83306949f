"""Checks of the arguments of a call: unknown, missing and surplus ones.

Python's own TypeError would be enough for an unknown keyword or a missing argument, but it names an internal function,
every other wrong argument raises a RecollectError with a code, and these errors can say what was probably meant.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from recollect.errors import InvalidArgumentError, MissingArgumentError, UnknownArgumentError
from recollect.quoting import shown

C = TypeVar("C", bound=Callable[..., Any])
T = TypeVar("T", bound=type)


#: The fields that a filter can compare: a call with `where=` is often passed one of them as a keyword.
FILTERED = (
    *("id", "kind", "role", "speaker", "user", "agent", "conversation", "session", "entity", "source"),
    *("tag", "importance", "time", "content"),
)


#: Those of them that have more operators than equality, so that the text form says more.
_COMPARED = ("importance", "time", "content")


#: The names that other calls and other libraries have for an argument -> its names here.
_OTHER_NAMES = {
    "k": ("limit",),
    "limit": ("k",),
    "n": ("k", "limit"),
    "cursor": ("after",),
    "offset": ("after",),
    "text": ("content",),
    "query": ("question",),
    "top_k": ("k", "limit"),
    "filter": ("where",),
    "filters": ("where",),
}


def check_known(call: str, name: object, known: tuple[str, ...]) -> None:
    """Raise UnknownArgumentError, with the known name that was probably meant, if `name` is not in `known`."""
    if name not in known:
        similar = [each for each in _OTHER_NAMES.get(str(name), ()) if each in known]
        similar = similar or difflib.get_close_matches(str(name), known, 1)
        raise UnknownArgumentError(call, str(name), similar[0] if similar else "")


def _with_fields(signature: inspect.Signature, namespace: dict[str, Any]) -> inspect.Signature:
    """Return a signature with the keywords of its TypedDict (`**fields: Unpack[Fields]`) by name."""
    *parameters, last = signature.parameters.values()
    fields = namespace[str(last.annotation).removeprefix("Unpack[").removesuffix("]")]
    keywords = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=..., annotation=annotation.__forward_arg__)
        for name, annotation in fields.__annotations__.items()
    ]
    return signature.replace(parameters=[*parameters, *keywords])


class _Arguments:
    """The arguments that a function takes, and the check of those of a call."""

    def __init__(self, call: Callable[..., Any]) -> None:
        signature = inspect.signature(call)
        parameters = list(signature.parameters.values())
        self.call = f"{call.__name__}()"
        self.positional = [each.name for each in parameters if each.kind <= each.POSITIONAL_OR_KEYWORD]
        named_only = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
        required = {each.name for each in parameters if each.kind < each.VAR_KEYWORD and each.default is each.empty}
        self.required = [name for name in self.positional if name in required]  # they precede the others
        self.known = (*(name for name in self.positional if name not in ("self", "cls")), *named_only)
        self.fields = any(each.kind is each.VAR_KEYWORD for each in parameters)
        self.signature = _with_fields(signature, call.__globals__) if self.fields else signature
        # The argument that a surplus positional one is most likely meant for.
        by_name = list(self.signature.parameters)[len(parameters) - 1 :] if self.fields else named_only
        self.example = by_name[0] if by_name else ""

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise the error of a call that Python would refuse with a TypeError of an internal name."""
        if len(args) > len(self.positional):
            value = shown(args[len(self.positional)])
            raise UnknownArgumentError(self.call, value, self.example, positional=True)
        for name in kwargs:
            if name in self.positional[: len(args)]:
                raise InvalidArgumentError(name, kwargs[name], "is passed twice, by position and by name")
            if not self.fields:
                self._check_known(name)
        for name in self.required[len(args) :]:
            if name not in kwargs:
                raise MissingArgumentError(self.call, name)

    def _check_known(self, name: str) -> None:
        field = name.removesuffix("_id")
        if name not in self.known and field in self.known:
            raise UnknownArgumentError(self.call, name, field)
        if name not in self.known and "where" in self.known and field in FILTERED:
            hint = f'where="{field}=..."' if field in _COMPARED else f"where=filters.{field}(...)"
            raise UnknownArgumentError(self.call, name, hint)
        check_known(self.call, name, self.known)


def named(call: C) -> C:
    """Wrap a function so that a call with wrong arguments raises an error of this package, with what to do.

    An unknown keyword raises UnknownArgumentError, a missing argument MissingArgumentError. A function with a TypedDict
    of fields checks their names itself; its signature lists them.
    """
    if "__signature__" in vars(call):
        return call  # it wraps a call that is checked (`AsyncMemory`)
    arguments = _Arguments(call)
    check = arguments.check
    if inspect.iscoroutinefunction(call):

        @functools.wraps(call)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            check(args, kwargs)
            return await call(*args, **kwargs)

        wrapper: Callable[..., Any] = awaited
    else:

        @functools.wraps(call)
        def checked(*args: Any, **kwargs: Any) -> Any:
            check(args, kwargs)
            return call(*args, **kwargs)

        wrapper = checked
    wrapper.__signature__ = arguments.signature  # type: ignore[attr-defined]
    return wrapper  # type: ignore[return-value]


def all_named(kind: T) -> T:
    """Apply `named` to all public methods of a class."""
    for name, member in list(vars(kind).items()):
        if inspect.isfunction(member) and not name.startswith("_"):
            setattr(kind, name, named(member))
    return kind
