"""What the owner of a PostgreSQL store does: create it, bring it to the format of this release, and look at its server.

Nothing here runs when a store is opened, so a node that starts changes nothing and needs no right to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from recollect.errors import InvalidArgumentError, StoreMissingError
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.stores.postgres import schema as tables
from recollect.stores.postgres.address import Address, parsed
from recollect.stores.postgres.connecting import Connector
from recollect.stores.postgres.dialect import TABLES
from recollect.stores.postgres.store import CLOCK_S, PostgresStore

#: Seconds that connecting may take.
_TIMEOUT_S = 10.0
_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")


@dataclass(frozen=True, kw_only=True)
class ServerReport:
    """What was found about a store and its server.

    Attributes:
        facts: What the store and the server say of themselves.
        problems: What is wrong with the contents, or keeps the store from being used.
        advice: What an operator should know: settings under which acknowledged commits can be lost, for example.
    """

    facts: dict[str, Any]
    problems: list[str]
    advice: list[str]


def init(
    address: str,
    *,
    key: bytes = PUBLIC_KEY,
    zone: str = "UTC",
    roles: Sequence[str] = (),
    expected_zone: str | None = None,
) -> bool:
    """Create a store unless there is one, and grant its use to roles. Return whether it was created.

    Args:
        address: The address of a role that may create a schema in the database, or owns it.
        key: The store's key.
        zone: The name of the time zone of a new store.
        roles: Roles that may then read and write records, and neither create nor change tables.
        expected_zone: The time zone that a store that is there must have; None for any.

    Raises:
        StoreError: That is not possible; nothing was created or granted.
        InvalidArgumentError: The store that is there has another time zone.
    """
    found = parsed(address)
    with Connector(found, _TIMEOUT_S).connected() as connection:
        there = tables.about(connection, found.shown, found.schema, key)
        if expected_zone and there and there.zone != expected_zone:
            rule = f"the store is there already, with the time zone {there.zone}, which cannot be changed"
            raise InvalidArgumentError("zone", expected_zone, rule)
        return tables.create(connection, found.shown, found.schema, key, zone, roles)


def init_sql(address: str, *, key: bytes = PUBLIC_KEY, zone: str = "UTC", roles: Sequence[str] = ()) -> str:
    """Return the statements of `init`, for those who run such statements themselves. No connection is made."""
    schema = parsed(address).schema
    given = [each for role in roles for each in tables.grants(schema, role)]
    return "".join(f"{each};\n" for each in ("BEGIN", *tables.statements(schema, key, zone), *given, "COMMIT"))


def upgrade(address: str, *, key: bytes = PUBLIC_KEY) -> tables.Upgraded:
    """Bring the tables to the format of this release, and add those that an older store lacks.

    Raises:
        StoreError: There is no store, it needs a newer release, or the role may not change it.
    """
    found = parsed(address)
    with Connector(found, _TIMEOUT_S).connected() as connection:
        return tables.upgrade(connection, found.shown, found.schema, key)


def examine(address: str, *, key: bytes = PUBLIC_KEY, contents: bool = True) -> ServerReport:
    """Look at a store and its server, and change nothing.

    Args:
        address: The address.
        key: The store's key.
        contents: Read all versions and compare them with their hashes and roots.

    Raises:
        StoreError: There is no store, or it cannot be opened.
    """
    found = parsed(address)
    with Connector(found, _TIMEOUT_S).connected() as connection:
        if tables.about(connection, found.shown, found.schema, key) is None:
            raise StoreMissingError(found.shown, "`recollect store init` creates it")
        missing = _missing_rights(connection, found)
    store = PostgresStore(address, read_only=True, key=key)
    try:
        # It is opened for reading here, whatever others may do, and what it has done itself is of no interest.
        own = ("read_only", "lost_commits", "round_trips")
        facts = {name: value for name, value in store.facts().items() if name not in own}
        problems = list(store.check()) if contents else []
    finally:
        store.close()
    return ServerReport(facts=facts, problems=problems, advice=[*missing, *_advice(facts)])


def _missing_rights(connection: psycopg.Connection[tuple[Any, ...]], found: Address) -> list[str]:
    out = []
    missing = tables.missing_derived(connection, found.schema)
    if missing:
        out.append(
            f"there is no table {', '.join(missing)}: each machine builds its own indexes and embeds all texts itself, "
            "until the owner runs `recollect store upgrade`"
        )
    for table in (each for each in TABLES if each not in missing):
        columns = ", ".join(f"has_table_privilege('{found.schema}.{table}', '{right}')" for right in _RIGHTS)
        row = connection.execute(f"SELECT {columns}".encode()).fetchone() or ()
        lacking = [right for right, has in zip(_RIGHTS, row, strict=True) if not has]
        if lacking:
            out.append(f"this role may not {', '.join(lacking)} in {table}: `recollect store init --grant ROLE`")
    return out


def _advice(facts: dict[str, Any]) -> list[str]:
    out = []
    for name, danger in (
        ("fsync", "a crash of the server's machine loses commits or corrupts the database"),
        ("full_page_writes", "a crash of the server's machine can corrupt the database"),
        ("synchronous_commit", "a crash of the server loses the newest commits, unless a node asks for more"),
    ):
        if facts[name] == "off":
            out.append(f"{name} is off: {danger}")
    if not facts["synchronous_standby_names"] and not facts["in_recovery"]:
        out.append("synchronous_standby_names is empty: a failover to a standby can lose acknowledged commits")
    if facts["data_checksums"] != "on":
        out.append("data_checksums is off: each record is hashed whenever it is read, which takes longer")
    if facts["in_recovery"]:
        out.append("the server is a standby: it can be read and not written")
    if abs(facts["clock_ahead_s"]) > CLOCK_S:
        out.append(f"the server's clock and this machine's differ by {abs(facts['clock_ahead_s']):.1f} s")
    return out
