"""A primary and a standby that follows it, for tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from recollect.testing.postgres import PostgresServer, create_store


class Pair:
    """A primary and a standby that follows it."""

    def __init__(self) -> None:
        self.primary = PostgresServer().start()
        create_store(self.primary.dsn)
        self.standby = PostgresServer(copy_of=self.primary).start()
        reached(lambda: self.primary.execute("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"))

    def confirm(self) -> None:
        """Have each commit wait until the standby has it."""
        self.primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.execute("SELECT pg_reload_conf()")
        reached(lambda: self.primary.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"))

    def address(self, cache: Path) -> str:
        """The address of whichever of both can be written to."""
        hosts = f"{self.primary.folder},{self.standby.folder}"
        return f"postgresql://postgres@/postgres?host={hosts}&target_session_attrs=read-write&cache={cache}"

    def fail_over(self) -> None:
        self.primary.kill()
        self.standby.execute("SELECT pg_promote(TRUE, 60)")

    def stop(self) -> None:
        for server in (self.primary, self.standby):
            server.stop()


def reached(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        threading.Event().wait(0.02)
