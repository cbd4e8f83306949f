"""Subscriptions to the events of keyed memory, each with a bounded queue, read with or without asyncio.

A subscriber that is too slow delays no other one and takes no more memory: what does not fit in its queue is counted,
and it learns how many events it missed, and after which one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from recollect.arguments.checks import is_number
from recollect.common.wakeups import Wakeup
from recollect.errors import InvalidArgumentError
from recollect.facets.keyed.values import EVENT_KINDS, Event, EventKind

#: Default number of events in a queue.
QUEUE = 1024
#: The longest timeout, in seconds.
_MOST_S = 86_400


class Missed(NamedTuple):
    """Events that did not fit in the queue of a subscriber.

    Attributes:
        number: How many.
        since: The seq of the last event before them: `events(since)` returns them, as long as they are kept.
    """

    number: int
    since: int | str


class KeySubscription:
    """The events of a key, or of all: an iterator that waits, and an asynchronous one without a thread. Thread-safe.

        with shelf.subscribe("plan") as events:
            for event in events:
                ...

    Args:
        key: The key; None: all of them.
        kinds: The kinds of events.
        queue: Maximum number of events that wait.
        since: The seq of the newest event.
        end: Called when the subscription is closed.
    """

    def __init__(
        self,
        key: str | None,
        kinds: frozenset[EventKind],
        queue: int,
        since: int | str,
        end: Callable[[KeySubscription], object],
    ) -> None:
        self.key = key
        self._kinds = kinds
        self._most = queue
        self._queue: deque[Event | Missed] = deque()
        self._missed = 0
        self._before = self._newest = since  # the seq of the newest event, and the one before it
        self._last = since  # the seq before the first event that was missed
        self._end = end
        self._closed = False
        self._changed = Wakeup()

    @property
    def closed(self) -> bool:
        """True if it was closed. What is in the queue can still be read."""
        return self._closed

    def put(self, event: Event) -> None:
        """Queue an event, if it is one of this subscription, or count it as missed."""
        if event.kind not in self._kinds or (self.key is not None and event.key != self.key):
            return
        with self._changed:
            if self._closed:
                return
            if event.seq != self._newest:
                self._before, self._newest = self._newest, event.seq
            if self._missed or len(self._queue) >= self._most:
                if not self._missed:  # the rest of a commit of which the queue has a part is read again with it
                    self._last = self._before
                self._missed += 1
            else:
                self._queue.append(event)
            self._changed.notify_all()

    def take(self) -> Event | Missed | None:
        """Return the next event, or how many were missed; None if there is none now."""
        with self._changed:
            return self._taken()

    def wait(self, timeout: float | None = None) -> Event | Missed | None:
        """Return the next event; None if the time is over, or if it was closed.

        Args:
            timeout: Seconds, 0 or more; None: without an end.
        """
        if timeout is not None and not is_number(timeout):
            raise InvalidArgumentError("timeout", timeout, "must be a number of seconds, or None")
        if timeout is not None and not 0 <= timeout <= _MOST_S:
            raise InvalidArgumentError("timeout", timeout, f"must be from 0 to {_MOST_S}, or None")
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._missed or self._closed, timeout)
            return self._taken()

    def close(self) -> None:
        """End it. Who waits is woken."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
        self._end(self)

    def _taken(self) -> Event | Missed | None:
        if self._queue:
            return self._queue.popleft()
        if self._missed:
            missed, self._missed = Missed(self._missed, self._last), 0
            return missed
        return None

    def __iter__(self) -> KeySubscription:
        return self

    def __next__(self) -> Event | Missed:
        event = self.wait()
        if event is None:
            raise StopIteration
        return event

    def __enter__(self) -> KeySubscription:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __aiter__(self) -> KeySubscription:
        return self

    async def __anext__(self) -> Event | Missed:
        event = await self._changed.awaited(lambda: self._taken() or self._closed)
        if isinstance(event, bool):
            raise StopAsyncIteration
        return event

    async def __aenter__(self) -> KeySubscription:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()


def checked_kinds(kinds: object) -> frozenset[EventKind]:
    """Return kinds of events; None stands for all of them.

    Raises:
        InvalidArgumentError: One is none.
    """
    if kinds is None:
        return frozenset(EVENT_KINDS)
    if isinstance(kinds, str) or not hasattr(kinds, "__iter__") or not set(kinds) <= set(EVENT_KINDS):
        raise InvalidArgumentError("kinds", kinds, f"must be some of {', '.join(EVENT_KINDS)}")
    return frozenset(kinds)
