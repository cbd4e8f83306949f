"""Checkpoints of the SQLite store's log, off the write path.

Commits go to the write-ahead log, and a checkpoint carries them into the file; a log that was carried over whole is
written again from its start. SQLite would do that inside whichever commit finds the log long. Here a thread does it
beside the writers, and only the little that they wrote meanwhile is carried over in a turn of its own, so that the log
is whole then. The thread lives as long as one checkpoint. Where it cannot run, or does not keep up, a commit does the
work after all, so the log stays bounded (except by readers, whose moments it must keep).
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress

import apsw

from recollect.stores.sqlite.checksums import connect
from recollect.stores.write_queue import Ticket, WriteQueue

_log = logging.getLogger("recollect")
#: The log is carried over when it has so many pages, and again whenever it has grown by so many.
PAGES = 1000
#: A log of so many pages is carried over by the commit that finds it so long.
LONG = 8 * PAGES
#: A log that grew longer, because of a reader that stayed, is cut to so much when it is begun anew. (A page with its
#: header.)
LONG_BYTES = LONG * (4096 + 24)


class Checkpointer:
    """The checkpoints of one store.

    path    of its file
    turns   of its writers
    """

    def __init__(self, path: str, queue: WriteQueue) -> None:
        self._path = path
        self._queue = queue
        self._pages = 0
        self._next = PAGES
        self._thread: threading.Thread | None = None
        self._connection: apsw.Connection | None = None
        self._beside = threading.Lock()  # held by the thread while it is at it beside the writers
        self._closing = False

    def attach(self, writer: apsw.Connection) -> None:
        """Be told by the writer's connection how long the log is, in place of SQLite's own checkpoints."""
        writer.set_wal_hook(self._note)
        writer.execute(f"PRAGMA journal_size_limit = {LONG_BYTES}")

    def _note(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def committed(self, writer: apsw.Connection) -> None:
        """See to the log. Called after a commit, by the thread whose turn it is."""
        pages = self._pages
        if pages < PAGES:
            self._next = PAGES  # it was begun anew
        if self._closing or pages < min(self._next, LONG):
            return
        self._next = pages + PAGES
        if pages >= LONG or not self._started():
            with self._beside, suppress(apsw.Error):  # another process is at it, or the disk is full: the next tries
                writer.wal_checkpoint()

    def _started(self) -> bool:
        """Whether a thread is at it."""
        if self._thread is None or not self._thread.is_alive():
            thread = threading.Thread(target=self._run, name="recollect-checkpoint", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no more threads, or the interpreter is at its end
                return False
            self._thread = thread
        return True

    def _run(self) -> None:
        ticket = Ticket(shares=False)
        try:
            if self._connection is None:
                self._connection = connect(self._path, apsw.SQLITE_OPEN_READWRITE)
                self._connection.execute("SELECT 1 FROM sqlite_schema").fetchall()  # now it knows of the log
            with self._beside:
                self._connection.wal_checkpoint()
            self._queue.take(ticket)
            self._connection.wal_checkpoint()
        except apsw.Error as error:
            _log.debug("a checkpoint is left to the next one: %s", error)
        finally:
            if ticket.has_lock:
                self._queue.release(ticket)

    def close(self) -> None:
        """Begin no more, and wait for the one under way. Must not be called by whoever holds the turn."""
        self._closing = True
        if self._thread is not None:
            self._thread.join()
        if self._connection is not None:
            self._connection.close()
