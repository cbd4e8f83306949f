"""Immutable JSON values, for the `metadata` of a record.

They are dicts and lists, so `json.dumps`, `==` and pattern matching work as usual, but their mutating methods raise
TypeError. `freeze` also validates: it accepts JSON only, reports the exact part that is invalid, and limits the depth,
so that no later step recurses deeply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, field, fields, make_dataclass
from functools import partial
from typing import Any, NoReturn, TypeVar

from recollect.errors import InvalidRecordError
from recollect.text.unicode import has_surrogate

MAX_DEPTH = 64
INT64 = range(-(2**63), 2**63)


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError("a record's metadata cannot be changed: use memory.update(id, metadata={...})")


class FrozenDict(dict[str, Any]):
    """An immutable JSON object."""

    __slots__ = ()
    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


class FrozenList(list[Any]):
    """An immutable JSON array."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (list(self),)


def freeze(value: object, path: str = "metadata", depth: int = 0) -> Any:
    """Return an immutable copy of a JSON value.

    Integers must fit in 64 bits, numbers be finite, keys be text, text be valid Unicode; depth at most `MAX_DEPTH`.

    Raises:
        InvalidRecordError: A part is not JSON; the message has its path.
    """
    if depth > MAX_DEPTH:
        raise InvalidRecordError(path, "...", f"is nested deeper than {MAX_DEPTH} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if has_surrogate(value):
            raise InvalidRecordError(path, value, "contains a lone surrogate, which is not valid Unicode")
        return str.__str__(value)
    if isinstance(value, int):
        if value not in INT64:
            raise InvalidRecordError(path, value, "does not fit in 64 bits; store it as text")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidRecordError(path, value, "is not a finite number")
        return float(value) + 0.0  # -0.0 becomes 0.0
    if isinstance(value, Mapping):
        out = {}
        for key, item in value.items():
            if type(key) is type(item) is str and key.isascii() and item.isascii():  # most items
                out[key] = item
                continue
            if not isinstance(key, str):
                raise InvalidRecordError(f"{path} key", key, "must be text")
            if has_surrogate(key):
                raise InvalidRecordError(f"{path} key", key, "contains a lone surrogate, which is not valid Unicode")
            out[str.__str__(key)] = freeze(item, f"{path}[{key!r}]", depth + 1)
        return FrozenDict(out)
    if isinstance(value, (list, tuple)):
        return FrozenList(freeze(item, f"{path}[{at}]", depth + 1) for at, item in enumerate(value))
    raise InvalidRecordError(path, value, "is not JSON (text, number, true, false, null, list or object)")


# Fast construction of frozen values whose fields are already known to be valid.
#
# A frozen dataclass sets its fields through `object.__setattr__`, one call each, and validates them again. One answer
# consists of about fifty such values; building them here, with plain assignments, is several times as fast.

T = TypeVar("T")
N = TypeVar("N", bound=tuple[Any, ...])


def unchecked(kind: type[T]) -> Callable[..., T]:
    """A constructor for a frozen dataclass with slots that takes its fields in order or by name, and checks nothing.

    Neither `__post_init__` nor default factories run: a field with a default factory must be passed.
    """

    def become(twin: Any) -> None:
        twin.__class__ = kind  # which has the same slots

    own: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        (each.name, Any) if each.default is MISSING else (each.name, Any, field(default=each.default))
        for each in sorted(fields(kind), key=lambda each: each.default is not MISSING)  # type: ignore[arg-type]
    ]
    name = f"Unchecked{kind.__name__}"
    made: Any = make_dataclass(
        name, own, bases=kind.__bases__, namespace={"__post_init__": become}, slots=True, eq=False, repr=False
    )
    return made  # type: ignore[no-any-return]


def unchecked_tuple(kind: type[N]) -> Callable[[Iterable[Any]], N]:
    """A constructor for a NamedTuple that takes all its fields as one iterable, and does not count them."""
    return partial(tuple.__new__, kind)


def altered(value: T, **changes: object) -> T:
    """A copy of a frozen dataclass without slots that has some fields replaced, and checks nothing."""
    out = object.__new__(type(value))
    vars(out).update(vars(value), **changes)
    return out
