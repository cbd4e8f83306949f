"""Files of chat messages: the common part of the importers for OpenAI and Anthropic.

A file is JSON (a list of messages, an object with such a list, or a list of such objects) or JSON lines (a message or a
conversation in each line). `recollect.records.messages` reads the messages. Facts about a conversation as a whole are
stored with its first turn, under "conversation".

A turn always has a position, its index in the list including damaged messages, and an id if its message has one, so
that importing a longer version of a list adds only the new turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, NamedTuple

from recollect.arguments.checks import is_integer
from recollect.errors import InvalidRecordError
from recollect.importers.base import (
    Damage,
    Item,
    SeenIds,
    TurnImporter,
    UnreadFile,
    format_error,
    parse_json,
    read_text,
)
from recollect.importers.times import dated, time_of_conversation
from recollect.records.messages import Turn, UnreadableError, read_turns
from recollect.records.messages.parts import NOTHING, without_base64
from recollect.records.messages.turns import is_message
from recollect.records.record import Record
from recollect.text.unicode import nfc

_LINES_SUFFIXES = (".jsonl", ".ndjson")


class _Found(NamedTuple):
    """A value of the file that should be a message or a conversation, or a Damage, and its location."""

    place: str
    value: Any


class Messages(TurnImporter):
    """An importer of messages. Subclasses define the keys of a format."""

    name: str
    summary: str
    #: The keys of a conversation for its messages, its name (best first), and its system prompt.
    lists: tuple[str, ...] = ("messages",)
    names: tuple[str, ...] = ("id", "conversation_id", "title")
    system: str | None = None

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage | UnreadFile]:
        stem, ids = self.default_conversation or path.stem, SeenIds()
        text = read_text(path)
        try:
            data = parse_json(text)
        except UnreadableError as error:
            if not self._is_lines(text):
                raise format_error(path, "", str(error)) from None
            values = _lines(text)
        else:
            # A file of one JSON line must name its conversation as it will when it has more lines.
            if self._messages(data) is not None and path.suffix.lower() not in _LINES_SUFFIXES:
                yield from self._conversation(data, self._name(data)[1] or stem, "", ids, zone)
                return
            values = self._list(path, data)
        taken = {stem: 1}
        last: datetime | None = None

        def turns_of_loose() -> Iterator[Item | Damage]:
            nonlocal last
            for each in dated(_turns(loose, stem, ids, zone, start), None, last):
                last = each.fields.get("time", last) if isinstance(each, Item) else last
                yield each

        loose: list[_Found] = []  # messages of the conversation without a name of its own
        start = 0
        for number, found in enumerate(values):
            if self._messages(found.value) is None:
                start = start if loose else number
                loose.append(found)
                continue
            yield from turns_of_loose()
            loose = []
            name = untaken(self._name(found.value)[1] or f"{stem}#{number}", taken)
            yield from self._conversation(found.value, name, f"{found.place}, ", ids, zone)
        yield from turns_of_loose()

    # Finding conversations and messages

    def _messages(self, value: Any) -> list[Any] | None:
        """Return the messages of a conversation; None if the value is not a conversation."""
        if not isinstance(value, dict):
            return None
        return next((value[key] for key in self.lists if isinstance(value.get(key), list)), None)

    def _known(self, value: Any) -> bool:
        return is_message(value) or self._messages(value) is not None

    def _list(self, path: Path, data: Any) -> Iterator[_Found]:
        """Return the values of a JSON file. Raises ImportFormatError before the first is yielded."""
        if self._known(data):
            data = [data]
        if not isinstance(data, list):
            keys = " or ".join(f'"{key}"' for key in self.lists)
            raise format_error(path, "", f"must be a list of messages, or an object with a list of {keys}")
        first = next((value for value in data if self._known(value)), None)
        if data and first is None:
            for key, program, name in (("mapping", "ChatGPT", "chatgpt"), ("chat_messages", "Claude", "claude")):
                if any(isinstance(value, dict) and key in value for value in data):
                    raise format_error(path, "", f"is an export of {program}: import it with the format {name}")
            raise format_error(path, "", "is a list, but contains neither messages nor conversations")
        word = "message" if self._messages(first) is None else "conversation"
        return (_Found(f"{word} {number}", value) for number, value in enumerate(data, 1))

    def _is_lines(self, text: str) -> bool:
        """Return whether a text that is not one JSON value is JSON lines, of which some may be damaged."""
        return text.lstrip().startswith("{") and any(self._known(found.value) for found in _lines(text))

    def _name(self, conversation: dict[str, Any]) -> tuple[str, str]:
        """Return the key and the name of a conversation; empty texts if it has no name that is valid in a record."""
        for key in self.names:
            name = conversation.get(key)
            if is_integer(name, 1 - 2**63, 2**63 - 1):
                name = str(name)
            if isinstance(name, str) and can_name(name):
                return key, name
        return "", ""

    # Reading them

    def _conversation(
        self, conversation: dict[str, Any], name: str, place: str, ids: SeenIds, zone: tzinfo
    ) -> Iterator[Item | Damage]:
        messages = self._messages(conversation)
        assert messages is not None
        used = (self.system, self._name(conversation)[0])
        about = {
            key: value
            for key, value in conversation.items()
            if value is not messages and key not in used and value not in NOTHING
        }
        values = [_Found(f"{place}message {number}", message) for number, message in enumerate(messages, 1)]
        before = conversation.get(self.system) if self.system else None
        if before not in NOTHING:
            values.insert(0, _Found(f"{place}{self.system}", {"role": "system", "content": before}))
        turns = dated(_turns(values, name, ids, zone), time_of_conversation(conversation, zone))
        for turn in turns:
            if about and isinstance(turn, Item) and "conversation" not in turn.fields["metadata"]:
                turn.fields["metadata"]["conversation"] = without_base64(about)
                about = {}
            yield turn


def _turns(
    values: Iterable[_Found], conversation: str, ids: SeenIds, zone: tzinfo, start: int = 0
) -> Iterator[Item | Damage]:
    """Yield the turns of a conversation, whose first has the position `start`."""
    values = list(values)
    for position, (index, turn) in enumerate(read_turns([each.value for each in values], zone), start):
        place = values[index].place
        if isinstance(turn, Turn):
            try:
                place_in = {"conversation": conversation, "position": position}
                yield Item(namespace=None, fields=turn_fields(turn, conversation, ids) | place_in, place=place)
            except UnreadableError as error:
                yield Damage(place, str(error))
        else:
            yield values[index].value if isinstance(values[index].value, Damage) else Damage(place, str(turn))


def turn_fields(turn: Turn, conversation: str, ids: SeenIds) -> dict[str, Any]:
    """Return the fields of a turn, with an id if its message has one, and without its place in the conversation."""
    metadata = dict(turn.metadata)
    fields = {key: value for key, value in turn._asdict().items() if value is not None}
    return {**fields, **_own_id(metadata, conversation, ids), "kind": "conversation", "metadata": metadata}


def _lines(text: str) -> Iterator[_Found]:
    for number, line in enumerate(text.split("\n"), 1):
        place = f"line {number}"
        if line.strip():
            try:
                yield _Found(place, parse_json(line))
            except UnreadableError as error:
                yield _Found(place, Damage(place, str(error)))


def can_name(name: str) -> bool:
    """Return whether a text is valid as the name of a conversation."""
    try:
        Record(id="turn", content="turn", conversation=name)
    except InvalidRecordError:
        return False
    return bool(name.strip())


def untaken(name: str, taken: dict[str, int]) -> str:
    """Return `name`, with a counter if an earlier conversation of the file has it, and mark it as taken.

    >>> taken = {}; [untaken("New chat", taken) for _ in range(3)]
    ['New chat', 'New chat#2', 'New chat#3']
    """
    free = name = nfc(name)
    while free in taken:
        taken[name] += 1
        free = f"{name}#{taken[name]}"
    taken[free] = 1
    return free


def _own_id(rest: dict[str, Any], conversation: str, ids: SeenIds) -> dict[str, Any]:
    """Return the field "id" of a message that has one. A UUID is unique by itself, any other id in its conversation."""
    for key, before in (("uuid", ""), ("id", f"{conversation}/")):
        if isinstance(rest.get(key), str):
            return ids.own(before + rest.pop(key))
    return {}


# Messages of OpenAI's chat API: files of requests, of logs, and for fine-tuning.


class OpenAI(Messages):
    """`{"role", "content", "name", "tool_calls", ...}`; content is text, null, or a list of parts."""

    name = "openai"
    summary = "OpenAI: chat messages as JSON or JSON lines, fine-tuning files included"
