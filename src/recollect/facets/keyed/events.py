"""The events of keyed memory on a store: its commits, passed to the subscriptions of a process by one listener.

The log has all of them but a failed `cas`, which changes nothing: only its own process learns of it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, ref

from recollect.calls.namespace import NamespaceCalls
from recollect.engine.feed import Feed
from recollect.engine.listeners import Subscription
from recollect.errors import ClosedError, RecollectError
from recollect.facets.keyed.records import key_of, value_of
from recollect.facets.keyed.subscriptions import KeySubscription
from recollect.facets.keyed.values import Event, EventKind
from recollect.ledger.commits import Branch, Commit
from recollect.operations import Get, Now
from recollect.records.record import Record

#: Number of commits that are counted at a time.
_PAGE = 1000
#: What the log calls the removal of an entry -> the kind of the event; any other one is "forgotten".
_REMOVED: dict[str, EventKind] = {"evicted": "evicted", "expired": "expired"}


class Announcer:
    """The state that the keyed memories of one namespace and scope share in this process. Thread-safe.

    It refers to the memory only while there is a subscription, so that a memory that is dropped is closed. Its calls
    get the entries, as a memory.

    Attributes:
        recalls: Number of recalls in this process.
    """

    def __init__(self) -> None:
        self.recalls = 0
        self._subscriptions: list[ref[KeySubscription]] = []  # in the order in which they began
        self._listener: Subscription | None = None
        self._ending: _Ending | None = None
        self._turn: object = None  # which listener passes commits on
        self._last: int | str = 0  # the cursor of the last commit whose events were passed on
        self._counts: Counter[str] = Counter()
        self._counted: int | str = 0  # the cursor of the last commit that was counted
        self._lock = threading.RLock()

    @property
    def is_idle(self) -> bool:
        """True if there is no subscription."""
        return self._listener is None

    def subscribe(
        self, entries: NamespaceCalls, key: str | None, kinds: frozenset[EventKind], queue: int
    ) -> KeySubscription:
        """Begin a subscription. The first one begins to listen."""
        with self._lock:
            listener = self._listener
        if listener is not None:
            listener.drain()  # what was written before is not for this one
        with self._lock:
            if self._listener is None:
                newest = entries.changes(limit=1, newest_first=True)
                self._last = newest[0].cursor if newest else 0
                turn = self._turn = object()
                self._listener = entries.listen(partial(self._pass_on, entries, turn), since=self._last)
                self._ending = _Ending(entries._branch, entries._executor.feed, self._end_all)
            made = KeySubscription(key, kinds, queue, _shown(self._last, entries), self._end)
            self._subscriptions.append(ref(made))
            return made

    def failed_cas(self, entries: NamespaceCalls, key: str) -> None:
        """Pass on that a `cas` failed."""
        with self._lock:
            listener = self._listener
        if listener is None:
            return
        listener.drain()  # what was written before comes first
        with self._lock:
            time = entries.execute(Now()).timestamp()
            idle = self._put([Event(_shown(self._last, entries), "cas_failed", key, time, 0)])
        _close(idle)

    def counted(self, entries: NamespaceCalls) -> Counter[str]:
        """Return how often what has happened, by the kind of event, and the number of commits."""
        with self._lock:
            while commits := entries.changes(self._counted, _PAGE):
                for commit in commits:
                    self._counts["commits"] += 1
                    self._counts.update(_kind(each) for each in commit.changes if each.before != each.after)
                self._counted = commits[-1].cursor
            return self._counts

    def _pass_on(self, entries: NamespaceCalls, turn: object, commit: Commit) -> None:
        """Pass a commit on. Called in the thread of the listener; one that is being closed passes nothing on."""
        with self._lock:
            last = self._last
            if self._turn is not turn:
                return
        events = list(_events(entries, commit, last))
        with self._lock:
            if self._turn is not turn:
                return
            self._last = commit.cursor
            idle = self._put(events)
        _close(idle)

    def _put(self, events: Iterable[Event]) -> Subscription | None:
        """Queue events for the subscriptions. Without any, return the listener, which is to be closed."""
        alive = [each for each in self._subscriptions if each() is not None]
        self._subscriptions = alive
        for event in events:
            for each in alive:
                if (subscription := each()) is not None:
                    subscription.put(event)
        return None if alive else self._idle()

    def _end(self, subscription: KeySubscription) -> None:
        """Forget a subscription. After the last one, nothing listens."""
        with self._lock:
            self._subscriptions = [each for each in self._subscriptions if each() not in (None, subscription)]
            idle = None if self._subscriptions else self._idle()
        _close(idle)

    def _end_all(self) -> None:
        """End all subscriptions, because the memory is closed."""
        with self._lock:
            ended, self._subscriptions = self._subscriptions, []
            self._idle()
        for each in ended:
            if (subscription := each()) is not None:
                subscription.close()

    def _idle(self) -> Subscription | None:
        """Stop listening, and return the listener, which is to be closed."""
        listener, self._listener, self._turn = self._listener, None, None
        if self._ending is not None:
            self._ending.discard()
            self._ending = None
        return listener


class _Ending:
    """A subscriber of a feed that only wants to know when the memory is closed."""

    def __init__(self, branch: Branch, feed: Feed, end: Callable[[], None]) -> None:
        self.branch = branch
        self.seen = 2**63
        self._feed = feed
        self._end = end
        feed.add(self)

    def discard(self) -> None:
        """Want to know nothing any more."""
        self._feed.discard(self)

    def notify(self) -> None:
        """Do nothing. See `Subscriber.notify`."""

    def close(self) -> None:
        """End. See `Subscriber.close`."""
        self._end()


def _close(listener: Subscription | None) -> None:
    """Close a listener. The caller has no lock: what is being delivered needs it."""
    if listener is not None:
        with suppress(ClosedError):  # with its memory
            listener.close()


#: Maximum number of announcers without a subscription that a memory keeps: there is one for each scope in use.
_MOST_IDLE = 1000
_announcers: WeakKeyDictionary[Any, dict[Any, Announcer]] = WeakKeyDictionary()
_lock = threading.Lock()


def announcer_of(entries: NamespaceCalls) -> Announcer:
    """Return what the keyed memories of a namespace and scope share in this process."""
    with _lock:
        shared = _announcers.setdefault(entries._executor, {})
        if len(shared) > _MOST_IDLE:
            for place in [place for place, each in shared.items() if each.is_idle][: _MOST_IDLE // 2]:
                del shared[place]
        return shared.setdefault((entries._branch, entries._scope), Announcer())


def events_of(entries: NamespaceCalls, commits: Iterable[Commit], since: int | str) -> list[Event]:
    """Return what commits did to keys.

    Args:
        commits: The commits, in order.
        since: The cursor of the commit before them.
    """
    out: list[Event] = []
    for commit in commits:
        out += _events(entries, commit, since)
        since = commit.cursor
    return out


def _events(entries: NamespaceCalls, commit: Commit, since: int | str) -> Iterator[Event]:
    after, before = entries.at(_target(commit.cursor)), entries.at(_target(since))
    for change in commit.changes:
        if change.before == change.after:
            continue  # former values were removed, or a merge has kept this one
        kind = _kind(change)
        record = _version(after if kind == "written" else before, change.id)
        value = None if record is None else value_of(record)
        yield Event(
            seq=_shown(commit.cursor, entries),
            kind=kind,
            key=change.id if record is None else key_of(record),
            time=commit.time.timestamp(),
            size=0 if value is None else len(value),
            value=value if kind == "written" else None,
        )


def _target(cursor: int | str) -> int | str:
    """Return a cursor as `at` takes it: outside of scopes, a number."""
    return int(cursor) if isinstance(cursor, str) and cursor.isdecimal() else cursor


def _shown(cursor: int | str, entries: NamespaceCalls) -> int | str:
    """Return a cursor as events have it: a number, but within a scope."""
    return cursor if entries.scope else _target(cursor)


def _version(moment: NamespaceCalls, record_id: str) -> Record | None:
    """Return the record of a moment; None if it was erased since."""
    try:
        found: Record | None = moment.execute(Get(id=record_id))
    except RecollectError:
        return None
    return found


def _kind(change: Any) -> EventKind:
    return "written" if change.after is not None else _REMOVED.get(change.cause, "forgotten")
