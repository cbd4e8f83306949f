"""Restoring backups.

A backup is a store in a single file with the uuid of the original: a consistent snapshot, copied while writers continue
(`stores.sqlite.copying`). The restored file is written next to the target and renamed to it once it is complete and
durable. The store that it replaces is kept under another name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

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
from recollect.stores.sealing.keys import Secret, keys_path
from recollect.stores.sealing.secrets import secret_or_default
from recollect.stores.sqlite.copying import (
    OR_FORCE,
    WAL_SUFFIXES,
    check_wal_names,
    copy,
    remove_part,
    same_file,
    verified,
)
from recollect.stores.sqlite.encryption import has_key_file, is_encrypted, key_file_beside
from recollect.stores.sqlite.header import application_of, has_wal, header_of, part_path, replace_durably, sync_folder
from recollect.stores.sqlite.salvage import Salvage
from recollect.stores.sqlite.schema import APPLICATION_ID, ENCRYPTED_ID
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite_base import checksums
from recollect.stores.values import Backup

#: Writes a key file while a block runs, and takes it back if the block raises.
WithKeys = Callable[[], AbstractContextManager[None]]
#: How long a restore waits for a writer of the store that it replaces.
BUSY_MS = 10_000


@named
def restore(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    key: bytes | None = None,
    secret: Secret | None = None,
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
        secret: The secret of an encrypted backup. The restored store is encrypted with the same data key. The key file
            at `path` stays if the secret opens it, too, and it has that data key, so that a secret that was removed
            since does not return; otherwise it is that of the backup. Default: the secret in the file that
            RECOLLECT_SECRET_FILE names.

    Raises:
        SecretNeededError, WrongSecretError, KeyFileMissingError, NotEncryptedError: See `recollect.open`.
        DamagedStoreError: The backup is corrupt.
        NotAStoreError: `source` or `path` is another kind of file.
        InvalidArgumentError: `path` cannot be used, or needs `force`.
        StoreBusyError: Another process is writing to the store at `path`.
        StoreError: Reading or writing failed. What was at `path` is still there after any of these errors.
    """
    origin, target, secret = file_path("source", source), file_path("path", path), secret_or_default(secret)
    if is_encrypted(origin) or os.path.lexists(keys_path(target)):  # the key file of a link is beside what it points to
        target = os.path.realpath(target)
    if not os.path.exists(origin):
        raise StoreMissingError(origin, "the file does not exist")
    if target == origin or same_file(target, origin):
        raise InvalidArgumentError("path", target, "is the backup itself: give another path")
    check_wal_names(target, origin, "is the backup itself")
    obstacle = _obstacle(target, key, secret)
    if obstacle and not force:
        raise InvalidArgumentError("path", target, f"{obstacle}: {OR_FORCE}; the old store is then kept")
    part = part_path(target)
    try:
        store = SqliteStore(origin, read_only=True, key=key, secret=secret)
        try:
            keys = store.keys
            with store.reading() as connection:
                copy(connection, part, keys)
        finally:
            store.close()
        branches = verified(part, SqliteStore, key, keys, origin)
        new_keys = None if keys is None or has_key_file(target, keys, secret) else keys
        kept = replace(part, target, lambda: key_file_beside(origin, new_keys, target, force=True))
        if keys is None and kept is not None:  # of an encrypted store that was there, beside which it is kept
            with suppress(FileNotFoundError):
                os.unlink(keys_path(target))
        return Backup(path=target, bytes=os.stat(target).st_size, verified=True, branches=branches, kept=kept)
    except OSError as error:
        raise StoreIOError(target, error.strerror or str(error)) from error
    finally:
        remove_part(part)


def _obstacle(target: str, key: bytes | None, secret: Secret | None) -> str:
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
        if not _was_a_store(target):
            raise NotAStoreError(target, "it is another kind of file")
    except OSError as error:
        raise StoreIOError(target, error.strerror or str(error)) from error
    try:
        encrypted = is_encrypted(target)  # a plain store can be replaced by an encrypted one, too
        store = SqliteStore(target, create=False, read_only=True, key=key, secret=secret if encrypted else None)
    except StoreError:
        return "is a store that cannot be opened"
    try:
        with store.read() as view:
            return "is a store that has commits" if view.branches() else ""
    except StoreError:
        return "is a store that cannot be read"
    finally:
        store.close()


def _was_a_store(path: str) -> bool:
    """Return whether a file is a store, or was one before its first page was corrupted."""
    try:
        return application_of(header_of(path)) in (APPLICATION_ID, ENCRYPTED_ID)
    except NotAStoreError:
        return os.path.lexists(keys_path(path)) or not Salvage(path, PUBLIC_KEY).empty


def replace(part: str, target: str, with_keys: WithKeys = nullcontext) -> str | None:
    """Rename `part` to `target`; return the new path of the store that was there, which keeps its WAL and key file.

    A WAL that stayed next to the target would be applied to the new store, so it moves with the store it belongs to.

    Args:
        with_keys: Writes the key file of the new store, if it needs another one, and takes it back if the block raises.
            A process that dies between this and the end leaves the former store with another key file than its own,
            which is beside the kept copy.
    """
    with _locked(target):
        return replace_locked(part, target, with_keys)


def replace_locked(part: str, target: str, with_keys: WithKeys = nullcontext) -> str | None:
    """Do the same as `replace` when the caller has the write lock of the store at `target`, and all is in its file."""
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
        if os.path.lexists(keys_path(target)):  # perhaps of a store that is no longer there
            os.link(keys_path(target), keys_path(kept or _free_name(target)))
        sync_folder(target)
        with with_keys():
            replace_durably(part, target)
    except BaseException:
        if kept is not None and (not exists or same_file(target, kept)):  # it is still the store: give its WAL back
            for suffix in moved:
                os.rename(kept + suffix, target + suffix)
            if exists:
                os.unlink(kept)
            with suppress(FileNotFoundError):
                os.unlink(keys_path(kept))
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
        for work in (
            lambda: connection.execute("SELECT name FROM sqlite_schema").fetchall(),  # makes SQLite open the WAL
            # Commits that are only in the WAL could be lost if this process died later.
            lambda: connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE),
            lambda: connection.execute("BEGIN IMMEDIATE"),
        ):
            try:
                work()
            except apsw.BusyError as error:
                raise StoreBusyError(target, str(error)) from error
            except apsw.Error:
                pass  # it is encrypted, which needs no key here, or corrupt, and then no other process can write to it
        yield
    finally:
        connection.close()


def _free_name(target: str) -> str:
    number = 1
    while any(os.path.lexists(f"{target}.replaced-{number}{end}") for end in ("", ".keys")):
        number += 1
    return f"{target}.replaced-{number}"
