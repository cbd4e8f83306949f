"""Settings of a store and of a manager, under the names of LLM4S."""

from __future__ import annotations

from dataclasses import dataclass, field

from recollect.arguments.checks import check_count, check_flag, is_number
from recollect.errors import InvalidArgumentError
from recollect.records.factories import DEFAULT_IMPORTANCE

#: The share of the maximum that is the threshold of the settings for production.
_PRODUCTION_SHARE = 0.9


@dataclass(frozen=True)
class MemoryStoreConfig:
    """Settings of a store. The limit is stored with the memories, and applies to every process that writes.

    A store that exceeds its limit evicts the oldest memories, by their timestamp, until the limit is left. The memory
    that is being stored stays, and so do pinned records.

    Attributes:
        max_memories: Maximum number of memories; None: no maximum.
        default_embedding_dimensions: The number of components that every vector must have; None: any.
        enable_auto_cleanup: Whether a store without a maximum evicts, too.
        cleanup_threshold: The number of memories above which such a store evicts. With a maximum, a clean-up begins
            where that is exceeded, and without `enable_auto_cleanup` never.

    Raises:
        InvalidArgumentError: A value is invalid.
    """

    max_memories: int | None = None
    default_embedding_dimensions: int | None = None
    enable_auto_cleanup: bool = False
    cleanup_threshold: int = 10_000

    def __post_init__(self) -> None:
        for name in ("max_memories", "default_embedding_dimensions"):
            check_count(name, getattr(self, name), optional=True)
        check_count("cleanup_threshold", self.cleanup_threshold)
        check_flag("enable_auto_cleanup", self.enable_auto_cleanup)

    @property
    def limit(self) -> int | None:
        """The number of memories that a clean-up leaves; None if there is none."""
        if self.max_memories is not None:
            return self.max_memories
        return self.cleanup_threshold if self.enable_auto_cleanup else None

    @classmethod
    def default(cls) -> MemoryStoreConfig:
        """Return settings without a limit."""
        return cls()

    @classmethod
    def testing(cls) -> MemoryStoreConfig:
        """Return settings for tests: at most 1,000 memories."""
        return cls(max_memories=1000)

    @classmethod
    def production(cls, max_memories: int = 100_000) -> MemoryStoreConfig:
        """Return settings with a maximum and with automatic clean-up, whose threshold is nine tenths of it."""
        check_count("max_memories", max_memories)
        threshold = max(1, int(max_memories * _PRODUCTION_SHARE))
        return cls(max_memories=max_memories, enable_auto_cleanup=True, cleanup_threshold=threshold)


@dataclass(frozen=True)
class ConsolidationConfig:
    """Settings of consolidation, of the call and of the one by itself.

    Attributes:
        max_memories_per_group: Maximum number of memories that one summary replaces, 2 or more.
        strict_mode: Whether a summary that fails is an error. Otherwise the memories of its group stay.

    Raises:
        InvalidArgumentError: A value is invalid.
    """

    max_memories_per_group: int = 50
    strict_mode: bool = False

    def __post_init__(self) -> None:
        check_count("max_memories_per_group", self.max_memories_per_group, least=2)
        check_flag("strict_mode", self.strict_mode)

    @classmethod
    def default(cls) -> ConsolidationConfig:
        """Return the default settings."""
        return cls()

    @classmethod
    def strict(cls) -> ConsolidationConfig:
        """Return settings with which a summary that fails is an error."""
        return cls(strict_mode=True)


@dataclass(frozen=True)
class MemoryManagerConfig:
    """Settings of a manager.

    Attributes:
        auto_record_messages: Whether `MemoryManager.on_message` records the messages that pass through it.
        auto_extract_entities: Whether the facts about entities that messages of users state are stored, too.
        default_importance: The importance of messages, facts and tasks that are recorded without one, 0 to 1.
        context_token_budget: The size of a context for which no size is passed, in tokens.
        consolidation_enabled: Whether the older messages of a conversation with more than 60 are replaced by a summary.
        consolidation_config: The settings of consolidation.

    Raises:
        InvalidArgumentError: A value is invalid.
    """

    auto_record_messages: bool = True
    auto_extract_entities: bool = False
    default_importance: float = DEFAULT_IMPORTANCE
    context_token_budget: int = 2000
    consolidation_enabled: bool = False
    consolidation_config: ConsolidationConfig = field(default_factory=ConsolidationConfig)

    def __post_init__(self) -> None:
        for name in ("auto_record_messages", "auto_extract_entities", "consolidation_enabled"):
            check_flag(name, getattr(self, name))
        importance, budget = self.default_importance, self.context_token_budget
        if not is_number(importance, 0, 1):
            raise InvalidArgumentError("default_importance", importance, "must be a number in [0, 1]")
        check_count("context_token_budget", budget)
        if not isinstance(self.consolidation_config, ConsolidationConfig):
            rule = "must be a ConsolidationConfig"
            raise InvalidArgumentError("consolidation_config", self.consolidation_config, rule)

    @classmethod
    def default(cls) -> MemoryManagerConfig:
        """Return the default settings."""
        return cls()

    @classmethod
    def testing(cls) -> MemoryManagerConfig:
        """Return settings for tests: messages are recorded only by `MemoryManager.record_message`."""
        return cls(auto_record_messages=False)

    @classmethod
    def full_featured(cls) -> MemoryManagerConfig:
        """Return settings with which facts about entities are stored and long conversations are consolidated."""
        return cls(auto_extract_entities=True, consolidation_enabled=True)
