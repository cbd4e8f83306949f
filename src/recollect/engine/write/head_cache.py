"""A cache of the Merkle tries of recently written branches, so that the next commit need not load their pages again."""

from __future__ import annotations

from recollect.engine.follower import Follower
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import Trie
from recollect.stores.base import View

#: Memory limit of the cached tries, and the approximate memory of one.
_CACHED_BYTES, _TRIE_BYTES = 2**24, 2**20


class TrieKeeper(Follower[Branch, Trie]):
    """The tries of a store. A writer takes one out inside its transaction, and puts it back updated."""

    def __init__(self) -> None:
        super().__init__(_CACHED_BYTES)

    def start(self, view: View, branch: Branch, key: Branch) -> Trie:
        """Return the trie at a view. Its pages are loaded when they are needed."""
        return Trie(view.head(branch).root)

    def take(self, view: View, branch: Branch, key: Branch) -> Trie:
        """Return the trie at the writer's view, and remove it, so that a failed update leaves none."""
        entry, head = self.entries.pop(key), view.head(branch)
        if entry is not None and entry.value is not None and entry.reflects(head) and entry.value.root == head.root:
            return entry.value
        return Trie(head.root)  # also for the same records in other pages

    def nbytes(self, value: Trie) -> int:
        """Return the approximate memory of a trie with the pages of some thousand commits."""
        return _TRIE_BYTES
