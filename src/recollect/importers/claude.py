"""An export of Claude: the zip file, the folder in it, or a conversations.json; and messages of Anthropic's API.

A conversation is a list of messages, each with the `uuid` of the one before it (`parent_message_uuid`): a tree, if a
question was edited or an answer regenerated (`trees`). Messages that name none follow the one before them in the list.
The text of attached files, and what was pasted, becomes pieces of kind "knowledge" in the same conversation, with the
time of their message. The model's thoughts are not imported. The documents of projects, and what the program remembers,
become pieces of kind "knowledge" without a conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import tzinfo
from pathlib import Path
from typing import Any

from recollect.errors import ImportFormatError
from recollect.importers.base import Damage, Item, SeenIds, UnreadFile, in_file, load_json
from recollect.importers.exports import ExportedChat, exported_chats, name_of_chat
from recollect.importers.messages import Messages, can_name, turn_fields
from recollect.importers.times import time_of_conversation
from recollect.importers.trees import ConversationTree, Read
from recollect.records.documents import bounded_id
from recollect.records.factories import knowledge
from recollect.records.messages import Turn, UnreadableError, read_turns
from recollect.records.messages.parts import NOTHING, THOUGHTS, listed
from recollect.records.messages.values import kind_of
from recollect.text.pieces import markdown_pieces, paragraphs

_NAMES = ("uuid", "id", "name")
_STRUCTURE = ("chat_messages", "current_leaf_message_uuid", "uuid")
#: The source of what was pasted, which has no name.
PASTED = "pasted text"


class Claude:
    """A list of conversations, each with a tree of messages in "chat_messages"."""

    name = "claude"
    summary = "Claude: an export (zip, folder or conversations.json); branches apart, attached texts as knowledge"

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage | UnreadFile]:
        ids, taken = SeenIds(), dict[str, int]()
        rule = 'an object with a list "chat_messages"'
        found = exported_chats(path, is_chat, rule, follow_links=follow_links, beside=_beside(zone))
        for number, chat in enumerate(found, 1):
            if not isinstance(chat, ExportedChat):
                yield chat
                continue
            about = chat.value
            name = name_of_chat(about, _NAMES, f"{path.stem}#{number}", taken)
            yield from in_file(chat.file, _Chat(about, name, ids, zone).tree(chat.place).items())


def is_chat(value: Any) -> bool:
    """Return whether a JSON value is a conversation of such an export."""
    return isinstance(value, dict) and isinstance(value.get("chat_messages"), list)


class AnthropicMessages(Messages):
    """`{"role", "content"}`; content is text or a list of blocks; the value of "system" becomes the first turn.

    An export of Claude is read as one, too: this was its name once.
    """

    name = "anthropic"
    summary = "Anthropic: messages of the API, as JSON or JSON lines"
    names = ("uuid", "id", "conversation_id", "title")
    system = "system"

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage | UnreadFile]:
        data = None
        with suppress(ImportFormatError):  # it may be JSON lines
            data = load_json(path)
        if any(map(is_chat, data if isinstance(data, list) else [data])):
            yield from Claude().read(path, zone, follow_links=follow_links)
            return
        yield from super().read(path, zone, follow_links=follow_links)


class _Chat:
    """A conversation. Each of its messages has a key: its uuid, or its number in the list if it has none of its own."""

    def __init__(self, about: dict[str, Any], name: str, ids: SeenIds, zone: tzinfo) -> None:
        self._about, self._name, self._ids, self._zone = about, name, ids, zone
        self._messages: dict[str, Any] = {}
        self._numbers: dict[str, int] = {}
        for number, message in enumerate(about["chat_messages"], 1):
            uuid = message.get("uuid") if isinstance(message, dict) else None
            key = uuid if isinstance(uuid, str) and uuid and uuid not in self._messages else f"#{number}"
            while key in self._messages:
                key += "#"
            self._messages[key], self._numbers[key] = message, number

    def tree(self, place: str) -> ConversationTree:
        about = self._about
        return ConversationTree(
            self._parents(),
            about.get("current_leaf_message_uuid") or (list(self._messages)[-1] if self._messages else None),
            self._read,
            name=self._name,
            place=place,
            label=lambda key: f"message {self._numbers[key]}",
            time=time_of_conversation(about, self._zone),
            about={key: value for key, value in about.items() if key not in _STRUCTURE and value not in NOTHING},
        )

    def _parents(self) -> dict[str, str | None]:
        parents: dict[str, str | None] = {}
        before: str | None = None
        for key, message in self._messages.items():
            stated = message.get("parent_message_uuid") if isinstance(message, dict) else None
            parents[key] = stated if isinstance(stated, str) and stated else before  # of the first, no message's uuid
            before = key
        return parents

    def _read(self, key: str) -> Read:
        """Return the turns and the attached texts of a message. Raises UnreadableError."""
        message = self._messages[key]
        if not isinstance(message, dict):
            raise UnreadableError(f"is {kind_of(message)}, not an object")
        texts = []
        attachments = []
        for number, attached in enumerate(listed(message.get("attachments")), 1):
            if isinstance(attached, dict) and isinstance(text := attached.get("extracted_content"), str):
                texts.append((number, attached, text))
                attached = {name: value for name, value in attached.items() if name != "extracted_content"}
            attachments.append(attached)
        shown = {name: value for name, value in message.items() if name != "parent_message_uuid"}
        if isinstance(parts := message.get("content"), list):
            shown["content"] = [part for part in parts if not _is_thought(part)] or parts
        if attachments:
            shown["attachments"] = attachments
        turns: list[dict[str, Any]] = []
        for _, turn in read_turns([shown], self._zone):
            if not isinstance(turn, Turn):
                raise turn
            turns.append(turn_fields(turn, self._name, self._ids))
        own = turns[-1].get("id")
        beside = [
            (f"attachment {number}", fields)
            for number, attached, text in texts
            for fields in _pieces(text, attached, None if own is None else f"{own}/{number}", own)
        ]
        return Read(turns, beside)


def _beside(zone: tzinfo) -> Callable[[str, Any], Iterator[Item]]:
    """Return a function that yields the documents of projects and the memories in the other files of an export."""

    def items(file: str, data: Any) -> Iterator[Item]:
        for number, about in enumerate(listed(data), 1):
            if not isinstance(about, dict):
                continue
            texts = [
                (doc.get("filename"), doc.get("uuid"), doc.get("content"), doc) for doc in _objects(about.get("docs"))
            ]
            texts.append((about.get("name"), about.get("uuid"), about.get("prompt_template"), about))
            texts.append((None, about.get("account_uuid"), about.get("conversations_memory"), about))
            for name, uuid, text, stated in texts:
                if not isinstance(text, str) or not text.strip():
                    continue
                time = time_of_conversation(stated, zone) or time_of_conversation(about, zone)
                for fields in _pieces(text, {"file_name": name or file}, uuid if isinstance(uuid, str) else None, None):
                    title = about.get("name")
                    fields["metadata"] |= {"project": title} if isinstance(title, str) and title else {}
                    fields |= {} if time is None else {"time": time}
                    yield Item(namespace=None, fields=fields, place=f"{file}, {number}", file=file)

    return items


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in listed(value) if isinstance(each, dict)]


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in THOUGHTS


def _pieces(text: str, attached: dict[str, Any], stem: str | None, turn: str | None) -> Iterator[dict[str, Any]]:
    """Yield the fields of the pieces of an attached text.

    Args:
        text: The text.
        attached: What the export says of the file.
        stem: How their ids begin; None: they have none.
        turn: The id of the turn to which it is attached.
    """
    name = attached.get("file_name")
    source = name if isinstance(name, str) and can_name(name) else PASTED
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    spans = markdown_pieces(text) if source.lower().endswith((".md", ".markdown")) else paragraphs(text)
    for number, span in enumerate(spans):
        fields = knowledge(text[span.start : span.end], source=source, chunk_index=number, metadata={"title": source})
        if stem is not None:
            fields["id"] = bounded_id(f"{stem}/{number + 1}")
        if turn is not None:
            fields["derived_from"] = [turn]
        yield fields
