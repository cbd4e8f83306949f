"""Alignment of a tree with the stored nodes: which node is which, and where among its siblings it is stored.

A node with an ID is the stored one with this id, wherever that is. One without is found, among the stored nodes without
an ID, by what it says: first among the children of the node above it (the same subtree, the same text, the same title),
then anywhere (a subtree that was moved), and at last by its type among the children that are left (a title that was
changed). What is left is new, and gets an id that follows from its parent and its title, so every machine gives the
same one. The id of a node that has one belongs to its source: no other node takes it.
"""

from __future__ import annotations

import hashlib
import uuid
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from typing import NamedTuple

from recollect.errors import InvalidArgumentError
from recollect.facets.outline.operations import TreeEntry
from recollect.facets.outline.text.nodes import Node, form_digest, said_digest
from recollect.text.unicode import fold, nfc

#: The distance between siblings that are stored together, so that others fit between them.
GAP = 1 << 20
_IDS = uuid.uuid5(uuid.NAMESPACE_DNS, "nodes.recollect")


class Placed(NamedTuple):
    """A node of a tree with what is stored of it.

    Attributes:
        parent: The id of its parent; None for the root.
        order: Its rank among its siblings.
        said: The digest of what it says, in hex.
        form: The digest of the form in which it says it, in hex.
        before: What is stored under its id; None if it is new.
    """

    node: Node
    id: str
    parent: str | None
    order: int
    said: str
    form: str
    before: TreeEntry | None

    @property
    def is_changed(self) -> bool:
        """True if something else is stored, or the same in another form."""
        return self.before is not None and (self.before.said, self.before.form) != (self.said, self.form)

    @property
    def is_moved(self) -> bool:
        """True if it is stored with another parent, or at another place among its siblings."""
        return self.before is not None and (self.before.parent, self.before.order) != (self.parent, self.order)


def placed(
    root: Node,
    root_id: str,
    stored: Mapping[str, TreeEntry],
    occupied: Set[str] = frozenset(),
    place: tuple[str, int] | None = None,
) -> list[Placed]:
    """Return the nodes of a tree, parents first, with their ids and ranks.

    Args:
        root: The tree.
        root_id: The id of its root.
        stored: The nodes that are stored, of this outline and those that are named by an ID in the tree.
        occupied: Ids of other nodes, which no new node may get.
        place: The parent of the root and its rank among the children. None: where it is stored, or at the top.

    Raises:
        InvalidArgumentError: Two nodes have the same ID.
    """
    aligned = _Aligned(root, root_id, stored, occupied)
    ids = aligned.ids
    out: list[Placed] = []
    above: str | None = None
    above, rank = place or ((stored[root_id].parent, stored[root_id].order) if root_id in stored else (None, GAP))
    ranks, parents = {id(root): rank}, {id(root): above}
    for node in root.walk():
        node_id = ids[id(node)]
        known = [stored.get(ids[id(child)]) for child in node.contents]
        before = [each.order if each is not None and each.parent == node_id else None for each in known]
        for child, rank in zip(node.contents, ranked(before), strict=True):
            ranks[id(child)], parents[id(child)] = rank, node_id
        above, rank, said = parents[id(node)], ranks[id(node)], aligned.said[id(node)]
        out.append(Placed(node, node_id, above, rank, said, form_digest(node).hex(), stored.get(node_id)))
    return out


def ranked(before: Sequence[int | None]) -> list[int]:
    """Return ascending ranks of siblings, as few of them changed as possible.

    >>> ranked([10, 20, None, 30]), ranked([None, None]) == [GAP, 2 * GAP]
    ([10, 20, 25, 30], True)
    >>> ranked([5, None, 6]) == [GAP, 2 * GAP, 3 * GAP]  # there is no room
    True
    """
    kept = _rising(before)
    out: list[int] = [0] * len(before)
    ends = [*kept, len(before)]
    at, low = 0, 0
    for end in ends:
        high = before[end] if end < len(before) else None
        count = end - at
        step = GAP if high is None else (high - low) // (count + 1)
        if count and step < 1:
            return [GAP * (place + 1) for place in range(len(before))]
        out[at:end] = [low + step * (place + 1) for place in range(count)]
        if high is not None:
            out[end] = low = high
        at = end + 1
    return out


def _rising(values: Sequence[int | None]) -> list[int]:
    """Return the places of a longest run of values that rise, each above 0."""
    tails: list[int] = []
    places: list[int] = []
    above: list[int] = [-1] * len(values)
    for place, value in enumerate(values):
        if value is None or value < 1:
            continue
        at = bisect_left(tails, value)
        tails[at : at + 1] = [value]
        places[at : at + 1] = [place]
        above[place] = places[at - 1] if at else -1
    out = [places[-1]] if places else []
    while out and above[out[-1]] >= 0:
        out.append(above[out[-1]])
    return out[::-1]


class _Aligned:
    """The nodes of a tree, by the identity of the node.

    Attributes:
        ids: The id of each.
        said: The digest of what each says, in hex.
    """

    def __init__(self, root: Node, root_id: str, stored: Mapping[str, TreeEntry], occupied: Set[str]) -> None:
        self._stored = stored
        self._occupied = occupied
        self._children: dict[str, list[str]] = defaultdict(list)
        for each in sorted(stored.values(), key=lambda entry: (entry.order, entry.id)):
            if each.parent is not None:
                self._children[each.parent].append(each.id)
        self.ids: dict[int, str] = {id(root): root_id}
        self._taken = {root_id}
        self.said: dict[int, str] = {}
        self._shapes: dict[int, bytes] = {}
        self._stored_shapes = self._shapes_of_stored()
        self._take_named(root, root_id)
        self._note_shapes(root)
        self._align(root, (self._shape_of, self._said_of, self._title_of))
        self._take_moved(root)
        self._align(root, (self._shape_of, self._said_of, self._title_of, self._kind_of))
        self._name_new(root)

    def _take(self, node: Node, node_id: str) -> None:
        self.ids[id(node)] = node_id
        self._taken.add(node_id)

    def _take_named(self, root: Node, root_id: str) -> None:
        for node in root.walk():
            if node is root or node.id is None:
                continue
            node_id = nfc(node.id)
            if node_id in self._taken:
                raise InvalidArgumentError("tree", node_id, "is the ID of two nodes; nothing was stored")
            self._take(node, node_id)

    # What a node and a stored node have in common

    def _shapes_of_stored(self) -> dict[str, bytes]:
        """The text of each stored subtree, without the ids."""
        out: dict[str, bytes] = {}
        order, waiting = [], [each for each in self._stored if self._stored[each].parent not in self._stored]
        while waiting:
            order.append(waiting.pop())
            waiting += self._children[order[-1]]
        for each in reversed(order):
            out[each] = _shape(self._stored[each].said, [out[child] for child in self._children[each]])
        return out

    def _note_shapes(self, root: Node) -> None:
        for node in reversed(list(root.walk())):
            said = said_digest(node.type, node.attributes, node.content).hex()
            self.said[id(node)] = said
            self._shapes[id(node)] = _shape(said, [self._shapes[id(child)] for child in node.contents])

    def _shape_of(self, each: Node | TreeEntry) -> Hashable:
        return self._stored_shapes.get(each.id, b"") if isinstance(each, TreeEntry) else self._shapes[id(each)]

    def _said_of(self, each: Node | TreeEntry) -> Hashable:
        return each.said if isinstance(each, TreeEntry) else self.said[id(each)]

    def _title_of(self, each: Node | TreeEntry) -> Hashable:
        return None if not each.title else (self._kind_of(each), each.title)

    def _kind_of(self, each: Node | TreeEntry) -> Hashable:
        return each.kind if isinstance(each, TreeEntry) else fold(each.type)

    # Passes

    def _align(self, root: Node, ways: Sequence[Callable[[Node | TreeEntry], Hashable]]) -> None:
        """Give the nodes below each node that is stored the ids of its children, one way after the other."""
        for node in root.walk():
            node_id = self.ids.get(id(node))
            if node_id is None or node_id not in self._stored:
                continue
            for way in ways:
                free: dict[Hashable, deque[str]] = defaultdict(deque)
                for child_id in self._children[node_id]:
                    if child_id not in self._taken and not self._stored[child_id].named:
                        free[way(self._stored[child_id])].append(child_id)
                for child in node.contents:
                    if id(child) not in self.ids and (key := way(child)) is not None and free.get(key):
                        self._take(child, free[key].popleft())

    def _take_moved(self, root: Node) -> None:
        """Give subtrees that are elsewhere now the ids that they had."""
        free: dict[Hashable, deque[str]] = defaultdict(deque)
        for each in sorted(self._stored):
            if each not in self._taken and not self._stored[each].named:
                free[self._stored_shapes.get(each, b"")].append(each)
        for node in root.walk():
            if id(node) not in self.ids and (found := free.get(self._shapes[id(node)])):
                while found and found[0] in self._taken:
                    found.popleft()
                if found:
                    self._take(node, found.popleft())

    def _name_new(self, root: Node) -> None:
        numbers: Counter[str] = Counter()  # how many ids were made for what a parent, a type and a title give
        for node in root.walk():
            above = self.ids[id(node)]
            for child in node.contents:
                stem = "\0".join((above, child.type, child.title or ""))
                while id(child) not in self.ids:
                    made = str(uuid.uuid5(_IDS, f"{stem}\0{numbers[stem]}"))
                    numbers[stem] += 1
                    if made not in self._taken and made not in self._stored and made not in self._occupied:
                        self._take(child, made)


def _shape(said: str, children: Sequence[bytes]) -> bytes:
    """Return the digest of what a subtree says, without the ids."""
    return hashlib.sha256(said.encode() + b"".join(children)).digest()
