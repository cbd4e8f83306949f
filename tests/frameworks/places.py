"""The places on which adapters are tested: memory, a file, a server's socket, and a database of PostgreSQL."""

from __future__ import annotations

import atexit
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.frameworks.serving import served

import recollect

_names = count(1)


@cache
def _server() -> Any:
    from recollect.testing.postgres import PostgresServer

    server = PostgresServer()
    server.start()
    atexit.register(server.stop)
    return server


def new_database() -> str:
    """Return the address of a new, empty database."""
    import psycopg

    name = f"case_{next(_names)}"
    with psycopg.connect(_server().dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return str(_server().dsn).replace("/postgres?", f"/{name}?")


def make_store(address: str) -> None:
    """Make a store in a database."""
    subprocess.run([sys.executable, "-m", "recollect", "store", "init", address], check=True, capture_output=True)


@pytest.fixture(params=["memory", "file", "socket", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[recollect.Memory]:
    """A memory in this process, one on a file, one of a server over its socket, and one on PostgreSQL."""
    if request.param == "socket":
        with served(tmp_path / "served.db") as address, recollect.connect(address) as memory:
            yield memory
        return
    path = ":memory:" if request.param == "memory" else str(tmp_path / "agent.db")
    if request.param == "postgres":
        path = new_database()
        make_store(path)
    with recollect.open(path) as memory:
        yield memory
