"""The calls on the history of outlines: versions of nodes, the log, snapshots, and taking changes back."""

from __future__ import annotations

from recollect.arguments.signatures import all_named
from recollect.calls.history import Target
from recollect.engine.history_results import Difference, RecordVersion, Restored
from recollect.errors import UnknownRecordError
from recollect.facets.outline.operations import ReadVersion
from recollect.facets.outline.reading import OutlineReads, checked_id
from recollect.facets.outline.values import PLACE, OutlineNode, outline_node
from recollect.ledger.commits import Commit, Snapshot


@all_named
class OutlineVersions(OutlineReads):
    """The calls on the history of outlines."""

    @property
    def root(self) -> str:
        """The root hash of all outlines, as 64 hex digits: it changes with any change of any node.

        `Memory.root` covers it: it is "nodes" of `memory.head().parts`, once there is a node. It depends on the time at
        which each node was first stored, but not on the order. Within a scope it is a ScopeError.
        """
        return self._nodes.root

    def history(self, node_id: str) -> list[RecordVersion]:
        """Return every version that a node had, oldest first, with its commit and its cause. See `Memory.history`.

        Raises:
            UnknownRecordError: There never was such a node.
        """
        versions = self._nodes.history(checked_id(node_id))
        if not versions:
            raise UnknownRecordError(node_id, PLACE)
        return versions

    def version(self, hash: str) -> OutlineNode:  # noqa: A002 - the word of the log
        """Return a node as it was in one of its versions, also if it was changed or removed since.

        Args:
            hash: As 64 hex digits, `OutlineNode.version`, which is also `record.hash` in the `history` of the node; or
                the hash of the version in the log, which proofs and commits have (`change.after`). It is not the hash
                of a subtree (`hash`), which is not stored: past subtrees are those of `memory.at(...).outline`.

        Raises:
            UnknownRecordError: No node had this version, or its content was erased.

        Cost:
            By the hash in the log, O(log versions), and the commits that changed the node. By `OutlineNode.version`,
            O(versions): those of all outlines are read, the newest first, until it is found.
        """
        record = self._nodes.execute(ReadVersion(hash=hash))
        if record is None:
            raise UnknownRecordError(hash, PLACE)
        return outline_node(record)

    def log(self, limit: int | None = None, since: int | str = 0) -> list[Commit]:
        """Return the newest commits to outlines, newest first. Their numbers are those of the outlines' own log.

        Args:
            limit: Maximum number of commits; None: no limit.
            since: Only commits after this cursor or, outside of scopes, this seq.
        """
        return self._nodes.log(limit, since)

    def diff(self, old: Target, new: Target | None = None) -> Difference:
        """Return how the outlines of two moments differ, as the records of their nodes. See `Memory.diff`.

        Args:
            old: A moment: see `rollback`.
            new: Another moment; default: the newest commit. It may be earlier than `old`.

        Raises:
            UnknownTargetError: There is no such moment.
            ScopeError: The memory is scoped, and a moment is named by something else than a time or a cursor.
        """
        return self._nodes.diff(old, new)

    def snapshot(self, name: str | None = None) -> Snapshot:
        """Mark the newest commit to outlines, so that `rollback` finds it again, and return the mark.

        `Memory.snapshot` marks the records of the memory. A snapshot copies nothing. Named ones stay until they are
        dropped; of the unnamed ones, the newest 20 stay.

        Args:
            name: The name; default: unnamed.

        Raises:
            InvalidArgumentError: There is a snapshot of outlines with this name, or it cannot be a name.
            ScopeError: The memory is scoped.

        Cost:
            One durable write, however large the outlines are.
        """
        return self._nodes.snapshot(name)

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots of the outlines, newest first: the order that `rollback(index=)` counts.

        Raises:
            ScopeError: The memory is scoped.
        """
        return self._nodes.snapshots()

    def drop_snapshot(self, name: str) -> Snapshot:
        """Remove a named snapshot of the outlines and return it. Its commit and all versions stay.

        Raises:
            UnknownTargetError: There is no such snapshot.
            ScopeError: The memory is scoped.
        """
        return self._nodes.drop_snapshot(name)

    def rollback(
        self, to: Target | None = None, *, index: int | None = None, actor: str | None = None, reason: str | None = None
    ) -> Restored:
        """Restore all outlines as they were at a moment, in a new commit. `Memory.rollback` restores all of a memory.

        Args:
            to: The moment: a snapshot of the outlines, its name, a time, or a root or a seq of their own log.
            index: A snapshot by its age; 0: the newest.
            actor: Who makes the change; recorded in the commit.
            reason: Why it is made; recorded in the commit.

        Raises:
            UnknownTargetError: There is no such moment. Nothing was changed.
            ScopeError: The memory is scoped.
        """
        return self._nodes.rollback(to, index=index, actor=actor, reason=reason)
