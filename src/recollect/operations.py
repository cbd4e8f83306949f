"""Operations: every public call as a value.

The methods of `Memory` build these values and pass them to `memory.execute(operation)`, which is the only entry point.
Each operation has a JSON form, `{"op": name, ...}`, and `from_json` builds an equal operation from it, so that a client
can offer the same calls over a socket or HTTP. A custom filter or a function has no JSON form: `to_json` raises
UnsupportedError for it, and never leaves it out.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from typing import Any, ClassVar

from recollect.errors import InvalidArgumentError, InvalidOperationError, RecollectError, UnsupportedError
from recollect.filters.tree import Everything, Filter
from recollect.filters.tree import from_json as filter_from_json
from recollect.records.codec import RawField
from recollect.records.record import Record, aware, check_field, fields_from_json, parse_time, record_id
from recollect.records.unchecked import altered

#: The value of `expect` that requires that no record exists.
ABSENT = "absent"
IF_EXISTS = ("keep", "update", "error")
ON_ERROR = ("report", "raise")
#: What a write that exceeds the quota can do.
WHEN_FULL = ("refuse", "least recent", "least important")
#: The fields that a scope can fix, and by whose values a quota can be counted.
SCOPED = ("user", "agent", "conversation")
#: The longest `ttl`, in seconds: a hundred years.
MAX_TTL_S = 3_155_760_000
#: The orders in which records can be found. Ties always end with the id.
ORDERS = ("newest", "oldest", "importance", "position", "id")
_TAG = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
_HASH = re.compile(r"[0-9a-f]{64}")
#: A batch can contain a remember_all, which contains remember operations.
_MAX_DEPTH = 2
_REGISTRY: dict[str, type[Operation]] = {}


class Operation:
    """The base class of all operations. They are immutable, and validated when they are created."""

    name: ClassVar[str]

    def __init_subclass__(cls, name: str) -> None:
        cls.name = name
        _REGISTRY[name] = cls

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, `{"op": name, ...}`, without the fields that have their default.

        Raises:
            UnsupportedError: The operation contains a custom filter or a function.
        """
        out: dict[str, Any] = {"op": self.name}
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            default = item.default if item.default is not MISSING else None
            if item.default_factory is not MISSING:
                default = item.default_factory()
            if value != default:
                out[item.name] = plain(value)
        return out


def from_json(data: object, depth: int = 0) -> Operation:
    """Build an operation from its JSON form.

    Args:
        data: The parsed JSON.
        depth: How many operations enclose this one.

    Raises:
        InvalidOperationError: It is not the JSON form of an operation.
        RecollectError: A part of it is invalid (InvalidRecordError, InvalidFilterError, ...).
    """
    if depth > _MAX_DEPTH:
        raise InvalidOperationError("...", "is nested too deeply: a batch cannot contain a batch")
    if not isinstance(data, Mapping):
        raise InvalidOperationError(data, "must be a JSON object")
    name = data.get("op")
    kind = _REGISTRY.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidOperationError(name, f"is not one of {', '.join(sorted(_REGISTRY))}")
    known = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    arguments = {}
    for key, value in data.items():
        if key == "op":
            continue
        if key not in known:
            raise InvalidOperationError(key, f"is not a field of {name}")
        if key in ("items", "operations"):
            arguments[key] = _read_operations(value, depth + 1)
        else:
            arguments[key] = _READERS[key](value) if key in _READERS else value
    try:
        return kind(**arguments)
    except TypeError as error:
        if isinstance(error, RecollectError):
            raise
        raise InvalidOperationError(name, str(error).rpartition("() ")[2]) from None


def plain(value: Any) -> Any:
    """Return the JSON form of a value of an operation.

    Raises:
        UnsupportedError: It has none.
    """
    if isinstance(value, (Filter, Operation)):
        return value.to_json()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, RawField):
        return [value.number, value.type, base64.b64encode(value.value).decode("ascii")]
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value))  # tags, which have no order
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if callable(value):
        raise UnsupportedError("a function", "it has no JSON form: pass the changed fields")
    return value


def _read_fields(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidOperationError(value, "fields must be a JSON object")
    return fields_from_json({key: _read_content(item) if key == "content" else item for key, item in value.items()})


def _read_content(value: Any) -> Any:
    match value:
        case {"base64": str(text)} if len(value) == 1:
            return fields_from_json({"data": text})["content"]
    return value


def _read_operations(value: Any, depth: int) -> tuple[Operation, ...]:
    if not isinstance(value, list):
        raise InvalidOperationError(value, "must be a list of operations")
    return tuple(from_json(item, depth) for item in value)


_READERS: dict[str, Callable[[Any], Any]] = {
    "content": _read_content,
    "fields": _read_fields,
    "changes": _read_fields,
    "where": filter_from_json,
    "reference": lambda value: parse_time("reference", value) if isinstance(value, str) else value,
}


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidArgumentError(name, value, f"must be one of {', '.join(choices)}")


def _check_count(name: str, value: object, *, least: int = 1, optional: bool = False) -> None:
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least or value > 2**62:
        raise InvalidArgumentError(name, value, f"must be an integer of at least {least}")


def _check_seconds(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= MAX_TTL_S:
        raise InvalidArgumentError(name, value, f"must be seconds, above 0 and at most {MAX_TTL_S} (a hundred years)")


def _check_filter(where: object) -> None:
    if not isinstance(where, Filter):
        raise InvalidArgumentError("where", where, "must be a filter: see recollect.filters")


def expectation(value: object) -> str | None:
    """Return `expect` as a hash, "absent" or None. A record stands for its hash.

    Raises:
        InvalidArgumentError: It is none of these.
    """
    if value is None:
        return None
    if isinstance(value, Record):
        return value.hash
    if isinstance(value, str) and (value == ABSENT or _HASH.fullmatch(value)):
        return value
    raise InvalidArgumentError("expect", value, "must be a record, a record's hash (64 hex digits) or 'absent'")


@dataclass(frozen=True, kw_only=True)
class Remember(Operation, name="remember"):
    """Store a record. The result is an `Outcome`.

    Attributes:
        content: The text, or bytes of a `media_type`.
        id: The id of the record. None: it is derived from the content (`records.identity`).
        fields: The other fields of the record, by name.
        expect: Write only if the current record of that id has this hash, or is "absent"; otherwise ConflictError.
        if_exists: If the same fact is stored already: "keep" it, "update" the given fields, or "error".
        ttl: Seconds from now until the record expires. None: it expires at `expires`, or never.
        exact: Store exactly these fields under `id`, as for a copy of a record: the memory does not fill in a time, a
            language, a position or standing tags.
    """

    content: str | bytes
    id: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    expect: str | None = None
    if_exists: str = "keep"
    ttl: float | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        _check_choice("if_exists", self.if_exists, IF_EXISTS)
        if not isinstance(self.exact, bool):
            raise InvalidArgumentError("exact", self.exact, "must be true or false")
        if self.exact and (self.id is None or self.ttl is not None):
            raise InvalidArgumentError("exact", self.exact, "requires the id of the record, and excludes ttl")
        if self.expect is not None:
            object.__setattr__(self, "expect", expectation(self.expect))
        if self.id is not None:
            object.__setattr__(self, "id", record_id(self.id))
        if type(self.fields) is not dict and not isinstance(self.fields, Mapping):
            raise InvalidArgumentError("fields", self.fields, "must be a mapping of fields by name")
        for name in ("id", "content"):
            if name in self.fields:
                raise InvalidArgumentError("fields", name, "is an argument of its own, not one of the fields")
        for name in self.fields:
            if name != "unknown":
                check_field(name, "remember()")
        if self.ttl is not None:
            _check_seconds("ttl", self.ttl)
            if self.fields.get("expires") is not None:
                raise InvalidArgumentError("ttl", self.ttl, "pass either ttl or expires, not both")


@dataclass(frozen=True, kw_only=True)
class RememberAll(Operation, name="remember_all"):
    """Store many records. The result is a `Report`.

    Attributes:
        items: What to store.
        on_error: "report": store the valid items, one commit for each thousand, and report the others; "raise": raise
            the first error and store nothing.
    """

    items: tuple[Remember, ...]
    on_error: str = "report"

    def __post_init__(self) -> None:
        _check_choice("on_error", self.on_error, ON_ERROR)
        if not isinstance(self.items, (list, tuple)):
            raise InvalidArgumentError("items", self.items, "must be a list of remember operations")
        for item in self.items:
            if not isinstance(item, Remember):
                raise InvalidOperationError(item, "the items of remember_all are remember operations")


@dataclass(frozen=True, kw_only=True)
class Update(Operation, name="update"):
    """Change fields of a record. The result is an `Outcome`.

    Attributes:
        id: The record.
        changes: The new values by field, or a function from the current record to the changed one.
        expect: Write only if the current record has this hash; otherwise ConflictError.
    """

    id: str
    changes: Mapping[str, Any] | Callable[[Record], Record]
    expect: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", record_id(self.id))
        object.__setattr__(self, "expect", expectation(self.expect))
        if callable(self.changes):
            return
        if not isinstance(self.changes, Mapping):
            raise InvalidArgumentError("changes", self.changes, "must map fields to values, or be a function")
        for name in self.changes:
            check_field(name, "update()")
        if "id" in self.changes:
            raise InvalidArgumentError("id", self.changes["id"], "cannot change: remember the content under the new id")
        if not self.changes:
            raise InvalidArgumentError("changes", {}, "must name at least one field")


@dataclass(frozen=True, kw_only=True)
class Forget(Operation, name="forget"):
    """Forget a record; its history stays. The result is an `Outcome`."""

    id: str
    expect: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", record_id(self.id))
        object.__setattr__(self, "expect", expectation(self.expect))


@dataclass(frozen=True, kw_only=True)
class ForgetWhere(Operation, name="forget_where"):
    """Forget every record that matches. The result is their number."""

    where: Filter

    def __post_init__(self) -> None:
        _check_filter(self.where)


@dataclass(frozen=True, kw_only=True)
class Clear(Operation, name="clear"):
    """Forget every record. The result is their number."""


@dataclass(frozen=True, kw_only=True)
class Batch(Operation, name="batch"):
    """Perform operations as one atomic commit. The result is the list of their results.

    Attributes:
        operations: The operations, in order. A batch cannot contain a batch or `Changes`.
        actor: Who performs them; recorded in the commit.
        reason: Why; recorded in the commit.
        expect_head: Commit only if the newest commit has this seq; otherwise ConflictError.
    """

    operations: tuple[Operation, ...]
    actor: str | None = None
    reason: str | None = None
    expect_head: int | None = None

    def __post_init__(self) -> None:
        _check_count("expect_head", self.expect_head, least=0, optional=True)
        for name in ("actor", "reason"):
            if getattr(self, name) is not None:
                check_label(name, getattr(self, name))
        for item in self.operations:
            if not isinstance(item, Operation) or isinstance(item, (Batch, Changes)):
                raise InvalidOperationError(item, "cannot be part of a batch")


@dataclass(frozen=True, kw_only=True)
class Get(Operation, name="get"):
    """Read the record of an id. The result is the record, or None."""

    id: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", record_id(self.id))


@dataclass(frozen=True, kw_only=True)
class Find(Operation, name="find"):
    """Find the records that match, in an order. The result is a list."""

    where: Filter = field(default_factory=Everything)
    limit: int | None = None
    order: str = "newest"

    def __post_init__(self) -> None:
        _check_filter(self.where)
        _check_count("limit", self.limit, optional=True)
        _check_choice("order", self.order, ORDERS)


@dataclass(frozen=True, kw_only=True)
class Count(Operation, name="count"):
    """Count the records that match. The result is their number."""

    where: Filter = field(default_factory=Everything)

    def __post_init__(self) -> None:
        _check_filter(self.where)


@dataclass(frozen=True, kw_only=True)
class Recall(Operation, name="recall"):
    """Find the records that answer a question best. The result is `Hits`.

    Attributes:
        question: The question.
        k: Maximum number of hits.
        where: Only records that match are hits.
        reference: The time to which words such as "yesterday" in the question refer. None: now.
        min_confidence: Hits with a lower confidence are left out; 0 to 1.
        language: The language of the question, a BCP 47 tag. None: the memory's, or else detected.
    """

    question: str
    k: int = 10
    where: Filter = field(default_factory=Everything)
    reference: datetime | None = None
    min_confidence: float = 0.0
    language: str | None = None

    def __post_init__(self) -> None:
        check_text("question", self.question)
        if self.reference is not None:
            try:
                aware("reference", self.reference)
            except RecollectError as error:
                raise InvalidArgumentError("reference", self.reference, str(error.args[2])) from None
        if self.language is not None:
            check_tag(self.language)
        least = self.min_confidence
        if isinstance(least, bool) or not isinstance(least, (int, float)) or not 0 <= least <= 1:
            raise InvalidArgumentError("min_confidence", least, "must be a number from 0 to 1")
        _check_count("k", self.k)
        _check_filter(self.where)

    def with_reference(self, reference: datetime) -> Recall:
        """Return a copy with a reference time that has a time zone. Nothing is validated again."""
        return altered(self, reference=reference)


@dataclass(frozen=True, kw_only=True)
class Grep(Operation, name="grep"):
    """Find the records whose text matches a full-text query, newest first. The result is a list.

    Attributes:
        query: Words, "phrases", prefix*, and, or, not, parentheses.
        limit: Maximum number of records.
        where: Only records that match are returned.
    """

    query: str
    limit: int = 20
    where: Filter = field(default_factory=Everything)

    def __post_init__(self) -> None:
        check_text("query", self.query)
        _check_count("limit", self.limit)
        _check_filter(self.where)


@dataclass(frozen=True, kw_only=True)
class Changes(Operation, name="changes"):
    """List the commits after a cursor or a seq. The result is a list.

    Attributes:
        since: A seq, or the cursor of a commit.
        limit: Maximum number of commits.
        id: Only commits that changed this record.
        newest_first: List the newest commits first, instead of the oldest.
    """

    since: int | str = 0
    limit: int | None = None
    id: str | None = None
    newest_first: bool = False

    def __post_init__(self) -> None:
        if self.id is not None:
            object.__setattr__(self, "id", record_id(self.id))
        if not isinstance(self.since, str):
            _check_count("since", self.since, least=0)
        _check_count("limit", self.limit, optional=True)
        if not isinstance(self.newest_first, bool):
            raise InvalidArgumentError("newest_first", self.newest_first, "must be true or false")


@dataclass(frozen=True, kw_only=True)
class Sweep(Operation, name="sweep"):
    """Remove expired records in a commit, at most `limit`, the longest expired first. The result is their number."""

    limit: int = 1000

    def __post_init__(self) -> None:
        _check_count("limit", self.limit)


@dataclass(frozen=True, kw_only=True)
class SetQuota(Operation, name="set_quota"):
    """Set the quota of the namespace (`engine.quota.Quota`); without `records` and `bytes`, remove it."""

    records: int | None = None
    bytes: int | None = None
    when_full: str = "refuse"
    per: str | None = None

    def __post_init__(self) -> None:
        _check_count("records", self.records, optional=True)
        _check_count("bytes", self.bytes, optional=True)
        _check_choice("when_full", self.when_full, WHEN_FULL)
        if self.per is not None:
            _check_choice("per", self.per, SCOPED)
        for name, default in (("when_full", WHEN_FULL[0]), ("per", None)):
            if self.records is self.bytes is None and getattr(self, name) != default:
                value = getattr(self, name)
                rule = "requires records or bytes: a quota is set as a whole"
                raise InvalidArgumentError(name, value, rule)


@dataclass(frozen=True, kw_only=True)
class Stats(Operation, name="stats"):
    """Count the records and describe the store. The result is a dict."""


@dataclass(frozen=True, kw_only=True)
class Namespaces(Operation, name="namespaces"):
    """List the names of the store's namespaces."""


def check_tag(language: object) -> None:
    """Raise InvalidArgumentError unless it has the form of a BCP 47 tag."""
    if not isinstance(language, str) or not _TAG.fullmatch(language):
        raise InvalidArgumentError("language", language, 'must be a BCP 47 tag, such as "en" or "de-AT"')


def check_label(name: str, value: object) -> None:
    """Raise InvalidArgumentError unless it is Unicode text without NUL, which not every database can store."""
    check_text(name, value, blank=True)
    if isinstance(value, str) and "\0" in value:
        raise InvalidArgumentError(name, value, "contains a NUL character")


def check_text(name: str, value: object, *, blank: bool = False) -> None:
    """Raise InvalidArgumentError unless it is Unicode text, and not blank unless `blank` allows it."""
    if not isinstance(value, str):
        raise InvalidArgumentError(name, value, "must be text")
    if not blank and not value.strip():
        raise InvalidArgumentError(name, value, "is empty")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgumentError(name, value, "contains a lone surrogate, which is not valid Unicode") from None
