"""The error for each of SQLite's result codes: damage is what SQLite calls corrupt, and tables that are not ours."""

from __future__ import annotations

import apsw
import pytest

from recollect.errors import (
    ClosedError,
    DamagedStoreError,
    NoMemoryError,
    NotAStoreError,
    ReadOnlyStoreError,
    RecollectError,
    StoreBusyError,
    StoreFullError,
    StoreIOError,
)
from recollect.stores.sqlite.schema import TABLES
from recollect.stores.sqlite_base.errors import SQLITE_ERRORS, ours, translated

#: By primary code.
BECOMES: dict[str, type[RecollectError]] = {
    "SQLITE_ERROR": StoreIOError,
    "SQLITE_INTERNAL": StoreIOError,
    "SQLITE_PERM": StoreIOError,
    "SQLITE_ABORT": StoreIOError,
    "SQLITE_BUSY": StoreBusyError,
    "SQLITE_LOCKED": StoreBusyError,
    "SQLITE_NOMEM": NoMemoryError,
    "SQLITE_READONLY": ReadOnlyStoreError,
    "SQLITE_INTERRUPT": DamagedStoreError,
    "SQLITE_IOERR": StoreIOError,
    "SQLITE_CORRUPT": DamagedStoreError,
    "SQLITE_NOTFOUND": StoreIOError,
    "SQLITE_FULL": StoreFullError,
    "SQLITE_CANTOPEN": StoreIOError,
    "SQLITE_PROTOCOL": StoreBusyError,
    "SQLITE_EMPTY": StoreIOError,
    "SQLITE_SCHEMA": StoreBusyError,
    "SQLITE_TOOBIG": StoreIOError,
    "SQLITE_CONSTRAINT": DamagedStoreError,
    "SQLITE_MISMATCH": DamagedStoreError,
    "SQLITE_MISUSE": StoreIOError,
    "SQLITE_NOLFS": StoreIOError,
    "SQLITE_AUTH": StoreIOError,
    "SQLITE_FORMAT": NotAStoreError,
    "SQLITE_RANGE": StoreIOError,
    "SQLITE_NOTADB": NotAStoreError,
}
#: By extended code, where it is something else than its primary code.
EXTENDED: dict[str, type[RecollectError]] = {
    "SQLITE_IOERR_DATA": DamagedStoreError,
    "SQLITE_IOERR_CORRUPTFS": DamagedStoreError,
    "SQLITE_IOERR_NOMEM": NoMemoryError,
}
#: Results, and what SQLite only writes into its log.
_NO_ERRORS = {"SQLITE_OK", "SQLITE_ROW", "SQLITE_DONE", "SQLITE_NOTICE", "SQLITE_WARNING"}


def kind(error: Exception) -> type[RecollectError]:
    return type(ours("a.db", error))


def test_every_result_code_is_one_of_the_table() -> None:
    names = {name for name in apsw.mapping_result_codes if isinstance(name, str)}
    assert names - _NO_ERRORS == BECOMES.keys()


@pytest.mark.promise("damage.none")
@pytest.mark.parametrize("name", BECOMES)
def test_each_result_code_becomes_what_it_means(name: str) -> None:
    error = apsw.exception_for(getattr(apsw, name))
    assert kind(error) is BECOMES[name]
    with pytest.raises(BECOMES[name]), translated("a.db"):
        raise error


@pytest.mark.parametrize("name", sorted(str(name) for name in apsw.mapping_extended_result_codes if name == str(name)))
def test_each_extended_code_becomes_what_its_primary_code_does_unless_it_says_more(name: str) -> None:
    code = getattr(apsw, name)
    primary = apsw.mapping_result_codes[code & 0xFF]
    if primary not in _NO_ERRORS:
        assert kind(apsw.exception_for(code)) is EXTENDED.get(name, BECOMES[str(primary)])


def test_a_closed_connection_is_a_closed_memory() -> None:
    connection = apsw.Connection(":memory:")
    connection.close()
    with pytest.raises(ClosedError), translated("a.db"):
        connection.execute("SELECT 1")


TOO_LARGE = {
    "an expression that is too deep": "SELECT " + "1 AND " * 1500 + "1",
    "too many values": "SELECT " + "?," * 40_000 + "1",
    "too many terms": "SELECT 1" + " UNION SELECT 1" * 600,
    "too many columns": "SELECT " + "1," * 3000 + "1",
    "brackets that are too deep": "SELECT " + "(" * 100_000 + "1" + ")" * 100_000,
    "a text that is too large": "SELECT randomblob(2000000000) || randomblob(2000000000)",
    "a function that is not there": "SELECT no_such(1, 2",
}
NOT_OURS = {
    "a table that is gone": ("DROP TABLE heads", "SELECT count(*) FROM heads"),
    "a column that is gone": ("ALTER TABLE commits DROP COLUMN reason", "SELECT reason FROM commits"),
    "a column less": ("ALTER TABLE commits DROP COLUMN reason", "INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?)"),
    "a view for a table": (
        "DROP TABLE nodes; CREATE VIEW nodes AS SELECT 1 AS place, x'' AS body",
        "INSERT INTO nodes (place, body) VALUES (?, ?)",
    ),
    "a rule that is gone": (
        "DROP TABLE nodes; CREATE TABLE nodes (place, body)",
        "INSERT INTO nodes VALUES (?, ?) ON CONFLICT (place) DO NOTHING",
    ),
    "a rule that is broken": (
        "INSERT INTO meta VALUES ('a', 1)",
        "INSERT INTO meta SELECT 'a', 2 WHERE ?1 IS NULL AND ?2 IS NULL",
    ),
    "a value of another type": ("SELECT 1", "INSERT INTO nodes SELECT 'x', x'' WHERE ?1 IS NULL AND ?2 IS NULL"),
    "a trigger that refuses": (
        "CREATE TRIGGER no BEFORE INSERT ON nodes BEGIN SELECT raise(ABORT, 'no'); END",
        "INSERT INTO nodes VALUES (7, x'')",
    ),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_statement_that_sqlite_does_not_take_is_no_damage(name: str) -> None:
    connection = apsw.Connection(":memory:")
    connection.execute(TABLES)
    with pytest.raises(SQLITE_ERRORS) as caught:
        connection.execute(TOO_LARGE[name]).fetchall()
    assert kind(caught.value) in (StoreIOError, NoMemoryError)


@pytest.mark.parametrize("name", NOT_OURS)
def test_tables_that_are_not_as_they_were_made_are_damage(name: str) -> None:
    change, sql = NOT_OURS[name]
    connection = apsw.Connection(":memory:")
    connection.execute(TABLES)
    connection.execute(change).fetchall()
    with pytest.raises(SQLITE_ERRORS) as caught:
        connection.execute(sql, (None,) * sql.count("?") if "?1" not in sql else (None, None)).fetchall()
    assert kind(caught.value) is DamagedStoreError
