"""Databases of PostgreSQL for the tests of adapters: a server is started when the first is made."""

from __future__ import annotations

import atexit
import subprocess
import sys
from functools import cache
from itertools import count
from typing import Any

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
