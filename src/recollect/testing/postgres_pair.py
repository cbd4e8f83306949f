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
        """Return the address of the one that can be written to."""
        hosts = f"{self.primary.folder},{self.standby.folder}"
        return f"postgresql://postgres@/postgres?host={hosts}&target_session_attrs=read-write&cache={cache}"

    def fail_over(self) -> None:
        """Kill the primary, and make the standby the new one."""
        self.primary.kill()
        self.standby.execute("SELECT pg_promote(TRUE, 60)")

    def stop(self) -> None:
        """Kill both and delete their folders."""
        for server in (self.primary, self.standby):
            server.stop()


def reached(condition: Callable[[], object]) -> None:
    """Wait until something is so, at most a minute."""
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        threading.Event().wait(0.02)


def has_replayed(pair: Pair) -> bool:
    """Return whether the standby shows all that the primary has."""
    [[sent]] = pair.primary.execute("SELECT pg_current_wal_lsn()::text")
    [[replayed]] = pair.standby.execute(f"SELECT pg_last_wal_replay_lsn() >= '{sent}'::pg_lsn")
    return bool(replayed)
