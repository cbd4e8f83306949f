"""The filters of LLM4S as filters of this package: the same conditions, combined with `&`, `|` and `~`.

Each is a predicate, on memories and on the records of every store alike: a name in the metadata is taken literally, a
missing value matches no condition, and the negation of a condition matches what the condition does not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import ClassVar

from recollect import Record
from recollect import filters as f
from recollect.compat.llm4s.types import (
    FIELD_OF,
    RESERVED,
    EntityId,
    Memory,
    MemoryType,
    as_text,
    entity_id_text,
    memory_of,
    record_of,
)
from recollect.errors import InvalidFilterError
from recollect.filters import Filter
from recollect.filters.tree import AllOf, AnyOf
from recollect.records.record import Instant

#: The earliest and the latest time of a record.
_FIRST = datetime(2, 1, 1, tzinfo=UTC)
_LAST = datetime(9998, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


class MemoryFilter(AllOf):
    """A condition on a memory, and the constructors of conditions.

        MemoryFilter.by_type("task").matches(Memory.from_task("book", "12A", True))  # True

    It is a filter of `recollect.filters`, and can be passed wherever those can. `one & other` matches memories, too, if
    `one` is a MemoryFilter; the other may be any filter.

    Attributes:
        ALL: Every memory.
        NONE: No memory.
    """

    # A conjunction of one part, so that what plans the reading of a store understands it.

    ALL: ClassVar[MemoryFilter]
    NONE: ClassVar[MemoryFilter]

    def matches(self, record: Record | Memory) -> bool:
        """Return whether a memory, or a record, meets the condition.

        Raises:
            InvalidRecordError: It is a memory that no store accepts, since its content or metadata are invalid.
        """
        return super().matches(record_of(record) if isinstance(record, Memory) else record)

    def __and__(self, other: Filter) -> MemoryFilter:
        return _filter(AllOf.of(plain(self), plain(other))) if isinstance(other, Filter) else NotImplemented

    def __or__(self, other: Filter) -> MemoryFilter:
        return _filter(AnyOf.of(plain(self), plain(other))) if isinstance(other, Filter) else NotImplemented

    def __invert__(self) -> MemoryFilter:
        return _filter(~plain(self))

    @staticmethod
    def by_type(memory_type: str) -> MemoryFilter:
        """Match memories of a type."""
        return _filter(f.kind(MemoryType(memory_type)))

    @staticmethod
    def by_types(memory_types: Iterable[str]) -> MemoryFilter:
        """Match memories of one of some types; of none, if there are none."""
        if isinstance(memory_types, str):
            raise InvalidFilterError(memory_types, "by_types takes a list of types")
        types = [MemoryType(each) for each in memory_types]
        return _filter(f.kind(*types) if types else f.nothing())

    @staticmethod
    def by_metadata(key: str, value: str) -> MemoryFilter:
        """Match memories whose metadata has this value under a name."""
        if not isinstance(value, str):
            raise InvalidFilterError(value, "by_metadata takes a text as the value")
        if key in FIELD_OF:
            return _filter(f.from_json({FIELD_OF[key]: value}) if value else f.nothing())
        if key in RESERVED:
            return MemoryFilter.NONE
        # Python's == of the metadata also takes 1 for True.
        equal = [
            f.meta(key, value),
            *(each & f.custom(lambda record: as_text(record.metadata[key]) == value) for each in _as_json(key, value)),
        ]
        return _filter(f.any_of(*equal))

    @staticmethod
    def has_metadata(key: str) -> MemoryFilter:
        """Match memories whose metadata has a name."""
        if key in FIELD_OF:
            field = FIELD_OF[key]
            return _filter(f.custom(lambda record: getattr(record, field) is not None))
        return MemoryFilter.NONE if key in RESERVED else _filter(f.meta(key))

    @staticmethod
    def metadata_contains(key: str, substring: str) -> MemoryFilter:
        """Match memories whose metadata has a value under a name that contains a text. Case matters."""
        if not isinstance(substring, str):
            raise InvalidFilterError(substring, "metadata_contains takes a text")

        def contains(record: Record) -> bool:
            value = getattr(record, FIELD_OF[key]) if key in FIELD_OF else record.metadata.get(key)
            return value is not None and substring in as_text(value)

        found = _filter(f.custom(contains))
        return found if key in FIELD_OF else MemoryFilter.has_metadata(key) & found

    @staticmethod
    def by_entity(entity_id: EntityId | str) -> MemoryFilter:
        """Match memories about an entity."""
        return MemoryFilter.by_metadata("entity_id", entity_id_text(entity_id))

    @staticmethod
    def by_conversation(conversation_id: str) -> MemoryFilter:
        """Match memories of a conversation."""
        return MemoryFilter.by_metadata("conversation_id", conversation_id)

    @staticmethod
    def by_time_range(after: Instant | None = None, before: Instant | None = None) -> MemoryFilter:
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
            return MemoryFilter.ALL
        return _filter(f.between(_FIRST if after is None else after, _LAST if before is None else before))

    @staticmethod
    def min_importance(threshold: float) -> MemoryFilter:
        """Match memories whose importance is at least `threshold`. Those without importance do not match."""
        return _filter(f.importance_at_least(threshold))

    @staticmethod
    def content_contains(substring: str, case_sensitive: bool = False) -> MemoryFilter:
        """Match memories whose content contains a text, also within a word."""
        return _filter(f.contains(substring, case_sensitive=case_sensitive))

    @staticmethod
    def custom(predicate: Callable[[Memory], object]) -> MemoryFilter:
        """Match memories for which a pure function is true."""
        if not callable(predicate):
            raise InvalidFilterError(predicate, "custom takes a function of a memory")
        return _filter(f.custom(lambda record: predicate(memory_of(record))))

    @staticmethod
    def conversations() -> MemoryFilter:
        """Match messages."""
        return _filter(f.kind(MemoryType.CONVERSATION))

    @staticmethod
    def entities() -> MemoryFilter:
        """Match facts about entities."""
        return _filter(f.kind(MemoryType.ENTITY))

    @staticmethod
    def knowledge() -> MemoryFilter:
        """Match pieces of documents."""
        return _filter(f.kind(MemoryType.KNOWLEDGE))

    @staticmethod
    def user_facts() -> MemoryFilter:
        """Match facts about users."""
        return _filter(f.kind(MemoryType.USER_FACT))

    @staticmethod
    def tasks() -> MemoryFilter:
        """Match tasks."""
        return _filter(f.kind(MemoryType.TASK))

    @staticmethod
    def after(instant: Instant) -> MemoryFilter:
        """Match memories at a time or later."""
        return MemoryFilter.by_time_range(after=instant)

    @staticmethod
    def before(instant: Instant) -> MemoryFilter:
        """Match memories at a time or earlier."""
        return MemoryFilter.by_time_range(before=instant)

    @staticmethod
    def between(start: Instant, end: Instant) -> MemoryFilter:
        """Match memories from one time to another, both included."""
        return MemoryFilter.by_time_range(start, end)

    @staticmethod
    def for_conversation(conversation_id: str) -> MemoryFilter:
        """Match memories of a conversation."""
        return MemoryFilter.by_conversation(conversation_id)

    @staticmethod
    def for_entity(entity_id: EntityId | str) -> MemoryFilter:
        """Match memories about an entity."""
        return MemoryFilter.by_entity(entity_id)

    @staticmethod
    def important(min_score: float = 0.5) -> MemoryFilter:
        """Match memories whose importance is at least `min_score`."""
        return _filter(f.importance_at_least(min_score))

    @staticmethod
    def all_of(*filters: Filter) -> MemoryFilter:
        """Match memories that match all of the filters; without filters, every memory."""
        return _filter(f.all_of(*map(plain, filters)))

    @staticmethod
    def any_of(*filters: Filter) -> MemoryFilter:
        """Match memories that match at least one of the filters; without filters, none."""
        return _filter(f.any_of(*map(plain, filters)))


def _filter(condition: Filter) -> MemoryFilter:
    return MemoryFilter((condition,))


def plain(where: Filter) -> Filter:
    """Return a filter of this module as one of `recollect.filters`, for which stores have shorter ways."""
    return AllOf.of(*where.parts) if isinstance(where, MemoryFilter) else where


MemoryFilter.ALL = _filter(f.everything())
MemoryFilter.NONE = _filter(f.nothing())


def _as_json(key: str, text: str) -> list[Filter]:
    """Return the condition that a value of the metadata equals the JSON value, other than a text, with this form."""
    try:
        value = json.loads(text)
        return [] if isinstance(value, str) or as_text(value) != text else [f.meta(key, value)]
    except (ValueError, RecursionError):  # also a number that no record can have (InvalidFilterError)
        return []
