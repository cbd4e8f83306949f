"""The objects of opencortex as values, and functions that need no memory: a new id, a hash of values, a cosine."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from recollect.compat.opencortex.trees import HEADLINE, of_property, plain, with_plain_names
from recollect.errors import InvalidArgumentError
from recollect.facets.outline.text.nodes import ID, TITLE, from_json, node_hash, said_digest
from recollect.facets.outline.values import OutlineNode, OutlineView
from recollect.models.embedding.similarity import cosine

_HASH_BYTES = 32


@dataclass(frozen=True, slots=True)
class OrgObject:
    """An object as it was at one moment.

    Attributes:
        type: What it is, such as "HEADLINE".
        attributes: Its properties by name, with TITLE, and with ID if its source gives it.
        content: The title, a line break and the text of a headline; the text of another node; None without either.
        parent_id: The id of its parent; None at the top.
        children: The ids of its children in their order.
        version: The hash of its version, with which `memory.outline.version` finds it when it was changed.
        hash: The Merkle hash: of the object and of all below it.
    """

    id: str
    type: str
    attributes: Mapping[str, Any]
    content: str | None
    parent_id: str | None
    children: tuple[str, ...]
    version: str
    hash: str


class SimilarObject(NamedTuple):
    """An object and how similar it is to what was searched for, 0 to 1."""

    object: OrgObject
    similarity: float


def object_of(node: OutlineNode, view: OutlineView) -> OrgObject:
    """Return a node of a view that has its children as an object."""
    named = {ID: node.id if node.named else None, TITLE: node.title}
    content = node.content
    if node.type.casefold() == HEADLINE and node.title is not None and node.text is None:
        content = f"{node.title}\n"
    return OrgObject(
        id=node.id,
        type=node.type,
        attributes={**{name: value for name, value in named.items() if value is not None}, **node.attributes},
        content=content,
        parent_id=node.parent,
        children=tuple(child.id for child in view.children(node.id)),
        version=node.version,
        hash=view.hash(node.id),
    )


def hash_of_values(
    object_id: str, kind: str, attributes: Mapping[str, Any] | None, content: str | None, children: Iterable[str]
) -> str:
    """Return the Merkle hash of values. See `OpencortexMemory.compute_merkle_hash`."""
    if not isinstance(object_id, str) or not object_id:
        raise InvalidArgumentError("id", object_id, "must be text that is not empty")
    if content is not None and not isinstance(content, str):
        raise InvalidArgumentError("content", content, "must be text")
    if attributes is not None and not isinstance(attributes, Mapping):
        raise InvalidArgumentError("attributes", attributes, "must be an object")
    properties = with_plain_names(attributes or {}, of_property)
    node = from_json({"type": plain(kind) if isinstance(kind, str) else kind, "properties": properties})
    said = said_digest(node.type, node.attributes, content)
    return node_hash(object_id, said, [_hash_bytes(each) for each in children]).hex()


def _hash_bytes(text: str) -> bytes:
    try:
        data = bytes.fromhex(text)
    except (TypeError, ValueError):
        data = b""
    if len(data) != _HASH_BYTES:
        raise InvalidArgumentError("children", text, "must be hashes of 64 hex digits")
    return data


def cosine_similarity(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the cosine of two vectors, -1 to 1; 0 if one is empty, zero or not finite.

    >>> cosine_similarity([1.0, 0.0], [0.0, 2.0]), cosine_similarity([3.0, 4.0], [6.0, 8.0])
    (0.0, 1.0)

    Raises:
        InvalidArgumentError: The lengths differ.
    """
    return cosine(a, b)


def org_id_new() -> str:
    """Return a new id: a random UUID (RFC 9562, version 4)."""
    return str(uuid.uuid4())
