"""Lines of a byte stream, with bounded memory: of a line that is too long only its length is known."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from itertools import islice
from typing import Any

from recollect import Export, Record
from recollect.common.deadlines import check, within
from recollect.errors import ClosedError, ProtocolError, ServerBusyError
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

    Attributes:
        head: The root and the number of its records, and of each other part.
        parts: The names of the other parts.
    """

    def __init__(self, export: Export) -> None:
        others = [{"name": each.name, "root": each.root, "count": each.count} for each in export.parts]
        self.head = {"root": export.root, "count": export.count, "parts": others}
        self.parts = [each.name for each in export.parts]
        self._records: dict[str | None, Iterator[Record]] = {each.name: each.records for each in export.parts}
        self._records[None] = export.records
        self._export = export
        self._closed = False
        self._lock = threading.Lock()

    def read(self, part: str | None = None) -> list[bytes]:
        """Return the JSON of the next records, or of those of another part; none at the end.

        Raises:
            ProtocolError: There is no such part.
            ClosedError: The export was closed.
            DeadlineError: The deadline was over before. No record was read.
        """
        if part is not None and part not in self.parts:  # of any type
            raise ProtocolError(f'"part" must be one of {", ".join(self.parts)}')
        out: list[bytes] = []
        size = 0
        check()
        with self._lock, within(None):  # a page that is cut off could not be read again
            if self._closed:
                raise ClosedError("the export")
            for record in islice(self._records[part], _RECORDS):
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


# Answers that clients have not read yet: how many bytes of them are in memory, and clients that do not read.
#
# A large answer stays in memory until its client has read it. So the bytes of such answers are limited, for one client
# and for all: beyond that, the answer to a read is refused. A client that reads too slowly is cut off.

#: Answers up to this size are not counted: the buffers of connections have as much.
SMALL = 64 * 2**10
#: Number of bytes of large answers that one client has not read, and that all together have not.
MOST_EACH, MOST = 16 * 2**20, 64 * 2**20
#: Seconds in which a client must read `SMALL` bytes, or all that there are.
READ_S = 30.0


class Unread:
    """Counts what clients have not read. For one thread.

    Attributes:
        most_each: Maximum number of bytes of one client. A client that has read all may have one larger answer.
        most: Maximum number of bytes of all clients.
        total: Number of bytes of all clients.
    """

    def __init__(self, most_each: int = MOST_EACH, most: int = MOST) -> None:
        self.most_each, self.most = most_each, most
        self.total = 0
        self._of: Counter[Hashable] = Counter()

    def check(self, client: Hashable, size: int) -> None:
        """Raise ServerBusyError if there is no room for another answer of a client."""
        if size > SMALL and self._of[client] and self._of[client] + size > self.most_each:
            raise ServerBusyError(f"its client has not read {self._of[client]} bytes of earlier answers", 1.0)
        if size > SMALL and self.total and self.total + size > self.most:
            raise ServerBusyError(f"clients have not read {self.total} bytes of answers", 1.0)

    def add(self, client: Hashable, size: int) -> int:
        """Count an answer, unless it is small, and return what is counted, for `remove`."""
        counted = size if size > SMALL else 0
        self._of[client] += counted
        self.total += counted
        return counted

    def remove(self, client: Hashable, counted: int) -> None:
        """Note that an answer was read, or its client is gone."""
        self.total -= counted
        self._of[client] -= counted
        if not self._of[client]:
            del self._of[client]


class SlowReader:
    """Cuts off a client that does not read.

    Args:
        transport: Its connection.
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._looks: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Begin to watch: more is unread than the connection's buffer should have."""
        self.end()
        unread = self._transport.get_write_buffer_size()

        def look() -> None:
            if self._transport.get_write_buffer_size() > unread - SMALL:
                self._transport.abort()
            else:
                self.begin()

        self._looks = asyncio.get_running_loop().call_later(READ_S, look)

    def end(self) -> None:
        """Watch no more."""
        if self._looks is not None:
            self._looks.cancel()
            self._looks = None
