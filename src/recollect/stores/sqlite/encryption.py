"""The keys of an encrypted file when it is opened: which secret is needed, and that none is ignored."""

from __future__ import annotations

import os

from recollect.errors import KeyFileMissingError, NotEncryptedError, SecretNeededError
from recollect.stores.sealing import keys
from recollect.stores.sealing.keys import Secret, Unlocked
from recollect.stores.sqlite_base import sealed
from recollect.stores.sqlite_base.descriptors import read


def keys_of(path: str, secret: Secret | None, *, new: bool, encrypted: bool) -> Unlocked | None:
    """Return the data keys of a file; None if it is not encrypted. A new file with a secret gets a key file.

    Args:
        path: The file.
        secret: The secret, if there is one.
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
    keys.check_secret("secret", secret)
    if new:
        try:
            return keys.read(path).unlock(secret)
        except KeyFileMissingError:
            if os.path.lexists(keys.keys_path(path)):
                raise
        made = keys.new(path, secret)
        if keys.write(made.file, exclusive=True):
            return made
        return keys.read(path).unlock(secret)  # another process has created it meanwhile
    if not encrypted:
        raise NotEncryptedError(path)
    unlocked = keys.read(path).unlock(secret)
    if len(unlocked.file.keys) > 1:
        return unlocked.opening(read(path, sealed.PAGE))
    return unlocked
