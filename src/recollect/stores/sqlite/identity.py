"""Detection of a store whose file was deleted, moved or replaced while it is open.

SQLite does not notice this, and later writes would go into a file that is no longer at the path. The device and inode
numbers of the file and its WAL are therefore compared before a transaction, and again before it is acknowledged. Those
of the file are also compared before each read, because a new connection would open another file than the old ones. Each
comparison costs 2 us.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress

import apsw

from recollect.errors import DamagedStoreError, NotAStoreError, StoreChangedError, StoreError, StoreReplacedError
from recollect.stores.sqlite.header import has_all_pages

_Identity = tuple[int, int]
#: File systems store the time of a change in steps of up to two seconds.
_STEP_S = 2.0


class FrozenFile:
    """The state of a file that SQLite reads as immutable: without locks, without its WAL, and with a cache.

    That is correct only while no process writes to it. A writer first creates a WAL, and changes the file only when it
    checkpoints. So an answer is valid if there was no WAL and the file was the same before it was opened and after the
    answer was read. After a change, pages in caches and indexes may be of several states, so the error is permanent.

    Args:
        path: The file. If it was changed within the last two seconds, this waits until they are over, because another
            change within the same step of the clock could not be detected.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._wal_path = os.path.realpath(path) + "-wal"
        while 0.0 <= (age := time.time() - os.stat(path).st_mtime) < _STEP_S:
            time.sleep(_STEP_S - age)
        self._facts = self._read()
        self._changed = False

    def _read(self) -> tuple[int, int, int, int]:
        facts = os.stat(self._path)
        return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns

    def check(self) -> None:
        """Check that nothing was written since the file was opened.

        Raises:
            StoreChangedError: Something was, now or before an earlier check.
        """
        with suppress(FileNotFoundError):
            self._changed = self._changed or os.stat(self._wal_path).st_size > 0
        try:
            self._changed = self._changed or self._read() != self._facts
        except OSError:
            self._changed = True
        if self._changed:
            raise StoreChangedError(self._path, "")


class FileIdentity:
    """The identity of an open store's file and WAL.

    Args:
        path: The file.
        writer: A connection to it, which keeps the WAL open.
    """

    def __init__(self, path: str, writer: apsw.Connection) -> None:
        self._path = path
        self._wal_path = writer.filename_wal  # if the path is a symbolic link, the WAL is next to the file it points to
        self._file = _identity(path)
        self._wal = _identity(self._wal_path)
        self._size = 0  # largest size seen since it was compacted
        self._lost = ""

    def check_file(self) -> None:
        """Check the file.

        Raises:
            StoreReplacedError: It is not the same file.
            DamagedStoreError: It was cut.
            StoreIOError: It has become shorter, and its header cannot be read.
        """
        size = self._size  # read before `stat`: another thread may see a longer file meanwhile
        try:
            facts = os.stat(self._path)
        except OSError as error:
            self._fail(error.strerror or str(error))
        else:
            # A store always has a page, so an empty file was truncated. If it were opened again, its WAL would be lost.
            if (facts.st_dev, facts.st_ino) != self._file or not facts.st_size or self._lost:
                self._fail("the path has another file" if facts.st_size else "the path has an empty file")
            if facts.st_size < size and not self._is_compacted():  # SQLite would read the rest as zeros
                raise DamagedStoreError(self._path, f"the file was cut from {size} to {facts.st_size} bytes")
            if facts.st_size != size:
                self._size = facts.st_size

    def _is_compacted(self) -> bool:
        """Return whether a file that has become shorter has all of its pages, as its header states.

        Raises:
            StoreIOError: The header cannot be read.
        """
        try:
            return has_all_pages(self._path)
        except NotAStoreError:
            return False

    def check(self, detail: str = "") -> None:
        """Check the file and the WAL.

        Args:
            detail: Added to the message of a StoreReplacedError.

        Raises:
            StoreReplacedError: One of them is not the same file.
            DamagedStoreError: The file has become shorter.
        """
        try:
            self.check_file()
            if _identity(self._wal_path) != self._wal:
                self._fail("its WAL is missing or another file")
        except StoreReplacedError as error:
            raise (StoreReplacedError(self._path, f"{error.args[1]}; {detail}") if detail else error) from None

    def _checkpoint(self, connection: apsw.Connection) -> None:
        """Checkpoint the WAL into the open file, wherever that is now, so that no other file can use the WAL."""
        wal = _identity(self._wal_path)
        with suppress(apsw.Error, OSError):
            if _identity(self._path) == self._file and (
                wal not in (None, self._wal) or not os.stat(self._path).st_size
            ):
                return  # the file is the same, but it has another WAL or was emptied: leave both unchanged
            pages, checkpointed = connection.wal_checkpoint()
            if pages == checkpointed and wal == self._wal:
                os.unlink(self._wal_path)

    def _fail(self, why: str) -> None:
        # Permanent: a file that is replaced and then put back must be reported too.
        self._lost = self._lost or why
        raise StoreReplacedError(self._path, self._lost)

    def close(self, connections: Iterable[apsw.Connection]) -> None:
        """Close the connections. If the file was replaced, the one at the path now is not touched."""
        connections = list(connections)
        try:
            self.check()
        except StoreError as error:
            for connection in connections:
                with suppress(apsw.Error):
                    # The last one to close would delete the WAL at the path, which may be that of the new file.
                    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            if isinstance(error, StoreReplacedError):  # a file that was cut is left unchanged, for a rescue
                self._checkpoint(connections[-1])
        for connection in connections:
            with suppress(apsw.Error):
                connection.close()


def _identity(path: str) -> _Identity | None:
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
