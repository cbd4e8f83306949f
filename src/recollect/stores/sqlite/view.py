"""Views and transactions of the SQLite store: how the statements of `stores.sql` reach a connection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

import apsw

from recollect.common.deadlines import checked, current
from recollect.errors import StoreIOError
from recollect.stores.sql.transaction import SqlTransaction
from recollect.stores.sql.view import SqlView
from recollect.stores.sqlite.schema import BRANCHED_FORMAT
from recollect.stores.sqlite_base.errors import SQLITE_ERRORS, ours

#: Up to this many rows are inserted by one statement, in two thirds of the time. Of many rows it takes longer.
_AT_ONCE = 8


@cache
def _of_rows(sql: str, count: int) -> str:
    """Return an INSERT of one row as one of several."""
    before, values, row = sql.partition(" VALUES ")
    return before + values + ", ".join([row] * count)


class SqliteView(SqlView):
    """A snapshot view of the file.

    Args:
        connection: A connection in a transaction.
        arguments: Those of `SqlView`.
    """

    #: Whether rows are read until the deadline of the thread: not within a transaction, where the caller says when.
    _looks = True

    def __init__(self, connection: apsw.Connection, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._connection = connection
        self._execute = connection.execute

    def _rows(self, sql: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        try:
            rows: Any = self._execute(sql, parameters)
            # inside `try`, because later rows can fail like the first
            yield from checked(rows) if self._looks and current() is not None else rows
        except SQLITE_ERRORS as error:
            raise ours(self._path, error) from error

    def _row(self, sql: str, parameters: tuple[Any, ...]) -> tuple[Any, ...] | None:
        try:
            row: tuple[Any, ...] | None = next(self._execute(sql, parameters), None)
        except SQLITE_ERRORS as error:
            raise ours(self._path, error) from error
        return row


class SqliteTransaction(SqlTransaction, SqliteView):
    """A `Transaction` of the file. The arguments are those of `SqliteView`."""

    _looks = False
    _branched_format = BRANCHED_FORMAT

    def _row(self, sql: str, parameters: tuple[Any, ...]) -> tuple[Any, ...] | None:
        self.check_open()
        return super()._row(sql, parameters)

    def _rows(self, sql: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        self.check_open()
        return super()._rows(sql, parameters)

    def check_open(self) -> None:
        """Raise StoreIOError if SQLite rolled the transaction back after an error: a write now would be separate."""
        if not self._connection.in_transaction:
            raise StoreIOError(self._path, "an earlier error rolled the transaction back")

    def _write(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self.check_open()
        try:
            if 1 < len(rows) <= _AT_ONCE and sql.endswith("?)"):
                self._connection.execute(_of_rows(sql, len(rows)), tuple(chain.from_iterable(rows)))
            else:
                self._connection.executemany(sql, rows)
        except SQLITE_ERRORS as error:
            raise ours(self._path, error) from error

    def _drop_nodes(self, pages: Sequence[int]) -> None:
        # These pages contain only hashes. To overwrite them with zeros would mean to write all of them to the WAL.
        self._write("PRAGMA secure_delete = FAST", [()])
        super()._drop_nodes(pages)
        self._write("PRAGMA secure_delete = ON", [()])
