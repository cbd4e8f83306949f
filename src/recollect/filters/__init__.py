"""Filters: which records a call is about.

    from recollect import filters as f
    memory.find(f.kind("user_fact") & f.user("ana") & ~f.tag("old"))

Each function gives a `Filter`, a value that combines with `&`, `|` and `~` and means the same on every store. A
condition on a field that a record lacks is false, so its negation is true.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from recollect.errors import InvalidFilterError
from recollect.filters.text_form import parse
from recollect.filters.tree import (
    AllOf,
    AnyOf,
    Contains,
    Custom,
    Everything,
    Filter,
    ImportanceAtLeast,
    Is,
    Matches,
    Meta,
    Not,
    Nothing,
    Tag,
    Time,
    from_json,
)
from recollect.records.record import Record

__all__ = [
    "Filter",
    "after",
    "agent",
    "all_of",
    "any_of",
    "before",
    "between",
    "contains",
    "conversation",
    "custom",
    "entity",
    "everything",
    "from_json",
    "id",
    "importance_at_least",
    "kind",
    "matches",
    "meta",
    "not_",
    "nothing",
    "parse",
    "role",
    "session",
    "source",
    "speaker",
    "tag",
    "user",
]

_ABSENT: Any = object()


def everything() -> Filter:
    """Every record."""
    return Everything()


def nothing() -> Filter:
    """No record."""
    return Nothing()


def id(*ids: str) -> Filter:  # noqa: A001 - the field's name
    """Records with one of these ids."""
    return Is("id", ids)


def kind(*kinds: str) -> Filter:
    """Records of one of these kinds; case does not matter."""
    return Is("kind", kinds)


def role(*roles: str) -> Filter:
    """Turns whose author has one of these roles ("user", "assistant", ...)."""
    return Is("role", roles)


def speaker(*names: str) -> Filter:
    """Turns said by one of these speakers."""
    return Is("speaker", names)


def user(*users: str) -> Filter:
    """Records that belong to one of these users."""
    return Is("user", users)


def agent(*agents: str) -> Filter:
    """Records made by one of these agents."""
    return Is("agent", agents)


def conversation(*conversations: str) -> Filter:
    """Turns of one of these conversations."""
    return Is("conversation", conversations)


def session(*sessions: str) -> Filter:
    """Turns of one of these sessions."""
    return Is("session", sessions)


def entity(*entities: str) -> Filter:
    """Records about one of these entities, by `EntityId`."""
    return Is("entity", entities)


def source(*sources: str) -> Filter:
    """Records that come from one of these sources."""
    return Is("source", sources)


def tag(name: str) -> Filter:
    """Records that carry this tag."""
    return Tag(name)


def meta(key: str, equals: Any = _ABSENT, *, contains: Any = _ABSENT) -> Filter:
    """Records whose metadata has `key`; with a value, whose value there equals it; with `contains`, contains it."""
    if contains is not _ABSENT and equals is not _ABSENT:
        raise InvalidFilterError("meta", "takes a value or contains=, not both: combine two filters with &")
    if contains is not _ABSENT:
        return Meta(key, "contains", contains)
    return Meta(key, "has") if equals is _ABSENT else Meta(key, "equals", equals)


def importance_at_least(least: float) -> Filter:
    """Records whose importance is `least` or more; those without importance are not among them."""
    return ImportanceAtLeast(least)


def after(time: datetime) -> Filter:
    """Records of a time later than `time` (aware)."""
    return Time("after", start=time)


def before(time: datetime) -> Filter:
    """Records of a time earlier than `time` (aware)."""
    return Time("before", end=time)


def between(start: datetime, end: datetime) -> Filter:
    """Records of a time from `start` to `end`, both included."""
    return Time("between", start, end)


def contains(text: str, *, case_sensitive: bool = False) -> Filter:
    """Records whose content contains `text`, also in the middle of a word."""
    return Contains(text, case_sensitive)


def matches(words: str) -> Filter:
    """Records whose content has every one of these words, as whole words, in any order and case."""
    return Matches(words)


def custom(predicate: Callable[[Record], object]) -> Filter:
    """Records for which a pure function of the record is true. Works on every store; cannot travel over a wire."""
    return Custom(predicate)


def all_of(*filters: Filter) -> Filter:
    """Records that match every one of the filters; of none: everything."""
    return AllOf.of(*_checked(filters))


def any_of(*filters: Filter) -> Filter:
    """Records that match at least one of the filters; of none: nothing."""
    return AnyOf.of(*_checked(filters))


def _checked(filters: tuple[object, ...]) -> tuple[Filter, ...]:
    for each in filters:
        if not isinstance(each, Filter):
            raise InvalidFilterError(repr(each), "is no filter: make one with recollect.filters")
    return filters  # type: ignore[return-value]


def not_(condition: Filter) -> Filter:
    """Records that do not match: the same as `~condition`."""
    return Not(condition)
