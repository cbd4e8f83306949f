"""What is done to files without SQLite: one place for it, so that a test can stand between.

`torture.recording` puts its own in place of these functions, to write down what they do or to let them fail;
so they are called by the module's name. All raise OSError and nothing else.
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

#: Opening a pipe does not wait for who is at its other end, nor follows a link. (Windows has neither.)
_UNHURRIED = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)


def create(path: str, *, anew: bool = False) -> None:
    """Make an empty file with mode 0600 where there is nothing; with `anew`, there must be nothing."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if anew:
            raise


def is_regular(path: str) -> bool:
    """Whether there is a regular file, or nothing. (A link is none.)"""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return True


def open_regular(path: str, flags: int = os.O_RDONLY, *, follow: bool = False) -> int:
    """A descriptor of a regular file, opened without waiting for anybody.

    follow  whether the path itself may be a link

    Raises: OSError, for what is no regular file, too: its number is EINVAL, or ELOOP for a link.
    """
    descriptor = os.open(path, flags | _UNHURRIED | (0 if follow else _NOFOLLOW), 0o600)
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


def write(path: str, parts: Iterable[bytes | memoryview]) -> None:
    """Make a file with mode 0600 of these parts; there must be none."""
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        for part in parts:
            file.write(part)


def read(path: str, most: int = -1) -> NDArray[np.uint8]:
    """The bytes of a regular file; no more than the first so many, where that is not -1."""
    import numpy as np  # importers, which open files too, do without it

    with open(open_regular(path), "rb") as file:
        return np.fromfile(file, dtype=np.uint8, count=most)


def replace(path: str, by: str) -> None:
    """Let a file be the one that has been at `by`, in one step."""
    os.replace(by, path)


def remove(path: str) -> None:
    os.unlink(path)


def make_folder(path: str, *, lasting: bool = False) -> None:
    """Make a folder with mode 0700, and those above it, where they are missing.

    lasting  a power cut does not undo it: without that, what is made in it is lost with it, durable or not
    """
    made = []
    above = path
    while not os.path.isdir(above):
        made.append(above)
        above = os.path.dirname(above)
    os.makedirs(path, mode=0o700, exist_ok=True)
    for each in made if lasting else ():
        sync_folder(os.path.dirname(each))


def sync_folder(path: str) -> None:
    """Make durable which files a folder has."""
    if os.name == "nt":  # there a folder cannot be opened, and its entries are durable with the files
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
