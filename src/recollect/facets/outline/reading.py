"""The calls that read outlines."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Sequence, Set
from typing import Any, NamedTuple

from recollect.arguments.checks import check_text
from recollect.arguments.signatures import all_named
from recollect.calls.namespace import NamespaceCalls
from recollect.common.uncopied import Uncopied
from recollect.errors import (
    ConflictError,
    ImportFormatError,
    InvalidArgumentError,
    UnknownRecordError,
    UnsupportedError,
)
from recollect.facets.outline.operations import ReadTree, TreeEntry
from recollect.facets.outline.records import NODE, is_node, node_of
from recollect.facets.outline.text import json_text, markdown, org
from recollect.facets.outline.text.nodes import TITLE, Node, from_json, is_same
from recollect.facets.outline.values import (
    ANY,
    PLACE,
    OutlineNode,
    OutlineView,
    outline_node,
)
from recollect.filters.tree import EVERYTHING, AllOf, AnyOf, Filter, Is, Meta, Tag
from recollect.operations import Get
from recollect.records.record import Record
from recollect.text.unicode import fold, nfc, normalized

#: The tags of nodes that no prompt and no tool of a model shows, unless a caller says otherwise.
PRIVATE = ("private",)
#: How often an outline is read again, or written again, if others change it meanwhile.
TRIES = 5
#: Maximum number of ids in one filter. For more nodes than `_MANY`, all are read.
_IDS, _MANY = 200, 5000


@all_named
class OutlineReads(Uncopied):
    """The calls that read outlines."""

    def __init__(self, nodes: NamespaceCalls) -> None:
        self._nodes = nodes

    def get(self, node_id: str) -> OutlineNode | None:
        """Return a node, or None."""
        record = self._nodes.execute(Get(id=checked_id(node_id)))
        return None if record is None or not is_node(record) else outline_node(record)

    def roots(self) -> list[OutlineNode]:
        """Return the roots of all outlines, in their order."""
        return [outline_node(record) for record in self._several([entry.id for entry in self._entries(None, depth=0)])]

    def children(self, node_id: str) -> list[OutlineNode]:
        """Return the children of a node in their order.

        Cost:
            In proportion to the children.
        """
        entries = self._entries(checked_id(node_id), depth=1)[1:]
        return [outline_node(record) for record in self._several([entry.id for entry in entries])]

    def ancestors(self, node_id: str) -> list[OutlineNode]:
        """Return the nodes above a node, the root first."""
        out: dict[str, OutlineNode] = {}
        node = self.get(node_id)
        while node is not None and node.parent is not None and node.parent not in out:
            node = self.get(node.parent)
            if node is not None:
                out[node.id] = node
        return list(out.values())[::-1]

    def path(self, node_id: str) -> list[str]:
        """Return the titles from the root to a node; "" for a node without one.

        Raises:
            UnknownRecordError: There is no such node.
        """
        node = self._known(node_id)
        return [each.title or "" for each in (*self.ancestors(node_id), node)]

    def at_path(self, titles: Sequence[str], under: str | None = None) -> OutlineNode | None:
        """Return the first node with a path of titles; None if there is none.

        Args:
            titles: The titles, as `path` returns them: from a root on. Or those below any root.
            under: A node below which the titles begin.
        """
        if isinstance(titles, str) or not titles:
            raise InvalidArgumentError("titles", titles, "must be a list of titles")
        for title in titles:
            check_text("titles", title, blank=True)
        if under is not None:
            return self._below([checked_id(under)], titles)
        roots = self.roots()
        named = [root for root in roots if nfc(root.title or "") == nfc(titles[0])]
        if named and len(titles) == 1:
            return named[0]
        found = self._below([root.id for root in named], titles[1:]) if named else None
        return found or self._below([root.id for root in roots], titles)

    def _below(self, level: Sequence[str], titles: Sequence[str]) -> OutlineNode | None:
        """Return the first node that a path of titles leads to from some nodes."""
        found: list[OutlineNode] = []
        for title in titles:
            found = [
                child for node_id in level for child in self.children(node_id) if nfc(child.title or "") == nfc(title)
            ]
            level = [child.id for child in found]
        return found[0] if found else None

    def find(
        self, *, kind: str | None = None, attribute: str | None = None, value: Any = ANY, under: str | None = None
    ) -> list[OutlineNode]:
        """Return the nodes of a type, with an attribute, or with a value of it, in the order of their ids.

        Args:
            kind: The type, in any case.
            attribute: The name of an attribute, such as "TODO".
            value: Its value; default: any.
            under: Only nodes below this one.
        """
        value = list(value) if isinstance(value, tuple) else value
        if attribute is None and value is not ANY:
            raise InvalidArgumentError("value", value, "requires an attribute")
        if under is not None:
            found = self.view(under).find(kind=kind, attribute=attribute, value=value)
            return sorted((node for node in found if node.id != nfc(under)), key=lambda node: node.id)
        if attribute in (NODE, TITLE):
            return []  # they are no attributes
        parts: list[Filter] = [] if kind is None else [Is("kind", (kind,))]
        if attribute is not None:
            parts.append(Meta(attribute, "has") if value is ANY else Meta(attribute, "equals", value))
        records = self._nodes.find(AllOf.of(*parts), order="id")
        return [outline_node(record) for record in records if is_node(record)]

    def view(self, under: str | None = None, *, depth: int | None = None, private: Collection[str] = ()) -> OutlineView:
        """Return a node with all below it, or all outlines, as they are now, for many look-ups.

        Args:
            under: The node; None: all outlines.
            depth: Maximum number of levels below the node, or below the roots; None: all.
            private: Leave out nodes with one of these tags (in any case), and what is below them.

        Raises:
            ConflictError: Others changed the outline each time that it was read.

        Cost:
            All of their records are read.
        """
        entries, records = self._read(None if under is None else checked_id(under), depth)
        if private:  # which nodes are private is read last: what was read before was not private then
            hidden = self._private(private)
            above = () if under is None else self.ancestors(under)
            entries = [] if any(each.id in hidden for each in above) else shown_entries(entries, hidden)
        hashes = {entry.id: entry.hash for entry in entries}
        return OutlineView((outline_node(records[each]) for each in hashes), hashes)

    def without_id(self, under: str | None = None) -> list[OutlineNode]:
        """Return the nodes whose source gives them no ID, of a node and below it, or of all outlines, parents first."""
        return [node for node in self.view(under) if not node.named]

    def tree(self, node_id: str) -> Node:
        """Return a node with all below it. A node that was stored without an ID has none.

        Raises:
            UnknownRecordError: There is no such node.
        """
        top = checked_id(node_id)
        entries, records = self._read(top)
        made: dict[str, Node] = {}
        for entry in entries:
            made[entry.id] = node_of(records[entry.id])
            if entry.id != top and entry.parent in made:
                made[entry.parent].contents.append(made[entry.id])
        if top not in made:
            raise UnknownRecordError(node_id, PLACE)
        return made[top]

    def to_text(self, node_id: str, format: str) -> str:  # noqa: A002
        """Return a subtree as Org, Markdown or JSON, from which the same tree is read.

        In Org and Markdown, a node that is no document becomes the only headline of one, at the first level, and a
        missing text is read as an empty one.

        Args:
            node_id: The node.
            format: "org", "markdown" or "json".

        Raises:
            UnknownRecordError: There is no such node.
            UnsupportedError: The format cannot say what the tree says.
        """
        form = format_named(format)
        document = form.document_of(self.tree(node_id))
        text = form.write(document)
        if not is_same(form.read(text), document):
            raise UnsupportedError(f"writing the outline {node_id} as {format}", "its tree would be read differently")
        return text

    def hash(self, node_id: str) -> str:
        """Return the hash of a subtree, as 64 hex digits: it changes with anything in it (`facets.outline.text.nodes`).

        Raises:
            UnknownRecordError: There is no such node.

        Cost:
            In proportion to what was changed since.
        """
        entries = self._entries(checked_id(node_id), depth=0)
        if not entries:
            raise UnknownRecordError(node_id, PLACE)
        return entries[0].hash

    def _known(self, node_id: str) -> OutlineNode:
        node = self.get(node_id)
        if node is None:
            raise UnknownRecordError(node_id, PLACE)
        return node

    def _private(self, tags: Collection[str]) -> set[str]:
        """Return the ids of the nodes with one of some tags."""
        if isinstance(tags, str) or not isinstance(tags, Collection):
            raise InvalidArgumentError("private", tags, "must be a list of tags")
        for tag in tags:
            check_text("private", tag)
        every = [Tag(each) for tag in tags for each in dict.fromkeys((tag, fold(tag)))]
        return {record.id for record in self._nodes.find(AnyOf.of(*every))} if every else set()

    def _read(self, node_id: str | None, depth: int | None = None) -> tuple[list[TreeEntry], dict[str, Record]]:
        """Return a tree and its records, in this order, of one commit.

        Raises:
            ConflictError: Others changed it each time that it was read.
        """
        for _ in range(TRIES):
            entries = self._entries(node_id, depth)
            records = {record.id: record for record in self._several([entry.id for entry in entries])}
            tops = [entry.hash for entry in entries if node_id in (None, entry.id)]
            again = self._entries(node_id, depth=depth if node_id is None else 0)
            if len(records) == len(entries) and tops == [entry.hash for entry in again]:
                return entries, records
        raise ConflictError("the outline", "what was read", "changed again and again")

    def _entries(self, node_id: str | None, depth: int | None = None) -> list[TreeEntry]:
        entries: list[TreeEntry] = self._nodes.execute(ReadTree(id=node_id, depth=depth))
        return entries

    def _several(self, ids: Sequence[str]) -> list[Record]:
        """Return the records with some ids, in this order."""
        many = len(ids) > _MANY
        parts = [EVERYTHING] if many else [Is("id", tuple(ids[at : at + _IDS])) for at in range(0, len(ids), _IDS)]
        found = {record.id: record for where in parts for record in self._nodes.find(where, order="id")}
        return [found[each] for each in ids if each in found]


def shown_entries(entries: Sequence[TreeEntry], hidden: Set[str]) -> list[TreeEntry]:
    """Return entries without some and all below them."""
    gone: set[str] = set()
    out = []
    for entry in entries:
        if entry.id in hidden or entry.parent in gone:
            gone.add(entry.id)
        else:
            out.append(entry)
    return out


def checked_id(node_id: str) -> str:
    """Return the id of a node in the form that ids have.

    Raises:
        InvalidArgumentError: The value is not text, or is blank.
    """
    check_text("node_id", node_id)
    return nfc(node_id)


# The texts of outlines: Org, Markdown and JSON, by the names of the formats; and the ids of named outlines.

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


def source_ids(source: str) -> tuple[str, ...]:
    """Return the id of an outline's root, and that which earlier releases derived from a name in decomposed form."""
    return tuple(str(uuid.uuid5(SOURCES, name)) for name in dict.fromkeys((nfc(source), normalized("NFD", source))))
