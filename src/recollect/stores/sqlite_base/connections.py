"""Connections to a file: the schema is verified, and reads see the present.

A file may come from an untrusted source, and SQLite runs what its schema contains: a view in place of a table may be a
query that never ends. The schema is therefore compared before the first read, connections disable views and triggers
(`checksums.connect`), and the statements that open a file have a limited number of steps.

ROLLBACK and COMMIT do not end a read while one of its statements is suspended, such as that of a generator that was
left half-way: `in_transaction` is false then, and everything that the connection reads is of the past (`has_snapshot`).

Source:
    https://www.sqlite.org/lang_transaction.html, https://www.sqlite.org/c3ref/txn_state.html
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple, TypeVar

import apsw

#: Maximum number of steps of SQLite's virtual machine for one statement that opens a file. It reads a few rows.
_MAX_STEPS = 1_000_000
#: The pause between two attempts, in seconds.
_PAUSE_S = 0.005
T = TypeVar("T")


class SchemaObject(NamedTuple):
    """An object of a schema: its type, the table that it belongs to, and the statement that created it."""

    type: str
    table: str
    sql: str | None


def structure(connection: apsw.Connection) -> dict[str, SchemaObject]:
    """Return the objects of a file's schema by name.

    Cost:
        About 15 us for a store.
    """
    rows = connection.execute("SELECT name, type, tbl_name, sql FROM sqlite_schema")
    return {name: SchemaObject(*rest) for name, *rest in rows}


@cache
def made_by(tables: str) -> Mapping[str, SchemaObject]:
    """Return the structure of a file in which these statements were run."""
    connection = apsw.Connection(":memory:")
    try:
        connection.execute(tables).fetchall()
        return structure(connection)
    finally:
        connection.close()


def differing_table(found: Mapping[str, SchemaObject], tables: str, *, exactly: bool = True) -> str:
    """Return the name of a table that differs from the one that these statements create; "" if there is none.

    Missing tables are ignored.

    Args:
        found: The structure of the file.
        tables: The statements.
        exactly: Require the same definition; otherwise any ordinary table (not a view or a virtual table) will do.
    """
    for name, expected in made_by(tables).items():
        actual = found.get(name)
        if expected.type != "table" or actual is None:
            continue
        if actual != expected if exactly else actual.type != "table" or _is_virtual(actual):
            return name
    return ""


def _is_virtual(table: SchemaObject) -> bool:
    return (table.sql or "").upper().split()[:2] == ["CREATE", "VIRTUAL"]


@contextmanager
def few_steps(connection: apsw.Connection) -> Iterator[None]:
    """Interrupt statements that take many more steps than reading a few rows. They raise apsw.InterruptError."""
    connection.set_progress_handler(lambda: True, _MAX_STEPS)
    try:
        yield
    finally:
        connection.set_progress_handler(None)


def has_snapshot(connection: apsw.Connection) -> bool:
    """Return whether a connection is in a transaction, or reads from a snapshot after the end of one.

    A transaction that has read nothing yet has no state.
    """
    return connection.in_transaction or connection.txn_state() != apsw.SQLITE_TXN_NONE


def in_turn(work: Callable[[], T], busy: type[Exception], timeout_s: float) -> T:
    """Return what `work` returns. Run it again while it raises `busy`, until the timeout.

    SQLite does not always wait: if two connections create a file or switch it to WAL mode at once, each with a lock
    that the other one needs, it fails at once instead of waiting in vain.

    Raises:
        Exception: `busy`, from the last attempt.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return work()
        except busy:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE_S)
