"""`recollect serve --workers`: several processes behind one socket and one port, of which any may die."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.server.serving import HttpClient, LineClient
from torture.serving import Server

import recollect
from recollect.server.workers.worker import STOP, SupervisorChannel

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forks")
WORKERS = 2
HEAD = b"HTTP/1.1\r\nHost: localhost\r\n"


class Workers(Server):
    """A server with several workers, as a process, and where its doors are."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.path = folder / "served.db"
        self.socket_path = folder / "s"
        super().__init__(self.path, self.socket_path, 0, "--workers", str(WORKERS), *options)

    def line_client(self) -> LineClient:
        return LineClient(self.socket_path)

    def http_client(self) -> HttpClient:
        return HttpClient(("127.0.0.1", self.port))

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def processes(self) -> list[int]:
        """The processes of the workers."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(each) for each in children.split()]


@pytest.fixture
def workers() -> Iterator[Workers]:
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder, Workers(Path(folder)) as running:
        yield running


def ask(client: HttpClient, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any, Any]:
    data = b"" if body is None else json.dumps(body).encode()
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"{method} {path} ".encode() + HEAD + more.encode() + f"Content-Length: {len(data)}\r\n\r\n".encode()
    status, found, raw = client.answer(head + data)
    return status, found, raw


def connections(workers: Workers, door: str) -> dict[str, int]:
    """How many connections of a door each worker has."""
    with workers.http_client() as client:
        text = ask(client, "GET", "/metrics")[2].decode()
    found = re.findall(rf'recollect_connections{{door="{door}",worker="(\d)"}} (\d+)', text)
    return {worker: int(count) for worker, count in found}


@pytest.mark.promise("serve.workers")
def test_connections_are_shared_out_and_all_workers_give_the_same_answers(workers: Workers) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(workers.line_client()) for _ in range(6)]
        assert clients[0].ask({"op": "remember", "content": "Ana drinks tea", "id": "tea"})["ok"]
        answers = [client.ask({"op": "recall", "question": "what does Ana drink?"})["result"] for client in clients]
        assert connections(workers, "socket") == {"1": 3, "2": 3}
    for each in answers:
        each.pop("reference"), each.pop("time", None)
    assert answers[0]["hits"][0]["record"]["id"] == "tea"
    assert all(each == answers[0] for each in answers)


def test_a_write_through_one_worker_is_read_through_all_others_at_once(workers: Workers) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(workers.line_client()) for _ in range(4)]
        for number in range(40):
            written = clients[number % 4].ask({"op": "remember", "content": f"note {number}"})
            assert written["ok"], written
            for client in clients:
                assert client.ask({"op": "count"})["result"] == number + 1
    with recollect.open(workers.path, embedder="none") as memory:
        assert (memory.count(), memory.check()) == (40, [])


def test_a_batch_over_http_is_reached_through_every_connection(workers: Workers) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(workers.http_client()) for _ in range(4)]
        for each in ("a%2Fb", "x%2Fbatches%2F2-a"):
            opened = json.loads(ask(clients[0], "POST", f"/v1/{each}/batches", {})[2])["result"]["batch"]
            for client in clients:
                remember = {"op": "remember", "content": "a note"}
                assert ask(client, "POST", f"/v1/{each}/batches/{opened}/execute", remember)[0] == 200
            assert ask(clients[1], "POST", f"/v1/{each}/batches/{opened}/commit", {})[0] == 200
            assert ask(clients[0], "POST", f"/v1/{each}/execute", {"op": "count"})[0] == 200
        number = json.loads(ask(clients[0], "POST", "/v1/default/batches", {})[2])["result"]["batch"]
        for at, client in enumerate(clients):
            operation = {"op": "remember", "content": f"part {at}" + "x" * 200_000}
            status, _, raw = ask(client, "POST", f"/v1/default/batches/{number}/execute", operation)
            assert (status, json.loads(raw)["ok"]) == (200, True)
        assert ask(clients[3], "POST", f"/v1/default/batches/{number}/commit", {})[0] == 200
        assert ask(clients[2], "POST", f"/v1/default/batches/{number}/commit", {})[0] == 200  # answered again
        for client in clients:
            assert json.loads(ask(client, "POST", "/v1/default/execute", {"op": "count"})[2])["result"] == 4
    with recollect.connect(workers.http) as memory, memory.batch() as batch:
        for at in range(20):
            batch.remember(f"line {at}")


@pytest.mark.files
def test_a_batch_ends_with_its_worker_and_the_error_says_so(workers: Workers) -> None:
    with workers.http_client() as client:
        number = json.loads(ask(client, "POST", "/v1/default/batches", {})[2])["result"]["batch"]
    workers_before = workers.processes()
    for each in workers_before:
        os.kill(each, signal.SIGKILL)
    workers.wait_for_log("worker 1 ended by the signal SIGKILL")
    workers.wait_for_log("worker 2 ended by the signal SIGKILL")
    with workers.http_client() as client:
        for operation in ("execute", "commit"):
            raw = ask(client, "POST", f"/v1/default/batches/{number}/{operation}", None)[2]
            assert json.loads(raw)["code"] == "closed", raw
    assert set(workers.processes()).isdisjoint(workers_before)


@pytest.mark.promise("serve.workers")
def test_a_worker_that_is_killed_is_replaced_and_no_acknowledged_write_is_lost(workers: Workers) -> None:
    acknowledged: list[int] = []

    def write(thread: int) -> int:
        done = 0
        with recollect.connect(workers.http, retries=8) as memory:
            for number in range(60):
                memory.remember(f"note {number} of {thread}", id=f"{thread}-{number}")
                done += 1
                acknowledged.append(1)
        return done

    with ThreadPoolExecutor(4) as threads:
        writing = [threads.submit(write, each) for each in range(4)]
        killed = 0
        while killed < 3 and not all(each.done() for each in writing):
            if len(acknowledged) > 40 * (killed + 1):
                with suppress(ProcessLookupError):
                    os.kill(workers.processes()[0], signal.SIGKILL)
                killed += 1
        assert [each.result() for each in writing] == [60] * 4
    assert killed == 3
    with recollect.open(workers.path, embedder="none") as memory:
        assert (memory.count(), memory.check()) == (240, [])


def test_metrics_have_each_worker_and_add_up(workers: Workers) -> None:
    with ExitStack() as stack:
        for number in range(4):
            client = stack.enter_context(workers.line_client())
            client.ask({"op": "remember", "content": f"note {number}"})
        with workers.http_client() as http:
            text = ask(http, "GET", "/metrics")[2].decode()
    found = re.findall(
        r'recollect_requests_total{door="socket",error="",operation="remember",worker="(\d)"} (\S+)', text
    )
    assert {worker for worker, _ in found} == {"1", "2"}
    assert sum(float(count) for _, count in found) == 4
    assert text.count("# TYPE recollect_requests_total counter") == 1


def test_the_session_of_an_mcp_client_is_reached_through_every_connection() -> None:
    def send(workers: Workers, session: str | None, **message: Any) -> tuple[http.client.HTTPResponse, str]:
        connection = http.client.HTTPConnection("127.0.0.1", workers.port, timeout=60)
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers |= {} if session is None else {"Mcp-Session-Id": session}
        connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), headers)
        response = connection.getresponse()
        opened.append(connection)
        return response, response.read().decode()

    opened: list[http.client.HTTPConnection] = []
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder, Workers(Path(folder), "--mcp") as workers:
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        first, _ = send(workers, None, id=1, method="initialize", params=client)
        session = first.headers["Mcp-Session-Id"]
        assert send(workers, session, method="notifications/initialized")[0].status == 202
        for number in range(2, 6):  # each over a connection of its own, by turns to both workers
            response, text = send(workers, session, id=number, method="tools/list")
            assert (response.status, "recall" in text) == (200, True), text
        assert send(workers, "1-unknown", id=9, method="tools/list")[0].status == 404
        for each in opened:
            each.close()


def test_what_runs_is_answered_before_the_workers_end(workers: Workers) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(workers.line_client()) for _ in range(2)]
        clients[0].ask({"op": "remember", "content": "first"})
        memory = stack.enter_context(recollect.open(workers.path, embedder="none"))
        with memory.batch() as batch:  # it has the write lock, so that the calls of the server wait
            batch.remember("second")
            for number, client in enumerate(clients):
                client.send({"op": "remember", "content": f"note {number}"})
            with workers.http_client() as http:
                while ask(http, "GET", "/metrics")[2].decode().count(" 1.0\nrecollect_calls") + 1 < 2:
                    pass
            workers.process.send_signal(signal.SIGTERM)
            workers.wait_for_log("stopping 2 workers")
            workers.wait_for_log("stopping: 1 calls run", 2)
        assert [client.answer()["result"]["status"] for client in clients] == ["created", "created"]
        assert workers.wait() == 0
        assert memory.count() == 4
    assert not workers.socket_path.exists()


def test_a_second_signal_ends_all_at_once(workers: Workers) -> None:
    with workers.line_client() as line:
        line.ask({"op": "remember", "content": "first"})
        with recollect.open(workers.path, embedder="none") as memory:
            with memory.batch() as batch:
                batch.remember("second")
                line.send({"op": "remember", "content": "third"})
                processes = workers.processes()
                workers.process.send_signal(signal.SIGTERM)
                workers.wait_for_log("stopping 2 workers")
                workers.process.send_signal(signal.SIGINT)
                assert workers.wait() == 1
            assert (memory.count(), memory.check()) == (2, [])
    assert not any(Path(f"/proc/{each}").exists() for each in processes)


def test_workers_whose_supervisor_is_killed_end_by_themselves(workers: Workers) -> None:
    processes = workers.processes()
    workers.kill()
    for each in processes:
        while Path(f"/proc/{each}").exists():  # until the time limit of the test
            pass
    with Workers(workers.path.parent) as again, again.line_client() as line:
        assert line.ask({"op": "count"})["result"] == 0


@pytest.mark.parametrize("signals", [(signal.SIGTERM,), (signal.SIGTERM, signal.SIGTERM), (signal.SIGINT,)])
def test_a_signal_to_the_group_ends_the_workers_once(workers: Workers, signals: tuple[int, ...]) -> None:
    """As a terminal, and systemd, send it to all processes."""
    with workers.line_client() as line:
        line.ask({"op": "remember", "content": "first"})
        for number in signals:
            for each in workers.processes():
                os.kill(each, number)
        workers.process.send_signal(signals[0])
        assert workers.wait() == 0


def test_a_store_that_cannot_be_opened_is_an_error_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "no.db").write_bytes(b"this is no store, and long enough to be read as one" * 100)
    command = [sys.executable, "-m", "recollect", "serve", "--workers", "2", "--db", str(tmp_path / "no.db")]
    done = subprocess.run(
        [*command, "--socket", str(tmp_path / "s")], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert "is not a Recollect store" in done.stderr, done.stderr
    assert not (tmp_path / "s").exists()


def test_an_answer_before_the_end_of_a_request_reaches_the_client_through_another_worker(workers: Workers) -> None:
    body = b"x" * 30_000_000  # more than a server reads: it answers and closes the connection
    statuses = []
    for number in (1, 2):
        for _ in range(3):
            head = f"POST /v1/n/batches/{number}-{'a' * 32}/execute ".encode() + HEAD
            with workers.http_client() as client:
                status, _, raw = client.answer(head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            statuses.append((status, json.loads(raw)["code"]))
    assert len(set(statuses)) == 1, statuses
    assert "commit_in_doubt" not in {code for _, code in statuses}


def test_a_session_with_a_long_number_is_just_unknown(workers: Workers) -> None:
    with workers.http_client() as client:
        status, _, raw = ask(client, "GET", "/v1/default/records", None, Mcp_Session_Id="9" * 5000 + "-x")
        assert status == 200, raw


def test_why_a_worker_cannot_begin_again_is_logged(workers: Workers) -> None:
    with workers.line_client() as line:
        line.ask({"op": "remember", "content": "first"})
    for suffix in ("-wal", "-shm", ""):
        Path(f"{workers.path}{suffix}").unlink(missing_ok=True)
    workers.path.write_bytes(b"this is no store" * 500)
    os.kill(workers.processes()[0], signal.SIGKILL)
    workers.wait_for_log("cannot begin: ")
    workers.wait_for_log("is not a Recollect store")


def test_a_worker_without_descriptors_does_not_take_a_lost_connection_for_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The system drops a descriptor for which the process has no room, and delivers the byte."""

    async def run() -> bool:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ended = asyncio.Event()
            channel = SupervisorChannel(theirs, [], lambda: 0, ended)
            running = asyncio.create_task(channel.run())
            ours.send(b"\0")
            while not channel._taken and not ended.is_set():
                await asyncio.sleep(0)
            was_ended = ended.is_set()
            ours.send(STOP)
            await ended.wait()
            running.cancel()
            return was_ended

    assert not asyncio.run(run())


def test_a_memory_without_a_file_has_one_worker(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "recollect", "serve", "--workers", "2", "--db", ":memory:"]
    done = subprocess.run(
        [*command, "--socket", str(tmp_path / "s")], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert "each worker would have a memory of its own" in done.stderr


def test_a_server_that_leaves_says_so_and_serves_on() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="recollect-") as folder,
        Workers(Path(folder), "--leave-seconds", "600") as workers,
        workers.http_client() as http,
    ):
        assert ask(http, "GET", "/readyz")[0] == 200
        workers.process.send_signal(signal.SIGTERM)
        workers.wait_for_log("leaving: stopping in 600 s", 2)
        assert ask(http, "GET", "/readyz")[0] == 503
        assert ask(http, "GET", "/healthz")[0] == 200
        with workers.http_client() as another:
            assert ask(another, "POST", "/v1/default/remember", {"content": "still here"})[0] == 201
        workers.process.send_signal(signal.SIGTERM)
        assert workers.wait() == 1
