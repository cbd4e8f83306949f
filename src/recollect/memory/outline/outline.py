"""`Outline`, trees of headlines and texts: `memory.outline`.

The nodes are records in a namespace that belongs to the memory's, each with its parent, so they have a history, proofs
and snapshots, and are reached through scopes and at past moments; recall of the memory never finds them.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recollect.arguments import all_named
from recollect.engine.outline_results import TreeEntry
from recollect.errors import ConflictError, InvalidArgumentError, UnknownRecordError, UnsupportedError
from recollect.filters.tree import EVERYTHING, AllOf, Filter, Is, Meta
from recollect.memory.outline.aligning import Placed, placed
from recollect.memory.outline.formats import SOURCES, format_named, source_id
from recollect.memory.outline.values import ANY, PLACE, Ingested, OutlineNode, OutlineView, outline_node
from recollect.operations import ABSENT, Batch, Forget, Get, ReadTree, Remember, RememberAll
from recollect.operations.checks import check_text
from recollect.records.nodes import attributes_of, is_node, node_fields, node_of
from recollect.records.record import Record
from recollect.text.outlines.nodes import Node, from_json, said_digest
from recollect.text.unicode import nfc

if TYPE_CHECKING:
    from recollect.memory.memory import Memory

#: How often an ingest is tried again if others change the outline meanwhile.
_TRIES = 5
#: Maximum number of ids in one filter. For more nodes than `_MANY`, all are read.
_IDS, _MANY = 200, 5000


#: The hash of no record.
_GONE = "0" * 64


@all_named
class Outline:
    """Trees of headlines and texts. Returned by `Memory.outline`.

        memory.outline.ingest_text("* Boats\\n** Sails\\n", "org", source="notes.org")

    Every call raises InvalidArgumentError for an invalid argument and StoreError if the store fails.
    """

    def __init__(self, nodes: Memory) -> None:
        self._nodes = nodes

    # Storing

    def ingest(
        self,
        tree: Mapping[str, Any] | Node,
        source: str | None = None,
        *,
        snapshot: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Ingested:
        """Store a tree in one commit; of one that is stored already, only what differs.

        Args:
            tree: {"type", "properties", "raw_content", "contents"}, of which only the type is required. A property ID
                is the id of the node; nodes without one get an id of their own.
            source: The name of the outline, such as a path, for a root without an ID. The same name replaces the
                outline. None: the name follows from the tree, so the same tree again adds nothing.
            snapshot: Whether an unnamed snapshot of the outlines is taken before. The newest 20 stay.
            actor: Who makes the change; recorded in the commit.
            reason: Why it is made; recorded in the commit.

        Raises:
            ImportFormatError: It is not such a tree; the message says where. Nothing was stored.
            InvalidRecordError: A node cannot be stored. Nothing was stored.
            ConflictError: Others changed the outline at the same time, again and again. Nothing was stored.
        """
        if not isinstance(tree, (Mapping, Node)):
            raise InvalidArgumentError("tree", tree, "must be an object with a type")
        # A node is read again, too: what was built by hand is checked like what was sent.
        root = from_json(tree.to_json() if isinstance(tree, Node) else tree)
        root_id = nfc(root.id) if root.id else _root_id(root, source)
        if snapshot:
            self._nodes.snapshot()
        for attempt in range(_TRIES):
            try:
                return self._ingest(root, root_id, actor, reason or (f"ingest {source}" if source else "ingest"))
            except ConflictError:
                if attempt == _TRIES - 1:
                    raise
        raise AssertionError

    def ingest_text(
        self,
        text: str,
        format: str,  # noqa: A002
        source: str | None = None,
        *,
        snapshot: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Ingested:
        """Store the tree of a text in Org, Markdown or JSON. See `ingest`.

        Args:
            text: The text.
            format: "org", "markdown" or "json".
            source: The name of the outline, such as the path of the file.
            snapshot: As for `ingest`.
            actor: As for `ingest`.
            reason: As for `ingest`.
        """
        check_text("text", text, blank=True)
        return self.ingest(format_named(format)[0](text), source, snapshot=snapshot, actor=actor, reason=reason)

    def _ingest(self, root: Node, root_id: str, actor: str | None, reason: str) -> Ingested:
        stored = {entry.id: entry for entry in self._entries(root_id)}
        above = {each.id for each in self.ancestors(root_id)} if root_id in stored else set()
        for node in root.walk():
            named = None if node.id is None or node is root else nfc(node.id)
            if named in above:
                raise InvalidArgumentError("tree", named, "is the ID of a node in it that is above its root")
            if named is not None and named not in stored:  # it is elsewhere so far, or new
                stored |= {entry.id: entry for entry in self._entries(named)}
        nodes = placed(root, root_id, stored)
        kept = {each.id for each in nodes}
        removed = [entry for entry in stored.values() if entry.id not in kept]
        added = [each for each in nodes if each.before is None]
        changed = [each for each in nodes if each.before is not None and each.said != each.before.said]
        moved = [each for each in nodes if each.before is not None and each.is_moved]
        written = list({each.id: each for each in (*added, *changed, *moved)}.values())
        if written or removed:
            self._write(written, removed, actor, reason)
        return Ingested(
            root_id,
            tuple(each.id for each in added),
            tuple(each.id for each in changed),
            tuple(each.id for each in moved),
            tuple(entry.id for entry in removed),
            len(nodes) - len(written),
        )

    def _write(self, written: Sequence[Placed], removed: Sequence[TreeEntry], actor: str | None, reason: str) -> None:
        """Write what differs in one commit, provided that nobody else has changed it since it was read."""
        before = {entry.id: entry for entry in (*(each.before for each in written), *removed) if entry is not None}
        # One that was changed or removed since has another hash, or none: then the write is a conflict.
        hashes = {record.id: record.hash for record in self._several(list(before)) if _is(record, before[record.id])}
        items: list[Remember] = []
        for each in written:
            fields = node_fields(each.node, each.id, each.parent, each.order)
            content, node_id = fields.pop("content"), fields.pop("id")
            expect = ABSENT if each.before is None else hashes.get(each.id, _GONE)
            items.append(Remember(content=content, id=node_id, fields=fields, if_exists="update", expect=expect))
        stored = [RememberAll(items=tuple(items), on_error="raise")] if items else []
        gone = [Forget(id=entry.id, expect=hashes.get(entry.id, _GONE)) for entry in removed]
        self._nodes.execute(Batch(operations=(*stored, *gone), actor=actor, reason=reason))

    def remove(self, node_id: str, *, actor: str | None = None, reason: str | None = None) -> int:
        """Remove a node and all below it in one commit, and return how many nodes there were. Their history stays."""
        entries = self._entries(_checked(node_id))
        if entries:
            self._write([], entries, actor, reason or "remove")
        return len(entries)

    # Reading

    def get(self, node_id: str) -> OutlineNode | None:
        """Return a node, or None."""
        record = self._nodes.execute(Get(id=_checked(node_id)))
        return None if record is None or not is_node(record) else outline_node(record)

    def roots(self) -> list[OutlineNode]:
        """Return the roots of all outlines, in their order."""
        return [outline_node(record) for record in self._several([entry.id for entry in self._entries(None, depth=0)])]

    def children(self, node_id: str) -> list[OutlineNode]:
        """Return the children of a node in their order.

        Cost:
            In proportion to the children.
        """
        entries = self._entries(_checked(node_id), depth=1)[1:]
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
        """Return the first node with a path of titles below a node, or below any root; None if there is none."""
        if isinstance(titles, str) or not titles:
            raise InvalidArgumentError("titles", titles, "must be a list of titles")
        level = [entry.id for entry in self._entries(None, depth=0)] if under is None else [_checked(under)]
        found: list[OutlineNode] = []
        for title in titles:
            check_text("titles", title, blank=True)
            found = [child for node_id in level for child in self.children(node_id) if (child.title or "") == title]
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
        if attribute is None and value is not ANY:
            raise InvalidArgumentError("value", value, "requires an attribute")
        if under is not None:
            found = self.view(under).find(kind=kind, attribute=attribute, value=value)
            return sorted((node for node in found if node.id != under), key=lambda node: node.id)
        parts: list[Filter] = [] if kind is None else [Is("kind", (kind,))]
        if attribute is not None:
            parts.append(Meta(attribute, "has") if value is ANY else Meta(attribute, "equals", value))
        records = self._nodes.find(AllOf.of(*parts), order="id")
        return [outline_node(record) for record in records if is_node(record)]

    def view(self, under: str | None = None) -> OutlineView:
        """Return a node with all below it, or all outlines, as they are now, for many look-ups.

        Cost:
            All of their records are read.
        """
        entries = self._entries(None if under is None else _checked(under))
        return OutlineView(map(outline_node, self._several([entry.id for entry in entries])))

    def without_id(self, under: str | None = None) -> list[OutlineNode]:
        """Return the nodes whose source gives them no ID, of a node and below it, or of all outlines, parents first."""
        return [node for node in self.view(under) if not node.named]

    def tree(self, node_id: str) -> Node:
        """Return a node with all below it. A node that was stored without an ID has none.

        Raises:
            UnknownRecordError: There is no such node.
        """
        entries = self._entries(_checked(node_id))
        records = {record.id: record for record in self._several([entry.id for entry in entries])}
        made: dict[str, Node] = {}
        for entry in entries:
            if (record := records.get(entry.id)) is None:
                continue
            made[entry.id] = node_of(record)
            if entry.id != node_id and entry.parent in made:
                made[entry.parent].contents.append(made[entry.id])
        if node_id not in made:
            raise UnknownRecordError(node_id, PLACE)
        return made[node_id]

    def to_text(self, node_id: str, format: str) -> str:  # noqa: A002
        """Return a subtree as Org, Markdown or JSON, from which the same tree is read.

        Args:
            node_id: The node.
            format: "org", "markdown" or "json".

        Raises:
            UnknownRecordError: There is no such node.
            UnsupportedError: The format cannot say what the tree says.
        """
        read, write = format_named(format)
        tree = self.tree(node_id)
        text = write(tree)
        if read(text) != tree:
            raise UnsupportedError(f"writing the outline {node_id} as {format}", "its tree would be read differently")
        return text

    def hash(self, node_id: str) -> str:
        """Return the hash of a subtree, as 64 hex digits: it changes with anything in it (`text.outlines.nodes`).

        Raises:
            UnknownRecordError: There is no such node.

        Cost:
            In proportion to what was changed since, and to the nodes of the subtree.
        """
        entries = self._entries(_checked(node_id))
        if not entries:
            raise UnknownRecordError(node_id, PLACE)
        return entries[0].hash

    def _known(self, node_id: str) -> OutlineNode:
        node = self.get(node_id)
        if node is None:
            raise UnknownRecordError(node_id, PLACE)
        return node

    def _entries(self, node_id: str | None, depth: int | None = None) -> list[TreeEntry]:
        entries: list[TreeEntry] = self._nodes.execute(ReadTree(id=node_id, depth=depth))
        return entries

    def _several(self, ids: Sequence[str]) -> list[Record]:
        """Return the records with some ids, in this order."""
        many = len(ids) > _MANY
        parts = [EVERYTHING] if many else [Is("id", tuple(ids[at : at + _IDS])) for at in range(0, len(ids), _IDS)]
        found = {record.id: record for where in parts for record in self._nodes.find(where, order="id")}
        return [found[each] for each in ids if each in found]


def _is(record: Record, entry: TreeEntry) -> bool:
    """Return whether a node is still as its tree was read."""
    node = node_of(record)
    said = said_digest(node.type, attributes_of(record), node.content).hex()
    return (record.parent, record.order, said) == (entry.parent, entry.order, entry.said)


def _checked(node_id: str) -> str:
    check_text("node_id", node_id)
    return nfc(node_id)


def _root_id(root: Node, source: str | None) -> str:
    """Return the id of a root without one: that of the source, else one that only the same tree has."""
    if source is not None:
        check_text("source", source)
        return source_id(source)
    data = json.dumps(root.to_json(), sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return str(uuid.uuid5(SOURCES, "\0" + hashlib.sha256(data).hexdigest()))
