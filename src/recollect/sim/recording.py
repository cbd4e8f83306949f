"""Recordings of a chat model: what it was asked, as a hash, and what it answered.

`Recorder` asks a model and writes its answers to a file; `RecordedModel` gives them again without the model. A question
that was asked several times has several answers, which come in the same order.
"""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from recollect.errors import ImportFormatError, InvalidArgumentError
from recollect.sim.tasks.base import Chat


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
