"""`MessageList`: the messages of a chat API that `add_messages` takes, read as turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from recollect.engine.results import Failed, Report
from recollect.errors import InvalidArgumentError
from recollect.operations import AddMessages
from recollect.records.messages import Turn, UnreadableError, read_turns
from recollect.records.origins import Origin


class MessageList:
    """The messages of a call, read as turns.

    Attributes:
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

    def operation(self, fields: Mapping[str, Any], tool_origins: Mapping[str, Origin] | None = None) -> AddMessages:
        """Return the operation that stores the turns."""
        return AddMessages(turns=tuple(self.turns), fields=_rereadable(fields), tool_origins=tool_origins or {})

    def report(self, stored: Report) -> Report:
        """Return the report of the operation, in which failures name the messages that were passed."""
        places = [self._indexes[each.index] for each in stored.failed]
        failed = [Failed(self._messages[at], at, each.reason) for at, each in zip(places, stored.failed, strict=True)]
        return replace(stored, failed=tuple(sorted([*self.failed, *failed], key=lambda each: each.index)))


def _rereadable(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value; an iterator, such as of tags, as a tuple, since every turn reads it."""
    return {
        name: tuple(value) if isinstance(value, Iterator) else value
        for name, value in fields.items()
        if value is not None
    }
