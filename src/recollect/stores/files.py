"""File operations that do not go through SQLite, collected in one module so that tests can intercept them.

`torture.recording` replaces these functions to record their calls or to make them fail; so call them through the
module (`files.read`). All of them raise OSError and nothing else.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Opening a pipe does not wait for its other end. (Windows lacks some of these flags.)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)


def create(path: str, *, exclusive: bool = False) -> None:
    """Create an empty file with mode 0600 if there is none; with `exclusive`, an existing file is an error."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if exclusive:
            raise


def is_regular(path: str) -> bool:
    """Return whether the path is a regular file or does not exist. (A link is not a regular file.)"""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return True


def open_regular(path: str, flags: int = os.O_RDONLY, *, follow: bool = False) -> int:
    """Open a regular file without waiting and return its descriptor.

    Args:
        flags: Flags of `os.open`.
        follow: Whether the path itself may be a link.

    Raises:
        OSError: The file cannot be opened or is not regular; errno is EINVAL then, EISDIR for a folder, ELOOP for a
            link.
    """
    descriptor = os.open(path, flags | _NO_WAIT | (0 if follow else _NOFOLLOW), 0o600)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "is not a regular file", path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write(path: str, parts: Iterable[bytes | memoryview], *, lasting: bool = False) -> None:
    """Create a file with mode 0600 from these parts; it must not exist.

    Args:
        lasting: Make its bytes durable; `sync_folder` does the same for its name.
    """
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        for part in parts:
            file.write(part)
        if lasting:
            file.flush()
            os.fsync(file.fileno())


def read(path: str, limit: int = -1) -> NDArray[np.uint8]:
    """Return the bytes of a regular file, at most the first `limit`; -1 means all."""
    import numpy as np  # here, because importers also use this module and need no NumPy

    with open(open_regular(path), "rb") as file:
        return np.fromfile(file, dtype=np.uint8, count=limit)


def replace(path: str, source: str) -> None:
    """Rename the file `source` to `path` atomically."""
    os.replace(source, path)


def link(path: str, source: str) -> None:
    """Give the file `source` the name `path`, too. Raise FileExistsError if there is a file at `path`."""
    os.link(source, path)


def remove(path: str) -> None:
    os.unlink(path)


def make_folder(path: str, *, lasting: bool = False) -> None:
    """Create a folder and its missing parents with mode 0700.

    Args:
        lasting: Make the new folders durable. Otherwise a power cut can remove them together with their contents, even
            if those were synced.
    """
    made = []
    above = path = os.path.abspath(path)
    while not os.path.isdir(above):
        made.append(above)
        above = os.path.dirname(above)
    os.makedirs(path, mode=0o700, exist_ok=True)
    for each in made if lasting else ():
        sync_folder(os.path.dirname(each))


def sync_folder(path: str) -> None:
    """Make the entries of a folder durable."""
    if os.name == "nt":  # Windows cannot open a folder, and makes its entries durable with the files
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def lock_now(descriptor: int) -> bool:
    """Lock an open file for this process, and return whether that was possible; it does not wait for another process.

    The lock ends with its descriptor, or with the process that has it.

    Raises:
        OSError: The file system has no locks.
    """
    from filelock import lock_descriptor

    return lock_descriptor(descriptor, blocking=False)
