"""Stores of tests on a PostgreSQL server: for each path that a test opens, a schema of its own."""

from __future__ import annotations

import atexit
import hashlib
import os
import tempfile
from functools import cache

from recollect.errors import StoreMissingError, UnsupportedError
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.memory.opening import default_path
from recollect.stores.base import Store
from recollect.stores.postgres.store import PostgresStore
from recollect.stores.sealing.keys import Secret
from recollect.stores.values import Durability
from recollect.testing.postgres import PostgresServer, create_store, drop_store

#: The environment variable with the address of a server that is used instead of one of the tests.
SERVER_VARIABLE = "RECOLLECT_TEST_POSTGRES"

_created: set[str] = set()


@cache
def _dsn() -> str:
    named = os.environ.get(SERVER_VARIABLE)
    if named:
        atexit.register(_drop, named)
        return named
    server = PostgresServer().start()
    atexit.register(server.stop)
    return server.dsn


@cache
def _cache() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="recollect-cache-")


def _drop(dsn: str) -> None:
    for name in _created:
        drop_store(dsn, name)


def open_store(
    path: str | os.PathLike[str] | None,
    create: bool,
    read_only: bool,
    key: bytes | None,
    timeout_s: float,
    durability: Durability,
    zone: str | None,
    read_from: str | None = None,
    secret: Secret | None = None,
) -> Store:
    """Open the store of a path, as `opening.open_store` does.

    Raises:
        UnsupportedError: A secret is stated, and only files are encrypted.
    """
    if secret is not None:
        raise UnsupportedError("secret", "only a store in a file can be encrypted")
    key = PUBLIC_KEY if key is None else key
    location = os.fspath(path if path is not None else default_path())
    location = f"{location}{len(_created)}" if location == ":memory:" else os.path.abspath(location)
    name = "t" + hashlib.sha256(f"{os.getpid()} {location}".encode()).hexdigest()[:20]
    if name not in _created:
        if not create or read_only:
            raise StoreMissingError(location)
        create_store(_dsn(), name, key=key, zone=zone or "UTC")
        _created.add(name)
    address = f"{_dsn()}&schema={name}&cache={_cache().name}"
    return PostgresStore(address, read_only=read_only, key=key, timeout_s=timeout_s, durability=durability)
