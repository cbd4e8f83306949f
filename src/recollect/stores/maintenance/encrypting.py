"""Encrypting and decrypting a store that exists, and replacing its data key.

The store is copied into a new file, which is verified and then takes its place; the former file is kept under another
name, as after a restore. No other process may have the store open. Vectors and uses are copied too, because they cannot
be derived for free; all other index files are deleted and made again.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apsw

from recollect.arguments.checks import file_path
from recollect.arguments.json_form import JsonForm
from recollect.arguments.signatures import named
from recollect.errors import (
    DamagedStoreError,
    InvalidArgumentError,
    NotAStoreError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreIOError,
    WrongKeyError,
)
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.stores import files
from recollect.stores.derived.database import DerivedDatabase, remove
from recollect.stores.derived.usage import UsageFile
from recollect.stores.derived.vectors import VectorFile
from recollect.stores.maintenance.backup import WithKeys, replace_locked
from recollect.stores.sealing import keys as key_files
from recollect.stores.sealing.cipher import NotAuthenticError
from recollect.stores.sealing.keys import Secret, Unlocked
from recollect.stores.sealing.pages import PageCipher
from recollect.stores.sealing.secrets import secret_or_default
from recollect.stores.sqlite import schema
from recollect.stores.sqlite.copying import WAL_SUFFIXES, remove_part, verified
from recollect.stores.sqlite.encryption import UNFINISHED, is_encrypted, key_check, key_file_beside, keys_of, store_keys
from recollect.stores.sqlite.header import admit, must_not_write
from recollect.stores.sqlite.schema import APPLICATION_ID, ENCRYPTED_ID, PAGE_CHECKSUMS
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite_base import checksums, sealed
from recollect.stores.sqlite_base.connections import made_by
from recollect.stores.sqlite_base.descriptors import read
from recollect.stores.sqlite_base.errors import translated
from recollect.stores.sqlite_base.sealed import vfs_of

_log = logging.getLogger("recollect")
#: What is copied of the index folder: vectors cost calls of a model, and uses are nowhere else.
_KEPT: tuple[type[DerivedDatabase], ...] = (VectorFile, UsageFile)
#: How long a file that others use is waited for, in milliseconds.
_BUSY_MS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten(JsonForm, what="a rewritten store"):
    """A store that was written again.

    Attributes:
        path: The path of the store.
        bytes: Its size.
        kept: The former file, with the WAL and the key file that belong to it. Delete it when it is no longer needed: a
            store that was encrypted is there without encryption.
        store_key: The file with the key that a decrypted store must be opened with (`key=`), because the hashes of its
            records depend on it; None if it needs none.
    """

    path: str
    bytes: int
    kept: str
    store_key: str | None = None


@named
def encrypt(path: str | os.PathLike[str], *, secret: Secret | None = None, key: bytes | None = None) -> Rewritten:
    """Encrypt the store at `path` and its index files, with a new data key and a key file that the secret opens.

    Roots and hashes stay as they are. Other copies of the store, such as backups, stay without encryption.

    Args:
        path: The store. No other process may have it open.
        secret: 32 bytes, a passphrase, or a function that asks a key service. Default: the secret in the file that
            RECOLLECT_SECRET_FILE names.
        key: The store key, if the store was created with its own. It is needed later, too.

    Raises:
        InvalidArgumentError: The store is encrypted already, or there is no secret.
        StoreBusyError: Another process has the store open.
        DamagedStoreError: The store is corrupt.
        StoreError: Reading or writing failed. The store is as it was after any of these errors.

    Cost:
        Reads everything, writes it again, and verifies what was written.
    """
    target, secret = os.path.realpath(file_path("path", path)), secret_or_default(secret)
    if admit(target, create=False).encrypted:
        raise InvalidArgumentError("path", target, "is encrypted already; `recollect key rotate` changes its secret")
    if secret is None:
        raise InvalidArgumentError("secret", None, "is needed: 32 bytes, a passphrase, or a function")
    with _alone(target, None) as source:
        _store_key(source, target, key, None)
        new = key_files.new(target, secret, uuid=str(_meta(source, target)["uuid"]))
        return _rewrite(source, target, key, None, new, lambda: key_file_beside(None, new, target, force=True))


@named
def decrypt(path: str | os.PathLike[str], *, secret: Secret | None = None, key: bytes | None = None) -> Rewritten:
    """Write the encrypted store at `path`, and its vectors, without encryption.

    Args:
        path: The store. No other process may have it open.
        secret: What opens it. Default: the secret in the file that RECOLLECT_SECRET_FILE names.
        key: The store key, if the store was created with its own.

    Raises:
        SecretNeededError, WrongSecretError, KeyFileMissingError, NotEncryptedError: See `recollect.open`.
        InvalidArgumentError: The file for the store key exists.
        StoreBusyError: Another process has the store open.
        DamagedStoreError: The store is corrupt.
        StoreError: Reading or writing failed. The store is as it was after any of these errors.
    """
    target = os.path.realpath(file_path("path", path))
    keys = _keys(target, secret_or_default(secret))
    with _alone(target, keys) as source:
        store_key = None
        if key is None and (needed := _store_key(source, target, None, keys)) != PUBLIC_KEY:
            key, store_key = needed, f"{target}.key"
            _write_store_key(target, store_key, needed)
        try:
            done = _rewrite(source, target, key, keys, None)
        except BaseException:
            if store_key is not None and is_encrypted(target):  # otherwise it is needed
                with suppress(OSError):
                    files.remove(store_key)
            raise
        with suppress(FileNotFoundError):
            files.remove(key_files.keys_path(target))
    return replace(done, store_key=store_key)


def _write_store_key(path: str, file: str, key: bytes) -> None:
    try:
        files.write(file, [key], lasting=True)
    except FileExistsError:
        with open(files.open_regular(file), "rb") as opened:
            same = opened.read(len(key) + 1) == key  # of a call that was interrupted
        if not same:
            raise InvalidArgumentError("path", path, f"needs the name {file}: move that file away") from None
    except OSError as error:
        raise StoreIOError(file, error.strerror or str(error)) from error


def renew_data_key(path: str, secret: Secret | None, key: bytes | None) -> Rewritten:
    """Encrypt a store with a new data key. Only the secret that is given opens it afterwards.

    The caller keeps other processes from changing the key file.

    Args:
        path: The store, without symbolic links.
        secret: What opens it.
        key: The store key, if the store was created with its own.

    Raises:
        StoreError: See `decrypt`.
    """
    keys = _keys(path, secret)
    with _alone(path, keys) as source:
        _store_key(source, path, key, keys)
        former = key_files.read(path)
        # A process that dies leaves both data keys in the key file: `Unlocked.opening` finds the right one.
        both = keys.with_next_key()
        new = both.with_key_of_next()
        key_files.write(both.file)
        try:
            done = _rewrite(source, path, key, keys, new)
        except BaseException:
            if _opens(path, keys):  # the store is as it was
                key_files.write(former)
            raise
        key_files.write(new.file)
        return done


def _opens(path: str, keys: Unlocked) -> bool:
    """Return whether a file is encrypted with the data key of now."""
    try:
        keys.pages("db").open(read(path, sealed.PAGE), 1)
    except (NotAuthenticError, OSError):
        return False
    return True


def _keys(path: str, secret: Secret | None) -> Unlocked:
    """Return the data keys of an encrypted store."""
    keys = keys_of(path, secret, new=False, encrypted=admit(path, create=False).encrypted)
    if keys is None:
        raise InvalidArgumentError("path", path, "is not encrypted")
    return keys


@contextmanager
def _alone(path: str, keys: Unlocked | None) -> Iterator[apsw.Connection]:
    """Open the only connection to a store, all of which is in its file. Raise StoreBusyError if there are others."""
    refused = must_not_write(path, read_only=False)
    if refused:
        raise ReadOnlyStoreError(path, refused)
    try:
        before = os.stat(path)
    except OSError as error:
        raise StoreIOError(path, error.strerror or str(error)) from error
    with translated(path):
        # A URI names the VFS of the file that is attached.
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
        connection = checksums.connect(Path(path).as_uri(), flags, cipher=_cipher(keys, "db"))
    try:
        with translated(path):
            connection.set_busy_timeout(_BUSY_MS)
            connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
            connection.execute("PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY").fetchall()
            try:
                connection.execute("PRAGMA journal_mode = WAL").fetchall()
                connection.execute("BEGIN IMMEDIATE; COMMIT").fetchall()  # takes the lock, which EXCLUSIVE then keeps
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            except apsw.BusyError as error:
                raise StoreBusyError(path, "this needs exclusive access: close whatever has it open") from error
            # Another process may have opened the new file when this one is closed: its WAL must stay.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        if not os.path.samestat(before, os.stat(path)) or is_encrypted(path) != (keys is not None):
            raise StoreBusyError(path, "another process has replaced it meanwhile")
        _remove_unfinished(path)
        yield connection
    finally:
        with suppress(apsw.Error):  # nothing of it is written: what was read of it is in the new file
            connection.close()


def _cipher(keys: Unlocked | None, role: str) -> PageCipher | None:
    return None if keys is None else keys.pages(role)


def _meta(source: apsw.Connection, path: str) -> dict[str, Any]:
    with translated(path):
        return {str(name): value for name, value in source.execute("SELECT name, value FROM meta")}


def _store_key(source: apsw.Connection, path: str, key: bytes | None, keys: Unlocked | None) -> bytes:
    """Return the store key with which a store was created. Raise WrongKeyError if the caller gave another one."""
    check = _meta(source, path)["key_check"]
    for candidate in store_keys(key, keys):
        if check == key_check(candidate):
            return candidate
    raise WrongKeyError(path)


def _rewrite(
    source: apsw.Connection,
    target: str,
    key: bytes | None,
    old: Unlocked | None,
    new: Unlocked | None,
    with_keys: WithKeys = nullcontext,
) -> Rewritten:
    """Write the store again, and put what was written in its place once it is verified.

    Args:
        source: The only connection to the store.
        target: The path of the store, which is replaced.
        key: The store key, if the caller gave one.
        old: The data keys that it has.
        new: Those that it gets.
        with_keys: Writes the key file, before the store is replaced.
    """
    part, folder = f"{target}{UNFINISHED}", f"{target}.index"
    kept_files = [(kind, os.path.join(folder, kind.NAME)) for kind in _KEPT if os.path.isfile(f"{folder}/{kind.NAME}")]
    try:
        with translated(target):
            _copy(source, target, part, schema.tables_of(source.pragma("user_version")), _cipher(new, "db"))
        _state(part, target, new)
        for kind, file in kept_files:
            _copy_derived(kind, file, old, new)
        verified(part, SqliteStore, key, new, target)
        # A process that dies from here on leaves nothing in the folder that has words.
        names = {kind.NAME + suffix for kind, _ in kept_files for suffix in ("", UNFINISHED, "-wal", "-shm")}
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name not in names:
                _delete(os.path.join(folder, name))
        kept = replace_locked(part, target, with_keys)
        for _, file in kept_files:
            remove(file)
            if os.path.exists(file + UNFINISHED):
                files.replace(file, file + UNFINISHED)
        assert kept is not None, "a store that was opened is not empty"
        for suffix in WAL_SUFFIXES:  # all of it is in the file
            with suppress(FileNotFoundError):
                files.remove(kept + suffix)
        size = os.stat(target).st_size
    except OSError as error:
        raise StoreIOError(target, error.strerror or str(error)) from error
    finally:
        _remove_unfinished(target)
    return Rewritten(path=target, bytes=size, kept=kept)


def _remove_unfinished(path: str) -> None:
    """Remove what this call, or one that was interrupted, has written and not put in its place."""
    remove_part(path + UNFINISHED)
    for kind in _KEPT:
        remove_part(os.path.join(f"{path}.index", kind.NAME + UNFINISHED))


def _delete(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        files.remove(path)


def _copy(source: apsw.Connection, path: str, part: str, tables: str, cipher: PageCipher | None) -> None:
    """Write the tables that a connection reads to a new file, which is encrypted if there is a cipher.

    Neither a backup nor a VACUUM could do that: the pages reserve another number of bytes.
    """
    files.create(part, exclusive=True)
    vfs = None if cipher is None else vfs_of(cipher)  # which would be gone if nothing referred to it
    name = vfs.name if vfs is not None else checksums.NAME if checksums.available() else ""
    with translated(path):
        with closing(checksums.connect(part, cipher=cipher)) as created:
            checksums.begin(created, cipher)
            created.execute(tables).fetchall()
            created.execute(f"PRAGMA user_version = {source.pragma('user_version')}")
        source.execute("ATTACH ? AS copied", (Path(part).as_uri() + (f"?vfs={name}" if name else ""),))
        try:
            source.execute("BEGIN")
            for each, made in made_by(tables).items():
                if made.type == "table" and not each.startswith("sqlite_"):
                    source.execute(f'INSERT INTO copied."{each}" SELECT * FROM main."{each}"').fetchall()
            source.execute("COMMIT")
        finally:
            if source.in_transaction:
                source.execute("ROLLBACK")
            source.execute("DETACH copied")


def _state(part: str, path: str, keys: Unlocked | None) -> None:
    """Let a new file state what it is: encrypted, or with checksums."""
    with translated(path):
        connection = checksums.connect(part, apsw.SQLITE_OPEN_READWRITE, cipher=_cipher(keys, "db"))
        try:
            ((features,),) = connection.execute("SELECT value FROM meta WHERE name = 'features'").fetchall()
            names = [each for each in str(features).split(",") if each and each != PAGE_CHECKSUMS]
            if checksums.reserved(connection):
                names.insert(0, PAGE_CHECKSUMS)
            connection.execute("UPDATE meta SET value = ? WHERE name = 'features'", (",".join(names),))
            connection.execute("DELETE FROM meta WHERE name = 'encrypted_pages'")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID if keys is None else ENCRYPTED_ID}")
        finally:
            connection.close()


def _copy_derived(kind: type[DerivedDatabase], path: str, old: Unlocked | None, new: Unlocked | None) -> None:
    """Write a file of the index folder again, next to it. If it cannot be read, nothing is written."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    try:
        with (
            translated(path),
            closing(checksums.connect(Path(path).as_uri(), flags, cipher=_cipher(old, kind.NAME))) as source,
        ):
            _copy(source, path, path + UNFINISHED, kind.TABLES, _cipher(new, kind.NAME))
    except (DamagedStoreError, NotAStoreError) as error:
        _log.warning("%s is not copied, because it cannot be read: %s", path, error)
        remove(path + UNFINISHED)
