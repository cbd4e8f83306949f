"""Counting what SQLite does for a call: cost that no other load of the machine changes."""

from __future__ import annotations

import apsw

from recollect.stores.sqlite.store import SqliteStore


class Rows:
    """Counts what a store's connections do from now on.

    Attributes:
        rows: The rows that statements returned.
        scanned: The rows that they stepped over without an index.
        steps: The steps of SQLite's virtual machine: each row that is read costs several of them.
    """

    def __init__(self, store: SqliteStore) -> None:
        self.rows = self.scanned = self.steps = 0
        for connection in (store._writer, *store._idle):
            connection.trace_v2(apsw.SQLITE_TRACE_ROW | apsw.SQLITE_TRACE_PROFILE, self.note)

    def note(self, event: dict[str, object]) -> None:
        if event["code"] == apsw.SQLITE_TRACE_ROW:
            self.rows += 1
        else:
            status = event["stmt_status"]
            assert isinstance(status, dict)
            self.scanned += status["SQLITE_STMTSTATUS_FULLSCAN_STEP"]
            self.steps += status["SQLITE_STMTSTATUS_VM_STEP"]
