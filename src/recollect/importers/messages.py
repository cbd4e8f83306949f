"""Messages of chat APIs: what the formats of OpenAI and Anthropic have in common.

A file is JSON (a list of messages, a conversation that is an object with such a list, or a list of conversations) or
JSON lines (a message or a conversation each). The text of a message is its content, exactly; nothing else of it is
left out: a name becomes the speaker, and what has no field of a record stays in its metadata under its own key, parts
that are not text under "parts". Only base64 is not kept beyond 1000 characters: it is a picture's or a sound's bytes,
and nobody can read it. What is told of a conversation as a whole stays with its first turn, under "conversation".

A turn has an id where its message has one, and always a position: its place in its list, damaged messages counted, so
that a longer list told again adds only the new turns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import tzinfo
from pathlib import Path
from typing import Any, NamedTuple

from recollect.errors import InvalidRecordError
from recollect.importers.base import (
    Damage,
    Item,
    SeenIds,
    UnreadableError,
    format_error,
    kind_of,
    parse_json,
    printable,
    read_text,
)
from recollect.importers.times import instant
from recollect.records.frozen import MAX_DEPTH
from recollect.records.record import Record

#: Longer base64 is not kept in metadata.
LONGEST_BASE64 = 1000
_BASE64 = re.compile(r"(data:[^,]{0,200};base64,)?([A-Za-z0-9+/_\-\r\n]+={0,2}\s*)")
#: So much of a thing that is no text is shown in the content of a message that has no text.
_SHOWN = 500
_TIMES = ("created_at", "timestamp", "create_time")
_TEXTS = ("text", "input_text", "output_text")
_IMAGES = ("image", "image_url", "input_image")
_NOTHING: tuple[Any, ...] = (None, "", [], {})


class Conversation(NamedTuple):
    """A conversation of the source: its messages, and what else is told of it."""

    name: str
    place: str
    messages: list[Any]
    about: dict[str, Any]


class Messages:
    """An importer of messages. A format says which keys it goes by; all else is the same for both."""

    name: str
    summary: str
    exact = False
    #: Keys of a conversation under which its messages may be, and those that name it, best first.
    lists: tuple[str, ...] = ("messages",)
    names: tuple[str, ...] = ("id", "conversation_id", "title")
    #: Keys of a message under which its author's role may be.
    roles: tuple[str, ...] = ("role",)

    def read(self, path: Path, zone: tzinfo) -> Iterator[Item | Damage]:
        text = read_text(path)
        try:
            found = self._in_json(path, parse_json(text))
        except UnreadableError as error:
            if not self._is_lines(text):
                raise format_error(path, "", str(error)) from None
            found = self._in_lines(path, text)
        taken: set[str] = set()
        for each in found:
            if isinstance(each, Damage):
                yield each
            else:
                yield from self._turns(each._replace(name=_untaken(each.name, taken)), zone)

    # Finding the conversations of a file

    def _in_json(self, path: Path, data: Any) -> Iterator[Conversation | Damage]:
        """The conversations of a JSON file. Raises: ImportFormatError, at once."""
        if self._is_message(data) or self._messages(data) is not None:
            # A file of JSON lines that has but one line so far must name its conversation as it will when it is longer.
            return self._among(path, [data], "line") if _holds_lines(path) else self._alone(path, data)
        if not isinstance(data, list):
            keys = " or ".join(f'"{key}"' for key in self.lists)
            raise format_error(path, "", f"must be a list of messages, or an object with a list of {keys}")
        if data and not any(self._is_message(each) or self._messages(each) is not None for each in data):
            raise format_error(path, "", "is a list, but neither of messages nor of conversations")
        return self._among(path, data, "message" if any(map(self._is_message, data)) else "conversation")

    def _is_lines(self, text: str) -> bool:
        """Whether a text that is not one JSON value is JSON lines: some of them may be damaged, not all."""
        if not text.lstrip().startswith("{"):
            return False
        for line in text.split("\n"):
            try:
                value = parse_json(line) if line.strip() else None
            except UnreadableError:
                continue
            if self._is_message(value) or self._messages(value) is not None:
                return True
        return False

    def _in_lines(self, path: Path, text: str) -> Iterator[Conversation | Damage]:
        lines: list[Any] = []
        numbers: list[int] = []
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            numbers.append(number)
            try:
                lines.append(parse_json(line))
            except UnreadableError as error:
                lines.append(Damage(f"line {number}", str(error)))
        return self._among(path, lines, "line", numbers)

    def _alone(self, path: Path, data: Any) -> Iterator[Conversation]:
        """A file that is one conversation, or one message."""
        yield self._conversation(data, _stem(path), "") or Conversation(_stem(path), "message", [data], {})

    def _among(
        self, path: Path, values: list[Any], word: str, numbers: list[int] | None = None
    ) -> Iterator[Conversation | Damage]:
        """Conversations and messages side by side; the messages are one conversation, named by the file."""
        loose = False
        for at, value in enumerate(values):
            conversation = self._conversation(value, f"{_stem(path)}#{at}", f"{word} {numbers[at] if numbers else at + 1}")
            if conversation is not None:
                yield conversation
            else:
                loose = True
        if loose:
            yield Conversation(_stem(path), "", values, {})
