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
from recollect.calls.history import Target
from recollect.engine.history_results import Erased, RecordVersion, Restored
from recollect.engine.scope import QUALIFIED_PREFIX
from recollect.errors import ConflictError, InvalidArgumentError, UnknownRecordError
from recollect.facets.outline.aligning import Placed, placed
from recollect.facets.outline.operations import ReadTree
from recollect.facets.outline.reading import SOURCES, TRIES, checked_id, format_named, source_id
from recollect.facets.outline.records import node_fields
from recollect.facets.outline.searching import OutlineSearches
from recollect.facets.outline.text.nodes import Node, check_depth, from_json, said_digest
from recollect.facets.outline.values import PLACE, Ingested
from recollect.filters.tree import Is
from recollect.ledger.commits import Snapshot
from recollect.operations import ABSENT, Erase, ExecuteBatch, Forget, Remember, RememberAll
from recollect.text.unicode import nfc


@all_named
class Outline(OutlineSearches):
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
        return self._stored(root, source, snapshot, actor, reason)

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
            format: "org", "markdown" or "json".
            source: The name of the outline, such as the path of the file.
            snapshot: As for `ingest`.
            actor: As for `ingest`.
            reason: As for `ingest`.
        """
        check_text("text", text, blank=True)
        return self._stored(check_depth(format_named(format)[0](text)), source, snapshot, actor, reason)

    def _stored(
        self, root: Node, source: str | None, snapshot: bool, actor: str | None, reason: str | None
    ) -> Ingested:
        """Store a tree that has been checked."""
        check_flag("snapshot", snapshot)
        for node in root.walk():
            if node.id is not None and nfc(node.id).startswith(QUALIFIED_PREFIX):
                raise InvalidArgumentError("tree", node.id, f"is an ID that begins with {QUALIFIED_PREFIX}")
        root_id = nfc(root.id) if root.id else _root_id(root, source)
        if snapshot:
            self._nodes.snapshot()
        occupied: frozenset[str] = frozenset()
        for attempt in range(TRIES):
            nodes: list[Placed] = []
            try:
                return self._ingest(root, root_id, occupied, nodes, actor, reason or f"ingest {source or ''}".rstrip())
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
        occupied: frozenset[str],
        nodes: list[Placed],
        actor: str | None,
        reason: str,
    ) -> Ingested:
        """Store what differs in one commit, provided that no one else changes it meanwhile.

        Args:
            root: The tree.
            root_id: The id of its root.
            occupied: Ids that no new node may get.
            nodes: Filled with the nodes of the tree, parents first.
            actor: Who makes the change.
            reason: Why it is made.
        """
        subtrees = {root_id: self._entries(root_id)}
        stored = {entry.id: entry for entry in subtrees[root_id]}
        above = {each.id for each in self.ancestors(root_id)} if root_id in stored else set()
        for node in root.walk():
            named = None if node.id is None or node is root else nfc(node.id)
            if named in above:
                raise InvalidArgumentError("tree", named, "is the ID of a node in it that is above its root")
            if named is not None and named not in stored:  # it is elsewhere so far, or new
                subtrees[named] = self._entries(named)
                stored |= {entry.id: entry for entry in subtrees[named]}
        nodes += placed(root, root_id, stored, occupied)
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

    # History

    def history(self, node_id: str) -> list[RecordVersion]:
        """Return every version that a node had, oldest first, with its commit and its cause. See `Memory.history`.

        Raises:
            UnknownRecordError: There never was such a node.
        """
        versions = self._nodes.history(checked_id(node_id))
        if not versions:
            raise UnknownRecordError(node_id, PLACE)
        return versions

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots of the outlines, newest first: the order that `rollback(index=)` counts.

        Raises:
            ScopeError: The memory is scoped.
        """
        return self._nodes.snapshots()

    def rollback(
        self, to: Target | None = None, *, index: int | None = None, actor: str | None = None, reason: str | None = None
    ) -> Restored:
        """Restore all outlines as they were at a moment, in a new commit. `Memory.rollback` leaves them as they are.

        Args:
            to: The moment: a snapshot, its name, a time, or a root or a seq of the outlines' own log.
            index: A snapshot by its age; 0: the newest.
            actor: Who makes the change; recorded in the commit.
            reason: Why it is made; recorded in the commit.

        Raises:
            UnknownTargetError: There is no such moment. Nothing was changed.
            ScopeError: The memory is scoped.
        """
        return self._nodes.rollback(to, index=index, actor=actor, reason=reason)


def _root_id(root: Node, source: str | None) -> str:
    """Return the id of a root without one: that of the source, else one that only the same tree has."""
    if source is not None:
        check_text("source", source)
        return source_id(source)
    digests: dict[int, bytes] = {}
    for node in reversed(list(root.walk())):
        own = said_digest(node.type, node.attributes, node.content) + (node.id or "").encode("utf-8", "surrogatepass")
        below = b"".join(digests[id(child)] for child in node.contents)
        digests[id(node)] = hashlib.sha256(len(own).to_bytes(8, "big") + own + below).digest()
    return str(uuid.uuid5(SOURCES, "\0" + digests[id(root)].hex()))
