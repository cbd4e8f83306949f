"""JSON schemas of arguments and results, and the check of arguments against them.

Only the keywords that the builders here produce are known. The descriptions of what is wrong name the path of each
value, so that a model can correct its call; their wording is that of the reference memory server, which clients show.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recollect.errors import shown

Schema = dict[str, Any]

#: JSON type -> the Python types of its values. A bool is an int in Python, but no number in JSON.
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def string(description: str = "", **keywords: Any) -> Schema:
    """Return the schema of a text."""
    return _schema("string", description, keywords)


def integer(description: str = "", **keywords: Any) -> Schema:
    """Return the schema of an integer."""
    return _schema("integer", description, keywords)


def number(description: str = "", **keywords: Any) -> Schema:
    """Return the schema of a number."""
    return _schema("number", description, keywords)


def boolean(description: str = "", **keywords: Any) -> Schema:
    """Return the schema of a truth value."""
    return _schema("boolean", description, keywords)


def array(items: Schema, description: str = "") -> Schema:
    """Return the schema of a list."""
    return _schema("array", description, {"items": items})


def mapping(
    properties: Mapping[str, Schema] | None = None,
    *,
    required: Sequence[str] = (),
    closed: bool = False,
    description: str = "",
) -> Schema:
    """Return the schema of an object.

    Args:
        properties: The schemas of its values.
        required: The keys that it must have.
        closed: Whether it may have no other keys.
        description: What it is.
    """
    keywords: dict[str, Any] = {"properties": dict(properties or {})}
    if required:
        keywords["required"] = list(required)
    if closed:
        keywords["additionalProperties"] = False
    return _schema("object", description, keywords)


def _schema(kind: str, description: str, keywords: Mapping[str, Any]) -> Schema:
    return {"type": kind, **({"description": description} if description else {}), **keywords}


def problems(schema: Schema, value: Any, path: str = "") -> Iterator[str]:
    """Yield a description of each place where a value does not match a schema, in the order of the schema."""
    expected = schema["type"]
    if not _is(value, expected):
        yield f"Invalid input: expected {expected}, received {_kind(value)}{_at(path)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"Invalid option: expected one of {'|'.join(map(str, schema['enum']))}{_at(path)}"
    if "minimum" in schema and not value >= schema["minimum"]:  # also refuses NaN
        yield f"Too small: expected {expected} to be >={schema['minimum']}{_at(path)}"
    if "maximum" in schema and not value <= schema["maximum"]:
        yield f"Too big: expected {expected} to be <={schema['maximum']}{_at(path)}"
    if expected == "array":
        for index, item in enumerate(value):
            yield from problems(schema["items"], item, f"{path}[{index}]")
    if expected == "object":
        yield from _problems_of_object(schema, value, path)


def _problems_of_object(schema: Schema, value: Mapping[str, Any], path: str) -> Iterator[str]:
    known: Mapping[str, Schema] = schema["properties"]
    missing = []
    for key, each in known.items():
        below = f"{path}.{key}" if path else key
        if key in value:
            yield from problems(each, value[key], below)
        elif key in schema.get("required", ()):
            missing.append(key)
            yield f"Invalid input: expected {each['type']}, received undefined at {below}"
    if schema.get("additionalProperties") is False:
        for key in value:
            if key not in known:
                similar = missing if len(missing) == 1 else difflib.get_close_matches(key, known, 1)
                hint = f"did you mean {similar[0]!r}?" if similar else f"known: {', '.join(known) or 'none'}"
                yield f"Unrecognized key: {shown(key)}{_at(path)} ({hint})"


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return next(name for name, types in _TYPES.items() if isinstance(value, types))


def _at(path: str) -> str:
    return f" at {path}" if path else ""
