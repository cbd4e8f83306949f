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

import apsw

#: SQLite treats the descriptor as that of a database, and postpones closing it while it has locks.
_FLAGS = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB
#: How many bytes are read at once. SQLite takes a number of bytes as a C int.
_AT_ONCE = 1 << 30


def read(path: str, limit: int | None = None) -> bytes:
    """Return the bytes of a regular file, at most the first `limit`. Raise OSError if it cannot be read."""
    os.stat(path)  # raises what SQLite would only call an error
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    try:
        file = apsw.VFSFile("", os.path.realpath(path), [_FLAGS, 0])  # SQLite follows no link here
        try:
            size = file.xFileSize() if limit is None else min(limit, file.xFileSize())
            return b"".join(file.xRead(min(_AT_ONCE, size - at), at) for at in range(0, size, _AT_ONCE))
        finally:
            file.xClose()
    except apsw.Error as error:
        raise OSError(errno.EIO, str(error), path) from error
