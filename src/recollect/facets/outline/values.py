"""The results of an outline's calls: nodes, the changes of an ingest, and a view of many nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

from recollect.engine.results import Measure
from recollect.engine.scope import linked_id
from recollect.errors import UnknownRecordError
from recollect.facets.outline.records import node_of
from recollect.records.record import Record
from recollect.text.unicode import fold

#: Where nodes are, for messages.
PLACE = "the outlines"
#: Stands for any value of an attribute.
ANY: Any = object()


class Ingested(NamedTuple):
    """The changes of an ingest, as ids of nodes in the order of the tree.

    Attributes:
        root: The id of the outline's root.
        added: Nodes that are new.
        changed: Nodes that say something else.
        moved: Nodes that have another parent or another place among their siblings.
        removed: Nodes that are in the tree no more.
        unchanged: The number of the others.
    """

    root: str
    added: tuple[str, ...]
    changed: tuple[str, ...]
    moved: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int


@dataclass(frozen=True, slots=True)
class OutlineNode:
    """A node as it is stored, without its children.

    Attributes:
        parent: The id of its parent; None for a root.
        type: What it is, such as "HEADLINE".
        title: Its title, or None.
        text: Its text without the title, or None.
        attributes: Its properties other than id and title.
        order: Its rank among its siblings.
        named: Whether its source gives its ID.
        version: The hash of its record, by which `Outline.version` finds it later.
    """

    id: str
    parent: str | None
    type: str
    title: str | None
    text: str | None
    attributes: Mapping[str, Any]
    order: int
    named: bool
    version: str

    @property
    def content(self) -> str | None:
        """The title, a line break and the text; of what is missing, nothing."""
        parts = [part for part in (self.title, self.text) if part is not None]
        return "\n".join(parts) if parts else None


def outline_node(record: Record) -> OutlineNode:
    """Return the node of a record."""
    node = node_of(record)
    named = node.id is not None
    return OutlineNode(
        record.id,
        linked_id(record.id, record.parent),
        node.type,
        node.title,
        node.raw_content,
        node.attributes,
        record.order or 0,
        named,
        record.hash,
    )


class OutlineMatch(NamedTuple):
    """A node and how similar it is to what was searched for, 0 to 1."""

    node: OutlineNode
    similarity: float


@dataclass(frozen=True, slots=True)
class OutlineMatches(Sequence[OutlineMatch]):
    """Nodes that are similar to a text, most similar first. A sequence of `OutlineMatch`.

    Attributes:
        matches: The nodes.
        measure: What the similarities are: "cosine" of an embedder's vectors, or "confidence" of the words.
        notes: Why vectors are missing or not used.
    """

    matches: tuple[OutlineMatch, ...]
    measure: Measure
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.matches)

    @overload
    def __getitem__(self, index: int) -> OutlineMatch: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[OutlineMatch, ...]: ...
    def __getitem__(self, index: int | slice) -> OutlineMatch | tuple[OutlineMatch, ...]:
        return self.matches[index]


class FocusedText(str):
    """An outline for a prompt, with a node in focus. A `str` that knows what it consists of.

    Attributes:
        full: The ids of the nodes whose text is in it: the focused one, and the similar ones, most similar first.
        titles: The ids of the nodes of which it has only the title, nearest to the focus first.
        omitted: The number of nodes for which there was no room.
        private: The number of nodes that were left out as private.
        tokens: The number of its tokens.
        measure: What the similarities are. See `OutlineMatches`.
        notes: Why vectors are missing or not used.
    """

    full: tuple[str, ...]
    titles: tuple[str, ...]
    omitted: int
    private: int
    tokens: int
    measure: Measure
    notes: tuple[str, ...]

    __slots__ = ("full", "measure", "notes", "omitted", "private", "titles", "tokens")


class OutlineView:
    """Nodes as they were at one commit, in memory: a look-up takes less than a microsecond. Returned by `Outline.view`.

    Iterating gives the nodes, each before its children.

    Args:
        nodes: The nodes, parents first.
        hashes: The hash of the subtree of each, by its id.
    """

    def __init__(self, nodes: Iterable[OutlineNode], hashes: Mapping[str, str]) -> None:
        self._hashes = hashes
        self._nodes = {node.id: node for node in nodes}
        self._children: dict[str | None, list[OutlineNode]] = {}
        for node in self._nodes.values():
            self._children.setdefault(node.parent if node.parent in self._nodes else None, []).append(node)

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[OutlineNode]:
        return iter(self._nodes.values())

    def get(self, node_id: str) -> OutlineNode | None:
        """Return a node, or None."""
        return self._nodes.get(node_id)

    def hash(self, node_id: str) -> str:
        """Return the hash of a subtree (`Outline.hash`), with what the view does not show of it.

        Raises:
            UnknownRecordError: There is no such node.
        """
        if node_id not in self._nodes:
            raise UnknownRecordError(node_id, PLACE)
        return self._hashes[node_id]

    def children(self, node_id: str | None = None) -> list[OutlineNode]:
        """Return the children of a node in their order; without one, the nodes at the top."""
        return list(self._children.get(node_id, ()))

    def ancestors(self, node_id: str) -> list[OutlineNode]:
        """Return the nodes above a node, the uppermost first."""
        out: dict[str, OutlineNode] = {}
        node = self._nodes.get(node_id)
        while node is not None and node.parent in self._nodes and node.parent not in out:
            above = self._nodes[node.parent]
            out[above.id] = node = above
        return list(out.values())[::-1]

    def path(self, node_id: str) -> list[str]:
        """Return the titles from the top to a node; "" for a node without one.

        Raises:
            UnknownRecordError: There is no such node.
        """
        if node_id not in self._nodes:
            raise UnknownRecordError(node_id, PLACE)
        return [each.title or "" for each in (*self.ancestors(node_id), self._nodes[node_id])]

    def find(self, *, kind: str | None = None, attribute: str | None = None, value: Any = ANY) -> list[OutlineNode]:
        """Return the nodes of a type, with an attribute, or with a value of it, parents first."""
        return [node for node in self if _fits(node, kind, attribute, value)]


def _fits(node: OutlineNode, kind: str | None, attribute: str | None, value: Any) -> bool:
    if kind is not None and fold(node.type) != fold(kind):
        return False
    if attribute is None:
        return True
    return attribute in node.attributes and (value is ANY or node.attributes[attribute] == value)
