"""Migrations: from the format of an earlier release to this one's, step by step.

A store is backed up first, and the backup verified; then its pages are brought into their new form, and all that
changes in its rows is done in one transaction; then it is checked, and must hold what it held. Whenever the process
dies the store is of the old format or of the new one, whole, and the migration can be run again.
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
from recollect.stores.sqlite import checksums, schema
from recollect.stores.sqlite.copying import back_up, copy, verified
from recollect.stores.sqlite.errors import translated
from recollect.stores.sqlite.header import admit, must_not_write
from recollect.stores.sqlite.store import SqliteStore

#: Is called before each statement and at each other moment at which a process may die, with a name for it.
OnStep = Callable[[str], object]


class Step(NamedTuple):
    """A change of rows or tables, inside the one transaction."""

    name: str
    run: Callable[[apsw.Connection], object]


class Migration(NamedTuple):
    """From one format to the next.

    reader   what `least_reader` is afterwards
    steps    what is done in the one transaction
    pages    what is done before, where the form of pages changes: a transaction of its own, that leaves a store of the
             old format which every release that writes it keeps whole, and that does nothing when done again
    """

    reader: int
    steps: tuple[Step, ...]
    pages: Step | None = None


def _give_checksums(connection: apsw.Connection) -> None:
    if checksums.available() and not checksums.kept(connection):
        checksums.begin(connection)
        connection.execute("VACUUM")


def _note_checksums(connection: apsw.Connection) -> None:
    feature = schema.PAGE_CHECKSUMS if checksums.kept(connection) else ""
    connection.execute("UPDATE meta SET value = ? WHERE name = 'features'", (feature,))


#: How many commits there are.
_COMMITS = "SELECT coalesce(sum(seq), 0) FROM (SELECT max(seq) AS seq FROM commits GROUP BY branch)"
#: By the format that they begin from.
MIGRATIONS: dict[int, Migration] = {
    1: Migration(
        reader=1,
        pages=Step("give every page a checksum", _give_checksums),
        steps=(Step("note that pages have checksums", _note_checksums),),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """What a migration did, or would do.

    before, after  the formats; equal where there was nothing to do
    backup         the file that holds the store as it was; None where nothing was done
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
    """Bring the store at `path` to this release's format, after a verified backup beside it (FILE.format-N.backup).

    dry_run  do all of it to a copy in a temporary folder, and leave the store as it is
    on_step  is called at each moment at which a process may die, with its name: for tests

    Nobody else may have the store open. Raises: NewerFormatError, OlderFormatError, ReadOnlyStoreError, StoreBusyError,
    DamagedStoreError, other StoreErrors; the store is then of the format that it had.
    """
    target, secret, step = file_path("path", path), key or PUBLIC_KEY, on_step or (lambda name: None)
    admit(target, create=False)
    before = _format_of(target, secret)
    way = _way(target, before)
    names = tuple(each.name for one in way for each in ([one.pages] if one.pages else []) + list(one.steps))
    done = Migrated(path=target, before=before, after=before + len(way), steps=names, backup=None, dry_run=dry_run)
    if not way:
        return done
    if dry_run:
        with _folder(target) as folder:
            trial = os.path.join(folder, "copy.db")
            _with_store(target, secret, lambda store: copy(store, trial))
            held = verified(trial, SqliteStore, secret)
            _migrated(trial, before, way, step, sum(each.seq for each in held.values()))
            _check(trial, secret, held, "its copy")
        return done
    refused = must_not_write(target, read_only=False)
    if refused:
        raise ReadOnlyStoreError(target, refused)
    step("before the backup")
    backup = f"{target}.format-{before}.backup"
    made = _with_store(target, secret, lambda store: back_up(store, backup, verify=True))
    step("after the backup")
    _migrated(target, before, way, step, sum(each.seq for each in made.branches.values()))
    step("before the check")
    _check(target, secret, made.branches, backup)
    return Migrated(path=target, before=before, after=done.after, steps=names, backup=backup, dry_run=False)


@contextmanager
def _folder(path: str) -> Iterator[str]:
    """A temporary folder, for a copy of a store. Raises: StoreIOError."""
    try:
        folder = tempfile.mkdtemp(prefix="recollect-migrate-")
    except OSError as error:
        raise StoreIOError(path, f"a copy of it cannot be made: {error}") from error
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


def _way(path: str, before: int) -> list[Migration]:
    """The migrations from a format to this release's."""
    if before > schema.FORMAT:
        raise NewerFormatError(path, f"it has format {before}, this release has {schema.FORMAT}")
    missing = [number for number in range(before, schema.FORMAT) if number not in MIGRATIONS]
    if missing:
        raise OlderFormatError(path, f"it has format {before}, from which this release knows no way")
    return [MIGRATIONS[number] for number in range(before, schema.FORMAT)]


def _migrated(path: str, before: int, way: list[Migration], step: OnStep, commits: int) -> None:
    """Do it. Raises: StoreBusyError where there are other commits than those `commits` that were backed up."""
    with _alone(path) as connection, translated(path):
        connection.exec_trace = lambda cursor, sql, bindings: step(sql) is not False
        for one in way:
            if one.pages is not None:
                step(one.pages.name)
                one.pages.run(connection)
                connection.wal_checkpoint()
        connection.execute("BEGIN IMMEDIATE")
        try:
            (held,) = connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchall()[0]
            (newest,) = connection.execute(_COMMITS).fetchall()[0]
            if (held, newest) != (before, commits):
                raise StoreBusyError(path, "another process has written to it since it was backed up")
            for number, one in enumerate(way, before + 1):
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
def _alone(path: str) -> Iterator[apsw.Connection]:
    """A connection beside which there is no other. Raises: StoreBusyError."""
    with translated(path):
        connection = checksums.connect(path, apsw.SQLITE_OPEN_READWRITE)
    try:
        with translated(path):
            connection.set_busy_timeout(1000)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
            try:
                connection.execute("BEGIN IMMEDIATE; COMMIT").fetchall()  # takes the lock, and keeps it
            except apsw.BusyError as error:
                raise StoreBusyError(path, "a migration needs it alone: close whatever has it open") from error
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
        yield connection
    finally:
        connection.close()


def _check(path: str, key: bytes, held: dict[Branch, BranchSummary], where: str) -> None:
    """Raises: DamagedStoreError where the store is not whole, or does not hold what it held."""
    try:
        now = verified(path, SqliteStore, key)
    except StoreError as error:
        raise DamagedStoreError(path, f"after the migration: {error.args[1]}; {where} has it as it was") from error
    if now != held:
        raise DamagedStoreError(path, f"it does not hold what it held before the migration; {where} has it as it was")
