"""Statements on a connection, many in one round trip, by libpq's pipeline.

psycopg's own pipeline takes ten times the processor time of this one (ten small queries: 0.77 and 0.07 ms), which is
more than the server takes. What psycopg does well is left to it: connecting, the conversion of values, the errors.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector, SelectorKey
from typing import Any, NamedTuple

import psycopg
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGresult
from psycopg.types.numeric import Int8Dumper

Row = tuple[Any, ...]
Statement = tuple[str, Sequence[Any]]
#: A statement and the types of its values.
_Key = tuple[str, tuple[int, ...]]
#: How often a statement is sent before it is prepared.
_PREPARED_AFTER = 2
#: Maximum number of statements that are prepared on a connection, and of those whose uses are counted.
_MOST_PREPARED, _MOST_COUNTED = 300, 1000
_BINARY = 1


class Reply(NamedTuple):
    """The answer to a statement.

    Attributes:
        rows: Its rows.
        tag: What the server says that it has done: `COMMIT` or `ROLLBACK` after a COMMIT.
    """

    rows: list[Row]
    tag: str


class Converted(NamedTuple):
    """A statement with its values as they are sent: their bytes, types and formats."""

    sql: str
    values: Sequence[Any]
    types: tuple[int, ...]
    formats: tuple[int, ...]


class Wire:
    """A connection whose statements are sent in pipelines.

    Args:
        connection: A connection in autocommit mode, which nobody else uses meanwhile.
        prepares: Prepare statements that are sent again and again. A pooler that passes transactions on must be able
            to follow them.

    Attributes:
        until: When to give up waiting for an answer, and close the connection (`time.monotonic`); None: never.
    """

    until: float | None = None

    def __init__(self, connection: psycopg.Connection[Row], *, prepares: bool) -> None:
        # All integers have one type, so that a statement is prepared once and not for each size of its values.
        connection.adapters.register_dumper(int, Int8Dumper)
        self._connection = connection
        self._libpq = connection.pgconn
        self._values = Transformer(connection)
        self._most_prepared = _MOST_PREPARED if prepares else 0
        self._prepared: dict[_Key, bytes] = {}
        self._times: dict[_Key, int] = {}
        self._names = count(1)
        self._selector = DefaultSelector()
        self._selector.register(self._libpq.socket, EVENT_READ)

    def converted(self, statements: Sequence[Statement]) -> list[Converted]:
        """Return statements as they are sent. The place of a value is `$1`, `$2` and so on.

        Raises:
            psycopg.Error: A value cannot be sent.
        """
        return [self._converted(*statement) for statement in statements]

    def run(self, given: Sequence[Converted]) -> list[Reply]:
        """Send statements in one round trip, and return the answer to each.

        Raises:
            psycopg.Error: One of them failed, and those after it were not executed; or the connection is lost.
        """
        try:
            self._libpq.enter_pipeline_mode()
            # The key of what each is to prepare; None for a statement.
            sent = [each for statement in given for each in self._send(statement)]
            self._libpq.pipeline_sync()
            self._flush()
            results = self._results()
            self._libpq.exit_pipeline_mode()
        except BaseException:
            # Answers may still come, and nobody would know to what.
            self.close()
            raise
        return self._answers(sent, results)

    def _converted(self, sql: str, parameters: Sequence[Any]) -> Converted:
        if not parameters:
            return Converted(sql, (), (), ())
        values = self._values.dump_sequence(parameters, [PyFormat.AUTO] * len(parameters))
        return Converted(sql, values, self._values.types or (), tuple(self._values.formats or ()))

    def _send(self, statement: Converted) -> list[_Key | None]:
        """Send a statement, and before it what prepares it if that is worth it; return what was sent."""
        key = statement.sql, statement.types
        name = self._prepared.get(key)
        sent: list[_Key | None] = [None]
        # Without values there is little to prepare; and a pooler that passes transactions on must see each COMMIT.
        wanted = statement.values and len(self._prepared) < self._most_prepared
        if name is None and wanted and self._comes_again(key):
            name = self._prepared[key] = f"recollect_{next(self._names)}".encode()
            self._libpq.send_prepare(name, statement.sql.encode(), param_types=statement.types)
            sent = [key, None]
        if name is None:
            self._libpq.send_query_params(
                statement.sql.encode(),
                statement.values,
                param_types=statement.types,
                param_formats=statement.formats,
                result_format=_BINARY,
            )
        else:
            self._libpq.send_query_prepared(
                name, statement.values, param_formats=statement.formats, result_format=_BINARY
            )
        return sent

    def _comes_again(self, key: _Key) -> bool:
        """Return whether a statement has been sent so often that it is worth preparing."""
        times = self._times.pop(key, 0) + 1
        if times > _PREPARED_AFTER:
            return True
        self._times[key] = times
        if len(self._times) > _MOST_COUNTED:
            del self._times[next(iter(self._times))]
        return False

    def _flush(self) -> None:
        while self._libpq.flush():
            self._selector.modify(self._libpq.socket, EVENT_READ | EVENT_WRITE)
            events = self._ready()
            self._selector.modify(self._libpq.socket, EVENT_READ)
            if any(ready & EVENT_READ for _, ready in events):
                self._libpq.consume_input()

    def wait(self) -> None:
        """Wait until an answer can be read. Other threads run meanwhile: libpq itself would stop them."""
        while self._libpq.is_busy():
            self._ready()
            self._libpq.consume_input()

    def _ready(self) -> list[tuple[SelectorKey, int]]:
        if self.until is None:
            return self._selector.select()
        events = self._selector.select(max(0.0, self.until - time.monotonic()))
        if not events:
            raise psycopg.OperationalError("the server did not answer in time")
        return events

    def _results(self) -> list[PGresult]:
        """Read the results up to the end of the pipeline."""
        results: list[PGresult] = []
        while True:
            try:
                self.wait()
            except psycopg.OperationalError:
                # The server may have said why it ends the connection.
                failed = [each for each in results if each.status == ExecStatus.FATAL_ERROR]
                if failed:
                    raise error_from_result(failed[0]) from None
                raise
            result = self._libpq.get_result()
            if result is None:
                if self._libpq.status == ConnStatus.BAD:
                    raise psycopg.OperationalError("the connection is lost")
                continue  # the end of one statement
            if result.status == ExecStatus.PIPELINE_SYNC:
                return results
            results.append(result)

    def _answers(self, sent: Sequence[_Key | None], results: Sequence[PGresult]) -> list[Reply]:
        answers = []
        error: psycopg.Error | None = None
        for preparing, result in zip(sent, results, strict=True):
            if result.status == ExecStatus.FATAL_ERROR and error is None:
                error = error_from_result(result)
            good = result.status in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)
            if preparing is not None:
                if not good:
                    del self._prepared[preparing]
            elif good and error is None:
                answers.append(Reply(self._rows(result), (result.command_status or b"").decode()))
        if error is not None:
            raise error
        return answers

    def _rows(self, result: PGresult) -> list[Row]:
        if not result.ntuples:
            return []
        self._values.set_pgresult(result)
        return self._values.load_rows(0, result.ntuples, tuple)

    def close(self) -> None:
        """Close the connection."""
        self._selector.close()
        with suppress(psycopg.Error):
            self._connection.close()
