"""The log tree is that of RFC 9162, in memory and in tiles."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.ledger.log_tiles import TILE_SIZE, CompleteTile, LostTileError, TiledTree
from recollect.ledger.log_tree import (
    EMPTY_TREE,
    Subtree,
    consistency_path,
    head_of,
    inclusion_path,
    leaf_of,
    tree_hash,
    tree_of_inclusion,
    trees_of_consistency,
)

# The published vectors of certificate transparency: leaves, tree hashes of the first 0 to 8, and paths.

LEAVES = [
    leaf_of(bytes.fromhex(each))
    for each in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
TREES = """
e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d
fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125
aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77
d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7
4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4
76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef
ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c
5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328
""".split()
#: (index, size) -> path.
INCLUSION = {
    (0, 1): "",
    (0, 8): "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7 "
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e "
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    (5, 8): "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b "
    "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0 "
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    (2, 3): "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    (1, 5): "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d "
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e "
    "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
}
#: (old size, new size) -> path.
CONSISTENCY = {
    (1, 1): "",
    (1, 8): "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7 "
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e "
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    (6, 8): "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a "
    "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0 "
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    (2, 5): "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e "
    "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
}


# The definitions of RFC 9162 once more, on lists: MTH, PATH and SUBPROOF.


def node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def split(leaves: Sequence[bytes]) -> int:
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return k


def mth(leaves: Sequence[bytes]) -> bytes:
    if len(leaves) <= 1:
        return leaves[0] if leaves else hashlib.sha256(b"").digest()
    k = split(leaves)
    return node(mth(leaves[:k]), mth(leaves[k:]))


def path(m: int, leaves: Sequence[bytes]) -> list[bytes]:
    if len(leaves) == 1:
        return []
    k = split(leaves)
    return [*path(m, leaves[:k]), mth(leaves[k:])] if m < k else [*path(m - k, leaves[k:]), mth(leaves[:k])]


def subproof(m: int, leaves: Sequence[bytes], known: bool = True) -> list[bytes]:
    if m == len(leaves):
        return [] if known else [mth(leaves)]
    k = split(leaves)
    if m <= k:
        return [*subproof(m, leaves[:k], known), mth(leaves[k:])]
    return [*subproof(m - k, leaves[k:], False), mth(leaves[:k])]


def plain(leaves: Sequence[bytes]) -> Subtree:
    return lambda level, index: mth(leaves[index << level : (index + 1) << level])


def some_leaves(count: int) -> list[bytes]:
    return [leaf_of(number.to_bytes(4, "big")) for number in range(count)]


LONG = some_leaves(600)


class TestPublishedVectors:
    @pytest.mark.parametrize("size", range(9))
    def test_the_tree_hashes(self, size: int) -> None:
        assert tree_hash(plain(LEAVES), size).hex() == TREES[size] == mth(LEAVES[:size]).hex()

    @pytest.mark.parametrize(("index", "size"), INCLUSION)
    def test_the_inclusion_paths(self, index: int, size: int) -> None:
        found = inclusion_path(plain(LEAVES), index, size)
        assert [each.hex() for each in found] == INCLUSION[index, size].split()
        tree = tree_of_inclusion(LEAVES[index], index, size, found)
        assert tree is not None
        assert tree.hex() == TREES[size]

    @pytest.mark.parametrize(("old", "new"), CONSISTENCY)
    def test_the_consistency_paths(self, old: int, new: int) -> None:
        found = consistency_path(plain(LEAVES), old, new)
        assert [each.hex() for each in found] == CONSISTENCY[old, new].split()
        if old < new:
            trees = trees_of_consistency(old, new, bytes.fromhex(TREES[old]), found)
            assert trees == (bytes.fromhex(TREES[old]), bytes.fromhex(TREES[new]))


class TestAgainstTheDefinition:
    @given(size=st.integers(0, 70))
    def test_the_tree_hash_of_any_size(self, size: int) -> None:
        assert tree_hash(plain(LONG), size) == mth(LONG[:size])

    @given(data=st.data(), size=st.integers(1, 300))
    def test_an_inclusion_path_leads_from_its_leaf_to_the_tree_and_no_other_leads_there(
        self, data: st.DataObject, size: int
    ) -> None:
        index, leaves = data.draw(st.integers(0, size - 1)), LONG[:size]
        found, tree = inclusion_path(plain(leaves), index, size), mth(leaves)
        assert found == path(index, leaves)
        assert tree_of_inclusion(leaves[index], index, size, found) == tree
        assert tree_of_inclusion(LONG[-1], index, size, found) != tree
        assert tree_of_inclusion(leaves[index], index, size, [*found, LONG[0]]) is None
        assert tree_of_inclusion(leaves[index], size, size, found) is None
        for at in range(len(found)):
            assert tree_of_inclusion(leaves[index], index, size, found[:at] + found[at + 1 :]) != tree
            assert tree_of_inclusion(leaves[index], index, size, [*found[:at], LONG[-1], *found[at + 1 :]]) != tree

    @given(data=st.data(), new=st.integers(2, 300))
    def test_a_consistency_path_leads_to_both_trees_and_no_other_does(self, data: st.DataObject, new: int) -> None:
        old = data.draw(st.integers(1, new - 1))
        found, trees = consistency_path(plain(LONG), old, new), (mth(LONG[:old]), mth(LONG[:new]))
        assert found == subproof(old, LONG[:new])
        assert trees_of_consistency(old, new, trees[0], found) == trees
        assert trees_of_consistency(old, new, trees[0], [*found, LONG[0]]) is None
        assert trees_of_consistency(new, old, trees[0], found) is None
        for at in range(len(found)):
            assert trees_of_consistency(old, new, trees[0], found[:at] + found[at + 1 :]) != trees
            changed = [*found[:at], LONG[-1], *found[at + 1 :]]
            assert trees_of_consistency(old, new, trees[0], changed) != trees

    def test_nothing_is_needed_for_what_is_the_same_or_empty(self) -> None:
        assert consistency_path(plain(LONG), 0, 5) == consistency_path(plain(LONG), 5, 5) == []
        assert tree_hash(plain([]), 0) == EMPTY_TREE == hashlib.sha256(b"").digest()

    def test_a_head_binds_the_size(self) -> None:
        expected = hashlib.sha256(b"recollect.log.1\0" + bytes(7) + b"\5" + LONG[0]).digest()
        assert head_of(5, LONG[0]) == expected != head_of(6, LONG[0])


class Saved:
    """Tiles in a dict."""

    def __init__(self) -> None:
        self.tiles: dict[tuple[int, int], bytes] = {}
        self.reads = 0

    def read(self, level: int, number: int) -> bytes | None:
        self.reads += 1
        return self.tiles.get((level, number))

    def take(self, completed: list[CompleteTile]) -> None:
        self.tiles.update({(tile.level, tile.number): tile.hashes for tile in completed})
        completed.clear()


def filled(leaves: Sequence[bytes]) -> tuple[TiledTree, Saved]:
    saved = Saved()
    tree = TiledTree(saved.read)
    for leaf in leaves:
        tree.append(leaf)
    saved.take(tree.completed)
    return tree, saved


class TestTiles:
    @pytest.mark.parametrize("size", [0, 1, 2, 255, 256, 257, 511, 512, 599, 600])
    def test_a_tree_in_tiles_has_the_same_hashes_and_paths(self, size: int) -> None:
        tree, _ = filled(LONG)
        assert tree.tree_hash(size) == mth(LONG[:size])
        for index in {0, 1, size // 2, size - 1} & set(range(size)):
            assert inclusion_path(tree.subtree, index, size) == path(index, LONG[:size])
        for old in {1, 2, size // 2, size - 1} & set(range(1, size)):
            assert consistency_path(tree.subtree, old, size) == subproof(old, LONG[:size])

    def test_a_tree_with_three_levels_of_tiles_does_too(self) -> None:
        leaves = some_leaves(TILE_SIZE**2 + 300)
        tree, saved = filled(leaves)
        assert set(saved.tiles) == {(0, number) for number in range(TILE_SIZE + 1)} | {(1, 0)}
        for size in (TILE_SIZE**2 - 1, TILE_SIZE**2, TILE_SIZE**2 + 1, len(leaves)):
            assert tree.tree_hash(size) == mth(leaves[:size])
            for index in (0, 40_000, size - 1):
                found = inclusion_path(tree.subtree, index, size)
                assert tree_of_inclusion(leaves[index], index, size, found) == mth(leaves[:size])

    def test_a_proof_reads_few_tiles(self) -> None:
        leaves = some_leaves(TILE_SIZE**2 + 300)
        tree, saved = filled(leaves)
        tree._cached.clear()
        inclusion_path(tree.subtree, 40_000, len(leaves))
        assert saved.reads == 2  # its leaves, and the hashes of all tiles of leaves

    def test_a_missing_or_damaged_tile_is_noticed(self) -> None:
        tree, saved = filled(LONG)
        tree._cached.clear()
        whole = saved.tiles.pop((0, 1))
        with pytest.raises(LostTileError, match="missing"):
            inclusion_path(tree.subtree, 300, 600)
        for damaged in (whole[:-1], bytes([whole[0] ^ 1]) + whole[1:], whole[::-1]):
            saved.tiles[0, 1] = damaged
            with pytest.raises(LostTileError):
                inclusion_path(tree.subtree, 300, 600)
        saved.tiles[0, 1] = whole
        assert inclusion_path(tree.subtree, 300, 600) == path(300, LONG)

    def test_few_tiles_are_cached(self) -> None:
        tree, _ = filled(some_leaves(50 * TILE_SIZE))
        for index in range(0, 50 * TILE_SIZE, TILE_SIZE):
            inclusion_path(tree.subtree, index, tree.size)
        assert len(tree._cached) == 32
        assert tree.nbytes < 2_000_000
