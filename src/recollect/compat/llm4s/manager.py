"""`MemoryManager`: recording what an agent learns, and the text that a prompt gets of it, on a store of memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from recollect import Consolidated, Record
from recollect import filters as f
from recollect.agents import Manager
from recollect.arguments.checks import check_count, check_flag
from recollect.compat.llm4s.config import MemoryManagerConfig
from recollect.compat.llm4s.embedding import warn_caller
from recollect.compat.llm4s.filters import MemoryFilter, plain
from recollect.compat.llm4s.store import MemoryStore
from recollect.compat.llm4s.types import EntityId, Memory, MemoryId, MemoryType, entity_id_text, fields_of, memory_of
from recollect.compat.llm4s.vectors import EMBEDDING
from recollect.errors import InvalidArgumentError
from recollect.filters import Filter
from recollect.models import ModelExtractor, ModelSummariser
from recollect.operations import Remember, check_text
from recollect.records import factories


@dataclass(frozen=True)
class MemoryStats:
    """Counts of a store.

    Attributes:
        total_memories: The number of memories.
        by_type: The number of memories of each type that has some.
        entity_count: The number of different entities.
        conversation_count: The number of different conversations.
        embedded_count: The number of memories with a vector.
        oldest_memory: The earliest time of a memory; None if there is none.
        newest_memory: The latest time of a memory; None if there is none.
    """

    total_memories: int = 0
    by_type: Mapping[MemoryType, int] = field(default_factory=dict)
    entity_count: int = 0
    conversation_count: int = 0
    embedded_count: int = 0
    oldest_memory: datetime | None = None
    newest_memory: datetime | None = None


#: From more messages than this on a conversation is consolidated, except its newest ones.
_CONSOLIDATED_ABOVE, _KEPT = 60, 10


class _LLMSummariser(ModelSummariser):
    """A summariser whose method has the name that LLM4S gives to it."""

    @property
    def name(self) -> str:
        """The `consolidation_method` in the metadata of what it writes."""
        return "llm_summary"


class MemoryManager:
    """Records messages, facts, knowledge and tasks in a store, and returns them as text for a prompt.

    Args:
        store: The store; default: an empty one in memory.
        config: The settings; default: the default ones.
        model: A language model for summaries and for the extraction of entities, as `recollect.models.as_model` takes
            it; default: neither needs one.
    """

    def __init__(
        self, store: MemoryStore | None = None, config: MemoryManagerConfig | None = None, model: Any = None
    ) -> None:
        if store is not None and not isinstance(store, MemoryStore):
            raise InvalidArgumentError("store", store, "must be a MemoryStore")
        if config is not None and not isinstance(config, MemoryManagerConfig):
            raise InvalidArgumentError("config", config, "must be a MemoryManagerConfig")
        self.store = MemoryStore.in_memory() if store is None else store
        self.config = config or MemoryManagerConfig()
        self._extractor = None if model is None else ModelExtractor(model)
        self._summariser = None if model is None else _LLMSummariser(model)

    @classmethod
    def empty(cls) -> MemoryManager:
        """Return a manager of an empty store in memory, with the default settings."""
        return cls()

    @classmethod
    def with_store(
        cls, store: MemoryStore, config: MemoryManagerConfig | None = None, model: Any = None
    ) -> MemoryManager:
        """Return a manager of a store."""
        return cls(store, config, model)

    @classmethod
    def for_testing(cls, model: Any = None) -> MemoryManager:
        """Return a manager of an empty store in memory, both with the settings for tests."""
        return cls(MemoryStore.for_testing(), MemoryManagerConfig.testing(), model)

    # Recording

    def on_message(self, message: Any, conversation_id: str) -> Memory | None:
        """Record a message that passes through an agent, if the settings say so (`auto_record_messages`).

        Call it with each message of the agent's loop.

        Returns:
            The memory; None if messages are not recorded.

        Raises:
            See `record_message`.
        """
        return self.record_message(message, conversation_id) if self.config.auto_record_messages else None

    def record_message(self, message: Any, conversation_id: str, importance: float | None = None) -> Memory:
        """Append a message to a conversation and return it. See `recollect.agents.Manager.record_message`.

        Args:
            message: A message of an API, such as {"role": "user", "content": "Hello"}.
            conversation_id: The conversation.
            importance: Clamped to [0, 1]; default: that of the settings.
        """
        manager = Manager(
            memory=self.store.memory,
            rate=False,
            extract=self.config.auto_extract_entities,
            extractor=self._extractor,
            contradictions="ignore",
            consolidate_above=_CONSOLIDATED_ABOVE if self.config.consolidation_enabled else None,
            keep=_KEPT,
            summariser=self._summariser,
            max_count=self.config.consolidation_config.max_memories_per_group,
            strict=self.config.consolidation_config.strict_mode,
        )
        recorded = manager.record_message(message, conversation_id, importance=self._or_default(importance))
        return self._stored(recorded.record)

    def record_conversation(self, messages: Iterable[Any], conversation_id: str) -> list[Memory]:
        """Store the messages of a conversation that are not stored yet, and return all of them.

        Pass the whole list, each time. See `Memory.add_messages` of `recollect`. Of more messages than the limit of the
        store, the newest are stored.
        """
        check_text("conversation_id", conversation_id)
        limit = self.store.limit
        if limit is not None and isinstance(messages, Iterable):
            messages = list(messages)[-limit:]  # no commit evicts what it wrote itself
        importance = self.config.default_importance
        with self.store.memory.batch() as batch:
            records = [
                batch.update(record.id, importance=importance, metadata=_described(record))
                if outcome.status == "created"
                else record
                for outcome in batch.add_messages(messages, conversation=conversation_id).results
                if (record := outcome.record) is not None
            ]
        return [memory_of(record) for record in self.store.embed(records)]

    def record_entity_fact(
        self,
        entity_id: EntityId | str,
        entity_name: str,
        fact: str,
        entity_type: str = "unknown",
        importance: float | None = None,
    ) -> Memory:
        """Store a fact about an entity and return it. The same fact again changes nothing.

        Args:
            entity_id: The id of the entity (`EntityId.from_name`).
            entity_name: Its name.
            entity_type: The type of the entity, such as "person".
            importance: Clamped to [0, 1]; default: that of the settings.
        """
        return self._stored(
            self.store.memory.record_entity_fact(
                entity_id_text(entity_id), entity_name, fact, entity_type, importance=self._or_default(importance)
            )
        )

    def record_user_fact(self, fact: str, user_id: str | None = None, importance: float | None = None) -> Memory:
        """Store a fact about a user and return it. The same fact again changes nothing.

        Args:
            user_id: The user. Without one, the fact is in no `user_context`, and in `relevant_context`.
            importance: Clamped to [0, 1]; default: that of the settings.
        """
        return self._stored(
            self.store.memory.record_user_fact(fact, user=user_id, importance=self._or_default(importance))
        )

    def record_knowledge(self, content: str, source: str, metadata: Mapping[str, str] | None = None) -> Memory:
        """Store a piece of a document, without importance, and return it. The same piece again changes nothing.

        If it has other metadata then, a RecollectWarning is issued.

        Pieces of one source are added to those that are stored, and never divided or replaced:
        `Memory.record_knowledge` of `recollect` takes a whole document instead.

        Args:
            content: The text.
            source: Where it comes from, such as a path or an address.
            metadata: More metadata.
        """
        piece = Memory.from_knowledge(content, source).with_metadata(metadata or {})
        fields = {name: value for name, value in fields_of(piece).items() if value is not None and name != "time"}
        outcome = self.store.memory.execute(Remember(content=content, fields=fields))
        if outcome.differing:
            warn_caller(
                f"already stored as {outcome.record.id}; kept its {', '.join(outcome.differing)}: "
                "update() of the store changes them"
            )
        return self._stored(outcome.record)

    def record_task(self, description: str, outcome: str, success: bool, importance: float | None = None) -> Memory:
        """Append a task with its outcome and return it. A task that is done again is another memory.

        Args:
            description: What was to be done.
            outcome: What came of it.
            success: Whether it succeeded.
            importance: Clamped to [0, 1]; default: that of the settings.
        """
        for argument, value in (("description", description), ("outcome", outcome)):
            check_text(argument, value)
        check_flag("success", success)
        fields = factories.task(description, outcome, success=success, importance=self._or_default(importance))
        # With an id of its own: by itself, an equal text is the same record.
        return self._stored(self.store.memory.remember(id=MemoryId.generate(), **fields))

    # Keeping in order

    def extract_entities(self, text: str, conversation_id: str | None = None) -> list[Memory]:
        """Store the facts about entities that a text states, and return those that are new.

        See `Memory.extract_entities` of `recollect`. For a blank text, no model is called.

        Args:
            conversation_id: The conversation that it comes from.

        Raises:
            RecollectError: The model failed or replied with something else than facts; nothing was stored.
        """
        report = self.store.memory.extract_entities(
            text,
            extractor=self._extractor,
            default_importance=self.config.default_importance,
            conversation=conversation_id,
        )
        records = [outcome.record for outcome in report.results if outcome.record is not None]
        return [memory_of(record) for record in self.store.embed(records)]

    def consolidate(self, older_than: datetime, min_count: int = 10, *, strict: bool | None = None) -> Consolidated:
        """Replace groups of old memories by summaries. See `Memory.consolidate` of `recollect`.

        A group is cut to `max_memories_per_group` of the settings, and then needs `min_count` memories.

        The metadata of a summary has `consolidation_method`: "llm_summary" with a model, or else "extractive".

        Args:
            older_than: Only memories with this timestamp or an earlier one.
            min_count: Minimum number of memories of a group, 2 or more, and at most the maximum of the settings.
            strict: Raise the error of a summary that fails; otherwise the memories of its group stay. Default:
                `strict_mode` of the settings.
        """
        settings = self.config.consolidation_config
        check_count("min_count", min_count, least=2)
        if min_count > settings.max_memories_per_group:
            rule = f"must be at most max_memories_per_group of the settings, {settings.max_memories_per_group}"
            raise InvalidArgumentError("min_count", min_count, rule)
        return self.store.memory.consolidate(
            older_than,
            min_count,
            max_count=settings.max_memories_per_group,
            summariser=self._summariser,
            strict=settings.strict_mode if strict is None else strict,
        )

    consolidate_memories = consolidate

    # Text for a prompt

    def relevant_context(
        self,
        query: str,
        max_tokens: int | None = None,
        filter: Filter = MemoryFilter.ALL,  # noqa: A002 - its name there
        *,
        tokenizer: Callable[[str], int | Sized] | None = None,
    ) -> str:
        """Return what helps to answer a query as text, by type; "" if nothing does, or if the query is blank.

        See `Memory.context` of `recollect`, which chooses what goes in, with its style "llm4s".

        Args:
            max_tokens: Maximum size, headings included; default: `context_token_budget` of the settings.
            filter: Only memories that match it.
            tokenizer: Converts a text to its tokens or to their number; default: a quarter of the UTF-8 bytes.
        """
        if not isinstance(query, str):
            raise InvalidArgumentError("query", query, "must be text")
        if not query.strip():
            return ""
        budget = self.config.context_token_budget if max_tokens is None else max_tokens
        context = self.store.memory.context(
            query, budget, where=plain(filter), style="llm4s", tokenizer=tokenizer, min_origin="unknown"
        )
        return str(context)

    get_relevant_context = relevant_context

    def conversation_context(self, conversation_id: str, max_messages: int = 20) -> str:
        """Return the newest messages of a conversation as text, oldest first; "" if there are none."""
        return self.store.memory.conversation_context(conversation_id, max_messages)

    get_conversation_context = conversation_context

    def entity_context(self, entity_id: EntityId | str) -> str:
        """Return what is known about an entity as text, newest first; "" if nothing is."""
        return self.store.memory.entity_context(entity_id_text(entity_id))

    get_entity_context = entity_context

    def user_context(self, user_id: str) -> str:
        """Return the facts about a user as text, newest first; "" if there are none.

        Raises:
            InvalidArgumentError: `user_id` is None: the facts of all users are never returned together.
        """
        return self.store.memory.user_context(user_id)

    get_user_context = user_context

    def stats(self) -> MemoryStats:
        """Return counts of the store.

        Cost:
            Reads all memories.
        """
        found = self.store.memory.stats()
        return MemoryStats(
            found["records"],
            {self._type_of(kind): count for kind, count in found["kinds"].items()},
            found["entities"],
            found["conversations"],
            self.store.memory.count(f.meta(EMBEDDING)),
            _time(found["oldest"]),
            _time(found["newest"]),
        )

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def __enter__(self) -> MemoryManager:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _type_of(self, kind: str) -> MemoryType:
        """Return a type as it was written for the newest memory that has it."""
        newest = self.store.recall(f.kind(kind), 1)
        return newest[0].memory_type if newest else MemoryType(kind)

    def _or_default(self, importance: float | None) -> float:
        return self.config.default_importance if importance is None else importance

    def _stored(self, record: Record) -> Memory:
        return memory_of(self.store.embed([record])[0])


#: The name that LLM4S gives to it.
SimpleMemoryManager = MemoryManager


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _described(record: Record) -> dict[str, Any]:
    """Return the metadata of a turn, with those that this layer gives to every message."""
    return {"role": record.role, "conversation_id": record.conversation, **record.metadata}
