"""Batches over HTTP: each has a secret number, belongs to the token that opened it, and ends in time.

A token has one batch that is open or waits for its turn: it could otherwise keep everybody else from writing. Without
tokens, different clients look like one that has several connections: their batches take turns.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from http import HTTPStatus

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from recollect.arguments.checks import is_integer
from recollect.errors import STOPPING, InvalidArgumentError, ProtocolError, ServerBusyError
from recollect.server.calls import reads
from recollect.server.http.exchange import KEY_HEADER, Exchange, OpenedBatch, Site
from recollect.server.http.guard import TooManyError
from recollect.wire import ClientBatch, read_request

#: Number of committed batches that are remembered.
_REMEMBERED = 1000


async def begin_batch(exchange: Exchange) -> Response:
    data = await exchange.json(("in", "expect_head"))
    expect_head = data.get("expect_head")
    if expect_head is not None and not is_integer(expect_head):
        raise InvalidArgumentError("expect_head", expect_head, "must be an integer")
    _check_no_key(exchange)
    calls, client = exchange.calls, exchange.client
    site, limited = exchange.site, bool(exchange.grant.client)
    if limited and (client in site.beginning or calls.has_batch(client)):
        raise TooManyError("a batch of this token is open, or waits for its turn", 1.0)
    batch = calls.batch(exchange.place(data.get("in")), exchange.grant, expect_head)
    if limited:
        site.beginning.add(client)  # other requests are read before the call is queued
    try:
        beginning = calls.run("http", "batch", batch.begin, client=client, batch=batch, begins=True)
        await exchange.while_connected(beginning)
    except (asyncio.CancelledError, ClientDisconnect):
        batch.abandon()
        raise
    finally:
        site.beginning.discard(client)
    if calls.stopping:
        batch.abandon()
        raise ServerBusyError(STOPPING, 1.0)
    number = exchange.site.batch_prefix + secrets.token_hex(16)
    ends = asyncio.get_running_loop().call_later(calls.batch_s, _lose, exchange.site, number)
    exchange.site.batches[number] = OpenedBatch(batch, exchange.namespace, exchange.grant, ends)
    return exchange.json_answer({"ok": True, "result": {"batch": number}}, HTTPStatus.CREATED)


async def add_to_batch(exchange: Exchange) -> Response:
    batch = _of(exchange).batch
    stated = dict(await exchange.json())
    where = stated.pop("in", None)
    place = exchange.place(where)
    name = stated.get("op")

    def call() -> bytes:
        request = read_request(stated, place)
        if where is not None or place.key is not None:
            batch.check(place)
        return batch.answer(request)

    name = name if isinstance(name, str) else "?"
    raw = await exchange.calls.run("http", name, call, client=exchange.client, batch=batch)
    return exchange.answer(raw, is_read=reads(name))


async def commit_batch(exchange: Exchange) -> Response:
    """Commit a batch. Asked again, as after a lost answer, it is answered again."""
    _check_no_key(exchange)
    await exchange.json(())  # takes nothing, and ignores nothing
    number, committed = exchange.parameter("batch"), exchange.site.committed
    if committed.get(number) != exchange.grant:
        await _end(exchange, lambda batch: batch.commit)
        committed[number] = exchange.grant
        if len(committed) > _REMEMBERED:
            committed.popitem(last=False)
    return exchange.json_answer({"ok": True, "result": None})


async def undo_batch(exchange: Exchange) -> Response:
    _check_no_key(exchange)
    await exchange.json(())
    await _end(exchange, lambda batch: batch.undo)
    return exchange.json_answer({"ok": True, "result": None})


async def _end(exchange: Exchange, end: Callable[[ClientBatch], Callable[[], None]]) -> None:
    opened = _of(exchange)
    del exchange.site.batches[exchange.parameter("batch")]
    opened.ends.cancel()
    batch = opened.batch
    await exchange.calls.run("http", "batch", end(batch), client=exchange.client, batch=batch)
    exchange.seq = exchange.calls.desk.token(batch.freshness, exchange.grant)


def _check_no_key(exchange: Exchange) -> None:
    """Raise ProtocolError if the request has an idempotency key, which would be ignored."""
    if KEY_HEADER in exchange.request.headers:
        raise ProtocolError(f"a batch takes no {KEY_HEADER}: a commit that is sent again is answered again")


def _of(exchange: Exchange) -> OpenedBatch:
    """Return the batch that the path names.

    Raises:
        ClosedError: It has ended, or is that of another token.
    """
    opened = exchange.site.batches.get(exchange.parameter("batch"))
    if opened is None or opened.grant != exchange.grant or opened.namespace != exchange.namespace:
        raise exchange.calls.closed_batch()
    return opened


def undo_all(site: Site) -> None:
    """Undo the batches that are open, because the server stops."""
    for number in list(site.batches):
        _lose(site, number)


def _lose(site: Site, number: str) -> None:
    lost = site.batches.pop(number, None)
    if lost is not None:
        lost.ends.cancel()
        lost.batch.abandon()
