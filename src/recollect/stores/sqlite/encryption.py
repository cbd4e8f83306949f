"""The keys of a file: with which store key it was created, and which secret opens it if it is encrypted."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from recollect.errors import (
    InvalidArgumentError,
    KeyFileMissingError,
    NotEncryptedError,
    SecretNeededError,
    StoreError,
    StoreIOError,
)
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.stores import files
from recollect.stores.sealing import keys
from recollect.stores.sealing.keys import Secret, Unlocked
from recollect.stores.sqlite.header import application_of, header_of
from recollect.stores.sqlite.schema import ENCRYPTED_ID
from recollect.stores.sqlite_base import sealed
from recollect.stores.sqlite_base.descriptors import read

#: The end of the name of a file that is written by `recollect encrypt` and others, and not yet in its place. Only one
#: process at a time writes such a file, with the store locked.
UNFINISHED = ".rewriting"


def keys_of(path: str, secret: Secret | Unlocked | None, *, new: bool, encrypted: bool) -> Unlocked | None:
    """Return the data keys of a file; None if it is not encrypted. A new file with a secret gets a key file.

    Args:
        path: The path of the store's file, beside which the key file is.
        secret: The secret, if there is one; or the data keys, if they are known, and then no key file is needed.
        new: Whether the file is empty.
        encrypted: Whether its header says that it is encrypted.

    Raises:
        SecretNeededError: It is encrypted, or has a key file, and there is no secret.
        NotEncryptedError: It is not, and there is one.
        WrongSecretError: The secret does not open it.
        KeyFileMissingError: It has no usable key file.
        StoreIOError: The file cannot be read, or the key file cannot be written.
    """
    if secret is None:
        if encrypted:
            raise SecretNeededError(path)
        if new and os.path.lexists(keys.keys_path(path)):
            raise SecretNeededError(path, f"it has the key file {keys.keys_path(path)}, but no content yet")
        return None
    if isinstance(secret, Unlocked):
        return secret
    keys.check_secret("secret", secret)
    if new:
        try:
            return keys.read(path).unlock(secret)
        except KeyFileMissingError:
            if os.path.lexists(keys.keys_path(path)):
                raise
        prepare(path, secret)
        return keys.read(path).unlock(secret)
    if not encrypted:
        raise NotEncryptedError(path)
    unlocked = keys.read(path).unlock(secret)
    if len(unlocked.file.keys) > 1:
        return unlocked.opening(read(path, sealed.PAGE))
    return unlocked


def prepare(path: str, secret: Secret | Unlocked | None) -> None:
    """Write the key file of a store that is created next, if it has a secret and there is no key file.

    If it cannot be made, there is no empty file, which a later call without a secret would take for a plain store.
    """
    where = keys.keys_path(path)
    if secret is None or isinstance(secret, Unlocked):
        return
    if not os.path.lexists(where) and os.path.isdir(os.path.dirname(where)):
        keys.write(keys.new(path, secret).file, exclusive=True)  # unless another process has written it meanwhile


def remove_unfinished(path: str) -> None:
    """Remove what a process has left that died while it decrypted a store. The store must be open, so none does now."""
    with suppress(OSError):
        os.unlink(path + UNFINISHED)


def key_check(key: bytes) -> bytes:
    """Return eight bytes by which a wrong key is detected, and which reveal nothing else about the key."""
    return hashlib.sha256(b"recollect.key check.1\0" + key).digest()[:8]


def store_keys(key: bytes | None, unlocked: Unlocked | None) -> tuple[bytes, ...]:
    """Return the store keys that a file may have been created with, if `key` was given or not.

    That of an encrypted file is derived from its data key, unless it was encrypted later.
    """
    if key is not None:
        return (key,)
    return (PUBLIC_KEY,) if unlocked is None else (unlocked.salt_key, PUBLIC_KEY)


def is_encrypted(path: str) -> bool:
    """Return whether the header of a file says that it is an encrypted store; False for any other file."""
    try:
        return application_of(header_of(path)) == ENCRYPTED_ID
    except StoreError:
        return False


def keys_at(path: str, secret: Secret | None) -> Unlocked | None:
    """Return the data keys of a file that is read without SQLite, perhaps a corrupt one; None if it is not encrypted.

    Raises:
        SecretNeededError, WrongSecretError, KeyFileMissingError, NotEncryptedError: See `keys_of`.
    """
    try:
        plain = application_of(header_of(path)) != ENCRYPTED_ID
    except StoreError:  # the key file tells, if the header does not
        plain = not os.path.lexists(keys.keys_path(path))
    if plain:
        if secret is not None and os.path.exists(path):
            raise NotEncryptedError(path)
        return None
    return keys_of(path, secret, new=False, encrypted=True)


@contextmanager
def key_file_beside(
    source: str | None, unlocked: Unlocked | None, target: str, *, force: bool = False
) -> Iterator[None]:
    """Put a copy of the key file of a store beside a copy of it, and take it away again if the block raises.

    It is the file as it is now, which may have other slots than when the store was opened. If it is gone, the copy is
    written from memory.

    Args:
        source: The store; None if its key file is only in memory yet.
        unlocked: Its data keys; None if it is not encrypted. Then nothing is done.
        target: The copy of the store.
        force: Replace the key file of another store, or another file with that name.

    Raises:
        InvalidArgumentError: There is another file with that name.
        StoreIOError: The copy cannot be written.
    """
    if unlocked is None:
        yield
        return
    where = keys.keys_path(target)
    former = _former(where)
    if former and not force and keys.uuid_in(former) != unlocked.uuid:
        rule = f"needs the name {where}, and that file is not the key file of this store: move it away"
        raise InvalidArgumentError("path", target, rule)
    file = unlocked.file
    with suppress(KeyFileMissingError):
        if source is not None and (found := keys.read(source)).uuid == unlocked.uuid:
            file = found
    try:
        keys.write(replace(file, path=where))
        yield
    except BaseException:
        with suppress(OSError):
            if former is None:
                files.remove(where)
            else:
                part = f"{where}.{secrets.token_hex(8)}.part"
                files.write(part, [former], lasting=True)
                files.replace(where, part)
        raise


def _former(where: str) -> bytes | None:
    try:
        with open(files.open_regular(where), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreIOError(where, error.strerror or str(error)) from error


def is_encrypted_other(path: str, uuid: str) -> bool:
    """Return whether a file is encrypted, and its key file is that of another store than that of a uuid.

    Such a file is no copy of that store, and cannot be read.
    """
    try:
        return is_encrypted(path) and keys.read(path).uuid != uuid
    except KeyFileMissingError:
        return False


def has_key_file(path: str, unlocked: Unlocked, secret: Secret | None) -> bool:
    """Return whether there is a key file at a path that the secret opens, with the data keys of a copy of its store."""
    try:
        own = keys.read(path).unlock(secret) if secret is not None else None
    except StoreError:
        return False
    return own is not None and own.has(unlocked)
