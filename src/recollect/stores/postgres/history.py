"""What a node has seen of the log of each memory, so that it says so when a server has less of it.

That is so after a failover to a standby that lagged, or after a crash without `synchronous_commit`: commits that were
acknowledged are gone. What the server has is served all the same: there is no more.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType

from recollect.ledger.commits import MAIN, Branch, Head

_log = logging.getLogger("recollect")
_NOTHING: Mapping[Branch, tuple[int, bytes]] = MappingProxyType({})


class SeenHistory:
    """The newest commits that this process has seen.

    Args:
        path: The address of the store, without secrets.

    Attributes:
        lost: How many commits were seen and are not on the server any more.
    """

    def __init__(self, path: str) -> None:
        self.lost = 0
        self._path = path
        self._seen: dict[Branch, Mapping[Branch, tuple[int, bytes]]] = {}

    def of(self, owner: Branch) -> Mapping[Branch, tuple[int, bytes]]:
        """Return the seq and root of the newest commit that was seen of each part of a memory."""
        return self._seen.get(owner, _NOTHING)

    def note(self, owner: Branch, before: Mapping[Branch, tuple[int, bytes]], heads: Mapping[Branch, Head]) -> None:
        """Note the newest commits that the server has.

        Args:
            owner: The branch of the memory.
            before: What `of` returned before the server was asked: what was seen by then must be there.
            heads: What the server has answered.
        """
        found = {
            branch: (head.seq, head.root.hash) for branch, head in heads.items() if head.seq and branch.owner == owner
        }
        if owner.name != MAIN and owner not in found:  # it was dropped
            self._seen.pop(owner, None)
            return
        for branch, (seq, root) in before.items():
            now, root_now = found.get(branch, (0, b""))
            if now < seq or (now == seq and root != root_now):
                self.lost += max(1, seq - now)
                _log.error(
                    "%s has lost commits of %r: %d was seen, and the newest one is now %d. Was there a failover to a "
                    "standby that lagged? What the server has is used (docs/postgresql.md)",
                    self._path,
                    owner.namespace,
                    seq,
                    now,
                )
        current = self.of(owner)
        if current is before or all(found.get(branch, (0,))[0] >= seq for branch, (seq, _) in current.items()):
            self._seen[owner] = found  # not what is older than what another thread has noted meanwhile
