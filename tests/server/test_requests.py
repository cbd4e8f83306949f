"""HTTP: half-open connections end, bad requests have answers in JSON, and batches that are lost stay lost."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.server.serving import HttpClient, Served, many

from recollect.server.http import door


def post(path: str, data: Any, *headers: str) -> bytes:
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    more = "".join(f"{each}\r\n" for each in headers)
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body


def get(path: str, *headers: str) -> bytes:
    more = "".join(f"{each}\r\n" for each in headers)
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode()


HEALTH = get("/healthz")
EXECUTE = "/v1/default/execute"


def code(answer: tuple[int, dict[str, str], bytes]) -> tuple[int, str]:
    return answer[0], json.loads(answer[2])["code"]


def test_a_thousand_connections_at_once_each_get_an_answer(served: Served) -> None:
    with many(1000, lambda: HttpClient(served.http)) as clients:
        for number, client in enumerate(clients):
            client.socket.sendall(post(EXECUTE, {"op": "now"}) if number % 2 else HEALTH)
        assert {client.answer(b"")[0] for client in clients} == {200}


def test_a_connection_too_many_is_refused_in_json(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "CONNECTIONS", 3)
    with many(3, lambda: HttpClient(served.http)) as clients:
        assert {client.answer(HEALTH)[0] for client in clients} == {200}
        with HttpClient(served.http) as refused:
            answer = refused.answer(HEALTH)
            assert code(answer) == (503, "server_busy")
            assert (answer[1]["retry-after"], answer[1]["connection"]) == ("1", "close")
        assert {client.answer(HEALTH)[0] for client in clients} == {200}


@pytest.mark.parametrize(
    "begun", [b"", b"G", b"GET /healthz HTTP/1.1\r\nHost: loc", b"GET /healthz HTTP/1.1\r\nA: b\r\n"]
)
def test_a_connection_whose_head_never_ends_is_closed(
    shared: Served, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(door, "HEAD_S", 0.05)
    with HttpClient(shared.http) as client:
        client.socket.sendall(begun)
        assert client.closed()
    with HttpClient(shared.http) as client:  # also after a request that was answered
        assert client.answer(HEALTH)[0] == 200
        client.socket.sendall(begun or b"P")
        assert client.closed()


@pytest.mark.parametrize("path", [EXECUTE, "/v1/default/import", "/v1/default/remember", "/v1/default/batches"])
def test_a_body_that_never_comes_is_answered_with_408_and_the_connection_is_closed(tmp_path: Path, path: str) -> None:
    with Served(tmp_path, guard_body_s=0.05) as served, HttpClient(served.http) as client:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{{".encode()
        answer = client.answer(head)
        assert (code(answer), answer[1]["connection"]) == ((408, "protocol"), "close")
        assert client.closed()


@pytest.mark.promise("serve.slow")
def test_half_open_connections_delay_no_other(served: Served) -> None:
    head = f"POST {EXECUTE} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{{".encode()
    with many(200, lambda: HttpClient(served.http)) as clients, HttpClient(served.http) as other:
        for number, client in enumerate(clients):
            client.socket.sendall((b"GET", head, get("/v1/default/export"))[number % 3])
            assert other.answer(HEALTH)[0] == 200


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("size", [1001, 3_000_000])
def test_a_body_that_is_too_large_is_answered_also_while_it_is_sent(tmp_path: Path, size: int, chunked: bool) -> None:
    body = b"x" * size
    framed = post(EXECUTE, body)
    if chunked:
        framed = f"POST {EXECUTE} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        framed += b"%x\r\n%s\r\n0\r\n\r\n" % (size, body)
    with Served(tmp_path, guard_body_bytes=1000) as served:
        with HttpClient(served.http) as client:
            assert code(client.answer(framed)) == (413, "protocol")
        with HttpClient(served.http) as client:
            huge = f"POST {EXECUTE} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n{{".encode()
            assert code(client.answer(huge)) == (413, "protocol")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \xb2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"GET / HTTP/1.1\r\nA: " + b"x" * 100_000 + b"\r\n\r\n", 400),
        (get("/v1/default/execute/"), 404),
        (get("/nope"), 404),
        (get(EXECUTE), 405),
        (get("/v1/default/changes?limit=" + "9" * 5000), 400),
        (get("/v1/default/records?limit=" + "9" * 5000), 400),
        (post(EXECUTE, b"[]"), 400),
        (post(EXECUTE, b"{"), 400),
        (post(EXECUTE, {"op": "now", "in": {"namespace": "other"}}), 400),
        (get("/healthz", "Origin: https://evil.example"), 403),
    ],
    ids=range(16),
)
def test_a_bad_request_has_an_answer_in_json(shared: Served, data: bytes, status: int) -> None:
    with HttpClient(shared.http) as client:
        answer = client.answer(data)
        assert answer[0] in (status, 400)
        assert answer[1]["content-type"] == "application/problem+json"
        assert json.loads(answer[2])["code"] in ("protocol", "access", "invalid_argument")
    with HttpClient(shared.http) as client:
        assert client.answer(HEALTH)[0] == 200


def test_a_client_that_disappears_within_a_body_or_a_stream_leaves_no_traceback(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with HttpClient(served.http) as client:
        for number in range(3):
            assert client.answer(post("/v1/default/remember", {"content": f"note {number}"}))[0] == 201
    head = f"POST {EXECUTE} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{{".encode()
    for data in (
        head,
        head.replace(b"execute", b"import"),
        get("/v1/default/export"),
        get("/v1/default/changes", "Accept: text/event-stream"),
    ):
        for _ in range(5):
            with HttpClient(served.http) as client:
                client.socket.sendall(data)
                while not served.look(lambda: bool(served.http_door.connections)):
                    pass
    while served.look(lambda: served.http_door.connections):
        pass
    with HttpClient(served.http) as client:
        assert client.answer(HEALTH)[0] == 200
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == []


def test_the_context_of_a_question_is_returned(served: Served) -> None:
    with HttpClient(served.http) as client:
        client.answer(post("/v1/default/remember", {"content": "Ana prefers window seats"}))
        status, _, body = client.answer(get("/v1/default/context?question=seats&max_tokens=100"))
        assert (status, "window seats" in json.loads(body)["text"]) == (200, True)


# Batches


def begun(client: HttpClient) -> str:
    status, _, body = client.answer(post("/v1/default/batches", {}))
    assert status == 201
    return f"/v1/default/batches/{json.loads(body)['result']['batch']}"


def remember(content: str) -> dict[str, Any]:
    return {"op": "remember", "content": content}


def count(client: HttpClient, namespace: str = "default") -> Any:
    return json.loads(client.answer(post(f"/v1/{namespace}/execute", {"op": "count"}))[2])["result"]


@pytest.mark.promise("serve.batch")
def test_a_batch_whose_time_is_over_is_undone_and_what_comes_later_is_refused(tmp_path: Path) -> None:
    with Served(tmp_path, calls_batch_s=0.2) as served, HttpClient(served.http) as client:
        batch = begun(client)
        assert client.answer(post(f"{batch}/execute", remember("in time")))[0] == 200
        late = post(f"{batch}/execute", remember("late"))
        with HttpClient(served.http) as slow:  # its batch is lost while its body is on its way
            slow.socket.sendall(late[:-5])
            while served.look(lambda: served.site.batches):
                pass
            assert code(slow.answer(late[-5:])) == (409, "closed")
        assert code(client.answer(late)) == (409, "closed")
        assert code(client.answer(post(f"{batch}/commit", {}))) == (409, "closed")
        assert client.answer(post(EXECUTE, remember("of another")))[0] == 200
        assert count(client) == 1
        assert served.look(lambda: served.calls.running) == 0


@pytest.mark.promise("serve.batch")
def test_a_batch_accepts_operations_of_its_own_place_only(served: Served) -> None:
    with HttpClient(served.http) as client:
        batch = begun(client)
        elsewhere = {**remember("x"), "in": {"scope": {"user": "ana"}}}
        assert code(client.answer(post(f"{batch}/execute", elsewhere))) == (400, "protocol")
        assert code(client.answer(post(f"{batch}/execute", remember("x"), "Idempotency-Key: k"))) == (400, "protocol")
        other = batch.replace("default", "other")
        assert code(client.answer(post(f"{other}/execute", remember("x")))) == (409, "closed")
        assert client.answer(post(f"{batch}/execute", remember("x")))[0] == 200
        assert client.answer(post(f"{batch}/commit", {}))[0] == 200
        assert (count(client), count(client, "other")) == (1, 0)


def test_a_write_that_is_repeated_with_its_key_at_the_same_time_is_stored_once(served: Served) -> None:
    turn = {"op": "remember", "content": "ok", "fields": {"kind": "conversation", "conversation": "c", "role": "user"}}
    bodies: list[bytes] = []

    def send() -> None:
        with HttpClient(served.http) as client:
            bodies.append(client.answer(post(EXECUTE, turn, "Idempotency-Key: k"))[2])

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(bodies), len(set(bodies))) == (8, 1)
    with HttpClient(served.http) as client:
        assert count(client) == 1
