"""Settings of a store and of a manager, under the names of LLM4S. Each of them has an effect, or is refused."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.arguments.checks import check_count, check_flag, is_integer, is_number
from recollect.errors import InvalidArgumentError
from recollect.records.factories import DEFAULT_IMPORTANCE

#: Automatic clean-up begins when a store is full, and leaves this share of the maximum.
_CLEANUP_SHARE = 0.9
#: A share is expressed in parts of this size.
_PARTS = 10**9


@dataclass(frozen=True)
class MemoryStoreConfig:
    """Settings of a store. Those of the quota are stored with the memories, and apply to every process that writes.

    Attributes:
        max_memories: Maximum number of memories; None: no limit. A store that is full refuses with QuotaError, unless
            it cleans up.
        default_embedding_dimensions: The number of components that every vector must have; None: any.
        enable_auto_cleanup: Whether a full store evicts the memories that were not written, read or found for the
            longest time.
        cleanup_threshold: The number of memories that a clean-up leaves; None: nine tenths of `max_memories`.

    Raises:
        InvalidArgumentError: A value is invalid, or clean-up was requested without a maximum.
    """

    max_memories: int | None = None
    default_embedding_dimensions: int | None = None
    enable_auto_cleanup: bool = False
    cleanup_threshold: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_memories", "default_embedding_dimensions", "cleanup_threshold"):
            value = getattr(self, name)
            if value is not None and not is_integer(value, 1):
                raise InvalidArgumentError(name, value, "must be an integer of at least 1, or None")
        check_flag("enable_auto_cleanup", self.enable_auto_cleanup)
        if self.max_memories is None and self.enable_auto_cleanup:
            raise InvalidArgumentError("enable_auto_cleanup", True, "requires max_memories")
        if self.cleanup_threshold is None:
            return
        if not self.enable_auto_cleanup:
            raise InvalidArgumentError("cleanup_threshold", self.cleanup_threshold, "requires enable_auto_cleanup")
        assert self.max_memories is not None
        if self.cleanup_threshold > self.max_memories:
            rule = f"must be at most max_memories, {self.max_memories}"
            raise InvalidArgumentError("cleanup_threshold", self.cleanup_threshold, rule)

    @property
    def low_water(self) -> float:
        """The share of the maximum that a clean-up leaves; 1 without clean-up."""
        if self.max_memories is None or not self.enable_auto_cleanup:
            return 1.0
        if self.cleanup_threshold is None:
            return _CLEANUP_SHARE
        # Rounded up, so that the quota, which rounds down to whole records, leaves exactly the threshold.
        return -(-self.cleanup_threshold * _PARTS // self.max_memories) / _PARTS

    @classmethod
    def default(cls) -> MemoryStoreConfig:
        """Return settings without a limit."""
        return cls()

    @classmethod
    def testing(cls) -> MemoryStoreConfig:
        """Return settings for tests: at most 1,000 memories, no clean-up."""
        return cls(max_memories=1000)

    @classmethod
    def production(cls, max_memories: int = 100_000) -> MemoryStoreConfig:
        """Return settings with a maximum, and with clean-up to nine tenths of it."""
        return cls(max_memories=max_memories, enable_auto_cleanup=True)


@dataclass(frozen=True)
class MemoryManagerConfig:
    """Settings of a manager.

    Attributes:
        auto_record_messages: Whether `MemoryManager.on_message` records the messages that pass through it.
        auto_extract_entities: Whether the facts about entities that messages of users state are stored, too.
        default_importance: The importance of messages, facts and tasks that are recorded without one, 0 to 1.
        context_token_budget: The size of a context for which no size is passed, in tokens.
        consolidation_enabled: Whether the older messages of a conversation with more than 60 are replaced by a summary.

    Raises:
        InvalidArgumentError: A value is invalid.
    """

    auto_record_messages: bool = True
    auto_extract_entities: bool = False
    default_importance: float = DEFAULT_IMPORTANCE
    context_token_budget: int = 2000
    consolidation_enabled: bool = False

    def __post_init__(self) -> None:
        for name in ("auto_record_messages", "auto_extract_entities", "consolidation_enabled"):
            check_flag(name, getattr(self, name))
        importance, budget = self.default_importance, self.context_token_budget
        if not is_number(importance, 0, 1):
            raise InvalidArgumentError("default_importance", importance, "must be a number in [0, 1]")
        check_count("context_token_budget", budget)

    @classmethod
    def default(cls) -> MemoryManagerConfig:
        """Return the default settings."""
        return cls()

    @classmethod
    def testing(cls) -> MemoryManagerConfig:
        """Return settings for tests: messages are recorded only by `MemoryManager.record_message`."""
        return cls(auto_record_messages=False)
