"""Filters: conditions that select the records a call applies to.

    from recollect import filters as f
    memory.find(f.kind("user_fact") & f.user("ana") & ~f.tag("old"))

Each function returns a `Filter`: an immutable value that combines with `&`, `|` and `~` and has the same meaning on
every store. A condition on a field that a record lacks is false, so its negation is true. Invalid arguments raise
InvalidFilterError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from recollect.errors import InvalidFilterError
from recollect.filters.text_form import Where, parse
from recollect.filters.tree import (
    AllOf,
    AnyOf,
    Contains,
    Custom,
    Everything,
    Filter,
    Has,
    ImportanceAtLeast,
    Is,
    Links,
    Matches,
    Meta,
    Not,
    Nothing,
    Originates,
    Tag,
    Time,
    Under,
    ValidAt,
    from_json,
    time_of,
)
from recollect.records.origins import Origin
from recollect.records.record import Instant, Record

__all__ = [
    "Filter",
    "Where",
    "after",
    "agent",
    "all_of",
    "any_of",
    "before",
    "between",
    "contains",
    "conversation",
    "custom",
    "derived_from",
    "entity",
    "everything",
    "from_json",
    "has",
    "id",
    "importance_at_least",
    "kind",
    "matches",
    "meta",
    "not_",
    "nothing",
    "origin",
    "origin_at_least",
    "parent",
    "parse",
    "role",
    "session",
    "source",
    "speaker",
    "supersedes",
    "tag",
    "user",
    "valid_at",
]

_ABSENT: Any = object()
#: To the last microsecond of a day.
_ALMOST_A_DAY = timedelta(days=1) - timedelta.resolution


def everything() -> Filter:
    """Match every record."""
    return Everything()


def nothing() -> Filter:
    """Match no record."""
    return Nothing()


def id(*ids: str) -> Filter:  # noqa: A001 - the field's name
    """Match records with one of these ids."""
    return Is("id", ids)


def kind(*kinds: str) -> Filter:
    """Match records of one of these kinds, ignoring case."""
    return Is("kind", kinds)


def role(*roles: str) -> Filter:
    """Match turns whose author has one of these roles ("user", "assistant", ...)."""
    return Is("role", roles)


def speaker(*names: str) -> Filter:
    """Match turns of one of these speakers."""
    return Is("speaker", names)


def user(*users: str) -> Filter:
    """Match records of one of these users."""
    return Is("user", users)


def agent(*agents: str) -> Filter:
    """Match records of one of these agents."""
    return Is("agent", agents)


def conversation(*conversations: str) -> Filter:
    """Match turns of one of these conversations."""
    return Is("conversation", conversations)


def session(*sessions: str) -> Filter:
    """Match turns of one of these sessions."""
    return Is("session", sessions)


def entity(*entities: str) -> Filter:
    """Match records about one of these entities (`EntityId`)."""
    return Is("entity", entities)


def source(*sources: str) -> Filter:
    """Match records from one of these sources."""
    return Is("source", sources)


def origin(*origins: Origin) -> Filter:
    """Match records of one of these classes of origin (docs/trust.md): `origin("tool", "web")`."""
    return Originates(origins)


def origin_at_least(origin: Origin) -> Filter:
    """Match records of this class of origin or a more trusted one.

    From the most trusted: owner, user, assistant, tool, document, web, unknown.
    """
    return Originates.compared(">=", origin)


def has(field: str) -> Filter:
    """Match records that have a field, whatever its value: `~has("user")` selects those that belong to no user.

    Args:
        field: role, speaker, user, agent, conversation, session, entity, source, time, importance, expires, valid_from,
            valid_to, supersedes, derived_from, parent, pinned or searchable. A record has `pinned` if it is pinned, and
            `searchable` unless it was stored with `searchable=False`.
    """
    return Has(field)


def supersedes(*ids: str) -> Filter:
    """Match records that replace one of these records: its id is in their `supersedes`."""
    return Links("supersedes", ids)


def derived_from(*ids: str) -> Filter:
    """Match records derived from one of these records: its id is in their `derived_from`."""
    return Links("derived_from", ids)


def parent(*ids: str) -> Filter:
    """Match the children of these records: one of them is their `parent`."""
    return Links("parent", ids)


def under(*ids: str) -> Filter:
    """Match the records below these records: their children, the children of those, and so on.

    Which they are is looked up when a memory reads, so the filter cannot be evaluated on a single record.
    """
    return Under(ids)


def tag(name: str) -> Filter:
    """Match records with this tag."""
    return Tag(name)


def meta(
    key: str | Sequence[str],
    equals: Any = _ABSENT,
    *,
    contains: Any = _ABSENT,
    one_of: Sequence[Any] = _ABSENT,
    above: float | str = _ABSENT,
    at_least: float | str = _ABSENT,
    below: float | str = _ABSENT,
    at_most: float | str = _ABSENT,
    any_of: Sequence[Any] = _ABSENT,
    all_of: Sequence[Any] = _ABSENT,
    empty: bool = _ABSENT,
) -> Filter:
    """Match records by one value of their metadata: by one test, or by two ends of a range.

        f.meta("pages", at_least=10, below=100)
        f.meta(["author", "name"], one_of=["Ana", "Bob"])

    Without a test, any value matches. A record without the key, or without one of a path, never matches.

    Args:
        key: The key, taken literally: dots, quotes and colons are part of it. A list of keys is a path: the value
            under the first is an object that has the second, and so on.
        equals: The value must be equal to this (Python's `==`).
        contains: A text must contain this, ignoring case; a list must have it as an item, an object as one of its keys.
        one_of: The value must be equal to one of these.
        above: A number must be greater than this number, or a text come after this text, by code point. A value of
            another type does not match, whatever it is; True and False are no numbers here.
        at_least: The same, or equal.
        below: A number must be less, or a text come before.
        at_most: The same, or equal.
        any_of: A list must have one of these items.
        all_of: A list must have all of these items.
        empty: True: the value must be null, or an empty text, list or object. False: it must be anything else.
    """
    stated = {
        "equals": equals,
        "contains": contains,
        "one_of": one_of,
        "above": above,
        "at_least": at_least,
        "below": below,
        "at_most": at_most,
        "any_of": any_of,
        "all_of": all_of,
        "empty": empty,
    }
    return Meta.of(key, {name: value for name, value in stated.items() if value is not _ABSENT})


def importance_at_least(least: float) -> Filter:
    """Match records whose importance is at least `least`. Records without importance do not match."""
    return ImportanceAtLeast(least)


def after(time: Instant) -> Filter:
    """Match records with a time later than `time`.

    Args:
        time: A datetime with a time zone, ISO 8601 text, or a date (its midnight). What has no offset is in the time
            zone of the memory that the filter is passed to.
    """
    return Time("after", start=time_of("after", time))


def before(time: Instant) -> Filter:
    """Match records with a time earlier than `time`.

    Args:
        time: See `after`.
    """
    return Time("before", end=time_of("before", time))


def between(start: Instant, end: Instant) -> Filter:
    """Match records with a time from `start` to `end`, both included.

    Args:
        start: See `after`.
        end: See `after`. If it is a date, also as text, the whole day is included.
    """
    last = time_of("between", end)
    return Time("between", time_of("between", start), last + _ALMOST_A_DAY if _is_day(end) else last)


def _is_day(value: Instant) -> bool:
    """Return whether a valid time is a date without a time of the day."""
    if isinstance(value, str):
        try:
            date.fromisoformat(value)
        except ValueError:
            return False
        return True
    return not isinstance(value, datetime)


def valid_at(time: Instant) -> Filter:
    """Match records that are true at a time: `valid_from` <= time < `valid_to`, where a missing end is open.

    Args:
        time: See `after`.
    """
    return ValidAt(time_of("valid_at", time))


def contains(text: str, *, case_sensitive: bool = False) -> Filter:
    """Match records whose content contains `text`, also within a word.

    Unless `case_sensitive`, case and compatibility variants of characters are ignored.
    """
    return Contains(text, case_sensitive)


def matches(words: str) -> Filter:
    """Match records whose content has all of these words, as whole words, in any order, ignoring case."""
    return Matches(words)


def custom(predicate: Callable[[Record], object]) -> Filter:
    """Match records for which a pure function of the record is true. Works on every store, but has no JSON form."""
    return Custom(predicate)


def all_of(*filters: Filter) -> Filter:
    """Match records that match all of the filters. Without filters, every record matches."""
    return AllOf.of(*_checked(filters))


def any_of(*filters: Filter) -> Filter:
    """Match records that match at least one of the filters. Without filters, no record matches."""
    return AnyOf.of(*_checked(filters))


def _checked(filters: tuple[object, ...]) -> tuple[Filter, ...]:
    for each in filters:
        if not isinstance(each, Filter):
            raise InvalidFilterError(repr(each), "is not a filter: use the functions of recollect.filters")
    return filters  # type: ignore[return-value]


def not_(condition: Filter) -> Filter:
    """Match records that do not match `condition`: the same as `~condition`."""
    return Not(condition)
