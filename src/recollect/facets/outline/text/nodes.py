"""A node of an outline, as an editor sends it: type, properties, text, children; and the hash of a subtree.

The hash is SHA-256 over a canonical encoding of the id, of what the node says (type, attributes in any order, content)
and of the hashes of its children in their order. Each part is preceded by its length, so no text can stand for another
node, and a missing text differs from an empty one.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recollect.errors import ImportFormatError

#: The properties that are not attributes: the id, and the title, which is part of the content.
ID, TITLE = "ID", "TITLE"
#: Deeper trees are refused, in nodes from the root.
MAX_DEPTH = 500
#: Maximum depth of the value of a property, as that of a record's metadata.
_DEEPEST_VALUE = 64
_INT64 = range(-(2**63), 2**63)
_FIELDS = ("type", "properties", "raw_content", "contents")
#: Another spelling of `raw_content`.
_RAW = "raw-content"
_DOMAIN = b"recollect.node.1\0"


@dataclass(slots=True, eq=False)
class Node:
    """A node with all below it. Nodes are equal if their fields are.

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

    def __eq__(self, other: object) -> bool:
        return _equal(self, other, lambda node: node.raw_content) if isinstance(other, Node) else NotImplemented

    def walk(self) -> Iterator[Node]:
        """Yield the node and all below it, each before its children."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.contents)

    def to_json(self) -> dict[str, Any]:
        """Return the form that `from_json` reads.

        Raises:
            ImportFormatError: It is deeper than `MAX_DEPTH` nodes, or contains itself.
        """
        made: dict[int, dict[str, Any]] = {}
        order: list[Node] = []
        waiting = [(self, 1)]
        while waiting:
            node, depth = waiting.pop()
            if depth > MAX_DEPTH:
                raise _wrong(f"is deeper than {MAX_DEPTH} nodes", f"the node {node.title or node.type!r}")
            order.append(node)
            waiting += [(child, depth + 1) for child in reversed(node.contents)]
        for node in reversed(order):
            out: dict[str, Any] = {"type": node.type, "properties": dict(node.properties)}
            if node.raw_content is not None:
                out["raw_content"] = node.raw_content
            out["contents"] = [made[id(child)] for child in node.contents]
            made[id(node)] = out
        return made[id(self)]


def copied(tree: Node, properties_of: Callable[[Node], dict[str, Any]]) -> Node:
    """Return a copy of a tree in which each node has the properties that a function returns for it."""
    order = list(tree.walk())
    copies = {id(node): Node(node.type, properties_of(node), node.raw_content) for node in order}
    for node in order:
        copies[id(node)].contents = [copies[id(child)] for child in node.contents]
    return copies[id(tree)]


def is_same(one: Node, other: Node) -> bool:
    """Return whether two trees are equal, with a missing text as an empty one."""
    return _equal(one, other, lambda node: node.raw_content or "")


def _equal(one: Node, other: Node, text_of: Callable[[Node], str | None]) -> bool:
    waiting = [(one, other)]
    while waiting:
        pair = waiting.pop()
        first, second = ((each.type, each.properties, text_of(each), len(each.contents)) for each in pair)
        if first != second:
            return False
        waiting += zip(pair[0].contents, pair[1].contents, strict=True)
    return True


def from_json(data: object) -> Node:
    """Return the tree of a JSON object {type, properties, raw_content, contents}. Only the type is required.

    `raw_content` may be spelled `raw-content`. Texts among the contents, as the syntax trees of Org have them, are no
    nodes: where there is no raw content they are the text of the node, joined, with a line break between two that no
    white space separates; otherwise they are left out, as the raw content has them.

    Raises:
        ImportFormatError: It is not such an object, or a property is not a JSON value; the message says where.
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
        if node.raw_content is None:
            node.raw_content = _joined([child for child in children if isinstance(child, str)])
        # The last is put on first, so that they are read in their order.
        steps = [
            (child, node.contents, f"{place}, {at + 1}", depth + 1)
            for at, child in enumerate(children)
            if not isinstance(child, str)
        ]
        waiting += reversed(steps)
    return root[0]


def _joined(texts: Sequence[str]) -> str | None:
    """Return texts as one; None if there are none."""
    out: list[str] = []
    for text in texts:
        if out and text and not out[-1][-1].isspace() and not text[0].isspace():
            out.append("\n")
        out += [text] if text else []
    return "".join(out) if texts else None


def check_depth(root: Node, above: int = 0) -> Node:
    """Return a tree if it is not too deep.

    Args:
        root: The tree.
        above: How many nodes are above its root.

    Raises:
        ImportFormatError: It is deeper than `MAX_DEPTH` nodes.
    """
    level, depth = [root], above + 1
    while level:
        if depth > MAX_DEPTH:
            raise _wrong(f"is deeper than {MAX_DEPTH} nodes", f"the node {level[0].title or level[0].type!r}")
        level, depth = [child for node in level for child in node.contents], depth + 1
    return root


def _node(value: object, place: str) -> Node:
    if not isinstance(value, Mapping):
        raise _wrong("is not an object", place)
    unknown = [name for name in value if name not in _FIELDS and name != _RAW]
    if not all(isinstance(name, str) for name in unknown):
        raise _wrong("has a field whose name is not a text", place)
    if unknown:
        raise _wrong(f"has the unknown field {unknown[0]!r}: it may have {', '.join(_FIELDS)}", place)
    kind, properties, text, other = (value.get(name) for name in ("type", "properties", "raw_content", _RAW))
    if not isinstance(kind, str) or not kind.strip():
        raise _wrong("has no type", place)
    if properties is None:
        properties = {}
    if not isinstance(properties, Mapping) or not all(isinstance(name, str) and name for name in properties):
        raise _wrong("has properties that are not an object", place)
    for name in (ID, TITLE):
        if name in properties and not isinstance(properties[name], str):
            raise _wrong(f"has the property {name}, which is not a text", place)
    if text is not None and other is not None and text != other:
        raise _wrong(f"has a raw_content and a {_RAW} that differ", place)
    text = other if text is None else text
    if text is not None and not isinstance(text, str):
        raise _wrong("has a raw_content that is not a text", place)
    checked = {name: _checked(each, f"{place}, property {name!r}") for name, each in properties.items()}
    return Node(kind, checked, text)


def _checked(value: Any, place: str, depth: int = 0) -> Any:
    """Return a JSON value as records have it: with 0.0 for -0.0."""
    if depth > _DEEPEST_VALUE:
        raise _wrong(f"is nested deeper than {_DEEPEST_VALUE} levels", place)
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        if value not in _INT64:
            raise _wrong("is a number that does not fit in 64 bits; store it as text", place)
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _wrong("is not a finite number", place)
        return value + 0.0
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise _wrong("has a name that is not a text", place)
        return {name: _checked(each, place, depth + 1) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_checked(each, place, depth + 1) for each in value]
    raise _wrong(f"is of the type {type(value).__name__}, which is not JSON", place)


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
