"""The way down the Merkle trie along the path of an id: what a proof of presence or absence shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from recollect.ledger.merkle import EMPTY, Child, Leaf, Page, Root, decode_page, node_hash

#: A node of the binary trie: empty, the only leaf below it, or the hash of more.
_Node: TypeAlias = Leaf | bytes | None
#: A slot of a page may also be a child.
_Slot: TypeAlias = _Node | Child


class BrokenTrieError(Exception):
    """The pages of a trie do not have the hashes that lead to them, or cannot be read."""


class Descent(NamedTuple):
    """The way from a root to where the path of an id ends.

    Attributes:
        siblings: The hash of the other side at each level, from the root down.
        leaf: The leaf at the end, of the id itself or of another one; None if nothing is there.
    """

    siblings: tuple[bytes, ...]
    leaf: Leaf | None


def descend(root: Root, path: bytes, node: Callable[[int], bytes]) -> Descent:
    """Follow a path down from a root.

    Args:
        root: The root.
        path: The path of an id.
        node: Returns a page (`merkle.Pages.node`).

    Raises:
        BrokenTrieError: A page is damaged.

    Cost:
        Reads about log16(n) pages and hashes each of them again.
    """
    siblings: list[bytes] = []
    child = Child(root.hash, root.page)
    if not child.page:
        return Descent((), None)
    for depth in range(2 * len(path)):
        try:
            page = decode_page(node(child.page))
        except ValueError as error:
            raise BrokenTrieError(f"page {child.page} of the Merkle trie cannot be read") from error
        nodes = _inner_nodes(page)
        if _hash_of(nodes[1]) != child.hash:
            raise BrokenTrieError(f"page {child.page} of the Merkle trie does not have the hash that leads to it")
        slot = path[depth >> 1] >> (0 if depth & 1 else 4) & 15
        at = 1
        for shift in (3, 2, 1, 0):
            here = nodes[at]
            if here is None or isinstance(here, Leaf):
                return Descent(tuple(siblings), here)
            side = 2 * at + (slot >> shift & 1)
            siblings.append(_hash_of(nodes[side ^ 1]))
            at = side
        end = page[slot]
        if not isinstance(end, Child):
            return Descent(tuple(siblings), end)
        child = end
    raise BrokenTrieError("the Merkle trie is deeper than a path")


def _inner_nodes(page: Page) -> list[_Slot]:
    """Return the binary trie of a page: node `n` has the sides `2n` and `2n + 1`, and 16 to 31 are the slots."""
    nodes: list[_Slot] = [*[None] * 16, *page]
    for at in range(15, 0, -1):
        zero, one = nodes[2 * at], nodes[2 * at + 1]
        if zero is None and (one is None or isinstance(one, Leaf)):
            nodes[at] = one
        elif one is None and isinstance(zero, Leaf):
            nodes[at] = zero
        else:
            nodes[at] = node_hash(_hash_of(zero), _hash_of(one))
    return nodes


def _hash_of(node: _Slot) -> bytes:
    if node is None:
        return EMPTY
    return node if isinstance(node, bytes) else node.hash
