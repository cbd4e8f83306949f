"""Copying an SQLite store: a consistent snapshot in a single file, while writers continue."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, suppress
from typing import Protocol

import apsw

from recollect.errors import (
    DamagedStoreError,
    InvalidArgumentError,
    KeyFileMissingError,
    StoreError,
    StoreIOError,
    WrongKeyError,
)
from recollect.ledger.commits import Branch
from recollect.stores.base import Store
from recollect.stores.roots import branch_summaries
from recollect.stores.sealing.keys import Secret, Unlocked
from recollect.stores.sealing.keys import read as read_key_file
from recollect.stores.sqlite.encryption import is_encrypted, key_file_beside
from recollect.stores.sqlite.header import application_of, header_of, part_path, replace_durably
from recollect.stores.sqlite.schema import APPLICATION_ID, ENCRYPTED_ID
from recollect.stores.sqlite_base import checksums
from recollect.stores.sqlite_base.errors import translated
from recollect.stores.values import Backup, BranchSummary

WAL_SUFFIXES = ("-wal", "-shm")
OR_FORCE = "give another path, or overwrite this file with --force (force=True)"
#: The journal mode in the header of a file that has not been opened for writing since it was copied.
_ROLLBACK_JOURNAL = 1


class Copied(Store, Protocol):
    """The part of an SQLite store that copying needs. Its class is also used to open and verify the copy."""

    def __init__(
        self,
        path: str,
        *,
        create: bool = True,
        read_only: bool = False,
        key: bytes | None = None,
        secret: Secret | Unlocked | None = None,
    ) -> None: ...

    @property
    def keys(self) -> Unlocked | None:
        """The data keys of an encrypted file; None if it is not encrypted."""

    def reading(self) -> AbstractContextManager[apsw.Connection]:
        """Provide a read-only connection to the file."""


def back_up(store: Copied, path: str, *, verify: bool = False, force: bool = False) -> Backup:
    """Copy a snapshot of the store to `path` while writers continue. An encrypted copy gets a copy of the key file.

    Args:
        store: The store to copy.
        path: The backup to create or replace.
        verify: Open the copy, check all of it, and recompute every root from the records, before it is put at `path`. A
            copy that replaces a file is always verified, because that file may be the last good backup.
        force: Replace any file; otherwise only an older backup of the same store is replaced.

    Raises:
        InvalidArgumentError: `path` cannot be used, or needs `force`.
        DamagedStoreError: The verified copy is corrupt.
        StoreError: Reading or writing failed. What was at `path` is still there after any of these errors.
    """
    # The key file of a link is beside what it points to.
    target = path if store.keys is None else os.path.realpath(path)
    _check_target(store, target, force)
    verify = verify or os.path.lexists(target)
    part = part_path(target)
    try:
        with store.reading() as source:
            copy(source, part, store.keys)
        branches = verified(part, type(store), store.key, store.keys, store.path) if verify else {}
        size = os.stat(part).st_size
        with key_file_beside(store.path, store.keys, target, force=force):
            for suffix in WAL_SUFFIXES:  # those of a replaced store: SQLite would apply its WAL to the backup
                with suppress(FileNotFoundError):
                    os.unlink(target + suffix)
            replace_durably(part, target)
    except OSError as error:
        raise StoreIOError(target, error.strerror or str(error)) from error
    finally:
        remove_part(part)
    return Backup(path=target, bytes=size, verified=verify, branches=branches)


def _check_target(store: Copied, target: str, force: bool) -> None:
    source = store.path
    real, resolved = os.path.realpath(source), os.path.realpath(target)
    for suffix in ("", *WAL_SUFFIXES, ".keys"):
        if resolved == real + suffix or same_file(target, real + suffix):
            raise InvalidArgumentError("path", target, "is the store itself: give another path")
    check_wal_names(target, source, "is the store itself")
    if not os.path.lexists(target):
        return
    if not os.path.isfile(target):
        raise InvalidArgumentError("path", target, "is not a regular file: give another path")
    if force:
        return
    if not is_backup(target):
        raise InvalidArgumentError("path", target, f"exists and is not a backup: {OR_FORCE}")
    if _uuid_of(target, type(store), store.key) not in (None, store.facts()["uuid"]):
        raise InvalidArgumentError("path", target, f"is a backup of another store: {OR_FORCE}")


def _uuid_of(path: str, kind: type[Copied], key: bytes) -> str | None:
    """Return the uuid of a backup; None if it is corrupt, "" if it has another key."""
    if is_encrypted(path):
        try:
            return read_key_file(path).uuid
        except KeyFileMissingError:
            return ""
    try:
        store = kind(path, create=False, read_only=True, key=key)
    except WrongKeyError:
        return ""
    except StoreError:
        return None
    try:
        return str(store.facts()["uuid"])
    finally:
        store.close()


def check_wal_names(target: str, source: str, what: str) -> None:
    """Refuse a target next to which files with the names of its WAL, which are deleted, would include the source."""
    for suffix in WAL_SUFFIXES:
        if os.path.realpath(target + suffix) == os.path.realpath(source):
            raise InvalidArgumentError("path", target, f"with {suffix} {what}: give another path")


def is_backup(path: str) -> bool:
    """Return whether a file is a store that has not been opened for writing since it was copied."""
    try:
        header = header_of(path)
    except StoreError:
        return False
    return application_of(header) in (APPLICATION_ID, ENCRYPTED_ID) and header[18] == _ROLLBACK_JOURNAL


def same_file(one: str, other: str) -> bool:
    """Return whether two paths are the same file; False if one of them cannot be read."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def copy(source: apsw.Connection, part: str, keys: Unlocked | None = None) -> None:
    """Copy a snapshot of a file to a new file at `part`. Raise StoreError if that fails.

    Args:
        keys: The data keys of an encrypted file; the copy is encrypted with them.
    """
    cipher = None if keys is None else keys.pages("db")
    with translated(part):
        try:
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except OSError as error:
            raise StoreIOError(part, error.strerror or str(error)) from error
        source.execute("SELECT name FROM meta").fetchall()  # reads the header: do pages have checksums?
        target = checksums.connect(part, cipher=cipher)
        try:
            if cipher is not None or checksums.reserved(source):
                checksums.begin(target, cipher)
            # The header announces the checksums, so it must be written before the pages that have them.
            target.execute(f"PRAGMA application_id = {APPLICATION_ID if cipher is None else ENCRYPTED_ID}")
            target.close()
            target = checksums.connect(part, cipher=cipher)
            target.execute("SELECT name FROM sqlite_schema").fetchall()
            with target.backup("main", source, "main") as work:
                work.step(-1)
            target.execute("PRAGMA journal_mode = DELETE").fetchall()  # a single file without a WAL
        finally:
            target.close()


def verified(
    path: str, kind: type[Copied], key: bytes | None, keys: Unlocked | None, source: str = ""
) -> dict[Branch, BranchSummary]:
    """Verify a store and return its contents.

    Args:
        kind: The class that opens it.
        keys: The data keys of an encrypted file.
        source: The store of which the file is a copy, for the message.

    Raises:
        DamagedStoreError: The store is corrupt; the message says where.
        StoreError: It cannot be read.
    """
    store = kind(path, read_only=True, key=key, secret=keys)
    try:
        problems = store.check()
        if problems:
            raise DamagedStoreError(source or path, "; ".join(" ".join(each.split()) for each in problems[:5]))
        return branch_summaries(store)
    finally:
        store.close()


def remove_part(part: str) -> None:
    """Delete an unfinished copy with its journal and WAL, if they exist."""
    for suffix in ("", "-journal", *WAL_SUFFIXES):
        with suppress(OSError):
            os.unlink(part + suffix)
