"""A node of an outline, as an editor sends it: type, properties, text, children; and the hash of a subtree.

The hash is SHA-256 over a canonical encoding of the id, of what the node says (type, attributes in any order, content)
and of the hashes of its children in their order. Each part is preceded by its length, so no text can stand for another
node, and a missing text differs from an empty one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recollect.errors import ImportFormatError

#: The properties that are not attributes: the id, and the title, which is part of the content.
ID, TITLE = "ID", "TITLE"
#: Deeper trees are refused, in nodes from the root.
MAX_DEPTH = 500
_FIELDS = ("type", "properties", "raw_content", "contents")
_DOMAIN = b"recollect.node.1\0"


@dataclass(slots=True)
class Node:
    """A node with all below it.

    Attributes:
        type: What it is, such as "HEADLINE".
        properties: Its properties by name: "ID", "TITLE" and others, with JSON values.
        raw_content: Its text without the title; None if it has none.
        contents: Its children in their order.
    """

    type: str
    properties: dict[str, Any] = field(default_factory=dict)
    raw_content: str | None = None
    contents: list[Node] = field(default_factory=list)

    @property
    def id(self) -> str | None:
        """Its id, or None; an ID of white space is none."""
        value = self.properties.get(ID)
        return value if isinstance(value, str) and value.strip() else None

    @property
    def title(self) -> str | None:
        """Its title, or None."""
        value = self.properties.get(TITLE)
        return value if isinstance(value, str) else None

    @property
    def content(self) -> str | None:
        """The title, a line break and the text; of what is missing, nothing."""
        parts = [part for part in (self.title, self.raw_content) if part is not None]
        return "\n".join(parts) if parts else None

    @property
    def attributes(self) -> dict[str, Any]:
        """The properties other than id and title."""
        return {name: value for name, value in self.properties.items() if name not in (ID, TITLE)}

    def walk(self) -> Iterator[Node]:
        """Yield the node and all below it, each before its children."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.contents)

    def to_json(self) -> dict[str, Any]:
        """Return the form that `from_json` reads."""
        made: dict[int, dict[str, Any]] = {}
        order = list(self.walk())
        for node in reversed(order):
            out: dict[str, Any] = {"type": node.type, "properties": dict(node.properties)}
            if node.raw_content is not None:
                out["raw_content"] = node.raw_content
            out["contents"] = [made[id(child)] for child in node.contents]
            made[id(node)] = out
        return made[id(self)]


def from_json(data: object) -> Node:
    """Return the tree of a JSON object {type, properties, raw_content, contents}. Only the type is required.

    Raises:
        ImportFormatError: It is not such an object; the message says where.
    """
    root: list[Node] = []
    waiting: list[tuple[object, list[Node], str, int]] = [(data, root, "the root", 1)]
    while waiting:
        value, siblings, place, depth = waiting.pop()
        node = _node(value, place)
        if depth > MAX_DEPTH:
            raise _wrong(f"is deeper than {MAX_DEPTH} nodes", place)
        siblings.append(node)
        children = value["contents"] if isinstance(value, Mapping) and value.get("contents") is not None else []
        if not isinstance(children, Sequence) or isinstance(children, (str, bytes)):
            raise _wrong("has contents that are not a list", place)
        # The last is put on first, so that they are read in their order.
        steps = [(child, node.contents, f"{place}, {at + 1}", depth + 1) for at, child in enumerate(children)]
        waiting += reversed(steps)
    return root[0]


def check_depth(root: Node) -> Node:
    """Return a tree if it is not too deep.

    Raises:
        ImportFormatError: It is deeper than `MAX_DEPTH` nodes.
    """
    level, depth = [root], 1
    while level:
        if depth > MAX_DEPTH:
            raise _wrong(f"is deeper than {MAX_DEPTH} nodes", f"the node {level[0].title or level[0].type!r}")
        level, depth = [child for node in level for child in node.contents], depth + 1
    return root


def _node(value: object, place: str) -> Node:
    if not isinstance(value, Mapping):
        raise _wrong("is not an object", place)
    unknown = [name for name in value if name not in _FIELDS]
    if unknown:
        raise _wrong(f"has the unknown field {unknown[0]!r}: it may have {', '.join(_FIELDS)}", place)
    kind, properties, text = value.get("type"), value.get("properties"), value.get("raw_content")
    if not isinstance(kind, str) or not kind.strip():
        raise _wrong("has no type", place)
    if properties is None:
        properties = {}
    if not isinstance(properties, Mapping) or not all(isinstance(name, str) and name for name in properties):
        raise _wrong("has properties that are not an object", place)
    for name in (ID, TITLE):
        if name in properties and not isinstance(properties[name], str):
            raise _wrong(f"has the property {name}, which is not a text", place)
    if text is not None and not isinstance(text, str):
        raise _wrong("has a raw_content that is not a text", place)
    return Node(kind, dict(properties), text)


def _wrong(why: str, place: str) -> ImportFormatError:
    return ImportFormatError("the outline", place, why)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with their ends; only a line feed ends a line.

    >>> lines_of("a\\n\\nb")
    ['a\\n', '\\n', 'b']
    """
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def said_digest(kind: str, attributes: Mapping[str, Any], content: str | None) -> bytes:
    """Return the digest of what a node says.

    Args:
        kind: Its type.
        attributes: Its attributes.
        content: Its title and text; None if it has neither.
    """
    canonical = json.dumps(attributes, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    sha = hashlib.sha256(_DOMAIN)
    for part in (kind, canonical, content):
        sha.update(b"\0" if part is None else b"\1" + _with_length(part))
    return sha.digest()


def form_digest(node: Node) -> bytes:
    """Return the digest of a node in the form in which its source has it, without its children.

    Two forms can say the same: the properties in another order, a title as the first line of the text, an ID or none.
    """
    data = json.dumps([node.type, list(node.properties.items()), node.raw_content], ensure_ascii=False)
    return hashlib.sha256(data.encode("utf-8", "surrogatepass")).digest()


def node_hash(node_id: str, said: bytes, children: Sequence[bytes]) -> bytes:
    """Return the hash of a node.

    Args:
        node_id: Its id.
        said: The digest of what it says.
        children: The hashes of its children in their order.
    """
    sha = hashlib.sha256(_DOMAIN + _with_length(node_id) + said + len(children).to_bytes(8, "big"))
    for each in children:
        sha.update(each)
    return sha.digest()


def _with_length(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return len(data).to_bytes(8, "big") + data
