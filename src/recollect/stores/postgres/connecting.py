"""Opening connections to the server of a store."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from recollect.stores.postgres.address import Address
from recollect.stores.postgres.errors import ours
from recollect.stores.postgres.session import Session, Traffic

_log = logging.getLogger("recollect")


class Connector:
    """Opens connections.

    Args:
        address: The address.
        timeout_s: How long connecting may take, in seconds.
        traffic: Counts the round trips of sessions.
        logs: Whether it logs that a server cannot be reached any longer, and that it can be again.
    """

    def __init__(
        self, address: Address, timeout_s: float, traffic: Traffic | None = None, *, logs: bool = False
    ) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._traffic = traffic or Traffic()
        self._logs = logs
        self._reached: bool | None = None  # at the last attempt; None: before the first connection

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        try:
            connection = psycopg.connect(
                self._address.conninfo,
                autocommit=True,
                connect_timeout=max(2, round(self._timeout_s)),
            )
        except psycopg.OperationalError as error:
            # A server that answers, for example that it has too many connections, can be reached.
            if self._logs and self._reached and "FATAL" not in str(error):
                self._reached = False
                _log.warning("%s; calls fail until it can be reached", ours(self._address.shown, error))
            raise
        if self._logs and self._reached is False:
            _log.warning("%s can be reached again", self._address.shown)
        self._reached = True
        return connection

    def session(self) -> Session:
        """Return a session on a new connection."""
        return Session(self._connect, self._address.shown, self._traffic, prepares=not self._address.pgbouncer)

    @contextmanager
    def connected(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        """Provide a new connection while the block runs. Errors of the server in the block are translated."""
        try:
            connection = self._connect()
        except psycopg.Error as error:
            raise ours(self._address.shown, error) from error
        try:
            yield connection
        except psycopg.Error as error:
            raise ours(self._address.shown, error) from error
        finally:
            connection.close()
