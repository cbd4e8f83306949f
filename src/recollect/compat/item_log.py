"""The items of one conversation as records, in order: for adapters whose frameworks keep the messages of a chat.

An item is any JSON value. It is in the metadata losslessly (`compat.stored_json`), and what it says is the content of
its record: so a message is a turn of the conversation, which `recall` finds from other conversations, too. An item
that says nothing is stored with `searchable=False`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect import filters as f
from recollect.compat.stored_json import loaded, stored
from recollect.compat.storing import store_all
from recollect.errors import InvalidArgumentError
from recollect.operations import GetPolicies, Remember

if TYPE_CHECKING:
    from recollect import Batch, Memory, Record

#: The kinds of the records: messages are turns, as everywhere in a memory, and other items are none.
_TURN, _OTHER = "conversation", "session_item"
#: The key of the metadata that has an item as JSON text.
ITEM = "item"
#: The sources of the records of all logs.
SOURCES = frozenset({"langchain", "openai-agents"})
#: What the name of a conversation begins with if the id of the session cannot be one.
_DIGEST = "sha256:"
_MAX_NAME_BYTES = 1000
#: The owner that speaks in a role.
_SPEAKERS = {"user": "user", "assistant": "agent"}
#: The record of an item without text.
_UNSEARCHABLE = {"content": "", "searchable": False}


class SpokenText(NamedTuple):
    """What an item says.

    Attributes:
        role: Who says it: "user", "assistant", "system", "tool" or another name.
        text: The text; "" if it says nothing.
    """

    role: str
    text: str


class ItemLog:
    """The items of one conversation. Those of other sources, users or agents with an equal id are not among them.

    Args:
        memory: The memory. It stays open.
        session_id: The id of the conversation, any text.
        source: The source of the records, such as the name of the framework.
        ids: What the ids of the records begin with.
        said: Returns what an item says; None for an item that is no message.
        user: The user to whom the items belong; None: that of a scoped memory, or else none.
        agent: The agent; None as for `user`.

    Raises:
        InvalidArgumentError: `user` or `agent` is not a non-empty text, or `session_id` is not a text.
        ScopeError: The memory is scoped to another user or agent.
    """

    def __init__(
        self,
        memory: Memory,
        session_id: str,
        *,
        source: str,
        ids: str,
        said: Callable[[Any], SpokenText | None],
        user: str | None = None,
        agent: str | None = None,
    ) -> None:
        if not isinstance(session_id, str):
            raise InvalidArgumentError("session_id", session_id, "must be text")
        self._memory = memory
        self._said = said
        owners = owners_of(memory, user=user, agent=agent)
        conversation = _conversation(session_id)
        self._fields = {"kind": _OTHER, "source": source, "conversation": conversation} | owners
        self._where = f.all_of(f.source(source), f.conversation(conversation), owned_by(owners))
        # A digest, since ids are shorter than names and are normalised, which names of conversations are not.
        named = json.dumps([owners.get("user"), owners.get("agent"), session_id])
        self._ids = f"{ids}-{hashlib.sha256(named.encode()).hexdigest()[:40]}"

    def items(self, limit: int | None = None) -> list[Any]:
        """Return the latest items, oldest first.

        Args:
            limit: Their maximum number; None, or below 0: all.

        Raises:
            StoreError: The store failed.

        Cost:
            In proportion to the number of items returned, and without a limit to that of the conversation.
        """
        if limit == 0:
            return []
        if limit is None or limit < 0:
            records = list(self._memory.find(self._where, order="position"))
        else:
            records = list(reversed(self._memory.find(self._where, limit=limit, order="last")))
        return [item_of(record) for record in records]

    def append(self, batch: Batch, items: Iterable[Any]) -> None:
        """Append items in a batch, whose lock keeps other processes from appending at the same position.

        Raises:
            TypeError: An item has no JSON form.
            InvalidRecordError: An item exceeds a limit of the memory (`Limits`).
            RejectedError: A policy of the memory refuses a secret in an item.
            QuotaError: The items do not fit in the quota.
        """
        policies = batch.execute(GetPolicies())
        last = batch.find(self._where, limit=1, order="last")
        first = _position(last[0]) + 1 if last else 0
        store_all(batch, [self.operation(at, item, policies) for at, item in enumerate(items, first)])

    def by_position(self, reader: Batch | Memory) -> dict[int, Record]:
        """Return the records of all items by their positions.

        Raises:
            StoreError: The store failed.
        """
        return {_position(record): record for record in reader.find(self._where)}

    def id_of(self, position: int) -> str:
        """Return the id of the record of an item."""
        return f"{self._ids}-{position}"

    def operation(self, position: int, item: Any, policies: Any) -> Remember:
        """Return the operation that stores an item at a position where there is none.

        Args:
            position: The position, from 0.
            item: The item.
            policies: The policies of the memory (`recollect.operations.GetPolicies`).

        Raises:
            TypeError: It has no JSON form.
            RejectedError: The policies refuse something in it.
        """
        fields = {**self._fields_of(item, policies), "position": position}
        content = fields.pop("content")
        return Remember(content=content, id=self.id_of(position), expect="absent", fields=fields)

    def pop(self, batch: Batch, index: int = -1) -> Any | None:
        """Remove an item in a batch and return it; None if there is none.

        Args:
            batch: The batch.
            index: Its place in the conversation, -1 for the latest.
        """
        if index == -1:
            found = list(batch.find(self._where, limit=1, order="last"))
        else:
            found = list(batch.find(self._where, order="position"))[index : index + 1]
        if not found:
            return None
        batch.forget(found[0].id)
        return item_of(found[0])

    def clear(self, batch: Batch) -> None:
        """Remove all items in a batch. Their history remains in the log of the memory."""
        batch.forget_where(self._where, parts=("records",))

    def _fields_of(self, item: Any, policies: Any) -> dict[str, Any]:
        """Return the content and the fields of the record of an item."""
        own: dict[str, Any] = {**self._fields, "metadata": {ITEM: stored(item, policies)}}
        said = self._said(item)
        if said is None or not _is_name(said.role):
            return own | _UNSEARCHABLE
        own["role"] = said.role
        speaker = self._fields.get(_SPEAKERS.get(said.role, ""))
        if speaker is not None:
            own["speaker"] = speaker
        # JSON has lone surrogates, and the content of a record has not.
        text = said.text.encode("utf-8", "replace").decode("utf-8")
        return own | ({"content": text, "kind": _TURN} if text.strip() else _UNSEARCHABLE)


def owners_of(memory: Memory, **named: str | None) -> dict[str, str]:
    """Return the owners of what an adapter stores: those that are named, or else those of the scope of the memory.

    Args:
        memory: The memory.
        **named: `user=`, `agent=` and so on; None: that of the scope, or else none.

    Raises:
        InvalidArgumentError: One is not a non-empty text.
        ScopeError: The memory is scoped to another one.
    """
    if any(value is not None for value in named.values()):
        memory = memory.scoped(**named)  # checks the names
    return {name: value for name, value in memory.scope.items() if name in named}


def owned_by(owners: Mapping[str, str]) -> f.Filter:
    """Return a filter for the records of these owners; without a user or agent, those of no user or agent."""
    by = {"user": f.user, "agent": f.agent}
    return f.all_of(*(by[name](owners[name]) if name in owners else ~f.has(name) for name in by))


def _conversation(session_id: str) -> str:
    """Return the name of the conversation of a session: its id, or a digest of what cannot be a name."""
    if _is_name(session_id) and not session_id.startswith(_DIGEST):
        return session_id
    return f"{_DIGEST}{hashlib.sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _is_name(text: str) -> bool:
    """Return whether a text can be a name in a record, such as that of a conversation or a role."""
    return text.isprintable() and 0 < len(text.encode("utf-8")) <= _MAX_NAME_BYTES


def item_of(record: Record) -> Any:
    """Return the item of a record, a new object each time."""
    return loaded(record.metadata[ITEM])


def _position(record: Record) -> int:
    assert record.position is not None  # every record of a conversation has one
    return record.position
