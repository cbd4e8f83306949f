"""Answers of bounded size: what is larger is a part of the result, and says how to ask for the rest.

An answer that has `"more"` is a part, and `more` has the fields to ask again with:

- of `find`, `{"after": CURSOR}`, and of `changes`, `{"since": CURSOR}`: fields of the operation. A list of changes that
  begins with the newest goes on with the oldest first: `{"newest_first": false}`;
- of any other list, `{"rest": {"from": NUMBER, "of": HASH}}`, which stands beside the operation: it is executed again,
  and the answer begins with the item of this number. The hash is that of the whole result, so that parts of two
  different ones are not taken for one.

What is no list is refused if it is too large. The answer to a write is never refused, since it was done: it is about as
large as the request. The reads of a batch operation are limited while it runs, and undo it if they return more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from recollect.arguments.checks import is_integer
from recollect.engine.handlers import MOST_READ_BYTES
from recollect.engine.results import RecordList, record_json, result_to_json
from recollect.errors import AnswerTooLargeError, InvalidOperationError, ProtocolError, ResultChangedError
from recollect.ledger.commits import Commit
from recollect.operations import At, Changes, ExecuteBatch, Find, Get, GetAll, Operation, Recall
from recollect.operations.base import READ
from recollect.wire.compact import compact_form
from recollect.wire.encoding import encode

#: Maximum number of records, or of commits, of an answer.
RECORDS = 1000
#: Size of an answer from which on nothing is added, in bytes. One record may be larger.
ANSWER_BYTES = 4 * 2**20
#: How many are read first, to see how large they are.
_PROBED = 100
_MOST_FROM = 2**53


class Rest(NamedTuple):
    """The part of a list that is asked for.

    Attributes:
        start: The number of the first item.
        of: The hash of the whole list, as the answer before it had; "" for the first part.
    """

    start: int = 0
    of: str = ""

    @classmethod
    def from_json(cls, data: object) -> Rest:
        """Read the JSON form.

        Raises:
            ProtocolError: `data` is not a part of an answer.
        """
        match data:
            case {"from": int(start), "of": str(of), **more} if not more and is_integer(start, 0, _MOST_FROM):
                return cls(start, of)
        raise ProtocolError('"rest" must be what "more" of an answer has: {"from": NUMBER, "of": HASH}')


class Page(NamedTuple):
    """A part of the records that were asked for.

    Attributes:
        records: The JSON of each.
        committed: The JSON of the times of their last commits, if they were asked for.
        cursor: Where the next page begins. None: there are no more.
        is_part: Whether it has fewer records than were asked for, and there may be more.
    """

    records: list[bytes]
    committed: bytes | None
    cursor: str | None
    is_part: bool

    def encoded(self) -> bytes:
        """Return the JSON of a `RecordList`."""
        times = b"" if self.committed is None else b',"committed":' + self.committed
        return b'{"records":[%s],"cursor":%s%s}' % (b",".join(self.records), encode(self.cursor), times)


def page(find: Callable[[int], RecordList], limit: int | None) -> Page:
    """Return as many of the records that were asked for as an answer may have, at least one.

    Args:
        find: Returns at most as many records.
        limit: How many were asked for; None: all.

    Cost:
        Another search for a few records if more than a few are asked for, and one if they are too large.
    """
    most = min(limit or RECORDS, RECORDS)
    count = min(most, _PROBED)
    while True:
        found = find(count)
        encoded = [encode(record_json(each)) for each in found]
        kept = fitting(encoded)
        if kept < len(encoded):
            count = most = kept  # again, for the cursor after those that fit
            continue
        larger = 0 if len(found) < count else min(most, ANSWER_BYTES * count // sum(map(len, encoded)))
        if larger <= count:
            times = encode(found.to_json()["committed"]) if found.committed else None
            return Page(encoded, times, found.cursor, found.cursor is not None and len(found) != limit)
        count = larger


def fitting(items: list[bytes]) -> int:
    """Return how many of some parts an answer may have: as many as fit, and at least one."""
    size = 0
    for number, item in enumerate(items):
        size += len(item)
        if size > ANSWER_BYTES:
            return max(1, number)
    return len(items)


def answer(
    operation: Operation,
    execute: Callable[[Operation], Any],
    rest: Rest | None = None,
    *,
    compact: bool = False,
) -> bytes:
    """Execute an operation, and return the answer to it as JSON.

    Args:
        execute: Executes an operation, and returns its result.
        rest: Which part of a list is asked for.
        compact: Return hits in the form of `wire.compact`.

    Raises:
        AnswerTooLargeError: The result is too large, and no list.
        InvalidOperationError: A batch contains reads that may return too many records. Nothing was done.
        RecollectError: What the operation raises.
    """
    inner = operation.operation if isinstance(operation, At) else operation

    def run(changed: Operation) -> Any:
        return execute(replace(operation, operation=changed) if isinstance(operation, At) else changed)

    if isinstance(inner, Find):
        find = inner
        found = page(lambda count: run(replace(find, limit=count)), find.limit)
        return _encoded(found.encoded(), {"after": found.cursor} if found.is_part else None)
    if isinstance(inner, Changes):
        return _changes(inner, run)
    _check_parts(operation)
    limited = MOST_READ_BYTES.set(ANSWER_BYTES if isinstance(operation, ExecuteBatch) else None)
    try:
        found = execute(operation)
        is_hits = compact and isinstance(operation, Recall)
        result = compact_form(found) if is_hits else result_to_json(operation, found)
    finally:
        MOST_READ_BYTES.reset(limited)
    if operation.needs != READ:
        return _encoded(encode(result), None)
    if isinstance(result, list):
        return _list(inner.name, result, rest or Rest())
    raw = encode(result)
    if not isinstance(inner, Get):
        check_size(inner.name, raw)
    return _encoded(raw, None)


def check_size(name: str, raw: bytes) -> None:
    """Raise AnswerTooLargeError if an answer is too large."""
    if len(raw) > ANSWER_BYTES:
        raise AnswerTooLargeError(name, len(raw), ANSWER_BYTES)


def _check_parts(operation: Operation) -> None:
    """Check that the reads within a batch return at most as many records as an answer may have."""
    if not isinstance(operation, ExecuteBatch):
        return
    count = 0
    for part in operation.operations:
        if part.needs == READ:
            one = len(part.ids) if isinstance(part, GetAll) else isinstance(part, Get)
            most = getattr(part, "limit", getattr(part, "k", one))
            count += RECORDS + 1 if most is None else most
    if count > RECORDS:
        rule = f"over a server, the reads of a batch return at most {RECORDS} records together: pass a limit to each"
        raise InvalidOperationError("batch", rule)


def commits(
    operation: Changes,
    execute: Callable[[Changes], list[Commit]],
    form: Callable[[Commit], Any] = lambda commit: commit.to_json(),
) -> tuple[list[bytes], int | str | None]:
    """Return as many of the commits that were asked for as an answer may have, oldest first, and where to go on.

    Args:
        operation: What was asked for.
        execute: Reads commits.
        form: Returns the JSON form of a commit.

    Returns:
        The JSON of each commit, and the cursor of the last if there may be more that were asked for.
    """
    most = min(operation.limit or RECORDS, RECORDS)
    out: list[bytes] = []
    since, size = operation.since, 0
    while len(out) < most:  # the log only grows, so what is read in several steps is what one step would read
        asked = min(_PROBED, most - len(out))
        found = execute(replace(operation, since=since, limit=asked))
        for each in found:
            raw = encode(form(each))
            size += len(raw)
            if out and size > ANSWER_BYTES:
                return out, since
            out.append(raw)
            since = each.cursor
        if len(found) < asked:
            return out, None
    return out, None if len(out) == operation.limit else since


def _changes(operation: Changes, execute: Callable[[Changes], list[Commit]]) -> bytes:
    if not operation.newest_first:
        encoded, since = commits(operation, execute, lambda each: each.to_json())
        return _encoded(b"[%s]" % b",".join(encoded), None if since is None else {"since": since})
    most = min(operation.limit or RECORDS, RECORDS)
    encoded = [encode(each.to_json()) for each in execute(replace(operation, limit=most))]
    kept = fitting(encoded)
    is_part = kept < len(encoded) or (len(encoded) == most and most != operation.limit)
    return _encoded(b"[%s]" % b",".join(encoded[:kept]), {"newest_first": False} if is_part else None)


def _list(name: str, items: list[Any], rest: Rest) -> bytes:
    """Return a part of a list.

    Raises:
        ResultChangedError: The list is another one than that of the part before.
    """
    encoded = [encode(each) for each in items]
    if not rest.start and sum(map(len, encoded)) <= ANSWER_BYTES:
        return _encoded(b"[%s]" % b",".join(encoded), None)
    whole = hashlib.sha256(b"\n".join(encoded)).hexdigest()[:32]
    if rest.start and rest.of != whole:
        raise ResultChangedError(name)
    kept = fitting(encoded[rest.start :])
    after = rest.start + kept
    more = {"rest": {"from": after, "of": whole}} if after < len(encoded) else None
    return _encoded(b"[%s]" % b",".join(encoded[rest.start : after]), more)


def _encoded(result: bytes, more: Mapping[str, Any] | None) -> bytes:
    return b'{"ok":true,"result":%s%s}' % (result, b"" if more is None else b',"more":' + encode(more))
