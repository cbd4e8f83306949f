"""The trace of a run: one JSON object a line, with sorted keys and no spaces. The same run gives the same bytes.

The first line describes the scenario. Messages are written with their text, since validators read them. What happens
to memory is written with keys, sizes, scores, times and versions, and never with a value.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from recollect.arguments.checks import is_integer, is_number
from recollect.errors import ImportFormatError, StoreIOError

#: The kinds of events of memory.
MEMORY_KINDS = (
    "written",
    "read",
    "recalled",
    "notified",
    "cas_failed",
    "forgotten",
    "evicted",
    "expired",
    "hung",
    "not_forgotten",
)
#: The kinds of events of messages.
MESSAGE_KINDS = ("send", "broadcast", "receive", "dropped")
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class TraceWriter:
    """Writes events to a file, and counts them.

    Args:
        file: Where to write; None: nowhere, events are only counted.
    """

    def __init__(self, file: TextIO | None) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.counts: Counter[str] = Counter()

    def record(self, kind: str, agent: str, ts: float, **fields: Any) -> None:
        """Write an event of an agent at a time."""
        self.counts[kind] += 1
        if self._file is not None:
            self._write({"kind": kind, "agent": agent, "ts": ts, **fields})

    def header(self, **fields: Any) -> None:
        """Write the first line, which describes the scenario."""
        if self._file is not None:
            self._write({"kind": "scenario", "ts": 0.0, **fields})

    @property
    def sha256(self) -> str:
        """The hash of what was written, in hexadecimal digits; "" if nothing was to be written."""
        return "" if self._file is None else self._hash.hexdigest()

    def _write(self, event: dict[str, Any]) -> None:
        line = _encode(event) + "\n"
        self._hash.update(line.encode("ascii"))
        if self._file is not None:
            try:
                self._file.write(line)
            except OSError as error:
                raise StoreIOError(getattr(self._file, "name", "the trace"), error.strerror or str(error)) from error


def read_trace(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a trace, the header first.

    Raises:
        ImportFormatError: The file cannot be read, or a line is no event.
    """
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                yield _event_of(str(path), number, line)
    except UnicodeDecodeError:
        raise ImportFormatError(str(path), "", "is not UTF-8 text") from None
    except OSError as error:
        raise ImportFormatError(str(path), "", f"cannot be read: {error.strerror or error}") from None


def _event_of(path: str, number: int, line: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict) or not isinstance(event.get("kind"), str):
        raise ImportFormatError(path, f"line {number}", "is not an event of a trace")
    time, size = event.get("ts"), event.get("size", 0)
    if not is_number(time, 0) or time == float("inf"):
        raise ImportFormatError(path, f"line {number}", "is an event without a time, ts")
    if not is_integer(size, 0):
        raise ImportFormatError(path, f"line {number}", "has a size that is no number of bytes")
    return event
