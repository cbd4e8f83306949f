"""Restoring backups.

A backup is a store in a single file with the uuid of the original: a consistent snapshot, copied while writers continue
(`stores.sqlite.copying`). The restored file is written next to the target and renamed to it once it is complete and
durable. The store that it replaces is kept under another name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from recollect.arguments.checks import file_path
from recollect.arguments.signatures import named
from recollect.errors import (
    InvalidArgumentError,
    NotAStoreError,
    StoreBusyError,
    StoreError,
    StoreIOError,
    StoreMissingError,
)
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.stores.sqlite.copying import (
    OR_FORCE,
    WAL_SUFFIXES,
    check_wal_names,
    copy,
    remove_part,
    same_file,
    verified,
)
from recollect.stores.sqlite.header import has_wal, header_of, part_path, replace_durably, sync_folder
from recollect.stores.sqlite.salvage import Salvage
from recollect.stores.sqlite.schema import APPLICATION_ID
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite_base import checksums
from recollect.stores.values import Backup

#: How long a restore waits for a writer of the store that it replaces.
BUSY_MS = 10_000


@named
def restore(
    source: str | os.PathLike[str], path: str | os.PathLike[str], *, force: bool = False, key: bytes | None = None
) -> Backup:
    """Verify a backup and put a copy of it at `path`.

    Close every memory that has the store at `path` open first; otherwise its calls raise StoreReplacedError from then
    on. `FILE.index` is left as it is: files in it that do not belong to the restored store are not used.

    Args:
        source: The backup.
        path: The store to create or replace.
        force: Also replace a store that has commits or cannot be opened. It is kept, complete, under another name
            (`Backup.kept`).
        key: The store key, if the store was created with its own.

    Raises:
        DamagedStoreError: The backup is corrupt.
        NotAStoreError: `source` or `path` is another kind of file.
        InvalidArgumentError: `path` cannot be used, or needs `force`.
        StoreBusyError: Another process is writing to the store at `path`.
        StoreError: Reading or writing failed. What was at `path` is still there after any of these errors.
    """
    origin, target, secret = file_path("source", source), file_path("path", path), key or PUBLIC_KEY
    if not os.path.exists(origin):
        raise StoreMissingError(origin, "the file does not exist")
    if target == origin or same_file(target, origin):
        raise InvalidArgumentError("path", target, "is the backup itself: give another path")
    check_wal_names(target, origin, "is the backup itself")
    obstacle = _obstacle(target, secret)
    if obstacle and not force:
        raise InvalidArgumentError("path", target, f"{obstacle}: {OR_FORCE}; the old store is then kept")
    part = part_path(target)
    try:
        store = SqliteStore(origin, read_only=True, key=secret)
        try:
            with store.reading() as connection:
                copy(connection, part)
        finally:
            store.close()
        branches = verified(part, SqliteStore, secret, origin)
        kept = _replace(part, target)
        return Backup(path=target, bytes=os.stat(target).st_size, verified=True, branches=branches, kept=kept)
    except OSError as error:
        raise StoreIOError(target, error.strerror or str(error)) from error
    finally:
        remove_part(part)


def _obstacle(target: str, key: bytes) -> str:
    """Describe the store that a restore would replace; "" if there is none. Raise NotAStoreError for another file."""
    if has_wal(target) and (not os.path.exists(target) or not os.path.getsize(target)):
        return "has the WAL of a store whose file is missing or empty"
    if not os.path.lexists(target):
        return ""
    if not os.path.isfile(target):
        raise InvalidArgumentError("path", target, "is not a regular file: give another path")
    if not os.path.getsize(target):
        return ""
    try:
        if not _was_a_store(target, key):
            raise NotAStoreError(target, "it is another kind of file")
    except OSError as error:
        raise StoreIOError(target, error.strerror or str(error)) from error
    try:
        store = SqliteStore(target, create=False, read_only=True, key=key)
    except StoreError:
        return "is a store that cannot be opened"
    try:
        with store.read() as view:
            return "is a store that has commits" if view.branches() else ""
    except StoreError:
        return "is a store that cannot be read"
    finally:
        store.close()


def _was_a_store(path: str, key: bytes) -> bool:
    """Return whether a file is a store, or was one before its first page was corrupted."""
    try:
        return int.from_bytes(header_of(path)[68:72], "big") == APPLICATION_ID
    except NotAStoreError:
        return not Salvage(path, key).empty


def _replace(part: str, target: str) -> str | None:
    """Rename `part` to `target`; return the new path of the store that was there, which keeps its WAL.

    A WAL that stayed next to the target would be applied to the new store, so it moves with the store it belongs to.
    """
    with _locked(target):
        kept = None
        exists = os.path.lexists(target)
        if has_wal(target) or (exists and os.path.getsize(target)):
            kept = _free_name(target)
            if exists:
                os.link(target, kept)
        moved = []
        try:
            for suffix in WAL_SUFFIXES:
                if os.path.lexists(target + suffix):
                    if kept is None:
                        os.unlink(target + suffix)
                    else:  # processes that have the store open continue with all three files
                        os.rename(target + suffix, kept + suffix)
                        moved.append(suffix)
            sync_folder(target)
            replace_durably(part, target)
        except BaseException:
            if kept is not None and (not exists or same_file(target, kept)):  # it is still the store: give its WAL back
                for suffix in moved:
                    os.rename(kept + suffix, target + suffix)
                if exists:
                    os.unlink(kept)
            raise
    return kept


@contextmanager
def _locked(target: str) -> Iterator[None]:
    """Hold the write lock of the store at `target` while the block runs, or no lock if there is no intact store."""
    if not os.path.exists(target) or not os.path.getsize(target):
        yield
        return
    connection = checksums.connect(target, apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(BUSY_MS)
        # Otherwise closing the connection would checkpoint the WAL and delete whatever WAL has that name then.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        try:
            connection.execute("SELECT name FROM sqlite_schema").fetchall()  # makes SQLite open the WAL
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError as error:  # commits that are only in the WAL could be lost if this process died later
            raise StoreBusyError(target, str(error)) from error
        except apsw.Error:
            pass
        try:
            connection.execute("BEGIN IMMEDIATE")
        except apsw.BusyError as error:
            raise StoreBusyError(target, str(error)) from error
        except apsw.Error:
            pass  # it is corrupt, so no other process can write to it either
        yield
    finally:
        connection.close()


def _free_name(target: str) -> str:
    number = 1
    while os.path.lexists(f"{target}.replaced-{number}"):
        number += 1
    return f"{target}.replaced-{number}"
