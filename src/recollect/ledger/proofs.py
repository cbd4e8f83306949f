"""Proofs as plain JSON: what a root or the head of a log commits to, and the way down the trie that they show.

A proof states that a record is present in a version, that an id is absent, or that one log extends another. It is a
dictionary of texts, integers and lists, with hashes in lowercase hex. `ledger.verifying` verifies it, and
docs/proofs.md specifies it byte by byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from recollect.ledger.entries import LogEntry
from recollect.ledger.log_tree import head_of
from recollect.ledger.merkle import EMPTY, Child, Leaf, Page, Root, Slot, children_of, decode_page, node_hash, path_of

#: A proof: a dictionary that `json.dumps` writes.
Proof: TypeAlias = dict[str, Any]
#: The kinds of proofs, with the number of their form. Those of the second speak of a part of a memory.
PRESENCE, ABSENCE, CONSISTENCY, MERGE = (
    f"recollect/{name}/1" for name in ("presence", "absence", "consistency", "merge")
)
PRESENCE_2, ABSENCE_2 = (f"recollect/{name}/2" for name in ("presence", "absence"))
#: A node of the binary trie: empty, the only leaf below it, or the hash of more.
_Node: TypeAlias = Leaf | bytes | None
#: A slot of a page may also be a child.
_Slot: TypeAlias = _Node | Child


class BrokenTrieError(Exception):
    """The pages of a trie do not have the hashes that lead to them, or cannot be read."""


class ProvedPart(NamedTuple):
    """The part of a memory that a proof speaks of.

    Attributes:
        name: Its name.
        roots: The roots of all parts by their names (`parts.roots_of`).
    """

    name: str
    roots: Mapping[str, bytes]


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


def presence(
    record_id: str,
    root: bytes,
    descent: Descent,
    version: bytes,
    content: tuple[bytes, bytes] | None,
    log: Proof | None,
    part: ProvedPart | None = None,
) -> Proof:
    """Return the proof that a record is present.

    Args:
        record_id: The id, as it is stored.
        descent: The way to the leaf.
        content: The salt and the payload of the version; None if the payload has been erased.
        log: The commit of the root in the log (`commit_in_log`), if any.
        part: The part of the memory; None for a commit that binds the records only.
    """
    kind = PRESENCE if part is None else PRESENCE_2
    proof = {"proof": kind, **_place(record_id, root, descent, part), "version": version.hex()}
    if content is None:
        proof["erased"] = True
    else:
        proof |= {"salt": content[0].hex(), "payload": content[1].hex()}
    return proof if log is None else {**proof, "log": log}


def absence(
    record_id: str,
    root: bytes,
    descent: Descent,
    version: bytes | None,
    log: Proof | None,
    part: ProvedPart | None = None,
) -> Proof:
    """Return the proof that an id is absent; `version` is that of the leaf where its path ends, if there is one."""
    leaf = None
    if descent.leaf is not None and version is not None:
        leaf = {"path": descent.leaf.path.hex(), "version": version.hex()}
    proof = {
        "proof": ABSENCE if part is None else ABSENCE_2,
        **_place(record_id, root, descent, part),
        # Any id whose path ends there is absent. So that a proof is about one id, it states the path, too.
        "path": path_of(record_id).hex(),
        "leaf": leaf,
    }
    return proof if log is None else {**proof, "log": log}


def _place(record_id: str, root: bytes, descent: Descent, part: ProvedPart | None) -> Proof:
    roots = {} if part is None else {name: each.hex() for name, each in part.roots.items()}
    return {
        "id": record_id,
        **({} if part is None else {"part": part.name, "parts": roots}),
        "root": root.hex(),
        "levels": "".join("0" if each == EMPTY else "1" for each in descent.siblings),
        "siblings": [each.hex() for each in descent.siblings if each != EMPTY],
    }


def commit_in_log(entry: LogEntry, size: int, path: Sequence[bytes], head: bytes) -> Proof:
    """Return the part of a proof that shows the commit of its root in a log of `size` entries."""
    return {
        "seq": entry.seq,
        "parents": [[*parent[:2], *(each.hex() for each in parent[2:])] for parent in entry.parents],
        "time": entry.micros,
        "actor": None if entry.actor is None else entry.actor.hex(),
        "reason": None if entry.reason is None else entry.reason.hex(),
        "changes": entry.changes.hex(),
        **({} if entry.parts is None else {"parts": entry.parts.hex()}),
        "size": size,
        "path": [each.hex() for each in path],
        "head": head.hex(),
    }


def consistency(old: tuple[int, bytes], new: tuple[int, bytes], path: Sequence[bytes]) -> Proof:
    """Return the proof that a log extends another; each is the number of its entries and its tree hash."""
    old_log, new_log = (
        {"size": size, "hash": tree.hex(), "head": head_of(size, tree).hex()} for size, tree in (old, new)
    )
    return {"proof": CONSISTENCY, "old": old_log, "new": new_log, "path": [each.hex() for each in path]}


def merge(merging: tuple[bytes, Proof], branch: str, merged: tuple[bytes, Proof]) -> Proof:
    """Return the proof that a commit merges one of another branch.

    Args:
        merging: The root of the memory after the commit, and the commit in its log (`commit_in_log`).
        branch: The name of the other branch.
        merged: The same for the commit that was merged, in the log of the other branch.
    """
    (root, log), (other, other_log) = merging, merged
    return {
        "proof": MERGE,
        "merge": {"root": root.hex(), "log": log},
        "merged": {"branch": branch, "root": other.hex(), "log": other_log},
    }


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


# Walks over stored tries: what two roots have in common is never read.
#
# Two roots of one branch share the pages that no commit between them has replaced. So the cost of comparing them is
# that of their difference, however many commits lie between them.

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
            one: The root whose pages are returned.
            other: The root whose pages are left out.
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
