"""Tools: what a model can call, with JSON schemas of arguments and the check of arguments against them.

`Memory.tools` and the MCP server define their tools with these. Only the keywords that the builders here produce are
known to the check; each of the two words in its own way what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from recollect.errors import InvalidArgumentError

Schema = dict[str, Any]
C = TypeVar("C")
R = TypeVar("R")

#: JSON type -> the Python types of its values. A bool is an int in Python, but no number in JSON.
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def schema(kind: str, *description: str, **keywords: Any) -> Schema:
    """Return the schema of a value of a JSON type."""
    return {"type": kind, **({"description": description[0]} if description else {}), **keywords}


string = partial(schema, "string")
integer = partial(schema, "integer")
number = partial(schema, "number")
boolean = partial(schema, "boolean")


def array(items: Schema, *description: str) -> Schema:
    """Return the schema of a list."""
    return schema("array", *description, items=items)


def mapping(
    properties: Mapping[str, Schema] | None = None, *, required: Sequence[str] | None = None, closed: bool = False
) -> Schema:
    """Return the schema of an object.

    Args:
        properties: The schemas of its values.
        required: The keys that it must have; None: the schema does not say.
        closed: Whether it may have no other keys.
    """
    keywords: Schema = {"properties": dict(properties or {})}
    if required is not None:
        keywords["required"] = list(required)
    if closed:
        keywords["additionalProperties"] = False
    return schema("object", **keywords)


def result(optional: Mapping[str, Schema] | None = None, /, **properties: Schema) -> Schema:
    """Return the schema of an object that must have all of `properties`, may have `optional` ones, and no others."""
    return mapping({**properties, **(optional or {})}, required=tuple(properties), closed=True)


class Mismatch(NamedTuple):
    """A place where a value does not match a schema.

    Attributes:
        rule: What is not met: "type", "enum", "minimum", "maximum", "required" or "known".
        path: The place, such as `items[0].name`; "" is the whole value.
        schema: What the place must match.
        value: What is there; None if it is missing.
        key: The key that is not known.
    """

    rule: str
    path: str
    schema: Schema
    value: Any = None
    key: str = ""


def mismatches(expected: Schema, value: Any, path: str = "") -> Iterator[Mismatch]:
    """Yield each place where a value does not match a schema, in the order of the schema; unknown keys come last."""
    if not _is(value, expected["type"]):
        yield Mismatch("type", path, expected, value)
        return
    if "enum" in expected and value not in expected["enum"]:
        yield Mismatch("enum", path, expected, value)
    if "minimum" in expected and not value >= expected["minimum"]:  # also refuses NaN
        yield Mismatch("minimum", path, expected, value)
    if "maximum" in expected and not value <= expected["maximum"]:
        yield Mismatch("maximum", path, expected, value)
    if expected["type"] == "array":
        for index, item in enumerate(value):
            yield from mismatches(expected["items"], item, f"{path}[{index}]")
    if expected["type"] == "object":
        for key, each in expected["properties"].items():
            below = f"{path}.{key}" if path else key
            if key in value:
                yield from mismatches(each, value[key], below)
            elif key in expected.get("required", ()):
                yield Mismatch("required", below, each)
        if expected.get("additionalProperties") is False:
            for key in value:
                if key not in expected["properties"]:
                    yield Mismatch("known", path, expected, value, key)


def _is(value: Any, kind: str) -> bool:
    return kind == "boolean" if isinstance(value, bool) else isinstance(value, _TYPES[kind])


def kind_of(value: Any) -> str:
    """Return the JSON type of a value; that of an integer is "number"."""
    if value is None:
        return "null"
    return next(kind for kind in ("string", "number", "boolean", "array", "object") if _is(value, kind))


def with_present_names(arguments: Mapping[str, Any], former: Mapping[str, str]) -> dict[str, Any]:
    """Return arguments by their present names, for callers outside that still use the former ones.

    >>> with_present_names({"query": "tea", "k": 3}, {"query": "text"})
    {'text': 'tea', 'k': 3}

    Args:
        former: The former names, each with the present one.

    Raises:
        InvalidArgumentError: An argument is passed under two names.
    """
    found: dict[str, Any] = {}
    passed: dict[str, str] = {}
    for name, value in arguments.items():
        now = former.get(name, name)
        if now in found:
            raise InvalidArgumentError(now, value, f"is passed twice, as {passed[now]} and as {name}")
        found[now], passed[now] = value, name
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Generic[C, R]):
    """A tool: a function that a model can call.

    Attributes:
        description: What it does and when to call it, for a model.
        inputs: The schemas of its arguments.
        required: The arguments that must be passed; None: the schema does not say.
        run: The function that is called with an environment and valid arguments.
        reads: Whether it only reads.
        closed: Whether unknown arguments are an error.
        former: The former names of arguments, each with the present one. Callers may use them; the schema does not
            list them.
    """

    name: str
    description: str
    inputs: Mapping[str, Schema]
    required: tuple[str, ...] | None = None
    run: Callable[[C, dict[str, Any]], R] = field(repr=False)
    reads: bool = False
    closed: bool = True
    former: Mapping[str, str] = field(default_factory=dict)

    def passed(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by their present names, without what a model left out by passing null.

        Raises:
            InvalidArgumentError: An argument is passed under its present name and under a former one.
        """
        if self.closed:
            stated = {self.former[name] for name in self.former if arguments.get(name) is not None}
            kept = {*(self.required or ())} - stated
            nulls = {name for name in (*self.inputs, *self.former) if arguments.get(name) is None} - kept
            arguments = {name: value for name, value in arguments.items() if name not in nulls}
        return with_present_names(arguments, self.former)

    def input_schema(self, without: Collection[str] = ()) -> Schema:
        """Return the schema of its arguments, except some."""
        inputs = {name: each for name, each in self.inputs.items() if name not in without}
        return mapping(inputs, required=self.required, closed=self.closed)
