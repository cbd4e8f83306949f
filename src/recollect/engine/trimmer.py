"""The trimmer: a thread that drops the trie pages of old roots some time after the commits that replaced them.

It takes the write lock for a few milliseconds after some hundred commits, like any other writer. Which pages may be
dropped is recorded in the store (`stores.old_roots`), so any process continues where another one has stopped.
"""

from __future__ import annotations

import logging
import threading

from recollect.errors import ClosedError, ForkedError, RecollectError
from recollect.ledger.commits import Branch
from recollect.stores.base import Store, View
from recollect.stores.old_roots import STEP_COMMITS, STEP_PAGES, trim

_log = logging.getLogger("recollect")


class Trimmer:
    """Trims the branches that this process writes to.

    Args:
        store: The store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed = threading.Condition()
        self._since: dict[Branch, list[int]] = {}  # commits and changes since a branch was last trimmed
        self._due: dict[Branch, None] = {}
        self._closed = False
        self._thread: threading.Thread | None = None

    def begin(self, view: View, branch: Branch) -> None:
        """Read how far a branch has been trimmed, when this process writes to it for the first time."""
        if branch not in self._since:
            self._since[branch] = [view.head(branch).seq - view.trimmed(branch).seq, 0]

    def note(self, branch: Branch, changes: int) -> None:
        """Note a durable commit with a number of changes, and wake the thread if the branch has enough old roots."""
        since = self._since[branch]
        since[0] += 1
        since[1] += changes
        if since[0] >= STEP_COMMITS or since[1] >= STEP_PAGES:
            since[:] = [0, 0]
            self._wake(branch)

    def _wake(self, branch: Branch) -> None:
        with self._changed:
            if self._closed:
                return
            self._due[branch] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="recollect-trimmer", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._due or self._closed)
                if self._closed:
                    return
                branch = next(iter(self._due))
            try:
                more = trim(self._store, branch)
            except (ClosedError, ForkedError):
                return
            except RecollectError as error:
                _log.warning("old roots of %s were not dropped now, and will be later: %s", branch.namespace, error)
                more = False
            if not more:
                with self._changed:
                    self._due.pop(branch, None)

    def close(self) -> None:
        """Stop the thread after its current step."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
