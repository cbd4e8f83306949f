"""Migrations: from the format of an earlier release to that of this one, step by step.

The store is backed up and the backup verified. Then its pages are converted, and all changes of rows are made in one
transaction. Finally the store is checked: its contents must be the same as before. If the process dies at any point,
the store is intact and has either the old format or the new one, and the migration can be run again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import apsw

from recollect.arguments import file_path, named
from recollect.errors import (
    DamagedStoreError,
    NewerFormatError,
    OlderFormatError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
    StoreIOError,
)
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.stores.base import BranchSummary
from recollect.stores.sqlite import schema
from recollect.stores.sqlite.copying import back_up, copy, verified
from recollect.stores.sqlite.header import admit, must_not_write
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite_base import checksums
from recollect.stores.sqlite_base.errors import translated

#: Called with a name before each statement and at each other point at which the process may die.
OnStep = Callable[[str], object]


class Step(NamedTuple):
    """A change of rows or tables inside the migration's transaction.

    Attributes:
        name: A description, as reported in `Migrated.steps`.
        run: Makes the change.
    """

    name: str
    run: Callable[[apsw.Connection], object]


class Migration(NamedTuple):
    """The migration from one format to the next.

    Attributes:
        reader: The new `least_reader`.
        steps: The changes made in the one transaction.
        pages: What runs before, if the form of pages changes. It is a transaction of its own, does nothing if run
            again, and leaves the store in the old format: every release that writes that format keeps it intact.
    """

    reader: int
    steps: tuple[Step, ...]
    pages: Step | None = None


def _add_checksums(connection: apsw.Connection) -> None:
    if checksums.available() and not checksums.reserved(connection):
        checksums.begin(connection)
        connection.execute("VACUUM")


def _note_checksums(connection: apsw.Connection) -> None:
    feature = schema.PAGE_CHECKSUMS if checksums.reserved(connection) else ""
    connection.execute("UPDATE meta SET value = ? WHERE name = 'features'", (feature,))


#: The number of commits of all branches.
_COMMITS = "SELECT coalesce(sum(seq), 0) FROM (SELECT max(seq) AS seq FROM commits GROUP BY branch)"
#: The migrations by the format that they start from.
MIGRATIONS: dict[int, Migration] = {
    1: Migration(
        reader=1,
        pages=Step("add a checksum to every page", _add_checksums),
        steps=(Step("note in the table meta that pages have checksums", _note_checksums),),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """The result of a migration or of a dry run.

    Attributes:
        path: The store.
        before: Its format before.
        after: Its format afterwards; equal to `before` if there was nothing to do.
        steps: The names of the steps.
        backup: The backup of the store in its old format; None if nothing was changed.
        dry_run: Whether it was a dry run.
    """

    path: str
    before: int
    after: int
    steps: tuple[str, ...]
    backup: str | None
    dry_run: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "from": self.before,
            "to": self.after,
            "steps": list(self.steps),
            "backup": self.backup,
            "dry_run": self.dry_run,
        }


@named
def migrate(
    path: str | os.PathLike[str],
    *,
    dry_run: bool = False,
    key: bytes | None = None,
    on_step: OnStep | None = None,
) -> Migrated:
    """Convert the store at `path` to this release's format, after a verified backup (FILE.format-N.backup).

    No other process may have the store open.

    Args:
        path: The store.
        dry_run: Migrate a copy in a temporary folder and leave the store unchanged.
        key: The store key, if the store was created with its own.
        on_step: Called with a name at each point at which the process may die; for tests.

    Raises:
        NewerFormatError: The store has a newer format.
        OlderFormatError: The store has an older format, which this release cannot migrate.
        ReadOnlyStoreError: The store must not be written.
        StoreBusyError: Another process has the store open or has written to it.
        DamagedStoreError: The store is corrupt. If that was found after the migration, the message names the backup.
        StoreError: Reading or writing failed; the store still has its old format.
    """
    target, secret, step = file_path("path", path), key or PUBLIC_KEY, on_step or (lambda name: None)
    admit(target, create=False)
    before = _format_of(target, secret)
    migrations = _migrations(target, before)
    names = tuple(each.name for one in migrations for each in ([one.pages] if one.pages else []) + list(one.steps))
    result = Migrated(
        path=target, before=before, after=before + len(migrations), steps=names, backup=None, dry_run=dry_run
    )
    if not migrations:
        return result
    if dry_run:
        with _folder(target) as folder:
            trial = os.path.join(folder, "copy.db")
            _with_store(target, secret, lambda store: copy(store, trial))
            contents = verified(trial, SqliteStore, secret)
            _migrated(trial, before, migrations, step, sum(each.seq for each in contents.values()))
            _check(trial, secret, contents, "the store itself")
        return result
    refused = must_not_write(target, read_only=False)
    if refused:
        raise ReadOnlyStoreError(target, refused)
    step("before the backup")
    backup = f"{target}.format-{before}.backup"
    copied = _with_store(target, secret, lambda store: back_up(store, backup, verify=True))
    step("after the backup")
    _migrated(target, before, migrations, step, sum(each.seq for each in copied.branches.values()))
    step("before the check")
    _check(target, secret, copied.branches, backup)
    return Migrated(path=target, before=before, after=result.after, steps=names, backup=backup, dry_run=False)


@contextmanager
def _folder(path: str) -> Iterator[str]:
    """Create a temporary folder for a copy of a store. Raise StoreIOError if that fails."""
    try:
        folder = tempfile.mkdtemp(prefix="recollect-migrate-")
    except OSError as error:
        raise StoreIOError(path, f"a copy of it cannot be created: {error}") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _with_store(path: str, key: bytes, do: Callable[[SqliteStore], Any]) -> Any:
    store = SqliteStore(path, read_only=True, key=key)
    try:
        return do(store)
    finally:
        store.close()


def _format_of(path: str, key: bytes) -> int:
    found: int = _with_store(path, key, lambda store: store.format)
    return found


def _migrations(path: str, before: int) -> list[Migration]:
    """Return the migrations from a format to this release's."""
    if before > schema.FORMAT:
        raise NewerFormatError(path, f"it has format {before}, this release has format {schema.FORMAT}")
    missing = [number for number in range(before, schema.FORMAT) if number not in MIGRATIONS]
    if missing:
        raise OlderFormatError(path, f"it has format {before}, which this release cannot migrate")
    return [MIGRATIONS[number] for number in range(before, schema.FORMAT)]


def _migrated(path: str, before: int, migrations: list[Migration], step: OnStep, commits: int) -> None:
    """Run the migrations. Raise StoreBusyError unless the store has as many commits as were backed up."""
    with _exclusive(path) as connection, translated(path):
        connection.exec_trace = lambda cursor, sql, bindings: step(sql) is not False
        for one in migrations:
            if one.pages is not None:
                step(one.pages.name)
                one.pages.run(connection)
                connection.wal_checkpoint()
        connection.execute("BEGIN IMMEDIATE")
        try:
            (found,) = connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchall()[0]
            (newest,) = connection.execute(_COMMITS).fetchall()[0]
            if (found, newest) != (before, commits):
                raise StoreBusyError(path, "another process has written to it since it was backed up")
            for number, one in enumerate(migrations, before + 1):
                for each in one.steps:
                    step(each.name)
                    each.run(connection)
                facts = (("format", number), ("least_reader", one.reader), ("least_writer", number))
                for name, value in facts:
                    connection.execute("UPDATE meta SET value = ? WHERE name = ?", (value, name))
                connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.exec_trace = None
                connection.execute("ROLLBACK")
            raise
        step("after the commit")


@contextmanager
def _exclusive(path: str) -> Iterator[apsw.Connection]:
    """Open the only connection to a store. Raise StoreBusyError if there are others."""
    with translated(path):
        connection = checksums.connect(path, apsw.SQLITE_OPEN_READWRITE)
    try:
        with translated(path):
            connection.set_busy_timeout(1000)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
            try:
                connection.execute("BEGIN IMMEDIATE; COMMIT").fetchall()  # takes the lock, which EXCLUSIVE then keeps
            except apsw.BusyError as error:
                raise StoreBusyError(path, "a migration needs exclusive access: close whatever has it open") from error
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
        yield connection
    finally:
        connection.close()


def _check(path: str, key: bytes, expected: dict[Branch, BranchSummary], where: str) -> None:
    """Raise DamagedStoreError unless the store is intact and has the same contents as before."""
    try:
        now = verified(path, SqliteStore, key)
    except StoreError as error:
        raise DamagedStoreError(
            path, f"after the migration: {error.args[1]}; {where} has its previous state"
        ) from error
    if now != expected:
        raise DamagedStoreError(
            path, f"its contents differ from those before the migration; {where} has its previous state"
        )
