"""Whose call is next: a queue for each client, served by what each has used.

The client that has used the fewest seconds is served first, and of those that have used the same the one that has
waited longest. What a client has used is counted on a clock of the queue itself, which stands at what the client that
was served last had used. A client that comes after a while starts at this clock, so that a pause saves up nothing. What
one has used beyond it, its debt, is limited, and is forgotten as time goes by, whether the client waits or not: so a
long call delays its client's next one by as much, and does not exclude it, however many others come meanwhile. (This is
start-time fair queueing with a limited debt, which is counted after the call: how long it takes is not known before.)

Source: Goyal, Vin and Cheng, Start-time fair queuing, SIGCOMM 1996.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")
#: How far beyond the clock the use of a client can be, in seconds.
MOST_DEBT_S = 10.0
#: Number of clients without a call whose use is remembered.
_REMEMBERED = 4096


class _Line(Generic[T]):
    """The calls of one client that wait, and its debt.

    Attributes:
        free_s: When it has no debt any more: what it has used, on the clock of the queue, plus the time of that. Both
            clocks together go on whether time passes or others are served, and the order of clients stays the same.
    """

    __slots__ = ("free_s", "items", "stamp")

    def __init__(self, free_s: float) -> None:
        self.items: deque[T] = deque()
        self.free_s = free_s
        self.stamp = 0  # the number of its valid entry in the heap


class Turns(Generic[T]):
    """Items of clients, which are taken in turn. Not thread-safe.

    Args:
        clock: Returns the time in seconds.

    Cost:
        O(log n) for each item, for n clients that wait.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lines: dict[Hashable, _Line[T]] = {}  # of clients that wait
        self._heap: list[tuple[float, int, Hashable]] = []  # `free_s`, stamp, client; void with another stamp
        self._idle: OrderedDict[Hashable, float] = OrderedDict()  # that of clients that wait for nothing
        self._stamps = count(1)
        self._now_s = 0.0  # the clock of the queue

    def __len__(self) -> int:
        return sum(len(line.items) for line in self._lines.values())

    def add(self, client: Hashable, item: T) -> None:
        """Queue an item behind those of its client."""
        line = self._lines.get(client)
        if line is None:
            line = self._lines[client] = _Line(max(self._idle.pop(client, 0.0), self._free_now()))
            self._push(client, line)
        line.items.append(item)

    def take(self, ready: Callable[[Hashable, T], bool | None]) -> tuple[Hashable, T] | None:
        """Remove the next item that is ready, and return its client and it. Only the first of a client can be next.

        Args:
            ready: Returns whether an item is ready; None if none behind it is, either.
        """
        passed_over: list[tuple[float, int, Hashable]] = []
        try:
            while self._heap:
                entry = heappop(self._heap)
                free_s, stamp, client = entry
                line = self._lines.get(client)
                if line is None or line.stamp != stamp:
                    continue
                verdict = ready(client, line.items[0])
                if not verdict:
                    passed_over.append(entry)
                    if verdict is None:
                        return None
                    continue
                self._now_s = max(self._now_s, free_s - self._clock())
                item = line.items.popleft()
                if line.items:
                    line.free_s = max(free_s, self._free_now())  # having waited saves up nothing, either
                    self._push(client, line)  # behind others that have used the same
                else:
                    self._rest(client, line)
                return client, item
            return None
        finally:
            for entry in passed_over:
                heappush(self._heap, entry)

    def remove(self, client: Hashable, item: T) -> bool:
        """Remove an item, and return whether it was waiting."""
        line = self._lines.get(client)
        if line is None or item not in line.items:
            return False
        line.items.remove(item)
        if not line.items:
            self._rest(client, line)
        return True

    def charge(self, client: Hashable, seconds: float) -> None:
        """Count what a client has used."""
        line, now_s = self._lines.get(client), self._free_now()
        if line is not None:
            line.free_s = min(max(line.free_s, now_s) + seconds, now_s + MOST_DEBT_S)
            self._push(client, line)
            return
        self._idle[client] = min(max(self._idle.pop(client, 0.0), now_s) + seconds, now_s + MOST_DEBT_S)
        while len(self._idle) > _REMEMBERED:
            self._idle.popitem(last=False)

    def _free_now(self) -> float:
        """Return the `free_s` of a client without a debt."""
        return self._now_s + self._clock()

    def _push(self, client: Hashable, line: _Line[T]) -> None:
        line.stamp = next(self._stamps)
        heappush(self._heap, (line.free_s, line.stamp, client))

    def _rest(self, client: Hashable, line: _Line[T]) -> None:
        """Note that a client waits for nothing more."""
        del self._lines[client]
        self._idle[client] = line.free_s
