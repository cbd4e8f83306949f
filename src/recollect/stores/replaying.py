"""Writing a history again: the commits of one store in another, in order and as they are.

What is written has the same ids, versions, times, roots and entries. Only numbers that no hash covers, those of
versions and pages, are the other store's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from recollect.ledger.commits import Branch, Commit, Stored
from recollect.ledger.entries import entry_hash
from recollect.ledger.merkle import Live, Trie
from recollect.records.record import Record
from recollect.stores.base import Transaction
from recollect.stores.values import RemovedPayload


class Replayer:
    """Writes the commits of a branch.

    Args:
        branch: The branch.
        key: The key of both stores.
        version_of: Returns a version by its hash, or why it has no payload.
        trie: The trie of the root that the branch has so far (`stores.roots.newest_trie`).

    Attributes:
        live: What the written commits have left live: the version of each id.
    """

    def __init__(
        self,
        branch: Branch,
        key: bytes,
        version_of: Callable[[bytes], Stored | RemovedPayload],
        trie: Trie,
    ) -> None:
        self._branch = branch
        self._key = key
        self._version_of = version_of
        self._trie = trie
        self.live: dict[str, bytes] = {}

    def write(self, transaction: Transaction, commit: Commit, redacted: Mapping[str, bytes]) -> Commit:
        """Write a commit, and return it as it was written: with the root that its changes lead to, and its own entry.

        Args:
            transaction: A transaction of the store that is written.
            commit: The commit.
            redacted: What stands for its redacted texts (`View.redactions`).
        """
        live: dict[str, Live | None] = {}
        for change in commit.changes:
            if change.before == change.after:
                continue  # an erasure of former versions
            if change.after is None:
                transaction.drop(self._branch, change.id)
                self.live.pop(change.id, None)
                live[change.id] = None
            else:
                live[change.id] = Live(change.after, self._put(transaction, change.id, change.after))
                self.live[change.id] = change.after
        commit = replace(commit, root=self._trie.update(live, transaction))
        commit = replace(commit, entry=entry_hash(commit, self._key, redacted))
        transaction.append(commit, self._trie.replaced)
        if redacted:
            transaction.redact(self._branch, commit.seq, redacted)
        return commit

    def _put(self, transaction: Transaction, record_id: str, version: bytes) -> int:
        """Write a version that a commit names, and return its number."""
        found = self._version_of(version)
        if isinstance(found, Stored):
            return transaction.put(self._branch, Record.load(found.payload), found)
        transaction.drop(self._branch, record_id)
        return transaction.put_removed(self._branch, version, found)
