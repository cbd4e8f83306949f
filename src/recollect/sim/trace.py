"""The trace of a run: one JSON object a line, with sorted keys and no spaces. The same run gives the same bytes.

The first line describes the scenario. Messages are written with their text, since validators read them. What happens
to memory is written with keys, sizes, scores, times and versions, and never with a value.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TextIO

from recollect.arguments.checks import is_integer, is_number
from recollect.errors import ImportFormatError, InvalidArgumentError, StoreIOError
from recollect.sim.tasks.base import Chat

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


# Recordings of a chat model: what it was asked, as a hash, and what it answered.
#
# `Recorder` asks a model and writes its answers to a file; `RecordedModel` gives them again without the model. A
# question that was asked several times has several answers, which come in the same order.


def _hash(messages: list[dict[str, str]]) -> str:
    return sha256(json.dumps(messages, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()


class Recorder:
    """Asks a model, and writes each answer to a file, in place of a former recording.

    Args:
        chat: The model.
        path: The file, with one JSON object a line.
    """

    def __init__(self, chat: Chat, path: str | Path) -> None:
        self._chat = chat
        self._path = Path(path)
        self._mode: Literal["w", "a"] = "w"

    def __call__(self, messages: list[dict[str, str]]) -> str:
        """Return the answer of the model.

        Raises:
            InvalidArgumentError: It answered with something else than a text.
        """
        reply = self._chat(messages)
        if not isinstance(reply, str):
            raise InvalidArgumentError("chat", reply, "must return a text")
        with self._path.open(self._mode, encoding="utf-8", newline="\n") as file:
            file.write(json.dumps({"messages": _hash(messages), "reply": reply}, sort_keys=True) + "\n")
        self._mode = "a"
        return reply


class RecordedModel:
    """Answers as the recorded model did.

    Args:
        path: The file of a `Recorder`.

    Raises:
        ImportFormatError: The file cannot be read, or is no recording.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = str(path)
        self._replies: dict[str, list[str]] = {}
        self._asked: Counter[str] = Counter()
        try:
            lines = Path(path).read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ImportFormatError(self._path, "", f"cannot be read: {error}") from None
        for number, line in enumerate(lines, 1):
            asked, reply = _line_of(self._path, number, line)
            self._replies.setdefault(asked, []).append(reply)

    def __call__(self, messages: list[dict[str, str]]) -> str:
        """Return the recorded answer; after the last one of a question, the last one again.

        Raises:
            InvalidArgumentError: This was not asked when the recording was made.
        """
        asked = _hash(messages)
        replies = self._replies.get(asked)
        if replies is None:
            raise InvalidArgumentError("messages", messages, f"is not in the recording {self._path}: record it again")
        self._asked[asked] += 1
        return replies[min(self._asked[asked], len(replies)) - 1]


def _line_of(path: str, number: int, line: str) -> tuple[str, str]:
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    match found:
        case {"messages": str(asked), "reply": str(reply)}:
            return asked, reply
    raise ImportFormatError(path, f"line {number}", "is not an answer of a recording")
