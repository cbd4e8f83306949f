"""Stores for the conformance suite: those that LangGraph publishes, and ours on several kinds of memory."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore
from tests.frameworks.places import make_store, new_database
from tests.frameworks.serving import served

import recollect
from recollect.compat.langgraph import AsyncRecollectStore, RecollectStore


def in_memory(index: Any = None) -> InMemoryStore:
    """LangGraph's store in memory."""
    return InMemoryStore(index=index)


def _file(path: str | None) -> str:
    return ":memory:" if path is None else str(Path(path) / "store.db")


@contextmanager
def _sqlite(path: str | None, index: Any, ttl: Any) -> Iterator[SqliteStore]:
    with SqliteStore.from_conn_string(_file(path), index=index, ttl=ttl) as store:
        store.setup()
        yield store


@asynccontextmanager
async def _async_sqlite(path: str | None, index: Any, ttl: Any) -> AsyncIterator[AsyncSqliteStore]:
    async with AsyncSqliteStore.from_conn_string(_file(path), index=index, ttl=ttl) as store:
        await store.setup()
        yield store


def sqlite(path: str | None = None, index: Any = None, ttl: Any = None) -> Any:
    """LangGraph's store in SQLite."""
    return _sqlite(path, index, ttl)


def async_sqlite(path: str | None = None, index: Any = None, ttl: Any = None) -> Any:
    """LangGraph's asynchronous store in SQLite."""
    return _async_sqlite(path, index, ttl)


def sqlite_without_index(path: str | None = None, ttl: Any = None) -> Any:
    """The same where Python's SQLite loads no extensions, which its index needs."""
    return _sqlite(path, None, ttl)


def async_sqlite_without_index(path: str | None = None, ttl: Any = None) -> Any:
    """The same where Python's SQLite loads no extensions, which its index needs."""
    return _async_sqlite(path, None, ttl)


def _database(path: str | None) -> str:
    """Return the address of a database: a new one, or the one of a folder."""
    place = None if path is None else Path(path) / "database"
    if place is not None and place.exists():
        return place.read_text("utf-8")
    address = new_database()
    if place is not None:
        place.write_text(address, "utf-8")
    return address


@contextmanager
def postgres(path: str | None = None, ttl: Any = None) -> Iterator[Any]:
    """LangGraph's store in PostgreSQL. Its index needs the extension pgvector, which the server of the tests lacks."""
    from langgraph.store.postgres import PostgresStore

    with PostgresStore.from_conn_string(_database(path), ttl=ttl) as store:
        store.setup()
        yield store


def ours(path: str | None = None, index: Any = None, ttl: Any = None) -> RecollectStore:
    """Ours, in a file or in memory."""
    return RecollectStore(_file(path), index=index, ttl=ttl)


def ours_async(path: str | None = None, index: Any = None, ttl: Any = None) -> AsyncRecollectStore:
    """Ours with the names of an asynchronous store."""
    return AsyncRecollectStore(_file(path), index=index, ttl=ttl)


@contextmanager
def ours_on_server(path: str | None = None, ttl: Any = None) -> Iterator[RecollectStore]:
    """Ours over `recollect.connect`: the server is a process of its own."""
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(path or folder) / "store.db") as address,
        recollect.connect(address) as memory,
        RecollectStore(memory, ttl=ttl) as store,
    ):
        yield store


@contextmanager
def ours_on_postgres(path: str | None = None, ttl: Any = None) -> Iterator[RecollectStore]:
    """Ours on PostgreSQL."""
    address = _database(path)
    make_store(address)
    with RecollectStore(address, ttl=ttl) as store:
        yield store
