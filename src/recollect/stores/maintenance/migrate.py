"""Migrations: from the format of an earlier release to that of this one, step by step.

The store is locked and backed up. Then its pages are converted, and all changes of rows are made in one transaction.
Finally the store is checked: it must be intact, and have as many commits and records as before. If the process dies at
any point, the store is intact and has either the old format or a newer one, and the migration can be run again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import apsw

from recollect.arguments.checks import file_path
from recollect.arguments.signatures import named
from recollect.errors import (
    DamagedStoreError,
    InvalidArgumentError,
    NewerFormatError,
    OlderFormatError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
    StoreIOError,
    WrongKeyError,
)
from recollect.stores.sealing.keys import Secret, Unlocked
from recollect.stores.sealing.secrets import secret_or_default
from recollect.stores.sqlite import schema
from recollect.stores.sqlite.copying import copy, is_backup, remove_part, verified
from recollect.stores.sqlite.encryption import key_check, key_file_beside, keys_of, store_keys
from recollect.stores.sqlite.header import admit, must_not_write, part_path, replace_durably
from recollect.stores.sqlite.names import compose_heads
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite_base import checksums
from recollect.stores.sqlite_base.connections import differing_table, few_steps, made_by, structure
from recollect.stores.sqlite_base.errors import translated

#: Called with a name before each statement and at each other point at which the process may die.
OnStep = Callable[[str], object]


class Conversion(NamedTuple):
    """The arguments of a step.

    Attributes:
        connection: The only connection to the file.
        path: The file, for messages.
        key: The store's key.
        step: Called at points at which the process may die.
        keys: The data keys of an encrypted file.
    """

    connection: apsw.Connection
    path: str
    key: bytes
    step: OnStep


class Step(NamedTuple):
    """A part of a migration.

    Attributes:
        name: A description, as reported in `Migrated.steps`.
        run: Makes the change.
    """

    name: str
    run: Callable[[Conversion], object]


class Migration(NamedTuple):
    """The migration from one format to the next.

    Attributes:
        reader: The new `least_reader`.
        steps: The changes of rows and tables, made in one transaction.
        before: What runs before, if the form of pages changes. It is a transaction of its own, does nothing if run
            again, and leaves the store in the old format: every release that writes that format keeps it intact.
        after: What runs afterwards, in a transaction of its own. The store has the new format with or without it.
    """

    reader: int
    steps: tuple[Step, ...]
    before: Step | None = None
    after: Step | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all steps."""
        return tuple(each.name for each in (self.before, *self.steps, self.after) if each is not None)


#: The number of the newest commit and of the live records of each branch, in every format.
_CONTENTS = (
    "SELECT n.name, b.name, (SELECT coalesce(max(seq), 0) FROM commits WHERE branch = b.number), "
    "(SELECT count(*) FROM heads WHERE branch = b.number) FROM branches b JOIN namespaces n ON n.number = b.namespace "
    "ORDER BY 1, 2"
)
_ADD_PARTS = Step(
    "let commits state all parts of a memory",
    lambda work: work.connection.execute("ALTER TABLE commits ADD COLUMN parts BLOB"),
)
_COMPOSE = Step("compose the names of users and others (NFC)", lambda work: compose_heads(work.connection))
#: The migrations by the format that they start from.
MIGRATIONS: dict[int, Migration] = {3: Migration(reader=4, steps=(_ADD_PARTS, _COMPOSE))}


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
    secret: Secret | None = None,
    on_step: OnStep | None = None,
) -> Migrated:
    """Convert the store at `path` to this release's format, after a verified backup (FILE.format-N.backup).

    No other process may have the store open.

    Args:
        path: The store.
        dry_run: Migrate a copy in a temporary folder and leave the store unchanged.
        key: The store key, if the store was created with its own.
        secret: The secret of an encrypted store. Default: that in the file that RECOLLECT_SECRET_FILE names.
        on_step: Called with a name at each point at which the process may die; for tests.

    Raises:
        NewerFormatError: The store has a newer format.
        OlderFormatError: The store has an older format, which this release cannot migrate.
        ReadOnlyStoreError: The store must not be written.
        StoreBusyError: Another process has the store open or has written to it.
        DamagedStoreError: The store is corrupt. If that was found after the migration, the message names the backup.
        StoreError: Reading or writing failed; the store still has its old format.
    """
    target, step = file_path("path", path), on_step or (lambda name: None)
    _, encrypted = admit(target, create=False)
    keys = keys_of(target, secret_or_default(secret), new=False, encrypted=encrypted)
    refused = must_not_write(target, read_only=False)
    if refused and not dry_run:
        raise ReadOnlyStoreError(target, refused)
    with _folder(target) if dry_run else nullcontext("") as folder:
        file = target
        if dry_run:
            file = os.path.join(folder, "copy.db")
            with closing(_connect(target, keys)) as source:
                _format_of(source, target, key, keys)  # refuses what is no store before anything is copied
                copy(source, file, keys)
        with _exclusive(file, keys) as connection:
            before, store_key = _format_of(connection, target, key, keys)
            migrations = _migrations(target, before)
            backup = f"{target}.format-{before}.backup" if migrations and not dry_run else None
            if backup is not None:
                step("before the backup")
                _back_up(connection, target, backup, keys)
                step("after the backup")
            with translated(target):
                contents = connection.execute(_CONTENTS).fetchall()
                _run(Conversion(connection, target, store_key, step), before, migrations)
        if migrations:
            step("before the check")
            _check(file, key, keys, contents, backup or "the store itself")
    names = tuple(name for each in migrations for name in each.names)
    after = before + len(migrations)
    return Migrated(path=target, before=before, after=after, steps=names, backup=backup, dry_run=dry_run)


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


def _connect(path: str, keys: Unlocked | None) -> apsw.Connection:
    with translated(path):
        cipher = None if keys is None else keys.pages("db")
        return checksums.connect(path, apsw.SQLITE_OPEN_READWRITE, cipher=cipher)


def _format_of(connection: apsw.Connection, path: str, key: bytes | None, keys: Unlocked | None) -> tuple[int, bytes]:
    """Return the format of a file, and its store key.

    Args:
        key: The store key, if one was given.
        keys: The data keys of an encrypted file.

    Raises:
        NotAStoreError: It is not a store.
        WrongKeyError: It was created with another key.
        StoreError: It cannot be read.
    """
    with translated(path), few_steps(connection):
        found, number = structure(connection), connection.pragma("user_version")
        known = number in schema.FORMATS
        strange = "" if "meta" in found else "meta"
        tables = schema.tables_of(number)
        strange = strange or differing_table(found, tables, exactly=known)
        strange = strange or next((name for name in sorted(found.keys() - made_by(tables).keys()) if known), "")
        if strange:
            raise DamagedStoreError(path, f"its table {strange} is not that of a store")
        meta = dict(connection.execute("SELECT name, value FROM meta"))
    for candidate in store_keys(key, keys):
        if meta.get("key_check") == key_check(candidate):
            return int(meta["format"]), candidate
    raise WrongKeyError(path)


def _migrations(path: str, before: int) -> list[Migration]:
    """Return the migrations from a format to this release's."""
    if before > schema.FORMAT:
        raise NewerFormatError(path, f"it has format {before}, this release has format {schema.FORMAT}")
    missing = [number for number in range(before, schema.FORMAT) if number not in MIGRATIONS]
    if missing:
        raise OlderFormatError(path, f"it has format {before}, which this release cannot migrate")
    return [MIGRATIONS[number] for number in range(before, schema.FORMAT)]


def _back_up(connection: apsw.Connection, path: str, target: str, keys: Unlocked | None) -> None:
    """Copy the store at `path` to `target`, verify the copy, and replace an older backup there.

    Raises:
        InvalidArgumentError: There is another file.
        StoreError: Reading or writing failed, or the copy is corrupt.
    """
    if os.path.lexists(target) and not is_backup(target):
        raise InvalidArgumentError("path", target, "exists and is not a backup: move it away")
    part = part_path(target)
    try:
        copy(connection, part, keys)
        with closing(_connect(part, keys)) as copied, translated(part):
            problems = [text for (text,) in copied.execute("PRAGMA integrity_check") if text != "ok"]
            if problems or copied.execute(_CONTENTS).fetchall() != connection.execute(_CONTENTS).fetchall():
                raise DamagedStoreError(part, "; ".join(problems) or "the copy differs from the store")
        with key_file_beside(path, keys, target):
            replace_durably(part, target)
    finally:
        remove_part(part)


def _run(work: Conversion, before: int, migrations: list[Migration]) -> None:
    """Run the migrations."""
    connection, step = work.connection, work.step
    connection.exec_trace = lambda cursor, sql, bindings: step(sql) is not False
    for one in migrations:
        _apart(work, one.before)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number, one in enumerate(migrations, before + 1):
            for each in one.steps:
                step(each.name)
                each.run(work)
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
    for one in migrations:
        _apart(work, one.after)


def _apart(work: Conversion, one: Step | None) -> None:
    """Run a step that is a transaction of its own."""
    if one is not None:
        work.step(one.name)
        one.run(work)
        work.connection.wal_checkpoint()


@contextmanager
def _exclusive(path: str, keys: Unlocked | None) -> Iterator[apsw.Connection]:
    """Open the only connection to a store. Raise StoreBusyError if there are others."""
    connection = _connect(path, keys)
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


def _check(path: str, key: bytes | None, keys: Unlocked | None, expected: list[tuple[Any, ...]], where: str) -> None:
    """Raise DamagedStoreError unless the store is intact and has as many commits and records as before."""
    try:
        found = verified(path, SqliteStore, key, keys)
    except StoreError as error:
        raise DamagedStoreError(
            path, f"after the migration: {error.args[1]}; {where} has its previous state"
        ) from error
    now = [(*branch, each.seq, each.records) for branch, each in sorted(found.items())]
    if now != [row for row in expected if row[2]]:
        raise DamagedStoreError(
            path, f"its contents differ from those before the migration; {where} has its previous state"
        )
