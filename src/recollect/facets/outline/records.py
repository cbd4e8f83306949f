"""The nodes of an outline as records: parent and order are fields, and the attributes are metadata.

The content is the title, a line break and the text. A node without either is bytes of a media type of its own, as text
must not be empty. `NODE`, in the metadata, has what no other field says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from recollect.errors import InvalidRecordError
from recollect.facets.outline.text import tags as tags_in
from recollect.facets.outline.text.nodes import ID, TITLE, Node
from recollect.records.names import MAX_NAME_BYTES
from recollect.records.record import Record
from recollect.text.unicode import fold, has_surrogate

#: The metadata key of what is no attribute.
NODE = "@node"
#: The tag of the records of nodes that are marked for search, and the attribute that marks them. No source can give a
#: node this tag, as a colon separates tags.
MARKED, MARK = ":embed:", "EMBED"
#: The tag that is never left out.
_PRIVATE = "private"
#: The attributes that have tags: those of the node, and those of its file.
_TAGS = frozenset(("tags", "filetags"))
_NOT_MARKED = frozenset(("", "nil", "no", "false", "0"))
_FRONT_MATTER = "FRONT_MATTER"
#: Maximum number of tags of a node.
_MOST_TAGS = 1000
_NO_TEXT = "application/x-recollect-node"


def node_fields(node: Node, node_id: str, parent: str | None, order: int) -> dict[str, Any]:
    """Return the fields of a node's record, `content` and `id` among them. Its children are not part of it.

    Raises:
        InvalidRecordError: It has a property that the record needs for itself.
    """
    if NODE in node.properties:
        raise InvalidRecordError("metadata", NODE, "is the name of no property of a node")
    about: dict[str, Any] = {"names": list(node.properties)}
    if fold(node.type) != node.type:
        about["type"] = node.type
    if node.properties.get(ID, node_id) != node_id:
        about["id"] = node.properties[ID]  # it is empty, or not in the form that ids have
    properties = {name: value for name, value in node.properties.items() if name != ID}
    content, media_type = node.content, None
    if content is None or not content.strip():
        about["text"] = node.raw_content
        content, media_type = None, _NO_TEXT
    elif node.raw_content is not None and node.title is not None:
        about["split"] = True
    return {
        "id": node_id,
        "kind": node.type,
        "content": b"" if content is None else content,
        "media_type": media_type,
        "parent": parent,
        "order": order,
        "tags": _tags(node),
        "metadata": {**properties, NODE: about},
    }


def is_node(record: Record) -> bool:
    """Return whether a record is that of a node."""
    return isinstance(record.metadata.get(NODE), Mapping)


def node_of(record: Record) -> Node:
    """Return the node of a record, without its children. One that was given no id has none."""
    about = record.metadata[NODE]
    known = {**record.metadata, ID: about.get("id", record.id)}
    node = Node(about.get("type", record.kind), {name: _plain(known[name]) for name in about["names"] if name in known})
    if isinstance(record.content, bytes):
        node.raw_content = about.get("text")
    elif node.title is None:
        node.raw_content = record.content
    elif about.get("split"):
        # A policy may have redacted the content after its parts were joined.
        whole = record.content.startswith(f"{node.title}\n")
        node.raw_content = record.content[len(node.title) + 1 :] if whole else record.content.partition("\n")[2]
    return node


def attributes_of(record: Record) -> dict[str, Any]:
    """Return the attributes of a node: its properties other than id and title."""
    return {name: _plain(value) for name, value in record.metadata.items() if name not in (NODE, TITLE)}


def _tags(node: Node) -> list[str]:
    """Return the tags of a node's record: its own, also in folded case, those of its file, and `MARKED`.

    They are what filters match; the node itself is read from the properties. Tags that no record can have, and those
    beyond the first 1,000, are left out.
    """
    found: list[str] = []
    marked = False
    for name, value in node.properties.items():
        if fold(name) in _TAGS:
            found += tags_in.of_value(value)
        elif fold(name) == fold(MARK) and value and not (_is_text(value) and fold(value.strip()) in _NOT_MARKED):
            marked = True
    found += tags_in.of_lines(node.raw_content or "")
    if isinstance(front := node.properties.get(_FRONT_MATTER), str):
        found += tags_in.of_front_matter(front)
    return sorted([*_allowed(found), MARKED] if marked else _allowed(found))


def _allowed(tags: Iterable[str]) -> list[str]:
    """Return those of some tags, and of these in folded case, that a record can have; the private one first."""
    every = dict.fromkeys(form for tag in tags for form in (tag, fold(tag)))
    first = [_PRIVATE] if _PRIVATE in every else []
    valid = (tag for tag in every if len(tag.encode("utf-8", "surrogatepass")) <= MAX_NAME_BYTES)
    rest = [tag for tag in valid if tag not in ("", _PRIVATE) and not has_surrogate(tag)]
    return [*first, *rest][:_MOST_TAGS]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _plain(value: Any) -> Any:
    """Return a JSON value as lists and dictionaries."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value
