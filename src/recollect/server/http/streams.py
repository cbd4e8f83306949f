"""Answers and bodies that are streams: commits as they come, and records as lines of JSON.

Commits as server-sent events have their cursor as id, so a client that connects again with Last-Event-ID misses none.
An export is of one moment; an import stores what it has read, a thousand records at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import accumulate
from typing import Any, Literal

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from recollect import Memory, Record
from recollect.arguments.checks import is_integer
from recollect.errors import ProtocolError, RecollectError
from recollect.importers.run import restoring
from recollect.operations import SCOPED, Changes, OpenExport, checked_parts
from recollect.server.http.exchange import VERSION_HEADER, Exchange
from recollect.server.http.guard import TooSlowError
from recollect.server.lines import ExportPages, LineSplitter
from recollect.wire import PROTOCOL, READ, WRITE, Place, commits, decode, encode, record_from_json

#: Seconds without a commit after which a comment shows that the stream is alive.
_ALIVE_S = 15.0
#: How often a stream without a commit looks whether its token is still valid, in seconds.
_LOOK_S = 1.0
#: Maximum number of digits of a number in a query.
_MOST_DIGITS = 18
#: Number of records that are stored at a time, and of bytes of lines.
_STORED = 1000
_STORED_BYTES = 16 * 2**20
#: Maximum number of refused lines that the answer to an import lists.
_LISTED = 1000
#: The name of the part that a head has no name for.
_RECORDS = "records"
_EVENTS, _LINES = "text/event-stream", "application/x-ndjson"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", VERSION_HEADER: str(PROTOCOL)}


async def changes(exchange: Exchange) -> Response:
    query = exchange.request.query_params
    exchange.check_query("since", "limit", "parts", *SCOPED)
    scope = {name: query[name] for name in SCOPED if name in query}
    place, parts = exchange.place({"scope": scope} if scope else None), _parts(query.get("parts"))
    exchange.grant.check(READ, place.branch)
    since: int | str | None = exchange.request.headers.get("last-event-id") or query.get("since")
    events = _EVENTS in exchange.request.headers.get("accept", "")
    if events:
        if exchange.request.method == "HEAD":
            return Response(None, 200, _HEADERS, _EVENTS)
        since = None if since is None else _cursor(since)
        first = Changes(since=since or 0, limit=1, parts=parts)
        # Raises before the answer begins if it is no cursor, or a part is unknown.
        await exchange.on_memory("changes", READ, lambda memory: list(memory.execute(first)), place)
        return StreamingResponse(_events(exchange, exchange.grant.placed(place), since, parts), 200, _HEADERS, _EVENTS)
    limit = query.get("limit", "100")
    if not limit.isascii() or not limit.isdigit() or len(limit) > _MOST_DIGITS:
        raise ProtocolError(f"limit must be a number, got {limit!r:.80}")
    operation = Changes(since=_cursor(since), limit=int(limit), parts=parts)

    def call(memory: Memory) -> bytes:
        found, more = commits(operation, memory.execute, lambda each: each.to_json() | {"cursor": each.cursor})
        return b'{"commits":[%s],"more":%s}' % (b",".join(found), encode(more is not None))

    return exchange.answer(await exchange.on_memory("changes", READ, call, place))


def _cursor(text: int | str | None) -> int | str:
    """Return a cursor from a query: a number is a seq."""
    if isinstance(text, str):
        return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else text
    return text or 0


async def _events(
    exchange: Exchange, place: Any, since: int | str | None, parts: tuple[str, ...] | None
) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    try:
        async for event in _each(exchange, place, since, parts):
            yield event
    except RecollectError as error:
        yield b"event: error\ndata: %s\n\n" % encode(error.to_json())


async def _each(
    exchange: Exchange, place: Any, since: int | str | None, parts: tuple[str, ...] | None
) -> AsyncIterator[bytes]:
    shown = asyncio.get_running_loop().time()
    async for commit in exchange.site.waits.commits(place, since, _LOOK_S, parts):
        if exchange.site.calls.stopping:
            return
        exchange.site.guard.check_again(exchange.request, exchange.grant)
        now = asyncio.get_running_loop().time()
        if commit is None and now - shown < _ALIVE_S:
            continue
        shown = now
        if commit is None:
            yield b": alive\n\n"
        else:
            yield b"id: %s\nevent: commit\ndata: %s\n\n" % (commit.cursor.encode(), encode(commit.to_json()))


async def export(exchange: Exchange) -> Response:
    if exchange.request.method == "POST":
        body = await exchange.json(("in", "parts"))
        place, parts = exchange.place(body.get("in")), checked_parts(body.get("parts"))
    else:
        exchange.check_query(*SCOPED, "parts")
        query = dict(exchange.request.query_params)
        parts = _parts(query.pop("parts", None))
        place = exchange.place({"scope": query})
    if exchange.request.method == "HEAD":
        exchange.grant.check_operation(OpenExport(parts=parts), place.branch)
        return Response(None, 200, _HEADERS, _LINES)
    return await exported(exchange, place, parts)


async def exported(exchange: Exchange, place: Place, parts: tuple[str, ...] | None) -> Response:
    """Return a stream of what a client may see of parts of a memory; None: of all."""
    opened = await exchange.run("export", lambda: ExportPages(exchange.calls.desk.export(place, exchange.grant, parts)))

    async def lines() -> AsyncIterator[bytes]:
        ends = asyncio.get_running_loop().call_later(exchange.calls.export_s, exchange.calls.release, opened.close)
        try:
            yield encode(opened.head) + b"\n"
            for part in (None, *opened.parts):
                while page := await exchange.run("export", partial(_page, opened, part)):
                    exchange.site.guard.check_again(exchange.request, exchange.grant)
                    yield page
        except RecollectError as error:  # a line that is no record, so that no client takes the rest for all
            yield encode(error.to_json()) + b"\n"
        finally:
            ends.cancel()

    return _Released(lines(), lambda: exchange.calls.release(opened.close))


def _parts(text: str | None) -> tuple[str, ...] | None:
    """Return the names of parts in a query, which are separated by commas; None for all."""
    return None if text is None else checked_parts(text.split(","))


def _page(opened: ExportPages, part: str | None) -> bytes:
    """Return the next lines of an export, or of another part of it; none at the end."""
    return b"".join(each + b"\n" for each in opened.read(part))


class _Released(StreamingResponse):
    """A stream of lines that releases something at its end, also if its client leaves before it begins."""

    def __init__(self, lines: AsyncIterator[bytes], release: Callable[[], object]) -> None:
        super().__init__(lines, 200, _HEADERS, _LINES)
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()


#: Outcomes of an import that have no effect yet; counted if there are any.
_KEPT: tuple[Literal["proposed", "quarantined"], ...] = ("proposed", "quarantined")


async def import_records(exchange: Exchange) -> Response:
    exchange.check_query()
    place = exchange.place()
    if place.key is not None:
        raise ProtocolError("an import takes no idempotency key: records that are stored already are not stored again")
    exchange.grant.check(WRITE, place.branch)
    counts: dict[str, int] = {"created": 0, "updated": 0, "unchanged": 0, "refused": 0}
    failed: list[dict[str, Any]] = []
    lines: list[tuple[int, bytes | None]] = []
    size = 0
    sections = _Sections()

    def store(memory: Memory) -> None:
        records: dict[str | None, list[tuple[int, Record]]] = {}
        refused: list[tuple[int, RecollectError]] = []
        for number, line in lines:
            if sections.begins(line):
                continue
            try:
                part, record = sections.record(line, exchange.site.guard.body_bytes)
                records.setdefault(part, []).append((number, record))
            except RecollectError as error:
                refused.append((number, error))
        parts = {name: memory._part(name) for name in sections.names if name is not None}  # raises if one is unknown
        for part, numbered in records.items():
            report = (
                memory.remember_all([record for _, record in numbered])
                if part is None
                else parts[part].remember_all([restoring(record) for _, record in numbered])
            )
            for name in ("created", "updated", "unchanged"):
                counts[name] += report.count(name)
            for kept in _KEPT:
                if report.count(kept):
                    counts[kept] = counts.get(kept, 0) + report.count(kept)
            refused += ((numbered[each.index][0], each.reason) for each in report.failed)
        counts["refused"] += len(refused)
        listed = sorted(refused, key=lambda each: each[0])[: _LISTED - len(failed)]
        failed.extend({"line": number, **error.to_json()} for number, error in listed)
        lines.clear()

    number = 0
    async for line in _lines(exchange):
        number += 1
        if line is None or line.strip():
            lines.append((number, line))
            size += 0 if line is None else len(line)
        if len(lines) == _STORED or size > _STORED_BYTES:
            await exchange.on_memory("remember_all", WRITE, store, place)
            size = 0
    if lines:
        await exchange.on_memory("remember_all", WRITE, store, place)
    return exchange.json_answer({**counts, "failed": failed})


class _Sections:
    """The lines of an export: its first one says how many records of each part of the memory follow, in this order.

    Attributes:
        names: The names of the sections; None for the records.
    """

    def __init__(self) -> None:
        self.names: list[str | None] = [None]
        self._ends = [0]  # the last section has all that follow
        self._read = 0
        self._has_begun = False

    def begins(self, line: bytes | None) -> bool:
        """Return whether a line is the first one of an export, and note what it says.

        Raises:
            ProtocolError: It is, and what it says are not the parts of a memory: the lines below belong nowhere.
        """
        if self._has_begun:
            return False
        self._has_begun = True
        try:
            head = None if line is None else decode(line)
        except ProtocolError:
            return False
        if isinstance(head, dict) and head.keys() == {"recollect"}:
            raise ProtocolError("the body is a file of `recollect export`, which `recollect import jsonl` reads")
        if not isinstance(head, dict) or head.keys() - {"parts"} != {"root", "count"}:
            return False
        others = head.get("parts", [])
        if not isinstance(others, list) or not all(isinstance(each, dict) for each in others):
            raise ProtocolError('"parts" must be a list of objects')
        names = [each.get("name") for each in others]
        counts = [head["count"], *(each.get("count") for each in others)]
        if not all(isinstance(each, str) and each != _RECORDS for each in names):
            raise ProtocolError('each of "parts" must have the name of another part of the memory')
        if not all(is_integer(each, 0) for each in counts):
            raise ProtocolError('"count", also in "parts", must be a number of records')
        self.names += names
        self._ends = [*accumulate(counts)]
        return True

    def record(self, line: bytes | None, longest: int) -> tuple[str | None, Record]:
        """Return the record of a line and the part that it belongs to.

        Raises:
            RecollectError: It is not the JSON of a record, or (None) longer than a line may be.
        """
        self._read += 1
        ends = zip(self.names, self._ends, strict=True)
        part = next((name for name, end in ends if self._read <= end), self.names[-1])
        if line is None:
            raise ProtocolError(f"the line is longer than {longest} bytes")
        return part, record_from_json(decode(line))


async def _lines(exchange: Exchange) -> AsyncIterator[bytes | None]:
    """Yield the lines of a body, however long it is; None for a line that is longer than a body may be."""
    lines = LineSplitter(exchange.site.guard.body_bytes)
    stream = exchange.request.stream()
    while True:
        try:
            async with asyncio.timeout(exchange.site.guard.body_s):
                chunk = await anext(stream, None)
        except TimeoutError:
            raise TooSlowError("the body did not go on in time") from None
        for line in lines.feed(b"\n" if chunk is None else chunk):
            yield line
        if chunk is None:
            return
