"""The leaves and the trie pages of formats 1 and 2, which migrations and rescues read.

There, a leaf was the hash of the id and the version, and a page did not state the number of a version.
"""

from __future__ import annotations

import hashlib

from recollect.ledger.merkle import Child, Leaf, Page
from recollect.records.codec import length_prefixed

_LEAF = b"recollect.leaf.1\0"
_LEAF_BYTES, _CHILD_BYTES = 64, 40


def former_leaf(record_id: str, path: bytes, version: bytes) -> bytes:
    """Return the leaf which states that this id is live in this version."""
    return hashlib.sha256(_LEAF + length_prefixed(record_id.encode("utf-8")) + version).digest()


def decode_former_page(body: bytes) -> Page:
    """Decode a page. The numbers of versions are 0.

    Raises:
        ValueError: It is too short or too long.
    """
    used, children = int.from_bytes(body[:2], "big"), int.from_bytes(body[2:4], "big")
    page: Page = [None] * 16
    at = 4
    for slot in range(16):
        if not used >> slot & 1:
            continue
        is_child = children >> slot & 1
        item = body[at : at + (_CHILD_BYTES if is_child else _LEAF_BYTES)]
        at += len(item)
        first, second = item[:32], item[32:]
        page[slot] = Child(first, int.from_bytes(second, "big")) if is_child else Leaf(first, 0, second)
    expected = 4 + _LEAF_BYTES * used.bit_count() - (_LEAF_BYTES - _CHILD_BYTES) * children.bit_count()
    if len(body) != expected or children & ~used:
        raise ValueError("a page of the Merkle trie has the wrong length")
    return page
