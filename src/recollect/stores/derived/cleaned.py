"""Up to which commit nothing that was erased is left in the derived data of this machine.

It is for stores whose derived data are not where the ledger is: the process that erases cannot reach the folders of
other machines, so each of them removes what was erased itself, before it reads the memory again. The commits are in a
small SQLite file (`FOLDER/cleaned.db`, mode 0600).
"""

from __future__ import annotations

import apsw

from recollect.ledger.commits import Branch
from recollect.stores.derived.database import DerivedDatabase, column

_TABLES = """
CREATE TABLE cleaned (uuid TEXT, namespace TEXT, branch TEXT, seq INTEGER, root BLOB,
                      PRIMARY KEY (uuid, namespace, branch)) WITHOUT ROWID;
"""


class CleanedFile(DerivedDatabase):
    """The commits of a store up to which its derived data on this machine are clean."""

    NAME, TABLES = "cleaned.db", _TABLES
    WARNING = "%s cannot be used (%s); whether derived data contain what was erased is examined again"

    def get(self, branch: Branch) -> tuple[int, bytes] | None:
        """Return the seq and root of the commit of a branch; None if there is nothing derived from it yet."""

        def read(connection: apsw.Connection) -> tuple[int, bytes] | None:
            sql = "SELECT seq, root FROM cleaned WHERE uuid = ? AND namespace = ? AND branch = ?"
            row = connection.execute(sql, (self._uuid, *branch)).fetchone()
            return None if row is None else (column(int, row[0]), column(bytes, row[1]))

        unknown: tuple[int, bytes] | None = (1, b"")  # no commit of any history, so everything is removed
        return self._use(read, unknown)

    def put(self, branch: Branch, seq: int, root: bytes) -> None:
        """Note a commit."""

        def write(connection: apsw.Connection) -> None:
            row = (self._uuid, *branch, seq, root)
            connection.execute("INSERT OR REPLACE INTO cleaned VALUES (?, ?, ?, ?, ?)", row).fetchall()

        self._use(write, None)
