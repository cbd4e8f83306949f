"""The log of a branch as a scope sees it, read in pages by listeners and streams."""

from __future__ import annotations

from recollect.engine.cursors import Cursors
from recollect.engine.feed import PAGE
from recollect.engine.read.queries import visible_part
from recollect.engine.scope import Scope
from recollect.errors import DamagedStoreError
from recollect.ledger.commits import Branch, Commit
from recollect.stores.base import Store
from recollect.stores.renewals import repeated


class Log:
    """The commits of a branch as a scope sees them.

    Args:
        store: The store.
        branch: The branch.
        scope: The scope of the reader.
        cursors: The cursors of the store.
    """

    def __init__(self, store: Store, branch: Branch, scope: Scope, cursors: Cursors) -> None:
        self.branch = branch
        self._store = store
        self._scope = scope
        self._cursors = cursors

    def head(self) -> int:
        """Return the seq of the newest commit."""
        with self._store.read() as view:
            return view.head(self.branch).seq

    def start(self, since: int | str | None) -> int:
        """Return the seq of a cursor, or that of the newest commit for None, if the store can be read."""
        head = self.head()  # also with a cursor: raises if the store is closed or forked
        return head if since is None else self._cursors.reached(since, self.branch, self._scope, head)

    def seq(self, cursor: int | str) -> int:
        """Return the seq of a cursor (see `Cursors.seq`)."""
        return self._cursors.seq(cursor, self.branch, self._scope)

    def read(self, since: int) -> list[tuple[int, Commit | None]]:
        """Return up to `PAGE` commits after a seq, each with its seq; None for one that the scope does not see."""
        try:
            return self._read(since)
        except DamagedStoreError as error:  # another SQLite may have written its pages
            return repeated(lambda: self._read(since), error, self._store.renew)

    def _read(self, since: int) -> list[tuple[int, Commit | None]]:
        with self._store.read() as view:
            return [
                (commit.seq, visible_part(commit, view, self._scope, self._cursors))
                for commit in view.commits(self.branch, since, PAGE)
            ]
