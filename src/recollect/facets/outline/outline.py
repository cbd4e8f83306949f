"""`Outline`, trees of headlines and texts: `memory.outline`.

The nodes are records in a namespace that belongs to the memory's, each with its parent, so they have a history, proofs
and snapshots, and are reached through scopes and at past moments; recall of the memory never finds them.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from recollect.arguments.checks import check_flag, check_text
from recollect.arguments.signatures import all_named
from recollect.engine.history_results import Erased
from recollect.engine.scope import QUALIFIED_PREFIX
from recollect.errors import ConflictError, InvalidArgumentError, UnknownRecordError
from recollect.facets.outline.aligning import GAP, Placed, placed
from recollect.facets.outline.operations import ReadTree, TreeEntry
from recollect.facets.outline.reading import SOURCES, TRIES, checked_id, format_named, source_ids
from recollect.facets.outline.records import node_fields
from recollect.facets.outline.searching import OutlineSearches
from recollect.facets.outline.text.nodes import Node, check_depth, from_json, said_digest
from recollect.facets.outline.values import PLACE, Ingested
from recollect.facets.outline.versions import OutlineVersions
from recollect.filters.tree import Is
from recollect.operations import ABSENT, Erase, ExecuteBatch, Forget, Remember, RememberAll
from recollect.text.unicode import nfc


@all_named
class Outline(OutlineSearches, OutlineVersions):
    """Trees of headlines and texts. Returned by `Memory.outline`.

        memory.outline.ingest_text("* Boats\\n** Sails\\n", "org", source="notes.org")

    Every call raises InvalidArgumentError for an invalid argument and StoreError if the store fails.
    """

    # Storing

    def ingest(
        self,
        tree: Mapping[str, Any] | Node,
        source: str | None = None,
        *,
        parent: str | None = None,
        snapshot: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Ingested:
        """Store a tree in one commit; of one that is stored already, only what differs.

        Args:
            tree: {"type", "properties", "raw_content", "contents"}, of which only the type is required. A property ID
                is the id of the node; nodes without one get an id of their own.
            source: The name of the outline, such as a path, for a root without an ID. The same name replaces the
                outline. None: the name follows from the tree and `parent`, so the same tree again adds nothing.
            parent: The id of a stored node, whose last child the root becomes; where it is its child already, it keeps
                its place. None: the root stays where it is, and a new one is at the top.
            snapshot: Whether an unnamed snapshot of the outlines is taken before. The newest 20 stay.
            actor: Who makes the change; recorded in the commit.
            reason: Why it is made; recorded in the commit.

        Raises:
            ImportFormatError: It is not such a tree; the message says where. Nothing was stored.
            UnknownRecordError: There is no node `parent`. Nothing was stored.
            InvalidArgumentError: `parent` is in the tree or below one of its nodes. Nothing was stored.
            InvalidRecordError: A node cannot be stored. Nothing was stored.
            ConflictError: Others changed the outline at the same time, again and again. Nothing was stored.
        """
        if not isinstance(tree, (Mapping, Node)):
            raise InvalidArgumentError("tree", tree, "must be an object with a type")
        # A node is read again, too: what was built by hand is checked like what was sent.
        root = from_json(tree.to_json() if isinstance(tree, Node) else tree)
        return self._stored(root, source, parent, snapshot, actor, reason)

    def ingest_text(
        self,
        text: str,
        format: str,  # noqa: A002
        source: str | None = None,
        *,
        parent: str | None = None,
        snapshot: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Ingested:
        """Store the tree of a text in Org, Markdown or JSON. See `ingest`.

        Args:
            format: "org", "markdown" or "json".
            source: The name of the outline, such as the path of the file.
            parent: As for `ingest`.
            snapshot: As for `ingest`.
            actor: As for `ingest`.
            reason: As for `ingest`.
        """
        check_text("text", text, blank=True)
        return self._stored(check_depth(format_named(format)[0](text)), source, parent, snapshot, actor, reason)

    def _stored(
        self,
        root: Node,
        source: str | None,
        parent: str | None,
        snapshot: bool,
        actor: str | None,
        reason: str | None,
    ) -> Ingested:
        """Store a tree that has been checked."""
        check_flag("snapshot", snapshot)
        if parent is not None:
            check_text("parent", parent)
            parent = self._known(parent).id
        for node in root.walk():
            if node.id is not None and nfc(node.id).startswith(QUALIFIED_PREFIX):
                raise InvalidArgumentError("tree", node.id, f"is an ID that begins with {QUALIFIED_PREFIX}")
        root_id = nfc(root.id) if root.id else _root_id(root, source, parent)
        if not root.id and source is not None and len(ids := source_ids(source)) > 1:
            root_id = next((each for each in ids if self.get(each) is not None), root_id)
        if snapshot:
            self._nodes.snapshot()
        occupied: frozenset[str] = frozenset()
        for attempt in range(TRIES):
            nodes: list[Placed] = []
            try:
                why = reason or f"ingest {source or ''}".rstrip()
                return self._ingest(root, root_id, parent, occupied, nodes, actor, why)
            except ConflictError:
                if attempt == TRIES - 1:
                    raise
                # Others changed the outline meanwhile, or an id that was made is that of a node that is elsewhere now.
                made = [each.id for each in nodes if each.before is None and each.node.id is None]
                occupied |= {record.id for record in self._several(made)}
        raise AssertionError

    def _ingest(
        self,
        root: Node,
        root_id: str,
        parent: str | None,
        occupied: frozenset[str],
        nodes: list[Placed],
        actor: str | None,
        reason: str,
    ) -> Ingested:
        """Store what differs in one commit, provided that no one else changes it meanwhile.

        Args:
            root: The tree.
            root_id: The id of its root.
            parent: The id of the node whose child its root becomes; None: it stays where it is.
            occupied: Ids that no new node may get.
            nodes: Filled with the nodes of the tree, parents first.
            actor: Who makes the change.
            reason: Why it is made.
        """
        subtrees = {root_id: self._entries(root_id)}
        stored = {entry.id: entry for entry in subtrees[root_id]}
        if parent is None:
            above = {each.id for each in self.ancestors(root_id)} if root_id in stored else set()
        else:
            above = {each.id for each in self.ancestors(parent)} | {parent}
        check_depth(root, len(above))
        for node in root.walk():
            named = None if node.id is None or node is root else nfc(node.id)
            if named in above:
                raise InvalidArgumentError("tree", named, "is the ID of a node in it that is above its root")
            if named is not None and named not in stored:  # it is elsewhere so far, or new
                subtrees[named] = self._entries(named)
                stored |= {entry.id: entry for entry in subtrees[named]}
        if parent in stored:
            raise InvalidArgumentError("parent", parent, "is in the tree, or below one of its nodes")
        place = None
        if parent is not None and (root_id not in stored or stored[root_id].parent != parent):
            subtrees[parent] = self._entries(parent, depth=1)
            place = _last_below(parent, subtrees[parent])
        nodes += placed(root, root_id, stored, occupied, place)
        kept = {each.id for each in nodes}
        removed = [entry.id for entry in stored.values() if entry.id not in kept]
        added = [each for each in nodes if each.before is None]
        changed = [each for each in nodes if each.is_changed]
        moved = [each for each in nodes if each.is_moved]
        written = list({each.id: each for each in (*added, *changed, *moved)}.values())
        if written or removed:
            expected = {each: entries[0].hash if entries else ABSENT for each, entries in subtrees.items()}
            self._write(expected, written, removed, actor, reason)
        return Ingested(
            root_id,
            tuple(each.id for each in added),
            tuple(each.id for each in changed),
            tuple(each.id for each in moved),
            tuple(removed),
            len(nodes) - len(written),
        )

    def _write(
        self,
        expected: Mapping[str, str],
        written: Sequence[Placed],
        removed: Sequence[str],
        actor: str | None,
        reason: str,
    ) -> None:
        """Write and remove nodes in one commit.

        Args:
            expected: The hash that each subtree had when it was read, by the id of its root; ABSENT if there was none.
            written: The nodes to write.
            removed: The ids of the nodes to remove.
            actor: Who makes the change.
            reason: Why it is made.

        Raises:
            ConflictError: A subtree was changed since, or a new node's id is in use. Nothing was written.
        """
        items: list[Remember] = []
        for each in written:
            fields = node_fields(each.node, each.id, each.parent, each.order)
            content, node_id = fields.pop("content"), fields.pop("id")
            expect = ABSENT if each.before is None else None
            items.append(Remember(content=content, id=node_id, fields=fields, if_exists="update", expect=expect))
        guards = [ReadTree(id=each, depth=0, expect=hash_) for each, hash_ in expected.items()]
        stored = [RememberAll(items=tuple(items), on_error="raise")] if items else []
        gone = [Forget(id=each) for each in removed]
        self._nodes.execute(ExecuteBatch(operations=(*guards, *stored, *gone), actor=actor, reason=reason))

    def remove(self, node_id: str, *, actor: str | None = None, reason: str | None = None) -> int:
        """Remove a node and all below it in one commit, and return how many nodes there were. Their history stays.

        Raises:
            ConflictError: Others changed the outline at the same time, again and again. Nothing was removed.
        """
        for attempt in range(TRIES):
            entries = self._entries(checked_id(node_id))
            try:
                if entries:
                    expected = {entries[0].id: entries[0].hash}
                    self._write(expected, [], [entry.id for entry in entries], actor, reason or "remove")
            except ConflictError:
                if attempt == TRIES - 1:
                    raise
            else:
                return len(entries)
        raise AssertionError

    def erase(self, node_id: str, *, actor: str | None = None, reason: str | None = None) -> Erased:
        """Permanently remove the contents of a node and of all below it, of every version. See `Memory.erase`.

        What was below it once and is elsewhere or removed now keeps its contents: erase it by its own id.

        Raises:
            UnknownRecordError: There never was such a node.
        """
        ids = [entry.id for entry in self._entries(checked_id(node_id))] or [checked_id(node_id)]
        erased: Erased = self._nodes.execute(Erase(where=Is("id", tuple(ids))), actor=actor, reason=reason)
        if not erased.ids:
            raise UnknownRecordError(node_id, PLACE)
        return erased


def _last_below(parent: str, entries: Sequence[TreeEntry]) -> tuple[str, int]:
    """Return where the last child of a node is stored: its parent and its rank.

    Args:
        parent: The id of the node.
        entries: The node and its children.

    Raises:
        UnknownRecordError: The node was removed.
    """
    if not entries:
        raise UnknownRecordError(parent, PLACE)
    return parent, max((entry.order for entry in entries[1:]), default=0) + GAP


def _root_id(root: Node, source: str | None, parent: str | None) -> str:
    """Return the id of a root without one: that of the source, else one that only the same tree below `parent` has."""
    if source is not None:
        check_text("source", source)
        return source_ids(source)[0]
    digests: dict[int, bytes] = {}
    for node in reversed(list(root.walk())):
        own = said_digest(node.type, node.attributes, node.content) + (node.id or "").encode("utf-8", "surrogatepass")
        below = b"".join(digests[id(child)] for child in node.contents)
        digests[id(node)] = hashlib.sha256(len(own).to_bytes(8, "big") + own + below).digest()
    return str(uuid.uuid5(SOURCES, "\0".join(("", digests[id(root)].hex(), *([] if parent is None else [parent])))))
