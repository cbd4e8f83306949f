"""The filter tree: conditions on records as values.

The meaning of a filter is its `matches`, a Python predicate on a record, on every store. A store may use a filter to
read fewer records, but `matches` decides. Filters are frozen and hashable, combine with `&`, `|` and `~`, and have a
JSON form that round-trips; only a custom predicate has none, and raises UnsupportedError.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from typing import Any, NamedTuple

from recollect.arguments.checks import is_number
from recollect.errors import InvalidFilterError, InvalidRecordError, UnsupportedError
from recollect.filters.metadata import ABSENT, ENDS, TESTS, WITHOUT_VALUE, value_at
from recollect.records.frozen import freeze
from recollect.records.origins import ORIGINS, RANKS, Origin
from recollect.records.record import Instant, Record, located, unlocated
from recollect.text.unicode import fold, has_surrogate, nfc, words_in

MAX_DEPTH = 60
_TOO_DEEP = f"is nested deeper than {MAX_DEPTH} levels: use fewer nested all_of, any_of and ~"
#: From this many values or parts on, they are compared as a set: one lookup for each record.
_MANY = 8
#: Fields that a filter can compare with a text for equality.
TEXT_FIELDS = ("id", "kind", "role", "speaker", "user", "agent", "conversation", "session", "entity", "source")
#: Fields with the ids of other records.
LINK_FIELDS = ("supersedes", "derived_from", "parent")
#: How classes of origin are compared.
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
#: Fields that a record may lack, or have as false (`pinned`, `searchable`) or as an empty list.
OPTIONAL_FIELDS = (
    *TEXT_FIELDS[2:],
    "time",
    "importance",
    "expires",
    "pinned",
    "searchable",
    "valid_from",
    "valid_to",
    *LINK_FIELDS,
)


class Filter:
    """A condition on a record."""

    #: The depth of the tree; 1 for a condition without parts.
    depth: int = 1
    #: Whether it has times without a time zone (`located`).
    unlocated: bool = False
    #: Cached properties, which are not pickled.
    _derived: tuple[str, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in self._derived}

    def matches(self, record: Record) -> bool:
        """Return whether a record meets the condition."""
        raise NotImplementedError

    def located(self, zone: tzinfo) -> Filter:
        """Return the filter with its times that have no time zone in this one; itself if there are none."""
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form.

        Raises:
            UnsupportedError: The filter contains a custom predicate.
        """
        raise NotImplementedError

    def __bool__(self) -> bool:
        """Raise InvalidFilterError: `one and other` would be only `other`."""
        raise InvalidFilterError("and, or, not", "they do not combine filters: write one & other, one | other, ~one")

    def __and__(self, other: Filter) -> Filter:
        return AllOf.of(self, other) if isinstance(other, Filter) else NotImplemented

    def __or__(self, other: Filter) -> Filter:
        return AnyOf.of(self, other) if isinstance(other, Filter) else NotImplemented

    def __invert__(self) -> Filter:
        return Not(self)


@dataclass(frozen=True)
class Everything(Filter):
    """Every record."""

    def matches(self, record: Record) -> bool:
        return True

    def to_json(self) -> dict[str, Any]:
        return {"everything": True}


EVERYTHING = Everything()


@dataclass(frozen=True)
class Nothing(Filter):
    """No record."""

    def matches(self, record: Record) -> bool:
        return False

    def to_json(self) -> dict[str, Any]:
        return {"nothing": True}


@dataclass(frozen=True)
class Is(Filter):
    """A text field has one of some values. A record without the field never matches."""

    name: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise InvalidFilterError(self.name, "needs at least one value")
        for value in self.values:
            _checked_text(self.name, value)
        # Normalised as in records, so that the value that a caller passed to a record finds it.
        object.__setattr__(self, "values", tuple(map(fold if self.name == "kind" else nfc, self.values)))

    _derived = ("_set",)

    @cached_property
    def _set(self) -> frozenset[str]:
        return frozenset(self.values)

    def matches(self, record: Record) -> bool:
        return getattr(record, self.name) in (self.values if len(self.values) < _MANY else self._set)

    def to_json(self) -> dict[str, Any]:
        return {self.name: self.values[0] if len(self.values) == 1 else list(self.values)}


@dataclass(frozen=True)
class Originates(Filter):
    """The class of who said it (`Record.effective_origin`) is one of some classes."""

    origins: tuple[Origin, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.origins, tuple) or not self.origins:
            raise InvalidFilterError("origin", "needs at least one value")
        for value in self.origins:
            if not isinstance(value, str) or value not in RANKS:
                raise InvalidFilterError(value, f"an origin is one of {', '.join(ORIGINS)}")
        # In the order of the classes, so that equal conditions are equal filters.
        object.__setattr__(self, "origins", tuple(each for each in ORIGINS if each in self.origins))

    def matches(self, record: Record) -> bool:
        return record.effective_origin in self.origins

    def to_json(self) -> dict[str, Any]:
        return {"origin": self.origins[0] if len(self.origins) == 1 else list(self.origins)}

    @staticmethod
    def compared(operator: str, value: object) -> Originates:
        """Return the condition of a comparison with a class, where a more trusted class is greater.

        Raises:
            InvalidFilterError: It is no class, or no class is above or below it.
        """
        if not isinstance(value, str) or value not in RANKS:
            raise InvalidFilterError(value, f"an origin is one of {', '.join(ORIGINS)}")
        holds = COMPARISONS[operator]
        found = tuple(each for each in ORIGINS if holds(RANKS[each], RANKS[value]))
        if not found:
            raise InvalidFilterError(value, f"no class of origin is {operator} {value}")
        return Originates(found)


@dataclass(frozen=True)
class Has(Filter):
    """The record has a field, whatever its value; `pinned` and `searchable` must be true, and a list have an item."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in OPTIONAL_FIELDS:
            raise InvalidFilterError(self.name, f"has takes one of {', '.join(OPTIONAL_FIELDS)}")

    def matches(self, record: Record) -> bool:
        value = getattr(record, self.name)
        return value is not None and value is not False and value != ()

    def to_json(self) -> dict[str, Any]:
        return {"has": self.name}


@dataclass(frozen=True)
class Links(Filter):
    """A field with the id or the ids of other records has one of some ids."""

    name: str
    ids: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.ids:
            raise InvalidFilterError(self.name, "needs at least one value")
        for value in self.ids:
            _checked_text(self.name, value)
        object.__setattr__(self, "ids", tuple(map(nfc, self.ids)))  # normalised as in records

    _derived = ("_set",)

    @cached_property
    def _set(self) -> frozenset[str]:
        return frozenset(self.ids)

    def matches(self, record: Record) -> bool:
        return not self._set.isdisjoint(links_of(record, self.name))

    def to_json(self) -> dict[str, Any]:
        return {self.name: self.ids[0] if len(self.ids) == 1 else list(self.ids)}


def links_of(record: Record, field: str) -> tuple[str, ...]:
    """Return the ids in a field of LINK_FIELDS: the parent is one id, and the others are lists."""
    value: str | tuple[str, ...] | None = getattr(record, field)
    return (value,) if isinstance(value, str) else value or ()


@dataclass(frozen=True)
class Under(Filter):
    """A record lies below one of some records in a tree: it is a child of it, or of one that lies below it.

    A record names its parent only, so a memory replaces this by the parents that count (`resolved`).
    """

    ids: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.ids:
            raise InvalidFilterError("under", "needs at least one value")
        for value in self.ids:
            _checked_text("under", value)
        object.__setattr__(self, "ids", tuple(map(nfc, self.ids)))

    def matches(self, record: Record) -> bool:
        raise UnsupportedError("the filter `under`", "a record alone does not say what is above its parent")

    def to_json(self) -> dict[str, Any]:
        return {"under": self.ids[0] if len(self.ids) == 1 else list(self.ids)}


def resolved(where: Filter, below: Callable[[tuple[str, ...]], Filter]) -> Filter:
    """Return a filter without `Under`.

    Args:
        where: The filter.
        below: Returns the filter that all records below some records match, and no others.
    """
    match where:
        case Under():
            return below(where.ids)
        case AllOf() | AnyOf():
            parts = tuple(resolved(part, below) for part in where.parts)
            return where if all(map(operator.is_, parts, where.parts)) else type(where)(parts)
        case Not():
            part = resolved(where.part, below)
            return where if part is where.part else Not(part)
    return where


@dataclass(frozen=True)
class Tag(Filter):
    """The record has a tag."""

    tag: str

    def __post_init__(self) -> None:
        _checked_text("tag", self.tag)
        object.__setattr__(self, "tag", nfc(self.tag))

    def matches(self, record: Record) -> bool:
        return self.tag in record.tags

    def to_json(self) -> dict[str, Any]:
        return {"tag": self.tag}


class _AnyTag(NamedTuple):
    """The record has one of some tags. Never part of a tree: `AnyOf` merges its tags into one."""

    tags: frozenset[str]

    def matches(self, record: Record) -> bool:
        return not self.tags.isdisjoint(record.tags)


@dataclass(frozen=True)
class Meta(Filter):
    """A condition on one value of the metadata (`filters.metadata`).

    Attributes:
        key: The key, literally: dots, quotes and colons are part of it. Several: a path through objects.
        test: The name of the test.
        value: What the value is compared with; None for a test without one.
    """

    key: str | tuple[str, ...]
    test: str
    value: Any = field(default=None)

    def __post_init__(self) -> None:
        path = (self.key,) if isinstance(self.key, str) else self.key
        if not isinstance(path, (tuple, list)) or not path:
            raise InvalidFilterError(self.key, "meta takes a key, or a list of the keys of a path")
        for key in path:
            _checked_text("meta", key, empty=True)
        object.__setattr__(self, "key", path[0] if len(path) == 1 else tuple(path))
        test = TESTS.get(self.test)
        if test is None:
            raise InvalidFilterError(self.test, f"a metadata test is one of {', '.join(TESTS)}")
        try:
            object.__setattr__(self, "value", freeze(self.value, f"meta {self.key!r}"))
        except InvalidRecordError as error:
            raise InvalidFilterError(str(self.key), f"{error.args[1]} {error.args[2]}") from None
        if not test.is_taken(self.value):
            raise InvalidFilterError(self.value, f"{self.test} of metadata takes {test.takes}")

    def __hash__(self) -> int:
        return hash((self.key, self.test))  # equal values (1 and 1.0) can have different forms

    @property
    def path(self) -> tuple[str, ...]:
        """The key, and those below it."""
        return (self.key,) if isinstance(self.key, str) else self.key

    def matches(self, record: Record) -> bool:
        found = value_at(record.metadata, self.path)
        return found is not ABSENT and TESTS[self.test].holds(found, self.value)

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"key": self.key if isinstance(self.key, str) else list(self.key)}
        if self.test != "has":
            out[self.test] = True if self.test in WITHOUT_VALUE else self.value
        return {"meta": out}

    @staticmethod
    def of(key: Any, tests: Mapping[str, Any]) -> Filter:
        """Return the condition that all of some tests state: one, or the two ends of a range; none: the key exists.

        Raises:
            InvalidFilterError: Other tests stand together, or one does not take its value.
        """
        for name in tests:
            if name not in TESTS:
                raise InvalidFilterError(name, f"a metadata test is one of {', '.join(TESTS)}")
        if len(tests) > 1 and (len(tests) > 2 or not all(any(name in tests for name in end) for end in ENDS)):
            rule = "takes one test, or two ends of a range (above or at_least, below or at_most): combine others with &"
            raise InvalidFilterError("meta", rule)
        return AllOf.of(*(_tested(key, name, value) for name, value in tests.items())) if tests else Meta(key, "has")


def _tested(key: Any, test: str, value: Any) -> Filter:
    if test not in WITHOUT_VALUE:
        return Meta(key, test, value)
    if not isinstance(value, bool):
        raise InvalidFilterError(value, f"{test} of metadata takes true or false")
    found = Meta(key, test)
    if value:
        return found
    return Not(found) if test == "has" else AllOf.of(Meta(key, "has"), Not(found))


@dataclass(frozen=True)
class ImportanceAtLeast(Filter):
    """The record's importance is `least` or more. A record without importance never matches."""

    least: float

    def __post_init__(self) -> None:
        if not is_number(self.least):
            raise InvalidFilterError(self.least, "importance_at_least takes a number")
        try:
            object.__setattr__(self, "least", float(self.least))
        except OverflowError:
            raise InvalidFilterError(self.least, "importance_at_least takes a number in the range of a float") from None

    def matches(self, record: Record) -> bool:
        return record.importance is not None and record.importance >= self.least

    def to_json(self) -> dict[str, Any]:
        if self.least in (float("inf"), float("-inf")):
            raise UnsupportedError("an infinite importance", "JSON has no infinity")
        return {"importance_at_least": self.least}


def time_of(test: str, value: Instant | None) -> datetime:
    """Return the time that a filter compares with; a naive one if no time zone is stated.

    Raises:
        InvalidFilterError: It is not a time.
    """
    try:
        return unlocated(test, value)
    except InvalidRecordError as error:
        raise InvalidFilterError(value, f"{test} {error.args[2]}") from None


def _located(test: str, time: datetime, zone: tzinfo) -> datetime:
    try:
        return located(test, time, zone)
    except InvalidRecordError as error:  # outside the years of records
        raise InvalidFilterError(time, f"{test} {error.args[2]}") from None


@dataclass(frozen=True)
class Time(Filter):
    """The record's time is in an interval. A record without a time never matches.

    Attributes:
        test: "after" (later than `start`), "before" (earlier than `end`), "between" (`start` to `end`, both included).
        start: The start; None for "before". Without a time zone, it is in that of the memory, or else in UTC.
        end: The end, likewise; None for "after".
    """

    test: str
    start: datetime | None = None
    end: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            value = getattr(self, name)
            wanted = self.test == "between" or self.test == {"start": "after", "end": "before"}[name]
            if not wanted:
                continue
            object.__setattr__(self, name, time_of(self.test, value))
        ends = (self.start, self.end)
        object.__setattr__(self, "unlocated", any(end is not None and end.tzinfo is None for end in ends))

    def located(self, zone: tzinfo) -> Filter:
        if not self.unlocated:
            return self
        ends = (None if end is None else _located(self.test, end, zone) for end in (self.start, self.end))
        return Time(self.test, *ends)

    def matches(self, record: Record) -> bool:
        time = record.time
        if time is None:
            return False
        if self.unlocated:
            return self.located(UTC).matches(record)
        if self.test == "after":
            return time > self.start  # type: ignore[operator]
        if self.test == "before":
            return time < self.end  # type: ignore[operator]
        return self.start <= time <= self.end  # type: ignore[operator]

    def to_json(self) -> dict[str, Any]:
        ends = [end.isoformat() for end in (self.start, self.end) if end is not None]
        return {self.test: ends if self.test == "between" else ends[0]}


@dataclass(frozen=True)
class ValidAt(Filter):
    """The record is true at a time: `valid_from` <= time < `valid_to`. A missing end is open.

    The interval is half-open, so that at the moment at which one fact replaces another, exactly one of them is valid.
    A record without `valid_from` and `valid_to` is valid at any time.

    Attributes:
        time: The time. Without a time zone, it is in that of the memory, or else in UTC.
    """

    time: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "time", time_of("valid_at", self.time))
        object.__setattr__(self, "unlocated", self.time.tzinfo is None)

    def located(self, zone: tzinfo) -> Filter:
        return ValidAt(_located("valid_at", self.time, zone)) if self.unlocated else self

    def matches(self, record: Record) -> bool:
        if self.unlocated:
            return self.located(UTC).matches(record)
        started = record.valid_from is None or record.valid_from <= self.time
        return started and (record.valid_to is None or self.time < record.valid_to)

    def to_json(self) -> dict[str, Any]:
        return {"valid_at": self.time.isoformat()}


@dataclass(frozen=True)
class Contains(Filter):
    """The content contains a text, anywhere. Case and compatibility variants are ignored unless `case_sensitive`."""

    text: str
    case_sensitive: bool = False

    def __post_init__(self) -> None:
        _checked_text("contains", self.text, empty=True)

    _derived = ("_folded",)

    @cached_property
    def _folded(self) -> str:
        return fold(self.text)

    def matches(self, record: Record) -> bool:
        if self.case_sensitive:
            return isinstance(record.content, str) and self.text in record.content
        return isinstance(record.content, str) and self._folded in fold(record.content)

    def to_json(self) -> dict[str, Any]:
        return {"contains": {"text": self.text, "case_sensitive": True} if self.case_sensitive else self.text}


@dataclass(frozen=True)
class Matches(Filter):
    """All `words` occur in the content as whole words, in any order: "java" does not match "javascript"."""

    words: str

    def __post_init__(self) -> None:
        _checked_text("matches", self.words)
        if not self._words:
            raise InvalidFilterError(self.words, "matches needs at least one word")

    _derived = ("_words",)

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(words_in(self.words))

    def matches(self, record: Record) -> bool:
        if not isinstance(record.content, str):
            return False
        return self._words <= words_in(record.content)

    def to_json(self) -> dict[str, Any]:
        return {"matches": self.words}


@dataclass(frozen=True)
class Custom(Filter):
    """A predicate on a record. It must be pure: a store may call it on any record, in any order, more than once."""

    predicate: Callable[[Record], object]

    def __post_init__(self) -> None:
        if not callable(self.predicate):
            raise InvalidFilterError(self.predicate, "custom takes a function of a record")

    def matches(self, record: Record) -> bool:
        return bool(self.predicate(record))

    def to_json(self) -> dict[str, Any]:
        raise UnsupportedError("a custom filter", "a Python function has no JSON form")


@dataclass(frozen=True)
class _Several(Filter):
    """Filters joined by one operator."""

    parts: tuple[Filter, ...]
    depth: int = field(init=False, repr=False, compare=False, default=1)
    unlocated: bool = field(init=False, repr=False, compare=False, default=False)

    def __post_init__(self) -> None:
        _check_parts(self, self.parts)

    def located(self, zone: tzinfo) -> Filter:
        return type(self)(tuple(part.located(zone) for part in self.parts)) if self.unlocated else self

    @classmethod
    def of(cls, *parts: Filter) -> Filter:
        """Join filters; nested joins of the same kind are flattened."""
        flat = [inner for part in parts for inner in (part.parts if isinstance(part, cls) else (part,))]
        return cls._of_none() if not flat else flat[0] if len(flat) == 1 else cls(tuple(flat))

    @staticmethod
    def _of_none() -> Filter:
        raise NotImplementedError


class AllOf(_Several):
    """Every part matches."""

    def matches(self, record: Record) -> bool:
        return all(part.matches(record) for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        return {"all_of": [part.to_json() for part in self.parts]}

    @staticmethod
    def _of_none() -> Filter:
        return Everything()


class AnyOf(_Several):
    """At least one part matches."""

    _derived = ("_merged",)

    @cached_property
    def _merged(self) -> tuple[Filter | _AnyTag, ...]:
        """An equivalent shorter list: the conditions on one field are merged into one, as are the tags."""
        fields: dict[str, dict[str, None]] = {}
        links: dict[str, dict[str, None]] = {}
        tags: set[str] = set()
        rest: list[Filter | _AnyTag] = []
        for part in self.parts:
            if isinstance(part, Is):
                fields.setdefault(part.name, {}).update(dict.fromkeys(part.values))
            elif isinstance(part, Links):
                links.setdefault(part.name, {}).update(dict.fromkeys(part.ids))
            elif isinstance(part, Tag):
                tags.add(part.tag)
            else:
                rest.append(part)
        merged: list[Filter] = [Is(name, tuple(values)) for name, values in fields.items()]
        merged += [Links(name, tuple(ids)) for name, ids in links.items()]
        return (*merged, *([_AnyTag(frozenset(tags))] if tags else []), *rest)

    def matches(self, record: Record) -> bool:
        return any(part.matches(record) for part in (self.parts if len(self.parts) < _MANY else self._merged))

    def to_json(self) -> dict[str, Any]:
        return {"any_of": [part.to_json() for part in self.parts]}

    @staticmethod
    def _of_none() -> Filter:
        return Nothing()


@dataclass(frozen=True)
class Not(Filter):
    """The part does not match. Records that lack the field that the part tests do match."""

    part: Filter
    depth: int = field(init=False, repr=False, compare=False, default=1)
    unlocated: bool = field(init=False, repr=False, compare=False, default=False)

    def __post_init__(self) -> None:
        _check_parts(self, (self.part,))

    def located(self, zone: tzinfo) -> Filter:
        return Not(self.part.located(zone)) if self.unlocated else self

    def __invert__(self) -> Filter:
        return self.part

    def matches(self, record: Record) -> bool:
        return not self.part.matches(record)

    def to_json(self) -> dict[str, Any]:
        return {"not": self.part.to_json()}


def _checked_text(name: str, value: object, *, empty: bool = False) -> None:
    if not isinstance(value, str):
        raise InvalidFilterError(value, f"{name} takes text")
    if has_surrogate(value):
        raise InvalidFilterError(value, f"{name} contains a lone surrogate, which is not valid Unicode")
    if not value and not empty:
        raise InvalidFilterError(value, f"{name} takes text that is not empty")


def _check_parts(joined: Filter, parts: tuple[Filter, ...]) -> None:
    for part in parts:
        if not isinstance(part, Filter):
            raise InvalidFilterError(part, "is not a filter: use the functions of recollect.filters")
    depth = 1 + max((part.depth for part in parts), default=0)
    if depth > MAX_DEPTH:
        raise InvalidFilterError("...", _TOO_DEEP)
    object.__setattr__(joined, "depth", depth)
    object.__setattr__(joined, "unlocated", any(part.unlocated for part in parts))


def from_json(data: object, depth: int = 0) -> Filter:
    """Build a filter from its JSON form, an object with exactly one key.

    Args:
        data: The parsed JSON.
        depth: How many filters enclose this one.

    Raises:
        InvalidFilterError: A part of it is invalid; the message names the part.
    """
    if depth > MAX_DEPTH:
        raise InvalidFilterError("...", _TOO_DEEP)
    if not isinstance(data, Mapping) or len(data) != 1:
        raise InvalidFilterError(data, "must be an object with exactly one key")
    ((name, value),) = data.items()
    if name in ("all_of", "any_of"):
        if not isinstance(value, list):
            raise InvalidFilterError(data, f"{name} takes a list of filters")
        parts = [from_json(part, depth + 1) for part in value]
        return AllOf.of(*parts) if name == "all_of" else AnyOf.of(*parts)
    if name == "not":
        return Not(from_json(value, depth + 1))
    if name in ("everything", "nothing"):
        if value is not True:
            raise InvalidFilterError(data, f"{name} takes true")
        return Everything() if name == "everything" else Nothing()
    if name in TEXT_FIELDS:
        return Is(name, tuple(value) if isinstance(value, list) else (value,))
    if name in LINK_FIELDS:
        return Links(name, tuple(value) if isinstance(value, list) else (value,))
    if name == "origin":
        return Originates(tuple(value) if isinstance(value, list) else (value,))
    if name == "under":
        return Under(tuple(value) if isinstance(value, list) else (value,))
    if name == "has":
        return Has(value)
    if name == "tag":
        return Tag(value)
    if name == "meta":
        return _meta_from_json(value)
    if name == "importance_at_least":
        return ImportanceAtLeast(value)
    if name in ("after", "before", "between"):
        return _time_from_json(name, value)
    if name == "valid_at":
        return ValidAt(*_times_from_json(name, value, 1))
    if name == "contains":
        match value:
            case str():
                return Contains(value)
            case {"text": str(text), "case_sensitive": bool(exact)} if len(value) == 2:
                return Contains(text, exact)
        raise InvalidFilterError(data, "contains takes a text, or {text, case_sensitive}")
    if name == "matches":
        return Matches(value)
    raise InvalidFilterError(data, f"{name!r} is not a filter")


def _meta_from_json(value: object) -> Filter:
    if not isinstance(value, Mapping) or "key" not in value:
        raise InvalidFilterError(value, "meta takes {key}, {key, equals}, {key, contains} or another test of the key")
    return Meta.of(value["key"], {name: stated for name, stated in value.items() if name != "key"})


def _times_from_json(name: str, value: object, count: int) -> list[datetime]:
    values = value if isinstance(value, list) else [value]
    texts = [each for each in values if isinstance(each, str)]
    if len(values) != count or len(texts) != count:
        raise InvalidFilterError(value, f"{name} takes {'a time' if count == 1 else 'two times'} in ISO 8601")
    try:
        return [unlocated(name, text) for text in texts]
    except InvalidRecordError as error:
        raise InvalidFilterError(value, str(error.args[2])) from None


def _time_from_json(name: str, value: object) -> Filter:
    times = _times_from_json(name, value, 2 if name == "between" else 1)
    return Time(name, times[0] if name != "before" else None, times[-1] if name != "after" else None)
