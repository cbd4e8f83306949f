"""Filters of Haystack: checked at once, decided by Haystack itself, and narrowed by the index where it can.

Haystack has its own words for what is equal and what is later, dates among them. So its own function decides for each
document, and the index only leaves out those that cannot fit.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from haystack import Document
from haystack.errors import FilterError
from haystack.utils.filters import COMPARISON_OPERATORS, LOGICAL_OPERATORS, document_matches_filter

from recollect import Record
from recollect import filters as f
from recollect.compat.objects import FIELDS, MORE, is_compared
from recollect.compat.searching import Condition
from recollect.compat.stored_json import is_text
from recollect.filters import Filter

#: Where the metadata of a document are in the object of its record.
META = "meta"
_RANGES = {">": "above", ">=": "at_least", "<": "below", "<=": "at_most"}


def condition(
    filters: Mapping[str, Any] | None,
    document: Callable[[Record], Document],
    place: Sequence[str] = (FIELDS, META),
) -> Condition:
    """Return the condition of a filter.

    Args:
        filters: The filter; None or {}: all documents.
        document: Returns the document of a record.
        place: Where the metadata of the document are in those of the record.

    Raises:
        FilterError: A key is missing, or an operator unknown; also later, when a document cannot be compared.
        ValueError: The filter is no dictionary.
    """
    if filters is None or filters == {}:
        return Condition()
    if not isinstance(filters, Mapping):
        raise ValueError(f"a filter is a dictionary, not {type(filters).__name__}")
    stated = dict(filters)
    return Condition(_bound(stated, place), lambda record: document_matches_filter(stated, document(record)))


def _bound(stated: Any, place: Sequence[str]) -> Filter:
    """Return a filter that admits all documents that fit."""
    if not isinstance(stated, Mapping):
        raise FilterError(f"a condition is a dictionary, not {stated!r}")
    needed = ("field", "operator", "value") if "field" in stated else ("operator", "conditions")
    for key in needed:
        if key not in stated:
            raise FilterError(f"'{key}' key missing in {stated}")
    if "field" in stated:
        return _bound_of_comparison(str(stated["field"]), stated["operator"], stated["value"], place)
    name, parts = stated["operator"], stated["conditions"]
    if name not in LOGICAL_OPERATORS:
        raise FilterError(f"Unknown logical operator '{name}'. Valid operators are: {sorted(LOGICAL_OPERATORS)}")
    if not isinstance(parts, (list, tuple)):
        raise FilterError(f"'conditions' is a list in {stated}")
    bounds = [_bound(part, place) for part in parts]  # each is checked, also where one decides
    if name == "AND":
        return reduce(operator.and_, bounds, f.everything())
    return reduce(operator.or_, bounds, f.nothing()) if name == "OR" else f.everything()


def _bound_of_comparison(field: str, name: str, value: Any, place: Sequence[str]) -> Filter:
    if name not in COMPARISON_OPERATORS:
        raise FilterError(f"Unknown comparison operator '{name}'. Valid operators are: {sorted(COMPARISON_OPERATORS)}")
    if name in _RANGES and isinstance(value, list):
        raise FilterError(f"Filter value can't be a list using operator '{name}'")
    if name in ("in", "not in") and not isinstance(value, list):
        raise FilterError(f"Filter value must be a list using operator '{name}', not {type(value).__name__}")
    path = field.split(".")
    if path[0] != META or len(path) < 2 or not is_text(field):
        return f.everything()
    key = [*place, *path[1:]]
    if name in _RANGES and isinstance(value, (int, float)) and is_compared(value):
        # True and False are numbers there, and are none in the index.
        flags = f.meta(key, one_of=[True, False])
        tests: dict[str, Any] = {_RANGES[name]: value + 0}
        return f.meta(key, **tests) | flags | f.meta(MORE)
    if name == "==" and _is_plain(value):
        return f.meta(key, value) | f.meta(MORE)
    if name == "in" and all(map(_is_plain, value)):
        return f.meta(key, one_of=value) | f.meta(MORE) if value else f.nothing()
    return f.everything()


def _is_plain(value: object) -> bool:
    """Return whether nothing but an equal value equals it: None is also a missing one, and a date has several forms."""
    if isinstance(value, str):
        return is_compared(value) and not value[:4].isdigit()
    return isinstance(value, (int, float)) and is_compared(value)
