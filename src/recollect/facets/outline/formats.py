"""The texts of outlines: Org, Markdown and JSON, by the names of the formats; and the ids of named outlines."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import NamedTuple

from recollect.errors import ImportFormatError, InvalidArgumentError
from recollect.facets.outline.text import json_text, markdown, org
from recollect.facets.outline.text.nodes import Node, from_json

#: The namespace of the ids of outlines.
SOURCES = uuid.uuid5(uuid.NAMESPACE_DNS, "outlines.recollect")


class Format(NamedTuple):
    """A format of outlines.

    Attributes:
        read: Returns the tree of a text.
        write: Returns the text of a tree.
        document_of: Returns the tree as which a tree is written: in Org and Markdown, a document with it.
    """

    read: Callable[[str], Node]
    write: Callable[[Node], str]
    document_of: Callable[[Node], Node]


def _read_json(text: str) -> Node:
    try:
        data = json_text.loads(text)
    except ValueError as error:
        raise ImportFormatError("the outline", "its text", f"is not JSON ({error})") from None
    return from_json(data)


#: The formats by name.
FORMATS = {
    "org": Format(org.parse, org.write, org.document_of),
    "markdown": Format(markdown.parse, markdown.write, markdown.document_of),
    "json": Format(_read_json, json_text.dumps, lambda tree: tree),
}


def format_named(name: str) -> Format:
    """Return the format with a name.

    Raises:
        InvalidArgumentError: There is no such format.
    """
    if name not in FORMATS:
        raise InvalidArgumentError("format", name, f"must be one of {', '.join(FORMATS)}")
    return FORMATS[name]


def source_id(source: str) -> str:
    """Return the id of the root of an outline that has a name, unless its source gives it another."""
    return str(uuid.uuid5(SOURCES, source))
