"""Embeddings over HTTP: any server that speaks the wire format of OpenAI's `/v1/embeddings`.

OpenAI itself, Ollama, vLLM, LM Studio and many others do. What the network does is expected: texts go in batches, each
request has a timeout, and an answer that says "later" (429, 5xx, a connection that breaks) is asked for again a few
times, after what the server names in Retry-After or else a growing pause. What comes back is read with suspicion: an
answer has a deadline as a whole, a size that follows from what was asked, and no compression, since a kilobyte can be
compressed of a megabyte and vectors gain little by it.

The key is sent to the server and appears nowhere else: in no message, no repr and no cause of an error. Redirects are
not followed, so that the key goes to no other server.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from recollect.embedding.base import Floors, Given, check_floors
from recollect.errors import (
    EmbedderError,
    EmbedderRefusedError,
    EmbedderUnavailableError,
    InvalidArgumentError,
    MissingExtraError,
    RecollectError,
)

if TYPE_CHECKING:
    import ssl

    import httpx

#: Answers after which asking again may help, and those that are about the texts, not about us.
LATER = frozenset({408, 425, 429, 500, 502, 503, 504})
REFUSED = frozenset({400, 413, 422})
#: The first pause in seconds, which doubles each time, and the longest, whatever the server asks for.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0
#: Bytes of an answer: of each vector where its dimension is not known yet (10,000 numbers as servers write them), of
#: each number where it is, of what else stands with a vector, and of what stands once. Of an error no more is read.
UNKNOWN_VECTOR_BYTES, NUMBER_BYTES, ITEM_BYTES, ENVELOPE_BYTES = 2**18, 64, 2**10, 2**16
#: Maximum number of connections that are kept for the next requests.
_IDLE = 8


class _Answer(NamedTuple):
    """What a server answered: `content` is what was read of the body, `whole` whether that is all of it."""

    status: int
    retry_after: str | None
    content: bytes
    whole: bool


class _Request:
    """What a request has under way, so that whoever waits for it can end it and nothing else.

    `held` is a duplicate of the socket: httpx closes the socket itself in its own thread, whenever it likes, and its
    number may then be another connection's. What is done to a duplicate is done to the same connection for sure.
    """

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._lock = threading.Lock()
        self._held: socket.socket | None = None
        self._cut = self._done = False

    def hold(self, connection: socket.socket) -> None:
        """Note the connection that it uses from now on. One that it comes to after it was cut is shut at once."""
        with self._lock, suppress(OSError):  # closed already: httpx will open another one
            held = socket.fromfd(connection.fileno(), connection.family, connection.type)
            self._let_go()
            self._held = held
            if self._cut:
                self._shut()

    def traced(self, event: str, facts: Mapping[str, Any]) -> None:
        """Hold a connection as soon as it is there. For httpx, which calls it in the request's thread."""
        if event.endswith("connect_tcp.complete"):
            self.hold(facts["return_value"].get_extra_info("socket"))

    def cut(self) -> None:
        """End it, unless it is done: what waits for its connection is woken, and fails."""
        with self._lock:
            self._cut = not self._done
            self._shut()

    def done(self) -> bool:
        """Hold nothing any more; from here on it cannot be cut. Whether it was not."""
        with self._lock:
            self._done = True
            self._let_go()
            return not self._cut

    def _shut(self) -> None:
        if self._held is not None:
            with suppress(OSError):  # the server was faster
                self._held.shutdown(socket.SHUT_RDWR)

    def _let_go(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


class _Way:
    """A client that one request at a time uses, so that none is ended by another.

    life        of the embedder's connections, when it was made
    connection  the socket that the answer before came on, which the next request may use; it may be closed
    """

    def __init__(self, client: httpx.Client, life: int) -> None:
        self.client = client
        self.life = life
        self.connection: socket.socket | None = None


class Endpoint:
    """An `Embedder` behind a URL.

    model        as the server calls it
    url          up to and with the version: "https://api.openai.com/v1"
    key          sent as a bearer token; None for servers that want none
    provider     the first part of the embedder's name
    dimensions   ask for vectors of this size, where the model can shorten them; None: its own size
    batch_size   texts in a request
    timeout_s    seconds from sending a request to the end of its answer. Each retry has as many, and the pauses between
                 them come on top; a question is one request, so its call ends within this time
    retries      how often a request that failed for now is sent again; a question's never is, as someone waits for it
    floors       of the model's cosines (`Floors`)
    sleep        waits so many seconds; for tests
    key_variable   the environment variable that holds the key, for the message that it is missing
    """

    def __init__(
        self,
        model: str,
        *,
        url: str,
        key: str | None = None,
        provider: str = "endpoint",
        dimensions: int | None = None,
        batch_size: int = 128,
        timeout_s: float = 30.0,
        retries: int = 3,
        floors: Floors = Floors(),  # noqa: B008 - a constant
        sleep: Callable[[float], object] = time.sleep,
        key_variable: str = "",
    ) -> None:
        if not isinstance(model, str) or not model:
            raise InvalidArgumentError("model", model, "must be the name of a model")
        try:
            parts = urlsplit(url) if isinstance(url, str) else None
            sound = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # brackets that do not close, a port that is none
            parts, sound = None, False
        if parts is None or not sound:
            raise InvalidArgumentError("url", "...", "must be an http or https address")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise InvalidArgumentError("url", "...", "must hold neither user, password, query nor fragment")
        if key is not None and not (isinstance(key, str) and key.isascii() and key.isprintable() and " " not in key):
            raise InvalidArgumentError("key", "...", "must be visible ASCII characters")
        for name, value, least in (
            ("batch_size", batch_size, 1),
            ("retries", retries, 0),
            ("dimensions", dimensions, 1),
        ):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise InvalidArgumentError(name, value, f"must be an integer of at least {least}")
        if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)) or not 0 < timeout_s < 86_400:
            raise InvalidArgumentError("timeout_s", timeout_s, "must be seconds, above 0")
        self.name = f"{provider}/{model}"
        self.floors = check_floors(floors)
        self._model = model
        self._url = url.rstrip("/") + "/embeddings"
        self._key = key
        self._key_variable = key_variable
        self._dimensions = dimensions
        self._batch_size = batch_size
        self._timeout_s = timeout_s
        self._retries = retries
        self._sleep = sleep
        self._size = dimensions  # of the vectors that came so far
        self._lock = threading.Lock()  # for what follows
        self._tls: ssl.SSLContext | None = None
        self._idle: list[_Way] = []
        self._life = 0

    @property
    def dimension(self) -> int | None:
        return self._dimensions

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} at {self._url}>"

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[Given]:
        try:
            return self._embed(texts, asking)
        except RecollectError:
            raise
        except Exception as error:  # noqa: BLE001 - of httpx, say, or of a system that has no thread left
            raise EmbedderError(self.name, f"{type(error).__name__}: {self._scrubbed(str(error))}") from None

    def _embed(self, texts: Sequence[str], asking: bool) -> list[Given]:
        if self._key is None and self._key_variable:
            raise EmbedderUnavailableError(self.name, f"it needs a key: set {self._key_variable}")
        out: list[Given] = []
        for start in range(0, len(texts), self._batch_size):
            batch = list(texts[start : start + self._batch_size])
            answer = self._asked(
                self._body(batch, asking), self._most_bytes(len(batch)), 0 if asking else self._retries
            )
            out.extend(self._vectors(answer, len(batch)))
        return out

    def close(self) -> None:
        """Close the connections; what is under way is let finish first. Embedding again opens new ones."""
        with self._lock:
            self._life += 1
            idle, self._idle = self._idle, []
        for way in idle:
            way.client.close()

    def _body(self, texts: list[str], asking: bool) -> dict[str, Any]:
        """What is sent for a batch."""
        body: dict[str, Any] = {"model": self._model, "input": texts}
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        return body

    def _taken(self) -> _Way:
        """A way to the server, for one request: the one used last of those that are free, or a new one."""
        import httpx

        with self._lock:
            if self._idle:
                return self._idle.pop()
            if self._tls is None:  # takes 25 ms, a client with it 0.1 ms
                self._tls = httpx.create_ssl_context()
            life = self._life
        headers = {} if self._key is None else {"Authorization": f"Bearer {self._key}"}
        return _Way(httpx.Client(headers=headers, verify=self._tls, follow_redirects=False), life)

    def _kept(self, way: _Way) -> bool:
        """Keep a way for the next request, if there is room and nobody has closed the embedder."""
        with self._lock:
            kept = way.life == self._life and len(self._idle) < _IDLE
            if kept:
                self._idle.append(way)
        return kept

    def _most_bytes(self, count: int) -> int:
        """How long an answer with so many vectors may be."""
        vector = UNKNOWN_VECTOR_BYTES if self._size is None else self._size * NUMBER_BYTES
        return ENVELOPE_BYTES + count * (ITEM_BYTES + vector)

    def _asked(self, body: dict[str, Any], most: int, retries: int) -> Any:
        """The JSON of the server's answer, of at most so many bytes. Raises: EmbedderError and its kinds."""
        try:
            import httpx
        except ImportError as error:
            raise MissingExtraError(f"the embedder {self.name}", "httpx", "embedding-http") from error
        pause_s = FIRST_PAUSE_S
        for tries_left in range(retries, -1, -1):
            wanted_s: float | None = None
            try:
                answer = self._within_deadline(body, most)
            except (httpx.TimeoutException, TimeoutError):
                detail = f"no answer within {self._timeout_s:g} s"
            except httpx.HTTPError as error:
                detail = f"no connection: {type(error).__name__} {self._scrubbed(str(error))}"
            else:
                if 200 <= answer.status < 300:
                    return self._read(answer, most)
                detail = f"status {answer.status}{self._said(answer)}"
                if answer.status in REFUSED:
                    raise EmbedderRefusedError(self.name, detail)
                if answer.status not in LATER:
                    raise EmbedderUnavailableError(self.name, detail)
                wanted_s = _retry_after(answer.retry_after)
            if wanted_s is not None and wanted_s > LONGEST_PAUSE_S:
                raise EmbedderError(self.name, f"{detail}; it asks to wait {wanted_s:.0f} s")
            if tries_left:
                self._sleep(min(pause_s if wanted_s is None else wanted_s, LONGEST_PAUSE_S))
                pause_s *= 2
        # The cause is left out: its traceback would hold the request.
        raise EmbedderError(self.name, f"{detail}, {retries + 1} times" if retries else detail) from None

    def _within_deadline(self, body: dict[str, Any], most: int) -> _Answer:
        """Send a request and read its answer, in a thread of its own.

        A timeout of httpx is for each reading of the socket, and a server that gives a byte each second, of its headers
        too, keeps within it for ever. So what is waited for here is the whole. Past the deadline the request's
        connection is shut, which ends the thread at once. One that is still to be made is shut as soon as it is there;
        httpx gives up making it after `timeout_s` for each address of the server.

        Raises: TimeoutError: past the deadline. httpx.HTTPError; EmbedderError where it is compressed.
        """
        request = _Request(self._timeout_s)
        outcome: Future[_Answer] = Future()

        def ask() -> None:
            try:
                outcome.set_result(self._answer(request, body, most))
            except BaseException as error:  # noqa: BLE001 - it is the caller's, who waits for it
                outcome.set_exception(error)

        threading.Thread(target=ask, name="recollect-embedding", daemon=True).start()
        try:
            return outcome.result(request.timeout_s)
        except BaseException:
            request.cut()
            raise

    def _answer(self, request: _Request, body: dict[str, Any], most: int) -> _Answer:
        """One answer, read up to what it may have."""
        way = self._taken()
        answered = False
        try:
            if way.connection is not None:
                request.hold(way.connection)
            answer = self._read_on(way, request, body, most)
            answered = True
        finally:
            uncut = request.done()
            if not (answered and uncut and self._kept(way)):
                way.client.close()
        return answer

    def _read_on(self, way: _Way, request: _Request, body: dict[str, Any], most: int) -> _Answer:
        with way.client.stream(
            "POST",
            self._url,
            json=body,
            headers={"Accept-Encoding": "identity"},  # some servers compress unless they are told not to
            timeout=request.timeout_s,
            extensions={"trace": request.traced},
        ) as answer:
            stream = answer.extensions.get("network_stream")
            way.connection = None if stream is None else stream.get_extra_info("socket")
            coding = answer.headers.get("Content-Encoding", "identity").strip().lower()
            if coding not in ("", "identity"):
                raise EmbedderError(self.name, f"its answer is compressed ({coding[:20]}), which was not asked for")
            most = most if answer.is_success else ENVELOPE_BYTES
            content = bytearray()
            for part in answer.iter_raw(2**16):
                content += part
                if len(content) > most:
                    break
            whole = len(content) <= most
            return _Answer(answer.status_code, answer.headers.get("Retry-After"), bytes(content[:most]), whole)

    def _read(self, answer: _Answer, most: int) -> Any:
        if not answer.whole:
            raise EmbedderError(self.name, f"its answer is longer than the {most} bytes that such vectors can take")
        try:
            return json.loads(answer.content)
        except (ValueError, RecursionError):
            raise EmbedderError(self.name, "its answer is not JSON") from None

    def _vectors(self, answer: Any, count: int) -> list[Given]:
        """The vectors of an answer, in the order of the texts. Whether each is sound is for `embedded` to say."""
        items = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise EmbedderError(self.name, 'its answer has no list "data" of objects')
        if len(items) != count:
            raise EmbedderError(self.name, f"it gave {len(items)} vectors for {count} texts")
        out: list[Given] = [None] * count
        places = [item.get("index", place) for place, item in enumerate(items)]
        if not all(type(place) is int for place in places) or sorted(places) != list(range(count)):
            raise EmbedderError(self.name, "the indexes in its answer are not those of the texts")
        for place, item in zip(places, items, strict=True):
            out[place] = item.get("embedding")
        sizes = [len(vector) for vector in out if isinstance(vector, list)]
        if self._size is None and sizes:
            self._size = max(sizes)
        return out

    def _said(self, answer: _Answer) -> str:
        """What the server says is wrong, for a message. Of a refused key nothing: such answers repeat the key."""
        if answer.status in (401, 403):
            return " (the key is missing, wrong, or may not use this model)"
        try:
            said = json.loads(answer.content)["error"]
            said = said["message"] if isinstance(said, dict) else said
        except (ValueError, LookupError, TypeError, RecursionError):
            return ""
        return f" ({self._scrubbed(said)[:200]})" if isinstance(said, str) and said else ""

    def _scrubbed(self, text: str) -> str:
        return text.replace(self._key, "...") if self._key else text


def _retry_after(value: str | None) -> float | None:
    """The seconds that a Retry-After header asks for: a number, or a date. None where it says neither."""
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return float(value)
    try:
        when = parsedate_to_datetime(value)
    except (ValueError, OverflowError):  # the latter of a year or an offset of many digits
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
