"""The Merkle trie: its pages always give the root that the definition gives, and no damage passes unseen."""

from __future__ import annotations

import hashlib
import hmac
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.indexes import strategies as own

from recollect.ledger import merkle
from recollect.ledger.merkle import (
    EMPTY,
    Child,
    Leaf,
    Live,
    Page,
    Root,
    decode_page,
    encode_page,
    leaf_hash,
    node_hash,
    path_of,
    root_of,
    version_hash,
)

# The definition once more, with hashlib and nothing else.


def sha(domain: str, *parts: bytes) -> bytes:
    return hashlib.sha256(f"recollect.{domain}.1\0".encode() + b"".join(parts)).digest()


def plain_root(leaves: dict[str, bytes]) -> bytes:
    """The root over bit strings of paths and the leaves at their places."""
    if len(leaves) <= 1:
        return next(iter(leaves.values()), sha("empty"))
    sides = [{path[1:]: leaf for path, leaf in leaves.items() if path[0] == bit} for bit in "01"]
    return sha("node", plain_root(sides[0]), plain_root(sides[1]))


def independent_root(versions: dict[str, bytes]) -> bytes:
    leaves = {}
    for record_id, version in versions.items():
        raw = record_id.encode()
        path = sha("path", raw)
        leaves[f"{int.from_bytes(path):0256b}"] = hashlib.sha256(b"recollect.leaf.2\0" + path + version).digest()
    return plain_root(leaves)


class Kept:
    """Pages in a dict."""

    def __init__(self) -> None:
        self.pages: dict[int, bytes] = {}
        self.read = 0
        self.levels: list[int] = []  # how many pages each call of `nodes` asked for

    def node(self, place: int) -> bytes:
        self.read += 1
        return self.pages[place]

    def nodes(self, pages: Sequence[int]) -> dict[int, bytes]:
        self.levels.append(len(pages))
        return {page: self.pages[page] for page in pages}

    def add_node(self, body: bytes) -> int:
        self.pages[len(self.pages) + 1] = body
        return len(self.pages)


def version(number: int) -> bytes:
    return hashlib.sha256(number.to_bytes(8, "big")).digest()


def lives(versions: Mapping[str, bytes | None]) -> dict[str, Live | None]:
    """The versions with numbers, which no hash covers."""
    return {each: None if digest is None else Live(digest, digest[0] + 1) for each, digest in versions.items()}


def update(root: Root, versions: Mapping[str, bytes | None], pages: Kept) -> Root:
    return merkle.update(root, lives(versions), pages)


def check(root: Root, versions: Mapping[str, bytes], pages: Kept) -> str:
    return merkle.check(root, {each: live for each, live in lives(versions).items() if live is not None}, pages)


def built(versions: dict[str, bytes], pages: Kept) -> Root:
    return update(Root(), versions, pages)


#: Ids of which some share 44 leading bits of their path (found by trying six million), and ids of odd shapes.
CLOSE = ["id-1513772", "id-601722", "id-5230023", "id-3437143", "id-5614634", "id-4359650"]
ids = st.sampled_from([*CLOSE, "", "a", "é", "x" * 127, "x" * 128, "x" * 255, *(f"r{number}" for number in range(12))])
histories = st.lists(st.dictionaries(ids, st.none() | st.integers(0, 3).map(version), max_size=8), max_size=8)


class TestRoot:
    def test_the_hashes_are_those_pinned_here(self) -> None:
        # Anyone can make these again: SHA-256 over "recollect.<domain>.1", NUL, and the parts.
        assert EMPTY.hex() == hashlib.sha256(b"recollect.empty.1\x00").hexdigest()
        assert path_of("a") == hashlib.sha256(b"recollect.path.1\x00a").digest()
        path = hashlib.sha256(b"recollect.path.1\0a").digest()
        assert leaf_hash("a", b"v" * 32) == hashlib.sha256(b"recollect.leaf.2\0" + path + b"v" * 32).digest()
        assert (
            node_hash(b"0" * 32, b"1" * 32) == hashlib.sha256(b"recollect.node.1\x00" + b"0" * 32 + b"1" * 32).digest()
        )
        assert EMPTY.hex() == "6607226900eba6d68a68582377b57661f5dca5f6e460b03292860460d3e96ffa"
        assert (
            root_of({"a": version(1), "b": version(2), "c": version(3)}).hex()
            == "196dc98256b41ed567a23d88043b3ebfd4f414e18e39a6ad2636812c60ee5d92"
        )

    @pytest.mark.parametrize("key", [merkle.PUBLIC_KEY, b"a private key"])
    def test_a_version_is_the_hash_of_a_salt_and_the_payload(self, key: bytes) -> None:
        payload = b"payload"
        salt = hmac.new(key, b"recollect.salt.1\x00\x01a" + hashlib.sha256(payload).digest(), "sha256").digest()
        assert version_hash("a", payload, key) == sha("version", salt, payload)

    @given(st.binary(max_size=200), st.text(max_size=300), st.binary(max_size=200))
    def test_a_salt_is_the_hmac_of_any_key(self, key: bytes, record_id: str, payload: bytes) -> None:
        raw = record_id.encode()
        size = bytes([len(raw)]) if len(raw) < 128 else bytes([len(raw) & 127 | 128, len(raw) >> 7])
        content = b"recollect.salt.1\0" + size + raw + hashlib.sha256(payload).digest()
        salt = hmac.new(key, content, "sha256").digest()
        assert version_hash(record_id, payload, key) == sha("version", salt, payload)

    def test_a_history_writes_the_pages_pinned_here_in_this_order(self) -> None:
        rng, pages = random.Random(1), Kept()
        trie = merkle.Trie(Root())
        for size in (1, 2, 300, 40, 1, 1, 1000, 3, 200):
            names = [f"id-{rng.randrange(1500)}" for _ in range(size)]
            changes = {name: None if rng.random() < 0.3 else version(rng.randrange(100)) for name in names}
            trie.update(lives(changes), pages)
        bodies = hashlib.sha256(b"".join(pages.pages.values())).hexdigest()
        assert (len(pages.pages), bodies[:16], trie.root.hash.hex()[:16]) == (
            497,
            "fc6eabe4bbd347b9",
            "74894b36cace884b",
        )

    def test_a_version_depends_on_the_id_the_payload_and_the_key(self) -> None:
        made = [
            version_hash("a", b"p"),
            version_hash("b", b"p"),
            version_hash("a", b"q"),
            version_hash("a", b"p", b"other"),
            version_hash("", b"ap"),
        ]
        assert len(set(made)) == len(made)

    def test_the_root_of_nothing_of_one_and_of_two(self) -> None:
        assert root_of({}) == EMPTY == Root().hash
        one = leaf_hash("a", version(1))
        assert root_of({"a": version(1)}) == one  # at whatever depth
        first, second = sorted(["a", "b"], key=path_of)
        paths = [f"{int.from_bytes(path_of(each)):0256b}" for each in (first, second)]
        parting = next(bit for bit in range(256) if paths[0][bit] != paths[1][bit])
        root = node_hash(leaf_hash(first, version(1)), leaf_hash(second, version(1)))
        for bit in reversed(paths[0][:parting]):
            root = node_hash(EMPTY, root) if bit == "1" else node_hash(root, EMPTY)
        assert root_of({"a": version(1), "b": version(1)}) == root

    def test_close_paths_share_44_bits_and_have_a_root_of_their_own(self) -> None:
        for one, other in zip(CLOSE[::2], CLOSE[1::2], strict=True):
            assert (int.from_bytes(path_of(one)) ^ int.from_bytes(path_of(other))).bit_length() == 256 - 44
            versions = {one: version(1), other: version(2)}
            pages = Kept()
            root = built(versions, pages)
            assert root.hash == independent_root(versions)
            assert check(root, versions, pages) == ""
            # With one of the two gone nothing of the long way remains.
            alone = update(root, {other: None}, pages)
            assert alone.hash == leaf_hash(one, version(1))
            assert sum(slot is not None for slot in decode_page(pages.node(alone.page))) == 1

    def test_paths_that_part_at_the_very_last_bit_have_a_root(self, monkeypatch: pytest.MonkeyPatch) -> None:
        paths = {"even": b"\xaa" * 31 + b"\x00", "odd": b"\xaa" * 31 + b"\x01", "far": b"\x55" * 32}
        monkeypatch.setattr(merkle, "path_of", paths.__getitem__)
        versions = {record_id: version(number) for number, record_id in enumerate(paths)}
        pages = Kept()
        root = built(versions, pages)
        bits = {f"{int.from_bytes(paths[each]):0256b}": leaf_hash(each, versions[each]) for each in paths}
        assert root.hash == root_of(versions) == plain_root(bits)
        assert check(root, versions, pages) == ""
        for gone in paths:
            rest = {each: stored for each, stored in versions.items() if each != gone}
            assert update(root, {gone: None}, pages).hash == root_of(rest)

    @given(st.dictionaries(ids | own.names, st.integers(0, 9).map(version), max_size=40))
    def test_the_root_is_that_of_the_definition(self, versions: dict[str, bytes]) -> None:
        assert root_of(versions) == independent_root(versions)

    @given(histories)
    def test_after_any_history_the_pages_give_the_root_of_what_is_stored(
        self, history: list[dict[str, bytes | None]]
    ) -> None:
        pages, stored, root = Kept(), dict[str, bytes](), Root()
        past: list[tuple[Root, dict[str, bytes]]] = [(root, {})]
        for changes in history:
            root = update(root, changes, pages)
            for record_id, now in changes.items():
                if now is None:
                    stored.pop(record_id, None)
                else:
                    stored[record_id] = now
            assert root.hash == independent_root(stored)
            assert (root.page == 0) == (not stored)
            past.append((root, dict(stored)))
        for root, stored in past:  # what was written then is whole still
            assert check(root, stored, pages) == ""

    @given(st.dictionaries(ids | own.names, st.integers(0, 9).map(version), max_size=20), st.randoms())
    def test_the_order_of_writing_does_not_matter(self, versions: dict[str, bytes], order: random.Random) -> None:
        at_once = built(versions, Kept())
        pages, root = Kept(), Root()
        items = list(versions.items())
        order.shuffle(items)
        for record_id, now in items:
            if order.random() < 0.3:
                root = update(root, {record_id: version(99)}, pages)
            root = update(root, {record_id: now}, pages)
        for record_id in ("passer-by", "another"):
            if record_id not in versions:
                root = update(update(root, {record_id: version(1)}, pages), {record_id: None}, pages)
        assert root.hash == at_once.hash
        # Not only the root: the pages that are reached are the same, wherever they were put.
        assert contents(root, pages) == contents(at_once, _kept_of(versions))

    def test_any_difference_of_what_is_stored_shows_in_the_root(self) -> None:
        versions = {f"r{number}": version(number) for number in range(50)}
        roots = {root_of(versions)}
        for record_id in versions:
            roots.add(root_of({**versions, record_id: version(1000)}))
            roots.add(root_of({each: now for each, now in versions.items() if each != record_id}))
        roots.add(root_of({**versions, "more": version(1)}))
        roots.add(root_of({**versions, "r0": versions["r1"], "r1": versions["r0"]}))
        assert len(roots) == 103

    def test_no_change_is_the_same_root_and_writes_nothing(self) -> None:
        pages = Kept()
        root = built({"a": version(1)}, pages)
        stored = dict(pages.pages)
        assert update(root, {}, pages) is root
        assert update(Root(), {"a": None, "b": None}, pages) == Root()
        assert pages.pages == stored
        assert update(root, {"b": None}, pages).hash == root.hash


def contents(root: Root | Child, pages: Kept) -> list[object]:
    page = decode_page(pages.node(root.page)) if root.page else []
    return [contents(slot, pages) if isinstance(slot, Child) else slot for slot in page]


def _kept_of(versions: dict[str, bytes]) -> Kept:
    pages = Kept()
    built(versions, pages)
    return pages


class TestCost:
    def test_one_update_of_ten_thousand_leaves_touches_a_handful_of_pages(self) -> None:
        pages = Kept()
        versions = {f"record {number}": version(number) for number in range(10_000)}
        root = built(versions, pages)
        assert root.hash == independent_root(versions)
        for number in range(0, 10_000, 97):
            written, read = len(pages.pages), pages.read
            update(root, {f"record {number}": version(0)}, pages)
            assert len(pages.pages) - written <= 6
            assert pages.read - read <= 6
            written = len(pages.pages)
            update(root, {f"record {number}": None}, pages)
            assert len(pages.pages) - written <= 6
        written = len(pages.pages)
        update(root, {"new": version(0)}, pages)
        assert len(pages.pages) - written <= 6

    def test_a_batch_shares_the_pages_near_the_root(self) -> None:
        pages = Kept()
        versions = {f"record {number}": version(number) for number in range(10_000)}
        root = built(versions, pages)
        written = len(pages.pages)
        update(root, {f"record {number}": version(0) for number in range(1_000)}, pages)
        assert len(pages.pages) - written < 2 * 1_000


slots = st.one_of(
    st.none(),
    st.builds(
        Leaf, st.binary(min_size=32, max_size=32), st.integers(0, 2**64 - 1), st.binary(min_size=32, max_size=32)
    ),
    st.builds(Child, st.binary(min_size=32, max_size=32), st.integers(1, 2**64 - 1)),
)


class TestPages:
    @given(st.lists(slots, min_size=16, max_size=16))
    def test_a_page_comes_back_from_its_bytes(self, page: Page) -> None:
        body = encode_page(page)
        again = decode_page(body)
        assert again == page
        assert [type(slot) for slot in again] == [type(slot) for slot in page]
        for wrong in (body[:-1], body + b"\0", body[1:]):
            try:
                other = decode_page(wrong)
            except ValueError:
                continue
            assert encode_page(other) == wrong  # cut so that it is another page

    def test_the_bytes_are_two_bit_maps_and_the_slots_that_are_used(self) -> None:
        page: Page = [None] * 16
        page[0] = Leaf(b"p" * 32, 7, b"h" * 32)
        page[9] = Child(b"c" * 32, 258)
        leaf, child = b"p" * 32 + bytes(7) + b"\x07" + b"h" * 32, b"c" * 32 + bytes(6) + b"\x01\x02"
        assert encode_page(page) == b"\x02\x01" + b"\x02\x00" + leaf + child

    @given(st.binary(max_size=200))
    def test_any_bytes_are_refused_or_the_one_encoding_of_a_page(self, body: bytes) -> None:
        try:
            page = decode_page(body)
        except ValueError:
            return
        assert encode_page(page) == body


def damages(root: Root, pages: Kept) -> Iterator[tuple[str, Callable[[], None]]]:
    """Every way to change one byte of a page that is reached, and to lose one."""
    for place in reached(root, pages):
        body = pages.pages[place]

        def lose(place: int = place) -> None:
            del pages.pages[place]

        yield f"page {place} lost", lose
        for at in range(len(body)):

            def change(place: int = place, at: int = at, body: bytes = body) -> None:
                pages.pages[place] = body[:at] + bytes([body[at] ^ 1 << at % 8]) + body[at + 1 :]

            yield f"byte {at} of page {place} changed", change


def reached(root: Root | Child, pages: Kept) -> list[int]:
    out = [root.page]
    for slot in decode_page(pages.node(root.page)):
        if isinstance(slot, Child):
            out += reached(slot, pages)
    return out


class TestCheck:
    VERSIONS: ClassVar = {record_id: version(number) for number, record_id in enumerate([*CLOSE[:2], *"abcdefghij"])}

    def fresh(self) -> tuple[Root, Kept]:
        pages = Kept()
        root = built(self.VERSIONS, pages)
        assert check(root, self.VERSIONS, pages) == ""
        return root, pages

    def test_every_changed_byte_and_every_lost_page_is_found(self) -> None:
        root, pages = self.fresh()
        whole = dict(pages.pages)
        found = 0
        for what, damage in damages(root, pages):
            damage()
            assert check(root, self.VERSIONS, pages) != "", what
            pages.pages = dict(whole)
            found += 1
        assert found > 1_000
        assert check(root, self.VERSIONS, pages) == ""

    @pytest.mark.parametrize("body", [b"", b"\0\0", b"\xff" * 4, b"\0" * 4])
    def test_a_page_that_is_no_page_is_found(self, body: bytes) -> None:
        root, pages = self.fresh()
        pages.pages[root.page] = body
        assert f"page {root.page}" in check(root, self.VERSIONS, pages)

    def test_a_leaf_that_is_missing_is_distinguished_from_one_too_many_and_from_a_wrong_one(self) -> None:
        root, pages = self.fresh()
        more = {**self.VERSIONS, "more": version(1), "still more": version(1)}
        fewer = {record_id: stored for record_id, stored in self.VERSIONS.items() if record_id != "a"}
        other = {**self.VERSIONS, "b": version(99)}
        assert check(root, more, pages) == "2 records are not in the Merkle trie"
        assert check(root, fewer, pages) == "the Merkle trie has 1 leaves without a record"
        assert check(root, other, pages) == "1 leaves of the Merkle trie belong to other versions"

    def test_the_empty_root_holds_nothing(self) -> None:
        assert check(Root(), {}, Kept()) == ""
        assert check(Root(), {"a": version(1)}, Kept()) == "1 records are not in the Merkle trie"
        assert "first page of the Merkle trie is missing" in check(Root(version(1), 0), {}, Kept())

    def test_another_root_over_the_same_pages_is_found(self) -> None:
        root, pages = self.fresh()
        before = update(root, {"a": version(7)}, pages)
        assert "does not have the hash" in check(Root(before.hash, root.page), self.VERSIONS, pages)
        assert check(before, self.VERSIONS, pages) == "1 leaves of the Merkle trie belong to other versions"

    def test_pages_that_name_each_other_end_the_check(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pages = Kept()
        page: Page = [None] * 16
        page[3] = Child(version(1), 1)
        pages.add_node(encode_page(page))
        monkeypatch.setattr(merkle, "page_hash", lambda page: (version(1), None))  # as if SHA-256 were broken
        assert check(Root(version(1), 1), {}, pages) == "the Merkle trie has a loop"

    def test_a_leaf_moved_to_the_slot_beside_is_found(self) -> None:
        """A lone leaf has one hash wherever it stands in its page, but would not be found there again."""
        root, pages = self.fresh()
        moved = 0
        for place in reached(root, pages):
            body = pages.pages[place]
            page = decode_page(body)
            for slot, item in enumerate(page):
                if isinstance(item, Leaf) and page[slot ^ 1] is None:
                    other = list(page)
                    other[slot], other[slot ^ 1] = None, item
                    pages.pages[place] = encode_page(other)
                    assert merkle.page_hash(other) == merkle.page_hash(page)
                    assert "in the wrong slot" in check(root, self.VERSIONS, pages)
                    pages.pages[place] = body
                    moved += 1
        assert moved

    def test_leaves_at_wrong_places_are_found_though_every_hash_agrees(self) -> None:
        """As a store would have them that computes the trie wrongly, in all its pages alike."""
        pages = Kept()
        a, b = (Leaf(path_of(each), 1, leaf_hash(each, version(1))) for each in "ab")
        page: Page = [None] * 16
        page[path_of("a")[0] >> 4 ^ 1], page[path_of("b")[0] >> 4] = a, b
        digest, _ = merkle.page_hash(page)
        root = Root(digest, pages.add_node(encode_page(page)))
        assert check(root, {"a": version(1), "b": version(1)}, pages) != ""

    def test_a_page_of_one_leaf_where_the_leaf_itself_belongs_is_found(self) -> None:
        pages = Kept()
        inner: Page = [None] * 16
        inner[path_of("a")[0] & 15] = Leaf(path_of("a"), 1, leaf_hash("a", version(1)))
        outer: Page = [None] * 16
        outer[path_of("a")[0] >> 4] = Child(merkle.page_hash(inner)[0], pages.add_node(encode_page(inner)))
        root = Root(merkle.page_hash(outer)[0], pages.add_node(encode_page(outer)))
        assert check(root, {"a": version(1)}, pages) != ""


def test_a_batch_reads_the_pages_of_a_level_together() -> None:
    pages = Kept()
    root = update(Root(), {f"id {number}": version(number) for number in range(3000)}, pages)
    pages.levels.clear()
    pages.read = 0
    changed = {f"id {number}": version(number + 1) for number in range(0, 3000, 30)}
    assert update(root, changed, pages).hash == root_of(
        {f"id {number}": version(number + (number % 30 == 0)) for number in range(3000)}
    )
    assert pages.read == 1, "the page of the root"
    assert len(pages.levels) <= 4
    assert sum(pages.levels) > 100


@given(st.dictionaries(ids, st.integers(0, 9), max_size=12), st.dictionaries(ids, st.none() | st.integers(0, 9)))
def test_a_root_without_pages_is_stored_with_its_first_update(
    before: dict[str, int], changes: dict[str, int | None]
) -> None:
    stored = {each: version(number) for each, number in before.items()}
    changed = {each: None if number is None else version(number) for each, number in changes.items()}
    # The log that it is taken from has some ids redacted.
    unstored = {merkle.redacted_id(each) if number % 3 == 0 else each: stored[each] for each, number in before.items()}
    pages = Kept()
    trie = merkle.Trie(
        Root(root_of(stored)), {each: live for each, live in lives(unstored).items() if live is not None}
    )
    after = {each: digest for each, digest in {**stored, **changed}.items() if digest is not None}
    root = trie.update(lives(changed), pages)
    assert root.hash == root_of(after)
    assert check(root, after, pages) == ""
    assert trie.update({}, pages) == root
    assert trie.update(lives({"new": version(1)}), pages).hash == root_of({**after, "new": version(1)})
