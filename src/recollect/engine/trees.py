"""The log trees of the branches of a store, caught up with the log when a head or a proof is requested.

The write path knows nothing of them. A tree is loaded from the saved tiles, extended by the entries of newer commits,
and compared with the log at each use: if the entry of its last commit is another one, because an older copy of the
store was restored, it is computed again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from recollect.common.deadlines import within
from recollect.engine.follower import Budget, Follower
from recollect.errors import StoreIOError
from recollect.ledger.commits import Branch, Head
from recollect.ledger.entries import LogEntry, entry_of
from recollect.ledger.log_tiles import TILE_SIZE, LostTileError, TiledTree
from recollect.ledger.log_tree import head_of, leaf_of
from recollect.ledger.merkle import Trie
from recollect.stores.base import View
from recollect.stores.derived.log_tiles import LogTileFile
from recollect.stores.roots import newest_trie

T = TypeVar("T")
_log = logging.getLogger("recollect")
#: Memory limit of all trees together. One with cached tiles has about a megabyte.
_CACHED_BYTES = 2**25
#: Number of log entries that are cached. To hash one, all changes of its commit are read, which may be thousands.
_CACHED_ENTRIES = 256
#: The shift from a size to the number of its complete tiles.
_TILE_SHIFT = TILE_SIZE.bit_length() - 1


class _Cached:
    """The tree of a branch, with the newest head that it was compared with.

    Attributes:
        lock: Hold it while the tree is used.
        tree: The tree; None before it is loaded.
        nbytes: Its size in bytes.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tree: TiledTree | None = None
        self.head = Head()
        self.nbytes = 0


class LogTrees:
    """The log trees of a store.

    Args:
        tiles: The saved tiles.
        path: The path of the store, for messages.
        key: The store key.
    """

    def __init__(self, tiles: LogTileFile, path: str, key: bytes) -> None:
        self._tiles = tiles
        self._path = path
        self._key = key
        self._trees: Budget[Branch, _Cached] = Budget(_CACHED_BYTES)
        self._entries: dict[bytes, LogEntry] = {}  # by the leaf
        self._lock = threading.Lock()

    def head(self, view: View, branch: Branch, size: int | None = None) -> str:
        """Return the head of the log of a branch, in hex; that of its first commits if `size` says how many."""
        size = view.head(branch).seq if size is None else size
        return self.read(view, branch, lambda tree: head_of(size, tree.tree_hash(size))).hex()

    def read(self, view: View, branch: Branch, work: Callable[[TiledTree], T]) -> T:
        """Return what `work` reads from the tree of a branch, which covers at least the commits of the view.

        Cost:
            Proportional to the number of commits since the last call; after a restart, up to 255 more. Without saved
            tiles, reads the whole log.

        Raises:
            StoreIOError: Saved tiles disappear while they are used.
        """
        cached = self._trees.get_or_put(branch, _Cached)
        with cached.lock:
            for _ in range(2):
                try:
                    with within(None):  # as with an index, half of it is of no use
                        tree = self._caught_up(cached, view, branch)
                    found = work(tree)
                except LostTileError as error:
                    _log.warning("the tree of the log of %r is computed again: %s", branch.namespace, error)
                    cached.tree = None
                    self._tiles.clear(branch)
                    continue
                cached.nbytes = 0 if cached.tree is None else cached.tree.nbytes
                self._trees.count(branch, cached)
                return found
        raise StoreIOError(self._path, "the tiles of the log cannot be read back; try again")

    def entry(self, tree: TiledTree, view: View, branch: Branch, seq: int) -> LogEntry:
        """Return the log entry of a commit of a view, from whose branch the tree is."""
        leaf = tree.subtree(0, seq - 1)
        entry = self._entries.get(leaf)
        if entry is None:
            commit = next(view.commits(branch, seq - 1, 1))
            entry = entry_of(commit, self._key, view.redactions(branch, seq))
            with self._lock:
                if len(self._entries) >= _CACHED_ENTRIES:
                    del self._entries[next(iter(self._entries))]
                self._entries[leaf] = entry
        return entry

    def _caught_up(self, cached: _Cached, view: View, branch: Branch) -> TiledTree:
        head = view.head(branch)
        tree, cached.tree = cached.tree, None  # until it is complete: an interruption may leave it partly extended
        if tree is None:
            tree = self._loaded(branch)
        elif cached.head == head:
            cached.tree = tree
            return tree
        known = min(tree.size, head.seq)
        newer = view.entries(branch, max(known - 1, 0))
        if known and leaf_of(next(newer, b"")) != tree.subtree(0, known - 1):
            self._tiles.clear(branch)
            tree = TiledTree(partial(self._tiles.hashes, branch))
            newer = view.entries(branch, 0)
        for each in newer:
            tree.append(leaf_of(each))
        if tree.completed:
            covered = tree.size >> _TILE_SHIFT << _TILE_SHIFT
            self._tiles.save(branch, tree.completed, covered, tree.tree_hash(covered))
            tree.completed.clear()
        cached.tree, cached.head = tree, head
        return tree

    def _loaded(self, branch: Branch) -> TiledTree:
        """Return the tree over the saved tiles, an empty one if there are none."""
        size, expected = self._tiles.saved(branch)
        read = partial(self._tiles.hashes, branch)
        if size < TILE_SIZE:  # nothing is saved, or what is not a size
            return TiledTree(read)
        unfinished: list[list[bytes]] = [[]]
        level, count = 0, size >> _TILE_SHIFT
        while count:
            first = count >> _TILE_SHIFT << _TILE_SHIFT
            tops = self._tiles.tops(branch, level, first)[: count - first]
            unfinished.append(tops)
            level, count = level + 1, count >> _TILE_SHIFT
        tree = TiledTree(read, unfinished)
        if tree.size != size or tree.tree_hash(size) != expected:
            raise LostTileError("saved tiles are missing or damaged")
        return tree

    def drop(self, branch: Branch) -> None:
        """Remove the tree of a branch that was removed."""
        self._trees.drop(branch)
        self._tiles.clear(branch)

    def close(self) -> None:
        """Release the saved tiles."""
        self._tiles.close()


# A cache of the Merkle tries of recently written branches, so that the next commit need not load their pages again.

#: Memory limit of the cached tries, and the approximate memory of one.
_CACHE_BYTES, _TRIE_BYTES = 2**24, 2**20


class TrieKeeper(Follower[Branch, Trie]):
    """The tries of a store. A writer takes one out inside its transaction, and puts it back updated."""

    def __init__(self) -> None:
        super().__init__(_CACHE_BYTES)

    def start(self, view: View, branch: Branch, key: Branch) -> Trie:
        """Return the trie at a view. Its pages are loaded when they are needed."""
        return newest_trie(view, branch)

    def take(self, view: View, branch: Branch, key: Branch) -> Trie:
        """Return the trie at the writer's view, and remove it, so that a failed update leaves none."""
        entry, head = self.entries.pop(key), view.head(branch)
        if entry is not None and entry.value is not None and entry.reflects(head) and entry.value.root == head.root:
            return entry.value
        return newest_trie(view, branch)  # also for the same records in other pages

    def nbytes(self, value: Trie) -> int:
        """Return the approximate memory of a trie with the pages of some thousand commits."""
        return _TRIE_BYTES
