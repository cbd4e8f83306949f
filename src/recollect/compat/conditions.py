"""Filters of searches: what they admit, and a condition for the index that admits at least as much.

Numbers compare with numbers and texts with texts; True is not 1; a comparison that cannot be made does not match, and
is no error. A key with a period names a key of the value as it stands, and only if there is none, a path into objects.
A missing key is null. `$contains` is an item of a list, or a part of a text.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from recollect import filters as f
from recollect.compat.objects import FIELDS, MORE, is_compared
from recollect.compat.stored_json import is_text
from recollect.filters import Filter

_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_RANGES = {"$gt": "above", "$gte": "at_least", "$lt": "below", "$lte": "at_most"}
_SEVERAL = ("$in", "$nin")
_CONTAINS = "$contains"
_OPERATORS = (*_ORDERED, "$eq", "$ne", *_SEVERAL, _CONTAINS, "$exists")
_JOINED = ("$and", "$or")
_NOT = "$not"
_MISSING = object()


def check(conditions: Mapping[str, Any]) -> None:
    """Check a filter.

    Raises:
        ValueError: It has an operator that there is not, or operators among keys.
    """
    if not isinstance(conditions, Mapping):
        raise ValueError(f"a filter is a dictionary, not {type(conditions).__name__}")
    for key, wanted in conditions.items():
        if not isinstance(key, str):
            raise ValueError(f"the keys of a filter are texts, not {key!r}")
        if key in _JOINED:
            if not isinstance(wanted, (list, tuple)):
                raise ValueError(f"{key} takes a list of filters")
            for each in wanted:
                _check_part(key, each)
        elif key == _NOT:
            _check_part(key, wanted)
        elif key in _OPERATORS or (key.startswith("$") and isinstance(wanted, (list, tuple, Mapping))):
            raise ValueError(f"{key!r} is no key: filters are joined by {', '.join((*_JOINED, _NOT))}")
        elif _has_operators(wanted):
            unknown = [name for name in wanted if name not in _OPERATORS]
            if unknown:
                there = f"there are {', '.join(_OPERATORS)}, and {', '.join((*_JOINED, _NOT))} in place of a key"
                raise ValueError(f"unknown operator {unknown[0]!r} for {key!r}: {there}")
            for name in _SEVERAL:
                if name in wanted and not isinstance(wanted[name], (list, tuple, set, frozenset)):
                    raise ValueError(f"{name} for {key!r} takes a list")


def _check_part(name: str, part: object) -> None:
    if not isinstance(part, Mapping):
        raise ValueError(f"{name} takes filters, which are objects")
    check(part)


def _has_operators(wanted: object) -> bool:
    return isinstance(wanted, Mapping) and any(isinstance(name, str) and name.startswith("$") for name in wanted)


def fits(value: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    """Return whether a value fits a filter."""
    return all(_fits_key(value, key, wanted) for key, wanted in conditions.items())


def _fits_key(value: Mapping[str, Any], key: str, wanted: Any) -> bool:
    if key in _JOINED:
        return (all if key == "$and" else any)(fits(value, part) for part in wanted)
    if key == _NOT:
        return not fits(value, wanted)
    found = _at(value, key)
    if not _has_operators(wanted):
        return _same(None if found is _MISSING else found, wanted)
    return all(_holds(found, name, operand) for name, operand in wanted.items())


def _at(value: Any, key: str) -> Any:
    if key in value or "." not in key:
        return value.get(key, _MISSING)
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return _MISSING
        value = value[part]
    return value


def _holds(found: Any, name: str, operand: Any) -> bool:
    if name == "$exists":
        return (found is not _MISSING) == bool(operand)
    found = None if found is _MISSING else found
    if name in ("$eq", "$ne"):
        return _same(found, operand) == (name == "$eq")
    if name == _CONTAINS:
        return _contains(found, operand)
    if name in _SEVERAL:
        return any(_same(found, each) for each in operand) == (name == "$in")
    comparable = (_is_number(found) and _is_number(operand)) or (isinstance(found, str) and isinstance(operand, str))
    return comparable and _ORDERED[name](found, operand)


def _contains(found: Any, wanted: Any) -> bool:
    """Return whether a list has an item, or a text a part."""
    if isinstance(found, str):
        return isinstance(wanted, str) and wanted in found
    return isinstance(found, (list, tuple)) and any(_same(each, wanted) for each in found)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; a tuple is a list, and True is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(each, other[name]) for name, each in one.items())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def bound(conditions: Mapping[str, Any]) -> Filter:
    """Return a condition on records that holds for all whose values fit, and which the index decides."""
    return reduce(operator.and_, [_bound_of(key, wanted) for key, wanted in conditions.items()], f.everything())


def _bound_of(key: str, wanted: Any) -> Filter:
    if key in _JOINED:
        if key == "$and":
            return reduce(operator.and_, map(bound, wanted), f.everything())
        return reduce(operator.or_, map(bound, wanted), f.nothing())
    if key == _NOT or not is_text(key):
        return f.everything()
    operators = wanted if _has_operators(wanted) else {"$eq": wanted}
    parts = [_bound_of_operator(key, name, operand) for name, operand in operators.items()]
    return reduce(operator.and_, parts, f.everything())


def _bound_of_operator(key: str, name: str, operand: Any) -> Filter:
    if name == "$eq" and _is_compared(operand):
        tests: dict[str, Any] = {"equals": operand}
    elif name == "$in" and all(map(_is_compared, operand)):
        if not operand:
            return f.nothing()
        tests = {"one_of": list(operand)}
    elif name in _RANGES and _is_compared(operand) and not isinstance(operand, bool):
        tests = {_RANGES[name]: operand}
    else:
        return f.everything()
    path = key.split(".")
    places = [[FIELDS, key]] if len(path) == 1 else [[FIELDS, key], [FIELDS, *path]]
    return reduce(operator.or_, [f.meta(place, **tests) for place in places]) | f.meta(MORE)


def _is_compared(operand: object) -> bool:
    """Return whether the index compares an operand. Null does not count: it fits where the key is missing, too."""
    return operand is not None and isinstance(operand, (str, int, float)) and is_compared(operand)
