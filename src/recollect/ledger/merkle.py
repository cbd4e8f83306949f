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
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from recollect.records.codec import varint

#: The store key where none is given: public, so that anyone can reproduce the roots of such a store.
PUBLIC_KEY = b"recollect public store key"
#: The depth, in pages, at which two different hashes must have parted.
_MAX_PAGES = 64
#: A `Trie` keeps the pages below so many levels loaded: 1 + 16 + 256 pages, about a megabyte.
_LOADED = 2


def _domain(name: bytes) -> bytes:
    return b"recollect." + name + b".1\0"


_SALT, _VERSION, _LEAF, _PATH, _NODE = (_domain(name) for name in (b"salt", b"version", b"leaf", b"path", b"node"))
EMPTY = hashlib.sha256(_domain(b"empty")).digest()


def version_hash(record_id: str, payload: bytes, key: bytes = PUBLIC_KEY) -> bytes:
    """The 32-byte address of a version: H(salt · payload), the salt an HMAC of the id and the payload under `key`."""
    raw = record_id.encode("utf-8")
    inner_begun, outer_begun = _keyed(key)
    inner, outer = inner_begun.copy(), outer_begun.copy()
    inner.update(_SALT + varint(len(raw)) + raw + hashlib.sha256(payload).digest())
    outer.update(inner.digest())
    return hashlib.sha256(_VERSION + outer.digest() + payload).digest()


@lru_cache(maxsize=4)
def _keyed(key: bytes) -> tuple[Any, Any]:
    """The inner and the outer hash of HMAC-SHA-256, begun with a key. Source: RFC 2104, section 4."""
    block = (key if len(key) <= 64 else hashlib.sha256(key).digest()).ljust(64, b"\0")
    return hashlib.sha256(bytes(each ^ 0x36 for each in block)), hashlib.sha256(bytes(each ^ 0x5C for each in block))


def leaf_hash(record_id: str, version: bytes) -> bytes:
    """The 32-byte leaf that says: this id is held, in this version."""
    raw = record_id.encode("utf-8")
    return hashlib.sha256(_LEAF + varint(len(raw)) + raw + version).digest()


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
    page: int


Slot = Leaf | Child | None
Page = list[Slot]  # sixteen slots, by the next four bits of the path


class Root(NamedTuple):
    """The root of a trie: its hash, and where its first page is (0: there is none, nothing is held)."""

    hash: bytes = EMPTY
    page: int = 0


class Pages(Protocol):
    """Where pages are kept. They are never changed or removed while a root needs them."""

    def node(self, page: int) -> bytes:
        """The page that `add_node` put at `page`."""
        ...

    def add_node(self, body: bytes) -> int:
        """Keep a page and return its place, a number above 0."""
        ...


def encode_page(page: Page) -> bytes:
    """Two bit maps of 16 (slot used; slot is a child), then the used slots: path and hash, or hash and place."""
    used = children = 0
    for slot, item in enumerate(page):
        used |= (item is not None) << slot
        children |= isinstance(item, Child) << slot
    return _maps(used, children) + b"".join(_kept(item) for item in page)


def decode_page(body: bytes) -> Page:
    """The page of `encode_page`'s bytes. Raises: ValueError where they are cut or too long."""
    page: Page = [None] * 16
    for slot, item in _items(body):
        if len(item) == _CHILD_BYTES:
            page[slot] = Child(item[:32], int.from_bytes(item[32:], "big"))
        else:
            page[slot] = Leaf(item[:32], item[32:])
    return page


def page_hash(page: Page) -> tuple[bytes, Leaf | None]:
    """The hash of what a page holds, and the leaf where it holds just one."""
    top = _LoadedPage(encode_page(page)).top()
    if len(top) == _LEAF_BYTES:
        return top[32:], Leaf(top[:32], top[32:])
    return top or EMPTY, None


# Updates work on what the slots of a page keep, as bytes, and tell by the length what it is: a leaf, a child, or
# nothing. So a page that is read and written again makes no object for each of its slots.

#: A path and a hash; a hash and a place.
_LEAF_BYTES, _CHILD_BYTES = 64, 40
#: The bytes of a page that has none.
_NO_ITEMS = bytes(4)
#: In place of a node that is to be made anew, since something below it was changed.
_STALE = b"stale"


def _kept(item: Slot) -> bytes:
    """What a slot keeps of an item."""
    if item is None:
        return b""
    return item.hash + item.page.to_bytes(8, "big") if isinstance(item, Child) else item.path + item.hash


def _maps(used: int, children: int) -> bytes:
    """What a page begins with."""
    return (used << 16 | children).to_bytes(4, "big")


def _items(body: bytes) -> list[tuple[int, bytes]]:
    """The used slots of a page's bytes. Raises: ValueError where they are cut or too long."""
    used, children = int.from_bytes(body[:2], "big"), int.from_bytes(body[2:4], "big")
    out = []
    at, rest = 4, used
    while rest:
        bit = rest & -rest
        rest ^= bit
        end = at + (_CHILD_BYTES if children & bit else _LEAF_BYTES)
        out.append((bit.bit_length() - 1, body[at:end]))
        at = end
    if at != len(body) or children & ~used:
        raise ValueError("a page of the Merkle trie has the wrong length")
    return out


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
        if self._top is None:
            self._top = _LoadedPage(pages.node(self.root.page) if self.root.page else _NO_ITEMS)
        leaves = []
        for record_id, version in changes.items():
            path = path_of(record_id)
            leaves.append(path if version is None else path + leaf_hash(record_id, version))
        self._top.put(leaves, 0, pages)
        top = self._top.top()
        if top:
            self.root = Root(top[-32:], pages.add_node(self._top.body()))
        else:
            self.root = Root()
        return self.root


class _LoadedPage:
    """A page with what its slots make, so that a changed slot costs its own bytes and four hashes, not all of them.

    below   the pages of its children that stay loaded, by slot
    """

    __slots__ = ("_children", "_kept", "_nodes", "_used", "below")

    def __init__(self, body: bytes) -> None:
        self._kept = [b""] * 16
        # The binary trie of the page: the node `n` has the sides `2n` and `2n + 1`, 16 to 31 are the slots. What stands
        # at a node is nothing, the one leaf below it, or its hash.
        self._nodes = [_STALE] * 16 + [b""] * 16
        self._used, self._children = int.from_bytes(body[:2], "big"), int.from_bytes(body[2:4], "big")
        self.below: dict[int, _LoadedPage] = {}
        for slot, item in _items(body):
            self._kept[slot] = item
            self._nodes[16 + slot] = item[:32] if len(item) == _CHILD_BYTES else item

    def _set(self, slot: int, item: bytes) -> None:
        bit = 1 << slot
        self._kept[slot] = item
        if len(item) == _CHILD_BYTES:
            self._used |= bit
            self._children |= bit
            item = item[:32]
        else:
            self._children &= ~bit
            if item:
                self._used |= bit
            else:
                self._used &= ~bit
        nodes, at = self._nodes, 16 + slot
        nodes[at] = item
        while nodes[at := at >> 1] is not _STALE:  # as the unused node 0 always is
            nodes[at] = _STALE

    def body(self) -> bytes:
        """The page's bytes, as `encode_page` gives them."""
        return _maps(self._used, self._children) + b"".join(self._kept)

    def top(self) -> bytes:
        """The node that the whole page makes."""
        # Most of what an update costs is here, so nothing is called but the hash.
        nodes, sha256 = self._nodes, hashlib.sha256
        for at in range(15, 0, -1):
            if nodes[at] is not _STALE:
                continue
            zero, one = nodes[2 * at], nodes[2 * at + 1]
            if zero:
                if one:  # of a leaf, too, the last 32 bytes are its hash
                    nodes[at] = sha256(_NODE + zero[-32:] + one[-32:]).digest()
                else:
                    nodes[at] = zero if len(zero) == _LEAF_BYTES else sha256(_NODE + zero + EMPTY).digest()
            elif one and len(one) != _LEAF_BYTES:
                nodes[at] = sha256(_NODE + EMPTY + one).digest()
            else:
                nodes[at] = one
        return nodes[1]

    def put(self, leaves: Sequence[bytes], depth: int, pages: Pages) -> None:
        """Set leaves, each a path and its hash, or remove them, each a path alone: here and in new pages below."""
        byte, shift = depth >> 1, 0 if depth & 1 else 4
        by_slot: dict[int, list[bytes]] = {}
        for leaf in leaves:
            slot = leaf[byte] >> shift & 15
            if slot in by_slot:
                by_slot[slot].append(leaf)
            else:
                by_slot[slot] = [leaf]
        for slot, wanted in by_slot.items():
            old = self._kept[slot]
            if len(old) == _CHILD_BYTES:
                inner = self.below.pop(slot, None)
                if inner is None:
                    inner = _LoadedPage(pages.node(int.from_bytes(old[32:], "big")))
                inner.put(wanted, depth + 1, pages)
            else:
                if old:
                    same = [leaf for leaf in wanted if leaf.startswith(old[:32])]
                    wanted = [*(same or (old,)), *(leaf for leaf in wanted if leaf not in same)]
                held = [leaf for leaf in wanted if len(leaf) == _LEAF_BYTES]
                if len(held) <= 1:
                    self._set(slot, held[0] if held else b"")
                    continue
                inner = _LoadedPage(_NO_ITEMS)
                inner.put(held, depth + 1, pages)
            self._set(slot, self._below(slot, inner, depth, pages))

    def _below(self, slot: int, inner: _LoadedPage, depth: int, pages: Pages) -> bytes:
        """What a slot keeps of the page below it, which is new."""
        top = inner.top()
        if len(top) != 32:  # nothing, or one leaf: it needs no page
            return top
        if depth < _LOADED:
            self.below[slot] = inner
        return top + pages.add_node(inner.body()).to_bytes(8, "big")


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
    if not child.page:
        return "" if child.hash == EMPTY else "the Merkle trie has lost its first page"
    if len(way) > _MAX_PAGES:
        return "the Merkle trie has a loop"
    try:
        page = decode_page(node(child.page))
    except (ValueError, LookupError):
        return f"page {child.page} of the Merkle trie is missing or cannot be read"
    if page_hash(page)[0] != child.hash:
        return f"page {child.page} of the Merkle trie does not have the hash that its parent names"
    for slot, item in enumerate(page):
        if isinstance(item, Leaf):
            # The hashes do not say it: a lone leaf has the same one in either of two slots.
            if not item.path.hex().startswith(f"{way}{slot:x}"):
                return f"page {child.page} of the Merkle trie has a leaf where another belongs"
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
