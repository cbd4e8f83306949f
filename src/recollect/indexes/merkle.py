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
#: A `Trie` keeps the pages below so many levels loaded: 1 + 16 + 256 pages, about a megabyte.
_LOADED = 2
_ALL_NODES = frozenset(range(1, 16))
#: The nodes above each slot of a page.
_ABOVE = [frozenset((16 + slot) >> up for up in range(1, 5)) for slot in range(16)]


def _domain(name: bytes) -> bytes:
    return b"recollect." + name + b".1\0"


_SALT, _VERSION, _LEAF, _PATH, _NODE = (_domain(name) for name in (b"salt", b"version", b"leaf", b"path", b"node"))
EMPTY = hashlib.sha256(_domain(b"empty")).digest()


def version_hash(record_id: str, payload: bytes, key: bytes = PUBLIC_KEY) -> bytes:
    """The 32-byte address of a version: H(salt · payload), the salt an HMAC of the id and the payload under `key`."""
    content = length_prefixed(record_id.encode("utf-8")) + hashlib.sha256(payload).digest()
    salt = hmac.digest(key, _SALT + content, "sha256")
    return hashlib.sha256(_VERSION + salt + payload).digest()


def leaf_hash(record_id: str, version: bytes) -> bytes:
    """The 32-byte leaf that says: this id is held, in this version."""
    return hashlib.sha256(_LEAF + length_prefixed(record_id.encode("utf-8")) + version).digest()


def path_of(record_id: str) -> bytes:
    """The 32 bytes whose bits name the place of an id."""
    return hashlib.sha256(_PATH + record_id.encode("utf-8")).digest()


def node_hash(zero: bytes, one: bytes) -> bytes:
    """The hash of a node with these two sides."""
    return hashlib.sha256(_NODE + zero + one).digest()


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
    return _LoadedPage(page).body()


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
    top = _LoadedPage(page).top()
    if isinstance(top, Leaf):
        return top.hash, top
    return (EMPTY if top is None else top), None


#: What stands at a node of the binary trie: nothing, the one leaf below it, or its hash.
_Node = Leaf | bytes | None


def _joined(zero: _Node, one: _Node) -> _Node:
    # Most of what an update costs is here, so nothing else is called.
    if zero is None:
        if one is None or type(one) is Leaf:
            return one
        zero = EMPTY
    elif type(zero) is Leaf:
        if one is None:
            return zero
        zero = zero.hash
    if one is None:
        one = EMPTY
    elif type(one) is Leaf:
        one = one.hash
    return hashlib.sha256(_NODE + zero + one).digest()  # type: ignore[operator]


def update(root: Root, changes: Mapping[str, bytes | None], pages: Pages) -> Root:
    """The root after `changes`: id -> version held from now on, or None where the id is no longer held.

    Cost: O(log n) pages read and written for each change; a batch shares the pages near the root.
    """
    return Trie(root).update(changes, pages)


class Trie:
    """A trie at one root after another. Its pages near the root stay loaded, so that the next update reads fewer.

    root   the newest

    Where an update fails, or what it wrote is given up, the trie must be given up too: it knows pages that are not
    kept anywhere.
    """

    def __init__(self, root: Root) -> None:
        self.root = root
        self._top: _LoadedPage | None = None

    def update(self, changes: Mapping[str, bytes | None], pages: Pages) -> Root:
        """Like the function `update`, from this root on."""
        if not changes:
            return self.root
        leaves = {
            path_of(record_id): None if version is None else leaf_hash(record_id, version)
            for record_id, version in changes.items()
        }
        if self._top is None:
            self._top = _LoadedPage(decode_page(pages.node(self.root.place)) if self.root.place else [None] * 16)
        self._top.put(leaves, 0, pages)
        top = self._top.top()
        digest = top.hash if isinstance(top, Leaf) else top
        self.root = Root() if digest is None else Root(digest, pages.add_node(self._top.body()))
        return self.root


class _LoadedPage:
    """A page with what its slots make, so that a changed slot costs its own bytes and four hashes, not all of them.

    nodes   the binary trie of the page: the node `n` has the sides `2n` and `2n + 1`, 16 to 31 are the slots
    stale   the nodes above slots that were changed since; all of them at first
    below   the pages of its children that stay loaded, by slot
    """

    __slots__ = ("_children", "_raw", "_used", "below", "nodes", "slots", "stale")

    def __init__(self, slots: Page) -> None:
        self.slots: Page = [None] * 16
        self.nodes: list[_Node] = [None] * 32
        self.stale = _ALL_NODES
        self.below: dict[int, _LoadedPage] = {}
        self._raw = [b""] * 16
        self._used = self._children = 0  # the bit maps
        for slot, item in enumerate(slots):
            if item is not None:
                self._set(slot, item)

    def _set(self, slot: int, item: Slot) -> None:
        bit = 1 << slot
        self.slots[slot] = item
        self._used |= bit
        self._children &= ~bit
        if isinstance(item, Child):
            self._children |= bit
            self.nodes[16 + slot] = item.hash
            self._raw[slot] = item.hash + item.place.to_bytes(8, "big")
        else:
            self.nodes[16 + slot] = item
            self._raw[slot] = b"" if item is None else item.path + item.hash
            if item is None:
                self._used &= ~bit
        self.stale |= _ABOVE[slot]

    def body(self) -> bytes:
        """The page's bytes, as `encode_page` gives them."""
        return self._used.to_bytes(2, "big") + self._children.to_bytes(2, "big") + b"".join(self._raw)

    def top(self) -> _Node:
        """The node that the whole page makes."""
        nodes = self.nodes
        for at in sorted(self.stale, reverse=True):
            nodes[at] = _joined(nodes[2 * at], nodes[2 * at + 1])
        self.stale = frozenset()
        return nodes[1]

    def put(self, leaves: Mapping[bytes, bytes | None], depth: int, pages: Pages) -> None:
        """Set or remove the leaves, here and in new pages below."""
        by_slot: dict[int, dict[bytes, bytes | None]] = {}
        for path, leaf in leaves.items():
            by_slot.setdefault(_nibble(path, depth), {})[path] = leaf
        for slot, wanted in by_slot.items():
            self._set(slot, self._changed(slot, wanted, depth, pages))

    def _changed(self, slot: int, wanted: dict[bytes, bytes | None], depth: int, pages: Pages) -> Slot:
        """What a slot holds once the leaves below it are set or removed."""
        old = self.slots[slot]
        inner = self.below.pop(slot, None)
        if isinstance(old, Child):
            inner = inner or _LoadedPage(decode_page(pages.node(old.place)))
            inner.put(wanted, depth + 1, pages)
        else:
            if old is not None:
                wanted = {old.path: old.hash, **wanted}
            held = [Leaf(path, leaf) for path, leaf in wanted.items() if leaf is not None]
            if len(held) <= 1:
                return held[0] if held else None
            inner = _LoadedPage([None] * 16)
            inner.put({leaf.path: leaf.hash for leaf in held}, depth + 1, pages)
        top = inner.top()
        if top is None or isinstance(top, Leaf):
            return top
        if depth < _LOADED:
            self.below[slot] = inner
        return Child(top, pages.add_node(inner.body()))


def _nibble(path: bytes, depth: int) -> int:
    byte = path[depth >> 1]
    return byte & 15 if depth & 1 else byte >> 4


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
