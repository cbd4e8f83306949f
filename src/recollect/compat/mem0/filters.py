"""Filters of mem0 as filters of a memory: ids, fields and metadata with operators, joined by AND, OR and NOT."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from recollect import Record
from recollect import filters as f
from recollect.compat.searching import Condition
from recollect.errors import InvalidArgumentError
from recollect.filters import Filter

#: The ids of mem0, and the fields of a record. A run is also a session: `recollect import mem0` makes it one.
OWNERS = {"user_id": "user", "agent_id": "agent", "run_id": "conversation"}
FIELDS = {**OWNERS, "actor_id": "speaker", "role": "role", "id": "id"}
_TIME = "created_at"
_JOINED = ("AND", "OR", "NOT")
#: Fields of a result by which memories are not filtered, and what is said instead.
_NOT_FILTERED = ("updated_at", "hash", "score", "metadata")
_KEYS = f"there are {', '.join((*FIELDS, 'memory', _TIME))}, the keys of metadata, and {', '.join(_JOINED)}"
_TEXT = "memory"
_RANGES = {"gt": "above", "gte": "at_least", "lt": "below", "lte": "at_most"}
_OPERATORS = ("eq", "ne", "in", "nin", *_RANGES, "contains", "icontains")
_ANY = "*"


def condition(filters: Mapping[str, Any]) -> Condition:
    """Return the condition of a filter.

    Raises:
        InvalidArgumentError: It has an unknown operator, or a value that the operator does not take.
    """
    exact = _compiled(filters, admits=None)
    bound = _compiled(filters, admits=True)
    return Condition(bound, None if exact == bound else exact.matches)


def owners_in(filters: Mapping[str, Any]) -> set[str]:
    """Return the ids that a filter requires: at its top, and in lists of AND."""
    found = {key for key, wanted in filters.items() if key in OWNERS and _is_named(wanted)}
    parts = filters.get("AND")
    for part in parts if isinstance(parts, (list, tuple)) else ():
        if isinstance(part, Mapping):
            found |= owners_in(part)
    return found


def _is_named(wanted: Any) -> bool:
    """Return whether a condition on an id says which ones: not which ones it is not."""
    return not isinstance(wanted, Mapping) or bool(wanted.keys() & {"eq", "in"})


def _compiled(filters: Any, admits: bool | None) -> Filter:
    """Return a filter.

    Args:
        filters: The filter of mem0.
        admits: What a condition that the index cannot decide becomes: True or False for every record, or None for the
            condition itself.
    """
    if not isinstance(filters, Mapping):
        raise InvalidArgumentError("filters", filters, "must be a dictionary, and so must each condition in a list")
    parts = []
    for key, wanted in filters.items():
        if key not in _JOINED:
            if str(key).startswith("$") or str(key).upper() in _JOINED or key in _NOT_FILTERED:
                raise InvalidArgumentError("filters", filters, f"{key!r} is no key: {_KEYS}")
            parts.append(_of_key(str(key), wanted, admits))
            continue
        if not isinstance(wanted, (list, tuple)) or (not wanted and key != "AND"):
            some = "" if key == "AND" else " that is not empty"
            raise InvalidArgumentError("filters", filters, f"{key} takes a list of conditions{some}")
        inside = None if admits is None else admits != (key == "NOT")
        joined = [_compiled(each, inside) for each in wanted]
        parts.append(f.all_of(*joined) if key == "AND" else f.any_of(*joined) if key == "OR" else ~f.any_of(*joined))
    return f.all_of(*parts)


def _of_key(key: str, wanted: Any, admits: bool | None) -> Filter:
    if wanted == _ANY:
        return _has(key)
    if not isinstance(wanted, Mapping):
        return _one_of(key, list(wanted) if isinstance(wanted, (list, tuple)) else [wanted])
    if not wanted:
        raise InvalidArgumentError("filters", {key: wanted}, f"has no operator: there are {', '.join(_OPERATORS)}")
    return f.all_of(*(_of_operator(key, str(name), operand, admits) for name, operand in wanted.items()))


def _of_operator(key: str, name: str, operand: Any, admits: bool | None) -> Filter:
    if name not in _OPERATORS:
        rule = f"unsupported operator {name!r} for {key!r}: there are {', '.join(_OPERATORS)}"
        raise InvalidArgumentError("filters", {key: {name: operand}}, rule)
    if name in ("eq", "ne"):
        return _one_of(key, [operand]) if name == "eq" else ~_one_of(key, [operand])
    if name in ("in", "nin"):
        if not isinstance(operand, (list, tuple, set, frozenset)):
            raise InvalidArgumentError("filters", {key: {name: operand}}, f"{name} takes a list")
        found = _one_of(key, list(operand))
        return found if name == "in" else ~found
    if name in _RANGES:
        return _range(key, name, operand)
    if admits is not None:
        # In metadata, the index compares texts in any case.
        is_in_metadata = name == "contains" and key not in FIELDS and key != _TEXT
        near = [f.meta(place, contains=operand) for place in _places(key)] if is_in_metadata else [f.everything()]
        return f.any_of(*near) if admits else f.nothing()
    return f.custom(lambda record: _contains(value_of(record, key), operand, folded=name == "icontains"))


def _has(key: str) -> Filter:
    if key == "run_id":
        return f.has("conversation") | f.has("session")
    if key in FIELDS or key in (_TIME, _TEXT):
        return f.everything() if key == _TEXT else f.has(FIELDS.get(key, "time"))
    return f.any_of(*map(f.meta, _places(key)))


def _one_of(key: str, values: list[Any]) -> Filter:
    """Return a filter for a value that is one of several, or a list with one of them; None is also a missing value."""
    if key in FIELDS:
        if not all(isinstance(value, (str, int)) for value in values):
            raise InvalidArgumentError("filters", {key: values}, f"{key} takes a text, or a list of texts")
        names = [str(value) for value in values]
        if key in OWNERS:
            names = [checked_id(key, name) for name in names]
        if not names:
            return f.nothing()
        own: Filter = getattr(f, FIELDS[key])(*names)
        return own | f.session(*names) if key == "run_id" else own
    if key == _TIME:
        return f.any_of(*(f.between(_time(value), _time(value)) for value in values))
    if key == _TEXT:
        raise InvalidArgumentError("filters", {key: values}, f"{key} takes contains or icontains")
    stated = [value for value in values if value is not None]
    found = [test for place in _places(key) for test in (f.meta(place, one_of=stated), f.meta(place, any_of=stated))]
    missing = f.all_of(*(f.meta(place, None) | ~f.meta(place) for place in _places(key)))
    return f.any_of(*(found if stated else ()), *((missing,) if len(stated) < len(values) else ()))


def _places(key: str) -> list[str | list[str]]:
    """Return where a key of the metadata may be: a key with a period is also a path into objects."""
    return [key, key.split(".")] if "." in key else [key]


def _range(key: str, name: str, operand: Any) -> Filter:
    if key in FIELDS or key == _TEXT:
        raise InvalidArgumentError("filters", {key: {name: operand}}, f"{key} has no order")
    if key == _TIME:
        time = _time(operand)
        above, below = f.after(time), f.before(time)
        return {"gt": above, "gte": f.has("time") & ~below, "lt": below, "lte": f.has("time") & ~above}[name]
    tests: dict[str, Any] = {_RANGES[name]: operand}
    return f.any_of(*(f.meta(place, **tests) for place in _places(key)))


def _time(value: Any) -> Any:
    if not isinstance(value, (str, datetime)):
        raise InvalidArgumentError("filters", {_TIME: value}, "takes a time: ISO 8601 text or a datetime")
    return value


def value_of(record: Record, key: str) -> Any:
    """Return the value of a record that has a key of mem0; None if it has none."""
    if key == "run_id":
        return record.conversation or record.session
    if key in FIELDS:
        return getattr(record, FIELDS[key])
    if key == _TEXT:
        return record.text
    value: Any = record.metadata
    if key in value or "." not in key:
        return value.get(key)
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _contains(value: Any, wanted: Any, folded: bool) -> bool:
    def fold(each: Any) -> Any:
        return each.casefold() if folded and isinstance(each, str) else each

    if isinstance(value, str):
        return isinstance(wanted, str) and fold(wanted) in fold(value)
    return isinstance(value, (list, tuple)) and fold(wanted) in map(fold, value)


def checked_id(name: str, value: object) -> str:
    """Return an id of mem0 as the name of an owner: without spaces around it.

    Raises:
        InvalidArgumentError: It is blank, or has spaces within.
    """
    text = str(value).strip()
    if not text or any(character.isspace() for character in text):
        raise InvalidArgumentError(name, value, "must be an id that is not blank and has no spaces in it")
    return text
