"""Message dictionaries in the calls of a memory: as turns for `add_messages`, and as items of `remember_all`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from recollect.engine.results import Failed, Report
from recollect.errors import InvalidArgumentError
from recollect.operations import AddMessages, Remember
from recollect.records.messages import Turn, UnreadableError, read_turns
from recollect.records.record import Fields

#: Keys of a mapping that are arguments of `Remember`, not fields of the record.
ARGUMENTS = ("content", "id", "expect", "if_exists", "ttl", "standing")
#: Keys of a message that are also fields of a record; the others of a record's fields are not part of a message.
_SHARED = ("role", "metadata")


class MessageList:
    """The messages of a call, read as turns.

    Attributes:
        turns: The turns.
        failed: The messages that cannot be read.

    Raises:
        InvalidArgumentError: `messages` is neither a message nor an iterable of messages.
    """

    def __init__(self, messages: object) -> None:
        if isinstance(messages, (str, bytes)) or not isinstance(messages, (Mapping, Iterable)):
            raise InvalidArgumentError(
                "messages", messages, 'must be a list of messages, such as [{"role", "content"}]'
            )
        # An object of an SDK may be iterable (pydantic's are, by their fields).
        single = isinstance(messages, Mapping) or hasattr(messages, "model_dump")
        self._messages = [messages] if single else list(messages)
        self.turns: list[Turn] = []
        self._indexes: list[int] = []  # of the messages of the turns
        self.failed: list[Failed] = []
        for index, turn in read_turns(self._messages):
            if isinstance(turn, UnreadableError):
                error = InvalidArgumentError(f"messages[{index}]", self._messages[index], str(turn))
                self.failed.append(Failed(self._messages[index], index, error))
            else:
                self.turns.append(turn)
                self._indexes.append(index)

    def operation(self, fields: Mapping[str, Any]) -> AddMessages:
        """Return the operation that stores the turns."""
        return AddMessages(turns=tuple(self.turns), fields=_rereadable(fields))

    def report(self, stored: Report) -> Report:
        """Return the report of the operation, in which failures name the messages that were passed."""
        places = [self._indexes[each.place] for each in stored.failed]
        failed = [Failed(self._messages[at], at, each.reason) for at, each in zip(places, stored.failed, strict=True)]
        return replace(stored, failed=tuple(sorted([*self.failed, *failed], key=lambda each: each.place)))


def is_message_item(item: Mapping[str, Any]) -> bool:
    """Return whether a mapping is a message of a chat API, and not the fields of a record with a kind."""
    return "role" in item and "kind" not in item and not isinstance(item.get("content"), (bytes, bytearray))


def turn_operations(item: Mapping[str, Any]) -> list[Remember]:
    """Return the operations that store the turns of a message; it may also have fields of a record.

    Raises:
        InvalidArgumentError: The message cannot be read.
    """
    own = {key: value for key, value in item.items() if key in Fields.__annotations__ and key not in _SHARED}
    own |= _rereadable(own)
    arguments = {key: item[key] for key in ARGUMENTS if key in item and key != "content"}
    message = {key: value for key, value in item.items() if key not in own and key not in (*arguments, "metadata")}
    out: list[Remember] = []
    for _, turn in read_turns([message]):
        if isinstance(turn, UnreadableError):
            raise InvalidArgumentError("item", item, str(turn))
        fields = {"kind": "conversation", **{key: value for key, value in turn._asdict().items() if value}, **own}
        if "metadata" in item:
            stated = item["metadata"]
            fields["metadata"] = {**turn.metadata, **stated} if isinstance(stated, Mapping) else stated
        # An id and what applies to it are those of the first turn.
        out.append(Remember(content=fields.pop("content"), fields=fields, **({} if out else arguments)))
    return out


def _rereadable(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value; an iterator, such as of tags, as a tuple, since every turn reads it."""
    return {
        name: tuple(value) if isinstance(value, Iterator) else value
        for name, value in fields.items()
        if value is not None
    }
