"""The filter tree: conditions on records as values.

A filter means what its `matches` says, a plain Python predicate on a record, on every store and over every wire. A
store may use a filter to read less, but it asks `matches` in the end. Filters are frozen and hashable, combine with
`&`, `|` and `~`, and have a JSON form that round-trips; a custom predicate is the one that cannot travel, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from recollect.errors import InvalidFilterError, InvalidRecordError, UnsupportedError
from recollect.records.frozen import freeze
from recollect.records.record import Record, aware, parse_time
from recollect.text.unicode import fold, has_surrogate, nfc, words_in

MAX_DEPTH = 60
_TOO_DEEP = f"is nested deeper than {MAX_DEPTH} levels: join its conditions in fewer all_of, any_of and ~"
#: From so many values or parts on, a set is made of them: a record is then compared in the time of one lookup.
_MANY = 8
#: Fields that a filter can compare with a text, exactly.
TEXT_FIELDS = ("id", "kind", "role", "speaker", "user", "agent", "conversation", "session", "entity", "source")


class Filter:
    """A condition on a record."""

    #: How deeply conditions are nested in it.
    depth: int = 1
    #: What is derived from the fields when it is first needed, and not pickled.
    _derived: tuple[str, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in self._derived}

    def matches(self, record: Record) -> bool:
        """Whether the record meets the condition."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """The JSON form. Raises: UnsupportedError where a custom predicate is part of the filter."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        """Refused: `one and other` would be `other` alone."""
        raise InvalidFilterError("and, or, not", "do not combine filters: write one & other, one | other, ~one")

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
    """A text field is one of some values. A record without the field never matches."""

    name: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise InvalidFilterError(self.name, "needs at least one value")
        for value in self.values:
            _checked_text(self.name, value)
        # As records hold them, so that what a record was given finds it.
        if self.name in ("id", "kind"):
            object.__setattr__(self, "values", tuple(map(nfc if self.name == "id" else fold, self.values)))

    _derived = ("_set",)

    @cached_property
    def _set(self) -> frozenset[str]:
        return frozenset(self.values)

    def matches(self, record: Record) -> bool:
        return getattr(record, self.name) in (self.values if len(self.values) < _MANY else self._set)

    def to_json(self) -> dict[str, Any]:
        return {self.name: self.values[0] if len(self.values) == 1 else list(self.values)}


@dataclass(frozen=True)
class Tag(Filter):
    """The record carries a tag."""

    tag: str

    def __post_init__(self) -> None:
        _checked_text("tag", self.tag)

    def matches(self, record: Record) -> bool:
        return self.tag in record.tags

    def to_json(self) -> dict[str, Any]:
        return {"tag": self.tag}


class _AnyTag(NamedTuple):
    """The record carries one of some tags. Part of no tree: `AnyOf` merges its tags into one."""

    tags: frozenset[str]

    def matches(self, record: Record) -> bool:
        return not self.tags.isdisjoint(record.tags)


@dataclass(frozen=True)
class Meta(Filter):
    """A condition on one key of the metadata, taken as it is: dots, quotes and colons are part of the key.

    test: "has" (the key is there), "equals" (Python's `==`), "contains" (a text holds the value, without regard to
    case; a list has it as an item; an object has it as a key).
    """

    key: str
    test: str
    value: Any = field(default=None)

    def __post_init__(self) -> None:
        _checked_text("meta", self.key, empty=True)
        if self.test not in ("has", "equals", "contains"):
            raise InvalidFilterError(self.test, "a metadata test is has, equals or contains")
        try:
            object.__setattr__(self, "value", freeze(self.value, f"meta {self.key!r}"))
        except InvalidRecordError as error:
            raise InvalidFilterError(self.key, f"{error.args[1]} {error.args[2]}") from None

    def __hash__(self) -> int:
        return hash((self.key, self.test))  # values that are equal (1 and 1.0) need not look alike

    def matches(self, record: Record) -> bool:
        if self.key not in record.metadata:
            return False
        held = record.metadata[self.key]
        if self.test == "has":
            return True
        if self.test == "equals":
            return bool(held == self.value)
        if isinstance(held, str):
            return isinstance(self.value, str) and fold(self.value) in fold(held)
        if isinstance(held, dict):
            return isinstance(self.value, str) and self.value in held
        return isinstance(held, list) and self.value in held

    def to_json(self) -> dict[str, Any]:
        out = {"key": self.key}
        if self.test != "has":
            out[self.test] = self.value
        return {"meta": out}


@dataclass(frozen=True)
class ImportanceAtLeast(Filter):
    """The record's importance is `least` or more. A record without importance never matches."""

    least: float

    def __post_init__(self) -> None:
        if isinstance(self.least, bool) or not isinstance(self.least, (int, float)) or self.least != self.least:
            raise InvalidFilterError(self.least, "importance_at_least takes a number")
        try:
            object.__setattr__(self, "least", float(self.least))
        except OverflowError:
            raise InvalidFilterError(self.least, "importance_at_least takes a number that a float can hold") from None

    def matches(self, record: Record) -> bool:
        return record.importance is not None and record.importance >= self.least

    def to_json(self) -> dict[str, Any]:
        if self.least in (float("inf"), float("-inf")):
            raise UnsupportedError("an infinite importance", "JSON has no infinity")
        return {"importance_at_least": self.least}


@dataclass(frozen=True)
class Time(Filter):
    """The record's time lies in an interval. A record without a time never matches.

    test: "after" (later than `start`), "before" (earlier than `end`), "between" (`start` to `end`, both included).
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
            try:
                object.__setattr__(self, name, aware(self.test, value))
            except InvalidRecordError as error:
                raise InvalidFilterError(value, f"{self.test} {error.args[2]}") from None

    def matches(self, record: Record) -> bool:
        time = record.time
        if time is None:
            return False
        if self.test == "after":
            return time > self.start  # type: ignore[operator]
        if self.test == "before":
            return time < self.end  # type: ignore[operator]
        return self.start <= time <= self.end  # type: ignore[operator]

    def to_json(self) -> dict[str, Any]:
        ends = [end.isoformat() for end in (self.start, self.end) if end is not None]
        return {self.test: ends if self.test == "between" else ends[0]}


@dataclass(frozen=True)
class Contains(Filter):
    """The content contains a text, anywhere; without regard to case and compatibility variants unless asked."""

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
    """Every word of `words` occurs in the content as a whole word, in any order: "java" is not in "javascript"."""

    words: str

    def __post_init__(self) -> None:
        _checked_text("matches", self.words)
        if not self._wanted:
            raise InvalidFilterError(self.words, "matches needs at least one word")

    _derived = ("_wanted",)

    @cached_property
    def _wanted(self) -> frozenset[str]:
        return frozenset(words_in(self.words))

    def matches(self, record: Record) -> bool:
        if not isinstance(record.content, str):
            return False
        return self._wanted <= words_in(record.content)

    def to_json(self) -> dict[str, Any]:
        return {"matches": self.words}


@dataclass(frozen=True)
class Custom(Filter):
    """Any predicate on a record. It must be pure: a store may ask it of any record, in any order, more than once."""

    predicate: Callable[[Record], object]

    def __post_init__(self) -> None:
        if not callable(self.predicate):
            raise InvalidFilterError(self.predicate, "custom takes a function of a record")

    def matches(self, record: Record) -> bool:
        return bool(self.predicate(record))

    def to_json(self) -> dict[str, Any]:
        raise UnsupportedError("a custom filter in JSON form", "a Python function cannot travel")


@dataclass(frozen=True)
class _Several(Filter):
    """Filters joined in one way."""

    parts: tuple[Filter, ...]
    depth: int = field(init=False, repr=False, compare=False, default=1)

    def __post_init__(self) -> None:
        _check_parts(self, self.parts)

    @classmethod
    def of(cls, *parts: Filter) -> Filter:
        """The parts joined, without nesting of the same kind."""
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
        """Fewer parts, of which one matches where one of `parts` does: those on one field are one, as are tags."""
        fields: dict[str, dict[str, None]] = {}
        tags: set[str] = set()
        rest: list[Filter | _AnyTag] = []
        for part in self.parts:
            if isinstance(part, Is):
                fields.setdefault(part.name, {}).update(dict.fromkeys(part.values))
            elif isinstance(part, Tag):
                tags.add(part.tag)
            else:
                rest.append(part)
        merged = [Is(name, tuple(values)) for name, values in fields.items()]
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
    """The part does not match. Records that lack what the part asks about do match."""

    part: Filter
    depth: int = field(init=False, repr=False, compare=False, default=1)

    def __post_init__(self) -> None:
        _check_parts(self, (self.part,))

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
        raise InvalidFilterError(value, f"{name} holds a lone surrogate, which is not valid Unicode")
    if not value and not empty:
        raise InvalidFilterError(value, f"{name} takes text that is not empty")


def _check_parts(whole: Filter, parts: tuple[Filter, ...]) -> None:
    for part in parts:
        if not isinstance(part, Filter):
            raise InvalidFilterError(part, "is not a filter: use the functions of recollect.filters")
    depth = 1 + max((part.depth for part in parts), default=0)
    if depth > MAX_DEPTH:
        raise InvalidFilterError("...", _TOO_DEEP)
    object.__setattr__(whole, "depth", depth)


def from_json(data: object, depth: int = 0) -> Filter:
    """The filter of a JSON form: an object with exactly one key.

    Raises: InvalidFilterError naming the part that is wrong.
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
    if name == "tag":
        return Tag(value)
    if name == "meta":
        return _meta_from_json(value)
    if name == "importance_at_least":
        return ImportanceAtLeast(value)
    if name in ("after", "before", "between"):
        return _time_from_json(name, value)
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
    match value:
        case {"key": str(key), "equals": wanted, **rest} if not rest:
            return Meta(key, "equals", wanted)
        case {"key": str(key), "contains": wanted, **rest} if not rest:
            return Meta(key, "contains", wanted)
        case {"key": str(key), **rest} if not rest:
            return Meta(key, "has")
    raise InvalidFilterError(value, "meta takes {key}, {key, equals} or {key, contains}")


def _time_from_json(name: str, value: object) -> Filter:
    given = value if isinstance(value, list) else [value]
    ends = [end for end in given if isinstance(end, str)]
    if len(given) != (2 if name == "between" else 1) or len(ends) != len(given):
        raise InvalidFilterError(value, f"{name} takes {'two times' if name == 'between' else 'a time'} in ISO 8601")
    try:
        times = [parse_time(name, end) for end in ends]
    except InvalidRecordError as error:
        raise InvalidFilterError(value, str(error.args[2])) from None
    return Time(name, times[0] if name != "before" else None, times[-1] if name != "after" else None)
