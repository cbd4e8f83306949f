"""The secrets of an encrypted store: listing, adding, removing and replacing them, and destroying the key file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from recollect.arguments.checks import file_path
from recollect.arguments.signatures import all_named
from recollect.errors import (
    InvalidArgumentError,
    NotEncryptedError,
    StoreBusyError,
    StoreIOError,
    StoreMissingError,
)
from recollect.stores import files
from recollect.stores.maintenance.encrypting import Rewritten, renew_data_key
from recollect.stores.sealing import keys as key_files
from recollect.stores.sealing.keys import KeyFile, Secret, Slot, Unlocked
from recollect.stores.sealing.secrets import secret_or_default
from recollect.stores.sqlite.encryption import is_encrypted

#: How long a process waits for another one that changes the same key file, and in which steps, in seconds.
_WAIT_S, _STEP_S = 10.0, 0.005


@all_named
class StoreKeys:
    """The key file of an encrypted store. A change is durable when a call returns, and writes nothing of the store.

    A store that is open stays open, whatever becomes of the secret with which it was opened. A passphrase takes a tenth
    of a second and 64 MiB of memory for each slot that it is tried on.

    Args:
        path: The path of the store, beside which the key file is.

    Raises:
        StoreMissingError: There is neither a file nor a key file.
        NotEncryptedError: The store is not encrypted.
        KeyFileMissingError: It has no usable key file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.path.realpath(file_path("path", path))
        if not os.path.lexists(self.file) and not os.path.exists(self._path):
            raise StoreMissingError(self._path)
        if os.path.exists(self._path) and os.path.getsize(self._path) and not is_encrypted(self._path):
            raise NotEncryptedError(self._path)
        key_files.read(self._path)

    @property
    def file(self) -> str:
        """The path of the key file."""
        return key_files.keys_path(self._path)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The secrets that open the store, each by its name and kind."""
        return key_files.read(self._path).slots

    def add(self, new: Secret, *, secret: Secret | None = None, name: str | None = None) -> Slot:
        """Let another secret open the store, too.

        Args:
            new: 32 bytes, a passphrase, or a function that asks a key service.
            secret: One that opens it now. Default: the secret in the file that RECOLLECT_SECRET_FILE names.
            name: A name for it. Default: "slot-N".

        Raises:
            WrongSecretError: `secret` does not open the store.
            InvalidArgumentError: There is a slot with this name, or `new` is no secret.
            StoreError: The key file cannot be read or written. It is as it was.
        """
        with self._changing() as file:
            changed = _opened(file, secret).with_slot(_name(file, name), _unused(file, new))
            key_files.write(changed)
            return changed.slots[-1]

    def remove(self, name: str) -> None:
        """Let a secret open the store no longer. Copies of the key file, such as those of backups, keep it.

        Args:
            name: The name of its slot.

        Raises:
            InvalidArgumentError: There is no such slot, or it is the last one.
            StoreError: The key file cannot be read or written. It is as it was.
        """
        with self._changing() as file:
            key_files.write(key_files.without_slot(file, name))

    def rotate(self, new: Secret, *, secret: Secret | None = None, name: str | None = None) -> Slot:
        """Replace a secret by another one, in every slot that it opens. The store is not written again.

        Args:
            new: The new secret.
            secret: The one that it replaces. Default: the secret in the file that RECOLLECT_SECRET_FILE names.
            name: A name for the new one. Default: "slot-N".

        Raises:
            WrongSecretError: `secret` does not open the store.
            StoreError: The key file cannot be read or written. It is as it was.
        """
        with self._changing() as file:
            opened = _opened(file, secret)
            changed = opened.with_slot(_name(file, name), _unused(file, new))
            for each in file.slots_of(_given(secret)):
                changed = key_files.without_slot(changed, each.id)
            key_files.write(changed)
            return changed.slots[-1]

    def rewrite(self, *, secret: Secret | None = None, key: bytes | None = None) -> Rewritten:
        """Encrypt the store again, with a new data key: for when somebody may have the former one.

        Only the secret that is given opens it afterwards; add the others again. The former file is kept, and opens with
        all former secrets.

        Args:
            secret: One that opens it. Default: the secret in the file that RECOLLECT_SECRET_FILE names.
            key: The store key, if the store was created with its own.

        Raises:
            WrongSecretError: `secret` does not open the store.
            WrongKeyError: The store was created with another store key.
            StoreBusyError: Another process has the store open.
            StoreError: Reading or writing failed. The store and its key file are as they were.
        """
        with self._changing():
            return renew_data_key(self._path, secret_or_default(secret), key)

    def export(self, path: str | os.PathLike[str]) -> str:
        """Write a copy of the key file to a new file, to keep it elsewhere. It contains no secret and no data key."""
        target = file_path("path", path)
        copied = replace(key_files.read(self._path), path=target)
        if not key_files.write(copied, exclusive=True):
            raise InvalidArgumentError("path", target, "already exists: give another path")
        return target

    def copies(self) -> tuple[str, ...]:
        """Return the other files in the folder that are key files of this store, whatever their names.

        They open copies of the store, such as backups, or this one if they are put beside it.
        """
        uuid, folder = key_files.read(self._path).uuid, os.path.dirname(self.file)
        try:
            paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
        except OSError as error:
            raise StoreIOError(folder, error.strerror or str(error)) from error
        return tuple(each for each in paths if each != self.file and _uuid_of(each) == uuid)

    def destroy(self, *, copies: bool = False) -> tuple[str, ...]:
        """Overwrite and delete the key file. No secret opens the store then.

        Args:
            copies: Also destroy those in `copies`. Key files elsewhere, and those in sealed exports, open their copies
                as long as they exist.

        Returns:
            The paths of the files that were deleted.

        Raises:
            StoreIOError: One of them cannot be deleted.
        """
        mine = (self.file, *(self.copies() if copies else ()))
        try:
            for each in mine:
                _shred(each)
            files.sync_folder(os.path.dirname(self.file))
        except OSError as error:
            raise StoreIOError(self.file, error.strerror or str(error)) from error
        return mine

    @contextmanager
    def _changing(self) -> Iterator[KeyFile]:
        """Provide the key file while no other process changes it.

        The lock is on a file of its own, because each change puts another key file at the path.
        """
        until = time.monotonic() + _WAIT_S
        try:
            descriptor = files.open_regular(f"{self.file}.lock", os.O_CREAT | os.O_RDWR)
        except OSError as error:
            raise StoreIOError(self.file, error.strerror or str(error)) from error
        try:
            while not files.lock_now(descriptor):
                if time.monotonic() > until:
                    raise StoreBusyError(self.file, f"waited {_WAIT_S:g} s for another process")
                time.sleep(_STEP_S)
            yield key_files.read(self._path)
        finally:
            os.close(descriptor)


def _name(file: KeyFile, name: str | None) -> str:
    return file.free_name() if name is None else name


def _given(secret: Secret | None) -> Secret:
    given = secret_or_default(secret)
    if given is None:
        raise InvalidArgumentError("secret", None, "is needed: one that opens the store now")
    return given


def _opened(file: KeyFile, secret: Secret | None) -> Unlocked:
    return file.unlock(_given(secret))


def _unused(file: KeyFile, new: Secret) -> Secret:
    """Return a new secret. Raise InvalidArgumentError if it opens the store already."""
    if not callable(new) and (found := file.slots_of(new)):
        raise InvalidArgumentError(
            "new secret", "...", f"opens the store already: it is that of the slot {found[0].id}"
        )
    return new


def _uuid_of(path: str) -> str:
    """Return the uuid of the store of a key file; "" for any other file."""
    try:
        if os.path.getsize(path) > key_files.MAX_BYTES:
            return ""
        with open(files.open_regular(path), "rb") as file:
            return key_files.uuid_in(file.read())
    except OSError:
        return ""


def _shred(path: str) -> None:
    """Overwrite a file and delete it. On some disks and file systems, what was overwritten can be recovered."""
    with suppress(PermissionError), open(files.open_regular(path, os.O_RDWR), "r+b") as file:
        file.write(os.urandom(os.fstat(file.fileno()).st_size))
        file.flush()
        os.fsync(file.fileno())
    files.remove(path)
