"""Exports of clients: a snapshot that is read in pages, in any thread, and closed while a page may be read."""

from __future__ import annotations

import threading
from itertools import islice

from recollect import Export, Record
from recollect.errors import ClosedError


class Pages:
    """The records of an export, page by page. Thread-safe.

    Args:
        export: The export.

    Attributes:
        root: Its root.
        count: The number of its records.
    """

    def __init__(self, export: Export) -> None:
        self.root = export.root
        self.count = export.count
        self._export = export
        self._closed = False
        self._lock = threading.Lock()

    def read(self, count: int) -> list[Record]:
        """Return the next records, none at the end.

        Raises:
            ClosedError: The export was closed.
        """
        with self._lock:
            if self._closed:
                raise ClosedError("the export")
            return list(islice(self._export.records, count))

    def close(self) -> None:
        """Release the snapshot, after the page that is being read."""
        with self._lock:
            self._closed = True
            self._export.close()
