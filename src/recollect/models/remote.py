"""Requests to servers of models: JSON to a URL and back, within a deadline, retried, and without showing the key.

A request that fails temporarily (429, 5xx, a broken connection) is retried a few times, after the delay in Retry-After
or else a growing pause. Responses are not trusted: each must be complete within a deadline, its size is limited by what
was requested, and it must not be compressed, because a kilobyte can expand to a megabyte.

The key is sent to the server and appears nowhere else: in no message, no repr and no cause of an error. Redirects are
not followed, so the key is sent to no other server. Embedders and language models stand on it.
"""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from recollect.arguments.checks import is_number
from recollect.errors import InvalidArgumentError, MissingExtraError, RecollectError

if TYPE_CHECKING:
    import ssl

    import httpx

#: Status codes after which a retry may help, and those that concern the request rather than the settings.
LATER = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
REFUSED = frozenset({400, 413, 422})
#: The first pause in seconds, which doubles with each retry, and the maximum pause, even if the server requests more.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0
#: Limit on the bytes of a response in addition to those of the results. Of an error response at most this is read.
ENVELOPE_BYTES = 2**16
#: Maximum number of idle clients, each with its connection, that are kept for the next requests.
_IDLE = 8


class Errors(NamedTuple):
    """The errors that a client raises; each takes the name of the model and a detail.

    Attributes:
        failed: A request failed.
        refused: The server refused what was sent.
        unavailable: The server cannot be used with these settings.
    """

    failed: Callable[[str, str], RecollectError]
    refused: Callable[[str, str], RecollectError]
    unavailable: Callable[[str, str], RecollectError]


class _Answer(NamedTuple):
    """The response of a server.

    Attributes:
        status: The status code.
        retry_after: The Retry-After header.
        content: The part of the body that was read.
        complete: Whether `content` is the complete body.
    """

    status: int
    retry_after: str | None
    content: bytes
    complete: bool


class _Request:
    """A request in progress, which the thread that waits for it can abort without affecting any other request.

    `_duplicate` is a duplicate of the socket. httpx closes its socket in its own thread at any time, and the descriptor
    may then belong to another connection; shutting down the duplicate always affects the right one.
    """

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._lock = threading.Lock()
        self._duplicate: socket.socket | None = None
        self._cut = self._done = False

    def use(self, connection: socket.socket) -> None:
        """Register the connection that the request uses from now on. After `cut`, it is shut down at once."""
        with self._lock, suppress(OSError):  # already closed: httpx opens another one
            duplicate = socket.fromfd(connection.fileno(), connection.family, connection.type)
            self._release()
            self._duplicate = duplicate
            if self._cut:
                self._shut()

    def traced(self, event: str, facts: Mapping[str, Any]) -> None:
        """Register a connection as soon as it is open. httpx calls this in the thread of the request."""
        if event.endswith("connect_tcp.complete"):
            self.use(facts["return_value"].get_extra_info("socket"))

    def cut(self) -> None:
        """Abort the request unless it is finished: a read or write that blocks on its connection returns and fails."""
        with self._lock:
            self._cut = not self._done
            self._shut()

    def done(self) -> bool:
        """Finish the request and return whether it was not aborted; from now on it cannot be."""
        with self._lock:
            self._done = True
            self._release()
            return not self._cut

    def _shut(self) -> None:
        if self._duplicate is not None:
            with suppress(OSError):  # already closed by the server
                self._duplicate.shutdown(socket.SHUT_RDWR)

    def _release(self) -> None:
        if self._duplicate is not None:
            self._duplicate.close()
            self._duplicate = None


class _Client:
    """An httpx client that is used by one request at a time, so that no request is aborted with another.

    Attributes:
        http: The client.
        generation: The value of `RemoteClient._generation` when the client was created.
        connection: The socket of the last response, which the next request may use; it may be closed.
    """

    def __init__(self, http: httpx.Client, generation: int) -> None:
        self.http = http
        self.generation = generation
        self.connection: socket.socket | None = None


def checked_url(url: object) -> str:
    """Return a URL without a slash at its end.

    Raises:
        InvalidArgumentError: It is not an http or https URL, or contains more than host, port and path.
    """
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        valid = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # unbalanced brackets, or an invalid port
        parts, valid = None, False
    if parts is None or not valid:
        raise InvalidArgumentError("url", "...", "must be an http or https URL")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidArgumentError("url", "...", "must contain neither user, password, query nor fragment")
    return str(url).rstrip("/")


def check_key(key: object) -> None:
    """Raise InvalidArgumentError unless it is a key that can be sent in a header, or None."""
    if key is not None and not (isinstance(key, str) and key.isascii() and key.isprintable() and " " not in key):
        raise InvalidArgumentError("key", "...", "must be visible ASCII characters")


def check_timeout(timeout_s: object) -> None:
    """Raise InvalidArgumentError unless it is a number of seconds below a day."""
    if not is_number(timeout_s) or not 0 < timeout_s < 86_400:
        raise InvalidArgumentError("timeout_s", timeout_s, "must be a number of seconds, above 0 and below 86400")


class RemoteClient:
    """A client of one URL. Safe for use by several threads.

    Args:
        name: The name of the model, for messages.
        url: The URL.
        headers: The headers of each request, the key among them.
        key: The key, which no message may contain; None if there is none.
        errors: The errors that it raises.
        extra: What needs httpx, and the extra that installs it, for the message if it is missing.
        timeout_s: Maximum seconds from sending a request to the end of its response.
        sleep: Waits the number of seconds that is passed to it; for tests.
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        headers: Mapping[str, str],
        key: str | None,
        errors: Errors,
        extra: tuple[str, str],
        timeout_s: float,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.name = name
        self.url = url
        self._headers = dict(headers)
        self._key = key
        self._errors = errors
        self._extra = extra
        self.timeout_s = timeout_s
        self._sleep = sleep
        self._lock = threading.Lock()  # protects the attributes below
        self._tls: ssl.SSLContext | None = None
        self._idle: list[_Client] = []
        self._generation = 0

    def __repr__(self) -> str:
        return f"<RemoteClient {self.name!r} at {self.url}>"

    def close(self) -> None:
        """Close the connections; requests in progress finish first. The next request opens new ones."""
        with self._lock:
            self._generation += 1
            idle, self._idle = self._idle, []
        for client in idle:
            client.http.close()

    def request(self, body: Mapping[str, Any], most: int, retries: int) -> Any:
        """Send a request and return the JSON of its response.

        Args:
            body: The request body.
            most: Maximum size of the response in bytes.
            retries: Maximum number of retries after temporary failures.

        Raises:
            RecollectError: The request failed (`Errors`).
            MissingExtraError: httpx is not installed.
        """
        try:
            import httpx
        except ImportError as error:
            what, extra = self._extra
            raise MissingExtraError(what, "httpx", extra) from error
        pause_s = FIRST_PAUSE_S
        for tries_left in range(retries, -1, -1):
            retry_after_s: float | None = None
            try:
                answer = self._within_deadline(body, most)
            except (httpx.TimeoutException, TimeoutError):
                detail = f"no answer within {self.timeout_s:g} s"
            except httpx.HTTPError as error:
                detail = f"no connection: {type(error).__name__} {self.scrubbed(str(error))}"
            else:
                if 200 <= answer.status < 300:
                    return self._read(answer, most)
                detail = f"status {answer.status}{self._error_message(answer)}"
                if answer.status in REFUSED:
                    raise self._errors.refused(self.name, detail)
                if answer.status not in LATER:
                    raise self._errors.unavailable(self.name, detail)
                retry_after_s = _retry_after(answer.retry_after)
            if retry_after_s is not None and retry_after_s > LONGEST_PAUSE_S:
                raise self._errors.failed(self.name, f"{detail}; the server asks to wait {retry_after_s:.0f} s")
            if tries_left:
                # Between half and all of the pause, so that processes that failed together do not return together.
                own_s = pause_s * (0.5 + random.random() / 2)
                self._sleep(min(own_s if retry_after_s is None else retry_after_s, LONGEST_PAUSE_S))
                pause_s *= 2
        # No cause: its traceback would contain the request.
        raise self._errors.failed(self.name, f"{detail}, {retries + 1} times" if retries else detail) from None

    def _acquire(self) -> _Client:
        """Return a client for one request: the idle one that was used last, or a new one."""
        import httpx

        with self._lock:
            if self._idle:
                return self._idle.pop()
            if self._tls is None:  # takes 25 ms, a client with it 0.1 ms
                self._tls = httpx.create_ssl_context()
            generation = self._generation
        return _Client(httpx.Client(headers=self._headers, verify=self._tls, follow_redirects=False), generation)

    def _release(self, client: _Client) -> bool:
        """Keep a client for the next request, and return whether it was kept.

        It is not kept if `_IDLE` clients are idle already, or if this was closed since the client was created.
        """
        with self._lock:
            kept = client.generation == self._generation and len(self._idle) < _IDLE
            if kept:
                self._idle.append(client)
        return kept

    def _within_deadline(self, body: Mapping[str, Any], most: int) -> _Answer:
        """Send a request and read its response in a separate thread, within the deadline.

        A timeout of httpx applies to each read of the socket; a server that sends one byte per second, even of its
        headers, never exceeds it. Here the deadline applies to the complete response. When it passes, the connection of
        the request is shut down, which ends the thread at once. A connection that is still being opened is shut down as
        soon as it is open; httpx stops trying after `timeout_s` for each address of the server.

        Raises:
            TimeoutError: The deadline passed.
            httpx.HTTPError: The request failed.
            RecollectError: The response is compressed.
        """
        request = _Request(self.timeout_s)
        outcome: Future[_Answer] = Future()

        def send() -> None:
            try:
                outcome.set_result(self._answer(request, body, most))
            except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits
                outcome.set_exception(error)

        threading.Thread(target=send, name="recollect-remote", daemon=True).start()
        try:
            return outcome.result(request.timeout_s)
        except BaseException:
            request.cut()
            raise

    def _answer(self, request: _Request, body: Mapping[str, Any], most: int) -> _Answer:
        """Send one request and return the response, of which at most `most` bytes are read."""
        client = self._acquire()
        answered = False
        try:
            if client.connection is not None:
                request.use(client.connection)
            answer = self._send(client, request, body, most)
            answered = True
        finally:
            aborted = not request.done()
            if not (answered and not aborted and self._release(client)):
                client.http.close()
        return answer

    def _send(self, client: _Client, request: _Request, body: Mapping[str, Any], most: int) -> _Answer:
        with client.http.stream(
            "POST",
            self.url,
            json=body,
            headers={"Accept-Encoding": "identity"},  # some servers compress by default
            timeout=request.timeout_s,
            extensions={"trace": request.traced},
        ) as answer:
            stream = answer.extensions.get("network_stream")
            client.connection = None if stream is None else stream.get_extra_info("socket")
            coding = answer.headers.get("Content-Encoding", "identity").strip().lower()
            if coding not in ("", "identity"):
                raise self._errors.failed(
                    self.name, f"its response is compressed ({coding[:20]}), which it must not be"
                )
            most = most if answer.is_success else ENVELOPE_BYTES
            content = bytearray()
            for part in answer.iter_raw(2**16):
                content += part
                if len(content) > most:
                    break
            complete = len(content) <= most
            return _Answer(answer.status_code, answer.headers.get("Retry-After"), bytes(content[:most]), complete)

    def _read(self, answer: _Answer, most: int) -> Any:
        if not answer.complete:
            raise self._errors.failed(self.name, f"its response is longer than the {most} bytes that it can take")
        try:
            return json.loads(answer.content)
        except (ValueError, RecursionError):
            raise self._errors.failed(self.name, "its response is not JSON") from None

    def _error_message(self, answer: _Answer) -> str:
        """Return the server's error message, for use in ours.

        The message of a rejected key is not used, because such responses repeat the key.
        """
        if answer.status in (401, 403):
            return " (the key is missing, wrong, or may not use this model)"
        try:
            message = json.loads(answer.content)["error"]
            message = message["message"] if isinstance(message, dict) else message
        except (ValueError, LookupError, TypeError, RecursionError):
            return ""
        return f" ({self.scrubbed(message)[:200]})" if isinstance(message, str) and message else ""

    def scrubbed(self, text: str) -> str:
        """Return a text without the key."""
        return text.replace(self._key, "...") if self._key else text


def _retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, which is a number or a date; None if it is neither."""
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return float(value)
    try:
        when = parsedate_to_datetime(value)
    except (ValueError, OverflowError):  # OverflowError: a year or an offset of many digits
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
