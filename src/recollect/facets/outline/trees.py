"""The trees of outlines, derived from the records of their nodes like every other index; the hashes are cached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from recollect.common.deadlines import checked
from recollect.engine.facets import Execution, ExpiringIndex
from recollect.engine.read.queries import Reading
from recollect.engine.reader import Reader
from recollect.engine.scope import Scope, linked_id
from recollect.errors import ConflictError
from recollect.facets.outline.operations import ReadTree, ReadVersion, TreeEntry
from recollect.facets.outline.records import attributes_of, is_node, node_of
from recollect.facets.outline.text.nodes import form_digest, node_hash, said_digest
from recollect.ledger.commits import Branch
from recollect.operations import ABSENT
from recollect.records.record import Record
from recollect.stores.base import ReadView

#: Approximate memory of a node in a tree.
_NODE_BYTES = 1200


class OutlineOf(NamedTuple):
    """A key that says which nodes a tree has.

    Attributes:
        branch: The branch of the outlines.
        scope: The scope of the caller.
    """

    branch: Branch
    scope: Scope


class _Node(NamedTuple):
    parent: str | None
    order: int
    kind: str
    title: str | None
    said: bytes
    form: bytes
    named: bool


class Outlines(ExpiringIndex):
    """All outlines of a namespace as a scope sees them. Changed in place: a caller locks it.

    A scope has outlines of its own: parents are those of the scope in which a node was stored. A node whose parent is
    gone, because it expired or was evicted, is at the top.

    Args:
        key: What decides which nodes these are.
        records: Records, of which the nodes are taken.
    """

    def __init__(self, key: OutlineOf, records: Iterable[Record]) -> None:
        self._key = key
        self._nodes: dict[str, _Node] = {}
        self._children: dict[str | None, set[str]] = {}
        self._hashes: dict[str, bytes] = {}
        self._shown: dict[str, str] = {}  # stored id -> id
        super().__init__(records)

    def __len__(self) -> int:
        return len(self._nodes)

    def _insert(self, record: Record) -> bool:
        if not is_node(record) or not self._key.scope.admits(record):
            return False
        node, node_id = node_of(record), self._key.scope.shown_id(record.id)
        self._shown[record.id] = node_id
        said = said_digest(node.type, attributes_of(record), node.content)
        parent, named = linked_id(node_id, record.parent), node.id is not None
        self._nodes[node_id] = _Node(parent, record.order or 0, record.kind, node.title, said, form_digest(node), named)
        self._children.setdefault(parent, set()).add(node_id)
        self._forget_hashes(node_id)
        return True

    def _discard(self, record_id: str) -> None:
        node_id = self._shown.pop(record_id, None)
        if node_id is None:
            return
        self._forget_hashes(node_id)
        node = self._nodes.pop(node_id)
        siblings = self._children[node.parent]
        siblings.discard(node_id)
        if not siblings:
            del self._children[node.parent]

    @property
    def nbytes(self) -> int:
        """The approximate memory of the trees, in bytes."""
        return _NODE_BYTES * len(self)

    def children(self, node_id: str | None) -> list[str]:
        """Return the children of a node in their order; of None the nodes at the top."""
        ids = set(self._children.get(node_id, ()))
        if node_id is None:
            ids.update(each for parent, own in self._children.items() if parent not in self._nodes for each in own)
        return sorted(ids, key=lambda each: (self._nodes[each].order, each))

    def read(self, operation: ReadTree) -> list[TreeEntry]:
        """Return what `operations.ReadTree` asks for.

        Raises:
            ConflictError: The subtree is not as it was expected.
        """
        if operation.expect is not None and operation.id is not None:
            found = self._hash(operation.id).hex() if operation.id in self._nodes else ABSENT
            if found != operation.expect:
                raise ConflictError(f"the outline below {operation.id}", operation.expect, found)
        return self.entries(operation.id, operation.depth)

    def entries(self, node_id: str | None, depth: int | None = None) -> list[TreeEntry]:
        """Return a node and what is below it, each before its children; of None all outlines."""
        level = self.children(None) if node_id is None else [node_id] if node_id in self._nodes else []
        waiting = [(each, 0) for each in reversed(level)]
        out: dict[str, TreeEntry] = {}
        while waiting:
            at, below = waiting.pop()
            if at not in out:  # two moves at once can make a circle
                out[at] = self._entry(at)
                if depth is None or below < depth:
                    waiting += [(child, below + 1) for child in reversed(self.children(at))]
        return list(out.values())

    def _hash(self, node_id: str) -> bytes:
        """Return the hash of a subtree. Only what has changed is computed."""
        if (known := self._hashes.get(node_id)) is not None:
            return known
        waiting, seen = [node_id], {node_id}
        while waiting:
            at = waiting[-1]
            missing = [child for child in self.children(at) if child not in self._hashes and child not in seen]
            if at in self._hashes or not missing:
                if at not in self._hashes:
                    below = [self._hashes[child] for child in self.children(at) if child in self._hashes]
                    self._hashes[at] = node_hash(at, self._nodes[at].said, below)
                waiting.pop()
            else:
                waiting += missing
                seen.update(missing)
        return self._hashes[node_id]

    def _entry(self, node_id: str) -> TreeEntry:
        node = self._nodes[node_id]
        digests = node.said.hex(), node.form.hex(), self._hash(node_id).hex()
        return TreeEntry(node_id, node.parent, node.order, node.kind, node.title, node.named, *digests)

    def _forget_hashes(self, node_id: str) -> None:
        """Discard the hashes of a node and of those above it."""
        at: str | None = node_id
        while at is not None and (node := self._nodes.get(at)) is not None:
            if self._hashes.pop(at, None) is None and at != node_id:
                return  # nothing above it has one
            at = node.parent


def _outlines_at(view: ReadView, key: OutlineOf, now: int) -> Outlines:
    return Outlines(key, view.select(key.branch, key.scope.filter, order="id", now=now))


def _read_tree(reader: Reader, operation: ReadTree) -> list[TreeEntry]:
    key = OutlineOf(reader.branch, reader.scope)
    return reader.followed("outlines", key, lambda outlines, now: outlines.at(now).read(operation))


def _read_version(reader: Reader, operation: ReadVersion) -> Record | None:
    return reader.on_view(lambda reading: _version(reading, operation.hash))


def _version(reading: Reading, hash_: str) -> Record | None:
    """Return the record of a node in a version that it had at the moment, as the scope could read it.

    The store finds versions by their hash in the log. The hash of a record is not stored, so all versions are read.
    """
    view, branch, scope, version = reading.view, reading.branch, reading.scope, bytes.fromhex(hash_)
    payload = view.payload(branch, version)
    found: Iterable[bytes]
    if payload is None:
        found = _payloads(view, branch)
    else:
        found = [payload]
        commits = view.commits(branch, record_id=Record.load(payload).id)  # at a past moment, without the later ones
        if not any(change.after == version for commit in commits for change in commit.changes):
            return None
    for record in checked(map(Record.load, found)):
        if is_node(record) and scope.admits(record):
            shown = scope.shown(record)
            if payload is not None or shown.hash == hash_:
                return shown
    return None


def _payloads(view: ReadView, branch: Branch) -> Iterator[bytes]:
    """Yield every version that a node had and that was not erased, the newest first."""
    seen: set[bytes] = set()
    for commit in view.commits(branch, newest_first=True):
        for change in commit.changes:
            if change.after is not None and change.after not in seen:
                seen.add(change.after)
                if (payload := view.payload(branch, change.after)) is not None:
                    yield payload


EXECUTION = Execution({ReadTree: _read_tree, ReadVersion: _read_version}, _outlines_at)
