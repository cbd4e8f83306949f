"""WAL checkpoints of the SQLite store, off the write path.

Commits are appended to the WAL, and a checkpoint copies them into the file. After a complete checkpoint the WAL is
written from its start again. By default, SQLite runs the checkpoint inside whichever commit finds the WAL long. Here a
background thread runs it while writers continue; then it takes the write lock and copies the little that they wrote
meanwhile, so that the checkpoint is complete. Each checkpoint has its own thread. If the thread cannot start or does
not keep up, a commit runs the checkpoint, so the size of the WAL is bounded, except by readers whose snapshots it must
preserve.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

from recollect.stores.sqlite_base.checksums import connect
from recollect.stores.write_queue import Ticket, WriteQueue

_log = logging.getLogger("recollect")
#: Size of the WAL, in pages, at which a checkpoint starts, and the growth after which the next one starts.
PAGES = 1000
#: Size of the WAL, in pages, from which on a commit itself runs the checkpoint.
LONG = 8 * PAGES
#: A WAL that became longer, because a reader kept its snapshot, is truncated to this size when it is restarted: `LONG`
#: pages with their headers.
LONG_BYTES = LONG * (4096 + 24)

#: How long a checkpoint that empties the WAL waits for readers, in milliseconds. Writers wait meanwhile.
WAIT_MS = 100


class Checkpointer:
    """The checkpoints of one store.

    Args:
        path: The store's file.
        queue: The store's write queue.
        encrypted: Whether the file is encrypted. No key is needed to copy its pages, which are the same in the WAL.
    """

    def __init__(self, path: str, queue: WriteQueue, *, encrypted: bool = False) -> None:
        self._encrypted = encrypted
        self._path = path
        self._queue = queue
        self._pages = 0
        self._next = PAGES
        self._thread: threading.Thread | None = None
        self._connection: apsw.Connection | None = None
        self._concurrent = threading.Lock()  # held by the thread while it runs a checkpoint without the write lock
        self._closing = False

    def attach(self, writer: apsw.Connection) -> None:
        """Observe the size of the WAL through the writer's connection. This replaces SQLite's own checkpoints."""
        writer.set_wal_hook(self._wal_written)
        writer.execute(f"PRAGMA journal_size_limit = {LONG_BYTES}")

    def _wal_written(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def committed(self, writer: apsw.Connection) -> None:
        """Start a checkpoint if the WAL is long. Called after each commit, by the thread that has the write lock."""
        pages = self._pages
        if pages < PAGES:
            self._next = PAGES  # the WAL was restarted
        if self._closing or pages < min(self._next, LONG):
            return
        self._next = pages + PAGES
        if pages >= LONG or not self._start_thread():
            # An error (another process runs one, the disk is full) is ignored: a later commit tries again.
            with self._concurrent, suppress(apsw.Error):
                writer.wal_checkpoint()

    def truncate(self, writer: apsw.Connection, *, wait_ms: int = WAIT_MS) -> bool:
        """Copy the whole WAL into the file and empty it. Return False if a reader's snapshot prevents that.

        The caller must have the write lock.

        Args:
            writer: The connection that writes.
            wait_ms: How long to wait for readers, in milliseconds.
        """
        with self._concurrent:
            before = writer.pragma("busy_timeout")
            writer.set_busy_timeout(wait_ms)
            try:
                writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            except apsw.BusyError:
                return False
            finally:
                writer.set_busy_timeout(before)
        return True

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Run no checkpoint while a block runs. The caller must have the write lock."""
        with self._concurrent:
            yield

    def _start_thread(self) -> bool:
        """Start the thread if it does not run. Return False if it cannot be started."""
        if self._thread is None or not self._thread.is_alive():
            thread = threading.Thread(target=self._run, name="recollect-checkpoint", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # there are too many threads, or the interpreter is shutting down
                return False
            self._thread = thread
        return True

    def _run(self) -> None:
        ticket = Ticket(shares=False)
        try:
            if self._connection is None:
                self._connection = self._connected()
            with self._concurrent:
                self._connection.wal_checkpoint()
            self._queue.take(ticket)
            self._connection.wal_checkpoint()
        except apsw.Error as error:
            _log.debug("a checkpoint failed, a later one will try again: %s", error)
        finally:
            if ticket.has_lock:
                self._queue.release(ticket)

    def _connected(self) -> apsw.Connection:
        """Open a connection that has opened the WAL."""
        if not self._encrypted:
            connection = connect(self._path, apsw.SQLITE_OPEN_READWRITE)
            connection.execute("SELECT 1 FROM sqlite_schema").fetchall()  # makes SQLite open the WAL
            return connection
        connection = apsw.Connection(self._path, flags=apsw.SQLITE_OPEN_READWRITE)
        with suppress(apsw.CorruptError, apsw.NotADBError):  # it opens the WAL before it finds that it cannot read
            connection.execute("SELECT 1 FROM sqlite_schema").fetchall()
        return connection

    def close(self) -> None:
        """Start no further checkpoints, and wait for the current one. The caller must not have the write lock."""
        self._closing = True
        if self._thread is not None:
            self._thread.join()
        if self._connection is not None:
            self._connection.close()
