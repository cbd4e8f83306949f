"""The statements of `stores.sql` for PostgreSQL: other placeholders, tables with their schema, no hints of SQLite."""

from __future__ import annotations

from functools import lru_cache
from itertools import count

from recollect.common.regexes import regex

#: The tables of the ledger (schema.sql), which every store has.
LEDGER_TABLES = (
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
#: The tables of what machines share of their derived data (derived.sql), which an older store may lack.
DERIVED_TABLES = ("segments", "vector_sets", "vectors", "vectors_reached")
TABLES = (*LEDGER_TABLES, *DERIVED_TABLES)
_HINT = regex(r" INDEXED BY \w+|\+(?=[a-z])")
_VALUE = regex(r"\?")
_TABLE = regex(rf"\b(FROM|JOIN|INTO|UPDATE) ({'|'.join(LEDGER_TABLES)})\b")


@lru_cache(maxsize=4096)
def rewritten(sql: str, schema: str) -> str:
    """Return a statement in the words of PostgreSQL and libpq.

    Args:
        sql: The statement, as `stores.sql.view` describes.
        schema: The schema of the store's tables, a plain lower-case name.

    >>> rewritten("SELECT x.id FROM changes x INDEXED BY changes_by_id WHERE x.seq > ? ORDER BY +x.id", "r")
    'SELECT x.id FROM r.changes x WHERE x.seq > $1 ORDER BY x.id'
    """
    number = count(1)
    plain = _VALUE.sub(lambda _: f"${next(number)}", _HINT.sub("", sql))
    return _TABLE.sub(rf"\1 {schema}.\2", plain)
