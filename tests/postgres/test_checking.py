"""`check` finds what was changed behind the store's back, and nothing where nothing was."""

from __future__ import annotations

import psycopg
import pytest

import recollect

pytestmark = pytest.mark.postgres

#: What somebody did to the tables, and what the report says of it.
DAMAGE = {
    "nothing": ("SELECT 1", ""),
    "a payload": (
        "UPDATE {s}.versions SET payload = 'x' WHERE number = (SELECT min(number) FROM {s}.versions)",
        "hash",
    ),
    "a head": ("DELETE FROM {s}.heads WHERE id = 'n3'", "live records"),
    "a version": ("DELETE FROM {s}.versions WHERE number = (SELECT version FROM {s}.heads WHERE id = 'n3')", "missing"),
    "a page": ("DELETE FROM {s}.nodes WHERE place = (SELECT max(place) FROM {s}.nodes)", "Merkle trie"),
    "a change": ("DELETE FROM {s}.changes WHERE id = 'n3'", "log leads to"),
    "a root": ("UPDATE {s}.commits SET root = decode(repeat('00', 32), 'hex') WHERE seq = 12", "hash"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_check_describes_what_was_changed(name: str, dsn: str, schema: str, address: str) -> None:
    statement, described = DAMAGE[name]
    with recollect.open(address, embedder="none") as memory:
        for number in range(12):
            memory.remember(f"note {number}", id=f"n{number}")
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(statement.format(s=schema).encode())
        report = memory.check()
    assert bool(report) is (name != "nothing")
    assert described in " ".join(report)
