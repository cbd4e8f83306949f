"""A cache of the Merkle tries of recently written branches, so that the next commit need not load their pages again.

A cached trie belongs to one commit. It is used only if that commit is still the newest one in the store.
"""

from __future__ import annotations

from recollect.ledger.commits import Branch, Head
from recollect.ledger.merkle import Trie

#: Maximum number of cached tries, of about a megabyte each.
_MAX_TRIES = 16


class TrieKeeper:
    """The cached tries of a store. A writer takes one out inside its transaction, and puts it back updated."""

    def __init__(self) -> None:
        self._kept: dict[Branch, tuple[Head, Trie]] = {}

    def take(self, branch: Branch, head: Head) -> Trie:
        """Return the trie at the newest commit of a branch, and remove it, so that a failed update leaves none."""
        kept_head, trie = self._kept.pop(branch, (None, None))
        # The head differs if another process has committed, or the store was restored from a copy.
        return trie if trie is not None and kept_head == head else Trie(head.root)

    def keep(self, branch: Branch, head: Head, trie: Trie) -> None:
        """Cache the trie for the next commit."""
        self._kept[branch] = (head, trie)
        if len(self._kept) > _MAX_TRIES:
            self.drop(next(iter(self._kept)))

    def drop(self, branch: Branch) -> None:
        """Remove the trie of a branch, after a commit was undone."""
        self._kept.pop(branch, None)
