"""Servers of a store on PostgreSQL, as processes: two nodes of `recollect serve`, and an MCP server on stdin."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest

import recollect
from recollect.errors import StoreServerError
from recollect.testing.loopback import core_of
from recollect.testing.postgres import PostgresServer, create_store

pytest.importorskip("starlette")
pytest.importorskip("mcp")
from tests.mcp.clients import over_stdio

pytestmark = pytest.mark.postgres
_numbers = count()


@pytest.fixture
def store(server: PostgresServer, tmp_path: Path) -> str:
    """The address of a store of one test."""
    return f"{create_store(server.dsn, f's{next(_numbers)}')}&cache={tmp_path / 'cache'}"


@contextmanager
def node(store: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Start a server of a store; return it and the addresses that it listens on, by scheme."""
    with tempfile.TemporaryDirectory(prefix="rcl-node-", dir="/tmp") as folder:
        command = [sys.executable, "-m", "recollect", "serve", "--db", store, "--socket", f"{folder}/s"]
        command += ["--http", "127.0.0.1:0"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
            assert process.stderr is not None
            found: dict[str, str] = {}
            try:
                for line in process.stderr:
                    event = str(json.loads(line)["event"])
                    if event.startswith("listening on "):
                        address = event.removeprefix("listening on ")
                        found[address.partition("://")[0]] = address
                    if len(found) == 2:
                        break
                assert len(found) == 2, "it did not listen"
                yield process, found
            finally:
                process.kill()


def asked(address: str, path: str) -> int:
    """Return the status of a request."""
    return answer(address, path)[0]


def answer(address: str, path: str) -> tuple[int, str]:
    """Return the status of a request, and the text of its answer."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


def test_two_nodes_serve_one_memory(store: str) -> None:
    with (
        node(store) as (process, first),
        node(store) as (_, second),
        recollect.connect(first["unix"]) as one,
        recollect.connect(second["http"]) as two,
    ):
        record = one.remember("Ana drinks tea without sugar", user="ana")
        assert two.get(record.id) == record
        assert [hit.record for hit in two.recall("what does Ana drink?")] == [record]
        one.snapshot("before")
        two.update(record.id, content="Ana drinks coffee")
        assert one.at("before").get(record.id) == record
        assert one.head() == two.head()
        assert [commit.seq for commit in one.log()] == [commit.seq for commit in two.log()]
        two.rollback("before")
        found = one.get(record.id)
        assert found is not None
        assert found.content == record.content
        with two.batch() as batch:
            batch.remember("Ben drinks water")
        assert one.count() == 2
        assert one.check() == []
        _, metrics = answer(first["http"], "/metrics")
        numbers = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
        assert float(numbers["recollect_database_round_trips_total"]) >= 10
        assert 1 <= float(numbers["recollect_pool_connections_max"]) <= 8
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert two.count() == 2


def test_a_node_without_its_database_is_alive_and_not_ready(server: PostgresServer, store: str) -> None:
    with node(store) as (_, addresses):
        address = addresses["http"]
        assert (asked(address, "/healthz"), asked(address, "/readyz")) == (200, 200)
        server.kill()
        try:
            assert asked(address, "/healthz") == 200
            assert asked(address, "/readyz") == 503
        finally:
            server.start()
        assert asked(address, "/readyz") == 200


def test_a_node_logs_when_its_database_goes_and_when_it_is_back(
    server: PostgresServer, store: str, caplog: pytest.LogCaptureFixture
) -> None:
    with recollect.open(store, embedder="none") as memory:
        memory.remember("note")
        server.kill()
        try:
            for _ in range(3):
                with pytest.raises(StoreServerError):
                    memory.count()
        finally:
            server.start()
        assert memory.count() == 1
    said = [each.getMessage() for each in caplog.records]
    assert [each.endswith("calls fail until it can be reached") for each in said].count(True) == 1
    assert [each.endswith("can be reached again") for each in said].count(True) == 1


def test_a_server_that_refuses_one_connection_is_not_logged_as_lost(
    server: PostgresServer, store: str, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        schema = store.partition("schema=")[2].partition("&")[0]
        connection.execute("CREATE ROLE one LOGIN CONNECTION LIMIT 1")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO one".encode())
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO one".encode())
    with recollect.open(store.replace("postgres@", "one@"), embedder="none", timeout=1) as memory:
        with core_of(memory).store.read() as view, ThreadPoolExecutor(1) as pool:
            view.setting("any")  # it has the only connection
            with pytest.raises(StoreServerError, match="too many connections"):
                pool.submit(memory.count).result()
        assert memory.count() == 0
    assert "calls fail until it can be reached" not in caplog.text


def test_a_tool_of_mcp_remembers_on_the_server(store: str) -> None:
    with over_stdio(store) as connected:
        connected.ok("remember", content="The harbour opens at six")
        found = connected.ok("recall", question="when does the harbour open?")
        assert "The harbour opens at six" in json.dumps(found)
    with recollect.open(store, embedder="none") as memory:
        assert memory.count() == 1


def test_a_server_without_tables_says_how_they_are_created(server: PostgresServer) -> None:
    command = [sys.executable, "-m", "recollect", "serve", "--db", f"{server.dsn}&schema=nothing_here"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "recollect store init" in done.stderr
