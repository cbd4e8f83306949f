"""Whether a connection still has a snapshot of its file, by SQLite's own state.

ROLLBACK and COMMIT do not end a read while one of its statements is suspended, such as that of a generator that was
left half-way: `in_transaction` is false then, and everything that the connection reads is of the past.

Source:
    https://www.sqlite.org/lang_transaction.html, https://www.sqlite.org/c3ref/txn_state.html
"""

from __future__ import annotations

import apsw


def has_snapshot(connection: apsw.Connection) -> bool:
    """Return whether a connection is in a transaction, or reads from a snapshot after the end of one.

    A transaction that has read nothing yet has no state.
    """
    return connection.in_transaction or connection.txn_state() != apsw.SQLITE_TXN_NONE
