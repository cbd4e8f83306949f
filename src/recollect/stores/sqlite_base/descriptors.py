"""Reading a file beside SQLite without dropping the locks of this process.

SQLite locks a file with POSIX locks. These belong to the process and the file, and the system drops all of them when
the process closes any descriptor of the file, whatever opened it. Then another process takes the file for unused: it
could replace the WAL of a store that is open, and acknowledged commits would be lost. So connections are counted for
each file, and a descriptor of a file that has one is kept until the last of them is closed.

Source:
    https://www.sqlite.org/howtocorrupt.html, section 2.2.
"""

from __future__ import annotations

import os
import threading

import apsw

_File = tuple[int, int]  # device and inode


class _Open:
    """A file that is open through SQLite: the number of connections, and descriptors that were opened beside them."""

    def __init__(self) -> None:
        self.connections = 0
        self.descriptors: list[int] = []


_files: dict[_File, _Open] = {}
#: Held while a file is opened and closed, so that no connection is opened in between. Reentrant, because the garbage
#: collector may close a connection at any time.
_lock = threading.RLock()


class Connection(apsw.Connection):
    """A connection that is counted while it is open. `file` is the path of the file, which must exist."""

    def __init__(self, name: str, *, file: str, flags: int, vfs: str | None) -> None:
        self._file: _File | None = None
        with _lock:
            self._file = _begin(file)
            try:
                super().__init__(name, flags=flags, vfs=vfs)
            except BaseException:
                self._end()
                raise

    def close(self, force: bool = False) -> None:
        """Close the connection."""
        super().close(force)
        self._end()

    def __del__(self) -> None:
        # SQLite's own connection is closed right after this. That closes all its descriptors, as the last one does.
        self._end()

    def _end(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with _lock:
                entry = _files[file]
                entry.connections -= 1
                if not entry.connections:
                    del _files[file]
                    for each in entry.descriptors:
                        os.close(each)


def _begin(path: str) -> _File | None:
    try:
        facts = os.stat(path)
    except OSError:  # SQLite will create the file, or report that it cannot
        return None
    file = (facts.st_dev, facts.st_ino)
    _files.setdefault(file, _Open()).connections += 1
    return file


def read(path: str, limit: int = -1) -> bytes:
    """Return the bytes of a file, at most the first `limit`; -1 means all. Raise OSError if it cannot be read."""
    with _lock:
        facts = os.stat(path)
        entry = _files.get((facts.st_dev, facts.st_ino))
        if entry is not None and entry.descriptors:
            return _read_from_start(entry.descriptors[0], limit)
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
        try:
            facts = os.fstat(descriptor)  # the path may have another file meanwhile
            entry = _files.get((facts.st_dev, facts.st_ino))
            return _read_from_start(descriptor, limit)
        finally:
            if entry is None:
                os.close(descriptor)
            else:
                entry.descriptors.append(descriptor)


def _read_from_start(descriptor: int, limit: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read(limit)
