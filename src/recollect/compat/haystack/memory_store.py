"""A memory store of chat messages, in the shape of Haystack's integrations for memory services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from haystack import Document, default_from_dict, default_to_dict
from haystack.dataclasses import ChatMessage

import recollect
from recollect import Record
from recollect import filters as f
from recollect.compat.haystack.document_store import stated
from recollect.compat.haystack.filters import condition
from recollect.compat.opening import Closing, Place, opened
from recollect.compat.searching import Searcher, own_metadata
from recollect.compat.threads import awaited
from recollect.compat.turns import add_turns

#: The fields of a record that a message has beside its text.
_FIELDS = ("id", "kind", "user", "agent", "conversation", "speaker", "role", "source", "time")


class RecollectMemoryStore(Closing):
    """Remembers chat messages and finds them again: turns of a user, an agent and a run, each with what it says.

    No model is called: a message is stored as it is said, and found by `recall`, in other runs of the same user, too.

    Args:
        memory: A path or address that `recollect.open` takes; the address of a server; or a memory, which stays open.
            A pipeline with a memory cannot be serialized.

    Raises:
        RecollectError: The memory cannot be opened.
    """

    def __init__(self, memory: Place = ":memory:") -> None:
        self._stated = {"memory": memory}
        self._opened = opened(memory)
        self._searcher = Searcher(self._opened.memory)

    @property
    def memory(self) -> recollect.Memory:
        """The memory with the messages: its history, `context`, `erase` and all other calls."""
        return self._opened.memory

    def to_dict(self) -> dict[str, Any]:
        """Return the store as a dictionary.

        Raises:
            UnsupportedError: It was made with a memory, and not with a path or an address.
        """
        return default_to_dict(self, **stated(self._stated, "the memory store"))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the store of a dictionary of `to_dict`."""
        return default_from_dict(cls, data)

    def close(self) -> None:
        """Close the memory if it was opened here and no other adapter uses it. Closing twice does nothing."""
        self._opened.close()

    def add_memories(
        self,
        *,
        messages: Sequence[ChatMessage],
        user_id: str | None = None,
        run_id: str | None = None,
        agent_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> list[dict[str, Any]]:
        """Store the messages that are not stored yet, in one commit: they may be the whole conversation, each time.

        Messages of the system, and those without a text, are left out.

        Args:
            messages: What was said, in order; a list that has grown is recognised.
            user_id: The user to whom they belong.
            run_id: The conversation to which they belong; default: derived from the first message.
            agent_id: The agent to whom they belong.
            metadata: Metadata of each, besides its own.

        Returns:
            The id ("memory_id") and the text ("memory") of each message that was stored now.

        Raises:
            ValueError: No user, run or agent is stated, or a message is no ChatMessage.
            InvalidArgumentError: One is not a non-empty text.
            InvalidRecordError: A message exceeds a limit of the memory, or metadata has other values than JSON.
            RejectedError: A policy of the memory refuses a secret.
            StoreError: The store failed.
        """
        owners: dict[str, Any] = _owners(user_id, run_id, agent_id)
        if isinstance(messages, str) or not all(isinstance(each, ChatMessage) for each in messages):
            raise ValueError("messages must be a list of ChatMessages")
        said = [each for each in messages if each.text and each.text.strip() and each.role.value != "system"]
        if not said:
            return []
        turns = [{"role": each.role.value, "content": each.text, "name": each.name} for each in said]
        metas = [each.meta for each in said]
        with self._opened.memory.batch(actor="haystack", reason="add_memories") as batch:
            outcomes = add_turns(batch, turns, metadata=metadata, each=metas, **owners)
        stored = [outcome.record for outcome in outcomes if outcome.record and outcome.status == "created"]
        return [{"memory_id": record.id, "memory": record.text} for record in stored]

    def search_memories(
        self,
        *,
        query: str | None = None,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 5,
        user_id: str | None = None,
        run_id: str | None = None,
        agent_id: str | None = None,
    ) -> list[ChatMessage]:
        """Return messages of the system with what is remembered, best first.

        Everything that the memory knows of the user, agent or run is searched, not only messages.

        Args:
            query: What to look for, as for `Memory.recall`; None or "": the newest memories.
            filters: What the metadata must fit (`{"field": "meta.topic", "operator": "==", "value": "tea"}`).
            top_k: Maximum number of messages.
            user_id: Only memories of this user.
            run_id: Only memories of this conversation.
            agent_id: Only memories of this agent.

        Returns:
            The messages. `meta` is the metadata, and `meta["recollect"]` has the id, the owners, the time, the score
            and the confidence.

        Raises:
            ValueError: No user, run, agent and filter is stated, or `top_k` is no number, 0 or more.
            FilterError: The filter lacks a key, has an unknown operator, or compares what cannot be compared.
        """
        if not isinstance(top_k, int) or top_k < 0:
            raise ValueError(f"top_k must be a number, 0 or more, not {top_k!r}")
        owners = {} if filters and not (user_id or run_id or agent_id) else _owners(user_id, run_id, agent_id)
        by = {"user": f.user, "conversation": f.conversation, "agent": f.agent}
        where = f.all_of(*(by[name](value) for name, value in owners.items()))
        wanted = condition(filters, _document_of, place=()).within(where)
        if not query or not query.strip():
            with_text = wanted.within(f.has("searchable"))
            return [_message(record, {}) for record in self._searcher.newest(with_text, top_k)]
        hits = self._searcher.recalled(query, wanted, top_k)
        return [_message(hit.record, {"score": hit.score, "confidence": hit.confidence}) for hit in hits]

    add_memories_async = awaited(add_memories)
    search_memories_async = awaited(search_memories)


def _owners(user_id: str | None, run_id: str | None, agent_id: str | None) -> dict[str, str]:
    named = {"user": user_id, "conversation": run_id, "agent": agent_id}
    owners = {name: value for name, value in named.items() if value}
    if not owners:
        raise ValueError("at least one of user_id, run_id and agent_id must be stated")
    return owners


def _document_of(record: Record) -> Document:
    """Return a document for filters, which compare the text and the metadata of one."""
    return Document(id=record.id, content=record.text, meta=own_metadata(record))


def _message(record: Record, found: Mapping[str, float]) -> ChatMessage:
    fields = record.to_json()
    own = {name: fields[name] for name in _FIELDS if name in fields}
    message: ChatMessage = ChatMessage.from_system(
        record.text, meta={**own_metadata(record), "recollect": {**own, **found}}
    )
    return message
