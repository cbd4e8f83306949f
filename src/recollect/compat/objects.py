"""JSON objects in the metadata of records: for adapters whose frameworks store objects and filter by their values.

The whole object is in the metadata as JSON text (`compat.stored_json`), so that it comes back as it was. Its texts,
numbers and flags are there once more, for filters (`compat.conditions`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from recollect import Record
from recollect.common.regexes import regex
from recollect.compat.stored_json import is_text, loaded, stored

#: The names in the metadata: the object, the values that filters compare, and whether there are others.
VALUE, FIELDS, MORE = "value", "fields", "more"

#: Maximum size of a text that filters compare in the index.
_COMPARED = 256
#: How many objects within each other are compared in the index.
_DEPTH = 8
_INT64 = range(-(2**63), 2**63)
_SURROGATE = regex(r"[\ud800-\udfff]")


def object_metadata(value: Mapping[str, Any], policies: Any) -> dict[str, Any]:
    """Return the metadata of a record for an object.

    Args:
        value: The object.
        policies: The policies of the memory (`recollect.operations.GetPolicies`).

    Raises:
        TypeError: It has no JSON form.
        ValueError: It refers to itself.
        RejectedError: The policies refuse something in it.
    """
    text = stored(value, policies)
    compared, more = _compared(loaded(text))
    metadata: dict[str, Any] = {VALUE: text, FIELDS: compared}
    if more:
        metadata[MORE] = True
    return metadata


def value_of(record: Record) -> dict[str, Any]:
    """Return the object of a record, a new one each time."""
    value: dict[str, Any] = loaded(record.metadata[VALUE])
    return value


def clean(text: str) -> str:
    """Return a text with lone surrogates replaced, as recall takes it."""
    return _SURROGATE.sub("\ufffd", text)


def _compared(value: dict[str, Any], depth: int = _DEPTH) -> tuple[dict[str, Any], bool]:
    """Return the scalars in a value and in its objects, as the index compares them, and whether there are others."""
    out: dict[str, Any] = {}
    more = False
    for name, each in value.items():
        if isinstance(each, list):  # filters compare lists by reading the item
            continue
        if not is_text(name) or (isinstance(each, dict) and not depth):
            more = True
        elif isinstance(each, dict):
            out[name], below = _compared(each, depth - 1)
            more = more or below
        elif is_compared(each):
            out[name] = each
        else:
            more = True
    return out, more


def is_compared(value: object) -> bool:
    """Return whether a value can be in the metadata as it is, so that the index compares it."""
    if isinstance(value, str):
        return len(value) <= _COMPARED and is_text(value)
    if isinstance(value, float):
        return math.isfinite(value) and (value != 0.0 or math.copysign(1.0, value) > 0)
    return value is None or (isinstance(value, int) and value in _INT64)
