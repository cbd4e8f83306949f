"""Reading a file beside SQLite without dropping the locks of this process.

SQLite locks a file with POSIX locks. These belong to the process and the file, and the system drops all of them when
the process closes any descriptor of the file, whatever opened it. Then another process takes the file for unused: it
could migrate a store that is open, and acknowledged commits would be lost. SQLite itself does not close a descriptor
of a file that it has locked, so the file is read through SQLite's own layer.

Source:
    https://www.sqlite.org/howtocorrupt.html, section 2.2.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any, TypeVar

import apsw

T = TypeVar("T")
#: SQLite treats the descriptor as that of a database, and postpones closing it while it has locks.
_FLAGS = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB
_WRITE_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_MAIN_DB
#: How many bytes are read at once. SQLite takes a number of bytes as a C int.
_AT_ONCE = 1 << 30


class FileBytes:
    """The bytes of a regular file, of which slices are read, and parts written, without dropping locks.

    Close it, or leave its `with` block.

    Args:
        path: The file.
        writing: Whether to open it for writing.
        real: The same without symbolic links, if that is known.

    Raises:
        OSError: It cannot be opened, or read, or written.
    """

    def __init__(self, path: str, *, writing: bool = False, real: str = "") -> None:
        os.stat(path)  # raises what SQLite would only call an error
        if not os.access(path, os.W_OK | os.R_OK if writing else os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        self._path = path
        real = real or os.path.realpath(path)  # SQLite follows no link here
        self._file: apsw.VFSFile = self._run(apsw.VFSFile, "", real, [_WRITE_FLAGS if writing else _FLAGS, 0])

    def __len__(self) -> int:
        return self._run(self._file.xFileSize)

    def __getitem__(self, part: slice) -> bytes:
        begin, end, _ = part.indices(len(self))
        return b"".join(
            [self._run(self._file.xRead, min(_AT_ONCE, end - at), at) for at in range(begin, end, _AT_ONCE)]
        )

    def write(self, data: bytes, at: int) -> None:
        """Overwrite a part of the file."""
        self._run(self._file.xWrite, data, at)

    def sync(self) -> None:
        """Make what was written durable."""
        self._run(self._file.xSync, apsw.SQLITE_SYNC_FULL)

    def close(self) -> None:
        self._run(self._file.xClose)

    def __enter__(self) -> FileBytes:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _run(self, call: Callable[..., T], *arguments: Any) -> T:
        """Return the result of a call, with SQLite's errors raised as OSError."""
        try:
            return call(*arguments)
        except apsw.Error as error:
            raise OSError(errno.EIO, str(error), self._path) from error


def read(path: str, limit: int | None = None, *, real: str = "") -> bytes:
    """Return the bytes of a regular file, at most the first `limit`. Raise OSError if it cannot be read.

    Args:
        path: The file.
        limit: Maximum number of bytes.
        real: The path without symbolic links, if that is known.
    """
    with FileBytes(path, real=real) as data:
        return data[:limit]
