"""The texts of outlines: Org, Markdown and JSON, by the names of the formats; and the ids of named outlines."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from recollect.errors import ImportFormatError, InvalidArgumentError
from recollect.text.outlines import json_text, markdown, org
from recollect.text.outlines.nodes import Node, from_json

#: The namespace of the ids of outlines.
SOURCES = uuid.uuid5(uuid.NAMESPACE_DNS, "outlines.recollect")


def _read_json(text: str) -> Node:
    try:
        data = json_text.loads(text)
    except ValueError as error:
        raise ImportFormatError("the outline", "its text", f"is not JSON ({error})") from None
    return from_json(data)


#: How a text is read and written, by the name of its format.
FORMATS: dict[str, tuple[Callable[[str], Node], Callable[[Node], str]]] = {
    "org": (org.parse, org.write),
    "markdown": (markdown.parse, markdown.write),
    "json": (_read_json, json_text.dumps),
}


def format_named(name: str) -> tuple[Callable[[str], Node], Callable[[Node], str]]:
    """Return how a format is read and written.

    Raises:
        InvalidArgumentError: There is no such format.
    """
    if name not in FORMATS:
        raise InvalidArgumentError("format", name, f"must be one of {', '.join(FORMATS)}")
    return FORMATS[name]


def source_id(source: str) -> str:
    """Return the id of the root of an outline that has a name, unless its source gives it another."""
    return str(uuid.uuid5(SOURCES, source))
