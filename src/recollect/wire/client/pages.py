"""Results that are larger than an answer of a server: read in parts, so that a caller gets them as in a process.

While others write, the parts of a `find` may be of different moments. It is then repeated, some times; after that, a
record that was changed meanwhile may be missing, and none is there twice. `open_export` is always of one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from recollect.engine.results import RecordList
from recollect.errors import ResultChangedError
from recollect.filters.tree import Everything
from recollect.ledger.commits import Commit
from recollect.operations import At, Changes, Find, Operation
from recollect.wire import read_answer, read_result

#: How often a result that changes while it is read is read again.
_TRIES = 4
#: Sends an operation, and returns its answer as parsed JSON. The second argument is what the request has in "rest".
Send = Callable[[Operation, Mapping[str, Any] | None], Any]


def read_whole(operation: Operation, send: Send, state: Callable[[], object]) -> Any:
    """Return the result of an operation.

    Args:
        operation: The operation.
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
        out: dict[str, Any] = {}
        after, left, more = operation.after, operation.limit, True
        while more:
            page, more = read(replace(operation, after=after, limit=left))
            out |= {each.id: each for each in page}
            after = page.cursor
            left = None if left is None else left - len(page)
        if state() == before:
            break
    return RecordList(out.values(), after)


def _changes(operation: Changes, first: list[Commit], read: Read) -> list[Commit]:
    """Return commits, of which the first answer has a part. The newest are read oldest first, too."""
    out: list[Commit] = []
    since, limit = operation.since, None if operation.newest_first else operation.limit
    lists_all = operation.id is None and operation.where == Everything() and first[0].seq  # 0 within a scope
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
