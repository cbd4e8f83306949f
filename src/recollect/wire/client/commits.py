"""The commits of a namespace, read from a server, and what notices new ones.

A client knows commits by their cursors alone, since a scope does not show their numbers. `RemoteLog` gives each commit
that it reads a number of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from itertools import count
from typing import Any
from weakref import WeakSet

from recollect.engine.feed import PAGE
from recollect.engine.scope import Place, Scope
from recollect.ledger.commits import Branch, Commit
from recollect.operations import Changes, Operation, ReadHead

#: What the newest commit is for a subscriber that is to read the log.
_NEWER = 2**62


class RemoteLog:
    """A `CommitLog` that a server reads.

    Args:
        branch: The branch.
        scope: The scope of the reader.
        execute: Executes a reading operation on the server.
    """

    def __init__(self, branch: Branch, scope: Scope, execute: Callable[[Operation, Place], Any]) -> None:
        self.branch = branch
        self._scope = scope
        self._execute = execute
        self._numbers = count(1)
        self._cursors: dict[int, int | str] = {}
        self._lock = threading.Lock()

    def head(self) -> int:
        """Return the number of the newest commit."""
        if not self._scope.fixed:
            return self._numbered(self._run(ReadHead()).seq)
        newest = self._run(Changes(limit=1, newest_first=True))
        return self._numbered(newest[0].cursor if newest else 0)

    def start(self, since: int | str | None) -> int:
        """Return the number of a cursor, or that of the newest commit for None, if the server can be reached."""
        return self.head() if since is None else self.seq(since)

    def seq(self, cursor: int | str) -> int:
        """Return the number of a cursor.

        Raises:
            InvalidArgumentError: It is not a cursor of this branch and scope.
            ScopeError: It is a seq, within a scope.
        """
        self._run(Changes(since=cursor, limit=1))  # raises if it is none
        return self._numbered(cursor)

    def read(self, since: int) -> list[tuple[int, Commit | None]]:
        """Return up to `PAGE` commits after a number, each with its number."""
        with self._lock:
            cursor = self._cursors.get(since, 0)
        commits: list[Commit] = self._run(Changes(since=cursor, limit=PAGE))
        with self._lock:  # what was read before is not asked for again
            self._cursors = {number: each for number, each in self._cursors.items() if number >= since}
        return [(self._numbered(commit.cursor), commit) for commit in commits]

    def has_news(self) -> bool:
        """Return whether there is a commit after the last one that was read."""
        with self._lock:
            if not self._cursors:
                return False
            cursor = self._cursors[max(self._cursors)]
        return bool(self._run(Changes(since=cursor, limit=1)))

    def _numbered(self, cursor: int | str) -> int:
        with self._lock:
            number = next(self._numbers)
            self._cursors[number] = cursor
            return number

    def _run(self, operation: Operation) -> Any:
        return self._execute(operation, Place(self.branch, self._scope))


class RemoteWatch:
    """A `Watch` of a server: it asks whether the logs that are read have new commits.

    Args:
        address: The address of the server.
    """

    watched = True

    def __init__(self, address: str) -> None:
        self.path = address
        self._logs: WeakSet[RemoteLog] = WeakSet()
        self._versions = count()

    def add(self, log: RemoteLog) -> RemoteLog:
        """Watch a log, as long as somebody uses it."""
        self._logs.add(log)
        return log

    def version(self) -> int:
        """Return another number each time, so that the heads are asked for."""
        return next(self._versions)

    def heads(self, branches: Collection[Branch]) -> dict[Branch, int]:
        """Return, for each branch, a number above all others if a log of it has news, and 0 if none has."""
        out = dict.fromkeys(branches, 0)
        for log in list(self._logs):
            if log.branch in out and not out[log.branch] and log.has_news():
                out[log.branch] = _NEWER
        return out
