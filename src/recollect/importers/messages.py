"""Messages of chat APIs: the common part of the importers for OpenAI and Anthropic.

A file is JSON (a list of messages, an object with such a list, or a list of such objects) or JSON lines (a message or a
conversation in each line). The content of a record is the exact text of a message. Everything else is preserved: a name
becomes the speaker; what has no field in a record goes to the metadata under its own key, and parts that are not text
go under "parts". Only base64 data of more than 1000 characters (pictures, sound) is omitted. Facts about a conversation
as a whole are stored with its first turn, under "conversation".

A turn always has a position, its index in the list including damaged messages, and an id if its message has one, so
that importing a longer version of a list adds only the new turns.
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
    read_text,
)
from recollect.importers.times import instant
from recollect.records.frozen import MAX_DEPTH
from recollect.records.record import Record

#: Maximum number of characters of base64 data that is stored.
LONGEST_BASE64 = 1000
_BASE64 = re.compile(r"(data:[^,]{0,200};base64,)?([A-Za-z0-9+/_\-\r\n]+=*\s*)")
#: Maximum characters that describe the other parts in the content of a message without text. Metadata has all of it.
_SHOWN = 500
_LINES_SUFFIXES = (".jsonl", ".ndjson")
_TIMES = ("created_at", "timestamp", "create_time")
_TEXTS = ("text", "input_text", "output_text")
_TOOL_RESULT = "tool_result"
_NOTHING: tuple[Any, ...] = (None, "", [], {})
#: Names of parts in the content of a message without text; other parts are named by their type.
_CALLED = {"image_url": "image", "input_image": "image", "input_audio": "audio", "input_file": "file"}


class _Found(NamedTuple):
    """A value of the file that should be a message or a conversation, or a Damage, and its location."""

    place: str
    value: Any


class Messages:
    """An importer of messages. Subclasses define the keys of a format."""

    name: str
    summary: str
    exact = False
    #: The keys of a conversation for its messages, its name (best first), and its system prompt.
    lists: tuple[str, ...] = ("messages",)
    names: tuple[str, ...] = ("id", "conversation_id", "title")
    system: str | None = None
    #: The keys of a message for its role, and roles that have another name here.
    roles: tuple[str, ...] = ("role",)
    other_roles: Mapping[str, str] = {}

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage]:
        stem, ids = path.stem, SeenIds()
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
        for number, (place, value) in enumerate(values):
            if isinstance(value, Damage):
                yield value
            elif self._messages(value) is not None:
                name = _untaken(self._name(value)[1] or f"{stem}#{number}", taken)
                yield from self._conversation(value, name, f"{place}, ", ids, zone)
            else:
                yield self._turn(value, stem, number, place, ids, zone)

    # Finding conversations and messages

    def _is_message(self, value: Any) -> bool:
        return isinstance(value, dict) and any(key in value for key in self.roles)

    def _messages(self, value: Any) -> list[Any] | None:
        """Return the messages of a conversation; None if the value is not a conversation."""
        if not isinstance(value, dict):
            return None
        return next((value[key] for key in self.lists if isinstance(value.get(key), list)), None)

    def _known(self, value: Any) -> bool:
        return self._is_message(value) or self._messages(value) is not None

    def _list(self, path: Path, data: Any) -> Iterator[_Found]:
        """Return the values of a JSON file. Raises ImportFormatError before the first is yielded."""
        if self._known(data):
            data = [data]
        if not isinstance(data, list):
            keys = " or ".join(f'"{key}"' for key in self.lists)
            raise format_error(path, "", f"must be a list of messages, or an object with a list of {keys}")
        first = next((value for value in data if self._known(value)), None)
        if data and first is None:
            raise format_error(path, "", "is a list, but contains neither messages nor conversations")
        word = "message" if self._messages(first) is None else "conversation"
        return (_Found(f"{word} {number}", value) for number, value in enumerate(data, 1))

    def _is_lines(self, text: str) -> bool:
        """Whether a text that is not one JSON value is JSON lines, of which some may be damaged."""
        return text.lstrip().startswith("{") and any(self._known(found.value) for found in _lines(text))

    def _name(self, conversation: dict[str, Any]) -> tuple[str, str]:
        """Return the key and the name of a conversation; empty texts if it has no name that is valid in a record."""
        for key in self.names:
            name = conversation.get(key)
            if isinstance(name, int) and not isinstance(name, bool) and abs(name) < 2**63:
                name = str(name)
            if isinstance(name, str) and _can_name(name):
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
            if value is not messages and key not in used and value not in _NOTHING
        }
        values = [_Found(f"{place}message {number}", message) for number, message in enumerate(messages, 1)]
        before = conversation.get(self.system) if self.system else None
        if before not in _NOTHING:
            values.insert(0, _Found(f"{place}{self.system}", {self.roles[0]: "system", "content": before}))
        for position, each in enumerate(values):
            turn = self._turn(each.value, name, position, each.place, ids, zone)
            if about and isinstance(turn, Item) and "conversation" not in turn.fields["metadata"]:
                turn.fields["metadata"]["conversation"] = _without_base64(about)
                about = {}
            yield turn

    def _turn(
        self, message: Any, conversation: str, position: int, place: str, ids: SeenIds, zone: tzinfo
    ) -> Item | Damage:
        try:
            fields = self._fields(message, conversation, ids, zone)
        except UnreadableError as error:
            return Damage(place, str(error))
        return Item(namespace=None, fields=fields | {"conversation": conversation, "position": position}, place=place)

    def _fields(self, message: Any, conversation: str, ids: SeenIds, zone: tzinfo) -> dict[str, Any]:
        if not isinstance(message, dict):
            raise UnreadableError(f"is {kind_of(message)}, not an object")
        rest = {key: value for key, value in message.items() if value not in _NOTHING}
        role = next((rest.pop(key) for key in self.roles if key in rest), None)
        if not isinstance(role, str):
            raise UnreadableError("has no role" if role is None else f"its role is {kind_of(role)}, not text")
        fields: dict[str, Any] = {"kind": "conversation", "role": self.other_roles.get(role, role)}
        if "name" in rest:
            fields["speaker"] = rest.pop("name")
        stamp = next((key for key in _TIMES if key in rest), None)
        if stamp is not None:
            fields["time"] = instant(rest.pop(stamp), zone)
        texts, others = _split(rest.pop("content", None))
        # Anthropic's exports have a text next to the content from which it was made. If the text has more, store both.
        if isinstance(rest.get("text"), str) and (not texts or rest["text"].strip() == "\n".join(texts).strip()):
            texts = texts or _nonblank(rest["text"])
            del rest["text"]
        if not texts and others and all(part.get("type") == _TOOL_RESULT for part in others):
            # The API has no role for tools: their results have the role "user".
            fields["role"] = "tool"
            texts = [text for part in others for text in _split(part.get("content"))[0]]
        fields["content"] = "\n".join(texts) or _stand_in(others, rest)
        fields |= _own_id(rest, conversation, ids)
        if others:
            rest["parts"] = others + _listed(rest.get("parts"))
        fields["metadata"] = _without_base64(rest)
        return fields


def _lines(text: str) -> Iterator[_Found]:
    for number, line in enumerate(text.split("\n"), 1):
        place = f"line {number}"
        if line.strip():
            try:
                yield _Found(place, parse_json(line))
            except UnreadableError as error:
                yield _Found(place, Damage(place, str(error)))


def _can_name(name: str) -> bool:
    try:
        Record(id="turn", content="turn", conversation=name)
    except InvalidRecordError:
        return False
    return bool(name.strip())


def _untaken(name: str, taken: dict[str, int]) -> str:
    """Return `name`, with a counter if an earlier conversation of the file has it, and mark it as taken.

    >>> taken = {}; [_untaken("New chat", taken) for _ in range(3)]
    ['New chat', 'New chat#2', 'New chat#3']
    """
    free = name
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


def _split(content: Any) -> tuple[list[str], list[dict[str, Any]]]:
    """Split content into its texts and its other parts, which include the further keys of text parts."""
    if content is None:
        return [], []
    texts: list[str] = []
    others: list[dict[str, Any]] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            part = {"type": "text", "text": part}
        if not isinstance(part, dict):
            what = "its content" if part is content else "a part of its content"
            raise UnreadableError(f"{what} is {kind_of(part)}, not text")
        kind = part.get("type", "text")
        if kind not in _TEXTS:
            others.append(part)
            continue
        text = part.get("text")
        beside = {key: value for key, value in part.items() if key not in ("type", "text") and value not in _NOTHING}
        if isinstance(text, dict):  # stored messages of OpenAI: {"value", "annotations"}
            beside |= {key: value for key, value in text.items() if key != "value" and value not in _NOTHING}
            text = text.get("value")
        if text is not None and not isinstance(text, str):
            raise UnreadableError(f"a text of its content is {kind_of(text)}, not text")
        texts += _nonblank(text or "")
        if beside:
            others.append({"type": kind, **beside})
    return texts, others


def _nonblank(text: str) -> list[str]:
    """Return the text in a list, or an empty list if it is blank."""
    return [text] if text.strip() else []


def _stand_in(others: list[dict[str, Any]], rest: dict[str, Any]) -> str:
    """Describe a message without text in one line. Raises UnreadableError if it has no other parts."""
    labels = [_label(part) for part in others]
    for key in ("tool_calls", "function_call"):
        labels += [_label({"type": "tool_call", "call": call}) for call in _listed(rest.get(key))]
    for key in ("refusal", "audio"):
        if key in rest:
            labels.append(_label({"type": key, key: rest[key]}))
    for key in ("attachments", "files"):
        labels += [_label({"type": "file", "file": file}) for file in _listed(rest.get(key))]
    if not labels:
        raise UnreadableError("has no content")
    return " ".join(labels)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _label(part: dict[str, Any]) -> str:
    """Describe a part: `[calls get_weather {"city": "Oslo"}]`, `[image]`, `[refusal: I cannot help with that]`."""
    kind = part.get("type")
    kind = kind if isinstance(kind, str) and kind.strip() else "part"
    if kind in ("tool_call", "tool_use", "server_tool_use", "mcp_tool_use"):
        call = part.get("call", part)
        call = call if isinstance(call, dict) else {"input": call}
        # OpenAI nests the name and arguments under the kind of tool.
        inner = next((call[key] for key in ("function", "custom") if isinstance(call.get(key), dict)), call)
        arguments = inner.get("arguments", inner.get("input"))
        name = inner.get("name")
        words = ["calls", name if isinstance(name, str) else "?"]
        if arguments not in _NOTHING:
            words.append(arguments if isinstance(arguments, str) else _compact(arguments))
        return f"[{_one_line(' '.join(words))}]"
    inner = part.get(kind)
    detail: Any = inner
    if isinstance(inner, dict) or inner is None:
        about = inner or part
        detail = next((about[key] for key in ("transcript", "file_name", "filename", "title") if key in about), None)
    called = _CALLED.get(kind, kind)
    if (
        isinstance(detail, str) and detail.strip() and called != "image"
    ):  # the detail of a picture is its address or its data
        called += f": {_without_base64(detail)}"
    return f"[{_one_line(called)}]"


def _compact(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "..."


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def _without_base64(value: Any, depth: int = 0) -> Any:
    """Copy a JSON value, replacing long base64 data by a note of its length."""
    if isinstance(value, str) and len(value) > LONGEST_BASE64 and (read := _BASE64.fullmatch(value)):
        prefix, payload = read[1] or "", read[2]
        return value if len(payload) <= LONGEST_BASE64 else f"{prefix}omitted: {len(payload)} characters of base64"
    if depth > MAX_DEPTH:  # `Record` rejects it
        return value
    if isinstance(value, dict):
        return {key: _without_base64(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_base64(item, depth + 1) for item in value]
    return value
