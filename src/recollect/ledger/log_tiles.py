"""The log tree of a branch in tiles of 256 hashes, so that heads and proofs read a few of them.

A tile of level 0 has the leaves of 256 entries, and one of level n the hashes of 256 tiles of level n - 1. Tiles that
are complete never change, and are read when they are needed; the incomplete tile of each level is in memory. A tile is
verified by the hash that the level above has for it.

A subtree of the binary tree at height h lies in the tiles of level h // 8, at height h % 8 within a tile. After n
entries, the incomplete tile of level l has (n >> 8 * l) % 256 hashes: the digits of n in base 256. Appending an entry
is an increment with carry: a tile that gets its 256th hash is complete, and its top is the next hash of the level
above. So each tile is stored once, at 32 bytes for each of its hashes and 256/255 hashes for each entry, and appending
costs O(1) hashes on average.

Invariant: `_unfinished` and the complete tiles determine every complete subtree. A path needs at most two subtrees of
each height (only its last sibling on the right can be incomplete), so it reads a few tiles of each level. Trust goes
down: a tile is used only if its top equals the hash that the level above has for it, and the topmost hashes are in
memory. So a damaged file is noticed (`LostTileError`), and the tiles are computed again.

Source:
    R. Cox, Transparent logs for skeptical clients, 2019, research.swtch.com/tlog. There a tile of any height is a file
    for clients; here tiles are private, and have 8 levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from recollect.ledger.log_tree import node_of, tree_hash

#: The levels of the binary tree in a tile, and the number of its hashes.
_TILE_LEVELS = 8
TILE_SIZE = 1 << _TILE_LEVELS
_HASH_BYTES = 32
#: Number of complete tiles that a tree caches, and the approximate memory of one.
_CACHED, _TILE_BYTES = 32, 2 * TILE_SIZE * 80


class LostTileError(Exception):
    """A complete tile is missing or damaged."""


class CompleteTile(NamedTuple):
    """A complete tile, to be stored.

    Attributes:
        number: Its number within the level.
        top: The hash over all of it.
        hashes: Its hashes, one after the other.
    """

    level: int
    number: int
    top: bytes
    hashes: bytes


class _Tile:
    """Up to 256 consecutive hashes with the complete subtrees over them.

    Attributes:
        nodes: The hashes of the complete subtrees, by level within the tile; those of level 0 are the tile's own.
    """

    __slots__ = ("nodes",)

    def __init__(self, hashes: Iterable[bytes] = ()) -> None:
        self.nodes: list[list[bytes]] = [[] for _ in range(_TILE_LEVELS + 1)]
        for each in hashes:
            self.append(each)

    def append(self, node: bytes) -> None:
        nodes, level = self.nodes, 0
        nodes[0].append(node)
        while not len(nodes[level]) & 1:
            node = node_of(nodes[level][-2], node)
            level += 1
            nodes[level].append(node)


class TiledTree:
    """A log tree that grows.

    Args:
        read: Returns the hashes of a complete tile by level and number; None if there is none.
        unfinished: The hashes of the incomplete tile of each level.

    Attributes:
        size: The number of entries.
        completed: The tiles that have been completed since they were last stored.
    """

    def __init__(self, read: Callable[[int, int], bytes | None], unfinished: Iterable[Iterable[bytes]] = ()) -> None:
        self._read = read
        self._unfinished = [_Tile(hashes) for hashes in unfinished]
        self._cached: dict[tuple[int, int], _Tile] = {}
        sizes = (len(tile.nodes[0]) << _TILE_LEVELS * level for level, tile in enumerate(self._unfinished))
        self.size = sum(sizes)
        self.completed: list[CompleteTile] = []

    @property
    def nbytes(self) -> int:
        """The approximate memory of the tree, in bytes."""
        return (len(self._unfinished) + len(self._cached)) * _TILE_BYTES

    def append(self, leaf: bytes) -> None:
        """Add the leaf of the next entry."""
        node, level, self.size = leaf, 0, self.size + 1
        while True:
            if level == len(self._unfinished):
                self._unfinished.append(_Tile())
            tile = self._unfinished[level]
            tile.append(node)
            if len(tile.nodes[0]) < TILE_SIZE:
                return
            self._unfinished[level] = _Tile()
            number = (self.size >> _TILE_LEVELS * (level + 1)) - 1
            node = tile.nodes[-1][0]
            self.completed.append(CompleteTile(level, number, node, b"".join(tile.nodes[0])))
            self._cache(level, number, tile)
            level += 1

    def subtree(self, level: int, index: int) -> bytes:
        """Return the hash of a complete subtree (`log_tree.Subtree`).

        Raises:
            LostTileError: A tile that it needs is missing or damaged.
        """
        tile_level, inner = divmod(level, _TILE_LEVELS)
        shift = _TILE_LEVELS - inner
        number, offset = index >> shift, index & (1 << shift) - 1
        if number < self.size >> _TILE_LEVELS * (tile_level + 1):
            return self._complete(tile_level, number).nodes[inner][offset]
        return self._unfinished[tile_level].nodes[inner][offset]

    def tree_hash(self, size: int) -> bytes:
        """Return the tree hash of the first `size` entries. Raises as `subtree`."""
        return tree_hash(self.subtree, size)

    def _complete(self, level: int, number: int) -> _Tile:
        cached = self._cached.get((level, number))
        if cached is not None:
            return cached
        raw = self._read(level, number)
        if raw is None or len(raw) != TILE_SIZE * _HASH_BYTES:
            raise LostTileError(f"tile {number} of level {level} is missing")
        tile = _Tile(raw[at : at + _HASH_BYTES] for at in range(0, len(raw), _HASH_BYTES))
        if tile.nodes[-1][0] != self.subtree(_TILE_LEVELS * (level + 1), number):
            raise LostTileError(f"tile {number} of level {level} is damaged")
        self._cache(level, number, tile)
        return tile

    def _cache(self, level: int, number: int, tile: _Tile) -> None:
        while len(self._cached) >= _CACHED:
            del self._cached[next(iter(self._cached))]
        self._cached[level, number] = tile
