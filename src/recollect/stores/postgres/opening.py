"""Opening a PostgreSQL store by its address: the entry point for the schemes postgresql:// and postgres://."""

from __future__ import annotations

from recollect.errors import MissingExtraError
from recollect.stores.base import Store
from recollect.stores.values import Durability


def open_store(
    address: str,
    *,
    create: bool,
    read_only: bool,
    key: bytes,
    timeout_s: float,
    durability: Durability,
    zone: str | None,
    read_from: str | None = None,
) -> Store:
    """Open the store at an address. It is never created here, whatever `create` says.

    Raises:
        MissingExtraError: psycopg is not installed.
        StoreError: The store cannot be used.
    """
    try:
        import psycopg  # noqa: F401 - the store imports it
    except ImportError:
        raise MissingExtraError("a store on PostgreSQL", "psycopg", "postgres") from None
    from recollect.stores.postgres.store import PostgresStore

    return PostgresStore(
        address, read_only=read_only, key=key, timeout_s=timeout_s, durability=durability, read_from=read_from
    )
