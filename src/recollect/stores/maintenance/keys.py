"""The secrets of an encrypted store: listing, adding, removing and replacing them, and destroying the key file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from recollect.arguments.checks import file_path
from recollect.arguments.signatures import all_named
from recollect.errors import InvalidArgumentError, KeyFileMissingError, StoreBusyError, StoreIOError
from recollect.stores import files
from recollect.stores.derived.segment_files import lock_now
from recollect.stores.maintenance.encrypting import Rewritten, renew_data_key
from recollect.stores.sealing import keys as key_files
from recollect.stores.sealing.keys import KeyFile, Secret, Slot, Unlocked
from recollect.stores.sealing.secrets import secret_or_default

#: How long a process waits for another one that changes the same key file, and in which steps, in seconds.
_WAIT_S, _STEP_S = 10.0, 0.005
_AT_ONCE = 2**20


@all_named
class StoreKeys:
    """The key file of an encrypted store. A change is durable when a call returns, and writes nothing of the store.

    A store that is open stays open, whatever becomes of the secret with which it was opened.

    Args:
        path: The store.

    Raises:
        KeyFileMissingError: It has no usable key file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = file_path("path", path)
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
            changed = _opened(file, secret).with_slot(file.free_name() if name is None else name, new)
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
        """Replace a secret by another one. The store is not written again.

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
            changed = opened.with_slot(file.free_name() if name is None else name, new)
            key_files.write(key_files.without_slot(changed, opened.slot.id))
            return changed.slots[-1]

    def rewrite(self, *, secret: Secret | None = None) -> Rewritten:
        """Encrypt the store again, with a new data key: for when somebody may have the former one.

        Only the secret that is given opens it afterwards; add the others again.

        Args:
            secret: One that opens it. Default: the secret in the file that RECOLLECT_SECRET_FILE names.

        Raises:
            WrongSecretError: `secret` does not open the store.
            StoreBusyError: Another process has the store open.
            StoreError: Reading or writing failed. The store is as it was.
        """
        with self._changing():
            return renew_data_key(self._path, secret_or_default(secret))

    def export(self, path: str | os.PathLike[str]) -> str:
        """Write a copy of the key file to a new file, to keep it elsewhere. It contains no secret and no data key."""
        target = file_path("path", path)
        copied = replace(key_files.read(self._path), path=target)
        if not key_files.write(copied, exclusive=True):
            raise InvalidArgumentError("path", target, "already exists: give another path")
        return target

    def destroy(self) -> tuple[str, ...]:
        """Overwrite and delete the key file, and its copies in the same folder. No secret opens the store then.

        Copies elsewhere, such as those beside backups, open their copies of the store as long as they exist.

        Returns:
            The paths of the files that were deleted.

        Raises:
            StoreIOError: One of them cannot be deleted.
        """
        uuid = key_files.read(self._path).uuid
        folder = os.path.dirname(self.file)
        try:
            found = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".keys")]
            mine = [each for each in found if each == self.file or _uuid_of(each) == uuid]
            for each in mine:
                _shred(each)
            files.sync_folder(folder)
        except OSError as error:
            raise StoreIOError(self.file, error.strerror or str(error)) from error
        return tuple(mine)

    @contextmanager
    def _changing(self) -> Iterator[KeyFile]:
        """Provide the key file while no other process changes it."""
        until = time.monotonic() + _WAIT_S
        while True:
            key_files.read(self._path)  # raises the right error
            try:
                descriptor = files.open_regular(self.file, os.O_RDWR)
            except OSError as error:
                raise StoreIOError(self.file, error.strerror or str(error)) from error
            try:
                # Each change puts another file at the path: a lock on a former one means nothing.
                if lock_now(descriptor) and os.path.samestat(os.fstat(descriptor), os.stat(self.file)):
                    yield key_files.read(self._path)
                    return
            finally:
                os.close(descriptor)
            if time.monotonic() > until:
                raise StoreBusyError(self.file, f"waited {_WAIT_S:g} s for another process")
            time.sleep(_STEP_S)


def _opened(file: KeyFile, secret: Secret | None) -> Unlocked:
    given = secret_or_default(secret)
    if given is None:
        raise InvalidArgumentError("secret", None, "is needed: one that opens the store now")
    return file.unlock(given)


def _uuid_of(path: str) -> str:
    try:
        return key_files.read(path.removesuffix(".keys")).uuid
    except KeyFileMissingError:
        return ""


def _shred(path: str) -> None:
    """Overwrite a file and delete it. On some disks and file systems, what was overwritten can be recovered."""
    with suppress(PermissionError), open(files.open_regular(path, os.O_RDWR), "r+b") as file:
        file.write(os.urandom(min(os.fstat(file.fileno()).st_size, _AT_ONCE)))
        file.flush()
        os.fsync(file.fileno())
    files.remove(path)
