"""Translation of PostgreSQL's errors to Recollect's, by SQLSTATE. Only this package knows both."""

from __future__ import annotations

import re
from collections.abc import Callable

import psycopg

from recollect.errors import (
    DamagedStoreError,
    InvalidArgumentError,
    NoMemoryError,
    ReadOnlyStoreError,
    RecollectError,
    StoreBusyError,
    StoreFullError,
    StoreIOError,
    StoreRefusedError,
    StoreServerError,
)

_Kind = Callable[[str, str], RecollectError]


def _missing_table(path: str, detail: str) -> RecollectError:
    return DamagedStoreError(path, f"{detail.partition(' LINE ')[0]}: a table of the store is missing")


def _not_granted(path: str, detail: str) -> RecollectError:
    if "for database" in detail:
        return StoreRefusedError(path, f"{detail}: a role needs the right CREATE in the database to create a store")
    return StoreRefusedError(path, f"{detail}: `recollect store init --grant ROLE` grants what a role needs")


#: The errors by SQLSTATE, or by its class, the first two characters.
_KINDS: dict[str, _Kind] = {
    "08": StoreServerError,  # the connection is lost
    "28": StoreServerError,  # the user or the password is wrong
    "3D": StoreServerError,  # there is no such database
    "22": lambda path, detail: InvalidArgumentError("text", "", f"PostgreSQL cannot store it: {detail}"),
    "23": DamagedStoreError,  # the statements of this package violate no constraint of an intact store
    "25": StoreIOError,  # among them: the transaction was idle for too long
    "25006": lambda path, detail: ReadOnlyStoreError(path, f"{detail}: the server or the role allows only reads"),
    "40": StoreBusyError,  # deadlock, serialization failure, recovery conflict
    "42501": _not_granted,
    "42704": StoreRefusedError,  # there is no such role
    "3F000": _missing_table,
    "42P01": _missing_table,
    "53100": StoreFullError,
    "53200": NoMemoryError,
    "53300": StoreServerError,  # too many connections
    "55P03": StoreBusyError,  # lock timeout
    "57014": StoreServerError,  # statement timeout
    "57P": StoreServerError,  # the server shuts down or starts
    "XX": DamagedStoreError,
}


def ours(path: str, error: psycopg.Error) -> RecollectError:
    """Return the error for one of psycopg's.

    Args:
        path: The address of the store, without secrets.
        error: The error of a statement or a connection; an error of a commit has another meaning (`doubt`).
    """
    state = error.sqlstate or ""
    detail = " ".join(str(error).split()) or type(error).__name__
    for code in (state, state[:3], state[:2]):
        if code in _KINDS:
            return _KINDS[code](path, detail)
    if isinstance(error, psycopg.DataError):  # found before it was sent: a text with a NUL character
        return _KINDS["22"](path, detail)
    if isinstance(error, psycopg.ProgrammingError) and not state:  # found by libpq before it connects
        # It quotes what it did not understand, which may be a part of a password. Names of parameters are none.
        detail = re.sub('"(?![a-z_]+")[^"]*"', "...", detail)
        return InvalidArgumentError("address", path, f"{detail} (docs/postgresql.md lists the parameters)")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreServerError(path, detail)
    return StoreIOError(path, detail)


def is_lost(error: psycopg.Error) -> bool:
    """Return whether the connection is lost, so that nothing is known of what was sent last."""
    state = error.sqlstate or ""
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and (
        not state or state.startswith(("08", "57P"))
    )
