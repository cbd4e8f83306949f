"""The statements of `stores.sql` for PostgreSQL: other placeholders, tables with their schema, no hints of SQLite."""

from __future__ import annotations

import re
from functools import lru_cache

#: The tables of a store (schema.sql).
TABLES = (
    "meta",
    "namespaces",
    "branches",
    "commits",
    "changes",
    "redactions",
    "versions",
    "removed_payloads",
    "heads",
    "nodes",
    "snapshots",
)
_HINT = re.compile(r" INDEXED BY \w+|\+(?=[a-z])")
_TABLE = re.compile(rf"\b(FROM|JOIN|INTO|UPDATE) ({'|'.join(TABLES)})\b")


@lru_cache(maxsize=4096)
def rewritten(sql: str, schema: str) -> str:
    """Return a statement in the words of PostgreSQL and psycopg.

    Args:
        sql: The statement, as `stores.sql.view` describes.
        schema: The schema of the store's tables, a plain lower-case name.

    >>> rewritten("SELECT x.id FROM changes x INDEXED BY changes_by_id WHERE x.seq > ? ORDER BY +x.id", "r")
    'SELECT x.id FROM r.changes x WHERE x.seq > %s ORDER BY x.id'
    """
    plain = _HINT.sub("", sql).replace("%", "%%").replace("?", "%s")
    return _TABLE.sub(rf"\1 {schema}.\2", plain)
