"""Results that are larger than an answer of a server: read in parts, so that a caller gets them as in a process.

While others write, the parts of a `find` may be of different moments. It is then repeated, some times; after that, a
record that was changed meanwhile may be missing, and none is there twice. `open_export` is always of one moment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import count
from typing import Any
from weakref import WeakSet

from recollect.engine.feed import PAGE
from recollect.engine.results import RecordList
from recollect.engine.scope import Place, Scope
from recollect.errors import ResultChangedError
from recollect.filters.tree import Everything
from recollect.ledger.commits import Branch, Commit
from recollect.operations import At, Changes, Find, Operation, ReadHead
from recollect.records.record import Record
from recollect.wire import read_answer, read_result

#: How often a result that changes while it is read is read again.
_TRIES = 4
#: Sends an operation, and returns its answer as parsed JSON. The second argument is what the request has in "rest".
Send = Callable[[Operation, Mapping[str, Any] | None], Any]


def read_whole(operation: Operation, send: Send, state: Callable[[], object]) -> Any:
    """Return the result of an operation.

    Args:
        send: Sends an operation.
        state: Returns what is another value after the records were changed.

    Raises:
        ResultChangedError: The result was changed while it was read, again and again.
        RecollectError: What the operation raises.
    """
    answer = send(operation, None)
    result = read_answer(operation, answer)
    if not isinstance(answer, Mapping) or answer.get("more") is None:
        return result
    inner = operation.operation if isinstance(operation, At) else operation

    def read(changed: Operation) -> tuple[Any, Any]:
        asked = replace(operation, operation=changed) if isinstance(operation, At) else changed
        answered = send(asked, None)
        return read_answer(asked, answered), answered.get("more")

    if isinstance(inner, Find):
        return _found(inner, read, state)
    if isinstance(inner, Changes):
        return _changes(inner, result, read)
    for _ in range(_TRIES - 1):
        try:
            return _rest(operation, answer, send)
        except ResultChangedError:
            answer = send(operation, None)
    return _rest(operation, answer, send)


Read = Callable[[Any], tuple[Any, Any]]


def _found(operation: Find, read: Read, state: Callable[[], object]) -> RecordList:
    for _ in range(_TRIES):
        before = state()
        out: dict[str, Record] = {}
        committed: dict[str, datetime | None] = {}
        after, left, more = operation.after, operation.limit, True
        while more:
            page, more = read(replace(operation, after=after, limit=left))
            out |= {each.id: each for each in page}
            committed |= dict(zip((each.id for each in page), page.committed, strict=operation.with_commit))
            after = page.cursor
            left = None if left is None else left - len(page)
        if state() == before:
            break
    return RecordList(out.values(), after, committed.values())


def _changes(operation: Changes, first: list[Commit], read: Read) -> list[Commit]:
    """Return commits, of which the first answer has a part. The newest are read oldest first, too."""
    out: list[Commit] = []
    since, limit = operation.since, None if operation.newest_first else operation.limit
    is_whole = operation.id is None and operation.parts is None and operation.where == Everything()
    lists_all = is_whole and first[0].seq  # 0 within a scope
    if operation.newest_first and operation.limit is not None and isinstance(since, int) and lists_all:
        since = max(since, first[0].seq - operation.limit)
    more: Any = True
    while more is not None:
        left = None if limit is None else limit - len(out)
        page, more = read(replace(operation, newest_first=False, since=since, limit=left))
        out += page
        since = out[-1].cursor if out else since
    return out[::-1][: operation.limit] if operation.newest_first else out


def _rest(operation: Operation, answer: Any, send: Send) -> Any:
    """Return the result of which an answer has the first part."""
    items = list(read_result(answer))
    while (more := answer.get("more")) is not None:
        answer = send(operation, more["rest"])
        items += read_result(answer)
    return read_answer(operation, {"ok": True, "result": items})


# The commits of a namespace, read from a server, and what notices new ones.
#
# A client knows commits only by their cursors, since a scope does not show their numbers. `RemoteLog` gives each
# commit that it reads a number of its own.

#: What the newest commit is for a subscriber that is to read the log.
_NEWER = 2**62


class RemoteLog:
    """A `CommitLog` that a server reads.

    Args:
        scope: The scope of the reader.
        execute: Executes a reading operation on the server.
        parts: The parts of the memory whose commits are read, by name; None: all.
    """

    def __init__(
        self,
        branch: Branch,
        scope: Scope,
        execute: Callable[[Operation, Place], Any],
        parts: Collection[str] | None = None,
    ) -> None:
        self.branch = branch
        self._changes = partial(Changes, parts=parts)
        self._scope = scope
        self._execute = execute
        self._numbers = count(1)
        self._cursors: dict[int, int | str] = {}
        self._lock = threading.Lock()

    def head(self) -> int:
        """Return the number of the newest commit."""
        if not self._scope.fixed:
            return self._numbered(self._run(ReadHead()).seq)
        newest = self._run(self._changes(limit=1, newest_first=True))
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
        self._run(self._changes(since=cursor, limit=1))  # raises if it is none
        return self._numbered(cursor)

    def read(self, since: int) -> list[tuple[int, Commit | None]]:
        """Return up to `PAGE` commits after a number, each with its number."""
        with self._lock:
            cursor = self._cursors.get(since, 0)
        commits: list[Commit] = self._run(self._changes(since=cursor, limit=PAGE))
        with self._lock:  # what was read before is not asked for again
            self._cursors = {number: each for number, each in self._cursors.items() if number >= since}
        return [(self._numbered(commit.cursor), commit) for commit in commits]

    def has_news(self) -> bool:
        """Return whether there is a commit after the last one that was read."""
        with self._lock:
            if not self._cursors:
                return False
            cursor = self._cursors[max(self._cursors)]
        return bool(self._run(self._changes(since=cursor, limit=1)))

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
        """Watch a log, as long as it is used."""
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
