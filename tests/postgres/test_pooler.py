"""A pooler that gives each transaction another connection of the server: PgBouncer, where it is installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.postgres.test_kills import lost

import recollect
from recollect.testing.postgres import PostgresServer

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
pytestmark = [pytest.mark.postgres, pytest.mark.skipif(PROGRAM is None, reason="needs pgbouncer")]
#: A pool of two connections: threads that each had one for longer than a transaction would wait for each other.
_SETTINGS = """
[databases]
postgres = host={server} port=5432 dbname=postgres user=postgres
[pgbouncer]
listen_port = 5432
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = 2
server_reset_query =
logfile = {folder}/log
"""


@pytest.fixture(scope="module")
def pooled(server: PostgresServer) -> Iterator[str]:
    """The address of the server behind a pooler."""
    assert PROGRAM is not None
    with tempfile.TemporaryDirectory(prefix="rcl-bouncer-", dir="/tmp") as name:
        folder = Path(name)
        settings = folder / "settings.ini"
        settings.write_text(_SETTINGS.format(server=server.folder, folder=folder))
        user: dict[str, Any] = {}
        if os.geteuid() == 0:  # which it refuses
            for each in (folder, settings):
                shutil.chown(each, "nobody")
            user = {"user": pwd.getpwnam("nobody").pw_uid}
        process = subprocess.Popen([PROGRAM, str(settings)], **user)
        address = f"postgresql://postgres@/postgres?host={folder}"
        try:
            until = time.monotonic() + 30
            while True:
                with suppress(psycopg.OperationalError):
                    psycopg.connect(address, prepare_threshold=None).close()
                    break
                assert process.poll() is None, "the pooler has ended"
                assert time.monotonic() < until, "the pooler does not answer"
                threading.Event().wait(0.02)
            yield address
        finally:
            process.terminate()
            process.wait()


def test_threads_share_a_pooler_of_transactions(server: PostgresServer, pooled: str, tmp_path: Path) -> None:
    stored: set[str] = set()
    errors: list[Exception] = []
    with recollect.open(f"{pooled}&pgbouncer=1&cache={tmp_path}", "shared", embedder="none") as memory:

        def use(thread: int) -> None:
            try:
                for number in range(10):
                    record = memory.remember(f"note {number} of thread {thread}", id=f"{thread} {number}")
                    stored.add(record.id)
                    assert memory.recall(f"note {number} of thread {thread}")
                    assert memory.get(record.id) == record
                    with memory.batch() as batch:
                        batch.remember(f"batch {number} of thread {thread}")
                        batch.find(limit=300)
            except (AssertionError, recollect.RecollectError) as error:
                errors.append(error)

        threads = [threading.Thread(target=use, args=(thread,)) for thread in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert errors == []
        assert memory.check() == []
        assert len(memory.find(limit=1000)) == 160
    assert lost(f"{server.dsn}&cache={tmp_path}", "shared", stored) == set()


def test_prepared_statements_would_fail_there(pooled: str, tmp_path: Path) -> None:
    """The control: a pooler of this age does not pass prepared statements on."""
    if not _is_old():
        pytest.skip("this pooler passes prepared statements on")
    with (
        recollect.open(f"{pooled}&cache={tmp_path}", "prepared", embedder="none") as first,
        recollect.open(f"{pooled}&cache={tmp_path}", "other", embedder="none") as second,
        pytest.raises(recollect.RecollectError),
    ):
        for number in range(50):
            first.remember(f"note {number}")
            second.remember(f"note {number}")


def _is_old() -> bool:
    said = subprocess.run([str(PROGRAM), "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(each) for each in said.split()[1].split(".")[:2]) < (1, 21)
