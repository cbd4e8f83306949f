"""Whether the tables of an SQLite file are those that we make, asked before anything else is read of it.

What lies at a path may come from a stranger. SQLite runs what a schema says: a view in place of a table may be a query
without end. So a schema is compared before the first read, connections know neither views nor triggers
(`checksums.connect`), and while a file is opened its statements may take a limited number of steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import apsw

#: Maximum number of steps of SQLite's machine for one statement while a file is opened, which reads some rows.
_MOST_STEPS = 1_000_000


class Made(NamedTuple):
    """An object of a schema: its type, the table that it belongs to, and the statement that made it."""

    type: str
    table: str
    sql: str | None


def structure(connection: apsw.Connection) -> dict[str, Made]:
    """The objects of a file's schema by name. Cost: some 15 us for a store's."""
    rows = connection.execute("SELECT name, type, tbl_name, sql FROM sqlite_schema")
    return {name: Made(*rest) for name, *rest in rows}


@cache
def made_by(tables: str) -> Mapping[str, Made]:
    """The structure of a file in which these statements were run."""
    connection = apsw.Connection(":memory:")
    try:
        connection.execute(tables).fetchall()
        return structure(connection)
    finally:
        connection.close()


def strange(held: Mapping[str, Made], tables: str, *, exactly: bool = True) -> str:
    """The name of a table that is not as these statements make it; "" for none. One that is missing is none.

    exactly  else it only has to be a table that holds its rows itself, whatever its columns
    """
    for name, wanted in made_by(tables).items():
        found = held.get(name)
        if wanted.type != "table" or found is None:
            continue
        if found != wanted if exactly else found.type != "table" or _is_virtual(found):
            return name
    return ""


def _is_virtual(found: Made) -> bool:
    return (found.sql or "").upper().split()[:2] == ["CREATE", "VIRTUAL"]


@contextmanager
def few_steps(connection: apsw.Connection) -> Iterator[None]:
    """Interrupt a statement that takes more steps than reading a few rows does. Raises: apsw.InterruptError."""
    connection.set_progress_handler(lambda: True, _MOST_STEPS)
    try:
        yield
    finally:
        connection.set_progress_handler(None)
