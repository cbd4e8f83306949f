"""The time goes on: what a process has found to have expired stays so, whatever its clock does, also after reopening.

The time of a read is not in the log. So when a read finds for the first time that a record has expired, its time is
noted in the store, by a thread, since reads do not wait for writers; and so is the time at which the store is closed. A
process that opens it begins at the latest of that time and of the newest commits of all branches; one that has it open
goes by its own clock. A store without records that expire is not written by reads.

The time of a snapshot is noted, too: what a facet keeps is read as of that time, so no later commit may be before it.
"""

from __future__ import annotations

import logging
import threading

from recollect.errors import ClosedError, DamagedStoreError, ForkedError, RecollectError
from recollect.ledger.commits import Branch
from recollect.stores.base import Store, Transaction, View
from recollect.stores.roots import STEP_COMMITS, STEP_PAGES, trim

_log = logging.getLogger("recollect")
#: The settings with the noted times: `clock` of reads, and `clock/NAMESPACE` of snapshots.
_NOTE, _NOTES_END = "clock", "clock0"
#: Later than every expiry.
_NEVER = 2**63
_BEGIN = -(2**63)


class Expiries:
    """When the records of each branch expire next.

    Attributes:
        next: By branch, the newest commit, and the time of the first expiry after all that were noticed.
        known: Whether the time that the store states was read.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.next: dict[Branch, tuple[int, int]] = {}
        self.known = False
        self._noted = _BEGIN
        self._due = _BEGIN  # the time that is to be noted
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, view: View, now: int) -> int:
        """Return the latest of a time and of those that the store states, in microseconds since 1970."""
        latest = view.latest_time()
        self._noted = _noted(view)
        self.known = True
        return max(now, self._noted, _BEGIN if latest is None else latest)

    def note_in(self, transaction: Transaction, branch: Branch, micros: int) -> None:
        """Note a time, at which no record need have expired, in a transaction of the caller."""
        name = f"{_NOTE}/{branch.owner.namespace}"
        if max(self._noted, _time(transaction.setting(name))) < micros:
            transaction.set_setting(name, str(micros))

    def notice(self, view: View, branch: Branch, now: int) -> int:
        """Note a time if a record has expired at it that had not at any time before, and return the latest time."""
        if not self.known:
            now = self.begin(view, now)
        head = view.head(branch)
        following = view.next_expiry(branch, max(self._noted, head.micros))
        if following is not None and following <= now:
            self._note(now)
            following = view.next_expiry(branch, now)
        elif self._due > self._noted:  # it failed before
            self._note(self._due)
        self.next[branch] = head.seq, _NEVER if following is None else following
        return now

    def _note(self, now: int) -> None:
        with self._lock:
            if not self._store.capabilities.durable or self._store.facts().get("read_only"):
                return
            self._due = max(self._due, now)
            if self._thread is None:
                thread = threading.Thread(target=self._write, name="recollect-clock", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:  # there are too many threads, or the interpreter is shutting down
                    _log.info("the time of a read is noted later: %s", error)
                else:
                    self._thread = thread

    def _write(self) -> None:
        """Write the time that is due, until none is."""
        try:
            while (due := self._next()) is not None:
                with self._store.write(Branch(_NOTE)) as transaction:
                    written = transaction.setting(_NOTE)
                    if written is None or int(written) < due:
                        transaction.set_setting(_NOTE, str(due))
                self._noted = due
        except (RecollectError, ValueError) as error:
            _log.warning("the time of a read is not noted now: %s", error)
        finally:
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread = None

    def _next(self) -> int | None:
        """Return the time that is due; None if none is, and then this thread ends."""
        with self._lock:
            if self._due > self._noted:
                return self._due
            if self._thread is threading.current_thread():
                self._thread = None
            return None

    def close(self, now: int) -> None:
        """Note the time, if a record can expire, and wait until it is noted."""
        if now > self._noted:
            try:
                with self._store.read() as view:
                    latest = view.latest_time()
            except RecollectError as error:
                _log.debug("it is not known whether a record can expire: %s", error)
                latest = None
            if latest is not None and latest < now:
                self._note(now)
        thread = self._thread
        if thread is not None:
            thread.join()
        elif self._due > self._noted:
            self._write()  # no thread could be started, or the last one failed


def _noted(view: View) -> int:
    """Return the latest time that is noted in a store.

    Raises:
        DamagedStoreError: What is noted is not a time.
    """
    return max(map(_time, view.settings(_NOTE, _NOTES_END).values()), default=_BEGIN)


def _time(written: str | None) -> int:
    try:
        return _BEGIN if written is None else int(written)
    except ValueError:
        raise DamagedStoreError("the store", "the time of its last read cannot be read") from None


# The trimmer: a thread that drops the trie pages of old roots some time after the commits that replaced them.
#
# It takes the write lock for a few milliseconds after some hundred commits, like any other writer. Which pages may be
# dropped is recorded in the store (`stores.roots`), so any process continues where another one has stopped.


class Trimmer:
    """Trims the branches that this process writes to."""

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
