"""The way down the trie leads to what the definition of the root says, and no damaged page is passed over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.ledger.merkle import (
    EMPTY,
    Child,
    Live,
    Root,
    decode_page,
    encode_page,
    leaf_hash,
    node_hash,
    path_of,
    update,
)
from recollect.ledger.proofs import BrokenTrieError, descend


class Kept:
    """Pages in a dict."""

    def __init__(self) -> None:
        self.pages: dict[int, bytes] = {}

    def node(self, page: int) -> bytes:
        return self.pages[page]

    def nodes(self, pages: Sequence[int]) -> dict[int, bytes]:
        return {page: self.node(page) for page in pages}

    def add_node(self, body: bytes) -> int:
        self.pages[len(self.pages) + 1] = body
        return len(self.pages)


def version(number: int) -> bytes:
    return bytes([number]) * 32


def folded(path: bytes, siblings: tuple[bytes, ...], end: bytes) -> bytes:
    bits = f"{int.from_bytes(path):0256b}"
    for bit, sibling in reversed(list(zip(bits, siblings, strict=False))):
        end = node_hash(sibling, end) if bit == "1" else node_hash(end, sibling)
    return end


def lives(versions: Mapping[str, bytes | None]) -> dict[str, Live | None]:
    return {each: None if digest is None else Live(digest, 1) for each, digest in versions.items()}


ids = st.integers(0, 400).map(str)


@given(
    histories=st.lists(st.dictionaries(ids, st.none() | st.integers(0, 3).map(version), max_size=60), max_size=4),
    sought=st.lists(ids, max_size=20),
)
def test_the_way_ends_at_the_leaf_of_an_id_or_at_what_is_in_its_place(
    histories: list[dict[str, bytes | None]], sought: list[str]
) -> None:
    root, pages, live = Root(), Kept(), dict[str, bytes]()
    for changes in histories:
        root = update(root, lives(changes), pages)
        for record_id, each in changes.items():
            if each is None:
                live.pop(record_id, None)
            else:
                live[record_id] = each
    for record_id in [*live, *sought]:
        path = path_of(record_id)
        found = descend(root, path, pages.node)
        end = EMPTY if found.leaf is None else found.leaf.hash
        assert folded(path, found.siblings, end) == root.hash
        assert not found.siblings or found.siblings[-1] != EMPTY  # a single leaf below a node is pulled up
        if record_id in live:
            assert found.leaf is not None
            assert (found.leaf.path, found.leaf.hash) == (path, leaf_hash(record_id, live[record_id]))
        else:
            assert found.leaf is None or found.leaf.path != path
            beginning = f"{int.from_bytes(path):0256b}"[: len(found.siblings)]
            assert found.leaf is None or f"{int.from_bytes(found.leaf.path):0256b}".startswith(beginning)


def with_another_hash(body: bytes) -> Iterator[bytes]:
    """The page with one bit of the hash of each slot changed."""
    page = decode_page(body)
    for slot, item in enumerate(page):
        if item is not None:
            other = item._replace(hash=bytes([item.hash[0] ^ 1]) + item.hash[1:])
            yield encode_page([*page[:slot], other, *page[slot + 1 :]])


def test_a_damaged_page_is_noticed() -> None:
    pages = Kept()
    root = update(Root(), lives({str(number): version(1) for number in range(400)}), pages)
    path = path_of("7")
    first = pages.pages[root.page]
    below = decode_page(first)[path[0] >> 4]
    assert isinstance(below, Child)
    second = pages.pages[below.page]
    for place, body in (
        (root.page, b""),
        (root.page, first[:-1]),
        (root.page, second),
        (below.page, first),
        (below.page, encode_page([None] * 16)),
        *((below.page, body) for body in with_another_hash(second)),
    ):
        damaged = Kept()
        damaged.pages = {**pages.pages, place: body}
        with pytest.raises(BrokenTrieError):
            descend(root, path, damaged.node)


def test_a_page_that_leads_to_itself_is_noticed() -> None:
    with pytest.raises(BrokenTrieError):
        descend(Root(b"r" * 32, 1), path_of("a"), lambda page: encode_page([Child(b"r" * 32, 1)] * 16))
