"""Messages over HTTP, on connections that are kept alive, with a bearer token if there is one."""

from __future__ import annotations

import http.client
import re
import select
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from itertools import accumulate
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from recollect.engine.results import ExportedPart, record_from_json
from recollect.errors import (
    InvalidArgumentError,
    ProtocolError,
    RecollectError,
    ServerVersionError,
    UnsupportedError,
)
from recollect.records.record import Record
from recollect.wire import PROTOCOL, Place, decode, encode, place_json, read_result
from recollect.wire.client.transport import LostError, Pool, RemoteExport, stated_parts
from recollect.wire.seen import NOTHING, SEEN_HEADER, SEQ_HEADER
from recollect.wire.trace import TRACE

#: The header with the version of the messages.
VERSION_HEADER = "Recollect-Protocol"
#: What a proxy answers whose server is gone or does not answer. Our server answers 503 with JSON.
_OF_PROXIES = frozenset((HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT))


class _Server(NamedTuple):
    secure: bool
    host: str
    port: int
    prefix: str


class HttpTransport:
    """A `Transport` over HTTP.

    Args:
        address: The address of the server: http://HOST:PORT or https://HOST, perhaps with a path before /v1.
        token: The bearer token.
        timeout_s: Seconds that each message of a batch or an export may take.
        connect_s: Seconds that connecting may take.

    Raises:
        InvalidArgumentError: The value is not such an address.
    """

    def __init__(self, address: str, token: str | None, timeout_s: float, connect_s: float) -> None:
        self.address = address.rstrip("/")
        self._server = _server_of(address)
        self._headers = {"Content-Type": "application/json", VERSION_HEADER: str(PROTOCOL)}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout_s = timeout_s
        self._connect_s = connect_s
        self._pool: Pool[http.client.HTTPConnection] = Pool(_is_open)

    def exchange(self, message: dict[str, Any], timeout_s: float) -> Any:
        """Send a request and return its answer. See `Transport.exchange`."""
        namespace = message.get("in", {}).get("namespace", "default")
        seen = message.get("seen", NOTHING)
        body = encode({name: value for name, value in message.items() if name != "seen"})
        return self._request("POST", f"/v1/{quote(namespace, safe='')}/execute", body, timeout_s, seen)

    @contextmanager
    def batch(self, place: Place, expect_head: int | None) -> Iterator[_BatchChannel]:
        """Open a batch. See `Transport.batch`."""
        begin: dict[str, Any] = {"in": place_json(place)}
        if expect_head is not None:
            begin["expect_head"] = expect_head
        batches = f"/v1/{quote(place.branch.owner.namespace, safe='')}/batches"
        number = read_result(self._request("POST", batches, encode(begin), self._timeout_s))["batch"]
        channel = _BatchChannel(self, f"{batches}/{number}")
        try:
            yield channel
        except BaseException:
            with suppress(LostError, RecollectError):  # the server undoes a batch when its time is over
                self._request("DELETE", channel.path, None, self._timeout_s)
            raise
        self._commit(channel)

    def _commit(self, channel: _BatchChannel) -> None:
        """Commit a batch; again if the answer is lost, since the server answers again to the same number."""
        path = f"{channel.path}/commit"
        try:
            answer = self._request("POST", path, b"{}", self._timeout_s)
        except LostError as lost:
            try:
                answer = self._request("POST", path, b"{}", self._timeout_s)
                read_result(answer)
            except LostError as again:
                raise LostError(str(again), sent=lost.sent or again.sent) from None
            except RecollectError:
                raise LostError(str(lost), sent=lost.sent) from None
        read_result(answer)
        channel.seq = answer.get("seq", "")

    @contextmanager
    def export(self, place: Place, parts: Collection[str] | None, seen: str) -> Iterator[RemoteExport]:
        """Open a snapshot. See `Transport.export`."""
        path = f"/v1/{quote(place.branch.owner.namespace, safe='')}/export"
        connection = self._new()
        try:
            chosen = {} if parts is None else {"parts": [*parts]}
            body = encode({"in": place_json(place), **chosen})
            response = self._sent(connection, "POST", path, body, self._timeout_s, seen)
            if response.status != 200:
                read_result(_answer(response.status, response.read(), self.address))
            head = decode(response.readline())
            stated = stated_parts(head, parts)
            stream = _Stream(response, [head["count"], *(each["count"] for each in stated)])
            others = tuple(
                ExportedPart(each["name"], each["root"], each["count"], stream.section(number))
                for number, each in enumerate(stated, 1)
            )
            yield RemoteExport(head["root"], head["count"], stream.section(0), others)
        except (OSError, http.client.HTTPException) as error:
            raise LostError(f"the connection broke: {error!r}", sent=True) from None
        finally:
            connection.close()

    def store(self) -> str:
        """Return what the nodes of a store have in common. See `Transport.store`."""
        answer = self._request("GET", "/readyz", None, self._connect_s)
        if answer.get("ok") is not True:
            raise LostError("it takes no requests", sent=False)
        return str(answer.get("store", ""))

    def close(self) -> None:
        """Close all connections. Those in use are closed when their answer has come."""
        self._pool.close()

    def _request(self, method: str, path: str, body: bytes | None, timeout_s: float, seen: str = NOTHING) -> Any:
        connection = self._pool.take() or self._new()
        try:
            response = self._sent(connection, method, path, body, timeout_s, seen)
            data = response.read()
        except BaseException as error:
            connection.close()
            if isinstance(error, TimeoutError):
                raise LostError(f"no answer within {timeout_s:g} s", sent=True) from None
            if isinstance(error, (OSError, http.client.HTTPException)):
                raise LostError(f"the connection broke: {error!r}", sent=True) from None
            raise
        if response.will_close:
            connection.close()
        else:
            self._pool.keep(connection)
        version = response.getheader(VERSION_HEADER)
        if version is not None and version != str(PROTOCOL):
            raise ServerVersionError(self.address, version, PROTOCOL)
        answer = _answer(response.status, data, self.address)
        if isinstance(answer, dict) and (seq := response.getheader(SEQ_HEADER)):
            answer["seq"] = seq
        return answer

    def _sent(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        timeout_s: float,
        seen: str,
    ) -> http.client.HTTPResponse:
        assert connection.sock is not None
        connection.sock.settimeout(timeout_s)
        connection.request(
            method, self._server.prefix + path, body, {**self._headers, **TRACE.get(), SEEN_HEADER: seen}
        )
        return connection.getresponse()

    def _new(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._server.secure else http.client.HTTPConnection
        connection = kind(self._server.host, self._server.port, timeout=self._connect_s)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise LostError(f"cannot connect: {error.strerror or error}", sent=False) from None
        return connection


class _BatchChannel:
    """A batch on the server."""

    def __init__(self, transport: HttpTransport, path: str) -> None:
        self.path = path
        self.seq = ""
        self._transport = transport

    def exchange(self, message: dict[str, Any]) -> Any:
        transport = self._transport
        return transport._request("POST", f"{self.path}/execute", encode(message), transport._timeout_s)


def _server_of(address: str) -> _Server:
    try:
        parts = urlsplit(address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:
        valid = False
    if "," in address:
        raise InvalidArgumentError("address", address, "must be one address: pass several as a list of strings")
    if not valid or parts.username is not None:
        rule = "must be http://HOST:PORT, https://HOST (pass token= apart) or unix://PATH; recollect.open opens a file"
        raise InvalidArgumentError("address", address, rule)
    if re.search("/v1(/|$)", parts.path):
        raise InvalidArgumentError("address", address, "must end before /v1; pass namespace= apart")
    return _Server(parts.scheme == "https", parts.hostname or "", port, parts.path.rstrip("/"))


class _Stream:
    """The lines of an export, in sections that are read one after the other.

    Args:
        lines: The lines.
        counts: How many of them each section has.
    """

    def __init__(self, lines: Iterable[bytes], counts: Sequence[int]) -> None:
        self._lines = iter(lines)
        self._ends = [*accumulate(counts)]
        self._read = 0

    def section(self, number: int) -> Iterator[Record]:
        """Yield the records of a section. Those of earlier ones that were not read are passed over.

        Raises:
            UnsupportedError: A later section was read before.
        """
        start = self._ends[number - 1] if number else 0
        at = start
        while at < self._ends[number]:
            if self._read > at:
                raise UnsupportedError("reading what was passed over", "over HTTP, an export is read in its order")
            line = next(self._lines, None)
            if line is None:
                raise LostError(f"the export ended after {self._read} of {self._ends[-1]} records", sent=True)
            self._read += 1
            record = record_from_json(decode(line))  # an error that ended the export is no record
            if self._read > start:
                at = self._read
                yield record


def _answer(status: int, data: bytes, address: str) -> Any:
    """Return an answer in the form that it has over the socket."""
    try:
        answer = decode(data)
    except ProtocolError:
        if status in _OF_PROXIES:
            raise LostError(f"a proxy answered with status {status}", sent=True) from None
        raise ProtocolError(f"{address} answered with status {status} and no JSON: is it a recollect server?") from None
    if status < 400:
        return answer
    if not isinstance(answer, Mapping) or "code" not in answer:
        raise ProtocolError(f"{address} answered with status {status}: is it a recollect server?")
    stated = {name: answer[name] for name in ("code", "args", "unchanged") if name in answer}
    return {"ok": False, "error": {**stated, "message": answer.get("detail", "")}}


def _is_open(connection: http.client.HTTPConnection) -> bool:
    """Return whether the server has not closed an idle connection."""
    try:
        return connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]
    except (OSError, ValueError):
        return False
