"""The log tree: a Merkle tree over the entries of a log, as in RFC 9162, section 2.1.

Its leaves are the entries in order; a log only grows, so a head proves that one log begins with another (consistency),
and that a commit is part of a log (inclusion). A head binds the number of entries as well as their tree hash: the paths
of RFC 9162 do not.

The functions that compute hashes read the tree through `Subtree`, so they work on hashes in memory and in files alike,
and read O(log n) of them. The functions that verify need the path only.

The tree over n > 1 entries is a node over the first k and the other n - k, where k is the largest power of two below n.
So the left side is complete, and appending entries changes only nodes on the right edge. From that follow:

- Inclusion: the siblings from a leaf to the top, at most log2(n) rounded up. Another leaf with a path to the same hash
  is a collision of SHA-256. Leaves and nodes begin with different bytes (0 and 1), so a node cannot be passed off as an
  entry.
- Consistency: the tree over the first m entries is a row of complete subtrees of the tree over n. The path has hashes
  of subtrees from which both tops follow. If both are right, the first m leaves are the same. If m is a power of two,
  the old tree is one subtree, and its hash is not repeated.

The loops that verify walk two indexes, of the node and of the last node of its level, upwards. A node is a right child
if its index is odd; at the right edge (`at == last`) levels without a sibling are skipped. Invariant: `node` is the
hash of the subtree with index `at` on the current level. A path that is too short leaves `last` above 0, and one that
is too long finds it at 0: both are refused.

Source:
    RFC 9162, sections 2.1.1 (tree hash), 2.1.3 (inclusion), 2.1.4 (consistency).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

_HEAD = b"recollect.log.1\0"
#: The tree hash of no entries.
EMPTY_TREE = hashlib.sha256(b"").digest()
#: Returns the hash of the complete subtree over the entries from `index << level` to `(index + 1) << level`.
Subtree = Callable[[int, int], bytes]


def leaf_of(entry: bytes) -> bytes:
    """Return the leaf of an entry."""
    return hashlib.sha256(b"\0" + entry).digest()


def node_of(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node with these two sides."""
    return hashlib.sha256(b"\1" + left + right).digest()


def head_of(size: int, tree: bytes) -> bytes:
    """Return the head of a log with this number of entries and this tree hash."""
    return hashlib.sha256(_HEAD + size.to_bytes(8, "big") + tree).digest()


def tree_hash(subtree: Subtree, size: int) -> bytes:
    """Return the tree hash of the first `size` entries."""
    return _range_hash(subtree, 0, size) if size else EMPTY_TREE


def tree_of(leaves: Sequence[bytes]) -> bytes:
    """Return the tree hash of leaves."""
    if len(leaves) < 2:
        return leaves[0] if leaves else EMPTY_TREE
    left = _left_size(len(leaves))
    return node_of(tree_of(leaves[:left]), tree_of(leaves[left:]))


def inclusion_path(subtree: Subtree, index: int, size: int) -> list[bytes]:
    """Return the siblings from the leaf at `index` up to the top of the tree over the first `size` entries."""
    path: list[bytes] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _left_size(end - start)
        if index < middle:
            path.append(_range_hash(subtree, middle, end))
            end = middle
        else:
            path.append(_range_hash(subtree, start, middle))
            start = middle
    return path[::-1]


def consistency_path(subtree: Subtree, old: int, new: int) -> list[bytes]:
    """Return the hashes that prove that the tree over the first `new` entries extends that over the first `old`.

    It is empty if `old` is 0 or `new`.
    """
    if old in (0, new):
        return []
    path: list[bytes] = []
    start, end = 0, new
    while end != old:
        middle = start + _left_size(end - start)
        if old <= middle:
            path.append(_range_hash(subtree, middle, end))
            end = middle
        else:
            path.append(_range_hash(subtree, start, middle))
            start = middle
    if start:  # otherwise it is the whole old tree, whose hash the verifier has
        path.append(_range_hash(subtree, start, end))
    return path[::-1]


def tree_of_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Return the tree hash to which an inclusion path leads; None if the path does not have the right length.

    Source:
        RFC 9162, section 2.1.3.2.
    """
    if not 0 <= index < size:
        return None
    node, at, last = leaf, index, size - 1
    for sibling in path:
        if not last:
            return None
        if at & 1 or at == last:
            node = node_of(sibling, node)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            node = node_of(node, sibling)
        at, last = at >> 1, last >> 1
    return None if last else node


def trees_of_consistency(old: int, new: int, old_tree: bytes, path: Sequence[bytes]) -> tuple[bytes, bytes] | None:
    """Return the old and the new tree hash to which a consistency path leads.

    None if the path does not have the right length. The sizes must be above 0, and `new` above `old`.

    Source:
        RFC 9162, section 2.1.4.2.
    """
    hashes = list(path)
    if not hashes or not 0 < old < new:
        return None
    if not old & (old - 1):  # a power of two: the old tree is a subtree of the new one
        hashes.insert(0, old_tree)
    at, last = old - 1, new - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    first = second = hashes[0]
    for each in hashes[1:]:
        if not last:
            return None
        if at & 1 or at == last:
            first, second = node_of(each, first), node_of(each, second)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            second = node_of(second, each)
        at, last = at >> 1, last >> 1
    return None if last else (first, second)


def _left_size(size: int) -> int:
    """Return the largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1


def _range_hash(subtree: Subtree, start: int, end: int) -> bytes:
    """Return the tree hash of a range of entries that begins at a multiple of its largest power of two."""
    parts = []
    while start < end:
        level = (end - start).bit_length() - 1
        parts.append(subtree(level, start >> level))
        start += 1 << level
    node = parts.pop()
    while parts:
        node = node_of(parts.pop(), node)
    return node
