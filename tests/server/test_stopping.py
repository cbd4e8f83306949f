"""The end of a server: what runs is answered, and a second signal ends it at once."""

from __future__ import annotations

import json
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.serving import PING, HttpClient, LineClient
from torture.serving import Server

import recollect
from recollect.server.limits import DRAIN_S

REMEMBER: dict[str, Any] = {"op": "remember", "content": "a note", "id": "note"}


class Running(Server):
    """A server as a process, and where its doors are."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "served.db"
        self.socket_path = folder / "s"
        recollect.open(self.path, embedder="none").close()
        super().__init__(self.path, self.socket_path)

    def line_client(self) -> LineClient:
        return LineClient(self.socket_path)

    def http_client(self) -> HttpClient:
        return HttpClient(("127.0.0.1", self.port))


@pytest.fixture
def server() -> Iterator[Running]:
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder, Running(Path(folder)) as running:
        assert running.socket_path.exists()
        yield running


def post(data: dict[str, Any]) -> bytes:
    body = json.dumps(data).encode()
    head = f"POST /v1/default/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def send(client: HttpClient, data: dict[str, Any]) -> tuple[threading.Thread, list[int]]:
    statuses: list[int] = []
    thread = threading.Thread(target=lambda: statuses.append(client.answer(post(data))[0]))
    thread.start()
    return thread, statuses


def running_calls(server: Running, count: int) -> None:
    """Wait until some calls run in the server."""
    with server.http_client() as client:
        while True:
            text = client.answer(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")[2].decode()
            if f"recollect_calls {count:.1f}" in text:
                return


@pytest.mark.files
@pytest.mark.promise("serve.stop")
def test_calls_that_run_are_answered_before_the_server_ends(server: Running) -> None:
    with (
        recollect.open(server.path, embedder="none") as memory,
        server.line_client() as line,
        server.http_client() as http,
    ):
        with memory.batch() as batch:  # it has the write lock, so that the calls of the server wait
            batch.remember("first")
            line.send(REMEMBER)
            thread, statuses = send(http, {**REMEMBER, "id": "another"})
            running_calls(server, 2)
            server.process.send_signal(signal.SIGTERM)
            server.wait_for_log("stopping: 2 calls run")
        assert line.answer()["result"]["status"] == "created"
        thread.join()
        assert statuses == [200]
        assert server.wait() == 0
        assert memory.count() == 3
    assert not server.socket_path.exists()


@pytest.mark.files
@pytest.mark.promise("serve.stop")
def test_a_second_signal_ends_the_server_at_once(server: Running) -> None:
    with recollect.open(server.path, embedder="none") as memory, server.line_client() as line:
        with memory.batch() as batch:
            batch.remember("first")
            line.send(REMEMBER)
            running_calls(server, 1)
            server.process.send_signal(signal.SIGTERM)
            server.wait_for_log("stopping: 1 calls run")
            server.process.send_signal(signal.SIGINT)
            assert server.wait() == 1
        assert memory.check() == []
        assert memory.count() == 1


@pytest.mark.files
@pytest.mark.promise("serve.stop")
def test_an_answer_that_a_client_has_not_read_yet_is_not_cut_off(server: Running) -> None:
    with recollect.open(server.path, embedder="none") as memory, server.line_client() as line:
        for number in range(4):
            memory.remember(f"{number} " + "x" * 500_000, id=str(number))
        line.send({"op": "find"})
        assert line._file.peek(1)  # it has begun
        server.process.send_signal(signal.SIGTERM)
        server.wait_for_log("stopping")
        assert len(line.answer()["result"]["records"]) == 4
        assert server.wait() == 0


@pytest.mark.promise("serve.stop")
def test_who_waits_for_commits_or_has_a_batch_does_not_keep_the_server(server: Running) -> None:
    wait = {"op": "wait", "since": 0, "timeout": 3600}
    with (
        server.line_client() as line,
        server.line_client() as batch,
        server.http_client() as http,
        server.http_client() as events,
    ):
        line.send(wait)
        http.socket.sendall(post(wait))
        assert batch.ask({"batch": "begin"})["ok"]
        assert batch.ask(REMEMBER)["ok"]
        events.socket.sendall(
            b"GET /v1/default/changes HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
        )
        assert events.socket.recv(15) == b"HTTP/1.1 200 OK"
        server.process.send_signal(signal.SIGTERM)
        assert line.answer()["error"]["code"] == "server_busy"
        assert http.answer(b"")[0] == 503
        assert server.wait() == 0
    with recollect.open(server.path, embedder="none") as memory:
        assert (memory.count(), memory.check()) == (0, [])


def test_a_killed_server_leaves_a_socket_file_that_the_next_one_replaces(server: Running) -> None:
    server.kill()
    assert server.socket_path.exists()
    with Server(server.path, server.socket_path), server.line_client() as line:
        assert line.ask(PING.strip())["pong"] is True


def test_a_client_that_does_not_read_its_answer_does_not_keep_the_server(server: Running) -> None:
    with recollect.open(server.path, embedder="none") as memory:
        memory.remember_all([{"content": f"{'a long fact ' * 4000}{number}"} for number in range(300)])
    with server.http_client() as client:
        client.socket.sendall(b"GET /v1/default/records?limit=300 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.socket.recv(100).startswith(b"HTTP/1.1 200")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(DRAIN_S - 10) == 0
