"""Fast construction of frozen values whose fields are already known to be valid.

A frozen dataclass sets its fields through `object.__setattr__`, one call each, and validates them again. One answer
consists of about fifty such values; building them here, with plain assignments, is several times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, field, fields, make_dataclass
from functools import partial
from typing import Any, TypeVar

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
