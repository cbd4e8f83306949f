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
    found = {key for key in filters if key in OWNERS}
    parts = filters.get("AND")
    for part in parts if isinstance(parts, (list, tuple)) else ():
        if isinstance(part, Mapping):
            found |= owners_in(part)
    return found


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
        near = f.meta(key, contains=operand) if name == "contains" and key not in FIELDS else f.everything()
        return near if admits else f.nothing()
    return f.custom(lambda record: _contains(value_of(record, key), operand, folded=name == "icontains"))


def _has(key: str) -> Filter:
    if key == "run_id":
        return f.has("conversation") | f.has("session")
    return f.has(FIELDS[key]) if key in FIELDS else f.has("time") if key == _TIME else f.meta(key)


def _one_of(key: str, values: list[Any]) -> Filter:
    """Return a filter for a value that is one of several, or a list with one of them; None is also a missing value."""
    if key in FIELDS:
        if not all(isinstance(value, (str, int)) for value in values):
            raise InvalidArgumentError("filters", {key: values}, "takes a text, or a list of texts")
        names = [str(value) for value in values]
        if key in OWNERS:
            names = [checked_id(key, name) for name in names]
        if not names:
            return f.nothing()
        own: Filter = getattr(f, FIELDS[key])(*names)
        return own | f.session(*names) if key == "run_id" else own
    if key == _TIME:
        return f.any_of(*(f.between(_time(value), _time(value)) for value in values))
    stated = [value for value in values if value is not None]
    found = [f.meta(key, one_of=stated), f.meta(key, any_of=stated)] if stated else []
    missing = [f.meta(key, None), ~f.meta(key)] if len(stated) < len(values) else []
    return f.any_of(*found, *missing)


def _range(key: str, name: str, operand: Any) -> Filter:
    if key in FIELDS:
        raise InvalidArgumentError("filters", {key: {name: operand}}, f"{key} has no order")
    if key == _TIME:
        time = _time(operand)
        above, below = f.after(time), f.before(time)
        return {"gt": above, "gte": f.has("time") & ~below, "lt": below, "lte": f.has("time") & ~above}[name]
    tests: dict[str, Any] = {_RANGES[name]: operand}
    return f.meta(key, **tests)


def _time(value: Any) -> Any:
    if not isinstance(value, (str, datetime)):
        raise InvalidArgumentError("filters", {_TIME: value}, "takes a time: ISO 8601 text or a datetime")
    return value


def value_of(record: Record, key: str) -> Any:
    """Return the value of a record that has a key of mem0; None if it has none."""
    if key == "run_id":
        return record.conversation or record.session
    return getattr(record, FIELDS[key]) if key in FIELDS else record.metadata.get(key)


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
