"""Conversations that are trees of messages, as chats in which questions are edited and answers regenerated.

The turns of the branch that the program shows, from the root, are the conversation. Every other branch is a
conversation of its own, from the message at which it leaves: its name is that of the conversation and of this message,
its turns have the tag `other-branch`, and their positions go on from the turn before. A record's id is that of its
message, so an import of a later export adds only new messages. If another branch is shown by then, the turns that are
stored move to where they are now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from recollect.importers.base import Damage, Item
from recollect.importers.times import dated
from recollect.records.factories import OTHER_BRANCH
from recollect.records.messages import UnreadableError
from recollect.records.messages.parts import without_base64

#: The key of the facts about a conversation in the metadata of its first turn.
ABOUT = "conversation"


class Read(NamedTuple):
    """The records that a message is stored as.

    Attributes:
        turns: The fields of its turns; none if the conversation does not show it.
        beside: The fields of what is stored besides, such as attached texts, and the place of each in the message.
        elsewhere: The number of its turns that are stored in another conversation. They count in the positions.
    """

    turns: list[dict[str, Any]]
    beside: list[tuple[str, dict[str, Any]]] = []  # noqa: RUF012 - never changed
    elsewhere: int = 0


class ConversationTree:
    """The messages of one conversation.

    Args:
        parents: The message before each message, by id, in the order of the source. One that is not a key counts as
            none.
        shown: The last message of the branch that is shown; None: the last one that nothing follows.
        read: Returns what a message becomes, by its id. It may raise UnreadableError.
        name: The name of the conversation.
        place: Its location in the source.
        label: Returns the location of a message in it, by its id.
        time: The time of turns where no turn states one.
        about: Facts about the conversation, which are stored with its first turn.
    """

    def __init__(
        self,
        parents: Mapping[str, str | None],
        shown: object,
        read: Callable[[str], Read],
        *,
        name: str,
        place: str,
        label: Callable[[str], str],
        time: datetime | None,
        about: Mapping[str, Any],
    ) -> None:
        self._parents = {each: parent if parent in parents else None for each, parent in parents.items()}
        self._shown = shown if isinstance(shown, str) and shown in self._parents else None
        self._read, self._name, self._place, self._label, self._time = read, name, place, label, time
        self._about = without_base64(dict(about))
        #: Message -> the time of the last turn up to and including it.
        self._times: dict[str, datetime] = {}
        #: Message -> the number of turns up to and including it.
        self._turns: dict[str, int] = {}

    def items(self) -> Iterator[Item | Damage]:
        """Yield the turns of all branches, those of the shown one first."""
        followed = set(self._parents.values())
        ends = [each for each in self._parents if each not in followed]
        shown = self._shown or (ends[-1] if ends else None)
        if shown is not None:
            yield from self._branch(self._up(shown), self._name, ())
        # Also each message, so that a circle of messages, which has no end, is imported too.
        for end in (*ends, *self._parents):
            if branch := self._up(end):
                yield from self._branch(branch, f"{self._name}/{branch[0]}", (OTHER_BRANCH,))

    def _up(self, end: str) -> list[str]:
        """Return the messages from the first one that was not read yet down to `end`."""
        messages: dict[str, None] = {}
        at: str | None = end
        while at is not None and at not in self._turns and at not in messages:
            messages[at] = None
            at = self._parents[at]
        return list(messages)[::-1]

    def _branch(self, messages: list[str], conversation: str, tags: tuple[str, ...]) -> Iterator[Item | Damage]:
        """Yield what the messages of a branch become, each with a time. The turn before is where the branch leaves."""
        parent = self._parents[messages[0]]
        position = 0 if parent is None else self._turns.get(parent, 0)
        at = None if parent is None else self._times.get(parent)
        turns: list[Item | Damage] = []
        beside: dict[int, list[Item]] = {}  # by the number of the turn before
        for message in messages:
            place = f"{self._place}, {self._label(message)}"
            common = {"conversation": conversation, "tags": tags}
            try:
                read = self._read(message)
                for fields in read.turns:
                    if self._about:
                        fields["metadata"] = {**fields["metadata"], ABOUT: self._about}
                        self._about = {}
                    fields = {**fields, **common, "position": position}
                    turns.append(Item(namespace=None, fields=fields, place=place, placed="id" in fields))
                    position += 1
                    at = fields.get("time", at)
                position += read.elsewhere
                beside[len(turns)] = [
                    Item(namespace=None, fields={**fields, **common}, place=f"{place}, {inner}", placed="id" in fields)
                    for inner, fields in read.beside
                ]
            except UnreadableError as error:
                position += 1  # a damaged turn keeps its position
                turns.append(Damage(place, str(error)))
            self._turns[message] = position
            if at is not None:
                self._times[message] = at
        before = None if parent is None else self._times.get(parent)
        yield from _joined(dated(turns, self._time, before), beside)


def _joined(turns: Iterator[Item | Damage], beside: Mapping[int, list[Item]]) -> Iterator[Item | Damage]:
    """Yield turns, and after each what is stored besides, which has its time."""
    for number, turn in enumerate(turns, 1):
        yield turn
        for item in beside.get(number, ()):
            if isinstance(turn, Item) and "time" in turn.fields:
                item.fields["time"] = turn.fields["time"]
            yield item
