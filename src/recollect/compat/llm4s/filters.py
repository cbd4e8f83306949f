"""The filters of LLM4S as filters of this package: the same conditions, combined with `&`, `|` and `~`.

Each is a predicate on the memory, on every store: a name in the metadata is taken literally, a missing value matches no
condition, and the negation of a condition matches what the condition does not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import ClassVar

from recollect import Record
from recollect import filters as f
from recollect.compat.llm4s.types import FIELD_OF, Memory, MemoryType, as_text, memory_of
from recollect.compat.llm4s.vectors import EMBEDDING
from recollect.errors import InvalidFilterError
from recollect.filters import Filter
from recollect.records.record import Instant

#: The earliest and the latest time of a record.
_FIRST = datetime(2, 1, 1, tzinfo=UTC)
_LAST = datetime(9998, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


class MemoryFilter:
    """The constructors of filters. Their results are filters of `recollect.filters`, and combine with those."""

    #: Every memory.
    ALL: ClassVar[Filter] = f.everything()
    #: No memory.
    NONE: ClassVar[Filter] = f.nothing()

    @staticmethod
    def by_type(memory_type: str) -> Filter:
        """Match memories of a type."""
        return f.kind(MemoryType(memory_type))

    @staticmethod
    def by_types(memory_types: Iterable[str]) -> Filter:
        """Match memories of one of some types; of none, if there are none."""
        if isinstance(memory_types, str):
            raise InvalidFilterError(memory_types, "by_types takes a list of types")
        types = [MemoryType(each) for each in memory_types]
        return f.kind(*types) if types else f.nothing()

    @staticmethod
    def by_metadata(key: str, value: str) -> Filter:
        """Match memories whose metadata has this value under a name."""
        if not isinstance(value, str):
            raise InvalidFilterError(value, "by_metadata takes a text as the value")
        if key in FIELD_OF:
            return f.from_json({FIELD_OF[key]: value}) if value else f.nothing()
        if key == EMBEDDING:
            return f.nothing()
        # Python's == of the metadata also takes 1 for True.
        return f.any_of(
            f.meta(key, value),
            *(each & f.custom(lambda record: as_text(record.metadata[key]) == value) for each in _as_json(key, value)),
        )

    @staticmethod
    def has_metadata(key: str) -> Filter:
        """Match memories whose metadata has a name."""
        if key in FIELD_OF:
            field = FIELD_OF[key]
            return f.custom(lambda record: getattr(record, field) is not None)
        return f.nothing() if key == EMBEDDING else f.meta(key)

    @staticmethod
    def metadata_contains(key: str, substring: str) -> Filter:
        """Match memories whose metadata has a value under a name that contains a text. Case matters."""
        if not isinstance(substring, str):
            raise InvalidFilterError(substring, "metadata_contains takes a text")

        def contains(record: Record) -> bool:
            value = getattr(record, FIELD_OF[key]) if key in FIELD_OF else record.metadata.get(key)
            return value is not None and substring in as_text(value)

        return f.custom(contains) if key in FIELD_OF else MemoryFilter.has_metadata(key) & f.custom(contains)

    @staticmethod
    def by_entity(entity_id: str) -> Filter:
        """Match memories about an entity."""
        return MemoryFilter.by_metadata("entity_id", entity_id)

    @staticmethod
    def by_conversation(conversation_id: str) -> Filter:
        """Match memories of a conversation."""
        return MemoryFilter.by_metadata("conversation_id", conversation_id)

    @staticmethod
    def by_time_range(after: Instant | None = None, before: Instant | None = None) -> Filter:
        """Match memories from one time to another, both included. An end that is None does not limit the range.

        Args:
            after: A datetime with a time zone, ISO 8601 text, or a date.
            before: The same; if it is a date, the whole day is included.
        """
        if after is not None:
            f.after(after)  # an error names the argument
        if before is not None:
            f.before(before)
        if after is None and before is None:
            return f.everything()
        return f.between(_FIRST if after is None else after, _LAST if before is None else before)

    @staticmethod
    def min_importance(threshold: float) -> Filter:
        """Match memories whose importance is at least `threshold`. Those without importance do not match."""
        return f.importance_at_least(threshold)

    @staticmethod
    def content_contains(substring: str, case_sensitive: bool = False) -> Filter:
        """Match memories whose content contains a text, also within a word."""
        return f.contains(substring, case_sensitive=case_sensitive)

    @staticmethod
    def custom(predicate: Callable[[Memory], object]) -> Filter:
        """Match memories for which a pure function is true."""
        if not callable(predicate):
            raise InvalidFilterError(predicate, "custom takes a function of a memory")
        return f.custom(lambda record: predicate(memory_of(record)))

    @staticmethod
    def conversations() -> Filter:
        """Match messages."""
        return f.kind(MemoryType.CONVERSATION)

    @staticmethod
    def entities() -> Filter:
        """Match facts about entities."""
        return f.kind(MemoryType.ENTITY)

    @staticmethod
    def knowledge() -> Filter:
        """Match pieces of documents."""
        return f.kind(MemoryType.KNOWLEDGE)

    @staticmethod
    def user_facts() -> Filter:
        """Match facts about users."""
        return f.kind(MemoryType.USER_FACT)

    @staticmethod
    def tasks() -> Filter:
        """Match tasks."""
        return f.kind(MemoryType.TASK)

    @staticmethod
    def after(instant: Instant) -> Filter:
        """Match memories at a time or later."""
        return MemoryFilter.by_time_range(after=instant)

    @staticmethod
    def before(instant: Instant) -> Filter:
        """Match memories at a time or earlier."""
        return MemoryFilter.by_time_range(before=instant)

    @staticmethod
    def between(start: Instant, end: Instant) -> Filter:
        """Match memories from one time to another, both included."""
        return MemoryFilter.by_time_range(start, end)

    @staticmethod
    def for_conversation(conversation_id: str) -> Filter:
        """Match memories of a conversation."""
        return MemoryFilter.by_conversation(conversation_id)

    @staticmethod
    def for_entity(entity_id: str) -> Filter:
        """Match memories about an entity."""
        return MemoryFilter.by_entity(entity_id)

    @staticmethod
    def important(min_score: float = 0.5) -> Filter:
        """Match memories whose importance is at least `min_score`."""
        return f.importance_at_least(min_score)

    @staticmethod
    def all_of(*filters: Filter) -> Filter:
        """Match memories that match all of the filters; without filters, every memory."""
        return f.all_of(*filters)

    @staticmethod
    def any_of(*filters: Filter) -> Filter:
        """Match memories that match at least one of the filters; without filters, none."""
        return f.any_of(*filters)


def _as_json(key: str, text: str) -> list[Filter]:
    """Return the condition that a value of the metadata equals the JSON value, other than a text, with this form."""
    try:
        value = json.loads(text)
        return [] if isinstance(value, str) or as_text(value) != text else [f.meta(key, value)]
    except (ValueError, RecursionError):  # also a number that no record can have (InvalidFilterError)
        return []
