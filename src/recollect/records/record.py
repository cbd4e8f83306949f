"""The record: one remembered thing.

A `Record` is frozen and validates every field when it is created, so an invalid record cannot exist. Equal records have
equal canonical bytes and equal hashes; different records do not. Who wrote a record, when, and in which commit is not
part of it: that belongs to the commit.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import UTC, date, datetime, timedelta, tzinfo
from operator import attrgetter
from typing import Any, NewType, TypeAlias, TypedDict

from recollect.arguments.checks import is_integer, is_number
from recollect.arguments.signatures import check_known
from recollect.common.reprs import ShownTable, as_html, line
from recollect.errors import CodecError, InvalidArgumentError, InvalidRecordError, RecollectError
from recollect.quoting import shown
from recollect.records import codec
from recollect.records.frozen import INT64, FrozenDict, freeze, unchecked
from recollect.records.names import MAX_ID_BYTES, NAMES, checked_name, in_order, uncomposed
from recollect.records.origins import ORIGINS, RANKS, UNKNOWN, USER, Origin, implied
from recollect.text.unicode import fold, has_surrogate, nfc

#: Maximum length of a field as notebooks and rich show it, in characters.
_MAX_SHOWN = 200
KINDS = ("conversation", "entity", "knowledge", "user_fact", "task", "custom")
_YEARS = range(2, 9999)

#: What is accepted as a time (`instant`).
Instant: TypeAlias = datetime | date | str

#: The id of a record: NFC text of 1 to 255 bytes, unique in its namespace.
RecordId = NewType("RecordId", str)


class EntityId(str):
    """The id of an entity (a person, a place, a product, ...) that records are about."""

    __slots__ = ()

    @classmethod
    def from_name(cls, name: str) -> EntityId:
        """Return the id of the entity called `name`: in lower case, with each run of white space as one `_`.

        >>> EntityId.from_name("Ada Lovelace")
        'ada_lovelace'
        """
        return cls(re.sub(r"\s+", "_", nfc(name).lower()))


def record_id(value: object, name: str = "id") -> RecordId:
    """Return `value` as a record id, normalised to NFC.

    Raises:
        InvalidRecordError: It is not 1 to 255 bytes of Unicode text without control characters.
    """
    return RecordId(checked_name(name, value, MAX_ID_BYTES))


def _kind(name: str, value: object) -> str:
    if type(value) is str and value in KINDS:
        return value
    return fold(checked_name(name, value, 100))


def _content(name: str, value: object) -> str | bytes:
    if isinstance(value, str):
        if has_surrogate(value):
            raise InvalidRecordError(name, value, "contains a lone surrogate, which is not valid Unicode")
        return str.__str__(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise InvalidRecordError(name, value, "must be text, or bytes with a media_type")


def _integer(name: str, value: object) -> int:
    if not is_integer(value):
        raise InvalidRecordError(name, value, "must be an integer")
    if value not in INT64:
        raise InvalidRecordError(name, value, "does not fit in 64 bits")
    return int(value)


def _position(name: str, value: object) -> int:
    number = _integer(name, value)
    if number < 0:
        raise InvalidRecordError(name, value, "must be at least 0")
    return number


def _fraction(name: str, value: object) -> float:
    if not is_number(value, 0, 1):
        raise InvalidRecordError(name, value, "must be a number in [0, 1]")
    return float(value) + 0.0


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidRecordError(name, value, "must be True or False")
    return value


def aware(name: str, value: object) -> datetime:
    """Return `value` as an aware datetime with a fixed offset of whole seconds.

    Raises:
        InvalidRecordError: It is not a datetime, or a naive one, which does not name an instant.
    """
    if not isinstance(value, datetime):
        raise InvalidRecordError(name, value, "must be a datetime with a time zone, a date, or ISO 8601 text")
    if type(value) is datetime and value.tzinfo is UTC and not value.fold and value.year in _YEARS:
        return value  # what the code below would return
    offset = value.utcoffset()
    if offset is None:
        raise InvalidRecordError(name, value, "is naive: give it a time zone, such as tzinfo=datetime.timezone.utc")
    if offset % timedelta(seconds=1):
        raise InvalidRecordError(name, value, "has a UTC offset that is not whole seconds")
    if value.year not in _YEARS or codec.microseconds(value) not in codec.TIMES:
        raise InvalidRecordError(name, value, "must be in the years 2 to 9998")
    return codec.datetime_of(codec.microseconds(value), offset // timedelta(seconds=1))


def instant(name: str, value: object) -> datetime:
    """Return `value` as an aware datetime: a datetime with a time zone, ISO 8601 text, or a date.

    A text without an offset is in UTC, and a date is its midnight in UTC. A naive datetime is refused: most are in the
    local time of the machine that computed them.

    Raises:
        InvalidRecordError: `value` is not one of these.
    """
    return located(name, unlocated(name, value), UTC)


class LocalTime(datetime):
    """A naive time that was stated as a date, or as a text without an offset.

    Which instant it is depends on the time zone of the memory that it is passed to (`located`).
    """

    def __repr__(self) -> str:
        return repr(self.isoformat())  # it shows in messages


def in_zone(time: datetime, zone: tzinfo) -> datetime:
    """Return a time in a time zone, or unchanged if its year there is one that no record has."""
    local = time.astimezone(zone)
    return local if local.year in _YEARS else time


def unlocated(name: str, value: object) -> datetime:
    """Return `value` as a datetime with a time zone, or as a `LocalTime`.

    Raises:
        InvalidRecordError: `value` is not a datetime with a time zone, ISO 8601 text, or a date.
    """
    if isinstance(value, str):
        try:
            value = LocalTime.fromisoformat(value)
        except ValueError:
            rule = "is not an ISO 8601 time, such as 2026-03-01 or 2026-03-01T09:30:00+01:00"
            raise InvalidRecordError(name, value, rule) from None
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = LocalTime(value.year, value.month, value.day)
    if not isinstance(value, LocalTime) or value.tzinfo is not None:
        return aware(name, value)
    aware(name, value.replace(tzinfo=UTC))  # raises for a year that no record has
    return value


def check_instant(name: str, value: object) -> datetime:
    """Return `value` as `unlocated` does, for an argument of a call.

    Raises:
        InvalidArgumentError: `value` is not a datetime with a time zone, ISO 8601 text, or a date.
    """
    try:
        return unlocated(name, value)
    except RecollectError as error:
        raise InvalidArgumentError(name, value, str(error.args[2])) from None


def located(name: str, value: datetime, zone: tzinfo) -> datetime:
    """Return a time as an aware datetime; a naive one is in a time zone.

    Raises:
        InvalidRecordError: It is outside the years of records.
    """
    return value if value.tzinfo is not None else aware(name, value.replace(tzinfo=zone))


def _origin(name: str, value: object) -> Origin:
    if isinstance(value, str) and value in RANKS:
        return ORIGINS[ORIGINS.index(value)]
    raise InvalidRecordError(name, value, f"must be one of {', '.join(ORIGINS)}")


def _texts(item: Callable[[str, object], str]) -> Callable[[str, object], tuple[str, ...]]:
    def check(name: str, value: object) -> tuple[str, ...]:
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise InvalidRecordError(name, value, "must be a list of texts")
        return tuple(dict.fromkeys(item(name, each) for each in value))

    return check


def _tags(name: str, value: object) -> tuple[str, ...]:
    return in_order(_texts(checked_name)(name, value))


def _metadata(name: str, value: object) -> FrozenDict:
    if type(value) is FrozenDict and not value:
        return value  # the default
    if not isinstance(value, Mapping):
        raise InvalidRecordError(name, value, "must be an object (a dict)")
    frozen: FrozenDict = freeze(value, name)
    return frozen


_CHECKS: dict[str, Callable[[str, object], Any]] = {
    "id": lambda name, value: record_id(value, name),
    "kind": _kind,
    "content": _content,
    "position": _position,
    "tags": _tags,
    "metadata": _metadata,
    "time": instant,
    "valid_from": instant,
    "valid_to": instant,
    "importance": _fraction,
    "expires": instant,
    "supersedes": _texts(lambda name, value: record_id(value, name)),
    "derived_from": _texts(lambda name, value: record_id(value, name)),
    "parent": lambda name, value: record_id(value, name),
    "order": _integer,
    "pinned": _flag,
    "trust": _fraction,
    "origin": _origin,
    "searchable": _flag,
}


class Fields(TypedDict, total=False):
    """The fields of a record that a caller can pass, except id and content."""

    kind: str
    media_type: str | None
    role: str | None
    speaker: str | None
    user: str | None
    agent: str | None
    conversation: str | None
    session: str | None
    position: int | None
    entity: str | None
    source: str | None
    tags: Iterable[str]
    metadata: Mapping[str, Any]
    time: Instant | None
    valid_from: Instant | None
    valid_to: Instant | None
    importance: float | None
    expires: Instant | None
    supersedes: Iterable[str]
    derived_from: Iterable[str]
    parent: str | None
    order: int | None
    language: str | None
    pinned: bool
    trust: float | None
    origin: Origin | None
    searchable: bool


class FieldChanges(TypedDict, total=False):
    """The fields of a record that a caller can change. None removes a field."""

    content: str | bytes
    kind: str | None
    media_type: str | None
    role: str | None
    speaker: str | None
    user: str | None
    agent: str | None
    conversation: str | None
    session: str | None
    position: int | None
    entity: str | None
    source: str | None
    tags: Iterable[str] | None
    metadata: Mapping[str, Any] | None
    time: Instant | None
    valid_from: Instant | None
    valid_to: Instant | None
    importance: float | None
    expires: Instant | None
    supersedes: Iterable[str] | None
    derived_from: Iterable[str] | None
    parent: str | None
    order: int | None
    language: str | None
    pinned: bool | None
    trust: float | None
    origin: Origin | None
    searchable: bool | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Record:
    """One remembered thing. Two records with equal fields have equal bytes and equal hashes.

    Attributes:
        id: NFC text of 1 to 255 bytes, unique in its namespace.
        content: The exact text, or bytes of a `media_type`. It is blank only if the record is not searchable.
        kind: conversation, entity, knowledge, user_fact, task, custom, or a name of your own; in folded case.
        media_type: The media type of the content; required for bytes.
        role: The role of the author in a chat: "user", "assistant", "system", "tool".
        speaker: The name of the author.
        user: The user to whom the record belongs.
        agent: The agent that stored it.
        conversation: The conversation of which it is a turn.
        session: A session within the conversation.
        position: Its position in the conversation, from 0.
        entity: The entity that it is about (`EntityId`).
        source: Where it comes from: a path or an address.
        tags: A set of labels, sorted.
        metadata: A JSON object. Recall also searches its "caption", the description of an attached picture, and of a
            record that is not a turn the titles above it, "title" and "headings".
        time: When it happened. Like the other times, it may be passed as a datetime with a time zone, as a date
            or as ISO 8601 text. A date (its midnight) and a text without an offset are in UTC; the calls of a memory
            take them in its time zone.
        valid_from: The start of the time for which it is true.
        valid_to: The end of the time for which it is true.
        importance: 0 to 1.
        expires: From this time on, no call returns the record.
        supersedes: Ids of the records that it replaces.
        derived_from: Ids of the records from which it was derived.
        parent: The id of its parent in a tree.
        order: Its rank among the children of its parent.
        language: A BCP 47 tag.
        pinned: Never evicted by a quota.
        trust: A number of your own, 0 to 1. No call of a memory reads it, except `Learner`, which lets a fact of
            turns with less of it replace none with more.
        origin: The class of who said it ("owner", "user", "assistant", "tool", "document", "web", "unknown"), where it
            is another one than the fields imply; `effective_origin` is always there.
        searchable: False: recall, contexts and searches for similar records are as if it were not stored. get, find,
            grep and the history return it.
        unknown: Fields of a later release, preserved as they were read.

    Raises:
        InvalidRecordError: A field is invalid; `error.field` names it.
    """

    id: str
    content: str | bytes
    kind: str = "knowledge"
    media_type: str | None = None
    role: str | None = None
    speaker: str | None = None
    user: str | None = None
    agent: str | None = None
    conversation: str | None = None
    session: str | None = None
    position: int | None = None
    entity: str | None = None
    source: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=FrozenDict)
    time: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    importance: float | None = None
    expires: datetime | None = None
    supersedes: tuple[str, ...] = ()
    derived_from: tuple[str, ...] = ()
    parent: str | None = None
    order: int | None = None
    language: str | None = None
    pinned: bool = False
    trust: float | None = None
    origin: Origin | None = None
    searchable: bool = True
    unknown: tuple[codec.RawField, ...] = ()
    _bytes: bytes | None = field(default=None, init=False)
    #: The names that an earlier release stored in another form than NFC, as its bytes have them.
    _stored: dict[str, Any] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._check(
            [
                (name, value)
                for name, value, default in zip(FIELD_NAMES, _values(self), _DEFAULT_VALUES, strict=True)
                if value is not default
            ]
        )

    def _check(self, given: Iterable[tuple[str, Any]]) -> None:
        """Bring the given fields into their canonical form, then validate their combination."""
        for name, value in given:
            default, check = _RULES[name]
            if value is default:
                continue
            checked = check(name, value)
            if checked is not value:
                object.__setattr__(self, name, checked)
        if self.unknown != ():
            object.__setattr__(self, "unknown", _unknown(self.unknown))
        if isinstance(self.content, bytes):
            if self.media_type is None:
                raise InvalidRecordError("media_type", None, "is required if content is bytes")
        elif self.searchable and not self.content.strip():
            raise InvalidRecordError("content", self.content, "is empty: there is nothing to remember")
        if self.valid_from and self.valid_to and self.valid_from > self.valid_to:
            raise InvalidRecordError("valid_to", self.valid_to.isoformat(), "is before valid_from")

    def __repr__(self) -> str:
        present = {"content" if name in ("text", "data") else name: value for name, value in self.present().items()}
        return f"Record({', '.join(f'{name}={shown(value)}' for name, value in present.items())})"

    def __rich_repr__(self) -> Iterator[tuple[str, str]]:
        yield from self._shown()

    def _repr_html_(self) -> str:
        rows = list(self._shown())
        return as_html(ShownTable("Record", ("field", "value"), rows, len(rows)))

    def _shown(self) -> Iterator[tuple[str, str]]:
        """Yield the fields that are present, each as one line."""
        for name, value in self.present().items():
            text = value.isoformat() if isinstance(value, datetime) else value
            shown_value = line(text, _MAX_SHOWN) if isinstance(text, str | bytes) else shown(text, _MAX_SHOWN)
            yield "content" if name in ("text", "data") else name, shown_value

    # Records are equal if their canonical bytes are. (Python's equality of the fields would treat 1 and 1.0 in metadata
    # as equal, and two offsets of one instant, although the hashes differ.)
    def __eq__(self, other: object) -> bool:
        return self.to_bytes() == other.to_bytes() if isinstance(other, Record) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    @property
    def hash(self) -> str:
        """The SHA-256 of the canonical bytes, as 64 hex digits. `expect=` takes it."""
        return hashlib.sha256(b"recollect.record.1\0" + self.to_bytes()).hexdigest()

    @property
    def text(self) -> str:
        """The content if it is text, otherwise ""."""
        return self.content if isinstance(self.content, str) else ""

    @property
    def effective_origin(self) -> Origin:
        """The class of who said it: `origin`, or else the one that role, source and kind imply (docs/trust.md).

        >>> Record(id="a", content="It rains.", source="https://weather.example").effective_origin
        'web'
        """
        if self.origin is None:
            return implied(self.role, self.source, self.kind)
        return self.origin if self.origin in RANKS else UNKNOWN  # a class of a later release

    @property
    def has_authority(self) -> bool:
        """True for the word of the user or the owner: only theirs governs, as a standing instruction or pinned."""
        return RANKS[self.effective_origin] >= RANKS[USER]

    def to_bytes(self) -> bytes:
        """Return the canonical bytes (`records.codec`)."""
        if self._bytes is None:
            object.__setattr__(self, "_bytes", codec.encode(self.present() | (self._stored or {}), self.unknown))
        assert self._bytes is not None
        return self._bytes

    @classmethod
    def from_bytes(cls, data: bytes) -> Record:
        """Decode a record from its canonical bytes.

        Raises:
            CodecError: The bytes are not the canonical encoding of a valid record.
        """
        values, unknown = codec.decode(data)
        if "text" in values and "data" in values:
            raise CodecError("content occurs twice", 0)
        content = values.pop("text", None)
        values["content"] = values.pop("data", None) if content is None else content
        stored = uncomposed(values)
        try:
            record = cls(**values, unknown=unknown)
        except (InvalidRecordError, TypeError) as error:
            raise CodecError(str(error), 0) from None
        object.__setattr__(record, "_stored", stored or None)
        if record.to_bytes() != data:
            raise CodecError("a value is not in its canonical form", 0)
        return record

    @classmethod
    def load(cls, data: bytes) -> Record:
        """Decode canonical bytes that this package wrote: like `from_bytes`, without validation.

        For stores, whose payloads were validated when they were written and are covered by a hash.
        """
        if cls is not Record:  # a subclass may have more fields or other rules
            return cls.from_bytes(data)
        values, unknown = codec.decode(data)
        content = values.pop("data", MISSING)
        values["content"] = values.pop("text", content)
        values.setdefault("id", MISSING)
        values.setdefault("metadata", _NO_METADATA)
        stored = uncomposed(values)
        return _unchecked(**values, unknown=unknown, _bytes=data, _stored=stored or None)

    def changed(self, **changes: Any) -> Record:
        """Return a copy with some fields changed, validated like any record.

        Raises:
            InvalidRecordError: A value is invalid.
            UnknownArgumentError: A name is not a field.
        """
        for name in changes:
            if name != "unknown":
                check_field(name, "update()")
        values = dict(zip(FIELD_NAMES, _values(self), strict=True))
        if type(self) is not Record:  # a subclass may have more fields or other rules
            return type(self)(**{**values, "unknown": self.unknown, **changes})
        stored = {name: value for name, value in (self._stored or {}).items() if name not in changes} or None
        record: Record = _unchecked(**{**values, "unknown": self.unknown, "_bytes": None, "_stored": stored, **changes})
        record._check(_in_order(changes))  # the other fields are valid already
        return record

    def present(self) -> dict[str, Any]:
        """Return the fields that are present, by their names in `codec.FIELDS` (content is `text` or `data`)."""
        return self._present(_TEXT_NAMES if isinstance(self.content, str) else _DATA_NAMES)

    def _present(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Return the fields that are present, by their names in a tuple that has the order of FIELD_NAMES."""
        return {
            name: value
            for name, value, absent in zip(names, _values(self), _ABSENT, strict=True)
            if value is not absent and value != absent
        }

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object without absent fields. `from_json` builds the identical record from it."""
        out = self._present(FIELD_NAMES if isinstance(self.content, str) else _DATA_NAMES)
        if self._stored:
            out |= self._stored
        for name, value in out.items():
            if type(value) is str:  # most are
                continue
            if isinstance(value, datetime):
                out[name] = value.isoformat()
            elif isinstance(value, bytes):
                out[name] = base64.b64encode(value).decode("ascii")
            elif isinstance(value, tuple):
                out[name] = list(value)
        if self.unknown:
            out["unknown"] = [[raw.number, raw.type, base64.b64encode(raw.value).decode()] for raw in self.unknown]
        return out

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        """Build a record from a JSON object as `to_json` returns it.

        Raises:
            InvalidRecordError: A value is invalid or missing.
            UnknownArgumentError: A name is not a field.
        """
        record = _of_usual(data) if cls is Record else None
        if record is not None:
            return record
        given = fields_from_json(data)
        for name in ("id", "content"):
            if name not in given:
                raise InvalidRecordError(name, None, "is missing")
        record = checked(**given) if cls is Record else cls(**given)  # a subclass may have more fields or other rules
        object.__setattr__(record, "_stored", _stored_names(given) or None)
        return record


FIELD_NAMES: tuple[str, ...] = tuple(f.name for f in fields(Record) if f.name not in ("unknown", "_bytes", "_stored"))
_values = attrgetter(*FIELD_NAMES)
#: The default of each field, which is valid. (MISSING, which equals no value, for fields without one.)
_DEFAULTS = {f.name: f.default for f in fields(Record)}
#: The default and the check of each field.
_RULES = {name: (_DEFAULTS[name], _CHECKS.get(name, checked_name)) for name in FIELD_NAMES}
_NO_METADATA = FrozenDict()
_unchecked = unchecked(Record)
#: The defaults in the order of FIELD_NAMES.
_DEFAULT_VALUES = tuple(_DEFAULTS[name] for name in FIELD_NAMES)
#: The value of each field where a record has none; MISSING, which equals no value, for those that all have.
_ABSENT_OF = {name: _DEFAULTS[name] for name in FIELD_NAMES} | {"kind": MISSING, "metadata": _NO_METADATA}
_ABSENT = tuple(_ABSENT_OF.values())
#: FIELD_NAMES as `codec.FIELDS` has them, for content that is text, and for bytes.
_TEXT_NAMES, _DATA_NAMES = (
    tuple(content if name == "content" else name for name in FIELD_NAMES) for content in ("text", "data")
)
#: The place of each field in FIELD_NAMES.
_PLACES = {name: place for place, name in enumerate(FIELD_NAMES)}
#: Python passes keywords fastest if they are these very objects, and not equal ones that were read from JSON.
_KNOWN = {name: name for name in FIELD_NAMES}
_TIME_FIELDS = frozenset(name for name, (_, kind) in codec.FIELDS.items() if kind == codec.TIME)


def _in_order(given: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The given fields with their values, in the order of FIELD_NAMES."""
    return [(name, given[name]) for name in sorted(_PLACES.keys() & given, key=_PLACES.__getitem__)]


def stored_names(record: Record) -> Mapping[str, Any]:
    """Return the names that a record's bytes have in another form than NFC: those that an earlier release stored."""
    return record._stored or {}


def with_stored_names(record: Record, names: Mapping[str, Any]) -> Record:
    """Return a copy whose bytes have these names (`stored_names`), which are its own in another form than NFC."""
    copied = record.changed()
    object.__setattr__(copied, "_stored", dict(names) or None)
    return copied


def restored(**given: Any) -> Record:
    """The same as `checked`, for a record that was stored before: its bytes have the names as they are passed."""
    record = checked(**given)
    object.__setattr__(record, "_stored", _stored_names(given) or None)
    return record


def checked(**given: Any) -> Record:
    """The same as `Record(**given)`, at a cost in proportion to the number of given fields."""
    record: Record = _unchecked(**{"metadata": _NO_METADATA, **given})
    record._check(_in_order(given))
    return record


def _of_usual(data: Mapping[str, Any]) -> Record | None:
    """Build a record from JSON as `from_json` does, in half the time; None if it is unusual or invalid.

    A client does this for every hit of every question.
    """
    given: dict[str, Any] = {"kind": _DEFAULTS["kind"], "metadata": _NO_METADATA}
    try:
        for stated, value in data.items():
            name = _KNOWN[stated]
            default, check = _RULES[name]
            given[name] = value if value is default else check(name, value)
            if (name in NAMES and given[name] != value) or (name == "tags" and not all(map(str.isascii, value))):
                return None
        content = given["content"]
        if type(content) is not str or not content.strip() or "id" not in given or "valid_to" in given:
            return None
    except (AttributeError, LookupError, TypeError, ValueError):
        return None
    present = {
        "text" if name == "content" else name: value for name, value in given.items() if value != _ABSENT_OF[name]
    }
    record: Record = _unchecked(**given, _bytes=codec.encode(present))
    return record


def _stored_names(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names in the JSON of a valid record that are not in NFC, as an earlier release stored them."""
    names: dict[str, Any] = {name: str(given[name]) for name in NAMES & given.keys() if given[name] is not None}
    if given.get("tags"):
        names["tags"] = in_order(tuple(dict.fromkeys(given["tags"])))
    return uncomposed(names)


def _unknown(value: object) -> tuple[codec.RawField, ...]:
    """Validate fields that this release does not know, and sort them by number."""
    if not isinstance(value, (list, tuple)):
        raise InvalidRecordError("unknown", value, "must be a list of fields: number, type and bytes")
    known = {number for number, _ in codec.FIELDS.values()}
    out = []
    for item in value:
        match item:
            case (int(number), int(kind), bytes(raw)) if (
                0 < number < 2**63 and 0 <= kind < 256 and number not in known and not isinstance(kind, bool)
            ):
                out.append(codec.RawField(number, kind, raw))
            case _:
                raise InvalidRecordError(
                    "unknown", item, "must be number, type and bytes of a field unknown to this release"
                )
    if len({raw.number for raw in out}) != len(out):
        raise InvalidRecordError("unknown", value, "names a field twice")
    return tuple(sorted(out))


def check_field(name: str, call: str) -> None:
    """Raise UnknownArgumentError, with the most similar field, unless `name` is a field of a record."""
    check_known(call, name, FIELD_NAMES)


def located_fields(fields: Mapping[str, Any], zone: tzinfo) -> dict[str, Any]:
    """Return fields in which dates, and times without an offset, are instants: those of a time zone."""
    out = dict(fields)
    for name in _TIME_FIELDS:
        value = out.get(name)
        if value is not None and type(value) is not datetime and isinstance(value, (str, date)):
            out[name] = located(name, unlocated(name, value), zone)
    return out


def fields_from_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """Convert JSON to keyword arguments of `Record`: times from ISO 8601, bytes from base64.

    Raises:
        InvalidRecordError: A value has the wrong shape.
        UnknownArgumentError: A name is not a field.
    """
    if not isinstance(data, Mapping):
        raise InvalidRecordError("record", data, "must be a JSON object")
    if "content" in data and "data" in data:
        raise InvalidRecordError("data", data["data"], "cannot be combined with content: a record has one of them")
    out: dict[str, Any] = {}
    for stated, value in data.items():
        name = _KNOWN.get(stated)
        if name is not None:
            out[name] = unlocated(name, value) if name in _TIME_FIELDS and isinstance(value, str) else value
        elif stated == "data":
            out["content"] = _from_base64(stated, value)
        elif stated == "unknown":
            out[stated] = _unknown_from_json(value)
        else:
            check_field(stated, "a record")
    return out


def _from_base64(name: str, value: object) -> bytes:
    try:
        return base64.b64decode(value, validate=True)  # type: ignore[arg-type]
    except (binascii.Error, TypeError, ValueError):
        raise InvalidRecordError(name, value, "is not base64") from None


def _unknown_from_json(value: object) -> tuple[codec.RawField, ...]:
    if not isinstance(value, list):
        raise InvalidRecordError("unknown", value, "must be a list of [number, type, base64]")
    out = []
    for item in value:
        match item:
            case [number, kind, str(raw)]:
                out.append((number, kind, _from_base64("unknown", raw)))
            case _:
                raise InvalidRecordError("unknown", item, "must be [number, type, base64]")
    return _unknown(out)


def utc_now() -> datetime:
    """The default clock: the current time in UTC."""
    return datetime.now(UTC)
