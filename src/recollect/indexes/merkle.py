"""The Merkle trie: one root hash over everything that a namespace holds.

The root is a function of the set of (id, version) pairs alone, not of the order of writing. Each pair is a leaf at
the place that the bits of H(id) name, most significant first:

    root of nothing       EMPTY
    root of one leaf      the leaf, at whatever depth
    root of more          H(node · root of those whose next bit is 0 · root of those whose next bit is 1)

All hashes are SHA-256 with a domain prefix each, so that no leaf can pass for a node. A leaf is the hash of the id and
of the version, which is H(salt · payload) with a salt for each payload: what is proved of one record tells nothing of
another, and erased text cannot be confirmed by guessing where the store key is private.

Four binary levels make a page, which is what a store keeps. Pages are never changed: a write makes a new page at each
level on its path, about log16(n) of them, and shares all others with the versions before. A page names its children by
content (their hash) and says where the store put them (their place), so that writing stays an append.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from recollect.records.codec import length_prefixed

#: The store key where none is given: public, so that anyone can reproduce the roots of such a store.
PUBLIC_KEY = b"recollect public store key"
#: The depth, in pages, at which two different hashes must have parted.
_MAX_PAGES = 64


def _digest(domain: bytes, *parts: bytes) -> bytes:
    return hashlib.sha256(b"".join((b"recollect.", domain, b".1\0", *parts))).digest()


EMPTY = _digest(b"empty")


def version_hash(record_id: str, payload: bytes, key: bytes = PUBLIC_KEY) -> bytes:
    """The 32-byte address of a version: H(salt · payload), the salt an HMAC of the id and the payload under `key`."""
    content = length_prefixed(record_id.encode("utf-8")) + hashlib.sha256(payload).digest()
    salt = hmac.digest(key, b"recollect.salt.1\0" + content, "sha256")
    return _digest(b"version", salt, payload)


def leaf_hash(record_id: str, version: bytes) -> bytes:
    """The 32-byte leaf that says: this id is held, in this version."""
    return _digest(b"leaf", length_prefixed(record_id.encode("utf-8")), version)


def path_of(record_id: str) -> bytes:
    """The 32 bytes whose bits name the place of an id."""
    return _digest(b"path", record_id.encode("utf-8"))


def node_hash(zero: bytes, one: bytes) -> bytes:
    """The hash of a node with these two sides."""
    return _digest(b"node", zero, one)


class Leaf(NamedTuple):
    path: bytes
    hash: bytes


class Child(NamedTuple):
    hash: bytes
    place: int


Slot = Leaf | Child | None
Page = list[Slot]  # sixteen slots, by the next four bits of the path


class Root(NamedTuple):
    """The root of a trie: its hash, and where its first page is (0: there is none, nothing is held)."""

    hash: bytes = EMPTY
    place: int = 0


class Pages(Protocol):
    """Where pages are kept. They are never changed or removed while a root needs them."""

    def node(self, place: int) -> bytes:
        """The page that `add_node` put at `place`."""
        ...

    def add_node(self, body: bytes) -> int:
        """Keep a page and return its place, a number above 0."""
        ...


def encode_page(page: Page) -> bytes:
    """Two bit maps of 16 (slot used; slot is a child), then the used slots: path and hash, or hash and place."""
    used = sum(1 << slot for slot, item in enumerate(page) if item is not None)
    children = sum(1 << slot for slot, item in enumerate(page) if isinstance(item, Child))
    out = [used.to_bytes(2, "big"), children.to_bytes(2, "big")]
    for item in page:
        if isinstance(item, Child):
            out.append(item.hash + item.place.to_bytes(8, "big"))
        elif item is not None:
            out.append(item.path + item.hash)
    return b"".join(out)


def decode_page(body: bytes) -> Page:
    """The page of `encode_page`'s bytes. Raises: ValueError where they are cut or too long."""
    used, children = int.from_bytes(body[:2], "big"), int.from_bytes(body[2:4], "big")
    page: Page = [None] * 16
    at = 4
    for slot in range(16):
        if not used >> slot & 1:
            continue
        if children >> slot & 1:
            page[slot] = Child(body[at : at + 32], int.from_bytes(body[at + 32 : at + 40], "big"))
            at += 40
        else:
            page[slot] = Leaf(body[at : at + 32], body[at + 32 : at + 64])
            at += 64
    if at != len(body) or children & ~used:
        raise ValueError("a page of the Merkle trie has the wrong length")
    return page


def page_hash(page: Page) -> tuple[bytes, Leaf | None]:
    """The hash of what a page holds, and the leaf where it holds just one."""
    row: list[Leaf | bytes | None] = [item.hash if isinstance(item, Child) else item for item in page]
    while len(row) > 1:
        row = [_joined(row[i], row[i + 1]) for i in range(0, len(row), 2)]
    (top,) = row
    if isinstance(top, Leaf):
        return top.hash, top
    return (EMPTY if top is None else top), None


def _joined(zero: Leaf | bytes | None, one: Leaf | bytes | None) -> Leaf | bytes | None:
    if zero is None and (one is None or isinstance(one, Leaf)):
        return one
    if one is None and isinstance(zero, Leaf):
        return zero
    return node_hash(_side(zero), _side(one))


def _side(item: Leaf | bytes | None) -> bytes:
    return item.hash if isinstance(item, Leaf) else EMPTY if item is None else item


def update(root: Root, changes: Mapping[str, bytes | None], pages: Pages) -> Root:
    """The root after `changes`: id -> version held from now on, or None where the id is no longer held.

    Cost: O(log n) pages read and written for each change; a batch shares the pages near the root.
    """
    if not changes:
        return root
    leaves = {
        path_of(record_id): None if version is None else leaf_hash(record_id, version)
        for record_id, version in changes.items()
    }
    page: Page = decode_page(pages.node(root.place)) if root.place else [None] * 16
    page = _updated(page, leaves, 0, pages)
    digest, _ = page_hash(page)
    if digest == EMPTY:
        return Root()
    return Root(digest, pages.add_node(encode_page(page)))


def _nibble(path: bytes, depth: int) -> int:
    byte = path[depth >> 1]
    return byte & 15 if depth & 1 else byte >> 4


def _updated(page: Page, leaves: Mapping[bytes, bytes | None], depth: int, pages: Pages) -> Page:
    """A copy of the page with the leaves set or removed."""
    page = list(page)
    by_slot: dict[int, dict[bytes, bytes | None]] = {}
    for path, leaf in leaves.items():
        by_slot.setdefault(_nibble(path, depth), {})[path] = leaf
    for slot, wanted in by_slot.items():
        page[slot] = _slot_updated(page[slot], wanted, depth, pages)
    return page


def _slot_updated(old: Slot, wanted: dict[bytes, bytes | None], depth: int, pages: Pages) -> Slot:
    if isinstance(old, Child):
        inner = _updated(decode_page(pages.node(old.place)), wanted, depth + 1, pages)
    else:
        if old is not None:
            wanted = {old.path: old.hash, **wanted}
        held = [Leaf(path, leaf) for path, leaf in wanted.items() if leaf is not None]
        if len(held) <= 1:
            return held[0] if held else None
        inner = _updated([None] * 16, {leaf.path: leaf.hash for leaf in held}, depth + 1, pages)
    digest, single = page_hash(inner)
    if single is not None or digest == EMPTY:
        return single
    return Child(digest, pages.add_node(encode_page(inner)))


def check(root: Root, versions: Mapping[str, bytes], pages: Pages) -> str:
    """What is wrong with a stored trie that should hold exactly `versions`; "" where nothing is.

    Every page is read, hashed again and compared with the name that its parent has for it.
    """
    held: dict[bytes, bytes] = {}
    problem = _walk(root, pages.node, held, "")
    if problem:
        return problem
    wanted = {path_of(record_id): leaf_hash(record_id, version) for record_id, version in versions.items()}
    missing = len(wanted.keys() - held.keys())
    if missing:
        return f"{missing} records are not in the Merkle trie"
    extra = len(held.keys() - wanted.keys())
    if extra:
        return f"the Merkle trie has {extra} leaves without a record"
    wrong = sum(held[path] != leaf for path, leaf in wanted.items())
    if wrong:
        return f"{wrong} leaves of the Merkle trie belong to other versions"
    # All pages agree with each other and hold the right leaves; whether they have the one right shape, this tells.
    return "" if root_of(versions) == root.hash else "the Merkle trie does not have the shape that its leaves give it"


def _walk(child: Root | Child, node: Callable[[int], bytes], held: dict[bytes, bytes], way: str) -> str:
    """Read a page and those below it into `held`; what is wrong with them. `way`: the slots that led here, in hex."""
    if not child.place:
        return "" if child.hash == EMPTY else "the Merkle trie has lost its first page"
    if len(way) > _MAX_PAGES:
        return "the Merkle trie has a loop"
    try:
        page = decode_page(node(child.place))
    except (ValueError, LookupError):
        return f"page {child.place} of the Merkle trie is missing or cannot be read"
    if page_hash(page)[0] != child.hash:
        return f"page {child.place} of the Merkle trie does not have the hash that its parent names"
    for slot, item in enumerate(page):
        if isinstance(item, Leaf):
            # The hashes do not say it: a lone leaf has the same one in either of two slots.
            if not item.path.hex().startswith(f"{way}{slot:x}"):
                return f"page {child.place} of the Merkle trie has a leaf where another belongs"
            held[item.path] = item.hash
        elif item is not None:
            problem = _walk(item, node, held, f"{way}{slot:x}")
            if problem:
                return problem
    return ""


def root_of(versions: Mapping[str, bytes]) -> bytes:
    """The root hash of id -> version, computed from the definition and nothing else.

    Slow and obvious: what `update` keeps must always equal this.
    """
    leaves = sorted((path_of(record_id), leaf_hash(record_id, version)) for record_id, version in versions.items())
    return _plain_root(leaves, 0)


def _plain_root(leaves: list[tuple[bytes, bytes]], depth: int) -> bytes:
    if not leaves:
        return EMPTY
    if len(leaves) == 1:
        return leaves[0][1]
    sides: tuple[list[tuple[bytes, bytes]], list[tuple[bytes, bytes]]] = ([], [])
    for leaf in leaves:
        sides[leaf[0][depth >> 3] >> (7 - (depth & 7)) & 1].append(leaf)
    return node_hash(_plain_root(sides[0], depth + 1), _plain_root(sides[1], depth + 1))
