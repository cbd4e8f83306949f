"""A memory as a store of Strands agents: what they said is remembered, and comes back with the next question.

    from strands import Agent
    from strands.memory import MemoryManager
    from recollect.compat.strands import RecollectStrandsStore

    store = RecollectStrandsStore("agent.db", user="ana", extraction=True)
    agent = Agent(model=MODEL, memory_manager=MemoryManager(stores=[store]))

No model distils facts: messages become turns, word for word. Strands writes at least once, and what is stored already
is not stored again.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import recollect
from recollect.compat.opening import Closing, Place, opened
from recollect.compat.searching import Condition, Searcher, found_metadata
from recollect.compat.threads import completed
from recollect.compat.turns import add_turns, append_turns, with_metadata, worthy
from recollect.errors import InvalidArgumentError, MissingExtraError

try:
    from strands.memory.types import AddMessagesContext, MemoryEntry, SearchOptions
except ImportError as error:
    raise MissingExtraError("recollect.compat.strands", "strands", "strands-agents") from error

__all__ = ["RecollectStrandsStore"]

_NAME = "strands"


class RecollectStrandsStore(Closing):
    """A `MemoryStore` of Strands. A search finds everything that the memory knows of the user and agent.

    Args:
        memory: A memory, also of `recollect.connect`; a path or address that `recollect.open` takes; or the address of
            a server.
        name: The name by which tools and the manager know the store.
        description: What it is for; a part of the descriptions of tools.
        max_search_results: Maximum number of entries, unless a search states another one.
        writable: Whether the manager may write to it.
        extraction: Whether the messages of agents are stored by themselves; True, or a configuration of Strands. No
            model is called.
        user: The user of what is stored and found; None: that of the scope, or none.
        agent: The agent; None as for `user`.
        conversation: The conversation of messages; None: one of its own for each store.

    Raises:
        RecollectError: The memory cannot be opened.
    """

    def __init__(
        self,
        memory: Place = ":memory:",
        *,
        name: str = "recollect",
        description: str | None = "What is known from earlier conversations",
        max_search_results: int = 5,
        writable: bool = True,
        extraction: Any = None,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
    ) -> None:
        self.name = name
        self.description = description
        self.max_search_results = max_search_results
        self.writable = writable
        self.extraction = extraction
        self._conversation = conversation
        self._run = secrets.token_hex(8)  # sequence numbers begin again with each store
        self._opened = opened(memory)
        self._memory = self._opened.scoped(user=user, agent=agent)

    @property
    def memory(self) -> recollect.Memory:
        """The memory with all its calls: `history`, `context`, `erase` and others."""
        return self._opened.memory

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Return what answers a query, best first; nothing for a blank one.

        The metadata of an entry is that of its record, with its id and fields, the score, the confidence and `why`.

        Args:
            query: What to look for, as for `Memory.recall`.
            options: `max_search_results`.

        Raises:
            StoreError: The store failed.
        """
        stated = (options or {}).get("max_search_results")
        count = self.max_search_results if stated is None else stated
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise InvalidArgumentError("max_search_results", count, "must be an integer, 0 or more")
        hits = await completed(Searcher(self._memory).recalled, query, Condition(), count)
        return [
            MemoryEntry(content=hit.record.text, metadata={"id": hit.record.id, **found_metadata(hit)}) for hit in hits
        ]

    async def add(self, content: str, metadata: Mapping[str, Any] | None = None) -> str | None:
        """Store a text, and return the id of its record; None if it is not worth remembering.

        The same text again is the same record.

        Raises:
            InvalidRecordError: The text is blank or too long, or the metadata has other values than JSON.
            RejectedError: A policy of the memory refuses a secret.
            StoreError: The store failed.
        """
        return await completed(self._add, content, dict(metadata or {}))

    async def add_messages(self, messages: Sequence[Any], context: AddMessagesContext | None = None) -> list[str]:
        """Store messages that are not stored yet, in one commit, and return the ids of their records.

        Args:
            messages: Messages of Strands. What has no text, such as a picture or a call of a tool, is left out.
            context: Of Strands: its `sequence_numbers` tell a repeated write from a repeated message. Without them,
                messages that are stored already are recognised by what they say and where.

        Raises:
            RejectedError: A policy of the memory refuses a secret.
            RecollectError: The memory refuses a message, or failed; nothing was stored.
        """
        numbers = context.sequence_numbers if context is not None else None
        said = [(at, message["role"], text) for at, message in enumerate(messages) if (text := _text(message))]
        turns = [{"role": role, "content": text} for _, role, text in said]
        keys = None if numbers is None else [f"{self._run}/{numbers[at]}/{role}/{text}" for at, role, text in said]
        return await completed(self._add_turns, turns, keys) if turns else []

    def close(self) -> None:
        """Close the memory if it was opened here and no other adapter uses it. Closing twice does nothing."""
        self._opened.close()

    def _add(self, content: str, metadata: dict[str, Any]) -> str | None:
        kind = "user_fact" if "user" in self._memory.scope else "knowledge"
        with self._memory.batch(actor=_NAME, reason="add") as batch:
            report = batch.remember_all([{"content": content, "kind": kind, "metadata": metadata}])
            outcomes = [with_metadata(batch, outcome, metadata, None) for outcome in worthy(report)]
        return next((outcome.record.id for outcome in outcomes if outcome.record), None)

    def _add_turns(self, turns: list[dict[str, Any]], keys: list[str] | None) -> list[str]:
        with self._memory.batch(actor=_NAME, reason="add_messages") as batch:
            if keys is None:
                outcomes = add_turns(batch, turns, conversation=self._conversation)
            else:
                outcomes = append_turns(batch, turns, self._conversation or f"strands-{self._run}", keys=keys)
        return [outcome.record.id for outcome in outcomes if outcome.record]


def _text(message: Mapping[str, Any]) -> str:
    parts = message.get("content", ())
    texts = [part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str)]
    return "\n".join(texts).strip()
