"""Embeddings over HTTP, against a server on this machine that fails in every way that servers do."""

from __future__ import annotations

import gc
import gzip
import json
import random
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from tests.models.embedding.stub import CLOSED, SILENT, Answer, Endless, Script, StubServer, well

import recollect
from recollect.errors import (
    EmbedderError,
    EmbedderRefusedError,
    EmbedderUnavailableError,
    InvalidArgumentError,
    MissingExtraError,
)
from recollect.models.embedding.base import Embedder, embedded
from recollect.models.embedding.endpoint import Endpoint, Voyage
from recollect.models.embedding.hashed import hashed_vector
from recollect.models.remote import LONGEST_PAUSE_S, _Request

KEY = "sk-very-secret-0123456789"
Make = Callable[..., Endpoint]
#: Longer than a test takes, so that one that waits for nothing fails.
PATIENCE_S = 60


class Pauses(list[float]):
    """Stands in for sleeping: keeps how long it was."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    monkeypatch.setattr(random, "random", lambda: 1.0)  # the longest pauses
    return Pauses()


@pytest.fixture
def make(server: StubServer, pauses: Pauses) -> Iterator[Make]:
    """Makes an embedder that asks the stub, and closes it at the end."""
    made: list[Endpoint] = []

    def make(kind: type[Endpoint] = Endpoint, **options: Any) -> Endpoint:
        made.append(kind("m", **{"url": server.url, "key": KEY, "sleep": pauses, **options}))
        return made[-1]

    yield make
    for each in made:
        each.close()


def failing(embedder: Embedder, texts: tuple[str, ...] = ("a",)) -> EmbedderError:
    """The error of embedding; nowhere in it is the key."""
    with pytest.raises(EmbedderError) as caught:
        embedded(embedder, list(texts))
    reported = "".join(traceback.format_exception(caught.value)) + repr(caught.value.to_json()) + repr(embedder)
    assert KEY not in reported
    return caught.value


def test_vectors_come_back_in_the_order_of_the_texts_whatever_that_of_the_answer(
    make: Make, server: StubServer
) -> None:
    texts = ["one", "two", "three"]
    out = embedded(make(), texts)
    for at, text in enumerate(texts):
        assert out.vectors[at].tolist() == pytest.approx(hashed_vector(text))
    asked = server.asked[0]
    assert asked.path == "/v1/embeddings"
    assert asked.body == {"model": "m", "input": texts}
    assert asked.headers["authorization"] == f"Bearer {KEY}"


def test_texts_go_in_batches_and_a_wanted_size_is_asked_for(make: Make, server: StubServer) -> None:
    server.script = [lambda texts: well(texts, 8)] * 3
    embedder = make(batch_size=2, dimensions=8)
    assert len(embedded(embedder, list("abcde")).vectors) == 5
    assert [asked.body["input"] for asked in server.asked] == [["a", "b"], ["c", "d"], ["e"]]
    assert {asked.body["dimensions"] for asked in server.asked} == {8}
    assert embedder.dimension == 8
    assert embedded(embedder, []).vectors == {}
    assert len(server.asked) == 3


def test_a_server_without_key_gets_none(make: Make, server: StubServer) -> None:
    embedded(make(key=None), ["a"])
    assert "authorization" not in server.asked[0].headers


def test_voyage_learns_whether_it_is_a_question(make: Make, server: StubServer) -> None:
    embedder = make(Voyage, dimensions=256)
    embedded(embedder, ["a"])
    embedded(embedder, ["a?"], asking=True)
    assert [asked.body["input_type"] for asked in server.asked] == ["document", "query"]
    assert {asked.body["output_dimension"] for asked in server.asked} == {256}
    assert embedder.name == "voyage/m"


def test_too_many_requests_wait_as_long_as_the_server_says(make: Make, server: StubServer, pauses: Pauses) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    past = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)
    unread = ("soon", f"Mon, 01 Jan {'9' * 20} 00:00:00 GMT", f"Mon, 01 Jan 2024 00:00:00 +{'9' * 20}")
    server.script = [Answer(429, {}, (("Retry-After", wait),)) for wait in ("7", later, past, *unread)]
    assert len(embedded(make(retries=6), ["a"]).vectors) == 1
    assert (pauses[0], pauses[2]) == (7.0, 0.0)
    assert 10.0 < pauses[1] <= 20.0
    assert pauses[3:] == [4.0, 8.0, 16.0]
    assert len(server.asked) == 7


def test_the_pauses_of_processes_that_failed_together_differ(
    make: Make, server: StubServer, pauses: Pauses, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = make()
    shares = iter([0.0, 0.0, 0.0, 0.5, 0.5, 0.5])
    monkeypatch.setattr(random, "random", lambda: next(shares))
    for expected in ([0.25, 0.5, 1.0], [0.375, 0.75, 1.5]):
        server.script = [Answer(500, {})] * 4
        pauses.clear()
        failing(embedder)
        assert pauses == expected


def test_a_wait_that_is_too_long_is_an_error_at_once(make: Make, server: StubServer, pauses: Pauses) -> None:
    server.script = [Answer(429, {}, (("Retry-After", f"{LONGEST_PAUSE_S + 1:.0f}"),))]
    assert "asks to wait 61 s" in str(failing(make()))
    assert (len(pauses), len(server.asked)) == (0, 1)


@pytest.mark.parametrize("trouble", [Answer(500, {}), Answer(503, b"<html>"), Answer(429, {}), CLOSED])
def test_what_fails_for_now_is_asked_again_after_growing_pauses(
    make: Make, server: StubServer, pauses: Pauses, trouble: Script
) -> None:
    server.script = [trouble, trouble]
    assert len(embedded(make(), ["a"]).vectors) == 1
    assert pauses == [0.5, 1.0]


@pytest.mark.parametrize("trouble", [Answer(500, {"error": {"message": f"for {KEY}"}}), Answer(429, {}), CLOSED])
def test_what_goes_on_failing_is_given_up(make: Make, server: StubServer, pauses: Pauses, trouble: Script) -> None:
    server.script = [trouble] * 10
    assert "4 times" in str(failing(make()))
    assert len(server.asked) == 4
    assert pauses == [0.5, 1.0, 2.0]


def test_a_silent_server_is_given_up_after_the_timeout(make: Make, server: StubServer) -> None:
    server.script = [SILENT]
    assert "no answer within 0.05 s" in str(failing(make(timeout_s=0.05, retries=0)))


def test_a_server_that_is_not_there_is_an_error(make: Make, pauses: Pauses) -> None:
    assert "no connection" in str(failing(make(url="http://127.0.0.1:9/v1", retries=1)))
    assert pauses == [0.5]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_an_error_at_once_and_what_the_server_says_of_it_is_not_repeated(
    make: Make, server: StubServer, pauses: Pauses, status: int
) -> None:
    server.script = [Answer(status, {"error": {"message": "Incorrect API key provided: sk-ve***6789"}})]
    error = failing(make())
    assert isinstance(error, EmbedderUnavailableError)
    assert "sk-ve" not in str(error)
    assert (len(server.asked), pauses) == (1, [])


@pytest.mark.parametrize("status", [400, 413, 422])
def test_refused_texts_are_distinguished_from_a_server_that_cannot_be_used(
    make: Make, server: StubServer, status: int
) -> None:
    server.script = [Answer(status, {"error": {"message": f"too long, {KEY}" + "x" * 500}})]
    error = failing(make())
    assert isinstance(error, EmbedderRefusedError)
    assert "too long" in str(error)
    assert len(str(error)) < 400
    server.script = [Answer(404, {"error": "no such model"})]
    assert isinstance(failing(make()), EmbedderUnavailableError)


def test_a_redirect_is_not_followed_with_the_key(make: Make, server: StubServer) -> None:
    server.script = [Answer(307, {}, (("Location", f"{server.url}/elsewhere"),))]
    assert "status 307" in str(failing(make()))
    assert len(server.asked) == 1


WRONG = {
    "not JSON": b"{nope",
    'no list "data"': {"data": None},
    "list": [1, 2],
    "objects": {"data": [1, 2]},
    "1 vectors for 2": {"data": [{"index": 0, "embedding": [1.0]}]},
    "3 vectors for 2": {"data": [{"embedding": [1.0]}] * 3},
    "indexes": {"data": [{"index": 0, "embedding": [1.0]}] * 2},
    "those of": {"data": [{"index": "0", "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}]},
}


@pytest.mark.parametrize("reported", WRONG)
def test_an_answer_of_another_form_is_an_error(make: Make, server: StubServer, reported: str) -> None:
    server.script = [Answer(200, WRONG[reported])]
    assert reported in str(failing(make(), ("a", "b")))


def test_one_unsound_vector_does_not_cost_the_others(make: Make, server: StubServer) -> None:
    given: list[Any] = [[1.0, 2.0], [float("nan"), 1.0], [1.0], "AAAA", None, [3.0, 4.0]]
    server.script = [Answer(200, {"data": [{"index": at, "embedding": each} for at, each in enumerate(given)]})]
    out = embedded(make(), list("abcdef"))
    assert sorted(out.vectors) == [0, 5]
    assert sorted(out.refused) == [1, 2, 3, 4]


def test_a_missing_key_is_named_with_its_variable_before_anything_is_sent(make: Make, server: StubServer) -> None:
    assert "set OPENAI_API_KEY" in str(failing(make(key=None, key_variable="OPENAI_API_KEY")))
    assert server.asked == []


def test_a_missing_library_is_named_with_what_to_install(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'recollect\[embedding-http\]"):
        embedded(make(), ["a"])


@pytest.mark.parametrize(
    "options",
    [
        {"url": "ftp://x/v1"},
        {"url": "nope"},
        {"url": f"https://user:{KEY}@host/v1"},
        {"url": f"https://host/v1?key={KEY}"},
        {"url": None},
        {"key": f"{KEY}\n"},
        {"key": f"{KEY}é"},
        {"key": " "},
        {"batch_size": 0},
        {"retries": -1},
        {"dimensions": True},
        {"timeout_s": 0},
        {"timeout_s": float("nan")},
        {"floors": (0.1, 0.2)},
    ],
)
def test_wrong_arguments_are_refused_without_repeating_the_key(make: Make, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        make(**options)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("before", [150, 185, 195, 199])
def test_a_key_that_the_server_repeats_is_scrubbed_wherever_the_message_is_cut(
    make: Make, server: StubServer, before: int
) -> None:
    server.script = [Answer(400, {"error": {"message": "x" * before + KEY + "y" * 200}})]
    reported = str(failing(make()))
    assert not any(KEY[:length] in reported for length in range(6, len(KEY)))


def test_a_question_is_not_asked_twice_since_someone_waits_for_it(
    make: Make, server: StubServer, pauses: Pauses
) -> None:
    server.script = [Answer(429, {}, (("Retry-After", "9"),))]
    with pytest.raises(EmbedderError):
        embedded(make(), ["who?"], asking=True)
    assert (len(server.asked), pauses) == (1, [])


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://h:99999/v1", "http://h:x/v1", "http://h\u2100/v1", "ftp://h", ""]
)
def test_an_invalid_address_is_refused(make: Make, url: str) -> None:
    with pytest.raises(InvalidArgumentError, match="url"):
        make(url=url)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.promise("embedder.bounds")
@pytest.mark.parametrize("kind", [Endpoint, Voyage])
@pytest.mark.parametrize("begin", [HEAD + b"\r\n", b"HTTP/1.1 500 No\r\n\r\n"])
def test_a_body_without_end_is_read_as_far_as_vectors_can_reach(
    make: Make, server: StubServer, begin: bytes, kind: type[Endpoint]
) -> None:
    server.script = [Endless(begin, b" " * 2**16)]
    embedder = make(kind, retries=0, timeout_s=600)
    error = str(failing(embedder))
    assert ("is longer than the" in error) if b"200" in begin else ("status 500" in error)
    assert server.left.wait(60)  # the connection is closed, and nothing more is read
    assert server.sent < embedder._most_bytes(1) + 64 * 2**20  # what was under way counts


@pytest.mark.promise("embedder.bounds")
def test_what_an_answer_may_have_follows_from_its_vectors(make: Make, server: StubServer) -> None:
    embedder, unknown = make(dimensions=8), make()
    assert embedder._most_bytes(1) < 70_000 < unknown._most_bytes(1)
    for size in (8, 1536, 4096):  # numbers at their longest, with a blank line between
        long = [-1.2345678901234567e-300] * size
        body = json.dumps({"data": [{"index": at, "embedding": long} for at in range(3)]}, indent=4).encode()
        server.script = [Answer(200, body)] * 2
        first = make(dimensions=size)
        assert len(first.embed(["a", "b", "c"])) == 3
        assert len(unknown.embed(["a", "b", "c"])) == 3
        unknown._size = None
    assert len(unknown.embed(["a"])) == 1
    assert unknown._most_bytes(1) == make(dimensions=256)._most_bytes(1)  # once it is known
    server.script = [Answer(200, b" " * (embedder._most_bytes(1) + 1))]
    assert "is longer" in str(failing(embedder))


@pytest.mark.promise("embedder.bounds")
@pytest.mark.parametrize(
    "answer",
    [
        Endless(HEAD + b"\r\n", b" ", 0.01, 200),
        Endless(HEAD, b"X-A: b\r\n", 0.01, 80),  # the headers have no end
        Endless(b"HTTP/1.1 200 ", b"O", 0.01, 200),
    ],
    ids=["body", "headers", "status"],
)
def test_an_answer_that_trickles_in_has_a_deadline_as_a_whole(
    make: Make, server: StubServer, pauses: Pauses, answer: Endless
) -> None:
    server.script = [answer] * 2
    embedder = make(timeout_s=0.1, retries=1)
    assert "no answer within 0.1 s, 2 times" in str(failing(embedder))
    assert pauses == [0.5]
    assert server.left.wait(60)
    server.script.clear()  # a busy machine may let 0.1 s pass before the server reads a request
    embedder._client.timeout_s = 30.0
    assert len(embedded(embedder, ["a"]).vectors) == 1  # and it can be asked again


@pytest.mark.promise("embedder.bounds")
def test_recall_answers_without_the_signal_whose_server_trickles(make: Make, server: StubServer) -> None:
    embedder = make()
    with recollect.open(":memory:", embedder=embedder) as memory:
        memory.remember("Ana prefers window seats", id="a")
        memory.embed_all()
        assert "dense" in memory.recall("window seats")[0].why.shares
        embedder._client.timeout_s = 0.05
        server.script = [Endless(HEAD + b"\r\n", b" ", 0.01, 200)]
        hits = memory.recall("which seats?")  # whose vector is not known yet
        assert [hit.record.id for hit in hits] == ["a"]
        assert "no answer within 0.05 s" in hits.plan.notes[0]


@pytest.mark.promise("embedder.bounds")
def test_a_compressed_answer_is_not_unpacked(make: Make, server: StubServer) -> None:
    server.script = [Answer(200, gzip.compress(b" " * 2**24), (("Content-Encoding", "gzip"),))]
    assert "compressed (gzip)" in str(failing(make()))
    assert server.asked[0].headers["accept-encoding"] == "identity"


def test_a_json_text_that_is_nested_too_deeply_is_an_error_of_ours(make: Make, server: StubServer) -> None:
    server.script = [Answer(200, b"[" * 60_000), Answer(400, b"[" * 60_000)]
    assert "not JSON" in str(failing(make()))
    assert "status 400" in str(failing(make()))


@pytest.mark.promise("messages.printable")
def test_what_a_server_says_is_shown_and_not_sent_to_the_terminal(make: Make, server: StubServer) -> None:
    server.script = [Answer(400, {"error": {"message": "no\x1b]0;owned\x07\n\u202eno\x9b"}})]
    reported = str(failing(make()))
    assert reported.isprintable()
    assert r"no\x1b]0;owned\x07\n\u202eno\x9b" in reported


# Connections


def requests_are_over() -> None:
    """Wait until no thread of a request is left, and see that each has closed what it had open."""
    for thread in threading.enumerate():
        if thread.name == "recollect-embedding":
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
    gc.collect()  # a socket that was left open warns, which fails the test


class Paused:
    """Answers well, once it is let go."""

    def __init__(self) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()

    def __call__(self, texts: list[str]) -> Answer:
        self.reached.set()
        assert self.go_on.wait(PATIENCE_S)
        return well(texts)


@pytest.mark.promise("embedder.bounds")
def test_a_request_past_its_deadline_ends_no_other(make: Make, server: StubServer) -> None:
    paused = Paused()

    def by_text(texts: list[str]) -> Answer | Endless:
        return Endless(HEAD + b"\r\n", b" ", 0.01, 200) if texts == ["late"] else paused(texts)

    server.script = [by_text] * 9
    embedder = make(timeout_s=PATIENCE_S, retries=0)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(embedder.embed, ["slow"])
        assert paused.reached.wait(PATIENCE_S)
        embedder._client.timeout_s = 0.1
        assert "no answer within 0.1 s" in str(failing(embedder, ("late",)))
        paused.go_on.set()
        assert len(slow.result(PATIENCE_S)) == 1
    assert "no answer within 0.1 s" in str(failing(embedder, ("late",)))  # also on a connection that was kept
    assert server.left.wait(PATIENCE_S)
    embedder._client.timeout_s = PATIENCE_S
    assert len(embedder.embed(["again"])) == 1
    requests_are_over()


def test_requests_one_after_another_share_a_connection(make: Make, server: StubServer) -> None:
    embedder = make(batch_size=1)
    assert len(embedded(embedder, list("abc")).vectors) == 3
    server.script = [Answer(400, {})]
    assert isinstance(failing(embedder), EmbedderRefusedError)  # which is an answer too
    assert len(embedded(embedder, ["d"]).vectors) == 1
    assert (len(server.asked), server.connections) == (5, 1)


def test_an_embedder_that_is_closed_while_it_asks_is_answered_and_keeps_no_connection(
    make: Make, server: StubServer
) -> None:
    paused = Paused()
    server.script = [well, paused]
    embedder = make()
    embedded(embedder, ["a"])
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(embedder.embed, ["slow"])
        assert paused.reached.wait(PATIENCE_S)
        embedder.close()
        paused.go_on.set()
        assert len(slow.result(PATIENCE_S)) == 1
    assert server.connections == 1
    assert len(embedded(embedder, ["b"]).vectors) == 1
    assert server.connections == 2


def test_a_connection_that_the_server_has_closed_is_made_again(make: Make, server: StubServer) -> None:
    server.script = [lambda texts: well(texts)._replace(headers=(("Connection", "close"),))] * 2
    embedder = make(batch_size=1, retries=0)
    assert len(embedded(embedder, list("abc")).vectors) == 3
    assert server.connections == 3
    requests_are_over()


@pytest.mark.promise("embedder.bounds")
@pytest.mark.parametrize("scheme", ["http", "https"])  # it does not read the request, nor answer the TLS handshake
def test_a_server_that_takes_a_connection_and_nothing_else_is_given_up(make: Make, scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        embedder = make(url=f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/v1", timeout_s=0.1, retries=0)
        assert "no answer within 0.1 s" in str(failing(embedder, ("x" * 2**24,)))
        requests_are_over()
        connection, _ = listener.accept()
        with connection, suppress(ConnectionResetError):
            connection.settimeout(PATIENCE_S)
            while connection.recv(2**20):
                pass  # up to its end: nobody holds it open


@pytest.mark.promise("embedder.bounds")
def test_a_connection_that_is_made_after_the_deadline_is_not_used(
    make: Make, server: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, go_on = socket.create_connection, threading.Event()

    def late(*arguments: Any, **named: Any) -> socket.socket:
        assert go_on.wait(PATIENCE_S)
        return real(*arguments, **named)

    server.script = [Endless(HEAD, b"X-A: b\r\n", 0.01, 200)]
    monkeypatch.setattr(socket, "create_connection", late)
    assert "no answer within 0.1 s" in str(failing(make(timeout_s=0.1, retries=0)))
    go_on.set()
    requests_are_over()
    assert server.asked == []


def test_a_request_that_is_done_cannot_be_cut_any_more() -> None:
    """Its connection may be another request's by then."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        request = _Request(1.0)
        request.use(ours)
        assert request.done()
        request.cut()
        ours.sendall(b"x")
        assert theirs.recv(1) == b"x"
        request = _Request(1.0)
        request.use(ours)
        request.cut()
        assert theirs.recv(1) == b""
        assert not request.done()


@pytest.mark.parametrize("where", ["httpx.Client.stream", "httpx.create_ssl_context", "threading.Thread.start"])
@pytest.mark.parametrize("error", [RuntimeError, ValueError, OSError])
def test_whatever_goes_wrong_is_an_error_of_the_embedder(
    make: Make, monkeypatch: pytest.MonkeyPatch, where: str, error: type[Exception]
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise error(f"sent {KEY}")

    embedder = make()
    with monkeypatch.context() as patched, pytest.raises(EmbedderError, match=r"Error: sent \.\.\.") as caught:
        patched.setattr(where, fails)
        embedder.embed(["a"])
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert len(embedder.embed(["a"])) == 1
