"""Exports of clients: a snapshot that is read in pages, in any thread, and closed while a page may be read."""

from __future__ import annotations

import threading
from itertools import islice

from recollect import Export
from recollect.common.deadlines import check, within
from recollect.errors import ClosedError
from recollect.wire import encode, record_json

#: Maximum number of records of a page, and the size from which on none is added, in bytes.
_RECORDS, _BYTES = 200, 256 * 2**10


class ExportPages:
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

    def read(self) -> list[bytes]:
        """Return the JSON of the next records, none at the end.

        Raises:
            ClosedError: The export was closed.
            DeadlineError: The deadline was over before. No record was read.
        """
        out: list[bytes] = []
        size = 0
        check()
        with self._lock, within(None):  # a page that is cut off could not be read again
            if self._closed:
                raise ClosedError("the export")
            for record in islice(self._export.records, _RECORDS):
                out.append(encode(record_json(record)))
                size += len(out[-1])
                if size >= _BYTES:
                    break
        return out

    def close(self) -> None:
        """Release the snapshot, after the page that is being read."""
        with self._lock:
            self._closed = True
            self._export.close()
