"""The Merkle trie: one root hash over all live records of a namespace.

The root is a function of the set of (id, version) pairs, not of the order of writing. Each pair is a leaf. The
bits of H(id) are its path, most significant bit first:

    root of no leaves     EMPTY
    root of one leaf      the leaf, at any depth
    root of more          H(node · root of those whose next bit is 0 · root of those whose next bit is 1)

All hashes are SHA-256 with a domain prefix each, so a leaf cannot pass for a node. A leaf is the hash of the path and
the version: a proof that names a leaf does not reveal its id. The version is H(salt · payload), with a different salt
for each payload: a proof for one record reveals nothing about another, and if the store key is private, erased text
cannot be confirmed by guessing.

Four binary levels form a page, the unit that a store keeps. Pages are immutable: a write creates a new page at each
level of its path, about log16(n) of them, and shares all others with earlier roots. A page refers to its children by
their hashes and by their page numbers in the store, so writing only appends, and a page has a higher number than all
pages below it. A leaf is stored with the number of its version in the store, which no hash covers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from recollect.records.codec import varint

#: The default store key. It is public, so anyone can reproduce the roots of a store that uses it.
PUBLIC_KEY = b"recollect public store key"
#: Maximum depth of a trie in pages: 64 pages of four levels use all 256 bits of a path.
_MAX_PAGES = 64
#: A `Trie` keeps this many levels of pages below the first one loaded: 1 + 16 + 256 pages, about a megabyte.
_LOADED_LEVELS = 2


def _domain(name: bytes, number: bytes = b"1") -> bytes:
    return b"recollect." + name + b"." + number + b"\0"


_SALT, _VERSION, _PATH, _NODE = (_domain(name) for name in (b"salt", b"version", b"path", b"node"))
_LEAF = _domain(b"leaf", b"2")
_HASH_BYTES = 32
#: The first character of a redacted id, before its path in hex. No id of a record can begin with it.
_REDACTED = "\x1a"
EMPTY = hashlib.sha256(_domain(b"empty")).digest()


def version_hash(record_id: str, payload: bytes, key: bytes = PUBLIC_KEY) -> bytes:
    """Return the 32-byte address of a version: H(salt · payload). The salt is an HMAC of id and payload under `key`."""
    return hashlib.sha256(_VERSION + version_salt(record_id, payload, key) + payload).digest()


def version_salt(record_id: str, payload: bytes, key: bytes = PUBLIC_KEY) -> bytes:
    """Return the salt of a version."""
    raw = record_id.encode("utf-8")
    return keyed_hash(key, _SALT + varint(len(raw)) + raw + hashlib.sha256(payload).digest())


def salted_version(salt: bytes, payload: bytes) -> bytes:
    """Return the address of a version whose salt is known, as in a proof."""
    return hashlib.sha256(_VERSION + salt + payload).digest()


def keyed_hash(key: bytes, content: bytes) -> bytes:
    """Return HMAC-SHA-256(key, content)."""
    inner_keyed, outer_keyed = _keyed(key)
    inner, outer = inner_keyed.copy(), outer_keyed.copy()
    inner.update(content)
    outer.update(inner.digest())
    digest: bytes = outer.digest()
    return digest


@lru_cache(maxsize=4)
def _keyed(key: bytes) -> tuple[Any, Any]:
    """Return the inner and the outer hash of HMAC-SHA-256 after the key block.

    Source:
        RFC 2104, section 4.
    """
    block = (key if len(key) <= 64 else hashlib.sha256(key).digest()).ljust(64, b"\0")
    return hashlib.sha256(bytes(each ^ 0x36 for each in block)), hashlib.sha256(bytes(each ^ 0x5C for each in block))


def leaf_hash(record_id: str, version: bytes) -> bytes:
    """Return the 32-byte leaf which states that this id is live in this version."""
    return leaf_hash_at(path_of(record_id), version)


def leaf_hash_at(path: bytes, version: bytes) -> bytes:
    """Return the leaf of the id that has this path."""
    return hashlib.sha256(_LEAF + path + version).digest()


def path_of(record_id: str) -> bytes:
    """Return the 32 bytes whose bits are the path of an id."""
    return hashlib.sha256(_PATH + record_id.encode("utf-8")).digest()


def redacted_id(record_id: str) -> str:
    """Return what the log has in place of an id that was redacted: its path, from which the id cannot be computed.

    Equal ids remain equal, and every hash that covers the path stays valid.
    """
    return record_id if is_redacted(record_id) else _REDACTED + path_of(record_id).hex()


def is_redacted(record_id: str) -> bool:
    """Return whether an id from the log was redacted."""
    return record_id.startswith(_REDACTED)


def path_in_log(record_id: str) -> bytes:
    """Return the path of an id from the log, which may be redacted.

    Raises:
        ValueError: It begins as a redacted id does, and has no path.
    """
    if not is_redacted(record_id):
        return path_of(record_id)
    path = bytes.fromhex(record_id[len(_REDACTED) :])
    if len(path) != _HASH_BYTES:
        raise ValueError(f"{record_id!r} is not a redacted id")
    return path


def node_hash(zero: bytes, one: bytes) -> bytes:
    """Return the hash of a node with these two sides."""
    return hashlib.sha256(_NODE + zero + one).digest()


class Live(NamedTuple):
    """The live version of an id.

    Attributes:
        version: Its address (`version_hash`).
        number: Its number in the store.
    """

    version: bytes
    number: int


class Leaf(NamedTuple):
    path: bytes
    number: int
    hash: bytes


class Child(NamedTuple):
    hash: bytes
    page: int


Slot = Leaf | Child | None
Page = list[Slot]  # sixteen slots, by the next four bits of the path


class Root(NamedTuple):
    """The root of a trie.

    Attributes:
        hash: The root hash.
        page: The number of the first page; 0 if the trie is empty.
    """

    hash: bytes = EMPTY
    page: int = 0


class Pages(Protocol):
    """Storage for pages. A page is never changed."""

    def node(self, page: int) -> bytes:
        """Return the page that `add_node` stored under the number `page`."""

    def nodes(self, pages: Sequence[int]) -> dict[int, bytes]:
        """Return several pages by number. Where the storage is remote, that is one round trip."""

    def add_node(self, body: bytes) -> int:
        """Store a page and return its number, which is above 0."""


def encode_page(page: Page) -> bytes:
    """Encode two 16-bit maps (slot used; slot is a child), then the used slots.

    A leaf is path, number and hash; a child is hash and page number.
    """
    used = children = 0
    for slot, item in enumerate(page):
        used |= (item is not None) << slot
        children |= isinstance(item, Child) << slot
    return _maps(used, children) + b"".join(_slot_bytes(item) for item in page)


def decode_page(body: bytes) -> Page:
    """Decode the bytes of `encode_page`.

    Raises:
        ValueError: They are too short or too long.
    """
    page: Page = [None] * 16
    for slot, item in _items(body):
        if len(item) == CHILD_BYTES:
            page[slot] = Child(item[:32], int.from_bytes(item[32:], "big"))
        else:
            page[slot] = Leaf(item[:32], int.from_bytes(item[32:40], "big"), item[40:])
    return page


def page_hash(page: Page) -> tuple[bytes, Leaf | None]:
    """Return the hash of a page's content, and the leaf if the content is a single leaf."""
    top = _LoadedPage(encode_page(page)).top()
    if len(top) == _LEAF_BYTES:
        return top[40:], Leaf(top[:32], int.from_bytes(top[32:40], "big"), top[40:])
    return top or EMPTY, None


def children_of(body: bytes) -> dict[int, int]:
    """Return the page numbers of a page's children, by slot. The leaves are skipped, which makes this fast."""
    used, children = int.from_bytes(body[:2], "big"), int.from_bytes(body[2:4], "big")
    out = {}
    rest = children
    while rest:
        bit = rest & -rest
        rest ^= bit
        before = bit - 1  # the lower slots
        leaves = (used & ~children & before).bit_count()
        end = 4 + leaves * _LEAF_BYTES + ((children & before).bit_count() + 1) * CHILD_BYTES
        out[bit.bit_length() - 1] = int.from_bytes(body[end - 8 : end], "big")
    return out


def page_items(body: bytes) -> tuple[bytes, list[bytes]]:
    """Return the hash of a page's content, and the bytes of its used slots; CHILD_BYTES long are those of children.

    Raises:
        ValueError: It is too short or too long.
    """
    page = _LoadedPage(body)
    return page.top()[-32:] or EMPTY, page.items()


# Updates work on the encoded slots of a page, and distinguish a leaf, a child and an empty slot by their lengths. So a
# page that is read and written again creates no object for each of its slots.

#: The size of a leaf (path, number, hash) and of a child (hash, page number).
_LEAF_BYTES, CHILD_BYTES = 72, 40
#: The bytes of a page without items.
_NO_ITEMS = bytes(4)
#: Marks a node that must be recomputed because something below it has changed.
_STALE = b"stale"


def _slot_bytes(item: Slot) -> bytes:
    """Encode one slot."""
    if item is None:
        return b""
    if isinstance(item, Child):
        return item.hash + item.page.to_bytes(8, "big")
    return item.path + item.number.to_bytes(8, "big") + item.hash


def _maps(used: int, children: int) -> bytes:
    """Encode the two maps at the start of a page."""
    return (used << 16 | children).to_bytes(4, "big")


def _items(body: bytes) -> list[tuple[int, bytes]]:
    """Return the used slots of a page's bytes. Raise ValueError if the length does not match the maps."""
    used, children = int.from_bytes(body[:2], "big"), int.from_bytes(body[2:4], "big")
    out = []
    at, rest = 4, used
    while rest:
        bit = rest & -rest
        rest ^= bit
        end = at + (CHILD_BYTES if children & bit else _LEAF_BYTES)
        out.append((bit.bit_length() - 1, body[at:end]))
        at = end
    if at != len(body) or children & ~used:
        raise ValueError("a page of the Merkle trie has the wrong length")
    return out


def update(root: Root, changes: Mapping[str, Live | None], pages: Pages) -> Root:
    """Return the root after `changes`, which maps each id to its new live version, or to None to remove the id.

    Cost:
        O(log n) pages read and written for each change; a batch shares the pages near the root, and reads those of a
        level together.
    """
    return Trie(root).update(changes, pages)


class Trie:
    """A trie that is updated repeatedly. Its pages near the root stay loaded, so the next update reads fewer.

    If an update fails, or what it wrote is rolled back, discard the trie: it refers to pages that are not stored.

    Args:
        root: The root to start from.
        unstored: What is live at this root, if it has no stored pages: the first update stores all of it.

    Attributes:
        root: The newest root.
        replaced: The numbers of the pages of the previous root that the newest one does not have.
    """

    def __init__(self, root: Root, unstored: Mapping[str, Live] | None = None) -> None:
        self.root = root
        self.replaced: list[int] = []
        self._top: _LoadedPage | None = None
        self._unstored = unstored

    def update(self, changes: Mapping[str, Live | None], pages: Pages) -> Root:
        """Apply `changes` as the function `update` does, starting from the current root."""
        self.replaced = []
        if self._unstored is not None:
            # By path, as a log can have an id in one place and what it was redacted to in another.
            paths = {path_in_log(each) for each in changes}
            others = {each: live for each, live in self._unstored.items() if path_in_log(each) not in paths}
            changes, self._unstored, self.root = {**others, **changes}, None, Root()
        if not changes:
            return self.root
        if self.root.page:
            self.replaced.append(self.root.page)
        if self._top is None:
            self._top = _LoadedPage(pages.node(self.root.page) if self.root.page else _NO_ITEMS)
        leaves = []
        for record_id, live in changes.items():
            path = path_in_log(record_id)
            if live is None:
                leaves.append(path)
            else:
                version, number = live
                leaves.append(path + number.to_bytes(8, "big") + leaf_hash_at(path, version))
        if len(leaves) > 1:
            _load_paths(self._top, leaves, pages)
        self._top.put(leaves, 0, pages, self.replaced)
        top = self._top.top()
        if top:
            self.root = Root(top[-32:], pages.add_node(self._top.body()))
        else:
            self.root = Root()
        return self.root


def _load_paths(top: _LoadedPage, leaves: Sequence[bytes], pages: Pages) -> None:
    """Load the pages on the paths of some leaves below a page, each level at a time: `put` then finds them there."""
    level: list[tuple[_LoadedPage, Sequence[bytes]]] = [(top, leaves)]
    depth = 0
    while level:
        below: list[tuple[_LoadedPage, Sequence[bytes]]] = []
        missing: list[tuple[_LoadedPage, int, int, Sequence[bytes]]] = []
        for page, some in level:
            for slot, its in _by_slot(some, depth).items():
                loaded = page.below.get(slot)
                if loaded is not None:
                    below.append((loaded, its))
                elif number := page.child(slot):
                    missing.append((page, slot, number, its))
        bodies = pages.nodes([number for _, _, number, _ in missing]) if missing else {}
        for page, slot, number, some in missing:
            page.below[slot] = loaded = _LoadedPage(bodies[number])
            below.append((loaded, some))
        level, depth = below, depth + 1


def _by_slot(leaves: Sequence[bytes], depth: int) -> dict[int, list[bytes]]:
    """Group leaves, or their paths, by the slot of a page at this depth."""
    byte, shift = depth >> 1, 0 if depth & 1 else 4
    out: dict[int, list[bytes]] = {}
    for leaf in leaves:
        slot = leaf[byte] >> shift & 15
        if slot in out:
            out[slot].append(leaf)
        else:
            out[slot] = [leaf]
    return out


class _LoadedPage:
    """A page together with its inner nodes, so that changing one slot costs that slot's bytes and four hashes.

    Attributes:
        below: The loaded pages among its children, by slot.
    """

    __slots__ = ("_children", "_nodes", "_slots", "_used", "below")

    def __init__(self, body: bytes) -> None:
        self._slots = [b""] * 16
        # The binary trie of the page: node `n` has the sides `2n` and `2n + 1`; 16 to 31 are the slots. A node is
        # empty, the single leaf below it, or its hash.
        self._nodes = [_STALE] * 16 + [b""] * 16
        self._used, self._children = int.from_bytes(body[:2], "big"), int.from_bytes(body[2:4], "big")
        self.below: dict[int, _LoadedPage] = {}
        for slot, item in _items(body):
            self._slots[slot] = item
            self._nodes[16 + slot] = item[:32] if len(item) == CHILD_BYTES else item

    def _set(self, slot: int, item: bytes) -> None:
        bit = 1 << slot
        self._slots[slot] = item
        if len(item) == CHILD_BYTES:
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
        while nodes[at := at >> 1] is not _STALE:  # stops at node 0, which is unused and always stale
            nodes[at] = _STALE

    def body(self) -> bytes:
        """Return the page's bytes, as `encode_page` does."""
        return _maps(self._used, self._children) + b"".join(self._slots)

    def items(self) -> list[bytes]:
        """Return the bytes of the used slots."""
        return [slot for slot in self._slots if slot]

    def top(self) -> bytes:
        """Return the page's top node: empty, a single leaf, or a hash."""
        # Most of the cost of an update is here, so this calls no function but the hash.
        nodes, sha256 = self._nodes, hashlib.sha256
        for at in range(15, 0, -1):
            if nodes[at] is not _STALE:
                continue
            zero, one = nodes[2 * at], nodes[2 * at + 1]
            if zero:
                if one:  # the last 32 bytes of a leaf are its hash, too
                    nodes[at] = sha256(_NODE + zero[-32:] + one[-32:]).digest()
                else:
                    nodes[at] = zero if len(zero) == _LEAF_BYTES else sha256(_NODE + zero + EMPTY).digest()
            elif one and len(one) != _LEAF_BYTES:
                nodes[at] = sha256(_NODE + EMPTY + one).digest()
            else:
                nodes[at] = one
        return nodes[1]

    def child(self, slot: int) -> int:
        """Return the number of the page below a slot; 0 if there is none."""
        item = self._slots[slot]
        return int.from_bytes(item[32:], "big") if len(item) == CHILD_BYTES else 0

    def put(self, leaves: Sequence[bytes], depth: int, pages: Pages, replaced: list[int]) -> None:
        """Set leaves (path, number, hash) and remove leaves (path only), here and in new pages below.

        The numbers of the pages that the new ones replace are appended to `replaced`.
        """
        if len(leaves) == 1:  # most writes are of one record
            by_slot = {leaves[0][depth >> 1] >> (0 if depth & 1 else 4) & 15: list(leaves)}
        else:
            by_slot = _by_slot(leaves, depth)
        for slot, changed in by_slot.items():
            old = self._slots[slot]
            if len(old) == CHILD_BYTES:
                number = int.from_bytes(old[32:], "big")
                replaced.append(number)
                inner = self.below.pop(slot, None)
                if inner is None:
                    inner = _LoadedPage(pages.node(number))
                inner.put(changed, depth + 1, pages, replaced)
            else:
                if old:
                    same = [leaf for leaf in changed if leaf.startswith(old[:32])]
                    changed = [*(same or (old,)), *(leaf for leaf in changed if leaf not in same)]
                present = [leaf for leaf in changed if len(leaf) == _LEAF_BYTES]
                if len(present) <= 1:
                    self._set(slot, present[0] if present else b"")
                    continue
                inner = _LoadedPage(_NO_ITEMS)
                inner.put(present, depth + 1, pages, replaced)
            self._set(slot, self._child_slot(slot, inner, depth, pages))

    def _child_slot(self, slot: int, inner: _LoadedPage, depth: int, pages: Pages) -> bytes:
        """Store a new page below a slot and return the slot's bytes."""
        top = inner.top()
        if len(top) != 32:  # empty, or a single leaf, which needs no page
            return top
        if depth < _LOADED_LEVELS:
            self.below[slot] = inner
        return top + pages.add_node(inner.body()).to_bytes(8, "big")


def check(root: Root, live: Mapping[str, Live], pages: Pages) -> str:
    """Return what is wrong with a stored trie that should contain exactly the ids of `live`; "" if nothing is.

    Reads every page, hashes it again and compares the result with the hash recorded in its parent.
    """
    found: dict[bytes, Leaf] = {}
    problem = _walk(root, pages.node, found, "")
    if problem:
        return problem
    expected = {path_of(each): (number, leaf_hash(each, version)) for each, (version, number) in live.items()}
    missing = len(expected.keys() - found.keys())
    if missing:
        return f"{missing} records are not in the Merkle trie"
    extra = len(found.keys() - expected.keys())
    if extra:
        return f"the Merkle trie has {extra} leaves without a record"
    wrong = sum(found[path][1:] != leaf for path, leaf in expected.items())
    if wrong:
        return f"{wrong} leaves of the Merkle trie belong to other versions"
    # All pages agree with each other and contain the right leaves. This verifies that they also have the right shape.
    versions = {record_id: version for record_id, (version, _) in live.items()}
    return "" if root_of(versions) == root.hash else "the Merkle trie does not have the shape that its leaves determine"


def _walk(child: Root | Child, node: Callable[[int], bytes], found: dict[bytes, Leaf], prefix: str) -> str:
    """Read a page and those below it into `found`; return the first problem. `prefix`: the slots above it, in hex."""
    if not child.page:
        return "" if child.hash == EMPTY else "the first page of the Merkle trie is missing"
    if len(prefix) > _MAX_PAGES:
        return "the Merkle trie has a loop"
    try:
        page = decode_page(node(child.page))
    except (ValueError, LookupError):
        return f"page {child.page} of the Merkle trie is missing or cannot be read"
    if page_hash(page)[0] != child.hash:
        return f"page {child.page} of the Merkle trie does not have the hash that its parent states"
    for slot, item in enumerate(page):
        if isinstance(item, Leaf):
            # The hashes do not cover this: a single leaf below a node gives the same hash from any slot there.
            if not item.path.hex().startswith(f"{prefix}{slot:x}"):
                return f"page {child.page} of the Merkle trie has a leaf in the wrong slot"
            found[item.path] = item
        elif item is not None:
            problem = _walk(item, node, found, f"{prefix}{slot:x}")
            if problem:
                return problem
    return ""


def root_of(versions: Mapping[str, bytes]) -> bytes:
    """Return the root hash of id -> version, computed directly from the definition.

    Slow but simple: the result of `update` must always equal it.
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
