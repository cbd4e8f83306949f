"""Walks over stored tries: what two roots have in common is never read.

Two roots of one branch share the pages that no commit between them has replaced. So the cost of comparing them is that
of their difference, however many commits lie between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from recollect.ledger.merkle import Child, Leaf, Root, Slot, children_of, decode_page

Node = Callable[[int], bytes]


class Walk:
    """Walks over the pages of several roots of one branch. The children of each page are read once.

    Args:
        node: Returns a page by its number.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._children: dict[int, dict[int, int]] = {0: {}}

    def pages_only_in(self, one: Root, other: Root, above: int = 0) -> list[int]:
        """Return the numbers of the pages of a root that another root of the same branch does not have.

        Args:
            one: The root.
            other: The other root.
            above: Only pages with a greater number. The pages below a page have lower numbers, and are not read either.

        Cost:
            Reads the returned pages, and those of the other root that replace them.
        """
        out: list[int] = []
        pending = [(one.page, other.page)]
        while pending:
            page, replacement = pending.pop()
            if page == replacement or page <= above:
                continue
            out.append(page)
            own = self._below(page)
            if own:
                others = self._below(replacement)
                pending.extend((child, others.get(slot, 0)) for slot, child in own.items() if child > above)
        return out

    def _below(self, page: int) -> dict[int, int]:
        children = self._children.get(page)
        if children is None:
            children = self._children[page] = children_of(self._node(page))
        return children


def leaf_changes(one: Root, other: Root, node: Node) -> Iterator[tuple[Leaf | None, Leaf | None]]:
    """Yield the leaves in which two roots differ, as (leaf of the one, leaf of the other) of the same path, or None.

    Cost:
        Reads the pages on the paths to the leaves that differ.
    """
    pending: list[tuple[Slot, Slot]] = [(_slot(one), _slot(other))]
    while pending:
        left, right = pending.pop()
        if (left and left.hash) == (right and right.hash) and isinstance(left, Leaf) == isinstance(right, Leaf):
            continue
        if isinstance(left, Child) and isinstance(right, Child):
            pending.extend(zip(decode_page(node(left.page)), decode_page(node(right.page)), strict=True))
            continue
        before, after = _leaves(left, node), _leaves(right, node)
        for path in before.keys() | after.keys():
            pair = before.get(path), after.get(path)
            if (pair[0] and pair[0].hash) != (pair[1] and pair[1].hash):
                yield pair


def _slot(root: Root) -> Slot:
    return Child(root.hash, root.page) if root.page else None


def _leaves(item: Slot, node: Node) -> dict[bytes, Leaf]:
    """Return the leaves at and below a slot, by path."""
    out: dict[bytes, Leaf] = {}
    pending = [item]
    while pending:
        each = pending.pop()
        if isinstance(each, Leaf):
            out[each.path] = each
        elif each is not None:
            pending.extend(decode_page(node(each.page)))
    return out
