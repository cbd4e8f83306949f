"""Lines of a byte stream, with bounded memory: of a line that is too long only its length is known."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice

from recollect import Export
from recollect.common.deadlines import check, within
from recollect.errors import ClosedError
from recollect.wire import encode, record_json


class LineSplitter:
    """Splits a stream into lines.

    Args:
        longest: Maximum length of a line in bytes, without its end.

    Attributes:
        size: Number of bytes of the unfinished line that are in memory.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._skipping = False
        self.size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """Yield the lines that a chunk completes, without their ends; None for one that is too long.

        >>> list(LineSplitter(5).feed(b"one" + bytes([10]) + b"too long" + bytes([13, 10])))
        [b'one', None]
        """
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            line = None if self._skipping or self.size + len(part) > self._longest + 1 else self._joined(part)
            self._parts, self.size, self._skipping = [], 0, False
            yield line if line is None or len(line) <= self._longest else None
        if self._skipping or not rest:
            return
        self.size += len(rest)
        if self.size > self._longest + 1:
            self.skip()
        else:
            self._parts.append(rest)

    def skip(self) -> None:
        """Drop what there is of the unfinished line, and the rest of it."""
        self._parts, self.size, self._skipping = [], 0, True

    def _joined(self, part: bytes) -> bytes:
        return b"".join((*self._parts, part)).removesuffix(b"\r")


# Exports of clients: a snapshot that is read in pages, in any thread, and closed while a page may be read.

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
