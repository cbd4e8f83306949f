"""JSON values that cannot be changed, for the `metadata` of a record.

They are real dicts and lists (so `json.dumps`, `==` and pattern matching work as everyone expects) whose mutating
methods refuse. `freeze` is also the gate: it admits JSON only, says exactly what is wrong otherwise, and bounds depth
so that no later step can be sent into deep recursion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

from recollect.errors import InvalidRecordError
from recollect.text.unicode import has_surrogate

MAX_DEPTH = 64
INT64 = range(-(2**63), 2**63)


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError("a record's metadata cannot be changed: use memory.update(id, metadata={...})")


class FrozenDict(dict[str, Any]):
    """A JSON object that cannot be changed."""

    __slots__ = ()
    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


class FrozenList(list[Any]):
    """A JSON array that cannot be changed."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (list(self),)


def freeze(value: object, path: str = "metadata", depth: int = 0) -> Any:
    """A frozen copy of a JSON value.

    Integers must fit in 64 bits, numbers be finite, keys be text, text be valid Unicode; depth is at most `MAX_DEPTH`.

    Raises: InvalidRecordError naming the path of the part that is not JSON.
    """
    if depth > MAX_DEPTH:
        raise InvalidRecordError(path, "...", f"is nested deeper than {MAX_DEPTH} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if has_surrogate(value):
            raise InvalidRecordError(path, value, "holds a lone surrogate, which is not valid Unicode")
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
            if not isinstance(key, str):
                raise InvalidRecordError(f"{path} key", key, "must be text")
            if has_surrogate(key):
                raise InvalidRecordError(f"{path} key", key, "holds a lone surrogate, which is not valid Unicode")
            out[str.__str__(key)] = freeze(item, f"{path}[{key!r}]", depth + 1)
        return FrozenDict(out)
    if isinstance(value, (list, tuple)):
        return FrozenList(freeze(item, f"{path}[{place}]", depth + 1) for place, item in enumerate(value))
    raise InvalidRecordError(path, value, "is not JSON (text, number, true, false, null, list or object)")
