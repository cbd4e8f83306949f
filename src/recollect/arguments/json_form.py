"""The JSON form of results, by the types of their fields, in both directions.

A dataclass or named tuple is an object with its fields, a tuple or list is a list, a time is text in ISO 8601, and
bytes are hex digits. Exceptions are classes with `to_json` or `from_json` of their own, and types with a
form that was registered (`register_form`).
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from operator import methodcaller
from typing import Any, Literal, NamedTuple, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from recollect.errors import InvalidOperationError, RecollectError

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


class Form(NamedTuple):
    """The conversion of values of a type to JSON and back."""

    to_json: Callable[[Any], Any]
    from_json: Callable[[Any], Any]


AS_IT_IS = Form(lambda value: value, lambda data: data)
#: The forms of types, besides those that follow from their fields.
_FORMS: dict[Any, Form] = {
    datetime: Form(datetime.isoformat, datetime.fromisoformat),
    bytes: Form(bytes.hex, bytes.fromhex),
    **dict.fromkeys((None, type(None), bool, int, float, str, dict, Any, object), AS_IT_IS),
}
#: The types of the results of operations, by the names of their classes.
_RESULTS: dict[str, Any] = {each.__name__: each for each in (bool, datetime, dict, int, list, str)}


class JsonForm:
    """The base of a dataclass whose JSON form follows from its fields.

    Class arguments:
        what: What it is, for messages, such as "a hit".
    """

    __slots__ = ()
    _what = ""

    def __init_subclass__(cls, what: str = "") -> None:
        # A dataclass with slots is made twice; the second time without arguments.
        cls._what = what or cls._what
        if cls._what:
            _RESULTS[cls.__name__] = cls

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        kind: Any = type(self)
        out: dict[str, Any] = _fields_form(kind).to_json(self)
        return out

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild it from its JSON form.

        Raises:
            InvalidOperationError: It is not the JSON form of one.
        """
        kind: Any = cls
        found: Self = json_form(cls._what)(_fields_form(kind).from_json)(data)
        return found


def is_result(what: str = "") -> Callable[[C], C]:
    """Let operations name a class as the type of their results. `JsonForm` does so by itself.

    Args:
        what: What a named tuple is, for messages; "" for a class with a form of its own.
    """

    def decorated(kind: Any) -> Any:
        _RESULTS[kind.__name__] = kind
        if what:
            rebuild = json_form(what)(lambda data: _fields_form(kind).from_json(data))
            _FORMS[kind] = Form(lambda value: _fields_form(kind).to_json(value), rebuild)
        return kind

    return decorated


def register_form(kind: type, form: Form) -> None:
    """State the form of a type that has another one as a part of results."""
    _FORMS[kind] = form
    _RESULTS[kind.__name__] = kind


@functools.cache
def form_named(annotation: str) -> Form:
    """Return the form of a type as operations state it: a class, "C | None", "list[C]" or "dict[str, C]"."""
    return form_of(eval(annotation, {"__builtins__": {}}, _RESULTS))


@functools.cache
def form_of(kind: Any) -> Form:
    """Return the form of a type."""
    if kind in _FORMS:
        return _FORMS[kind]
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return AS_IT_IS
    if origin in (Union, types.UnionType):
        return _optional(*(form_of(each) for each in parts if each is not type(None)))
    if origin in (tuple, list) and (origin is list or parts[-1] is Ellipsis):
        return _list(origin, form_of(parts[0]))
    if origin is tuple:
        return _pair(tuple(map(form_of, parts)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(form_of(parts[1]))
    if hasattr(kind, "to_json"):
        return Form(methodcaller("to_json"), kind.from_json)  # subclasses have forms of their own
    return _fields_form(kind)


def _optional(form: Form) -> Form:
    if form is AS_IT_IS:
        return form
    return Form(
        lambda value: None if value is None else form.to_json(value),
        lambda data: None if data is None else form.from_json(data),
    )


def _list(kind: type, form: Form) -> Form:
    if form is AS_IT_IS:
        return Form(list, kind)
    return Form(lambda values: [*map(form.to_json, values)], lambda data: kind(map(form.from_json, data)))


def _pair(forms: tuple[Form, ...]) -> Form:
    return Form(
        lambda values: [form.to_json(each) for form, each in zip(forms, values, strict=True)],
        lambda data: tuple(form.from_json(each) for form, each in zip(forms, data, strict=True)),
    )


def _mapping(form: Form) -> Form:
    return Form(
        lambda values: {key: form.to_json(each) for key, each in values.items()},
        lambda data: {key: form.from_json(each) for key, each in data.items()},
    )


@functools.cache
def _fields_form(kind: Any) -> Form:
    """Return the form of a dataclass or named tuple: an object with its fields."""
    hints = get_type_hints(kind)
    if is_dataclass(kind):
        required = {each.name: each.default is each.default_factory is MISSING for each in fields(kind)}
    else:
        required = {name: name not in kind._field_defaults for name in kind._fields}
    forms = {name: form_of(hints[name]) for name in required}

    def to_json(value: Any) -> dict[str, Any]:
        return {name: form.to_json(getattr(value, name)) for name, form in forms.items()}

    def from_json(data: Mapping[str, Any]) -> Any:
        # Fields that a later release adds are ignored. If none is known, it is something else.
        if not isinstance(data, Mapping) or (data and not forms.keys() & data.keys()):
            raise ValueError(data)
        stated = {name: form.from_json(data[name]) for name, form in forms.items() if required[name] or name in data}
        return kind(**stated)

    return Form(to_json, from_json)


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
