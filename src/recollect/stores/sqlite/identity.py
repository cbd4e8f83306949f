"""Whether an open store's file is still the one at its path.

A file can be deleted, moved or replaced while it is open. SQLite does not notice, and what is written then goes into a
file that nobody finds again. So the file and its log are looked at by their numbers before a transaction, and again
before it is acknowledged; the file before each read, too, since a new connection would be to another file than the old.
A look costs 2 us.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

import apsw

from recollect.errors import DamagedStoreError, StoreReplacedError

_Identity = tuple[int, int]


class FileIdentity:
    """The place of an open store.

    writer  a connection to it that keeps its log where it is
    """

    def __init__(self, path: str, writer: apsw.Connection) -> None:
        self._path = path
        self._wal_path = writer.filename_wal  # beside the file itself, where the path is a link to it
        self._file = _identity(path)
        self._wal = _identity(self._wal_path)
        self._size = 0  # as it was last seen: a store does not shrink while it is open
        self._lost = ""

    def check_file(self) -> None:
        """Raises: StoreReplacedError; DamagedStoreError where the file has become shorter."""
        size = self._size  # before the look: another thread's, a moment later, may find a longer file
        try:
            facts = os.stat(self._path)
        except OSError as error:
            self._lose(error.strerror or str(error))
        else:
            # A store always has a page, so an empty file was emptied; opened again, its log would be deleted.
            if (facts.st_dev, facts.st_ino) != self._file or not facts.st_size or self._lost:
                self._lose("another file is there" if facts.st_size else "an empty file is there")
            if facts.st_size < size:  # SQLite would read zeros for what was cut off
                raise DamagedStoreError(self._path, f"the file was cut from {size} to {facts.st_size} bytes")
            if facts.st_size > size:
                self._size = facts.st_size

    def check(self, detail: str = "") -> None:
        """The file, and the log to which commits go. Raises: StoreReplacedError, DamagedStoreError."""
        try:
            self.check_file()
            if _identity(self._wal_path) != self._wal:
                self._lose("its log is not there")
        except StoreReplacedError as error:
            raise (StoreReplacedError(self._path, f"{error.args[1]}; {detail}") if detail else error) from None

    def _carry(self, connection: apsw.Connection) -> None:
        """Carry the log into our file, wherever it is: a file that has taken its place must not find it."""
        log = _identity(self._wal_path)
        with suppress(apsw.Error, OSError):
            if _identity(self._path) == self._file and (
                log not in (None, self._wal) or not os.stat(self._path).st_size
            ):
                return  # it is still there, but has another log, or was emptied: what that means is not for us to say
            pages, carried = connection.wal_checkpoint()
            if pages == carried and log == self._wal:
                os.unlink(self._wal_path)

    def _lose(self, why: str) -> None:
        # For good: else whoever puts another file there and takes it away again would go unnoticed.
        self._lost = self._lost or why
        raise StoreReplacedError(self._path, self._lost)

    def leave(self, connections: Iterable[apsw.Connection]) -> None:
        """Close the connections. Where the place is lost, what is there now is left alone."""
        connections = list(connections)
        try:
            self.check()
        except (StoreReplacedError, DamagedStoreError) as error:
            for connection in connections:
                with suppress(apsw.Error):
                    # The last one would delete whatever log is at the path, and that may be the new file's.
                    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            if isinstance(error, StoreReplacedError):  # what was cut is left for the rescue just as it is
                self._carry(connections[-1])
        for connection in connections:
            with suppress(apsw.Error):
                connection.close()


def _identity(path: str) -> _Identity | None:
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
