"""Frozen dataclasses made without a check, and without a call for each of their fields.

A frozen dataclass sets its fields through `object.__setattr__`, one by one, as nothing else may. An answer is made of
some fifty such objects, of which nothing is left to check: there plain assignments are several times as fast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, field, fields, make_dataclass
from typing import Any, TypeVar

T = TypeVar("T")


def unchecked(kind: type[T]) -> Callable[..., T]:
    """What makes objects of a frozen dataclass with slots from its fields, in their order or by name, as they are.

    Neither `__post_init__` nor a default factory is called: a field that has one must be given.
    """

    def become(twin: Any) -> None:
        twin.__class__ = kind  # which has the same slots

    own: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        (each.name, Any) if each.default is MISSING else (each.name, Any, field(default=each.default))
        for each in sorted(fields(kind), key=lambda each: each.default is not MISSING)  # type: ignore[arg-type]
    ]
    name = f"Unchecked{kind.__name__}"
    made: Any = make_dataclass(name, own, namespace={"__post_init__": become}, slots=True, eq=False, repr=False)
    return made  # type: ignore[no-any-return]
