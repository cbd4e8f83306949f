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
from recollect.errors import ConflictError, InvalidArgumentError
from recollect.memory.outline.aligning import Placed, placed
from recollect.memory.outline.formats import SOURCES, format_named, source_id
from recollect.memory.outline.reading import checked_id
from recollect.memory.outline.searching import OutlineSearches
from recollect.memory.outline.values import (
    Ingested,
)
from recollect.operations import ABSENT, Batch, Forget, Remember, RememberAll
from recollect.operations.checks import check_text
from recollect.records.nodes import attributes_of, node_fields, node_of
from recollect.records.record import Record
from recollect.text.outlines.nodes import Node, check_depth, from_json, said_digest
from recollect.text.unicode import nfc

if TYPE_CHECKING:
    pass

#: How often an ingest is tried again if others change the outline meanwhile.
_TRIES = 5
#: The hash of no record.
_GONE = "0" * 64


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
            text: The text.
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
        entries = self._entries(checked_id(node_id))
        if entries:
            self._write([], entries, actor, reason or "remove")
        return len(entries)


def _is(record: Record, entry: TreeEntry) -> bool:
    """Return whether a node is still as its tree was read."""
    node = node_of(record)
    said = said_digest(node.type, attributes_of(record), node.content).hex()
    return (record.parent, record.order, said) == (entry.parent, entry.order, entry.said)


def _root_id(root: Node, source: str | None) -> str:
    """Return the id of a root without one: that of the source, else one that only the same tree has."""
    if source is not None:
        check_text("source", source)
        return source_id(source)
    data = json.dumps(root.to_json(), sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return str(uuid.uuid5(SOURCES, "\0" + hashlib.sha256(data).hexdigest()))
