"""The schema of a PostgreSQL store: creating it, reading what it says of itself, and what a role needs to use it.

Tables are created in one transaction behind an advisory lock of that transaction, so that several who create the same
store at once get one. Opening a store only reads.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import psycopg
from psycopg import sql as names

from recollect.errors import (
    DamagedStoreError,
    NewerFormatError,
    NotAStoreError,
    OlderFormatError,
    StoreMissingError,
    StoreRefusedError,
    WrongKeyError,
)
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.stores.postgres.dialect import DERIVED_TABLES, LEDGER_TABLES, TABLES
from recollect.stores.postgres.errors import ours

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
#: The format of the tables that this release reads and writes.
FORMAT = 1
#: The least reader and writer of a store with a branch that continues another one. Its tables are those of format 1.
BRANCHED_FORMAT = 2
#: The oldest server that is supported, as `server_version_num`.
LEAST_SERVER = 140000
_KEYED_IDS = "keyed ids"
_LEDGER, _DERIVED = (Path(__file__).with_name(name).read_text("utf-8") for name in ("schema.sql", "derived.sql"))


class StoreTables(NamedTuple):
    """What a store says of itself.

    Attributes:
        uuid: Its uuid.
        format: The format of its tables.
        zone: The name of its time zone.
        keyed_ids: Whether derived ids depend on its key.
        refused: Why this release must not write to it; "" if it may.
    """

    uuid: str
    format: int
    zone: str
    keyed_ids: bool
    refused: str


def key_check(key: bytes) -> str:
    """Return the text by which a wrong key is detected, and which reveals nothing else about the key."""
    return hashlib.sha256(b"recollect.key check.1\0" + key).hexdigest()[:16]


def statements(schema: str, key: bytes, zone: str) -> list[str]:
    """Return the statements that create a store, in order."""
    facts = {
        "uuid": str(uuid.uuid4()),
        "format": str(FORMAT),
        "least_reader": str(FORMAT),
        "least_writer": str(FORMAT),
        "features": _KEYED_IDS if key != PUBLIC_KEY else "",
        "key_check": key_check(key),
        "zone": zone,
    }
    rows = ", ".join(f"({_literal(name)}, {_literal(value)})" for name, value in facts.items())
    return [
        f"CREATE SCHEMA IF NOT EXISTS {schema}",
        *_split(_LEDGER, schema),
        *_split(_DERIVED, schema),
        f"INSERT INTO {schema}.meta VALUES {rows}",
    ]


def _split(text: str, schema: str) -> list[str]:
    plain = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    return [each.strip() for each in plain.format(s=schema).split(";") if each.strip()]


def grants(schema: str, role: str, tables: Iterable[str] = TABLES) -> list[str]:
    """Return the statements that allow a role to use a store, and no more.

    Args:
        tables: The tables that the store has.
    """
    name = names.Identifier(role).as_string(None)
    return [
        f"GRANT USAGE ON SCHEMA {schema} TO {name}",
        *(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.{table} TO {name}" for table in tables),
    ]


def _literal(text: str) -> str:
    return names.Literal(text).as_string(None)


def create(connection: Connection, path: str, schema: str, key: bytes, zone: str, roles: Sequence[str]) -> bool:
    """Create a store unless it is there, and grant its use to roles. Return whether it was created.

    Raises:
        StoreError: That is not possible; nothing was created.
    """
    try:
        with connection.transaction():
            _lock(connection, schema)
            there = _tables_there(connection, schema)
            new = not there
            if there and not there >= set(LEDGER_TABLES):
                lacking = ", ".join(sorted(set(LEDGER_TABLES) - there))
                raise DamagedStoreError(path, f"the schema {schema} has tables of a store and lacks {lacking}")
            if new:
                found = connection.execute(
                    "SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()"
                )
                encoding = (found.fetchone() or ("",))[0]
                if _text(encoding) != "UTF8":
                    raise StoreRefusedError(
                        path, f"its database has the encoding {_text(encoding)}, and must have UTF8"
                    )
                known = connection.execute("SELECT to_regnamespace(%s) IS NOT NULL", (schema,)).fetchone()
                # The server asks for the right to create a schema even where it is there.
                for each in statements(schema, key, zone)[1 if known and known[0] else 0 :]:
                    connection.execute(each.encode())
            granted = [each for each in TABLES if new or each in there]
            for role in roles:
                for each in grants(schema, role, granted):
                    connection.execute(each.encode())
                _check_granted(connection, path, schema, role, granted)
    except psycopg.Error as error:
        raise ours(path, error) from error
    return new


def _check_granted(connection: Connection, path: str, schema: str, role: str, granted: Sequence[str]) -> None:
    """Raise StoreError if a role was not granted the use: the server only warns of that."""
    tables = " AND ".join(f"has_table_privilege(%(role)s, '{schema}.{each}', 'INSERT')" for each in granted)
    sql = f"SELECT has_schema_privilege(%(role)s, '{schema}', 'USAGE') AND {tables}"
    row = connection.execute(sql.encode(), {"role": role}).fetchone()
    if not (row and row[0]):
        raise StoreRefusedError(
            path, f"{role} was granted nothing: only the owner of the schema {schema} can grant its use"
        )


def missing_derived(connection: Connection, schema: str) -> list[str]:
    """Return the tables of shared derived data that an older store lacks."""
    there = _tables_there(connection, schema)
    return [each for each in DERIVED_TABLES if each not in there]


def _tables_there(connection: Connection, schema: str) -> set[str]:
    sql = "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename = ANY(%s)"
    return {str(name) for (name,) in connection.execute(sql, (schema, list(TABLES)))}


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _lock(connection: Connection, schema: str) -> None:
    """Wait until no other transaction creates or upgrades this store."""
    number = int.from_bytes(hashlib.sha256(f"recollect store {schema}".encode()).digest()[:8], signed=True)
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (number,))


def _has_tables(connection: Connection, schema: str) -> bool:
    found = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (f"{schema}.meta",)).fetchone()
    return bool(found and found[0])


def about(connection: Connection, path: str, schema: str, key: bytes, least: int = FORMAT) -> StoreTables | None:
    """Return what a store says of itself; None if there is none.

    Args:
        connection: A connection.
        path: The address, for messages.
        schema: The schema.
        key: The key that the store must have.
        least: The oldest format that is accepted.

    Raises:
        StoreError: The server is too old, or the store cannot be used by this release or with this key.
    """
    try:
        number = connection.info.server_version
        if number < LEAST_SERVER:
            raise StoreRefusedError(
                path, f"its server is PostgreSQL {number // 10000}, and 14 is the oldest that works"
            )
        if not _has_tables(connection, schema):
            return None
        meta: dict[str, str] = dict(
            connection.execute(f"SELECT name, value FROM {schema}.meta WHERE name NOT LIKE 'setting/%'".encode())
        )
    except psycopg.Error as error:
        raise ours(path, error) from error
    try:
        least_reader, least_writer, found = (int(meta[name]) for name in ("least_reader", "least_writer", "format"))
        uuid_, check, zone = str(meta["uuid"]), meta["key_check"], str(meta["zone"])
        features = str(meta["features"]).split(",")
    except KeyError:
        raise NotAStoreError(path, f"the table {schema}.meta is not that of a store") from None
    except ValueError:
        raise DamagedStoreError(path, f"the table {schema}.meta has a format that is no number") from None
    if least_reader > BRANCHED_FORMAT:
        raise NewerFormatError(path, f"it needs format {least_reader}, this release has {BRANCHED_FORMAT}")
    if found < least:
        raise OlderFormatError(path, f"it has format {found}: `recollect store upgrade` converts it")
    if check != key_check(key):
        raise WrongKeyError(path)
    refused = ""
    if least_writer > BRANCHED_FORMAT:
        refused = f"writing to it needs format {least_writer}, this release has {BRANCHED_FORMAT}"
    return StoreTables(uuid_, found, zone, _KEYED_IDS in features, refused)


#: The statements that bring the tables from one format to the next one, by the format they begin with.
_UPGRADES: dict[int, Sequence[str]] = {}


class Upgraded(NamedTuple):
    """What an upgrade did.

    Attributes:
        before: The format before it.
        after: The format after it.
        added: The tables that it added for what machines share, which need no other format.
    """

    before: int
    after: int
    added: tuple[str, ...]


def upgrade(connection: Connection, path: str, schema: str, key: bytes) -> Upgraded:
    """Bring the tables to the format of this release. Repeating it is safe.

    Raises:
        StoreError: There is no store, it needs a newer release, or the role may not change it.
    """
    try:
        with connection.transaction():
            _lock(connection, schema)
            found = about(connection, path, schema, key, least=min((*_UPGRADES, FORMAT)))
            if found is None:
                raise StoreMissingError(path, "`recollect store init` creates it")
            for number in range(found.format, FORMAT):
                for each in _UPGRADES[number]:
                    connection.execute(each.format(s=schema).encode())
                stated = f"UPDATE {schema}.meta SET value = %s WHERE name = 'format'"
                connection.execute(stated.encode(), (str(number + 1),))
            added = _add_derived(connection, schema)
    except psycopg.Error as error:
        raise ours(path, error) from error
    return Upgraded(found.format, FORMAT, added)


def _add_derived(connection: Connection, schema: str) -> tuple[str, ...]:
    """Add the tables of shared derived data that are missing, for those roles that may use the store."""
    missing = missing_derived(connection, schema)
    if not missing:
        return ()
    # All of them again: what they contain can be deleted at any time.
    for table in DERIVED_TABLES:
        connection.execute(f"DROP TABLE IF EXISTS {schema}.{table}".encode())
    for each in _split(_DERIVED, schema):
        connection.execute(each.encode())
    users = connection.execute(
        "SELECT DISTINCT grantee FROM information_schema.role_table_grants "
        "WHERE table_schema = %s AND table_name = 'heads' AND privilege_type = 'INSERT' "
        "AND grantee NOT IN (grantor, 'PUBLIC')",
        (schema,),
    ).fetchall()
    for (role,) in users:
        for each in grants(schema, str(role), DERIVED_TABLES):
            connection.execute(each.encode())
    return tuple(missing)
