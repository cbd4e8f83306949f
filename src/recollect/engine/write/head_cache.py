"""The Merkle tries of the lines last written to, kept so that the next commit need not load their pages again.

What is kept is of one commit: it is used only where the store says that this very commit is still the newest one.
"""

from __future__ import annotations

from recollect.ledger.commits import Branch, Head
from recollect.ledger.merkle import Trie

#: So many lines have their trie kept, about a megabyte each.
_MAX_TRIES = 16


class TrieKeeper:
    """The tries of a store's lines. A writer takes one out inside its transaction, and puts it back changed."""

    def __init__(self) -> None:
        self._kept: dict[Branch, tuple[Head, Trie]] = {}

    def take(self, branch: Branch, head: Head) -> Trie:
        """The trie at the newest commit of a line. It is no longer kept: an update that fails leaves none behind."""
        kept_head, trie = self._kept.pop(branch, (None, None))
        # Another process may have committed, or the file been put back from a copy: the head tells.
        return trie if trie is not None and kept_head == head else Trie(head.root)

    def keep(self, branch: Branch, head: Head, trie: Trie) -> None:
        """Keep the trie for whoever follows this commit."""
        self._kept[branch] = (head, trie)
        if len(self._kept) > _MAX_TRIES:
            self.drop(next(iter(self._kept)))

    def drop(self, branch: Branch) -> None:
        """Keep nothing of a line: a commit was given up."""
        self._kept.pop(branch, None)
